"""What goes wrong on purpose: whether a request had its effect is up to the fault, never to chance alone."""

from __future__ import annotations

import threading

import httpx2
import pytest
from apiserver.calling import LEASES, PODS, Client, lease, names, pod
from kschedfw_apiserver import ApiServer, Faults

from kschedfw.api.pod import Pod


def exists(server: ApiServer, name: str = "web") -> bool:
    return server.cluster.get(Pod, f"default/{name}") is not None


def test_throttled(server: ApiServer, call: Client) -> None:
    server.faults = Faults(throttled=1, retry_after=3)
    answer = call.http.post(PODS, json=pod())
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "3")
    assert answer.json()["details"]["retryAfterSeconds"] == 3
    assert not exists(server)


def test_writes_conflict_and_reads_dont(server: ApiServer, call: Client) -> None:
    server.faults = Faults(conflicting=1)
    code, answer = call("POST", PODS, pod())
    assert (code, answer["reason"], exists(server)) == (409, "Conflict", False)
    assert call("GET", PODS)[0] == 200


def test_failed_before_and_after_taking_effect(server: ApiServer, call: Client) -> None:
    server.faults = Faults(failed_before=1)
    assert (call("POST", PODS, pod("a"))[0], exists(server, "a")) == (500, False)
    server.faults = Faults(failed_after=1)
    assert (call("POST", PODS, pod("b"))[0], exists(server, "b")) == (500, True)


@pytest.mark.parametrize("faults", [Faults(lost=1), Faults(half_sent=1)], ids=["lost", "half sent"])
def test_an_answer_that_does_not_come_as_a_whole(server: ApiServer, call: Client, faults: Faults) -> None:
    server.faults = faults
    with pytest.raises(httpx2.RemoteProtocolError):
        call("POST", PODS, pod())
    assert exists(server)


def test_duplicated(server: ApiServer, call: Client) -> None:
    server.faults = Faults(duplicated=1)
    assert call("POST", PODS, pod())[0] == 409
    assert exists(server)


def test_late_requests_are_overtaken(server: ApiServer, call: Client) -> None:
    server.faults = Faults(late=1, seconds=0.4, only=lambda _, path: path.endswith("/leases"), seed=1)
    first = threading.Thread(target=call, args=("POST", LEASES, lease("first")))
    first.start()
    call("POST", PODS, pod())
    first.join()
    assert [event.resource for event in server.audit.events] == ["pods", "leases"]


def test_the_share_is_of_all_requests_and_follows_the_seed(server: ApiServer, call: Client) -> None:
    def codes() -> list[int]:
        server.faults = Faults(throttled=0.5, seed=7)
        return [call("GET", PODS)[0] for _ in range(20)]

    assert codes() == codes()
    assert set(codes()) == {200, 429}


class TestWatches:
    @pytest.fixture(autouse=True)
    def _pods(self, call: Client) -> None:
        for name in "abc":
            call("POST", PODS, pod(name))

    def events(self, call: Client) -> int:
        seen = 0
        with call.http.stream("GET", PODS, params={"watch": "1", "timeoutSeconds": "2"}) as answer:
            for _ in answer.iter_lines():
                seen += 1
        return seen

    def test_cut_after_events(self, server: ApiServer, call: Client) -> None:
        server.faults = Faults(watch_events=1)
        with pytest.raises(httpx2.RemoteProtocolError):
            self.events(call)

    def test_cut_after_seconds(self, server: ApiServer, call: Client) -> None:
        server.faults = Faults(watch_seconds=0.1)
        with pytest.raises(httpx2.RemoteProtocolError):
            self.events(call)

    def test_told_that_the_version_is_too_old(self, server: ApiServer, call: Client) -> None:
        server.faults = Faults(expired_watches=1)
        (event,) = call.watch(PODS, resourceVersion=server.cluster.resource_version, timeoutSeconds=1)
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == (
            "ERROR",
            410,
            "Expired",
        )


def test_a_paused_server_does_nothing_until_it_goes_on(server: ApiServer, call: Client) -> None:
    server.faults.paused = True
    with pytest.raises(httpx2.ReadTimeout):
        call.http.post(PODS, json=pod(), timeout=0.1)
    assert not exists(server)
    server.faults.paused = False
    assert call("GET", PODS)[0] == 200


def test_a_stopped_server_keeps_its_objects(server: ApiServer, call: Client) -> None:
    call("POST", PODS, pod())
    server.stop()
    with pytest.raises(httpx2.ConnectError):
        call("GET", PODS)
    server.start()
    assert names(call("GET", PODS)[1]) == ["web"]


def test_a_lease_changes_hands(server: ApiServer, call: Client) -> None:
    _, mine = call("POST", LEASES, lease(holderIdentity="me"))
    server.hand_lease("lock", "you", namespace="default")
    assert call("PUT", f"{LEASES}/lock", mine)[0] == 409
    assert call("GET", f"{LEASES}/lock")[1]["spec"]["holderIdentity"] == "you"
