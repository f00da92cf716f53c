"""Who asks: what is sent as identity, and when it is obtained anew."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import trustme
from kschedfw_kubernetes.cluster.credentials import Credentials
from kschedfw_kubernetes.cluster.errors import ConnectionConfigError, CredentialsError
from kschedfw_kubernetes.cluster.kubeconfig import (
    ClusterSection,
    ConnectionConfig,
    EnvironmentVariable,
    ExecPlugin,
    UserSection,
)
from kschedfw_kubernetes.cluster.request_metrics import RequestMetrics

from kschedfw.framework.clock import SystemClock
from kschedfw.testing.clock import FakeClock
from kschedfw.testing.waiting import eventually

CLUSTER = ClusterSection(server="http://localhost:1")


def credentials(user: UserSection, clock: FakeClock | None = None, **cluster: Any) -> Credentials:
    section = ClusterSection(**{"server": "http://localhost:1", **cluster})
    return Credentials(ConnectionConfig(section, user, source="config"), clock or FakeClock(), {})


def plugin(
    tmp_path: Path, body: str, version: str = "client.authentication.k8s.io/v1", **options: Any
) -> UserSection:
    script = tmp_path / "plugin.py"
    script.write_text(f"import json, os, sys\n{body}")
    return UserSection(
        exec=ExecPlugin(api_version=version, command=sys.executable, args=(str(script),), **options)
    )


def printing(status: object) -> str:
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    return f"print({json.dumps(json.dumps(credential))})"


def test_tokens_and_passwords_are_in_the_header() -> None:
    assert credentials(UserSection(token="abc")).identity().authorization == "Bearer abc"
    assert credentials(UserSection(username="a", password="b")).identity().authorization == "Basic YTpi"
    assert credentials(UserSection()).identity().authorization == ""


def test_a_token_file_is_read_again_after_a_minute(tmp_path: Path) -> None:
    file, clock = tmp_path / "token", FakeClock()
    file.write_text("one\n")
    found = credentials(UserSection(token_file=str(file)), clock)
    assert found.identity().authorization == "Bearer one"
    file.write_text("two\n")
    assert found.identity().authorization == "Bearer one"
    clock.advance(61)
    assert found.identity().authorization == "Bearer two"


def test_a_token_that_the_server_refuses_is_read_again_at_once(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    found = credentials(UserSection(token_file=str(file)))
    identity = found.identity()
    file.write_text("two")
    assert found.refuse(identity)
    assert found.identity().authorization == "Bearer two"
    assert not credentials(UserSection(token="fixed")).refuse(identity)


def test_a_token_file_without_a_token_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="can't be read"):
        credentials(UserSection(token_file=str(tmp_path / "none"))).identity()
    (tmp_path / "bad").write_text("a\r\nHeader: x")
    with pytest.raises(CredentialsError, match="has no token"):
        credentials(UserSection(token_file=str(tmp_path / "bad"))).identity()


def test_a_plugin_is_asked_again_when_its_token_has_expired(tmp_path: Path) -> None:
    clock = FakeClock(1_700_000_000)
    count = tmp_path / "count"
    body = f"""
count = open({str(count)!r}, "a+"); count.write("x"); count.seek(0); n = len(count.read())
status = {{"token": f"t{{n}}", "expirationTimestamp": "2023-11-14T22:23:20Z"}}
print(json.dumps({{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}}))
"""
    found = credentials(plugin(tmp_path, body), clock)
    assert [found.identity().authorization for _ in range(2)] == ["Bearer t1", "Bearer t1"]
    clock.advance(600)
    assert found.identity().authorization == "Bearer t2"


def test_a_plugin_is_told_of_the_cluster_and_its_variables(tmp_path: Path) -> None:
    body = """
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
token = os.environ["PREFIX"] + info["spec"]["cluster"]["server"].rpartition(":")[2]
print(json.dumps({"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": {"token": token}}))
"""
    variables = (EnvironmentVariable("PREFIX", "port-"),)
    user = plugin(
        tmp_path, body, "client.authentication.k8s.io/v1beta1", env=variables, provide_cluster_info=True
    )
    assert credentials(user).identity().authorization == "Bearer port-1"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("sys.exit('log in first')", "ended with 1: log in first"),
        ("print('secret-token')", "printed no ExecCredential"),
        ("while True: print('secret-token' * 1000)", "prints more than 1048576 bytes"),
        ("while True: print('secret-token' * 1000, file=sys.stderr)", "prints more than 1048576 bytes"),
        ("sys.exit('\\x1b[31mred')", r"ended with 1: \x1b[31mred"),
        (printing({"token": "secret-token\r\nX-Remote-User: admin"}), "its token may have no line ends"),
        (printing({"token": "secret-töken"}), "its token may have no line ends"),
        (printing({}), "has neither a token nor a certificate"),
        (printing(None), "has neither a token nor a certificate"),
    ],
)
def test_a_plugin_that_fails_is_named_and_what_it_printed_isnt(tmp_path: Path, body: str, why: str) -> None:
    with pytest.raises(CredentialsError) as caught:
        credentials(plugin(tmp_path, body)).identity()
    assert why in str(caught.value)
    assert f"exec plugin {sys.executable}" in str(caught.value)
    assert "secret-token" not in str(caught.value)


def test_a_plugin_that_leaves_somebody_with_its_output_is_given_up_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kschedfw_kubernetes.cluster.credentials._PLUGIN_SECONDS", 0.5)
    pid = tmp_path / "pid"
    body = f"""
import subprocess
left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open({str(pid)!r}, "w").write(str(left.pid))
{printing({"token": "t"})}
"""
    found = Credentials(
        ConnectionConfig(CLUSTER, plugin(tmp_path, body), source="config"), SystemClock(), os.environ
    )
    with pytest.raises(CredentialsError, match="gave no answer within"):
        found.identity()
    if pid.exists():  # it had the time to begin
        eventually(lambda: not is_running(int(pid.read_text())))


def is_running(pid: int) -> bool:
    state = Path(f"/proc/{pid}/stat")
    try:
        return state.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("kind", ["pipe", "device", "directory", "large"])
def test_files_that_might_never_end_are_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path = Path("/dev/zero")
        case "directory":
            path.mkdir()
        case "large":
            path.write_bytes(b"x" * ((1 << 20) + 1))
    why = "is larger than 1048576 bytes" if kind == "large" else "is no regular file|Is a directory"
    with pytest.raises(CredentialsError, match=f"{path}: the token can't be read: .*({why})"):
        credentials(UserSection(token_file=str(path))).identity()
    server = "https://localhost:1"
    with pytest.raises(ConnectionConfigError, match=why):
        credentials(UserSection(client_certificate=str(path)), server=server).identity()
    with pytest.raises(ConnectionConfigError, match=why):
        credentials(UserSection(), server=server, certificate_authority=str(path)).identity()


@pytest.mark.parametrize("token", ["a\r\nX-Remote-User: admin", "a\nb", "tökén"])
def test_a_token_that_would_be_another_header_is_refused_and_not_told(token: str) -> None:
    with pytest.raises(ConnectionConfigError, match=r"^config: token: may have no line ends") as caught:
        credentials(UserSection(token=token)).identity()
    assert token not in str(caught.value)


def test_a_plugin_of_an_unknown_version_or_that_isnt_there_is_refused() -> None:
    old = ExecPlugin(api_version="client.authentication.k8s.io/v1alpha1", command="x")
    with pytest.raises(ConnectionConfigError, match="apiVersion must be"):
        credentials(UserSection(exec=old)).identity()
    hint = ExecPlugin(
        api_version="client.authentication.k8s.io/v1", command="no-such-plugin", install_hint="install it"
    )
    with pytest.raises(CredentialsError, match=r"can't be run: .*; install it"):
        credentials(UserSection(exec=hint)).identity()


def test_a_client_certificate_is_used_from_data_and_from_files(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("client@example.com")
    certificate.private_key_pem.write_to_path(tmp_path / "key")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert")
    user = UserSection(client_certificate=str(tmp_path / "cert"), client_key=str(tmp_path / "key"))
    assert credentials(user, server="https://localhost:1").identity().tls is not None
    with pytest.raises(ConnectionConfigError, match="the client certificate can't be used"):
        credentials(
            UserSection(client_certificate=str(tmp_path / "cert"), client_key=str(tmp_path / "none")),
            server="https://localhost:1",
        ).identity()
    with pytest.raises(ConnectionConfigError, match="is not base64"):
        credentials(UserSection(client_certificate_data="?"), server="https://localhost:1").identity()


def test_an_authority_that_cant_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConnectionConfigError, match="no certificate authority can be read"):
        credentials(
            UserSection(), server="https://localhost:1", certificate_authority=str(tmp_path / "none")
        ).identity()


def test_metrics_are_told_of_each_certificate_and_the_one_before(tmp_path: Path) -> None:
    told: list[tuple[bytes, bytes]] = []

    class Metrics(RequestMetrics):
        def plugin_certificate(self, certificate: bytes, former: bytes) -> None:
            told.append((certificate, former))

    pair = trustme.CA().issue_cert("client")
    certificate, key = pair.cert_chain_pems[0].bytes().decode(), pair.private_key_pem.bytes().decode()
    body = printing({"clientCertificateData": certificate, "clientKeyData": key})
    config = ConnectionConfig(
        ClusterSection(server="https://localhost:1"), plugin(tmp_path, body), source="config"
    )
    given = Credentials(config, FakeClock(), {}, metrics=Metrics())
    given.refuse(given.identity())
    given.identity()
    assert told == [(certificate.encode(), b""), (certificate.encode(), certificate.encode())]
