"""Requests over kept connections: reuse, deadlines, limits, and answers that break off."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme
from cluster.raw_server import Answer, RawServer, reply, serving
from cluster.streams import chunks
from kschedfw_kubernetes.cluster.credentials import Credentials, Identity
from kschedfw_kubernetes.cluster.dialer import Dialer
from kschedfw_kubernetes.cluster.errors import ConnectionConfigError, FencedError, UnavailableError
from kschedfw_kubernetes.cluster.kubeconfig import ClusterSection, ConnectionConfig, UserSection
from kschedfw_kubernetes.cluster.transport import Reply, Request, Transport, TransportLimits
from kschedfw_kubernetes.http.connections import Connection

from kschedfw.framework.clock import Clock, SystemClock
from kschedfw.testing.waiting import PATIENCE, eventually

GET = Request("GET", "/api")
POST = Request("POST", "/api", b"{}")


def transport_to(
    server: str,
    user: UserSection | None = None,
    limits: TransportLimits | None = None,
    clock: Clock | None = None,
    **cluster: object,
) -> Transport:
    section = ClusterSection(server=server, **cluster)  # type: ignore[arg-type]
    config = ConnectionConfig(section, user or UserSection(), source="config")
    clock = clock or SystemClock()
    return Transport(config, Credentials(config, clock, {}), clock, "test", limits or TransportLimits())


@contextmanager
def talking(answer: Answer, limits: TransportLimits | None = None) -> Iterator[tuple[RawServer, Transport]]:
    with serving(answer) as server:
        transport = transport_to(f"http://127.0.0.1:{server.port}", limits=limits)
        try:
            yield server, transport
        finally:
            transport.close()


def test_a_connection_is_used_again() -> None:
    with talking(lambda connection, _: connection.sendall(reply(b'{"a":1}'))) as (server, transport):
        assert [transport.request(POST).body for _ in range(3)] == [b'{"a":1}'] * 3
        assert server.connections == 1
        assert server.requests[0].startswith(b"POST /api HTTP/1.1\r\nHost: 127.0.0.1:")


def test_a_connection_that_was_closed_while_idle_isnt_used_again() -> None:
    def answer(connection: socket.socket, _head: bytes) -> None:
        connection.sendall(reply())
        connection.shutdown(socket.SHUT_RDWR)

    with talking(answer) as (server, transport):
        for _ in range(2):
            assert transport.request(POST).status == 200
            time.sleep(1.1)
        assert server.connections == 2


def test_idle_connections_that_others_have_made_superfluous_are_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kschedfw_kubernetes.cluster.transport._LONGEST_REST", 0.3)
    together = threading.Barrier(4)

    def answer(connection: socket.socket, head: bytes) -> None:
        if b"/together" in head:
            together.wait(PATIENCE)
        connection.sendall(reply())

    with talking(answer) as (server, transport):
        threads = [
            threading.Thread(target=transport.request, args=(Request("GET", "/together"),)) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert len(transport._idle) == server.connections == 4
        time.sleep(0.35)
        for left in (3, 2, 1, 1):
            transport.request(GET)
            assert len(transport._idle) == left
        assert server.connections == 4


def test_a_stream_takes_an_idle_connection() -> None:
    def answer(connection: socket.socket, head: bytes) -> None:
        stream = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n"
        connection.sendall(stream if b"/watch" in head else reply())

    with talking(answer) as (server, transport):
        transport.request(GET)
        stream = transport.stream("/watch")
        assert not isinstance(stream, Reply)
        assert server.connections == 1
        # The stream keeps its connection, so a request needs another one.
        transport.request(GET)
        assert server.connections == 2
        assert list(chunks(stream)) == [b"one"]


def test_requests_take_what_becomes_idle_while_others_wait_for_new_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dial, permits, begun, answered = Dialer.dial, threading.Semaphore(0), [], []

    def dial_when_permitted(self: Dialer, identity: Identity, timeout: float) -> Connection:
        begun.append(identity)
        permits.acquire()
        return dial(self, identity, timeout)

    monkeypatch.setattr(Dialer, "dial", dial_when_permitted)
    monkeypatch.setattr("kschedfw_kubernetes.cluster.transport._PATIENCE", 60.0)
    with talking(lambda connection, _: connection.sendall(reply())) as (server, transport):
        threads = [
            threading.Thread(target=lambda: answered.append(transport.request(GET)), daemon=True)
            for _ in range(20)
        ]
        for thread in threads:
            thread.start()
        eventually(lambda: len(begun) == 4)
        permits.release()
        eventually(lambda: len(answered) >= 16)  # at most four have begun to make connections of their own
        assert server.connections == 1
        assert len(begun) <= 5
        permits.release(20)
        for thread in threads:
            thread.join(PATIENCE)
        assert len(answered) == 20


def test_a_request_doesnt_wait_long_behind_others_that_make_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, ended = [], threading.Event()

    def dial(_self: Dialer, identity: Identity, _timeout: float) -> Connection:
        begun.append(identity)
        ended.wait(PATIENCE)
        raise UnavailableError("ended")

    def ask(transport: Transport) -> None:
        with contextlib.suppress(UnavailableError):
            transport.request(GET)

    monkeypatch.setattr(Dialer, "dial", dial)
    transport = transport_to("http://127.0.0.1:1")
    for _ in range(5):
        threading.Thread(target=ask, args=(transport,), daemon=True).start()
    eventually(lambda: len(begun) == 5)
    ended.set()
    transport.close()


def test_requests_in_a_pipeline_are_sent_together_and_answered_in_order() -> None:
    received: list[bytes] = []

    def answer(connection: socket.socket, head: bytes) -> None:
        received.append(head.split()[1])
        if len(received) == 5:  # the server has all of them before it answers any
            connection.sendall(b"".join(reply(target) for target in received))

    with talking(answer) as (server, transport):
        requests = [Request("POST", f"/{number}", b"{}") for number in range(5)]
        replies = transport.pipeline(requests)
        assert [each.body for each in replies if isinstance(each, Reply)] == [
            b"/0",
            b"/1",
            b"/2",
            b"/3",
            b"/4",
        ]
        received.clear()
        transport.pipeline(requests)
        assert server.connections == 1


class PatientClock(SystemClock):
    """A clock whose waits last until an event: the first until there is a read, the second from then on."""

    def __init__(self, events: tuple[threading.Event, threading.Event], reads: list[bytes]) -> None:
        self._events, self._reads = events, reads

    def wait_until(self, condition: threading.Condition, deadline: float) -> None:
        assert self._events[bool(self._reads)].wait(PATIENCE)
        super().wait_until(condition, deadline)


def test_answers_that_gather_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[bytes] = []
    receive_all = Connection.receive_all

    def noted(connection: Connection) -> bytes:
        reads.append(receive_all(connection))
        return reads[-1]

    monkeypatch.setattr(Connection, "receive_all", noted)
    part, rest = threading.Event(), threading.Event()

    def answer(connection: socket.socket, head: bytes) -> None:
        target = head.split()[1]
        whole = reply(target)
        if target != b"/1":
            connection.sendall(whole)
            if target == b"/3":
                rest.set()
            return
        # The answer in the middle arrives in two reads.
        connection.sendall(whole[:-1])
        part.set()
        eventually(lambda: reads)
        connection.sendall(whole[-1:])

    with serving(answer) as server:
        transport = transport_to(f"http://127.0.0.1:{server.port}", clock=PatientClock((part, rest), reads))
        requests = [Request("POST", f"/{number}", b"{}") for number in range(4)]
        replies = transport.pipeline(requests, gathering=0.001)
        transport.close()
    assert [each.body for each in replies if isinstance(each, Reply)] == [b"/0", b"/1", b"/2", b"/3"]
    assert reads[0] == (reply(b"/0") + reply(b"/1"))[:-1]
    assert len(reads) == 2


@pytest.mark.parametrize("answered", [0, 1, 3])
@pytest.mark.parametrize("how", ["says so", "just closes"])
def test_requests_that_a_peer_leaves_unanswered_have_an_error_and_may_have_been_made(
    answered: int, how: str
) -> None:
    count = 0

    def answer(connection: socket.socket, _head: bytes) -> None:
        nonlocal count
        count += 1
        if count <= answered:
            last = count == answered
            connection.sendall(reply(headers="Connection: close\r\n" if last and how == "says so" else ""))
        if count >= answered:
            connection.shutdown(socket.SHUT_RDWR)

    with talking(answer) as (_, transport):
        replies = transport.pipeline([POST] * 5)
        assert [isinstance(each, Reply) for each in replies] == [True] * answered + [False] * (5 - answered)
        assert all(each.uncertain for each in replies if isinstance(each, UnavailableError))


def test_requests_of_a_pipeline_that_a_token_is_refused_for_are_sent_again_with_another(
    tmp_path: Path,
) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    done: list[bytes] = []

    def answer(connection: socket.socket, head: bytes) -> None:
        # The token ends after two requests.
        ok = b"Bearer new" in head or len(done) < 2
        if ok:
            done.append(head.split()[1])
        token.write_text("new")
        connection.sendall(reply() if ok else reply(status="401 Unauthorized"))

    with serving(answer) as server:
        transport = transport_to(f"http://127.0.0.1:{server.port}", UserSection(token_file=str(token)))
        replies = transport.pipeline([Request("POST", f"/{number}", b"{}") for number in range(4)])
        assert [each.status for each in replies if isinstance(each, Reply)] == [200] * 4
        assert done == [b"/0", b"/1", b"/2", b"/3"]
        transport.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nhalf",
        b"garbage\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_an_answer_that_breaks_off_leaves_open_whether_the_write_was_made(sent: bytes) -> None:
    def answer(connection: socket.socket, _head: bytes) -> None:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_RDWR)

    with talking(answer) as (_, transport):
        with pytest.raises(UnavailableError) as caught:
            transport.request(POST)
        assert caught.value.uncertain
        with pytest.raises(UnavailableError) as caught:
            transport.request(GET)
        assert not caught.value.uncertain


def test_an_answer_that_trickles_in_ends_at_its_deadline() -> None:
    def answer(connection: socket.socket, _head: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        for number in range(1000):
            connection.sendall(f"X-{number}: a\r\n".encode())
            time.sleep(0.01)

    # Otherwise it would be told at the end that the answer breaks off.
    with (
        talking(answer, TransportLimits(request=0.2)) as (_, transport),
        pytest.raises(UnavailableError, match="timed out"),
    ):
        transport.request(GET)


def test_an_answer_has_a_largest_size() -> None:
    limits = TransportLimits(response=100)
    with (
        talking(lambda connection, _: connection.sendall(reply(b"x" * 101)), limits) as (_, transport),
        pytest.raises(UnavailableError, match="more than 100 bytes"),
    ):
        transport.request(GET)


def test_a_server_that_isnt_there_leaves_nothing_open() -> None:
    transport = transport_to("http://127.0.0.1:1")
    with pytest.raises(UnavailableError, match=r"http://127\.0\.0\.1:1: can't connect") as caught:
        transport.request(POST)
    assert not caught.value.uncertain


def test_what_is_held_back_at_the_last_moment_isnt_sent() -> None:
    def hold_back() -> None:
        raise FencedError("no")

    with talking(lambda connection, _: connection.sendall(reply())) as (server, transport):
        with pytest.raises(FencedError):
            transport.request(POST, before_send=hold_back)
        transport.request(GET)
        assert [head.split()[0] for head in server.requests] == [b"GET"]


def test_a_stream_is_told_as_it_comes_and_ends_with_its_connection() -> None:
    def answer(connection: socket.socket, _head: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for line in (b"one\n", b"two\n"):
            connection.sendall(b"%x\r\n%s\r\n" % (len(line), line))
            time.sleep(0.02)
        connection.shutdown(socket.SHUT_RDWR)

    with talking(answer) as (_, transport):
        stream = transport.stream("/watch")
        assert not isinstance(stream, Reply)
        coming = chunks(stream)
        assert [next(coming), next(coming)] == [b"one\n", b"two\n"]
        with pytest.raises(UnavailableError):
            next(coming)


def test_whatever_has_arrived_of_a_stream_is_read_at_once(tmp_path: Path) -> None:
    sent = threading.Event()

    def answer(connection: socket.socket, _head: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for number in range(100):  # each is a record of TLS
            connection.sendall(b"2\r\n%02d\r\n" % number)
        sent.set()
        time.sleep(0.05)
        connection.sendall(b"3\r\nend\r\n0\r\n\r\n")

    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with serving(answer, context) as server:
        transport = transport_to(
            f"https://127.0.0.1:{server.port}", certificate_authority=str(tmp_path / "ca")
        )
        stream = transport.stream("/watch")
        assert not isinstance(stream, Reply)
        assert sent.wait(PATIENCE)
        arrived = list(chunks(stream))
        assert b"".join(arrived) == b"".join(b"%02d" % number for number in range(100)) + b"end"
        # What came with the head, all that has arrived since, and the end.
        assert len(arrived) <= 3
        transport.close()


def test_a_stream_in_which_nothing_comes_is_given_up() -> None:
    def answer(connection: socket.socket, _head: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        time.sleep(5)

    with talking(answer, TransportLimits(quiet=0.1)) as (_, transport):
        stream = transport.stream("/watch")
        assert not isinstance(stream, Reply)
        with pytest.raises(UnavailableError, match="timed out"):
            list(chunks(stream))


def test_close_ends_a_stream_that_another_thread_reads() -> None:
    def answer(connection: socket.socket, _head: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")

    with talking(answer) as (_, transport):
        stream = transport.stream("/watch")
        assert not isinstance(stream, Reply)
        ended = threading.Event()

        def read() -> None:
            with pytest.raises(UnavailableError):
                list(chunks(stream))
            ended.set()

        threading.Thread(target=read, daemon=True).start()
        time.sleep(0.05)
        transport.close()
        assert ended.wait(PATIENCE)


def test_a_refused_token_is_read_again_once(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")

    def answer(connection: socket.socket, head: bytes) -> None:
        ok = b"Authorization: Bearer new" in head
        token.write_text("new")
        connection.sendall(reply() if ok else reply(status="401 Unauthorized"))

    with serving(answer) as server:
        transport = transport_to(f"http://127.0.0.1:{server.port}", UserSection(token_file=str(token)))
        assert transport.request(GET).status == 200
        assert len(server.requests) == 2
        transport.close()


def test_a_certificate_is_checked_against_the_authority_and_the_name(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("api.example.com").configure_cert(context)
    with serving(lambda connection, _: connection.sendall(reply()), context) as server:
        address, ca = f"https://127.0.0.1:{server.port}", str(tmp_path / "ca")
        named = transport_to(address, certificate_authority=ca, tls_server_name="api.example.com")
        assert named.request(GET).status == 200
        named.close()
        with pytest.raises(UnavailableError, match=r"its certificate isn't accepted: .*IP address mismatch"):
            transport_to(address, certificate_authority=ca).request(GET)
        with pytest.raises(UnavailableError, match="its certificate isn't accepted"):
            transport_to(address, tls_server_name="api.example.com").request(GET)
        unchecked = transport_to(address, insecure_skip_tls_verify=True)
        assert unchecked.request(GET).status == 200
        unchecked.close()


def test_requests_go_through_the_proxy_that_the_kubeconfig_names() -> None:
    def answer(connection: socket.socket, head: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" if head.startswith(b"CONNECT") else reply(b"{1}"))

    with serving(answer) as proxy:
        transport = transport_to("http://api.invalid:80", proxy_url=f"http://u:p@127.0.0.1:{proxy.port}")
        assert transport.request(GET).body == b"{1}"
        assert proxy.requests[0].startswith(b"CONNECT api.invalid:80")
        assert b"Proxy-Authorization: Basic dTpw" in proxy.requests[0]
        transport.close()
    with pytest.raises(ConnectionConfigError, match="a proxy has to be an HTTP one"):
        transport_to("https://api.invalid", proxy_url="socks5://127.0.0.1:1")
