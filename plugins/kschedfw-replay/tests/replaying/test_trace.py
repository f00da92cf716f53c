"""Recordings as clusters of sweeps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_lab import Sweep, run_one
from kschedfw_lab.sweep.draws import Draw, drawn
from kschedfw_replay import ChangeType, Record, RecordedChange, RecordingError, State
from kschedfw_replay.replaying.trace import read_trace
from recording.histories import write
from replaying.scenes import START, Arrival, RecordedCluster, nodes, pod

from kschedfw import InMemoryCluster, Node, Pod, Registry, make_node
from kschedfw.api import Named, to_manifest
from kschedfw.cluster import EventType, WatchEvent
from kschedfw.simulator import Arrivals, Simulation
from kschedfw.testing.properties import examples


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight pods on one node of four CPUs, one every five seconds, each for 40 seconds; the last one stays."""
    path = tmp_path_factory.mktemp("recordings") / "recording"
    coming = [
        Arrival(START + 5 * index, pod(f"p{index}"), duration=None if index == 7 else 40.0)
        for index in range(8)
    ]
    write(path, RecordedCluster(nodes(1), Registry()).run(coming, START + 100))
    return path


def test_sweep_of_a_recording_waits_as_the_recorded_cluster_did(recording: Path) -> None:
    sweep = Sweep({"cluster": {"recording": recording.name}, "seed": [0, 1]}, folder=recording.parent)
    metrics = run_one(sweep.plan().runs[0])
    assert (metrics["placed"], metrics["departed"]) == (8, 8)
    assert metrics["makespan_seconds"] == 100.0  # p7, which was still there, leaves with the end
    # p4 to p7 wait for p0 to p3, which end at 40, 45 and so on.
    assert metrics["wait_seconds.max"] == pytest.approx(20.0, abs=1e-3)
    assert metrics["wait_seconds.p50"] == pytest.approx(0.0, abs=1e-3)


def test_window_begins_with_the_pods_that_are_there_until_they_leave(recording: Path) -> None:
    objects = read_trace(recording, START + 12, START + 90).objects
    pods = {each.name: each for each in objects if isinstance(each, Pod)}
    assert [(name, each.node_name) for name, each in pods.items()][:4] == [
        ("p0", "n0"),
        ("p1", "n0"),
        ("p2", "n0"),
        ("p3", ""),
    ]
    remaining = [float(pods[name].annotations["kschedfw/duration-seconds"]) for name in ("p0", "p1", "p3")]
    # The window begins at 12, the first arrival of it is at 15: a simulation counts from there.
    assert remaining == pytest.approx([25.0, 30.0, 40.0])
    assert "kschedfw/duration-seconds" not in pods["p7"].annotations
    assert pods["p7"].annotations["kschedfw/lifetime-seconds"] == "55.0"  # from 35 to 90
    created = pods["p3"].metadata.creation_timestamp
    assert created is not None
    assert created.timestamp() == START + 15


def test_pod_that_leaves_before_the_first_arrival_is_left_out(tmp_path: Path) -> None:
    coming = [Arrival(START, pod("short"), duration=5.0), Arrival(START + 20, pod("late"), duration=5.0)]
    write(tmp_path / "r", RecordedCluster(nodes(1), Registry()).run(coming, START + 30))
    objects = read_trace(tmp_path / "r", START + 2, START + 30).objects
    assert [each.name for each in objects if isinstance(each, Pod)] == ["late"]


def test_pod_that_was_never_bound_leaves_when_it_was_deleted_also_if_it_is_placed(tmp_path: Path) -> None:
    """As in a replay. Nobody bound the first one and the last one in the recorded cluster."""
    state = State(START, tuple(map(to_manifest, nodes(1))))
    changes = [
        RecordedChange(at, ChangeType.ADDED, to_manifest(each))
        for at, each in ((START, pod("first", "3")), (START + 1, pod("huge", "9")), (START + 2, pod("late")))
    ]
    deleted = [
        RecordedChange(at, ChangeType.DELETED, each.manifest)
        for at, each in zip((START + 10, START + 12), changes[:2], strict=True)
    ]
    write(tmp_path / "r", [state, *changes, *deleted, RecordedChange(START + 20, ChangeType.ADDED, TICK)])
    lifetimes = {
        each.name: each.annotations["kschedfw/lifetime-seconds"]
        for each in read_trace(tmp_path / "r").objects
        if isinstance(each, Pod)
    }
    assert lifetimes == {"first": "10.0", "huge": "11.0", "late": "18.0"}
    metrics = run_one(Sweep({"cluster": {"recording": "r"}}, folder=tmp_path).plan().runs[0])
    assert (metrics["placed"], metrics["unschedulable"], metrics["failed"]) == (2, 1, 0)
    assert metrics["pending.Insufficient cpu"] == 1
    assert metrics["makespan_seconds"] == 20.0


def test_recorded_state_without_changes_has_its_pods_tried_beside_those_that_are_bound(
    tmp_path: Path,
) -> None:
    bound = pod("bound", "3").bound_to("n0")
    objects = (*nodes(1), bound, pod("fits"), pod("too-much", "2"))
    write(tmp_path / "r", [State(START, tuple(map(to_manifest, objects)))])
    metrics = run_one(Sweep({"cluster": {"recording": "r"}}, folder=tmp_path).plan().runs[0])
    assert (metrics["placed"], metrics["unschedulable"]) == (1, 1)


def test_pods_with_the_same_name_get_others_and_nodes_are_those_of_the_begin(tmp_path: Path) -> None:
    first, late = to_manifest(pod("web-0")), nodes(2)[1]
    write(
        tmp_path / "r",
        [
            State(0.0, (to_manifest(nodes(1)[0]),)),
            RecordedChange(1.0, ChangeType.ADDED, first),
            RecordedChange(2.0, ChangeType.DELETED, first),
            RecordedChange(3.0, ChangeType.ADDED, first),
            RecordedChange(4.0, ChangeType.ADDED, to_manifest(late)),
            RecordedChange(5.0, ChangeType.ADDED, to_manifest(pod("static").bound_to("n0"))),
        ],
    )
    objects = read_trace(tmp_path / "r").objects
    assert [each.name for each in objects if isinstance(each, Pod)] == ["web-0", "web-0.2"]
    assert len({each.uid for each in objects if isinstance(each, Pod)}) == 2
    assert [each.name for each in objects if isinstance(each, Node)] == ["n0"]


# --- presence ---

DAY = 86_400.0
TOLERANCE = 1e-3
"""Seconds: arrivals have whole microseconds, and a run's times are sums."""
TICK = to_manifest(make_node("tick").unschedulable().build())


@attrs.frozen
class Presence:
    """When a pod was in a recording: from its arrival on; bound, and deleted, at a time or never."""

    begins: float
    bound: float | None
    ends: float | None


@st.composite
def presences(draw: st.DrawFn) -> tuple[list[Presence], float]:
    """Pods of some days, each bound after a while or never, and deleted some time later or never; and the end."""
    days = draw(st.integers(2, 4))
    found = []
    for day in range(days):
        for hour in draw(st.lists(st.integers(0, 23), min_size=1, max_size=4)):
            begins = START + day * DAY + hour * 3600.0
            bound = draw(st.none() | st.sampled_from((0.0, 60.0)))
            ends = draw(st.none() | st.sampled_from((600.0, 0.3 * DAY, 1.5 * DAY)))
            found.append(
                Presence(
                    begins,
                    None if bound is None else begins + bound,
                    None if ends is None else begins + (bound or 0.0) + ends,
                )
            )
    return found, START + days * DAY + draw(st.sampled_from((0.0, 0.2 * DAY)))


def records(presences: list[Presence], end: float) -> list[Record]:
    """What a recorder would have written; the last record is at the end."""
    happenings = [(end, 0, RecordedChange(end, ChangeType.ADDED, TICK))]
    for number, each in enumerate(presences):
        of_it = pod(f"p{number}", "1m")
        times = ((each.begins, of_it), (each.bound, of_it.bound_to("n0")), (each.ends, None))
        for order, (at, state) in enumerate(times):
            if at is not None and at < end:
                change = ChangeType.DELETED if state is None else ChangeType.MODIFIED
                manifest = to_manifest(of_it if state is None else state)
                happenings.append((at, order, RecordedChange(at, change, manifest)))
    happenings.sort(key=lambda each: each[:2])
    return [State(START, tuple(map(to_manifest, nodes(1)))), *(change for *_, change in happenings)]


def in_simulation(objects: Sequence[Named]) -> list[tuple[str, float, float]]:
    """The name of each pod, and from when to when it is there, in seconds from the first arrival."""
    cluster = InMemoryCluster(each for each in objects if not isinstance(each, Node) or each.name == "n0")
    simulation = Simulation(cluster, arrivals=Arrivals())
    came = dict.fromkeys((each.name for each in cluster.list(Pod)), 0.0)
    left: dict[str, float] = {}

    def see(event: WatchEvent) -> None:
        if not isinstance(event.object, Pod):
            return
        if event.type is EventType.ADDED:
            came.setdefault(event.object.name, simulation.virtual_time)
        elif event.type is EventType.DELETED:
            left[event.object.name] = simulation.virtual_time

    stop = cluster.watch(see)
    simulation.run()
    stop()
    return [(name, at, left[name]) for name, at in came.items()]  # everybody leaves


@settings(max_examples=examples(60, usual=10))
@given(presences(), st.sampled_from([None, *Draw]), st.integers(0, 3))
def test_pod_is_in_a_drawn_recording_for_no_longer_than_in_the_recording_and_never_after_its_end(
    recording: tuple[list[Presence], float], draw: Draw | None, seed: int
) -> None:
    """So at no time more pods are there than the drawn days or pods have together, each moved as it is."""
    presences, end = recording
    with TemporaryDirectory() as folder:
        write(Path(folder, "r"), records(presences, end))
        objects = read_trace(Path(folder, "r")).objects
    first = min(each.begins for each in presences)
    last = max(each.begins for each in presences)
    days = int((last - first) // DAY) + 1
    if draw is Draw.DAYS and days < 2:
        return
    found = in_simulation(objects if draw is None else drawn(objects, draw, seed))
    for name, came, left in found:
        original = presences[int(name.split(".")[0][1:])]
        stayed = min(original.ends or math.inf, end) - original.begins
        assert left - came <= stayed + TOLERANCE
        if original.bound is None or original.ends is None or original.ends > end:
            assert left <= max(end - first, days * DAY if draw is Draw.DAYS else 0.0) + TOLERANCE
            if draw is None:
                assert (came, left - came) == pytest.approx((original.begins - first, stayed), abs=TOLERANCE)
    if draw is not Draw.DAYS:
        assert len(found) == len(presences)


def test_window_without_records_is_refused(recording: Path) -> None:
    with pytest.raises(RecordingError, match="nothing was recorded in that time"):
        read_trace(recording, 0.0, START - 1)
