"""A simulation can be taken attempt by attempt, with an algorithm that decides in the scheduler's place."""

from __future__ import annotations

import pytest

from kschedfw import CycleState, Framework, GenericScheduler, Pod, ScheduleResult, make_node, make_pod
from kschedfw.cluster import InMemoryCluster
from kschedfw.explain import Explaining
from kschedfw.simulator import Arrivals, Simulation


class Last:
    """Takes the last feasible node."""

    def __init__(self, generic: GenericScheduler) -> None:
        self._generic = generic

    def schedule(self, framework: Framework, state: CycleState, pod: Pod) -> ScheduleResult:
        feasible, evaluated = self._generic.find(framework, state, pod)
        return ScheduleResult(feasible[-1].name, evaluated, len(feasible))


def cluster() -> InMemoryCluster:
    nodes = [make_node(name).capacity(cpu=1).build() for name in ("a", "b")]
    stay = {"kschedfw/duration-seconds": "60"}
    pods = [make_pod(f"pod-{i}").requests(cpu=1).annotations(stay).build() for i in range(3)]
    return InMemoryCluster([*nodes, *pods])


def test_an_algorithm_decides_in_the_scheduler_s_place() -> None:
    report = Simulation(cluster(), algorithm=Last, arrivals=Arrivals()).run()
    assert [(decision.node, decision.bound) for decision in report.decisions] == [
        ("b", 0.0),
        ("a", 0.0),
        ("b", 60.0),
    ]


def test_attempts_one_by_one_are_those_of_a_run() -> None:
    whole = Simulation(cluster(), arrivals=Arrivals(), seed=3)
    whole.run()
    steps = Simulation(cluster(), arrivals=Arrivals(), seed=3)
    pods = []
    while (attempt := steps.next_attempt()) is not None:
        pods.append(attempt.pod.name)
        steps.scheduler.make_attempt(attempt)
    steps.close()
    assert steps.ledger.entries == whole.ledger.entries
    assert (steps.ledger.attempts, steps.ledger.bound) == (len(pods), 3)
    assert steps.virtual_time == whole.virtual_time


def test_other_algorithms_are_not_explained() -> None:
    explaining = Explaining(lambda _explanation: None)
    with pytest.raises(ValueError, match=r"^explaining: the decisions of an algorithm of one's own"):
        Simulation(cluster(), algorithm=Last, explaining=explaining)
