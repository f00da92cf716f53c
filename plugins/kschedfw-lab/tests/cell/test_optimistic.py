"""Real schedulers on one shared state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import chain
from random import Random

import pytest
from hypothesis import given, settings
from kschedfw_lab.cell.optimistic import OptimisticScheduler
from kschedfw_lab.cell.shared_state import Claim, ClaimTransaction, CommitMode, Detection, SharedState

from kschedfw import InMemoryCluster, Node, Pod, Scheduler, make_node, make_pod
from kschedfw.api.meta import Named
from kschedfw.scheduler.still_fits import StillFits
from kschedfw.testing import FakeClock
from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import DrawnCluster, clusters


class Stage:
    """A truth with nodes of 2 CPUs, and as many schedulers as are asked for."""

    def __init__(self, *objects: Iterable[Named]) -> None:
        self.clock = FakeClock()
        self.truth = InMemoryCluster(chain.from_iterable(objects))
        self.state = SharedState(self.truth, StillFits(self.truth))

    def scheduler(
        self,
        name: str = "one",
        *,
        detection: Detection = Detection.FINE,
        mode: CommitMode = CommitMode.INCREMENTAL,
        delay: float = 0.0,
        is_mine: Callable[[Pod], bool] = lambda _: True,
        group_of: Callable[[Pod], str | None] = lambda _: None,
    ) -> OptimisticScheduler:
        return OptimisticScheduler(
            self.state,
            name=name,
            clock=self.clock,
            random=Random(1),
            detection=detection,
            mode=mode,
            delay=delay,
            is_mine=is_mine,
            group_of=group_of,
        )

    @property
    def placed(self) -> dict[str, str]:
        return {pod.name: pod.node_name for pod in self.truth.list(Pod) if pod.node_name}


def nodes(*names: str) -> list[Node]:
    return [make_node(name).capacity(cpu=2).build() for name in names]


def pods(count: int, cpu: int = 1) -> list[Pod]:
    return [make_pod(f"p{number}").requests(cpu=cpu).build() for number in range(count)]


def test_two_schedulers_want_the_same_place() -> None:
    """The second one's claim conflicts; its pod goes back to the queue, and gets the other node."""
    stage = Stage(nodes("a"), pods(2, cpu=2))
    first = stage.scheduler("first", is_mine=lambda pod: pod.name == "p0")
    second = stage.scheduler("second", is_mine=lambda pod: pod.name == "p1")
    decided = first.decide(first.next_pods()), second.decide(second.next_pods())
    first.commit(decided[0])
    outcome = second.commit(decided[1])
    assert outcome.conflicts[0].reason == "it doesn't fit node a any more: Insufficient cpu"
    stage.truth.add(nodes("b")[0])
    while second.schedule_next():
        pass
    assert stage.placed == {"p0": "a", "p1": "b"}
    assert second.accounts.conflict_fraction == 1.0


def test_whoever_comes_first_has_the_pod() -> None:
    stage = Stage(nodes("a", "b"), pods(1))
    first, second = stage.scheduler("first"), stage.scheduler("second")
    decided = first.decide(first.next_pods()), second.decide(second.next_pods())
    first.commit(decided[0])
    assert "already assigned" in second.commit(decided[1]).conflicts[0].reason
    assert second.next_pods() == ()
    assert len(second.scheduler.cache.dump().pods) == 1


def test_a_gang_gets_all_or_nothing() -> None:
    stage = Stage(
        nodes("a", "b"),
        [make_pod(f"p{number}").labels(gang="g").requests(cpu=1).build() for number in range(4)],
    )
    gang = stage.scheduler(mode=CommitMode.ALL_OR_NOTHING, group_of=lambda pod: pod.labels.get("gang"))
    decision = gang.decide(gang.next_pods())
    intruder = stage.truth.add(make_pod("intruder").requests(cpu=1).build())
    stage.truth.bind(intruder, "a")
    outcome = gang.commit(decision)
    assert (outcome.accepted, len(outcome.conflicts)) == ((), 1)
    assert gang.schedule_next()
    assert stage.placed == {"intruder": "a"}
    stage.truth.delete(intruder)
    stage.clock.advance(10)
    assert gang.schedule_next()
    assert Counter(stage.placed.values()) == {"a": 2, "b": 2}


def test_incremental_commits_keep_what_fits() -> None:
    stage = Stage(nodes("a", "b"), pods(4))
    job = stage.scheduler(group_of=lambda _: "job")
    decision = job.decide(job.next_pods())
    stage.truth.bind(stage.truth.add(make_pod("intruder").requests(cpu=1).build()), "a")
    outcome = job.commit(decision)
    assert (len(outcome.accepted), len(outcome.conflicts)) == (3, 1)
    assert (job.accounts.accepted, job.accounts.claims) == (3, 4)


def test_a_coarse_conflict_of_a_pod_that_would_still_fit() -> None:
    for detection, conflicts in (Detection.FINE, 0), (Detection.COARSE, 1):
        stage = Stage(nodes("a"), pods(1))
        one = stage.scheduler(detection=detection)
        decision = one.decide(one.next_pods())
        stage.truth.bind(stage.truth.add(make_pod("other").requests(cpu=1).build()), "a")
        assert len(one.commit(decision).conflicts) == conflicts
        one.schedule_next()
        assert stage.placed["p0"] == "a"


def test_a_scheduler_does_not_conflict_with_itself() -> None:
    stage = Stage(nodes("a", "b"), pods(4))
    one = stage.scheduler(detection=Detection.COARSE, delay=1000)
    while one.schedule_next():
        pass
    assert len(stage.placed) == 4
    assert one.accounts.conflicting == 0


def test_wait_times_begin_when_a_pod_arrives() -> None:
    stage = Stage(nodes("a"), pods(1))
    one = stage.scheduler()
    stage.clock.advance(7)
    one.schedule_next()
    assert one.accounts.waits == [7]


class TestStillFits:
    """The truth asks every filter of the profile."""

    def check(self, stage: Stage, pod: Pod, node_name: str) -> str:
        claim = Claim(stage.truth.add(pod), node_name, 0)
        outcome = stage.state.commit(ClaimTransaction((claim,)))
        return outcome.conflicts[0].reason if outcome.conflicts else ""

    def test_ports(self) -> None:
        stage = Stage(nodes("a"))
        assert self.check(stage, make_pod("web").host_port(80).build(), "a") == ""
        assert "free ports" in self.check(stage, make_pod("web-2").host_port(80).build(), "a")

    def test_affinity_to_other_pods(self) -> None:
        stage = Stage(nodes("a"))
        lonely = make_pod("lonely").labels(app="x").pod_anti_affinity("kubernetes.io/hostname", {"app": "x"})
        assert self.check(stage, lonely.build(), "a") == ""
        assert "anti-affinity" in self.check(stage, make_pod("other").labels(app="x").build(), "a")

    def test_the_node_itself(self) -> None:
        stage = Stage(nodes("a"))
        stage.truth.update(make_node("a").capacity(cpu=2).unschedulable().build())
        assert "unschedulable" in self.check(stage, make_pod("late").build(), "a")
        assert "no such node" in self.check(stage, make_pod("lost").build(), "b")

    def test_earlier_claims_of_the_transaction(self) -> None:
        stage = Stage(nodes("a"), pods(3))
        found = [stage.truth.get(Pod, f"default/p{number}") for number in range(3)]
        claims = tuple(Claim(pod, "a", 0) for pod in found if pod is not None)
        refused = stage.state.commit(ClaimTransaction(claims, mode=CommitMode.ALL_OR_NOTHING))
        assert [each.claim.pod.name for each in refused.conflicts] == ["p2"]
        assert len(stage.state.commit(ClaimTransaction(claims)).accepted) == 2

    def test_pods_that_have_ended_take_nothing(self) -> None:
        stage = Stage(nodes("a"), pods(1, cpu=2))
        first = stage.truth.list(Pod)[0]
        stage.truth.bind(first, "a")
        stage.truth.delete(stage.truth.list(Pod)[0])
        assert self.check(stage, make_pod("next").requests(cpu=2).build(), "a") == ""


def test_a_pod_for_which_others_were_evicted_does_not_wait_for_its_backoff() -> None:
    """No other pod is active, so it is tried early, as kube-scheduler does."""
    low = make_pod("low").requests(cpu=2).priority(0).node("a").build()
    stage = Stage(nodes("a"), [low, make_pod("high").requests(cpu=2).priority(1).build()])
    one = stage.scheduler()
    while one.schedule_next():
        pass
    assert stage.placed == {"high": "a"}


@pytest.mark.slow
@settings(max_examples=examples(20))
@given(clusters(most_nodes=3, most_bound=3, most_pending=3))
def test_one_scheduler_decides_as_without_a_shared_state(given_cluster: DrawnCluster) -> None:
    objects = [*given_cluster.nodes, *given_cluster.bound, *given_cluster.pending]
    alone = InMemoryCluster(objects)
    Scheduler(alone, clock=FakeClock(), random=Random(1), initial_backoff=0.0).run_until_idle()
    stage = Stage(objects)
    one = stage.scheduler()
    for _ in range(100):
        if not one.schedule_next():
            break
    assert stage.placed == {pod.name: pod.node_name for pod in alone.list(Pod) if pod.node_name}
