"""A scheduler's attempts can be taken one by one, and its algorithm told in between what to decide."""

from __future__ import annotations

from datetime import UTC, datetime

import attrs

from kschedfw import (
    CycleState,
    Framework,
    GenericScheduler,
    Pod,
    Scheduler,
    ScheduleResult,
    make_node,
    make_pod,
)
from kschedfw.cluster import InMemoryCluster
from kschedfw.scheduler.queue.protocol import Place


def scheduler_of(*names: str) -> Scheduler:
    nodes = [make_node(name).capacity(cpu=2).build() for name in ("a", "b")]
    pods = [make_pod(name).uid(name).requests(cpu=1).build() for name in names]
    return Scheduler(InMemoryCluster([*nodes, *pods]))


def node_of(scheduler: Scheduler, name: str) -> str:
    pod = scheduler.cluster.get(Pod, f"default/{name}")
    assert pod is not None
    return pod.node_name


def test_a_pod_is_in_flight_until_its_attempt_is_made() -> None:
    scheduler = scheduler_of("one", "two")
    attempt = scheduler.begin_attempt()
    assert attempt is not None
    assert (attempt.pod.name, scheduler.queue.place("one")) == ("one", Place.IN_FLIGHT)
    assert node_of(scheduler, "one") == ""
    scheduler.make_attempt(attempt)
    assert attempt.is_bound
    assert node_of(scheduler, "one") in ("a", "b")
    second = scheduler.begin_attempt()
    assert second is not None
    assert second.pod.name == "two"
    scheduler.make_attempt(second)
    assert scheduler.begin_attempt() is None


def test_pods_that_are_being_deleted_have_no_attempt() -> None:
    scheduler = scheduler_of("one", "two")
    pod = scheduler.cluster.get(Pod, "default/one")
    assert pod is not None
    gone = attrs.evolve(pod.metadata, deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC))
    scheduler.cluster.update(pod.with_metadata(gone))
    attempt = scheduler.begin_attempt()
    assert attempt is not None
    assert attempt.pod.name == "two"


def test_the_halves_of_a_decision_make_the_whole() -> None:
    """What `find` and `choose` say with an attempt's state is what the attempt would have decided."""

    class Told:
        def schedule(self, framework: Framework, state: CycleState, pod: Pod) -> ScheduleResult:
            return ScheduleResult(host, evaluated, len(feasible))

    scheduler = scheduler_of("one")
    algorithm = scheduler.algorithm
    assert isinstance(algorithm, GenericScheduler)
    attempt = scheduler.begin_attempt()
    assert attempt is not None
    feasible, evaluated = algorithm.find(attempt.framework, attempt.state, attempt.pod)
    assert (feasible.names, evaluated) == (("a", "b"), 2)
    host = feasible[algorithm.choose(attempt.framework, attempt.state, attempt.pod, feasible)].name
    scheduler.algorithm = Told()
    scheduler.make_attempt(attempt)
    other = scheduler_of("one")
    other.schedule_one()
    assert node_of(scheduler, "one") == node_of(other, "one") == host
