"""Recordings as clusters of sweeps."""

from __future__ import annotations

from pathlib import Path

import pytest
from kschedfw_lab import Sweep, run_one
from kschedfw_replay import Change, ChangeType, RecordingError, State
from kschedfw_replay.replaying.trace import read_trace
from recording.histories import write
from replaying.scenes import START, Arrival, RecordedCluster, nodes, pod

from kschedfw import Node, Pod, Registry
from kschedfw.api import to_manifest


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
    assert (metrics["placed"], metrics["departed"]) == (8, 7)
    # p4 to p7 wait for p0 to p3, which end at 40, 45 and so on.
    assert metrics["wait_seconds.max"] == pytest.approx(20.0, abs=1e-3)
    assert metrics["wait_seconds.p50"] == pytest.approx(0.0, abs=1e-3)


def test_window_begins_with_the_pods_that_are_there_until_they_leave(recording: Path) -> None:
    objects = read_trace(recording, START + 12, START + 90)
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
    created = pods["p3"].metadata.creation_timestamp
    assert created is not None
    assert created.timestamp() == START + 15


def test_pod_that_leaves_before_the_first_arrival_is_left_out(tmp_path: Path) -> None:
    coming = [Arrival(START, pod("short"), duration=5.0), Arrival(START + 20, pod("late"), duration=5.0)]
    write(tmp_path / "r", RecordedCluster(nodes(1), Registry()).run(coming, START + 30))
    objects = read_trace(tmp_path / "r", START + 2, START + 30)
    assert [each.name for each in objects if isinstance(each, Pod)] == ["late"]


def test_pods_with_the_same_name_get_others_and_nodes_are_those_of_the_begin(tmp_path: Path) -> None:
    first, late = to_manifest(pod("web-0")), nodes(2)[1]
    write(
        tmp_path / "r",
        [
            State(0.0, (to_manifest(nodes(1)[0]),)),
            Change(1.0, ChangeType.ADDED, first),
            Change(2.0, ChangeType.DELETED, first),
            Change(3.0, ChangeType.ADDED, first),
            Change(4.0, ChangeType.ADDED, to_manifest(late)),
            Change(5.0, ChangeType.ADDED, to_manifest(pod("static").bound_to("n0"))),
        ],
    )
    objects = read_trace(tmp_path / "r")
    assert [each.name for each in objects if isinstance(each, Pod)] == ["web-0", "web-0.2"]
    assert len({each.uid for each in objects if isinstance(each, Pod)}) == 2
    assert [each.name for each in objects if isinstance(each, Node)] == ["n0"]


def test_window_without_records_is_refused(recording: Path) -> None:
    with pytest.raises(RecordingError, match="nothing was recorded in that time"):
        read_trace(recording, 0.0, START - 1)
