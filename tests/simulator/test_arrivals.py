"""Pods come and go in virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from statistics import fmean
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod, PodSchedulingGate
from kschedfw.cluster import InMemoryCluster
from kschedfw.simulator import Arrivals, ArrivalsError, Decision, Outcome, Report, Simulation
from kschedfw.simulator.arrivals import Stay
from kschedfw.testing.properties import examples
from tests.simulator.objects import node, pod

START = datetime(2026, 1, 1, tzinfo=UTC)


def timed(
    name: str,
    arrival: float | None,
    duration: float | None = None,
    priority: int = 0,
    lifetime: float | None = None,
) -> Pod:
    """A pod of 1 CPU that arrives and leaves by itself."""
    times = {"kschedfw/duration-seconds": duration, "kschedfw/lifetime-seconds": lifetime}
    annotations = {key: str(seconds) for key, seconds in times.items() if seconds is not None}
    created = None if arrival is None else START + timedelta(seconds=arrival)
    meta = {"creation_timestamp": created, "annotations": FrozenDict(annotations)}
    return pod(name, {"priority": priority}, meta, cpu="1")


def replay(*objects: Node | Pod, arrivals: Arrivals | None = None, seed: int = 0) -> Report:
    wanted = Arrivals() if arrivals is None else arrivals
    return Simulation(InMemoryCluster(objects), parallelism=1, arrivals=wanted, seed=seed).run()


def by_name(report: Report) -> Mapping[str, Decision]:
    return {decision.pod.removeprefix("default/"): decision for decision in report.decisions}


class TestOwnTimes:
    def test_the_first_arrival_is_time_zero(self) -> None:
        report = replay(node("n1", cpu="4", pods="9"), timed("a", 100), timed("b", 107.5))
        assert [(each.arrived, each.bound) for each in report.decisions] == [(0.0, 0.0), (7.5, 7.5)]

    def test_a_pod_waits_until_another_has_left(self) -> None:
        report = replay(node("n1", cpu="1", pods="9"), timed("a", 0, 60), timed("b", 10, 5))
        found = by_name(report)
        assert (found["b"].outcome, found["b"].arrived, found["b"].bound) == (Outcome.PLACED, 10.0, 60.0)
        assert found["b"].attempts == 2
        assert report.replay is not None
        assert (report.replay.waiting.mean, report.replay.waiting.max) == (25.0, 50.0)
        assert (report.replay.makespan, report.replay.departed) == (65.0, 2)

    def test_the_duration_counts_from_the_binding(self) -> None:
        chain = [timed(f"p{i}", 0, 10) for i in range(4)]
        report = replay(node("n1", cpu="1", pods="9"), *chain)
        assert [each.bound for each in report.decisions] == [0.0, 10.0, 20.0, 30.0]

    def test_who_leaves_makes_room_for_who_comes_at_that_moment(self) -> None:
        found = by_name(replay(node("n1", cpu="1", pods="9"), timed("a", 0, 10), timed("b", 10)))
        assert (found["b"].bound, found["b"].attempts) == (10.0, 1)

    def test_without_a_duration_a_pod_stays(self) -> None:
        report = replay(node("n1", cpu="1", pods="9"), timed("a", 0), timed("b", 1))
        assert (report.placed, report.unschedulable) == (1, 1)
        assert report.utilisation[0].share == 1.0

    def test_pod_leaves_at_the_end_of_its_lifetime_whether_or_not_it_is_bound(self) -> None:
        late, waits = timed("late", 8, lifetime=4), timed("waits", 1, lifetime=5)
        report = replay(node("n1", cpu="1", pods="9"), timed("a", 0, lifetime=10), waits, late)
        found = by_name(report)
        assert (found["a"].outcome, found["a"].bound) == (Outcome.PLACED, 0.0)
        assert (found["late"].outcome, found["late"].bound) == (Outcome.PLACED, 10.0)
        assert (found["waits"].outcome, found["waits"].bound) == (Outcome.UNSCHEDULABLE, None)
        assert found["waits"].reasons == {"Insufficient cpu": 1}
        assert report.replay is not None
        assert (report.replay.departed, report.replay.makespan) == (2, 12.0)

    def test_duration_ends_a_stay_before_the_lifetime_does(self) -> None:
        report = replay(
            node("n1", cpu="1", pods="9"), timed("a", 0, 3, lifetime=10), timed("b", 1, 99, lifetime=6)
        )
        assert [each.bound for each in report.decisions] == [0.0, 3.0]
        assert report.replay is not None
        assert report.replay.makespan == 7.0

    def test_gated_pod_is_told_as_gated_when_its_lifetime_is_over(self) -> None:
        lifetime = FrozenDict({"kschedfw/lifetime-seconds": "4"})
        gated = pod(
            "gated", {"scheduling_gates": (PodSchedulingGate("wait"),)}, {"annotations": lifetime}, cpu="1"
        )
        report = replay(node("n1", cpu="1", pods="9"), gated, timed("a", 0, 10))
        assert (report.gated, report.placed) == (1, 1)

    def test_pod_that_comes_for_no_time_is_tried(self) -> None:
        report = replay(node("n1", cpu="1", pods="9"), timed("a", 0, lifetime=0), timed("b", 1, lifetime=0))
        assert [each.bound for each in report.decisions] == [0.0, 1.0]

    def test_a_victim_does_not_leave_a_second_time(self) -> None:
        report = replay(node("n1", cpu="1", pods="9"), timed("low", 0, 60), timed("high", 5, 100, priority=1))
        assert by_name(report)["low"].preempted
        assert report.replay is not None
        assert (report.replay.departed, report.replay.makespan) == (1, 105.0)

    def test_the_peak_is_the_most_at_a_time(self) -> None:
        pods = [timed("a", 0, 10), timed("b", 5, 10), timed("c", 30, 10)]
        report = replay(node("n1", cpu="4", pods="9"), *pods)
        assert report.replay is not None
        peak = {each.resource: (each.requested, each.share) for each in report.replay.peaks}
        assert peak["cpu"] == (2000, 0.5)
        assert peak["pods"][0] == 2
        assert report.utilisation[0].requested == 0

    def test_bound_pods_count_for_the_peak_and_stay_for_good_without_a_duration(self) -> None:
        bound = pod("bound", {"node_name": "n1"}, cpu="1")
        report = replay(node("n1", cpu="4", pods="9"), bound, timed("a", 0, 10))
        assert report.replay is not None
        assert report.replay.peaks[0].requested == 2000
        assert report.utilisation[0].requested == 1000

    def test_bound_pod_leaves_at_its_duration_after_the_start(self) -> None:
        bound = pod("bound", {"node_name": "n1"}, {"annotations": _annotations(duration=4)}, cpu="1")
        report = replay(node("n1", cpu="1", pods="9"), bound, timed("a", 0, 10))
        assert [(each.arrived, each.bound) for each in report.decisions] == [(0.0, 4.0)]

    def test_bound_pod_stays_when_own_times_are_ignored(self) -> None:
        bound = pod("bound", {"node_name": "n1"}, {"annotations": _annotations(duration=4)}, cpu="1")
        arrivals = Arrivals(rate=1, own_times=False)
        report = replay(node("n1", cpu="1", pods="9"), bound, timed("a", 0, 10), arrivals=arrivals)
        assert report.unschedulable == 1


class TestPlan:
    def test_openb_times_come_first(self) -> None:
        created = START + timedelta(days=9)
        one = pod("one", meta={"creation_timestamp": created, "annotations": _openb(100, 150, 700)})
        never = pod("never", meta={"annotations": _openb(130, None, 140)})
        plan = Arrivals(mean_duration=5).plan([one, never], 0)
        assert plan == {"uid-one": Stay(0.0, 550.0), "uid-never": Stay(30.0, 10.0)}

    def test_pods_without_times_are_there_from_the_start_for_good(self) -> None:
        assert Arrivals().plan([timed("a", None)], 0) == {"uid-a": Stay(0.0, None)}

    def test_drawn_times_have_the_means_that_were_asked_for(self) -> None:
        pods = [timed(f"p{i}", None) for i in range(4000)]
        stays = list(Arrivals(rate=4, mean_duration=30).plan(pods, 1).values())
        arrivals = [stay.arrival for stay in stays]
        assert arrivals == sorted(arrivals)
        assert arrivals[-1] == pytest.approx(1000, rel=0.1)
        assert fmean(stay.duration or 0.0 for stay in stays) == pytest.approx(30, rel=0.1)

    def test_only_what_is_missing_is_drawn(self) -> None:
        pods = [timed("own", 50, 9), timed("none", None)]
        plan = Arrivals(rate=1, mean_duration=1).plan(pods, 1)
        assert plan["uid-own"] == Stay(0.0, 9.0)
        assert Arrivals(mean_duration=1).plan([timed("own", 0, lifetime=5)], 1) == {
            "uid-own": Stay(0.0, None, 5.0)
        }
        ignoring = Arrivals(mean_duration=1, own_times=False).plan([timed("own", 0, lifetime=5)], 1)
        assert ignoring["uid-own"].lifetime is None
        assert plan["uid-none"].arrival > 0

    def test_times_come_from_the_seed(self) -> None:
        pods = [timed(f"p{i}", None) for i in range(5)]
        arrivals = Arrivals(rate=1, mean_duration=1)
        assert arrivals.plan(pods, 1) == arrivals.plan(pods, 1) != arrivals.plan(pods, 2)

    @pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf", ""])
    def test_an_annotation_that_is_no_number_of_seconds(self, text: str) -> None:
        annotations = FrozenDict({"kschedfw/duration-seconds": text})
        with pytest.raises(ArrivalsError, match="Pod default/a: annotation kschedfw/duration-seconds"):
            Arrivals().plan([pod("a", meta={"annotations": annotations})], 0)

    @pytest.mark.parametrize("number", [1e-308, 1e-10, 1e11, 1e308, 10**400])
    def test_rates_and_durations_are_of_a_size_that_a_clock_can_add_up(self, number: float) -> None:
        with pytest.raises(ArrivalsError, match="arrival rate must be from 1e-09 to 1e"):
            Arrivals(rate=number)
        with pytest.raises(ArrivalsError, match="mean duration must be from 1e-09 to 1e"):
            Arrivals(mean_duration=number)

    @pytest.mark.parametrize("number", [0.0, -1.0, float("inf"), float("nan")])
    def test_rates_and_durations_are_positive(self, number: float) -> None:
        with pytest.raises(ArrivalsError, match="arrival rate must be positive"):
            Arrivals(rate=number)
        with pytest.raises(ArrivalsError, match="mean duration must be positive"):
            Arrivals(mean_duration=number)

    def test_own_durations_count_before_openbs(self) -> None:
        both = FrozenDict({**_openb(100, 150, 700), "kschedfw/duration-seconds": "5"})
        assert Arrivals().plan([pod("a", meta={"annotations": both})], 0) == {"uid-a": Stay(0.0, 5.0)}

    def test_without_own_times_what_is_drawn_is_drawn_for_all(self) -> None:
        timeless = [timed(f"p{i}", None) for i in range(5)]
        pods = [timed(f"p{i}", 50.0 + i, 9) for i in range(5)]
        drawn = Arrivals(rate=1, mean_duration=7)
        assert attrs.evolve(drawn, own_times=False).plan(pods, 1) == drawn.plan(timeless, 1)

    def test_times_that_are_not_drawn_stay_their_own(self) -> None:
        pods = [timed("a", 50, 9), timed("b", 55, 4)]
        coming = Arrivals(rate=1, own_times=False).plan(pods, 1)
        assert [stay.duration for stay in coming.values()] == [9.0, 4.0]
        staying = Arrivals(mean_duration=7, own_times=False).plan(pods, 1)
        assert [stay.arrival for stay in staying.values()] == [0.0, 5.0]

    def test_there_must_be_something_in_their_place(self) -> None:
        with pytest.raises(ArrivalsError, match="give an arrival rate, a mean duration, or both"):
            Arrivals(own_times=False)

    @pytest.mark.parametrize("given", [{"rate": "1"}, {"mean_duration": True}, {"own_times": "no"}])
    def test_what_is_no_number_is_told(self, given: dict[str, Any]) -> None:
        (name,) = given
        with pytest.raises(TypeError, match=f"{name}: expected "):
            Arrivals(**given)


class TestNotes:
    """An option that changes nothing is told of."""

    OWN = (timed("a", 0, 1), timed("b", 1, 1))

    def test_all_have_times_of_their_own(self) -> None:
        (note,) = replay(node("n1", cpu="4", pods="9"), *self.OWN, arrivals=Arrivals(1, 1)).notes
        assert note == (
            "all 2 pods have times of their own; --arrival-rate and --mean-duration change none "
            "(--ignore-own-times draws them nevertheless)"
        )
        (note,) = Arrivals(rate=1).notes(self.OWN)
        assert "; --arrival-rate changes none (" in note

    def test_else_nothing_is_said(self) -> None:
        assert not Arrivals(1, 1).notes([*self.OWN, timed("c", None)])
        assert not Arrivals(1, 1, own_times=False).notes(self.OWN)
        assert not Arrivals().notes(self.OWN)
        assert not Arrivals(1, 1).notes([])


def test_same_seed_same_replay() -> None:
    def once(seed: int) -> Report:
        nodes = [node(f"n{i}", cpu="2", pods="9") for i in range(3)]
        pods = [timed(f"p{i}", None, priority=i % 3) for i in range(40)]
        return replay(*nodes, *pods, arrivals=Arrivals(rate=1, mean_duration=8), seed=seed)

    assert once(1) == once(1)
    assert once(1).decisions != once(2).decisions


@settings(max_examples=examples(30))
@given(
    cpus=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    pods=st.lists(
        st.tuples(st.integers(0, 20), st.none() | st.integers(0, 20), st.integers(0, 2)), max_size=12
    ),
)
def test_the_room_is_never_overcommitted_and_every_pod_accounted_for(
    cpus: list[int], pods: list[tuple[int, int | None, int]]
) -> None:
    nodes = [node(f"n{i}", cpu=str(cpu), pods="99") for i, cpu in enumerate(cpus)]
    report = replay(*nodes, *(timed(f"p{i}", *times) for i, times in enumerate(pods)))
    assert len(report.decisions) == report.pods == len(pods)
    assert report.placed + report.preempted + report.unschedulable == len(pods)
    assert report.replay is not None
    assert all(peak.share <= 1 for peak in report.replay.peaks)
    for decision in report.decisions:
        if decision.bound is not None:
            assert decision.bound >= decision.arrived
        else:  # a pod waits in vain only if those that it could wait for stay for good
            assert any(duration is None for _, duration, _ in pods)


def _annotations(duration: float) -> FrozenDict[str, str]:
    return FrozenDict({"kschedfw/duration-seconds": f"{duration}"})


def _openb(creation: int, scheduled: int | None, deletion: int) -> FrozenDict[str, str]:
    times = {"creation": creation, "scheduled": scheduled, "deletion": deletion}
    return FrozenDict(
        {f"openb.trace/{event}-time": f"{time}" for event, time in times.items() if time is not None}
    )
