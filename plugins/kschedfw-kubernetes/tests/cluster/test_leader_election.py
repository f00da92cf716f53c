"""One leader at a time, and none that writes beyond its lease."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from kschedfw_apiserver import ApiServer
from kschedfw_kubernetes.cluster import Client, FencedError, LeaderElector
from kschedfw_kubernetes.cluster.leader_election import LeaderElectionConfigError

from kschedfw.framework.clock import SystemClock
from kschedfw.testing.waiting import PATIENCE, eventually

LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/scheduler"
PODS = "/api/v1/namespaces/default/pods"


class Candidate:
    """Takes part in an election on a thread of its own."""

    def __init__(self, client: Client, identity: str, **options: Any) -> None:
        self.client = client
        self.started, self.stopped = threading.Event(), threading.Event()
        options = {"lease_duration": 1.5, "renew_deadline": 1.0, "retry_period": 0.1, **options}
        self.elector = LeaderElector(
            client,
            identity=identity,
            namespace="default",
            name="scheduler",
            on_started_leading=self.started.set,
            on_stopped_leading=self.stopped.set,
            **options,
        )
        self.thread = threading.Thread(target=self.elector.run, daemon=True)

    def run(self) -> Candidate:
        self.thread.start()
        return self


@pytest.fixture
def candidate(connected: Callable[..., Client]) -> Any:
    candidates: list[Candidate] = []

    def make(identity: str, **times: float) -> Candidate:
        candidates.append(Candidate(connected(), identity, **times))
        return candidates[-1].run()

    yield make
    for each in candidates:
        each.elector.stop(release=False)
        each.thread.join(PATIENCE)


def test_the_first_becomes_the_leader_and_renews(client: Client, candidate: Callable[..., Candidate]) -> None:
    first = candidate("a")
    assert first.started.wait(PATIENCE)
    spec = client.get(LEASE)["spec"]
    assert (spec["holderIdentity"], spec["leaseTransitions"], spec["leaseDurationSeconds"]) == ("a", 0, 2)
    eventually(lambda: client.get(LEASE)["spec"]["renewTime"] > spec["renewTime"])
    assert client.get(LEASE)["spec"]["acquireTime"] == spec["acquireTime"]
    assert (first.elector.is_leader, first.elector.leader) == (True, "a")


def test_a_lease_that_is_given_up_is_taken_at_once(
    client: Client, candidate: Callable[..., Candidate]
) -> None:
    first = candidate("a", lease_duration=60, renew_deadline=40)
    assert first.started.wait(PATIENCE)
    second = candidate("b", lease_duration=60, renew_deadline=40)
    eventually(lambda: second.elector.leader == "a")
    assert not second.started.is_set()
    first.elector.stop()
    assert first.stopped.is_set()
    assert second.started.wait(PATIENCE)
    assert client.get(LEASE)["spec"]["leaseTransitions"] >= 1


def test_a_leader_that_cant_renew_stops_and_writes_nothing_from_then_on(
    server: ApiServer, candidate: Callable[..., Candidate]
) -> None:
    first = candidate("a", renew_deadline=0.5)
    assert first.started.wait(PATIENCE)
    first.client.get(PODS)
    server.faults.failed_before = 1.0
    server.faults.only = lambda method, path: "leases" in path
    assert first.stopped.wait(PATIENCE)
    with pytest.raises(FencedError):
        first.client.write("POST", PODS, {})
    assert not [each for each in server.audit.events if each.verb == "create" and each.resource == "pods"]


def test_a_leader_whose_server_says_nothing_stops_at_its_deadline(
    server: ApiServer, candidate: Callable[..., Candidate]
) -> None:
    first = candidate("a", lease_duration=2 * PATIENCE, renew_deadline=2.0)
    assert first.started.wait(PATIENCE)
    server.faults.paused = True
    assert first.stopped.wait(PATIENCE)  # half of what the lease would last
    server.faults.paused = False


def test_a_leader_that_slept_beyond_its_deadline_writes_nothing(connected: Callable[..., Client]) -> None:
    client = connected()
    ahead = _Ahead()
    client.fence._clock = ahead
    leader = Candidate(client, "a", lease_duration=60, renew_deadline=40, retry_period=10).run()
    assert leader.started.wait(PATIENCE)
    client.fence.check()
    ahead.seconds = 41  # as after SIGSTOP, before anything else has run
    with pytest.raises(FencedError):
        client.write("POST", PODS, {})
    leader.elector.stop(release=False)


class _Ahead(SystemClock):
    """The time, and so many seconds later."""

    seconds = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.seconds


def test_when_the_leader_is_gone_the_next_waits_until_the_lease_has_run_out(
    client: Client, candidate: Callable[..., Candidate]
) -> None:
    first = candidate("a")
    assert first.started.wait(PATIENCE)
    first.elector.stop(release=False)
    before = client.get(LEASE)["spec"]
    second = candidate("b")
    assert second.started.wait(PATIENCE)
    after = client.get(LEASE)["spec"]
    renewed, acquired = (datetime.fromisoformat(time) for time in (before["renewTime"], after["acquireTime"]))
    assert (acquired - renewed).total_seconds() >= before["leaseDurationSeconds"] - 1  # rounded up
    assert after["leaseTransitions"] == 1


def test_who_waits_comes_when_the_lease_has_run_out_however_long_its_retry_period(
    candidate: Callable[..., Candidate],
) -> None:
    first = candidate("a")
    assert first.started.wait(PATIENCE)
    first.elector.stop(release=False)
    second = candidate("b", lease_duration=90, renew_deadline=60, retry_period=40)
    assert second.started.wait(PATIENCE)


def test_a_leader_knows_until_when_nobody_else_leads_before_it_writes(
    connected: Callable[..., Client],
) -> None:
    client = connected()
    told: list[float] = []
    begun = client.clock.monotonic()

    def note(until: float) -> None:
        if not told:
            with pytest.raises(FencedError):
                client.fence.check()
        told.append(until)

    candidate = Candidate(client, "a", on_held=note).run()
    eventually(lambda: len(told) > 1)
    candidate.elector.stop(release=False)
    assert all(begun + 1.5 <= until <= client.clock.monotonic() + 1.5 for until in told)
    assert told == sorted(told)


def test_of_many_there_is_one_leader(candidate: Callable[..., Candidate]) -> None:
    many = [candidate(f"c{number}") for number in range(4)]
    eventually(lambda: any(each.started.is_set() for each in many))
    eventually(lambda: all(each.elector.leader for each in many))
    assert sum(each.started.is_set() for each in many) == 1
    assert len({each.elector.leader for each in many}) == 1


@pytest.mark.parametrize("times", [(10, 10, 2), (15, 2, 2), (15, 10, 0)])
def test_times_that_dont_fit_together_are_refused(client: Client, times: tuple[float, float, float]) -> None:
    with pytest.raises(LeaderElectionConfigError, match="must be leaseDuration > renewDeadline"):
        Candidate(client, "a", lease_duration=times[0], renew_deadline=times[1], retry_period=times[2])
    with pytest.raises(LeaderElectionConfigError, match="identity must not be empty"):
        Candidate(client, "")


@pytest.mark.parametrize(
    "spec",
    [
        {"leaseTransitions": "many"},
        {"leaseDurationSeconds": 10**400},
        {"holderIdentity": {"a": "b"}},
        ["a"],
        "a",
    ],
    ids=str,
)
def test_a_malformed_lease_is_waited_for_until_it_is_mended(
    spec: object,
    client: Client,
    candidate: Callable[..., Candidate],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    malformed = {"metadata": {"name": "scheduler"}, "spec": spec}
    there = {"yet": True}
    get_once = Client.get_once

    def answer(self: Client, path: str, timeout: float) -> Any:
        return malformed if there["yet"] and path == LEASE else get_once(self, path, timeout)

    monkeypatch.setattr(Client, "get_once", answer)
    waiting = candidate("a")
    eventually(lambda: caplog.text.count("is malformed") > 1)
    assert waiting.thread.is_alive()
    assert not waiting.started.is_set()
    there["yet"] = False
    assert waiting.started.wait(PATIENCE)
