"""Servers that redirect, dawdle, flood or talk nonsense, over real sockets: one clear error, soon, no token told."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from pathlib import Path

import pytest
import trustme
from kschedfw_loadaware import (
    Endpoint,
    LoadReport,
    LoadWatcherSource,
    MetricsError,
    PrometheusSource,
    TargetLoadPacking,
)
from tests.hostile_server import OK, TIMEOUT, TOKEN, Server, answering, serving

from kschedfw import make_node
from kschedfw.testing import FakeClock, FrameworkHarness
from kschedfw.testing.waiting import PATIENCE


def error_of(server: Server, *, max_bytes: int = 1_000_000, timeout: float = PATIENCE) -> str:
    """What reading a report from there comes to."""
    endpoint = Endpoint(server.address, TOKEN, timeout=timeout, max_bytes=max_bytes)
    with pytest.raises(MetricsError) as raised:
        LoadWatcherSource(endpoint).read(0)
    text = str(raised.value)
    assert text.startswith(f"load-watcher at {server.address}: ")
    assert TOKEN not in text
    assert text.isprintable()
    assert len(text) < 1500
    return text


class TestRedirects:
    def test_to_another_host_are_not_followed_and_the_token_stays(self) -> None:
        with serving(answering(OK + b"\r\n{}")) as other:
            location = f"http://localhost:{other.port}/watcher".encode()
            for status in (301, 302, 303, 307, 308):
                answer = b"HTTP/1.1 %d Elsewhere\r\nLocation: %s\r\n\r\n" % (status, location)
                with serving(answering(answer)) as server:
                    text = error_of(server)
                    assert f"Authorization: Bearer {TOKEN}" in server.seen[0]
                assert f"redirects to '{location.decode()}'" in text
                assert "only redirects to the same scheme, host and port are followed" in text
            assert other.seen == []

    @pytest.mark.parametrize(
        "location",
        [
            "file:///etc/passwd",
            "ftp://127.0.0.1/",
            "//elsewhere.example/",
            "https://127.0.0.1/",
            "http://127.0.0.1@elsewhere.example/",
            "http://127.0.0.1:1/",
            "gopher:x",
            "\x1b[31m://\x9b",
            "http://" + "a" * 3000,
        ],
    )
    def test_to_anything_else_neither(self, location: str) -> None:
        with serving(
            answering(f"HTTP/1.1 302 Found\r\nLocation: {location}\r\n\r\n".encode("latin-1"))
        ) as server:
            text = error_of(server)
            assert "redirect" in text or "not HTTP" in text or "HTTP 404" in text or "Invalid" in text
            assert len(server.seen) <= 6

    def test_on_the_same_host_are_followed(self) -> None:
        def talk(connection: socket.socket, path: str) -> None:
            if path == "/watcher":
                connection.sendall(
                    b"HTTP/1.1 307 Moved\r\nLocation: /v2/watcher?x=1\r\nContent-Length: 0\r\n\r\n"
                )
            else:
                connection.sendall(
                    OK + b'\r\n{"window": {"start": 0, "end": 1}, "data": {"NodeMetricsMap": {}}}'
                )

        with serving(talk) as server:
            assert LoadWatcherSource(Endpoint(server.address, TOKEN)).read(0) == LoadReport(0, 1, {})
            assert [each.split()[1] for each in server.seen] == ["/watcher", "/v2/watcher?x=1"]
            assert all(f"Bearer {TOKEN}" in each for each in server.seen)

    def test_that_never_end_end(self) -> None:
        with serving(answering(b"HTTP/1.1 302 Found\r\nLocation: /watcher\r\n\r\n")) as server:
            assert "redirected more than 5 times" in error_of(server)
            assert len(server.seen) == 6

    def test_without_a_location_are_no_answer(self) -> None:
        with serving(answering(b"HTTP/1.1 302 Found\r\n\r\n")) as server:
            assert "HTTP 302 'Found'" in error_of(server)


class TestTime:
    """There is one deadline for everything, so that it doesn't help to send a byte now and then."""

    @pytest.mark.parametrize(
        ("before", "drip"),
        [
            (b"", b""),
            (b"", b"H"),
            (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
            (OK, b"a"),
            (OK, b"X: y\r\n"),
            (OK + b"\r\n", b" "),
            (OK + b"Content-Length: 100000\r\n\r\n", b" "),
            (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
            (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"0"),
        ],
    )
    def test_an_answer_that_trickles_in_is_late(self, before: bytes, drip: bytes) -> None:
        def talk(connection: socket.socket, path: str) -> None:
            connection.sendall(before)
            server.drip(connection, drip)

        with serving(talk) as server:
            text = error_of(server, timeout=TIMEOUT)
            # http.client gives up on its own after 100 headers.
            assert f"no answer within {TIMEOUT} s" in text or "more than 100 headers" in text

    def test_tls_that_is_never_begun_is_late(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as mute:
            endpoint = Endpoint(f"https://127.0.0.1:{mute.getsockname()[1]}", timeout=TIMEOUT)
            with pytest.raises(MetricsError, match=f"no answer within {TIMEOUT} s"):
                endpoint.get("/")

    def test_a_name_that_nobody_looks_up_in_time_is_late(self, monkeypatch: pytest.MonkeyPatch) -> None:
        end = threading.Event()
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: end.wait(PATIENCE) and [])
        with pytest.raises(MetricsError, match=f"no answer within {TIMEOUT} s"):
            Endpoint("http://metrics.example", timeout=TIMEOUT).get("/")
        end.set()

    def test_redirects_and_all_queries_of_a_report_share_it(self) -> None:
        vector = b'{"data": {"resultType": "vector", "result": []}}'

        def slow(connection: socket.socket, path: str) -> None:
            time.sleep(0.6 * TIMEOUT)
            if "X=1" in path:
                connection.sendall(OK + b"\r\n" + vector)
            else:
                connection.sendall(f"HTTP/1.1 302 Found\r\nLocation: {path}&X=1\r\n\r\n".encode())

        with serving(slow) as server, pytest.raises(MetricsError, match=f"no answer within {TIMEOUT} s"):
            PrometheusSource(Endpoint(server.address, timeout=TIMEOUT)).read(0)


class TestSize:
    @pytest.mark.parametrize(
        "head",
        [
            b"\r\n",
            b"Content-Length: 10000000000\r\n\r\n",
            b"Transfer-Encoding: chunked\r\n\r\nfffffff\r\n",
        ],
    )
    def test_an_answer_that_is_too_long_is_not_read_to_its_end(self, head: bytes) -> None:
        sent = 0

        def flood(connection: socket.socket, path: str) -> None:
            nonlocal sent
            connection.sendall(OK + head)
            while sent < 100_000_000:
                connection.sendall(b" " * 65536)
                sent += 65536

        with serving(flood) as server:
            assert "the answer is longer than 100,000 bytes" in error_of(server, max_bytes=100_000)
        assert sent < 20_000_000  # what fits into the buffers on the way

    def test_one_that_is_just_short_enough_is_read(self) -> None:
        content = b'{"window": {"start": 0, "end": 1}, "data": {"NodeMetricsMap": {}}}'
        with serving(answering(OK + b"\r\n" + content)) as server:
            assert "longer than" in error_of(server, max_bytes=len(content) - 1)
            endpoint = Endpoint(server.address, max_bytes=len(content))
            assert LoadWatcherSource(endpoint).read(0) == LoadReport(0, 1, {})

    def test_one_that_is_packed_is_not_unpacked(self) -> None:
        with serving(answering(OK + b"Content-Encoding: gzip\r\n\r\n\x1f\x8b")) as server:
            assert "the answer is encoded, which nobody asked for: 'gzip'" in error_of(server)


class TestNonsense:
    @pytest.mark.parametrize(
        ("answer", "text"),
        [
            (b"", "not HTTP: RemoteDisconnected"),
            (b"SSH-2.0-OpenSSH\r\n", "not HTTP: BadStatusLine 'SSH-2.0-OpenSSH"),
            (b"\x00\xff" * 50_000, "not HTTP: LineTooLong"),
            (OK + b"X: " + b"y" * 70_000 + b"\r\n\r\n", "not HTTP: LineTooLong"),
            (OK + b"X: y\r\n" * 200 + b"\r\n", "got more than 100 headers"),
            (b"HTTP/1.1 500 \x1b[31m" + b"no" * 500 + b"\r\n\r\n", "HTTP 500 '\\x1b[31mnono"),
            (b"HTTP/1.1 204 Nothing\r\n\r\n", "HTTP 204 'Nothing'"),
            (OK + b"Content-Length: 10\r\n\r\n{}", "the answer ends early"),
            (OK + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n", "the answer ends early"),
            (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{}", "the answer ends early"),
            (OK + b"\r\n" + b"[" * 200_000, "is nested too deeply"),
            (OK + b"\r\n" + b"9" * 5000, "Exceeds the limit"),
            (OK + b"\r\n\xff", "invalid start byte"),
            (OK + b"\r\n" + b'"\\ud800' + b"x" * 9999 + b'"', "a report: must be an object, not str"),
        ],
    )
    def test_is_one_error_in_one_line(self, answer: bytes, text: str) -> None:
        with serving(answering(answer)) as server:
            assert text in error_of(server)

    def test_the_log_has_a_line_and_scheduling_goes_on(self, caplog: pytest.LogCaptureFixture) -> None:
        with serving(
            answering(b"HTTP/1.1 302 Found\r\nLocation: http://elsewhere.example/\r\n\r\n")
        ) as server:
            it = FrameworkHarness(
                TargetLoadPacking,
                nodes=[make_node("a").build()],
                args={
                    "TargetLoadPacking": {
                        "metricProvider": {"type": "Prometheus", "address": server.address, "token": TOKEN}
                    }
                },
                clock=FakeClock(),
            )
        (record,) = caplog.records
        assert record.getMessage().startswith("no new metrics: Prometheus at http://127.0.0.1:")
        assert "redirects to 'http://elsewhere.example/'" in record.getMessage()
        assert TOKEN not in caplog.text
        assert it.framework.plugins["TargetLoadPacking"] is not None


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def tls(ca: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    return context


class TestTls:
    def test_the_servers_certificate_is_checked_before_the_token_is_sent(
        self, ca: trustme.CA, tls: ssl.SSLContext, tmp_path: Path
    ) -> None:
        with serving(answering(OK + b"\r\n[]"), tls) as server:
            assert "CERTIFICATE_VERIFY_FAILED" in error_of(server)
            elsewhere = Endpoint(
                server.address.replace("127.0.0.1", "localhost"), TOKEN, ca_file=str(tmp_path / "ca")
            )
            ca.cert_pem.write_to_path(tmp_path / "ca")
            with pytest.raises(MetricsError, match="Hostname mismatch"):
                elsewhere.get("/")
            assert server.seen == []

    def test_it_is_trusted_if_its_authority_is_or_if_it_needn_t_be_checked(
        self, ca: trustme.CA, tls: ssl.SSLContext, tmp_path: Path
    ) -> None:
        ca.cert_pem.write_to_path(tmp_path / "ca")
        with serving(answering(OK + b"Content-Length: 2\r\n\r\n[]"), tls) as server:
            assert Endpoint(server.address, ca_file=str(tmp_path / "ca")).get("/") == []
            assert Endpoint(server.address, insecure_skip_verify=True).get("/") == []

    def test_an_answer_that_trickles_in_is_late_here_too(self, tls: ssl.SSLContext) -> None:
        def talk(connection: socket.socket, path: str) -> None:
            server.drip(connection, b"X")

        with serving(talk, tls) as server:
            endpoint = Endpoint(server.address, insecure_skip_verify=True, timeout=TIMEOUT)
            with pytest.raises(MetricsError, match=f"no answer within {TIMEOUT} s"):
                endpoint.get("/")

    def test_a_server_that_speaks_something_else_is_an_error_of_the_same_kind(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as plain:

            def greet() -> None:
                connection, _ = plain.accept()
                with connection:
                    connection.sendall(b"220 mail.example ESMTP\r\n" * 10)
                    connection.recv(10)

            thread = threading.Thread(target=greet, daemon=True)
            thread.start()
            with pytest.raises(MetricsError, match="SSL"):
                Endpoint(f"https://127.0.0.1:{plain.getsockname()[1]}", timeout=PATIENCE).get("/")
            thread.join()


@pytest.mark.parametrize(
    ("content", "text"),
    [(None, "No such file or directory"), ("nonsense", "NO_CERTIFICATE|no certificate|PEM")],
)
def test_certificates_that_cant_be_used_are_named(content: str | None, text: str, tmp_path: Path) -> None:
    file = tmp_path / "ca.crt"
    if content is not None:
        file.write_text(content)
    with pytest.raises(MetricsError, match=rf"{file}: .*({text})"):
        Endpoint("https://127.0.0.1:9", ca_file=str(file)).get("/")
