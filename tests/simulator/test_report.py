"""What the report's numbers mean."""

from __future__ import annotations

import json
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw.api.frozendict import FrozenDict
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.simulator import Decision, Outcome, Replay, Report, Spread
from kschedfw.simulator.report import peaks, reasons, utilisation
from tests.simulator.objects import node, pod


def infos(*nodes_and_pods: tuple[dict[str, str], list[dict[str, str]]]) -> list[NodeInfo]:
    return [
        NodeInfo.of(
            node(f"n{row}", **allocatable),  # type: ignore[arg-type]
            [pod(f"p{row}-{i}", **request) for i, request in enumerate(requests)],  # type: ignore[arg-type]
        )
        for row, (allocatable, requests) in enumerate(nodes_and_pods)
    ]


class TestSpread:
    def test_of_nothing(self) -> None:
        assert Spread.of([]) == Spread(0, 0, 0, 0, 0)

    def test_p95_is_the_value_that_95_percent_do_not_exceed(self) -> None:
        assert Spread.of(range(1, 21)).p95 == 19
        assert Spread.of(range(1, 101)).p95 == 95
        assert Spread.of([7]).p95 == 7

    def test_stddev_is_the_populations(self) -> None:
        assert Spread.of([2, 4, 4, 4, 5, 5, 7, 9]).stddev == 2

    @given(st.lists(st.integers(0, 10**6), min_size=1))
    def test_is_in_order_and_bounded(self, values: list[int]) -> None:
        spread = Spread.of(values)
        assert spread.min == min(values) <= spread.p95 <= spread.max == max(values)
        assert spread.mean == pytest.approx(statistics.fmean(values))
        assert spread.stddev == pytest.approx(statistics.pstdev(values))
        assert sum(value <= spread.p95 for value in values) >= 0.95 * len(values)


class TestUtilisation:
    def test_is_requested_of_allocatable(self) -> None:
        (cpu, memory, pods) = utilisation(
            infos(
                ({"cpu": "4", "memory": "8Gi", "pods": "10"}, [{"cpu": "1"}, {"cpu": "1", "memory": "2Gi"}]),
                ({"cpu": "12", "memory": "8Gi", "pods": "10"}, []),
            )
        )
        assert (cpu.resource, cpu.nodes, cpu.requested, cpu.allocatable, cpu.share) == (
            "cpu",
            2,
            2000,
            16000,
            0.125,
        )
        assert (cpu.per_node.mean, cpu.per_node.max) == (0.25, 0.5)
        assert (memory.resource, memory.requested, memory.share) == ("memory", 2 << 30, 0.125)
        assert (pods.resource, pods.requested, pods.allocatable) == ("pods", 2, 20)

    def test_counts_only_nodes_that_have_the_resource(self) -> None:
        usage = utilisation(
            infos(
                ({"cpu": "4", "example.com/gpu": "8"}, [{"example.com/gpu": "4"}]),
                ({"cpu": "4", "example.com/gpu": "0"}, []),
                ({"cpu": "4"}, []),
            )
        )
        gpu = next(u for u in usage if u.resource == "example.com/gpu")
        assert (gpu.nodes, gpu.per_node.mean) == (1, 0.5)
        assert [u.resource for u in usage] == ["cpu", "example.com/gpu"]


class TestReasons:
    def test_count_pods_and_nodes(self) -> None:
        found = reasons(
            [
                Decision("a", Outcome.UNSCHEDULABLE, reasons=FrozenDict({"Insufficient cpu": 3, "taint": 1})),
                Decision("b", Outcome.UNSCHEDULABLE, reasons=FrozenDict({"Insufficient cpu": 4})),
                Decision("c", Outcome.GATED, reasons=FrozenDict({"gates": 0})),
                Decision("d", Outcome.PLACED, node="n1"),
            ]
        )
        assert [(r.text, r.pods, r.nodes) for r in found] == [
            ("Insufficient cpu", 2, 7),
            ("taint", 1, 1),
            ("gates", 1, 0),
        ]


def report(**changes: object) -> Report:
    fields: dict[str, object] = {
        "profile": "default-scheduler",
        "seed": 1,
        "nodes": 2,
        "pods": 3,
        "placed": 1,
        "preempted": 0,
        "deleted": 0,
        "unschedulable": 1,
        "gated": 1,
        "failed": 0,
        "left": 0,
        "tried": 2,
        "attempts": 5,
        "preemptions": 1,
        "victims": 2,
        "bound_before": 0,
        "other_scheduler": 0,
        "terminal": 0,
        "terminating": 0,
        "interrupted": False,
        "elapsed": 0.5,
        "decisions": (
            Decision("default/a", Outcome.PLACED, "n1", attempts=1, evaluated=2, feasible=1, bound=3.0),
        ),
        "reasons": (),
        "utilisation": utilisation(infos(({"cpu": "4"}, [{"cpu": "1"}]))),
        "pods_per_node": Spread.of([1, 0]),
        "notes": ("note",),
    }
    return Report(**{**fields, **changes})  # type: ignore[arg-type]


def test_speed_counts_scheduling_cycles_only() -> None:
    assert report().decisions_per_second == 10
    assert report(elapsed=0.0).decisions_per_second == 0


def test_json_survives_a_round_trip() -> None:
    document = report().to_json()
    assert json.loads(json.dumps(document)) == document
    assert document["pods"] == {
        "total": 3,
        "placed": 1,
        "preempted": 0,
        "deleted": 0,
        "unschedulable": 1,
        "gated": 1,
        "failed": 0,
        "left": 0,
        "boundBefore": 0,
        "otherScheduler": 0,
        "terminal": 0,
        "terminating": 0,
    }
    assert document["decisions"] == [
        {
            "pod": "default/a",
            "outcome": "placed",
            "node": "n1",
            "message": "",
            "reasons": [],
            "attempts": 1,
            "preempted": False,
            "evaluated": 2,
            "feasible": 1,
            "arrivedAt": 0.0,
            "boundAt": 3.0,
            "causes": [],
        }
    ]
    assert (document["attempts"], document["preemptions"], document["victims"]) == (5, 1, 2)
    assert document["replay"] is None
    assert document["missing"] == []
    assert document["utilisation"] == {
        "cpu": {
            "nodes": 1,
            "requested": 1000,
            "allocatable": 4000,
            "share": 0.25,
            "perNode": {"min": 0.25, "mean": 0.25, "p95": 0.25, "max": 0.25, "stddev": 0.0},
        }
    }


def test_the_reasons_of_each_pod_are_data() -> None:
    decision = Decision(
        "default/a", Outcome.UNSCHEDULABLE, reasons=FrozenDict({"Insufficient cpu": 3, "no claim": 0})
    )
    assert decision.to_json()["reasons"] == [
        {"text": "Insufficient cpu", "nodes": 3},
        {"text": "no claim", "nodes": 0},
    ]


def test_json_of_a_replay() -> None:
    usages = utilisation(infos(({"cpu": "4", "memory": "8"}, [])))
    replay = Replay(90.0, Spread.of([1.0, 3.0]), 2, peaks({"cpu": 3000, "example.com/gone": 7}, usages))
    document = report(replay=replay).to_json()
    assert json.loads(json.dumps(document)) == document
    assert document["replay"] == {
        "makespanSeconds": 90.0,
        "waitingSeconds": {"min": 1.0, "mean": 2.0, "p95": 3.0, "max": 3.0, "stddev": 1.0},
        "departed": 2,
        "peak": {
            "cpu": {"requested": 3000, "allocatable": 4000, "share": 0.75},
            "memory": {"requested": 0, "allocatable": 8, "share": 0.0},
        },
    }
