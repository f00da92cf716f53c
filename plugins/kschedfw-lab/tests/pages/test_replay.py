"""The data of simulations that the page is given."""

from __future__ import annotations

import importlib
from array import array

import pytest
from kschedfw_lab.pages.cluster_map import ABSENT
from kschedfw_lab.pages.replay import ReplayView, replay

from kschedfw import InMemoryCluster, make_node, make_pod
from kschedfw.api.node import Node
from kschedfw.simulator import Simulation, Timeline


def simulated(*, pods: int, nodes: int = 1) -> tuple[InMemoryCluster, Timeline, ReplayView]:
    offered = [make_node(f"node-{number}").capacity(cpu=2, pods=10).build() for number in range(nodes)]
    asked = [make_pod(f"pod-{number}").requests(cpu="1").build() for number in range(pods)]
    cluster, timeline = InMemoryCluster([*offered, *asked]), Timeline()
    report = Simulation(cluster, timeline=timeline).run()
    return cluster, timeline, replay(cluster.list(Node), [("run", timeline, report)])


def test_a_run_as_columns() -> None:
    _, _, found = simulated(pods=3)
    (run,) = found.runs
    assert found.map.pods.names == ["default/pod-0", "default/pod-1", "default/pod-2"]
    assert run.start == -1, "all are pending"
    assert (run.moves.steps, run.moves.pods, run.moves.nodes) == ([1, 2], [0, 1], 0)
    assert run.queues["active"] == [3, 2, 1, 0]
    assert [(each.pod, each.outcome) for each in run.outcomes] == [
        (0, "placed"),
        (1, "placed"),
        (2, "unschedulable"),
    ]
    assert ("unschedulable", "1") in run.figures


def test_runs_share_pods_and_nodes_by_name() -> None:
    cluster, timeline, _ = simulated(pods=1)
    report = Simulation(InMemoryCluster(), timeline=Timeline()).run()
    other = Timeline()
    other.times = array("d", [0.0])
    for numbers in other.queues.values():
        numbers.append(0)
    found = replay(cluster.list(Node), [("one", timeline, report), ("none", other, report)])
    assert [run.start for run in found.runs] == [-1, ABSENT]


def test_long_simulations_are_thinned_and_lead_to_the_same_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("kschedfw_lab.pages.replay"), "MOST_STEPS", 4)
    _, timeline, found = simulated(pods=9, nodes=5)
    (run,) = found.runs
    assert len(run.times) <= 5
    assert len(timeline.times) == 10
    assert run.queues["active"] == [9, 6, 3, 0]
    assert isinstance(run.moves.steps, list)
    assert run.moves.steps == sorted(run.moves.steps)
    assert run.moves.steps[-1] == len(run.times) - 1
