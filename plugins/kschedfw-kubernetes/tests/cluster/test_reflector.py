"""When a kind is asked for again: after errors, after short watches, and when the server has fallen silent."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

import pytest
from cluster.raw_server import reply, serving
from kschedfw_apiserver import ApiServer
from kschedfw_kubernetes.cluster import Client, KubernetesCluster, connect
from kschedfw_kubernetes.cluster.reflector import Changes, Reflector
from kschedfw_kubernetes.cluster.transport import DEFAULT_TRANSPORT_LIMITS, TransportLimits
from kschedfw_kubernetes.cluster.watches import Watches

from kschedfw import make_node
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.framework.clock import Clock, SystemClock, VirtualClock
from kschedfw.testing.waiting import PATIENCE, eventually

pytestmark = pytest.mark.slow

LIST = reply(json.dumps({"metadata": {"resourceVersion": "7"}, "items": []}).encode())
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
GONE = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}

TOO_LARGE = {
    "kind": "Status",
    "code": 504,
    "reason": "Timeout",
    "message": "Timeout: Too large resource version: 9, current: 7",
}


def event(type: str, content: object) -> bytes:
    line = json.dumps({"type": type, "object": content}).encode() + b"\n"
    return b"%x\r\n%s\r\n" % (len(line), line)


BOOKMARK = event("BOOKMARK", {"metadata": {"resourceVersion": "7"}})


@contextmanager
def following(client: Client, clock: Clock) -> Iterator[Reflector]:
    def apply(changes: Changes) -> None:
        list(changes(reflector.store))

    reflector = Reflector(client, Node, apply, Random(1), clock, Watches(clock))
    reflector.start()
    try:
        yield reflector
    finally:
        reflector.stop()
        reflector.join(PATIENCE)


def watches(answers: Callable[[int], bytes], count: int, clock: VirtualClock) -> Sequence[float]:
    """The times of this many watches; `answers` gives what the one of that number is answered."""
    begun: list[float] = []

    def answer(connection: socket.socket, head: bytes) -> None:
        if b"watch=1" not in head:
            connection.sendall(LIST)
            return
        begun.append(clock.monotonic())
        connection.sendall(answers(len(begun)))

    with (
        serving(answer) as server,
        connect(master=f"http://127.0.0.1:{server.port}", qps=-1) as client,
        following(client, clock),
    ):
        eventually(lambda: len(begun) >= count)
    return begun[:count]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(reply(json.dumps(GONE).encode(), "410 Gone"), id="refused as too old"),
        pytest.param(HEAD + event("ERROR", GONE) + END, id="too old"),
        pytest.param(HEAD + END, id="empty"),
        pytest.param(reply(b"{}", "500 Internal Server Error"), id="error"),
    ],
)
def test_watches_that_fail_or_tell_nothing_are_further_and_further_apart(answer: bytes) -> None:
    begun = watches(lambda _: answer, 9, VirtualClock())
    gaps = [after - before for before, after in pairwise(begun)]
    least = [min(0.8 * 2**number, 30.0) for number in range(len(gaps))]
    assert all(low <= gap <= 2 * low for low, gap in zip(least, gaps, strict=True)), gaps
    assert len({gap / low for low, gap in zip(least, gaps, strict=True)}) > 1, "by chance"


def test_watch_begins_again_after_the_pause_that_a_busy_server_asks_for() -> None:
    busy = reply(b"{}", "504 Gateway Timeout", "Retry-After: 1\r\n")
    begun = watches(lambda _: busy, 9, VirtualClock())
    assert [after - before for before, after in pairwise(begun)] == [1.0] * 8


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(
            reply(json.dumps(TOO_LARGE).encode(), "504 Gateway Timeout", "Retry-After: 1\r\n"), id="refused"
        ),
        pytest.param(HEAD + event("ERROR", TOO_LARGE) + END, id="in the watch"),
    ],
)
def test_objects_are_listed_anew_if_the_server_has_not_reached_the_version(answer: bytes) -> None:
    def answers(connection: socket.socket, head: bytes) -> None:
        connection.sendall(LIST if b"watch=1" not in head else answer)

    with (
        serving(answers) as server,
        connect(master=f"http://127.0.0.1:{server.port}", qps=-1) as client,
        following(client, VirtualClock()),
    ):
        eventually(lambda: len(server.requests) >= 6)
        assert [b"watch=1" in head for head in server.requests[:6]] == [False, True] * 3


def test_short_watch_that_told_something_is_followed_by_another_one_at_once() -> None:
    assert set(watches(lambda _: HEAD + BOOKMARK + END, 9, VirtualClock())) == {0.0}


def test_waiting_begins_anew_after_two_minutes_without_failures() -> None:
    clock = VirtualClock()
    ended_at = 0.0

    def answers(number: int) -> bytes:
        nonlocal ended_at
        if number == 6:
            clock.advance_to(clock.monotonic() + 121)
            ended_at = clock.monotonic()
        return HEAD + END

    begun = watches(answers, 8, clock)
    assert begun[5] - begun[4] >= 12.8
    assert 0.8 <= begun[6] - ended_at <= 1.6
    assert 1.6 <= begun[7] - begun[6] <= 3.2


def test_server_is_asked_to_end_a_watch_before_its_silence_counts_as_an_end() -> None:
    with (
        serving(
            lambda connection, head: connection.sendall(LIST if b"watch=1" not in head else HEAD + END)
        ) as server,
        connect(master=f"http://127.0.0.1:{server.port}", qps=-1) as client,
        following(client, VirtualClock()),
    ):
        eventually(lambda: len(server.requests) > 20)
        asked = [
            int(found[1]) for head in server.requests if (found := re.search(rb"timeoutSeconds=(\d+)", head))
        ]
    assert len(set(asked)) > 1, "by chance"
    assert min(asked) >= 15
    assert max(asked) + 10 <= DEFAULT_TRANSPORT_LIMITS.quiet <= 45


def test_changes_in_quick_succession_are_applied_together_and_none_is_lost() -> None:
    applied: list[int] = []
    ended = threading.Event()

    def answer(connection: socket.socket, head: bytes) -> None:
        if b"watch=1" not in head or ended.is_set():
            connection.sendall(LIST)
            return
        connection.sendall(HEAD)
        for number in range(200):
            connection.sendall(
                event(
                    "ADDED",
                    {
                        "metadata": {
                            "name": f"p{number}",
                            "namespace": "default",
                            "resourceVersion": f"{number + 8}",
                        }
                    },
                )
            )
            time.sleep(0.0005)
        ended.set()

    def apply(changes: Changes) -> None:
        applied.append(len(list(changes(reflector.store))))

    with (
        serving(answer) as server,
        connect(master=f"http://127.0.0.1:{server.port}", qps=-1) as client,
    ):
        clock = SystemClock()
        reflector = Reflector(client, Pod, apply, Random(1), clock, Watches(clock))
        began = time.monotonic()
        reflector.start()
        eventually(lambda: sum(applied) == 200)
        took = time.monotonic() - began
        assert len(reflector.store) == 200
        # Two reads are at least 10 ms apart; the list, and the first ones, aren't.
        assert len(applied) <= took / 0.01 + 4
        reflector.stop()
        reflector.join(PATIENCE)


class Proxy:
    """A TCP proxy that swallows everything on the connections that are open when it is told to."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._swallowing: set[socket.socket] = set()
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def swallow(self) -> None:
        self._swallowing.update(self._open)

    def close(self) -> None:
        for each in (self._listener, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                self._open += (client, server)
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=self._carry, args=(source, target), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if source not in self._swallowing:
                    target.sendall(data)
            if source not in self._swallowing:
                target.shutdown(socket.SHUT_WR)


def test_changes_are_seen_though_a_proxy_keeps_dead_connections_open(
    server: ApiServer, tmp_path: Path
) -> None:
    url = urlsplit(server.url)
    assert url.hostname is not None
    assert url.port is not None
    proxy = Proxy((url.hostname, url.port))
    kubeconfig = server.kubeconfig(tmp_path / "kubeconfig")
    limits = TransportLimits(quiet=0.3, request=5.0)
    with (
        connect(kubeconfig, master=f"{url.scheme}://127.0.0.1:{proxy.port}", qps=-1, limits=limits) as client,
        KubernetesCluster(client, [Node]) as cluster,
    ):
        assert cluster.wait_for_sync(PATIENCE)
        proxy.swallow()
        server.cluster.add(make_node("late").build())
        eventually(lambda: cluster.get(Node, "late"))
    proxy.close()


def test_first_list_is_told_in_the_order_of_the_server(server: ApiServer, client: Client) -> None:
    """That of the keys, not of the ages, so pods wait in the order in which kube-scheduler lists them."""
    for name in ("c", "a", "b"):
        server.cluster.add(make_node(name).build())
    told: list[str] = []
    cluster = KubernetesCluster(client, [Node])
    cluster.watch(lambda change: told.append(change.object.name))
    with cluster:
        assert cluster.wait_for_sync(PATIENCE)
    assert told == ["a", "b", "c"]
