"""A recorder is told of a pod that is decided on by a plan what it is told of one that hooks decide on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from kschedfw import Code, CycleState, Evaluation, IntArray, ScheduleResult, Status, Verdicts, make_pod
from kschedfw.framework.metrics import MeasuredPoint, NoMetrics
from kschedfw.testing import FakeClock
from tests.framework.runtime.engine.support import (
    RELATED,
    House,
    everything,
    of_kind,
    sibling,
    signing,
    snapshot_of,
    some_nodes,
    zoned_nodes,
)
from tests.framework.support import answering, make_framework, plugin

POINTS = [MeasuredPoint.PRE_FILTER, MeasuredPoint.FILTER, MeasuredPoint.PRE_SCORE, MeasuredPoint.SCORE]


class Told(NoMetrics):
    """What a recorder is told about each pod. One that reads is told its counts when it asks for them."""

    def __init__(self, reads: bool = False) -> None:
        self.points: list[tuple[MeasuredPoint, Code]] = []
        self.seconds: list[float] = []
        self.asked: Counter[tuple[str, MeasuredPoint]] = Counter()
        self.timed: Counter[tuple[str, MeasuredPoint]] = Counter()
        self.reads = reads
        self.tell: list[Callable[[], None]] = []

    def extension_point(self, point: MeasuredPoint, code: Code, profile: str, seconds: float) -> None:
        self.points.append((point, code))
        self.seconds.append(seconds)

    def plugin_execution(self, plugin: str, point: MeasuredPoint, code: Code, seconds: float) -> None:
        self.timed[plugin, point] += 1

    def plugin_evaluations(self, plugin: str, point: MeasuredPoint, profile: str, count: int) -> None:
        self.asked[plugin, point] += count

    def before_reading(self, tell: Callable[[], None]) -> bool:
        self.tell.append(tell)
        return self.reads

    def taken(self) -> tuple[list[tuple[MeasuredPoint, Code]], Counter[tuple[str, MeasuredPoint]]]:
        """The points and the evaluations since the last call."""
        for tell in self.tell:
            tell()
        points, asked = self.points, self.asked
        self.points, self.asked = [], Counter()
        return points, asked


@pytest.mark.parametrize("reads", [False, True], ids=["told for each pod", "told when it reads"])
class TestRecorder:
    def test_points_and_plugins_of_each_pod_are_those_of_the_hooks(self, reads: bool) -> None:
        random = Random(11)
        templates = [*RELATED, make_pod("plain").build()]
        told = Told(reads), Told(reads)
        houses = [
            House(zoned_nodes(12), percentage=100, metrics=its, evaluation=evaluation)
            for its, evaluation in zip(told, (Evaluation.MEMO, Evaluation.SCALAR), strict=True)
        ]
        for number in range(40):
            pod = sibling(random.choice(templates), number, random.choice([0, 250]), 2**20)
            result = houses[0].schedule(pod)
            assert houses[1].schedule(pod) == result
            (points, asked), (by_hooks, called) = (each.taken() for each in told)
            assert points == by_hooks
            # A node's first refusal spares it the filters behind, one node after the other.
            assert asked.keys() >= called.keys()
            if isinstance(result, ScheduleResult):
                assert asked.keys() == called.keys()
                asks = {MeasuredPoint.FILTER: 12, MeasuredPoint.SCORE: result.feasible_nodes}
                assert asked == {(each, point): asks.get(point, 1) for each, point in asked}
        assert houses[0].together == 40

    def test_single_feasible_node_isnt_scored(self, reads: bool) -> None:
        told = Told(reads)
        house = House(some_nodes(1), metrics=told)
        template = make_pod("pod").build()
        for number in range(3):
            told.taken()
            house.schedule(sibling(template, number, 100, 0))
        points, asked = told.taken()
        assert house.together == 3
        assert [point for point, _ in points] == POINTS[:2]
        assert {point for _, point in asked} == set(POINTS[:2])

    def test_search_without_a_choice_tells_of_filters_alone(self, reads: bool) -> None:
        told = Told(reads)
        house = House(some_nodes(4), metrics=told)
        template = make_pod("pod").build()
        for number in range(3):
            told.taken()
            house.scheduler.find(house.framework, CycleState(), sibling(template, number, 100, 0))
        assert [point for point, _ in told.taken()[0]] == POINTS[:2]

    def test_filters_that_are_called_node_by_node_are_counted_for_the_nodes_that_come_to_them(
        self, reads: bool
    ) -> None:
        told = Told(reads)
        refuses = signing(
            "A", filter=lambda node_info: Status.unschedulable() if node_info.name < "n4" else None
        )
        last = plugin("B", filter=answering(None))
        framework = make_framework(refuses, last, snapshot=snapshot_of(10), metrics=told)
        found = framework.filter_nodes(CycleState(), of_kind("a"), everything(framework))
        assert (found.count, framework.decided_together) == (6, 1)
        assert told.taken() == (
            [(MeasuredPoint.FILTER, Code.SUCCESS)],
            {("A", MeasuredPoint.FILTER): 10, ("B", MeasuredPoint.FILTER): 6},
        )

    @pytest.mark.parametrize("fails", [False, True])
    def test_hooks_that_are_called_after_all_are_counted_once(self, reads: bool, fails: bool) -> None:
        """In order, after a plugin has failed or can't answer together."""
        told = Told(reads)
        first = plugin("A", filter=answering(ValueError() if fails else None))
        second = signing("B")
        framework = make_framework(first, second, snapshot=snapshot_of(10), metrics=told)
        found = framework.filter_nodes(CycleState(), of_kind("a"), everything(framework))
        points, asked = told.taken()
        assert points == [(MeasuredPoint.FILTER, Code.ERROR if fails else Code.SUCCESS)]
        assert framework.decided_together == 0
        expected = (
            {("A", MeasuredPoint.FILTER): 1} if fails else {(each, MeasuredPoint.FILTER): 10 for each in "AB"}
        )
        assert ((found.error is not None), asked) == (fails, expected)


def test_plugins_are_timed_in_the_cycles_of_the_sample_alone() -> None:
    told = Told()
    house = House(some_nodes(4), metrics=told)
    template = make_pod("pod").build()
    for number in range(3):
        house.schedule(sibling(template, number, 100, 0))
    assert not told.timed
    state = CycleState()
    state.record_plugin_metrics = True
    house.scheduler.schedule(house.framework, state, sibling(template, 3, 100, 0))
    # Of plugins whose answers are known or computed, nothing is called that could be timed.
    assert ("NodeResourcesFit", MeasuredPoint.PRE_FILTER) in told.timed
    assert house.together == 4


def test_durations_of_points_are_those_of_the_plugins_that_are_asked() -> None:
    told, clock = Told(), FakeClock()

    def taking(seconds: float, answer: object) -> Callable[[], object]:
        def hook() -> object:
            clock.advance(seconds)
            return answer

        return hook

    def filter_batch(rows: IntArray) -> Verdicts:
        clock.advance(2.0)
        return Verdicts.passing(len(rows))

    def score_batch(rows: IntArray) -> IntArray:
        clock.advance(8.0)
        return rows

    slow = plugin(
        "A",
        pre_filter=taking(1.0, None),
        filter_batch=filter_batch,
        filter=answering(None),
        pre_score=taking(4.0, None),
        score=answering(7),
        score_batch=score_batch,
    )
    framework = make_framework(slow, snapshot=snapshot_of(10), metrics=told, clock=clock)
    state, pod = CycleState(), of_kind("a")
    framework.run_pre_filter_plugins(state, pod)
    found = framework.filter_nodes(state, pod, everything(framework))
    framework.run_pre_score_plugins(state, pod, found.feasible)
    framework.total_scores(state, pod, found.feasible)
    assert [point for point, _ in told.points] == POINTS
    assert told.seconds == [1.0, 2.0, 4.0, 8.0]
    assert framework.decided_together == 1
