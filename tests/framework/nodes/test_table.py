"""The nodes in columns say what the NodeInfos say."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedfw import Node, NodeInfo, NodeTable, Snapshot, make_node, make_pod
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.encoded_column import NO_VALUE
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.nodes.reads import Reads
from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import clusters, nodes, pods
from tests.framework.nodes.columns import assert_rows_are_nodes


def snapshots() -> st.SearchStrategy[Snapshot]:
    return clusters(most_pending=0).map(lambda cluster: Snapshot.of(cluster.nodes, cluster.bound))


def assert_columns_fit(table: NodeTable) -> None:
    """Shapes, types and names are the documented ones."""
    n, r = len(table.names), len(table.resources)
    for array, shape in (
        (table.allocatable, (n, r)),
        (table.requested, (n, r)),
        (table.non_zero_requested, (n, 2)),
        (table.pod_counts, (n,)),
    ):
        assert array.shape == shape
        assert array.dtype == np.int64
    assert table.unschedulable.shape == (n,)
    assert table.unschedulable.dtype == np.bool_
    assert table.resources[:4] == ("cpu", "memory", "ephemeral-storage", "pods")
    assert len(set(table.resources)) == r
    assert [table.columns[name] for name in table.resources] == list(range(r))


def test_a_table_without_nodes_has_its_columns() -> None:
    table = NodeTable.of(())
    assert_columns_fit(table)
    assert table.resources == ("cpu", "memory", "ephemeral-storage", "pods")
    assert table.label("zone").codes.shape == (0,)
    assert table.taints.codes.shape == (0,)


@pytest.mark.slow
@settings(max_examples=examples(25))
@given(snapshots())
def test_each_row_is_its_node(snapshot: Snapshot) -> None:
    table = snapshot.table
    assert_columns_fit(table)
    assert len(table) == len(snapshot)
    assert_rows_are_nodes(snapshot)


@pytest.mark.slow
@settings(max_examples=examples(25))
@given(snapshots())
def test_labels_and_taints_decode_to_the_nodes(snapshot: Snapshot) -> None:
    for key in ("topology.kubernetes.io/zone", "kubernetes.io/hostname", "app", "nobody/has-it"):
        column = snapshot.table.label(key)
        assert column.codes.shape == (len(snapshot),)
        assert column.codes.dtype == np.int32
        wanted = [info.node.labels.get(key) for info in snapshot.node_infos]
        assert [column.values[code] for code in column.codes] == wanted
        assert [code == NO_VALUE for code in column.codes] == [value is None for value in wanted]
        known = np.array([value is not None for value in column.values], dtype=np.bool_)
        assert known[column.codes].tolist() == [value is not None for value in wanted]
        assert column.size == len({*wanted} - {None})
        assert len(set(column.values)) == len(column.values)
    taints = snapshot.table.taints
    assert [taints.values[code] for code in taints.codes] == [
        info.node.spec.taints for info in snapshot.node_infos
    ]
    assert len(set(taints.values)) == len(taints.values)


def test_labels_and_taints_are_encoded_once() -> None:
    table = NodeTable.of(Snapshot.of([make_node("a").taint("t").build()]).node_infos)
    assert table.label("zone") is table.label("zone")
    assert table.taints is table.taints


@given(st.data())
def test_taking_rows_of_a_column_is_indexing_it(data: st.DataObject) -> None:
    table = NodeTable.of([NodeInfo.of(make_node(name).labels(zone=name).build()) for name in "abcdef"])
    codes = table.label("zone").codes
    first, last = sorted(data.draw(st.tuples(st.integers(0, 6), st.integers(0, 6))))
    step = data.draw(st.sampled_from([1, 2, -1]))
    run = table.all_rows[first:last:step]
    some = np.array(data.draw(st.permutations(range(6))), dtype=np.int64)[first:]
    for rows in (table.all_rows, run, run[1:], some, table.all_rows.copy()):
        assert table.take(codes, rows).tolist() == codes[rows].tolist()


def test_nothing_is_copied_for_nodes_that_follow_each_other() -> None:
    table = NodeTable.of([NodeInfo.of(make_node(name).build()) for name in "abcdef"])
    pods = table.pod_counts
    assert table.take(pods, table.all_rows) is pods
    assert np.shares_memory(table.take(pods, table.all_rows[2:5]), pods)


def test_what_is_free_follows_nodes_and_pods() -> None:
    snapshot = Snapshot.of([make_node("a").capacity(cpu="4", memory="8Gi").build(), make_node("b").build()])
    table = snapshot.table
    crowded = snapshot.get("a").clone()
    crowded.add_pod(PodInfo.of(make_pod("p").requests(cpu="5", **{"example.com/gpu": 1}).build()))
    snapshot.update([crowded])
    for state in (snapshot.node_infos, list(reversed(snapshot.node_infos))):
        snapshot.replace(state)
        assert (table.free == table.allocatable - table.requested).all()
        assert table.free[table.rows["a"], table.columns["cpu"]] == -1000
        assert table.free[table.rows["a"], table.columns["example.com/gpu"]] == -1


def test_a_node_without_a_resource_that_all_others_have_is_known_to_have_none() -> None:
    with_gpu = NodeInfo.of(make_node("with").capacity(cpu="4", **{"example.com/gpu": "1"}).build(), [])
    without = NodeInfo.of(make_node("without").capacity(cpu="4").build(), [])
    table = NodeTable.of([with_gpu])
    gpus = table.columns["example.com/gpu"]
    assert table.all_have_free(gpus, 1)
    table.replace([with_gpu, without])
    assert not table.all_have_free(gpus, 1)


def test_sums_that_a_pod_leaves_behind_are_a_change() -> None:
    """Answers kept from before were about a port that is free now: a pod that came and went took it along."""
    web = make_pod("web").host_port(80).node("n").build()
    info = NodeInfo.of(make_node("n").build(), [web])
    table = NodeTable.of([info])
    for brief in (
        make_pod("port").host_port(80).node("n").build(),
        make_pod("gpu").limits({"example.com/gpu": 1}).node("n").build(),
    ):
        before, changed = table.version.pods, table.node_infos[0].clone()
        changed.add_pod(PodInfo.of(brief))
        changed.remove_pod(brief)
        assert changed.pods == table.node_infos[0].pods
        table.update(0, changed)
        assert table.version.pods == before + 1
    before = table.version.pods
    table.update(0, table.node_infos[0].clone())
    assert table.version.pods == before


def test_the_largest_amount_is_a_bound_that_knows_of_nonsense() -> None:
    snapshot = Snapshot.of([make_node("a").capacity(cpu="4").build()])
    assert snapshot.table.largest("cpu") == 4000
    assert snapshot.table.largest("example.com/gpu") == 0
    crowded = snapshot.get("a").clone()
    crowded.add_pod(PodInfo.of(make_pod("p").requests(cpu="5").build()))
    snapshot.update([crowded])
    assert snapshot.table.largest("cpu") == 5000
    crowded = snapshot.get("a").clone()
    for name in ("q", "r"):  # together they wrap around
        crowded.add_pod(PodInfo.of(make_pod(name).requests(cpu="9000000000000000").build()))
    snapshot.update([crowded])
    assert snapshot.table.largest("cpu") == 2**63 - 1


def moved(name: str, zone: str) -> NodeInfo:
    return NodeInfo.of(make_node(name).labels(zone=zone).build())


def test_a_column_may_be_of_anything_that_a_plugin_wants_to_know() -> None:
    snapshot = Snapshot.of(
        [make_node("a").build(), make_node("b").build()], [make_pod("p").node("b").build()]
    )
    column = snapshot.table.encoded("pods", lambda info: len(info.pods) or None, Reads.PODS)
    assert column.codes.tolist() == [NO_VALUE, 0]
    assert column.values == [1, None]
    assert column.size == 1
    assert column.code_of(1) == 0
    assert column.code_of(2) == NO_VALUE
    snapshot.update([NodeInfo.of(make_node("a").build(), [make_pod("q").build(), make_pod("r").build()])])
    assert column.codes.tolist() == [1, 0]
    assert column.values == [1, 2, None], "a node without pods may come again"
    assert [column.values[code] for code in column.codes] == [2, 1]


def test_values_that_nobody_has_any_more_are_forgotten_some_time() -> None:
    snapshot = Snapshot.of([make_node("a").build()])
    column = snapshot.table.label("version")
    for version in range(1000):
        snapshot.update([NodeInfo.of(make_node("a").labels({"version": str(version)}).build())])
    assert len(column.values) < 100
    assert column.values[column.codes[0]] == "999"
    assert column.epoch > 0


@attrs.frozen
class Listener:
    """Keeps names and numbers of pods by row."""

    seen: list[tuple[str, int]]

    def row_changed(self, row: int, old: NodeInfo, new: NodeInfo) -> None:
        assert self.seen[row] == (old.name, len(old.pods))
        self.seen[row] = (new.name, len(new.pods))

    def rows_moved(self, moved_from: IntArray, gone: Sequence[NodeInfo], added: Sequence[NodeInfo]) -> None:
        arrived = iter([(info.name, len(info.pods)) for info in added])
        before = list(self.seen)
        self.seen[:] = [before[source] if source >= 0 else next(arrived) for source in moved_from.tolist()]
        assert not {info.name for info in gone} & {name for name, _ in self.seen}

    def table_rebuilt(self) -> None:
        raise AssertionError("nothing has failed")


@st.composite
def histories(draw: st.DrawFn) -> list[list[NodeInfo]]:
    """States of a small cluster one after another; a node that stays the same is the same object."""
    names = ["a", "b", "c", "d"]
    infos: dict[str, NodeInfo] = {}
    states = []
    for _ in range(draw(st.integers(2, 6))):
        for name in draw(st.permutations(names))[: draw(st.integers(0, 3))]:
            match draw(st.sampled_from(["gone", "new", "pods"])):
                case "gone":
                    infos.pop(name, None)
                case "new":
                    infos[name] = NodeInfo.of(
                        draw(nodes(name)), draw(st.lists(pods(node_name=name), max_size=2))
                    )
                case "pods" if name in infos:
                    infos[name] = infos[name].clone()
                    infos[name].add_pod(PodInfo.of(draw(pods(node_name=name))))
        states.append(draw(st.permutations(list(infos.values()))))
    return states


@pytest.mark.slow
@settings(max_examples=examples(50))
@given(histories())
def test_a_table_that_follows_is_one_that_is_made_anew(states: list[list[NodeInfo]]) -> None:
    table = NodeTable.of(states[0])
    column = table.label("app")
    listener = Listener([(info.name, len(info.pods)) for info in states[0]])
    table.listen(listener)
    reader = Reader(table, [(info.node, info.pods) for info in states[0]])
    for infos in states[1:]:
        if [info.name for info in infos] == list(table.names):
            for row, info in enumerate(infos):
                if info is not table.node_infos[row]:
                    table.update(row, info)
        else:
            table.replace(infos)
        anew = NodeTable.of(infos)
        assert table.names == anew.names
        assert table.rows == anew.rows
        for name in {*table.resources, *anew.resources}:
            for one, other in ((table.allocatable, anew.allocatable), (table.requested, anew.requested)):
                assert amounts(table, one, name) == amounts(anew, other, name)
        assert table.non_zero_requested.tolist() == anew.non_zero_requested.tolist()
        assert table.allocatable_floats.tolist() == table.allocatable[:, :2].astype(float).tolist()
        assert table.requested_floats.tolist() == table.requested[:, :2].astype(float).tolist()
        assert table.non_zero_floats.tolist() == table.non_zero_requested.astype(float).tolist()
        assert (table.free == table.allocatable - table.requested).all()
        for name, column_of in table.columns.items():
            least = int(table.free[:, column_of].min()) if infos else 0
            assert table.all_have_free(column_of, least), name
            assert not infos or not table.all_have_free(column_of, least + 1), name
        assert table.unschedulable.tolist() == anew.unschedulable.tolist()
        decoded = [column.values[code] for code in column.codes]
        assert decoded == [info.node.labels.get("app") for info in infos]
        assert listener.seen == [(info.name, len(info.pods)) for info in infos]
        reader.follow()
        assert reader.known == [(info.node, info.pods) for info in infos]


@attrs.define
class Reader:
    """Looks only at rows that the logs name."""

    table: NodeTable
    known: list[tuple[Node, tuple[PodInfo, ...]]]
    layout: int = 0
    version: tuple[int, int] = (0, 0)

    def follow(self) -> None:
        infos = self.table.node_infos
        if self.layout != self.table.layout:
            self.layout = self.table.layout
            self.known = [
                self.known[source] if source >= 0 else (infos[row].node, infos[row].pods)
                for row, source in enumerate(self.table.moved_from.tolist())
            ]
        logs = self.table.node_changes, self.table.pod_changes
        nodes_changed, pods_changed = (
            log.since(version) for log, version in zip(logs, self.version, strict=True)
        )
        assert nodes_changed is not None
        assert pods_changed is not None
        for row in nodes_changed:
            self.known[row] = (infos[row].node, self.known[row][1])
        for row in pods_changed:
            self.known[row] = (self.known[row][0], infos[row].pods)
        self.version = logs[0].version, logs[1].version


def amounts(table: NodeTable, values: IntArray, resource: str) -> list[int]:
    if resource not in table.columns:
        return [0] * len(table)
    return [int(amount) for amount in values[:, table.columns[resource]]]
