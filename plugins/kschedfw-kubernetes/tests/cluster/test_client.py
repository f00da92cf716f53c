"""Repeats, rates, fences: what the client does with answers that aren't the ones it wanted."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from kschedfw_apiserver import ApiServer
from kschedfw_kubernetes.cluster import Client, FencedError, UnavailableError
from kschedfw_kubernetes.cluster.client import PAGE
from kschedfw_kubernetes.cluster.credentials import Identity
from kschedfw_kubernetes.cluster.dialer import Dialer
from kschedfw_kubernetes.cluster.errors import ApiError, MissingObjectError, NameTakenError
from kschedfw_kubernetes.cluster.rate_limit import TokenBucket
from kschedfw_kubernetes.cluster.stopping import StopSignal
from kschedfw_kubernetes.http.connections import Connection

from kschedfw.api import pod_from_manifest
from kschedfw.testing.clock import FakeClock

PODS = "/api/v1/namespaces/default/pods"


def pod(name: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


def test_a_refusal_is_an_error_of_its_own_kind(client: Client) -> None:
    client.write("POST", PODS, pod("a"))
    with pytest.raises(NameTakenError, match=r'POST .*/pods: .*"a" already exists \(HTTP 409\)'):
        client.write("POST", PODS, pod("a"))
    with pytest.raises(MissingObjectError):
        client.get(f"{PODS}/b")
    with pytest.raises(ApiError) as caught:
        client.write("POST", PODS, {"apiVersion": "v1", "kind": "Pod"})
    assert caught.value.status in (400, 422)


def test_a_list_comes_page_by_page(server: ApiServer, client: Client) -> None:
    for number in range(PAGE + 1):
        server.cluster.add(pod_from_manifest(pod(f"p{number}")))
    pages = list(client.pages(PODS))
    assert [len(page.items or ()) for page in pages] == [PAGE, 1]
    assert pages[0].remaining == 1


def test_throttled_requests_are_repeated_after_the_time_that_the_server_says(
    server: ApiServer, client: Client
) -> None:
    server.faults.throttled, server.faults.retry_after = 1.0, 0
    with pytest.raises(ApiError) as caught:
        client.get(PODS)
    assert caught.value.status == 429
    server.faults.throttled = 0.6
    assert client.get(PODS)["kind"] == "PodList"


def test_failures_are_repeated_a_few_times(server: ApiServer, client: Client) -> None:
    server.faults.failed_before = 0.5
    assert [client.get(PODS)["kind"] for _ in range(3)] == ["PodList"] * 3
    server.faults.failed_before = 1.0
    with pytest.raises(ApiError, match="HTTP 500"):
        client.get(PODS)


def test_a_lost_answer_is_asked_for_again(server: ApiServer, client: Client) -> None:
    server.faults.half_sent = 0.5
    assert [client.get(PODS)["kind"] for _ in range(5)] == ["PodList"] * 5


def test_what_is_settled_isnt_repeated(server: ApiServer, client: Client) -> None:
    server.faults.failed_after = 1.0
    asked = []

    def settle() -> dict[str, object]:
        asked.append(True)
        return {"kind": "Found"}

    assert client.write("POST", PODS, pod("a"), settle=settle) == {"kind": "Found"}
    assert asked == [True]


def test_a_closed_client_says_so(client: Client) -> None:
    client.close()
    with pytest.raises(UnavailableError, match="closed"):
        client.get(PODS)


def test_after_its_deadline_a_write_is_not_sent(server: ApiServer, client: Client) -> None:
    written = len(server.audit.events)
    with pytest.raises(FencedError, match="not sent"):
        client.write("POST", "/api/v1/namespaces", {}, deadline=client.clock.monotonic() - 1)
    assert len(server.audit.events) == written


def test_behind_a_closed_fence_nothing_is_written(server: ApiServer, client: Client) -> None:
    client.fence.close()
    with pytest.raises(FencedError):
        client.write("POST", PODS, pod("a"))
    assert client.get(PODS)["items"] == []
    client.fence.open_until(client.clock.monotonic() + 60)
    client.write("POST", PODS, pod("a"))
    client.fence.open_until(client.clock.monotonic() - 1)
    with pytest.raises(FencedError):
        client.with_own_rate().write("POST", PODS, pod("b"))
    client.with_own_rate(is_fenced=False).write("POST", PODS, pod("c"))
    assert [each.name for each in server.cluster.list(type(pod_from_manifest(pod("a"))))] == ["a", "c"]


def test_a_client_with_its_own_rate_shares_the_connections_and_leaves_them_open(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    dial, dialled = Dialer.dial, []

    def counted(dialer: Dialer, identity: Identity, timeout: float) -> Connection:
        dialled.append(identity)
        return dial(dialer, identity, timeout)

    monkeypatch.setattr(Dialer, "dial", counted)
    other = client.with_own_rate()
    for each in (client, other, client, other):
        each.get(PODS)
    other.close()
    with pytest.raises(UnavailableError, match="closed"):
        other.get(PODS)
    with pytest.raises(UnavailableError, match="closed"):
        other.write("POST", PODS, pod("a"))
    assert client.get(PODS)["items"] == []
    assert len(dialled) == 1


def test_a_burst_leaves_at_once_and_then_so_many_in_a_second() -> None:
    clock = FakeClock()
    bucket = TokenBucket(10, 3, clock)
    assert [bucket.reserve() for _ in range(5)] == pytest.approx([0, 0, 0, 0.1, 0.2])
    clock.advance(0.25)
    assert bucket.reserve() == pytest.approx(0.05)
    clock.advance(100)
    assert [bucket.reserve() for _ in range(4)] == pytest.approx([0, 0, 0, 0.1])
    assert [TokenBucket(-1, 1, clock).reserve() for _ in range(3)] == [0, 0, 0]


def test_requests_wait_for_their_turn(connected: Callable[..., Client]) -> None:
    client = connected(qps=50.0, burst=1)
    begun = time.perf_counter()
    for _ in range(6):
        client.get(PODS)
    assert time.perf_counter() - begun >= 0.1


def test_who_waits_is_woken_by_the_signal_to_stop() -> None:
    clock = FakeClock()
    signal = StopSignal(clock)
    signal.set()
    assert signal.wait(1e9)
