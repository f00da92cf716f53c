"""Extenders over TLS: whom the client trusts, and how it shows who it is."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from http_extender.servers import ScriptedExtender, scripted
from kschedfw_kubernetes.http_extender import ExtenderError, HTTPExtender

from kschedfw import make_node, make_pod
from kschedfw.config import ExtenderConfigError
from kschedfw.config.extenders import ExtenderConfig, ExtenderTLSConfig
from kschedfw.framework.nodes.node_info import NodeInfo

NODES = [NodeInfo.of(make_node("a").build())]

Ask = Callable[..., object]


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def files(ca: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ca.pem, and cert.pem with key.pem of a client."""
    directory = tmp_path_factory.mktemp("tls")
    client = ca.issue_cert("scheduler.example")
    ca.cert_pem.write_to_path(directory / "ca.pem")
    client.cert_chain_pems[0].write_to_path(directory / "cert.pem")
    client.private_key_pem.write_to_path(directory / "key.pem")
    return directory


def server_context(ca: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(*names).configure_cert(context)
    return context


@pytest.fixture
def server(ca: trustme.CA) -> Iterator[ScriptedExtender]:
    with scripted({"/filter": "{}"}, tls=server_context(ca, "127.0.0.1")) as running:
        yield running


def ask(url: str, *, enable_https: bool = False, **tls: Any) -> None:
    config = ExtenderConfig(
        url,
        filter_verb="filter",
        enable_https=enable_https,
        tls_config=ExtenderTLSConfig(**tls) if tls else None,
    )
    with HTTPExtender(config) as extender:
        extender.filter(make_pod().build(), NODES)


class TestTrust:
    def test_a_ca_from_a_file(self, server: ScriptedExtender, files: Path) -> None:
        ask(server.url, ca_file=str(files / "ca.pem"))
        ask(server.url, ca_file=str(files / "ca.pem"), enable_https=True)

    def test_data_takes_precedence(self, server: ScriptedExtender, ca: trustme.CA) -> None:
        ask(server.url, ca_data=ca.cert_pem.bytes(), ca_file="missing")

    def test_an_unknown_ca_is_refused(self, server: ScriptedExtender) -> None:
        with pytest.raises(ExtenderError, match="certificate verify failed"):
            ask(server.url)
        with pytest.raises(ExtenderError, match="certificate verify failed"):
            ask(server.url, ca_data=trustme.CA().cert_pem.bytes(), enable_https=True)

    def test_insecure_takes_any(self, server: ScriptedExtender) -> None:
        ask(server.url, insecure=True)

    def test_https_without_a_ca_takes_any(self, server: ScriptedExtender) -> None:
        """Surprising, but so it is in kube-scheduler."""
        ask(server.url, enable_https=True)

    def test_the_name_must_fit(self, ca: trustme.CA) -> None:
        trusted: dict[str, Any] = {"ca_data": ca.cert_pem.bytes()}
        with scripted({"/filter": "{}"}, tls=server_context(ca, "extender.example")) as server:
            with pytest.raises(ExtenderError, match="certificate verify failed"):
                ask(server.url, **trusted)
            ask(server.url, server_name="extender.example", **trusted)
            with pytest.raises(ExtenderError, match="certificate verify failed"):
                ask(server.url, server_name="other.example", **trusted)


class TestClientCertificate:
    @pytest.fixture
    def strict(self, ca: trustme.CA) -> Iterator[ScriptedExtender]:
        context = server_context(ca, "127.0.0.1")
        context.verify_mode = ssl.CERT_REQUIRED
        ca.configure_trust(context)
        with scripted({"/filter": "{}"}, tls=context) as running:
            yield running

    def test_from_files(self, strict: ScriptedExtender, files: Path) -> None:
        ask(
            strict.url,
            ca_file=str(files / "ca.pem"),
            cert_file=str(files / "cert.pem"),
            key_file=str(files / "key.pem"),
        )

    def test_from_data(self, strict: ScriptedExtender, files: Path) -> None:
        ask(
            strict.url,
            ca_file=str(files / "ca.pem"),
            cert_data=(files / "cert.pem").read_bytes(),
            key_data=(files / "key.pem").read_bytes(),
        )

    def test_without_one_the_server_refuses(self, strict: ScriptedExtender, files: Path) -> None:
        with pytest.raises(ExtenderError):
            ask(strict.url, ca_file=str(files / "ca.pem"))


@pytest.mark.parametrize(
    ("tls", "field"),
    [
        ({"ca_file": "missing.pem"}, 'tlsConfig.caFile: Invalid value: "missing.pem"'),
        ({"ca_data": b"no PEM"}, "tlsConfig.caData"),
        ({"ca_data": b"\xff"}, "tlsConfig.caData"),
        ({"cert_file": "missing.pem", "key_file": "missing.pem"}, "tlsConfig.certFile"),
        ({"cert_data": b"no PEM", "key_data": b"no PEM"}, "tlsConfig.certData"),
    ],
)
def test_what_cannot_be_read_is_told_at_once(tls: dict[str, Any], field: str) -> None:
    with pytest.raises(ExtenderConfigError) as caught:
        HTTPExtender(ExtenderConfig("https://extender.example", tls_config=ExtenderTLSConfig(**tls)))
    assert field in str(caught.value)
