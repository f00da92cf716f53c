"""What plugins are handed can be read, and nothing else: later cycles see what the cache says."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from kschedfw import (
    CycleState,
    NodeInfo,
    NodeTable,
    Plugin,
    Status,
    Verdicts,
    hookimpl,
    make_node,
    make_pod,
)
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.nodes.read_only import ReadOnlyList
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.testing import FrameworkHarness

NODES = [make_node(f"n{number}").labels(zone="z").capacity(cpu=8, pods=20).build() for number in range(6)]
BOUND = make_pod("bound").requests({"cpu": 1, "example.com/fpga": 1}).host_port(80).node("n0").build()

WRITES_TO_A_NODE: dict[str, Callable[[NodeInfo], object]] = {
    "its pods": lambda info: info.pods.clear(),  # type: ignore[attr-defined]  # what a plugin may try
    "another pod": lambda info: info.add_pod(PodInfo.of(make_pod("new").build())),
    "a pod less": lambda info: info.remove_pod(info.pods[0].pod),
    "other pods": lambda info: setattr(info, "pods", ()),
    "no pods": lambda info: delattr(info, "pods"),
    "its pods with affinity": lambda info: info.pods_with_affinity.append(1),  # type: ignore[attr-defined]
    "a sum": lambda info: setattr(info.requested, "milli_cpu", 0),
    "a sum of scalars": lambda info: info.requested.scalar_resources.update({"example.com/fpga": 0}),  # type: ignore[arg-type]
    "what there is": lambda info: info.allocatable.scalar_resources.clear(),
    "its images": lambda info: info.image_states.clear(),
    "its ports": lambda info: setattr(info, "used_ports", None),
    "the node": lambda info: info.set_node(NODES[1]),
    "its labels": lambda info: info.node.labels.clear(),
}
WRITES_TO_THE_TABLE: dict[str, Callable[[NodeTable], object]] = {
    "allocatable": lambda nodes: nodes.allocatable.fill(0),
    "requested": lambda nodes: nodes.requested.__setitem__((0, 0), 0),
    "non_zero_requested": lambda nodes: nodes.non_zero_requested.sort(),
    "allocatable_floats": lambda nodes: nodes.allocatable_floats.fill(0),
    "requested_floats": lambda nodes: nodes.requested_floats.fill(0),
    "non_zero_floats": lambda nodes: nodes.non_zero_floats.fill(0),
    "pod_counts": lambda nodes: nodes.pod_counts.fill(0),
    "unschedulable": lambda nodes: nodes.unschedulable.fill(True),
    "moved_from": lambda nodes: nodes.moved_from.fill(0),
    "all_rows": lambda nodes: nodes.all_rows.__setitem__(0, 2),
    "label codes": lambda nodes: nodes.label("zone").codes.fill(0),
    "free": lambda nodes: nodes.free.fill(0),
    "rows taken": lambda nodes: nodes.take(nodes.label("zone").codes, nodes.all_rows[:1]).fill(0),
    "label values": lambda nodes: nodes.label("zone").values.clear(),  # type: ignore[attr-defined]
    "taints": lambda nodes: nodes.taints.codes.fill(0),
    "node_infos": lambda nodes: nodes.node_infos.clear(),  # type: ignore[attr-defined]
    "rows": lambda nodes: nodes.rows.clear(),  # type: ignore[attr-defined]
    "columns": lambda nodes: nodes.columns.clear(),  # type: ignore[attr-defined]
}
REFUSED = (AttributeError, TypeError, ValueError)


class Writer(Plugin):
    """Does to what it is handed whatever a test wants to see refused."""

    name = "Writer"

    def __init__(self, args: object, handle: object) -> None:
        self.seen: list[object] = []

    def on_nodes(self, nodes: Sequence[NodeInfo]) -> None: ...
    def on_node(self, node_info: NodeInfo) -> None: ...
    def on_table(self, nodes: NodeTable) -> None: ...
    def on_rows(self, rows: IntArray) -> None: ...

    def attempt(self, write: Callable[[], object]) -> None:
        try:
            write()
        except REFUSED as error:
            self.seen.append(error)

    @hookimpl
    def pre_filter(self, nodes: Sequence[NodeInfo]) -> None:
        self.attempt(lambda: self.on_nodes(nodes))

    @hookimpl
    def filter(self, node_info: NodeInfo) -> None:
        self.attempt(lambda: self.on_node(node_info))

    @hookimpl
    def filter_batch(self, nodes: NodeTable, rows: IntArray) -> Verdicts:
        self.attempt(lambda: self.on_table(nodes))
        self.attempt(lambda: self.on_rows(rows))
        return Verdicts(np.zeros(len(rows), dtype=np.int8), (Status.success(),))

    @hookimpl
    def pre_score(self, nodes: Sequence[NodeInfo]) -> None:
        self.attempt(lambda: self.on_nodes(nodes))

    @hookimpl
    def score(self, node_info: NodeInfo) -> int:
        self.attempt(lambda: self.on_node(node_info))
        return 0

    @hookimpl
    def score_batch(self, nodes: NodeTable, rows: IntArray) -> IntArray:
        self.attempt(lambda: self.on_table(nodes))
        self.attempt(lambda: self.on_rows(rows))
        return np.zeros(len(rows), dtype=np.int64)


def harness() -> tuple[FrameworkHarness, Writer]:
    made = FrameworkHarness(Writer, nodes=NODES, pods=[BOUND])
    plugin = made.framework.plugins["Writer"]
    assert isinstance(plugin, Writer)
    return made, plugin


def run(made: FrameworkHarness) -> None:
    """One cycle by batch forms, and by scalar ones."""
    pod, state, framework = make_pod("p").uid("p").build(), CycleState(), made.framework
    framework.run_pre_filter_plugins(state, pod)
    found = framework.filter_nodes(state, pod, made.snapshot.selection)
    assert found.error is None
    framework.run_pre_score_plugins(state, pod, found.feasible)
    assert framework.run_score_plugins(state, pod, found.feasible)[1].is_success
    made.filter(pod)
    assert framework.run_score_plugins(CycleState(), pod, [*made.snapshot.node_infos][:1])[1].is_success


@pytest.mark.parametrize("what", WRITES_TO_A_NODE)
def test_a_node_is_read_only(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made, plugin = harness()
    before = looks(made.snapshot)
    monkeypatch.setattr(plugin, "on_node", WRITES_TO_A_NODE[what])
    run(made)
    assert plugin.seen
    assert looks(made.snapshot) == before


@pytest.mark.parametrize("what", WRITES_TO_THE_TABLE)
def test_the_table_is_read_only(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made, plugin = harness()
    before = looks(made.snapshot)
    monkeypatch.setattr(plugin, "on_table", WRITES_TO_THE_TABLE[what])
    run(made)
    assert len(plugin.seen) >= 2, "in filter_batch and in score_batch"
    assert looks(made.snapshot) == before


def test_rows_are_read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    made, plugin = harness()
    monkeypatch.setattr(plugin, "on_rows", lambda rows: rows.__setitem__(0, 2))
    run(made)
    assert len(plugin.seen) >= 2
    assert {str(error) for error in plugin.seen} == {"assignment destination is read-only"}


@pytest.mark.parametrize("change", ["clear", "reverse", "pop", "append"])
def test_the_nodes_are_read_only(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made, plugin = harness()
    monkeypatch.setattr(plugin, "on_nodes", lambda nodes: getattr(nodes, change)())
    run(made)
    assert len(plugin.seen) >= 2, "in pre_filter and in pre_score"
    assert [info.name for info in made.snapshot.node_infos] == [node.name for node in NODES]


def test_a_write_fails_the_attempt_and_says_what_to_do_instead() -> None:
    class Clearing(Plugin):
        name = "Clearing"

        @hookimpl
        def filter(self, node_info: NodeInfo) -> None:
            node_info.pods = ()

    made = FrameworkHarness(Clearing, nodes=NODES[:1])
    status = made.filter(make_pod().build())["n0"]
    assert status.message.endswith(
        "node 'n0': pods can't be set, since a snapshot's NodeInfo is read-only; change a clone() of it"
    )


def test_a_clone_may_be_changed() -> None:
    snapshot = Snapshot.of(NODES, [BOUND])
    clone = snapshot.get("n0").clone()
    assert clone.remove_pod(clone.pods[0].pod)
    assert not clone.pods
    assert len(snapshot.get("n0").pods) == 1
    for copied in (copy.copy(clone), pickle.loads(pickle.dumps(clone))):
        copied.add_pod(PodInfo.of(BOUND))
        assert len(copied.pods) == 1


def test_a_score_that_is_a_column_of_the_table_isnt_written_to() -> None:
    class Lent(Plugin):
        name = "Lent"

        @hookimpl
        def score(self, node_info: NodeInfo) -> int:
            return len(node_info.pods)

        @hookimpl
        def score_batch(self, nodes: NodeTable, rows: IntArray) -> IntArray:
            return nodes.pod_counts if len(rows) == len(nodes) else nodes.pod_counts[rows]

        @hookimpl
        def normalize_score(self, scores: IntArray) -> None:
            scores *= 10

    made = FrameworkHarness(Lent, nodes=NODES, pods=[BOUND])
    assert made.score(make_pod("p").build())["n0"] == 10
    assert made.snapshot.table.pod_counts.tolist() == [1, 0, 0, 0, 0, 0]


class TestReadOnlyList:
    def test_it_refuses_every_change(self) -> None:
        items = ReadOnlyList([3, 1, 2])
        changes: list[Callable[[], object]] = [
            lambda: items.append(1),
            lambda: items.extend([1]),
            lambda: items.insert(0, 1),
            lambda: items.remove(1),
            items.pop,
            items.clear,
            items.sort,
            items.reverse,
            lambda: items.__setitem__(0, 1),
            lambda: items.__delitem__(0),
            lambda: items.__iadd__([1]),
            lambda: items.__imul__(2),
        ]
        for change in changes:
            with pytest.raises(TypeError, match="read-only"):
                change()
        assert items == [3, 1, 2]

    def test_a_copy_is_an_ordinary_list(self) -> None:
        items = ReadOnlyList([1])
        for copied in (items.copy(), items[:], copy.copy(items), copy.deepcopy(items), [*items]):
            copied.append(2)
        assert items == [1]


def looks(snapshot: Snapshot) -> object:
    table = snapshot.table
    return (
        [(info.pods, info.requested, info.image_states, info.generation) for info in snapshot.node_infos],
        *(
            each.tolist()
            for each in (table.allocatable, table.requested, table.unschedulable, table.all_rows)
        ),
        [table.label("zone").values[code] for code in table.label("zone").codes],
        dict(table.rows),
        dict(table.columns),
    )
