"""assert_decision says where a pod goes and why, and shows the decision where that is otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from kschedfw.api.pod import Pod
from kschedfw.cluster import InMemoryCluster
from kschedfw.explain import Explanation, Result
from kschedfw.framework.node_info import NodeInfo
from kschedfw.framework.plugin import Plugin, hookimpl
from kschedfw.framework.status import Status
from kschedfw.testing import assert_decision, assert_golden, decide, make_node, make_pod


class Rack(Plugin[None]):
    name: ClassVar[str] = "Rack"

    @hookimpl
    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        return Status.unschedulable("wrong rack") if node_info.name.startswith("r2") else None

    @hookimpl
    def score(self, pod: Pod, node_info: NodeInfo) -> int:
        return int(node_info.name[-1]) * 10


NODES = [make_node(name).build() for name in ("r1-1", "r1-4", "r2-1")]


@pytest.fixture
def decision() -> Explanation:
    return decide(make_pod("pod").build(), Rack, nodes=NODES)


def test_what_is_so_passes(decision: Explanation) -> None:
    assert_decision(
        decision,
        node="r1-4",
        result=Result.PLACED,
        message="",
        feasible=["r1-4", "r1-1"],
        refused={"r2-1": ("Rack", "wrong rack")},
        scores={"Rack": {"r1-1": 10, "r1-4": 40}},
        totals={"r1-4": 40},
        tied=["r1-4"],
        victims=[],
    )


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ({"node": "r1-1"}, "it should go to r1-1, not r1-4"),
        ({"result": Result.UNSCHEDULABLE}, "it should be unschedulable, not placed"),
        ({"message": "no"}, "the message should be 'no', not ''"),
        ({"feasible": []}, "feasible should be none, not r1-1, r1-4"),
        ({"refused": {"r1-1": "Rack"}}, "r1-1 should be refused by Rack, but is feasible"),
        ({"refused": {"r2-1": "Other"}}, "r2-1 should be refused by Other, not by Rack (wrong rack)"),
        ({"refused": {"r2-1": ("Rack", "full")}}, "Rack should refuse r2-1 with 'full', not 'wrong rack'"),
        ({"scores": {"Rack": {"r1-1": 11}}}, "Rack should give r1-1 11, not 10"),
        ({"scores": {"Rack": {"r2-1": 10}}}, "Rack should give r2-1 10, but doesn't score it"),
        ({"totals": {"r1-1": 0}}, "the total of r1-1 should be 0, not 10"),
        ({"tied": ["r1-1"]}, "tied should be r1-1, not r1-4"),
        ({"victims": ["default/a"]}, "victims should be default/a, not none"),
    ],
)
def test_what_is_not_so_is_said_above_the_explanation(
    expected: dict[str, object], said: str, decision: Explanation
) -> None:
    with pytest.raises(AssertionError) as failure:
        assert_decision(decision, **expected)  # type: ignore[arg-type]
    assert f"* {said}" in str(failure.value)
    assert "r1-4 (chosen)" in str(failure.value)


class TestGolden:
    @staticmethod
    def cluster(cpu: str = "2") -> InMemoryCluster:
        nodes = [make_node(name).capacity(cpu=cpu, memory="8Gi", pods=10).build() for name in ("a", "b")]
        pods = [make_pod(f"pod-{index}").requests(cpu="1").build() for index in range(3)]
        return InMemoryCluster([*nodes, *pods])

    def test_the_same_decisions_pass(self, tmp_path: Path) -> None:
        path = tmp_path / "golden.jsonl"
        assert_golden(path, self.cluster(), update=True)
        assert_golden(path, self.cluster())

    def test_without_a_file_it_is_said_how_to_get_one(self, tmp_path: Path) -> None:
        with pytest.raises(AssertionError, match="no such file; KSCHEDFW_UPDATE_GOLDEN=1 writes it"):
            assert_golden(tmp_path / "golden.jsonl", self.cluster())

    def test_what_has_changed_is_said_and_shown(self, tmp_path: Path) -> None:
        path = tmp_path / "golden.jsonl"
        assert_golden(path, self.cluster(), update=True)
        with pytest.raises(AssertionError) as failure:
            assert_golden(path, self.cluster(cpu="1"))
        assert "* default/pod-2: result: placed → unschedulable" in str(failure.value)
        assert "* default/pod-0: node a: NodeResourcesFit: " in str(failure.value)
        assert "default/pod-0: placed on" in str(failure.value)

    def test_the_environment_has_the_file_written_anew(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "golden.jsonl"
        assert_golden(path, self.cluster(), update=True)
        monkeypatch.setenv("KSCHEDFW_UPDATE_GOLDEN", "1")
        assert_golden(path, self.cluster(cpu="1"))
        monkeypatch.delenv("KSCHEDFW_UPDATE_GOLDEN")
        assert_golden(path, self.cluster(cpu="1"))
