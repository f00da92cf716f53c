"""A measurement says what was done; how fast that was is the business of tests/benchmarks."""

from __future__ import annotations

import gc
import time
from typing import Any

import attrs
import pytest
from bench.plugins import Broken, Noting
from kschedfw_lab.bench import measure as measuring
from kschedfw_lab.bench.measure import TRIAL_PODS, measure
from kschedfw_lab.bench.results import Latency, Measurement, Part
from kschedfw_lab.bench.stage import ADAPTIVE, ALL_NODES, Case
from kschedfw_lab.bench.workload import Placement
from kschedfw_lab.bench.workloads import DISTINCT_WORKLOADS, WORKLOADS

from kschedfw import Registry, SchedulingError
from kschedfw.cli.enabled import changed_default_profile

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("_little_garbage")]

INSTALLED = Registry()
"""Shared, since finding out what is installed takes longer than most measurements here."""

each_part = pytest.mark.parametrize("part", Part)


class Ticking:
    """A timer on which every look costs the same, in seconds."""

    def __init__(self, step: float = 1.0) -> None:
        self._now = 0.0
        self._step = step

    def __call__(self) -> float:
        self._now += self._step
        return self._now


def case(workload: str, *, nodes: int = 20, initial_pods: int = 10, pods: int = 5, **changes: Any) -> Case:
    return attrs.evolve(Case(workload, nodes, initial_pods, pods), **changes)


def measured(workload: str, part: Part, **changes: Any) -> Measurement:
    return measure(case(workload, part=part, **changes), time.perf_counter, registry=INSTALLED)


@each_part
@pytest.mark.parametrize(
    "name", [*WORKLOADS, *(pytest.param(each, marks=pytest.mark.nightly) for each in DISTINCT_WORKLOADS)]
)
def test_deals_with_every_pod(name: str, part: Part) -> None:
    found = measured(name, part)
    assert found.finished == found.wanted == 5
    assert found.placed == (0 if name.startswith("unschedulable") and "churn" not in name else 5)
    assert found.attempts >= (1 if found.members else 5)
    assert 0 < found.latency.p50 <= found.latency.p99 <= found.latency.max <= found.seconds
    assert found.pods_per_second > 0


@each_part
@pytest.mark.parametrize("placement", Placement)
def test_initial_pods_are_there_however_they_came(placement: Placement, part: Part) -> None:
    # each node has room for one pod of this colour
    found = measured("pod-anti-affinity", part, initial_pods=17, own_placement=placement)
    assert (found.finished, found.placed) == (5, 3)


def test_preemption_makes_room_end_to_end_only() -> None:
    full = {"nodes": 5, "initial_pods": 20, "pods": 3}
    alone, whole = (measured("preemption", part, **full) for part in Part)
    assert (alone.finished, alone.placed) == (3, 0)
    assert (whole.finished, whole.placed) == (3, 3)
    assert whole.attempts == 6, "one to make room, one to take it"


@each_part
def test_an_attempt_is_that_of_a_whole_gang(part: Part) -> None:
    found = measured("gang", part, nodes=6, pods=7, own_members=3, own_racks=2)
    assert (found.finished, found.placed, found.attempts) == (7, 7, 3), (
        "the last gang has the pod that is left"
    )
    assert (found.members, found.racks) == (3, 2)
    assert found.pods_per_second > 0


def test_a_gang_keeps_to_a_rack_and_takes_less_time_without_what_surrounds_the_algorithm() -> None:
    gangs = case("gang", nodes=6, pods=6, own_members=3, own_racks=2, part=Part.ALGORITHM)
    alone = measure(gangs, Ticking(1.0), cpu_timer=Ticking(1.0), registry=INSTALLED)
    racks = [int(place.removeprefix("node-")) % 2 for place in alone.places]
    assert [len({*racks[:3]}), len({*racks[3:]})] == [1, 1]
    assert alone.calls_per_pod is not None
    assert alone.calls_per_pod > 10
    assert alone.create_seconds == 0
    whole = attrs.evolve(gangs, part=Part.END_TO_END)
    assert alone.seconds < measure(whole, Ticking(1.0), cpu_timer=Ticking(1.0), registry=INSTALLED).seconds


@each_part
def test_preemption_makes_room_for_pods_that_differ_too(part: Part) -> None:
    full = {"nodes": 5, "initial_pods": 20, "pods": 3}
    assert measured("preemption-distinct", part, **full).placed == (0 if part is Part.ALGORITHM else 3)


@each_part
def test_the_processor_s_time_is_beside_the_real_one(part: Part) -> None:
    wall, processor = Ticking(0.5), Ticking(0.25)  # the scheduler looks at the wall's some twenty times a pod
    found = measure(case("basic", part=part, pods=4), wall, cpu_timer=processor, registry=INSTALLED)
    assert found.cpu_seconds == 4 * 0.25
    assert found.cpu_seconds_per_pod == 0.25
    assert found.to_json()["cpuSecondsPerPod"] == 0.25


def test_calls_of_a_pod_are_counted_in_the_algorithm_alone_and_the_same_every_time() -> None:
    first, second = (measured("basic", Part.ALGORITHM, nodes=20).calls_per_pod for _ in range(2))
    assert first == second
    assert first is not None
    assert first > 10
    assert measured("basic", Part.END_TO_END).calls_per_pod is None


@each_part
def test_what_is_done_between_attempts_takes_none_of_their_time(part: Part) -> None:
    processor, calls = Ticking(1.0), 0

    def between() -> None:
        nonlocal calls
        calls += 1
        processor()

    found = measure(case("basic", part=part), time.perf_counter, cpu_timer=processor, between=between)
    assert (calls, found.cpu_seconds) == (found.attempts, found.attempts)


@each_part
def test_ends_when_the_time_is_up(part: Part) -> None:
    found = measure(case("basic", part=part, time_limit=3.0), Ticking())
    assert found.finished == found.attempts < found.wanted
    assert found.seconds >= 3.0


def test_initial_pods_that_take_too_long_are_bound() -> None:
    for part in Part:
        limited = case("preferred-pod-affinity", part=part, initial_pods=10, time_limit=4.0)
        assert measure(limited, Ticking()).initial_pods == 10


@pytest.mark.parametrize(("part", "tick"), [(Part.ALGORITHM, 0.05), (Part.END_TO_END, 0.005)])
def test_churn_takes_time_but_is_not_counted(part: Part, tick: float) -> None:
    found = measure(case("unschedulable-churn", part=part, pods=20, time_limit=200.0), Ticking(tick))
    assert (found.finished, found.placed) == (20, 20)
    assert found.attempts > 20


@each_part
def test_all_nodes_or_a_part(part: Part) -> None:
    for percentage in (ADAPTIVE, ALL_NODES):
        assert measured("basic", part, percentage=percentage).percentage == percentage


def test_leaves_the_garbage_collector_as_it_was() -> None:
    before = list(gc.callbacks)
    measured("basic", Part.ALGORITHM)
    assert (gc.isenabled(), gc.callbacks) == (True, before)


def test_creating_pods_is_counted_by_itself() -> None:
    assert measured("basic", Part.END_TO_END).create_seconds > 0
    assert measured("basic", Part.ALGORITHM).create_seconds == 0


def test_a_plugin_that_fails_ends_the_algorithm_and_costs_the_scheduler_attempts() -> None:
    registry = Registry()
    registry.register(Broken)
    profile = changed_default_profile(["Broken"], [])
    with pytest.raises(SchedulingError, match="no idea"):
        measure(case("basic", profile=profile), time.perf_counter, registry=registry)
    whole = case("basic", profile=profile, part=Part.END_TO_END)
    assert measure(whole, time.perf_counter, registry=registry).placed == 0


@each_part
def test_pods_like_the_measured_ones_are_tried_before_the_first_of_them(part: Part) -> None:
    registry = Registry()
    registry.register(Noting)
    Noting.asked.clear()
    profile = changed_default_profile(["Noting"], [])
    found = measure(
        case("claim-template", initial_pods=0, profile=profile, part=part),
        time.perf_counter,
        registry=registry,
    )
    names = list(Noting.asked)
    assert names.index("pod-0") == TRIAL_PODS
    assert found.attempts == found.wanted == 5


@pytest.mark.parametrize(
    "name", ["unschedulable", "claim-partitions", "pod-anti-affinity", "csi-volumes-distinct"]
)
def test_pods_that_are_tried_before_change_no_place(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = measured(name, Part.ALGORITHM).places
    monkeypatch.setattr(measuring, "TRIAL_PODS", 0)
    assert measured(name, Part.ALGORITHM).places == tried


def test_percentiles_are_by_nearest_rank() -> None:
    assert Latency.of([float(i) for i in range(1, 101)]) == Latency(50.0, 99.0, 100.0)
    assert Latency.of([2.0, 1.0]) == Latency(1.0, 2.0, 2.0)
    assert Latency.of([]) == Latency()


def test_other_sizes_keep_the_proportions() -> None:
    half = Case.of(WORKLOADS["topology-spreading"], nodes=2500)
    assert (half.nodes, half.initial_pods, half.pods) == (2500, 2500, 1000)
    given = Case.of(WORKLOADS["topology-spreading"], nodes=2500, initial_pods=0, pods=7)
    assert (given.initial_pods, given.pods) == (0, 7)
    assert Case.of(WORKLOADS["basic"], nodes=1).pods == 1
