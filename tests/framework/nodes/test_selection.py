"""A selection reads as the list of its nodes, wherever in the table it begins."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw import NodeInfo, Snapshot, make_node
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.table import NodeTable

TABLES = [
    Snapshot.of([make_node(f"n{number}").build() for number in range(count)]).table for count in range(7)
]


@st.composite
def selections(draw: st.DrawFn) -> tuple[NodeSelection, Sequence[NodeInfo]]:
    """A selection, and the nodes that it should have."""
    table = draw(st.sampled_from(TABLES))
    infos = list(table.node_infos)
    if draw(st.booleans()):
        start = draw(st.integers(0, max(0, len(infos) - 1)))
        return NodeSelection.whole(table, start), infos[start:] + infos[:start]
    some = draw(st.permutations(infos))[: draw(st.integers(0, len(infos)))]
    return NodeSelection.named(table, [info.name for info in some]), some


@given(selections(), st.slices(8), st.data())
def test_a_selection_is_the_list_of_its_nodes_and_so_is_each_part(
    both: tuple[NodeSelection, Sequence[NodeInfo]], part: slice, data: st.DataObject
) -> None:
    selection, infos = both
    assert_same(selection, infos)
    assert_same(selection[part], infos[part])
    begin = data.draw(st.integers(0, len(infos)))
    end = data.draw(st.integers(begin, len(infos)))
    assert_same(selection.part(begin, end), infos[begin:end])


def assert_same(selection: NodeSelection, infos: Sequence[NodeInfo]) -> None:
    assert len(selection) == len(infos)
    assert all(one is other for one, other in zip(selection, infos, strict=True))
    assert all(selection[index] is info for index, info in enumerate(infos))
    assert selection.names == tuple(info.name for info in infos)
    assert selection.rows.tolist() == [selection.table.rows[info.name] for info in infos]
    assert not selection.rows.flags.writeable
    if selection.is_whole_table:
        assert list(selection) == list(selection.table.node_infos)


@given(selections())
def test_nodes_of_the_table_are_found_again(both: tuple[NodeSelection, Sequence[NodeInfo]]) -> None:
    selection, infos = both
    found = NodeSelection.of(selection.table, infos)
    assert found is not None
    assert_same(found, infos)
    assert NodeSelection.of(selection.table, selection) is selection


def test_all_nodes_in_their_order_are_the_whole_table() -> None:
    table = TABLES[4]
    assert NodeSelection.named(table, table.names).is_whole_table
    assert not NodeSelection.named(table, table.names[::-1]).is_whole_table
    assert not NodeSelection.named(table, table.names[:3]).is_whole_table


@pytest.mark.parametrize("other", ["a node of another name", "another state of a node"])
def test_nodes_that_the_table_does_not_have_are_no_selection_of_it(other: str) -> None:
    table = TABLES[3]
    strange = make_node("another" if other == "a node of another name" else table.names[0]).build()
    infos = [NodeInfo(strange), *table.node_infos[1:]]
    assert NodeSelection.of(table, infos) is None
    assert NodeSelection.of(table, NodeSelection.whole(NodeTable.of(infos))) is None
