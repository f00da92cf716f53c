"""Callers with a certificate, over real connections: who they are taken for, and whom nobody lets in."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from kschedfw_kubernetes.serve.access import TOKEN_REVIEWS, Access, User
from kschedfw_kubernetes.serve.certificates import CertificateError, TlsSettings, self_signed
from kschedfw_kubernetes.serve.client_certificates import (
    Authorities,
    ClientCertificates,
    FrontProxy,
    read_authorities,
    read_bundle,
)
from kschedfw_kubernetes.serve.endpoints import Endpoints
from kschedfw_kubernetes.serve.server import EndpointServer
from kschedfw_kubernetes.web.asgi import text

from kschedfw.framework.clock import SystemClock
from kschedfw.testing.waiting import PATIENCE


@attrs.frozen
class Pair:
    certificate: bytes
    key: bytes


class Authority:
    """Signs certificates as Kubernetes' are: no alternative names, organizations for groups."""

    def __init__(self) -> None:
        self._ca = trustme.CA()
        self.pem = self._ca.cert_pem.bytes()
        self.trusted = tuple(x509.load_pem_x509_certificates(self.pem))

    def sign(self, name: str, *groups: str) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = self.trusted[0]
        names = [
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups),
            x509.NameAttribute(NameOID.COMMON_NAME, name),
        ]
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name(names))
            .issuer_name(issuer.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(issuer.not_valid_before_utc)
            .not_valid_after(issuer.not_valid_after_utc)
            .sign(
                serialization.load_pem_private_key(self._ca.private_key_pem.bytes(), None),  # type: ignore[arg-type]
                hashes.SHA256(),
            )
        )
        return Pair(
            certificate.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ),
        )


USERS, PROXIES, STRANGERS = Authority(), Authority(), Authority()
BOTH = Authorities(USERS.trusted, FrontProxy(PROXIES.trusted, allowed_names=("front",)))


class Server:
    """The endpoints, whose API server lets everybody do everything, and remembers who it was asked about."""

    def __init__(self, callers: ClientCertificates, folder: Path) -> None:
        self.asked: list[Mapping[str, Any]] = []
        self._folder = folder
        certificate = self_signed(SystemClock(), ("127.0.0.1",))
        self._server = EndpointServer("127.0.0.1", 0, certificate, callers)
        access = Access(self._review, self._review, lambda: 0.0)
        self._server.start(Endpoints([], {"/metrics": lambda: text("a 1\n")}, access, callers))

    def _review(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        if path == TOKEN_REVIEWS:
            known = body["spec"]["token"] == "good"
            return {"status": {"authenticated": known, "user": {"username": "of a token"}}}
        self.asked.append(body["spec"])
        return {"status": {"allowed": True}}

    def get(self, pair: Pair | None = None, **headers: str) -> int:
        """The status of the answer."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if pair is not None:
            file = self._folder / "pair.pem"
            file.write_bytes(pair.certificate + pair.key)
            context.load_cert_chain(file)
        url = f"https://127.0.0.1:{self._server.port}/metrics"
        request = urllib.request.Request(
            url, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )
        try:
            with urllib.request.urlopen(request, context=context, timeout=PATIENCE) as reply:
                return int(reply.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    def close(self) -> None:
        self._server.close()


Serve = Callable[[ClientCertificates], Server]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    servers = []

    def start(callers: ClientCertificates) -> Server:
        servers.append(Server(callers, tmp_path))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def server(serve: Serve) -> Server:
    return serve(ClientCertificates(BOTH))


def test_a_certificate_says_name_and_groups(server: Server) -> None:
    assert server.get(USERS.sign("eve", "readers", "writers")) == 200
    (spec,) = server.asked
    assert spec["user"] == "eve"
    assert spec["groups"] == ["readers", "writers", "system:authenticated"]
    (identifier,) = spec["extra"]["authentication.kubernetes.io/credential-id"]
    assert identifier.startswith("X509SHA256=")


def test_a_proxy_says_for_whom_it_asks(server: Server) -> None:
    assert (
        server.get(PROXIES.sign("front"), X_Remote_User="eve", X_Remote_Group="readers", X_Remote_Extra_a="b")
        == 200
    )
    (spec,) = server.asked
    assert (spec["user"], spec["groups"]) == ("eve", ["readers", "system:authenticated"])
    assert spec["extra"] == {"a": ["b"]}


def test_headers_of_others_than_proxies_say_nothing(server: Server) -> None:
    assert server.get(USERS.sign("mallory"), X_Remote_User="admin") == 200
    assert server.get(X_Remote_User="admin") == 200
    assert [spec["user"] for spec in server.asked] == ["mallory", "system:anonymous"]


def test_a_proxy_whose_name_is_not_allowed_is_refused(server: Server) -> None:
    assert server.get(PROXIES.sign("other"), X_Remote_User="admin") == 401
    assert server.get(PROXIES.sign("front")) == 401  # it says for nobody, and is no user itself
    assert server.asked == []


def test_a_token_counts_where_the_certificate_says_nothing(server: Server) -> None:
    assert server.get(PROXIES.sign("other"), Authorization="Bearer good") == 200
    assert [spec["user"] for spec in server.asked] == ["of a token"]


def test_certificates_of_strangers_end_the_handshake(server: Server) -> None:
    with pytest.raises((urllib.error.URLError, OSError)):
        server.get(STRANGERS.sign("admin", "system:masters"))
    assert server.asked == []


def test_without_authorities_nobody_is_asked_for_a_certificate(serve: Serve) -> None:
    server = serve(ClientCertificates())
    assert server.get(STRANGERS.sign("eve")) == 200
    assert [spec["user"] for spec in server.asked] == ["system:anonymous"]


def config_map(users: Authority, proxies: Authority | None = None) -> dict[str, str]:
    """As the API server writes it."""
    data = {"client-ca-file": users.pem.decode()}
    if proxies is not None:
        data |= {
            "requestheader-client-ca-file": proxies.pem.decode(),
            "requestheader-allowed-names": json.dumps(["front"]),
            "requestheader-username-headers": json.dumps(["X-Remote-User"]),
            "requestheader-group-headers": json.dumps(["X-Remote-Group"]),
            "requestheader-extra-headers-prefix": json.dumps(["X-Remote-Extra-"]),
        }
    return data


def test_authorities_of_the_cluster_are_those_of_its_config_map() -> None:
    assert read_authorities(config_map(USERS, PROXIES)) == BOTH
    assert read_authorities({}) == Authorities()


def test_authorities_are_looked_up_where_no_flag_gives_them(serve: Serve) -> None:
    callers = ClientCertificates(look_up=lambda: config_map(USERS))
    callers.refresh()
    server = serve(callers)
    assert server.get(USERS.sign("eve")) == 200
    assert [spec["user"] for spec in server.asked] == ["eve"]


def test_flags_take_the_place_of_what_is_looked_up() -> None:
    callers = ClientCertificates(Authorities(STRANGERS.trusted), lambda: config_map(USERS, PROXIES))
    callers.refresh()
    assert callers.authorities == Authorities(STRANGERS.trusted, BOTH.proxies)


def test_an_authority_that_is_gone_from_the_config_map_is_not_believed_any_more(serve: Serve) -> None:
    signers = [USERS]
    callers = ClientCertificates(look_up=lambda: config_map(signers[0]))
    callers.refresh()
    server = serve(callers)
    signers[0] = STRANGERS
    callers.refresh()
    assert server.get(USERS.sign("eve")) == 401  # the handshake's context can't forget


def test_authorities_stay_while_they_cannot_be_looked_up(caplog: pytest.LogCaptureFixture) -> None:
    answers: list[dict[str, str] | Exception] = [config_map(USERS)]

    def look_up() -> dict[str, str]:
        if isinstance(answers[0], Exception):
            raise answers[0]
        return answers[0]

    callers = ClientCertificates(look_up=look_up)
    callers.refresh()
    answers[0] = ConnectionError("refused")
    callers.refresh()
    callers.refresh()
    assert callers.authorities.clients == USERS.trusted
    answers[0] = {"client-ca-file": "no certificate"}
    callers.refresh()
    assert callers.authorities.clients == USERS.trusted
    assert len(caplog.records) == 2  # each problem once


def test_forged_certificates_are_nobodys() -> None:
    forged = Authority()
    shown = x509.load_pem_x509_certificate(forged.sign("admin", "system:masters").certificate)
    callers = ClientCertificates(BOTH)
    assert callers.user(shown.public_bytes(serialization.Encoding.DER), ()) is None
    own = x509.load_pem_x509_certificate(USERS.sign("eve").certificate)
    user = callers.user(own.public_bytes(serialization.Encoding.DER), ())
    assert isinstance(user, User)
    assert user.name == "eve"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "--client-ca-file {file}: No such file or directory"),
        (b"no certificate", "--client-ca-file {file}: must have certificates (PEM), at least one"),
    ],
)
def test_a_bundle_that_cannot_be_read(tmp_path: Path, content: bytes | None, why: str) -> None:
    file = tmp_path / "ca.crt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CertificateError) as caught:
        read_bundle("--client-ca-file", file)
    assert str(caught.value) == why.format(file=file)


class TestTls:
    def test_the_lowest_version_and_the_suites_are_the_contexts(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        suites = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_AES_128_GCM_SHA256"
        TlsSettings.parse("VersionTLS12", suites).apply(context)
        assert context.minimum_version == ssl.TLSVersion.TLSv1_2
        up_to_1_2 = {each["name"] for each in context.get_ciphers() if each["protocol"] != "TLSv1.3"}
        assert up_to_1_2 == {"ECDHE-ECDSA-AES128-GCM-SHA256"}

    def test_without_flags_it_is_tls_1_2_as_with_kube_scheduler(self) -> None:
        assert TlsSettings.parse("", "").minimum == ssl.TLSVersion.TLSv1_2

    @pytest.mark.parametrize(
        "suite", ["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "TLS_RSA_WITH_AES_256_CBC_SHA"]
    )
    def test_suites_have_gos_names(self, suite: str) -> None:
        TlsSettings.parse("", suite).apply(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))

    @pytest.mark.parametrize(
        ("version", "suites", "why"),
        [
            ("VersionTLS14", "", "--tls-min-version VersionTLS14: must be one of VersionTLS10, VersionTLS11"),
            ("", "AES", "--tls-cipher-suites AES: must be of TLS_AES_128_GCM_SHA256, "),
        ],
    )
    def test_unknown_names(self, version: str, suites: str, why: str) -> None:
        with pytest.raises(CertificateError) as caught:
            TlsSettings.parse(version, suites)
        assert str(caught.value).startswith(why)
