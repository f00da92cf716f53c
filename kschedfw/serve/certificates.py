"""The certificate of the endpoints: the one that is given, or one that the process signs itself."""

from __future__ import annotations

import ipaddress
import os
import ssl
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import attrs
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kschedfw.api.errors import KschedfwError
from kschedfw.framework.clock import Clock

PAIR_NAME: Final = "kube-scheduler"
"""What the files in `--cert-dir` are called, before `.crt` and `.key`."""
_VALID: Final = timedelta(days=365)
_LEEWAY: Final = timedelta(hours=1)
"""Clocks differ."""


class CertificateError(KschedfwError, ValueError):
    """A certificate or key that can't be used; says which and why."""


@attrs.frozen
class _KeyPair:
    certificate: bytes
    key: bytes


class ServerCertificate:
    """A certificate and its key in files (PEM), and the TLS settings made of them.

    Raises:
        CertificateError: they can't be read, or don't belong together.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = certificate, key
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._loaded = self._state()
        self._load(self.context)

    def refresh(self) -> bool:
        """Load the files again if they have changed; new connections get the new certificate. Whether that was so.

        Files that are missing haven't changed: they are just being replaced, or were never to stay.

        Raises:
            CertificateError: the new ones can't be used; the old one stays in use.
        """
        if not all(file.exists() for file in self._files) or (state := self._state()) == self._loaded:
            return False
        self._load(
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        )  # a half-written pair must not break the one in use
        self._load(self.context)
        self._loaded = state
        return True

    def _load(self, context: ssl.SSLContext) -> None:
        certificate, key = self._files
        try:
            context.load_cert_chain(certificate, key, password=_no_password)
        except (OSError, ValueError) as error:
            raise CertificateError(
                f"certificate {certificate} with key {key} can't be used: {error}"
            ) from error

    def _state(self) -> tuple[tuple[int, int, int], ...]:
        try:
            return tuple(
                (found.st_mtime_ns, found.st_size, found.st_ino) for found in map(os.stat, self._files)
            )
        except OSError as error:
            raise CertificateError(f"{error.filename}: {error.strerror}") from error


def self_signed(clock: Clock, names: Sequence[str], directory: Path | None = None) -> ServerCertificate:
    """A certificate for these names and addresses, signed by itself and good for a year.

    In a directory it is kept for the next time, as `kube-scheduler.crt` and `.key`; if they are there already, they are
    used as they are.

    Raises:
        CertificateError: the files there can't be used.
        OSError: the directory can't be written to.
    """
    if directory is None:
        with tempfile.TemporaryDirectory(prefix="kschedfw-") as folder:
            return _written(_signed(clock, names), Path(folder))
    certificate, key = _paths(directory)
    if certificate.exists() and key.exists():
        return ServerCertificate(certificate, key)
    directory.mkdir(parents=True, exist_ok=True)
    return _written(_signed(clock, names), directory)


def _paths(directory: Path) -> tuple[Path, Path]:
    return directory / f"{PAIR_NAME}.crt", directory / f"{PAIR_NAME}.key"


def _written(pair: _KeyPair, directory: Path) -> ServerCertificate:
    certificate, key = _paths(directory)
    certificate.write_bytes(pair.certificate)
    key.touch(mode=0o600)
    key.write_bytes(pair.key)
    return ServerCertificate(certificate, key)


def _signed(clock: Clock, names: Sequence[str]) -> _KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    moment = datetime.fromtimestamp(clock.now(), UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{names[0]}@{int(clock.now())}")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(moment - _LEEWAY)
        .not_valid_after(moment + _VALID)
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _KeyPair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _no_password() -> str:
    raise ValueError("the key is encrypted, and there is nobody to ask for its password")
