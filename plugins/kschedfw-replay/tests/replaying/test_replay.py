"""What replays make of recordings."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_replay import ChangeType, Gap, Record, RecordedChange, RecordingError, State
from kschedfw_replay.replaying.comparing import ReplayComparison, replay_recording
from kschedfw_replay.replaying.history import History
from kschedfw_replay.replaying.measures import Waits
from kschedfw_replay.shadow.decision import Agreement, Cause, Comparison
from recording.histories import histories
from replaying.scenes import START, Arrival, RecordedCluster, arrivals, nodes, pod

from kschedfw import (
    CycleState,
    Framework,
    GenericScheduler,
    Pod,
    Registry,
    SchedulerConfiguration,
    ScheduleResult,
    default_profile,
)
from kschedfw.api import Named, to_manifest
from kschedfw.config import preset_configuration
from kschedfw.scheduler import Setup
from kschedfw.scheduler.queue import SchedulingQueue

DEFAULT = Setup("default", SchedulerConfiguration(profiles=(default_profile(),)))
REGISTRY = Registry()


def replayed(records: list[Record], **options: Any) -> ReplayComparison:
    return replay_recording(records, [DEFAULT], registry=REGISTRY, **options)


def on(node: str, of: Pod) -> Pod:
    return attrs.evolve(of, spec=attrs.evolve(of.spec, node_name=node))


def state(*objects: Named, at: float = 0.0) -> State:
    return State(at, tuple(map(to_manifest, objects)))


def added(at: float, obj: Named) -> RecordedChange:
    return RecordedChange(at, ChangeType.ADDED, to_manifest(obj))


def changed(at: float, obj: Named) -> RecordedChange:
    return RecordedChange(at, ChangeType.MODIFIED, to_manifest(obj))


def deleted(at: float, obj: Named) -> RecordedChange:
    return RecordedChange(at, ChangeType.DELETED, to_manifest(obj))


@given(arrivals())
@settings(max_examples=6)
def test_the_recorded_configuration_differs_in_nothing_but_ties_and_with_its_seed_in_nothing(
    coming: list[Arrival],
) -> None:
    records = RecordedCluster(nodes(3), REGISTRY).run(coming, START + 100)
    comparison = replayed(records, fidelity=True)
    assert comparison.fidelity is not None
    assert comparison.fidelity.decisions > 0
    assert comparison.fidelity.agreeing == 1.0
    (run,) = comparison.runs
    assert (run.moved, run.gained, run.lost) == (0, 0, 0)
    assert run.measures == comparison.recorded


@pytest.mark.parametrize("last", range(1, 8))
def test_decisions_of_the_last_half_second_are_compared_on_the_state_that_they_were_made_on(
    last: int,
) -> None:
    """However many there are: the shadow holds them all until it is asked for the report."""
    coming = [pod(f"p{index}", "3") for index in range(last)]
    # Each node takes one pod, and each was full, or not there, when the pods before were decided.
    records: list[Record] = [state(*nodes(1)), added(5.0, pod("first", "3"))]
    records.append(changed(5.01, on("n0", pod("first", "3"))))
    for index, each in enumerate(coming):
        at = 10.0 + index * 0.05
        records += [
            added(at, nodes(last + 1)[index + 1]),
            added(at + 0.01, each),
            changed(at + 0.02, on(f"n{index + 1}", each)),
        ]
    fidelity = replayed(records, fidelity=True).fidelity
    assert fidelity is not None
    assert fidelity.counts == {(Agreement.SAME, None): last + 1}


@given(arrivals(), st.sampled_from([0.0, 400.0, 20_000.0]))
@settings(max_examples=8)
def test_report_is_the_same_as_if_pods_had_been_tried_at_each_timeout(
    coming: list[Arrival], quiet: float
) -> None:
    never = [Arrival(START + 1, pod(f"never{index}", "64", index)) for index in range(2)]
    late = [attrs.evolve(each, at=each.at + quiet, deleted_at=None) for each in coming[::2]]
    records = RecordedCluster(nodes(3), REGISTRY).run([*never, *coming[1::2], *late], START + quiet + 700)
    still = replayed(records)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SchedulingQueue, "_rests", lambda _self: False)
        retried = replayed(records)
    assert still.to_json() == retried.to_json()


def test_pods_that_wait_for_ten_years_are_tried_only_as_long_as_something_may_differ(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attempts: Counter[str] = Counter()
    schedule = GenericScheduler.schedule

    def counted(self: GenericScheduler, framework: Framework, state: CycleState, pod: Pod) -> ScheduleResult:
        attempts[pod.name] += 1
        return schedule(self, framework, state, pod)

    monkeypatch.setattr(GenericScheduler, "schedule", counted)
    ten_years = 10 * 365 * 86_400.0
    waiting = [added(10.0 + index, pod(f"never{index}", "64")) for index in range(5)]
    (run,) = replayed([state(*nodes(2)), *waiting, added(ten_years, pod("end"))]).runs
    assert run.measures.pending == 5
    # A million times each with all timeouts.
    assert max(attempts.values()) < 10


def test_pod_that_is_bound_earlier_than_recorded_also_leaves_earlier() -> None:
    first, second = pod("first", "4"), pod("second", "4")
    records: list[Record] = [
        state(*nodes(1)),
        added(10.0, first),
        changed(20.0, on("n0", first)),
        added(22.0, second),
        deleted(25.0, on("n0", first)),
        changed(30.0, on("n0", second)),
        deleted(40.0, on("n0", second)),
    ]
    comparison = replayed(records)
    assert (comparison.recorded.waits.p50, comparison.recorded.waits.max) == (8.0, 10.0)
    measures = comparison.runs[0].measures
    assert (measures.bound, measures.waits.max) == (2, 0.0), "the first one has left at 15"
    assert measures.utilisation["cpu"] == comparison.recorded.utilisation["cpu"] == 15 / 40


def test_pod_that_was_never_bound_leaves_when_it_was_deleted() -> None:
    small = pod("small", "1")
    records: list[Record] = [
        state(*nodes(1)),
        added(10.0, small),
        deleted(20.0, small),
        added(40.0, pod("other")),
    ]
    (run,) = replayed(records).runs
    assert (run.gained, run.measures.bound, run.measures.pending) == (2, 2, 0)
    assert run.measures.utilisation["cpu"] == 10 / 160


def test_pod_that_runs_where_its_node_goes_comes_back_for_the_rest_of_its_time() -> None:
    first, second = nodes(2)
    refused = attrs.evolve(second, spec=attrs.evolve(second.spec, unschedulable=True))
    moving = pod("moving", "1")
    records: list[Record] = [
        state(first, refused),
        added(10.0, moving),
        changed(10.0, on("n1", moving)),
        deleted(20.0, first),
        changed(30.0, second),
        deleted(40.0, on("n1", moving)),
        added(90.0, pod("end")),
    ]
    (run,) = replayed(records).runs
    assert run.moved == 1
    assert run.why == {"NodeUnschedulable: node(s) were unschedulable": 1}
    assert (run.measures.evictions, run.measures.bound) == (1, 3)
    assert run.measures.waits.max == 10.0, "from the end of the one node until the other one is there"
    used = run.measures.utilisation["cpu"] * (20 + 90) * 4
    assert used == pytest.approx(30.0, abs=0.001), "10 s on the first node and 20 s on the second one"


def test_pod_waits_for_one_of_its_name_that_still_runs() -> None:
    blocking, old, new = pod("blocking", "4"), pod("db-0", "4"), pod("db-0", "1")
    first, second = nodes(2)
    refused = attrs.evolve(second, spec=attrs.evolve(second.spec, unschedulable=True))
    records: list[Record] = [
        state(on("n0", blocking), first, refused),
        added(10.0, old),
        changed(10.0, on("n1", old)),  # which refuses it in the replay
        deleted(20.0, on("n1", old)),
        deleted(30.0, on("n0", blocking)),
        added(31.0, new),
        changed(31.0, on("n0", new)),
        deleted(33.0, on("n0", new)),
        added(100.0, pod("end", "1")),
    ]
    (run,) = replayed(records).runs
    assert (run.moved, run.same) == (1, 1)
    # On n0: the blocking pod for 30 s, the old one for 10 s from then on, then the new one for 2 s.
    assert run.measures.utilisation["cpu"] * 8 * 100 == pytest.approx(4 * 30 + 4 * 10 + 1 * 2, abs=0.001)


def test_differences_after_a_gap_happen_at_its_end() -> None:
    lost, kept = on("n0", pod("lost")), on("n0", pod("kept"))
    records: list[Record] = [
        state(*nodes(1), lost, kept),
        Gap(10.0, 20.0, "the recorder wasn't running"),
        state(*nodes(1), kept, on("n0", pod("new")), at=20.0),
    ]
    happened = [(each.at, each.object.name, each.new is not None) for each in History(records) if each.at > 0]
    assert happened == [(20.0, "lost", False), (20.0, "new", True)]
    assert replayed(records).gaps == 1


def test_window_begins_with_the_state_at_its_begin_and_leaves_out_what_comes_later() -> None:
    records: list[Record] = [
        state(*nodes(1)),
        added(10.0, pod("early")),
        changed(11.0, on("n0", pod("early"))),
        added(30.0, pod("inside")),
        added(60.0, pod("late")),
    ]
    history = History(records, since=20.0, until=50.0)
    assert [(each.at, each.object.name) for each in history] == [
        (20.0, "n0"),
        (20.0, "early"),
        (30.0, "inside"),
    ]
    assert (history.begins, history.ends) == (20.0, 50.0)
    with pytest.raises(RecordingError, match="nothing was recorded in that time"):
        replayed(records, since=-20.0, until=-10.0)


@given(histories())
@settings(max_examples=6)
def test_any_recording_is_replayed_whatever_its_objects_are(records: list[Record]) -> None:
    happened = list(History(records))
    if not happened:
        with pytest.raises(RecordingError, match="no object was recorded in that time"):
            replayed(records)
        return
    comparison = replayed(records, fidelity=True)
    appeared = sum(isinstance(each.new, Pod) and each.old is None for each in happened)
    assert comparison.pods == appeared
    assert all(run.measures.bound == 0 for run in comparison.runs), "there are no nodes"


def test_pod_that_is_on_another_node_suddenly_counts_as_another_pod() -> None:
    records: list[Record] = [
        state(*nodes(2), on("n0", pod("a"))),
        changed(5.0, on("n1", pod("a"))),
        changed(6.0, pod("a")),
    ]
    appeared = [each.at for each in History(records) if isinstance(each.object, Pod) and each.old is None]
    assert appeared == [0.0, 5.0, 6.0]
    assert replayed(records).pods == 3


def test_recording_that_is_written_meanwhile_is_replayed_as_far_as_it_was_surveyed() -> None:
    class Growing(list[Record]):
        def __iter__(self) -> Iterator[Record]:
            yield from tuple(super().__iter__())
            self.append(added(5.0, pod(f"p{len(self)}")))

    assert replayed(Growing([state(*nodes(1)), added(5.0, pod("first"))])).pods == 1


def test_recording_whose_begin_is_deleted_meanwhile_is_told() -> None:
    class Shrinking(list[Record]):
        def __iter__(self) -> Iterator[Record]:
            yield from tuple(super().__iter__())
            del self[0]

    with pytest.raises(RecordingError, match="the begin of the recording was deleted while it was read"):
        replayed(Shrinking([state(*nodes(1)), state(*nodes(1), at=1.0), state(*nodes(1), at=2.0)]))


def test_quantiles_of_waits_are_by_nearest_rank() -> None:
    waits = Waits.of(array("d", range(1, 20)), array("d", [20.0]))
    assert waits == Waits(pods=20, p50=10.0, p95=19.0, p99=20.0, max=20.0)
    assert Waits.of() == Waits()


def disagreements(records: list[Record], setup: Setup = DEFAULT) -> Mapping[str, Comparison]:
    report = replay_recording(records, [setup], fidelity=True, registry=REGISTRY).fidelity
    assert report is not None
    return {each.recorded.pod.name: each for each in report.examples}


def test_fidelity_tells_a_better_node_from_one_that_refuses_the_pod_and_from_a_refusal() -> None:
    full, free = nodes(2)
    outscored, refused, patient = pod("outscored", "1"), pod("refused", "3"), pod("patient", "1")
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no"}
    told = {**to_manifest(patient), "status": {"conditions": [condition]}}
    records: list[Record] = [
        state(full, free, on("n0", pod("there", "2"))),
        added(1.0, outscored),
        changed(1.0, on("n0", outscored)),
        added(2.0, refused),
        changed(2.0, on("n0", refused)),
        added(3.0, patient),
        RecordedChange(3.0, ChangeType.MODIFIED, told),
    ]
    found = disagreements(records)
    assert {name: (each.agreement, each.cause) for name, each in found.items()} == {
        "outscored": (Agreement.BETTER, Cause.UNKNOWN),
        "refused": (Agreement.REFUSED_HERE, Cause.UNKNOWN),
        "patient": (Agreement.PLACED_HERE, Cause.UNKNOWN),
    }
    assert "NodeResourcesFit" in found["outscored"].points
    assert (found["refused"].plugin, found["refused"].reason) == ("NodeResourcesFit", "Insufficient cpu")


def test_packing_moves_pods_that_the_default_spreads_and_says_which_plugin_does_it() -> None:
    records = RecordedCluster(nodes(3), REGISTRY).run(
        [Arrival(START + index, pod(f"p{index}", "500m")) for index in range(6)], START + 20
    )
    packing = Setup.of("packing", preset_configuration("ClusterAutoscalerProvider"))
    comparison = replay_recording(records, [DEFAULT, packing], registry=REGISTRY)
    as_recorded, packed = comparison.runs
    assert (as_recorded.moved, packed.measures.bound) == (0, 6)
    assert packed.moved > 0
    assert any("NodeResources" in reason for reason in packed.why)


def test_pod_that_moved_between_equal_nodes_moved_for_a_tie_however_the_explanation_draws() -> None:
    coming = [Arrival(START + index, pod(f"p{index}", "500m"), duration=0.5) for index in range(20)]
    records = RecordedCluster(nodes(3), REGISTRY).run(coming, START + 30)
    (run,) = replayed(records, seed=5).runs
    assert run.moved > 5
    assert run.why == {"tie": run.moved}
