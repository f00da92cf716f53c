"""The decision on a group as columns: its placements, the nearest first, and why members have no node on each."""

from __future__ import annotations

import msgspec
from kschedfw_lab.pages.group_matrix import GroupMatrix, PlacementRow, group_matrix

from kschedfw import make_node, make_pod
from kschedfw.api.meta import Named
from tests.explain.test_groups import first_cycle, gang, members, node


def matrix(*objects: Named) -> GroupMatrix:
    return group_matrix(first_cycle(*objects))


def counts(found: GroupMatrix, row: PlacementRow) -> dict[str, int]:
    """The members of a placement that have no node, by reason."""
    return {found.reasons[place].message: number for place, number in row.refused.items()}


def test_nearest_placement_comes_first_and_each_counts_the_members_refused_for_a_reason() -> None:
    shut = make_node("b2").labels(rack="b").capacity(cpu=8, memory="64Gi", pods=20).unschedulable().build()
    found = matrix(node("b1", 1, "b"), shut, node("a1", 1), node("a2", 1), gang(4, racks=True), *members(4))
    a, b = found.placements
    assert [(row.name, row.nodes, row.placed, row.members) for row in (a, b)] == [
        ("a", 2, 2, 4),
        ("b", 2, 1, 4),
    ]
    assert counts(found, a) == {"Insufficient cpu": 2}
    assert counts(found, b) == {"Insufficient cpu": 3, "node(s) were unschedulable": 3}
    assert {reason.plugin for reason in found.reasons} == {"NodeResourcesFit", "NodeUnschedulable"}
    assert (a.suffices, a.is_taken, a.why) == (False, False, "2 Insufficient cpu")
    assert [row[:2] for row in a.fates.rows] == [("2", "none"), ("2", "a1, a2")]


def test_member_without_a_node_on_the_nearest_placement_has_its_own_matrix() -> None:
    found = matrix(node("a1", 1), node("b1", 2, "b"), gang(3, racks=True), *members(3))
    assert found.member is not None
    without = next(row for row in found.placements[0].fates.rows if row[1] == "none")
    assert (found.member.pod, found.member.nodes) == (without[-1], ("b1",))


def test_placed_group_has_the_placement_that_was_taken_first_with_its_score() -> None:
    found = matrix(node("a1", 3), node("b1", 8, "b"), gang(3, racks=True), *members(3))
    taken, other = found.placements
    assert (taken.is_taken, taken.placed, other.is_taken) == (True, 3, False)
    assert taken.total is not None
    assert (found.result, found.member, found.reasons) == ("placed", None, [])
    assert found.headline.startswith("podgroup default/g: placed on ")


def test_group_without_a_constraint_has_all_nodes_as_its_placement() -> None:
    (only,) = matrix(node("a1", 1), gang(3), *members(3)).placements
    assert only.name == "all nodes"


def test_group_that_is_held_back_has_no_placement_and_says_by_what() -> None:
    found = matrix(node("a1", 4), gang(3), *members(2))
    assert (found.result, found.placements, found.least) == ("gated", [], 3)
    assert "minCount" in found.text[0].lines[0]
    assert found.headline == "podgroup default/g: gated, so not tried (profile default-scheduler)"


def test_refusal_by_pre_filter_is_a_reason_too() -> None:
    beyond = make_pod("g-0").requests(cpu=1).claim("nowhere").group("g").build()
    found = matrix(node("a1", 4), gang(1), beyond)
    assert counts(found, found.placements[0]) == {'persistentvolumeclaim "nowhere" not found': 1}


def test_it_is_json() -> None:
    found = matrix(node("a1", 1), gang(2), *members(2))
    assert msgspec.json.decode(msgspec.json.encode(found), type=GroupMatrix) == found
