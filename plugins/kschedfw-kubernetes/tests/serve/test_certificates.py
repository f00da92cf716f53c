"""Certificates that are given, and those that the process signs itself."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from pathlib import Path

import pytest
import trustme
from kschedfw_kubernetes.serve.certificates import CertificateError, ServerCertificate, self_signed

from kschedfw.framework.clock import SystemClock

NAMES = ("localhost", "127.0.0.1")


def presented(certificate: ServerCertificate) -> bytes:
    """What a client gets to see (DER)."""
    here, there = socket.socketpair()
    with here, there:

        def serve() -> None:
            with certificate.context.wrap_socket(there, server_side=True):
                pass

        server = threading.Thread(target=serve)
        server.start()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with context.wrap_socket(here) as client:
            found = client.getpeercert(binary_form=True)
        server.join()
    assert found is not None
    return found


def write(folder: Path, pair: trustme.LeafCert) -> tuple[Path, Path]:
    certificate, key = folder / "tls.crt", folder / "tls.key"
    pair.cert_chain_pems[0].write_to_path(certificate)
    pair.private_key_pem.write_to_path(key)
    return certificate, key


def test_a_new_one_is_signed_by_itself() -> None:
    pem = ssl.DER_cert_to_PEM_cert(presented(self_signed(SystemClock(), NAMES)))
    ssl.create_default_context(cadata=pem)  # can be read, and be trusted


def test_it_differs_each_time_unless_there_is_a_directory(tmp_path: Path) -> None:
    clock = SystemClock()
    assert presented(self_signed(clock, NAMES)) != presented(self_signed(clock, NAMES))
    folder = tmp_path / "new"
    assert presented(self_signed(clock, NAMES, folder)) == presented(self_signed(clock, NAMES, folder))
    assert (folder / "kube-scheduler.key").stat().st_mode & 0o077 == 0


def test_a_changed_file_is_used_for_new_connections(tmp_path: Path) -> None:
    ca = trustme.CA()
    certificate = ServerCertificate(*write(tmp_path, ca.issue_cert("a")))
    assert not certificate.refresh()
    before = presented(certificate)
    write(tmp_path, ca.issue_cert("b"))
    assert certificate.refresh()
    assert presented(certificate) != before


def test_what_cannot_be_used_changes_nothing(tmp_path: Path) -> None:
    files = write(tmp_path, trustme.CA().issue_cert("a"))
    certificate = ServerCertificate(*files)
    before = presented(certificate)
    files[0].write_text("half a certi")
    with pytest.raises(CertificateError, match=r"tls\.crt with key .*tls\.key can't be used"):
        certificate.refresh()
    os.unlink(files[1])  # noqa: PTH108
    assert not certificate.refresh()
    assert presented(certificate) == before


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    certificate, _ = write(tmp_path, trustme.CA().issue_cert("a"))
    _, key = write(tmp_path / "other", trustme.CA().issue_cert("a"))
    with pytest.raises(CertificateError, match="can't be used"):
        ServerCertificate(certificate, key)
    with pytest.raises(CertificateError, match="No such file"):
        ServerCertificate(certificate, tmp_path / "missing")
