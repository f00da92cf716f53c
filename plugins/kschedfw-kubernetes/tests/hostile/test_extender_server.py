"""Clients that mean harm, or are broken: all others are served, memory stays, and the server ends when told to."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import pytest
import trustme
from kschedfw_apiserver.forked import ForkedProcess, running_forked
from kschedfw_kubernetes.extender_server import ExtenderApp, ServerLimits
from one_line_plugins import plugin

from kschedfw import make_node
from kschedfw.cluster import InMemoryCluster
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.profile import Profile
from kschedfw.framework.runtime.registry import Registry
from kschedfw.framework.status import Status

pytest.importorskip("uvicorn")

from kschedfw_kubernetes.web import http_server  # needs uvicorn

from kschedfw.testing.waiting import PATIENCE, eventually

pytestmark = pytest.mark.slow

POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
NAMES = [f"n{i}" for i in range(50)]
BODY = json.dumps({"Pod": POD, "NodeNames": NAMES}).encode()
WHOLE = json.dumps({"Pod": POD, "Nodes": {"items": [{"metadata": {"name": n}} for n in NAMES]}}).encode()
HEAD = b"POST /filter HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"


@attrs.define(slots=False)
class Slow:
    """A filter that waits at its first node until it may go on; `asked` are the nodes it was asked about."""

    may_go_on: threading.Event = attrs.field(factory=threading.Event)
    begun: threading.Event = attrs.field(factory=threading.Event)
    asked: list[str] = attrs.field(factory=list)

    def filter(self, node_info: NodeInfo) -> Status | None:
        self.asked.append(node_info.name)
        self.begun.set()
        assert self.may_go_on.wait(PATIENCE)
        return None


@attrs.frozen
class Served:
    address: tuple[str, int]
    app: ExtenderApp

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=PATIENCE)

    def ask(self, body: bytes = BODY, path: str = "/filter", **headers: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection(*self.address, timeout=PATIENCE)
        connection.request("POST", path, body, headers={"Connection": "close", **headers})
        return connection.getresponse()

    def begin(self, body: bytes = BODY) -> socket.socket:
        """A connection with a whole request on it."""
        connection = self.connect()
        connection.sendall(HEAD % len(body) + body)
        return connection


@contextmanager
def served(slow: Slow | None = None, *, parallelism: int = 1, **settings: Any) -> Iterator[Served]:
    """The application behind the command's own server, in a thread."""
    registry = Registry()
    first = Slow() if slow is None else slow
    if slow is None:
        first.may_go_on.set()

    def hook(node_info: NodeInfo) -> Status | None:
        return first.filter(node_info)

    registry.register(plugin("Slow", filter=hook))
    cluster = InMemoryCluster(make_node(name).build() for name in NAMES)
    app = ExtenderApp(
        Profile(["Slow", "NodeUnschedulable"]),
        registry=registry,
        cluster=cluster,
        parallelism=parallelism,
        **settings,
    )
    ready = threading.Event()
    listening = http_server.listen("127.0.0.1", 0)
    address = listening.getsockname()[:2]
    server = http_server.Server(http_server.configured(app), ready.set)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        assert ready.wait(PATIENCE)
        yield Served(address, app)
    finally:
        first.may_go_on.set()
        server.should_exit = True
        thread.join(PATIENCE)
        assert not thread.is_alive()


def is_closed(connection: socket.socket) -> bool:
    """Whether the other side has closed it; waits for that, and reads what comes before."""
    try:
        while connection.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def test_small_answers_do_not_wait_for_acknowledgements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nagle's algorithm and delayed acknowledgements together take 40 ms for each request on a connection."""
    set_options: list[tuple[object, ...]] = []

    def note(connection: socket.socket, *option: Any) -> None:
        set_options.append((connection.getsockname(), *option))
        socket.SocketType.setsockopt(connection, *option)

    monkeypatch.setattr(socket.socket, "setsockopt", note)
    with served() as server:
        assert server.ask().read()
    assert (server.address, socket.IPPROTO_TCP, socket.TCP_NODELAY, True) in set_options


class TestWaitingWork:
    def test_too_much_is_refused(self) -> None:
        slow = Slow()
        with served(slow, limits=ServerLimits(waiting=2)) as server, ExitStack() as stack:
            waiting = [stack.enter_context(server.begin()) for _ in range(2)]
            assert slow.begun.wait(PATIENCE)
            eventually(lambda: len(server.app._works) == 2)
            refused = server.ask()
            assert (refused.status, refused.getheader("Retry-After")) == (503, "1")
            assert refused.read() == b"there are too many requests\n"
            slow.may_go_on.set()
            for connection in waiting:
                assert connection.recv(12) == b"HTTP/1.1 200"
            assert server.ask().status == 200

    def test_nobody_works_for_who_has_left(self) -> None:
        slow = Slow()
        with served(slow) as server:
            leaving = [server.begin() for _ in range(5)]
            assert slow.begun.wait(PATIENCE)
            eventually(lambda: len(server.app._works) == 5)
            for connection in leaving:
                connection.close()
            eventually(lambda: len(server.app._works) == 1)  # those that hadn't begun are gone at once
            slow.may_go_on.set()
            eventually(lambda: not server.app._works)
            assert len(slow.asked) == 1, "the one that had begun is given up at the next node"

    @pytest.mark.parametrize("body", [BODY, WHOLE])
    @pytest.mark.parametrize("parallelism", [1, 4])
    def test_work_that_was_given_up_leaves_nothing_behind(self, body: bytes, parallelism: int) -> None:
        slow = Slow()
        with served(slow, parallelism=parallelism) as server:
            with server.begin(body):
                assert slow.begun.wait(PATIENCE)
            slow.may_go_on.set()
            eventually(lambda: not server.app._works)
            answer = json.loads(server.ask(body).read())
            again = json.loads(server.ask(body).read())
        assert answer == again
        assert len(answer["NodeNames"] or answer["Nodes"]["items"]) == len(NAMES)

    def test_an_answer_has_a_time(self) -> None:
        slow = Slow()
        with served(slow, limits=ServerLimits(answer_seconds=0.2)) as server:
            late = server.ask()
            assert (late.status, late.read()) == (503, b"there was no answer within 0.2 s\n")

    @pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), MemoryError()])
    def test_a_plugin_that_wants_to_end_it(
        self, error: BaseException, caplog: pytest.LogCaptureFixture
    ) -> None:
        def failing(node_info: NodeInfo) -> Status | None:
            raise error

        slow = Slow()
        slow.filter = failing  # type: ignore[method-assign]
        with served(slow) as server:
            refused = server.ask()
            failed = refused.status == 500 or json.loads(refused.read())["Error"]
            assert failed
            assert http_get(server, "/healthz") == 200


def http_get(server: Served, path: str) -> int:
    connection = http.client.HTTPConnection(*server.address, timeout=PATIENCE)
    connection.request("GET", path, headers={"Connection": "close"})
    return connection.getresponse().status


class TestReading:
    def test_half_a_body(self) -> None:
        with served(limits=ServerLimits(read_seconds=0.2)) as server, server.connect() as connection:
            connection.sendall(HEAD % 1000 + b"{")
            assert connection.recv(12) == b"HTTP/1.1 408"
            assert is_closed(connection)

    def test_a_body_in_drops(self) -> None:
        with served(limits=ServerLimits(read_seconds=0.5)) as server, server.connect() as connection:
            connection.sendall(HEAD % 1000)
            connection.settimeout(0.05)
            for _ in range(100):
                connection.sendall(b" ")
                try:
                    assert connection.recv(12) == b"HTTP/1.1 408"
                    break
                except TimeoutError:
                    pass
            else:
                pytest.fail("it went on reading")

    @pytest.mark.parametrize(
        "sent", [b"", b"POST /filter HTTP/1.1\r\nHost: local", b"GET /healthz HTTP/1.1\r\nX: "]
    )
    def test_half_a_head(self, sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(http_server, "HEADER_SECONDS", 0.2)
        with served() as server, server.connect() as connection:
            connection.sendall(sent)
            assert is_closed(connection)

    def test_half_a_head_after_a_whole_request(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(http_server, "HEADER_SECONDS", 0.2)
        with served() as server, server.begin() as connection:
            assert connection.recv(12) == b"HTTP/1.1 200"
            connection.sendall(b"POST /filter HTTP/1.1\r\n")
            assert is_closed(connection)

    def test_headers_without_end(self) -> None:
        with served() as server, server.connect() as connection:
            flood = b"POST /filter HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * (64 << 20)
            with pytest.raises((ConnectionError, BrokenPipeError)):
                connection.sendall(flood)

    def test_all_bodies_together(self) -> None:
        """Half-sent ones count, and a small one is served again when they are gone."""
        limits = ServerLimits(body_bytes=1_000_000)
        with served(limits=limits) as server, ExitStack() as stack:
            for _ in range(4):
                connection = stack.enter_context(server.connect())
                connection.sendall(HEAD % 900_000 + b" " * 600_000)
            eventually(lambda: server.app._memory.used > 1_700_000)
            refused = server.ask(b" " * 900_000)
            assert (refused.status, refused.getheader("Retry-After")) == (503, "1")
            stack.close()
            eventually(lambda: server.app._memory.used == 0)
            assert server.ask().status == 200

    @pytest.mark.parametrize("values", [b"[],", b"[[[[[[]]]]]],", b'{"":{}},'])
    def test_values_that_are_small_only_as_text(self, values: bytes) -> None:
        body = b'{"Pod":{"x":[' + values * (900_000 // len(values)) + b"[]]}}"
        with served(limits=ServerLimits(body_bytes=1 << 20)) as server:
            refused = server.ask(body)
            assert (refused.status, refused.read()) == (413, b"the body has too many values\n")

    @pytest.mark.parametrize("body", [BODY, WHOLE])
    def test_more_nodes_than_any_cluster_has(self, body: bytes) -> None:
        with served(limits=ServerLimits(nodes=49)) as server:
            refused = server.ask(body)
            assert (refused.status, refused.read()) == (
                400,
                b"there are 50 nodes; at most 49 may be asked about\n",
            )


class TestHost:
    """A page whose name suddenly means this machine must not get a browser to ask it."""

    @pytest.mark.parametrize(
        ("host", "status"),
        [
            ("127.0.0.1:8888", 200),
            ("localhost", 200),
            ("LocalHost.:80", 200),
            ("[::1]:8888", 200),
            ("extender.kube-system.svc:8888", 200),
            ("evil.example", 421),
            ("127.0.0.1.evil.example", 421),
            ("localhost.evil.example:8888", 421),
            ("", 421),
        ],
    )
    def test_which_are_allowed(self, host: str, status: int) -> None:
        with served(allowed_hosts=["extender.kube-system.svc"]) as server:
            assert server.ask(Host=host).status == status

    def test_all_are(self) -> None:
        with served(allowed_hosts=["*"]) as server:
            assert server.ask(Host="any.example").status == 200


def test_the_same_nodes_are_decoded_once_and_not_for_ever() -> None:
    """By uid, to the byte, and within a limit on all of them."""
    with served() as server:
        sent = server.app._evaluator._sent
        sent._max_bytes = 20_000

        def ask(unschedulable: bool, first: int) -> list[str]:
            items = [
                {
                    "metadata": {"name": f"n{i}", "uid": f"u{i}", "resourceVersion": "1"},
                    "spec": {"unschedulable": unschedulable},
                }
                for i in range(first, first + 50)
            ]
            answer = server.ask(json.dumps({"Pod": POD, "Nodes": {"items": items}}).encode())
            return [item["metadata"]["name"] for item in json.loads(answer.read())["Nodes"]["items"]]

        assert len(ask(False, 0)) == 50
        kept = dict(sent._kept)
        assert len(ask(False, 0)) == 50
        assert all(sent._kept[uid] is known for uid, known in kept.items())
        assert ask(True, 0) == [], "what was sent counts, whatever its resourceVersion says"
        for first in range(0, 2000, 50):
            ask(False, first)
        assert sent._bytes <= 20_000
        assert sum(len(known.text) for known in sent._kept.values()) == sent._bytes


# The command as a process

SHORT = "import kschedfw_kubernetes.web.http_server as h; h.GRACE_SECONDS, h.LAST_SECONDS = 0.5, 0.5;"
RUN = "from kschedfw.cli import main; main()"


@contextmanager
def process(*arguments: object, before: str = "") -> Iterator[tuple[ForkedProcess, tuple[str, int]]]:
    command = ["serve-extender", "--plugin", "NodeName", "--port", "0", *map(str, arguments)]
    with running_forked("-c", SHORT + before + RUN, *command) as started:
        assert started.stderr is not None
        line = started.stderr.readline()
        found = re.search(r"extender at https?://([\d.]+):(\d+);", line)
        assert found, line
        yield started, (found[1], int(found[2]))


def ended(started: ForkedProcess) -> tuple[int, str]:
    """Exit code and what it still said."""
    _, said = started.communicate()
    return started.wait(), said


def wait_for_the_plugin(started: ForkedProcess) -> None:
    assert started.stdout is not None
    assert started.stdout.readline() == "at work\n"


def listens(address: tuple[str, int]) -> bool:
    with suppress(ConnectionRefusedError), socket.create_connection(address):
        return True
    return False


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("certificates")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(directory / "ca.pem")
    for name in ("server", "client"):
        certificate = authority.issue_cert("127.0.0.1")
        certificate.cert_chain_pems[0].write_to_path(directory / f"{name}.pem")
        certificate.private_key_pem.write_to_path(directory / f"{name}-key.pem")
    stranger = trustme.CA().issue_cert("127.0.0.1")
    stranger.private_key_and_cert_chain_pem.write_to_path(directory / "stranger.pem")
    return directory


class TestEnd:
    """By a signal: in time, whatever clients and plugins do, without a word too many."""

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_in_spite_of_half_sent_requests(self, number: signal.Signals) -> None:
        with process() as (started, address), ExitStack() as stack:
            for sent in (b"", b"POST /fil", HEAD % 1000 + b"{", HEAD % len(BODY) + BODY):
                connection = stack.enter_context(socket.create_connection(address))
                connection.sendall(sent)
            assert connection.recv(12) == b"HTTP/1.1 400", "without a cluster"
            started.send_signal(number)
            assert ended(started) == (0, "")

    def test_answers_on_their_way_arrive(self) -> None:
        """A large one, whose client takes its time."""
        nodes = [{"metadata": {"name": f"n{i}", "annotations": {"a": "x" * 5000}}} for i in range(2000)]
        body = json.dumps({"Pod": POD, "Nodes": {"items": nodes}}).encode()
        with (
            process(before="h.GRACE_SECONDS = 10;") as (started, address),
            socket.create_connection(address) as connection,
        ):
            connection.sendall(HEAD % len(body) + body)
            received = connection.recv(1000)
            started.terminate()
            time.sleep(0.3)
            while piece := connection.recv(1 << 20):
                received += piece
            assert ended(started) == (0, "")
        assert received.endswith(b',"Error":""}')

    def test_in_spite_of_idle_tls_connections(self, certificates: Path) -> None:
        options = ("--tls-cert", certificates / "server.pem", "--tls-key", certificates / "server-key.pem")
        context = ssl.create_default_context(cafile=str(certificates / "ca.pem"))
        with process(*options) as (started, address), ExitStack() as stack:
            for _ in range(3):
                raw = stack.enter_context(socket.create_connection(address))
                secure = stack.enter_context(context.wrap_socket(raw, server_hostname="127.0.0.1"))
                secure.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                assert secure.recv(12) == b"HTTP/1.1 200"
            started.terminate()
            assert ended(started) == (0, "")

    def test_in_spite_of_a_refused_request_over_tls(self, certificates: Path) -> None:
        """Its client neither sends the rest nor says goodbye, so the connection is still being closed."""
        options = ("--tls-cert", certificates / "server.pem", "--tls-key", certificates / "server-key.pem")
        context = ssl.create_default_context(cafile=str(certificates / "ca.pem"))
        with (
            process(*options) as (started, address),
            socket.create_connection(address) as raw,
            context.wrap_socket(raw, server_hostname="127.0.0.1") as secure,
        ):
            secure.sendall(HEAD % (1 << 40) + b"{")
            assert secure.recv(12) == b"HTTP/1.1 413"
            started.terminate()
            assert ended(started) == (0, "")

    STUCK = (
        "import time; from kschedfw.plugins.node_name import NodeName;"
        "from kschedfw.framework.plugin import hookimpl;"
        "NodeName.pre_filter = hookimpl(lambda self, pod: print('at work', flush=True) or time.sleep(600));"
    )

    def test_in_spite_of_a_plugin_that_does_not(self) -> None:
        with (
            process(before=self.STUCK) as (started, address),
            socket.create_connection(address) as connection,
        ):
            connection.sendall(HEAD % len(WHOLE) + WHOLE)
            wait_for_the_plugin(started)
            started.terminate()
            said = "kschedfw: a plugin is still at work; ended all the same\n"
            assert ended(started) == (0, said)

    def test_at_once_by_a_second_signal(self) -> None:
        with (
            process(before=self.STUCK) as (started, address),
            socket.create_connection(address) as connection,
        ):
            connection.sendall(HEAD % len(WHOLE) + WHOLE)
            wait_for_the_plugin(started)
            started.terminate()
            eventually(lambda: not listens(address))
            started.send_signal(signal.SIGINT)
            assert ended(started) == (130, "")


def test_clients_without_a_certificate_are_not_answered(certificates: Path) -> None:
    options = (
        *("--tls-cert", certificates / "server.pem", "--tls-key", certificates / "server-key.pem"),
        *("--tls-client-ca", certificates / "ca.pem"),
    )

    def ask(address: tuple[str, int], *certificate: Path) -> bytes:
        context = ssl.create_default_context(cafile=str(certificates / "ca.pem"))
        if certificate:
            context.load_cert_chain(*map(str, certificate))
        with (
            socket.create_connection(address) as raw,
            context.wrap_socket(raw, server_hostname="127.0.0.1") as secure,
        ):
            secure.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            return secure.recv(12)

    with process(*options) as (_, address):
        assert ask(address, certificates / "client.pem", certificates / "client-key.pem") == b"HTTP/1.1 200"
        for others in ((), (certificates / "stranger.pem",)):
            with suppress(ssl.SSLError, ConnectionError):
                assert ask(address, *others) == b""
