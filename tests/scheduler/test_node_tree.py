"""The order in which nodes are visited."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kschedfw import make_node
from kschedfw.api.node import Node
from kschedfw.scheduler.node_tree import NodeTree, zone_of


def node(name: str, zone: str = "") -> Node:
    return (make_node(name).zone(zone) if zone else make_node(name)).build()


def tree_of(*nodes: Node) -> NodeTree:
    tree = NodeTree()
    for each in nodes:
        tree.add(each)
    return tree


def test_zones_take_turns() -> None:
    tree = tree_of(node("a1", "a"), node("a2", "a"), node("b1", "b"), node("a3", "a"), node("c1", "c"))
    assert tree.names() == ["a1", "b1", "c1", "a2", "a3"]


def test_without_zones_it_is_the_order_of_arrival() -> None:
    assert tree_of(node("x"), node("b"), node("a")).names() == ["x", "b", "a"]


def test_a_node_that_comes_again_moves_only_if_its_zone_has_changed() -> None:
    tree = tree_of(node("a1", "a"), node("a2", "a"), node("b1", "b"))
    assert not tree.add(node("a1", "a"))
    assert tree.names() == ["a1", "b1", "a2"]
    assert tree.add(node("a1", "b"))
    assert tree.names() == ["a2", "b1", "a1"]


def test_a_zone_goes_with_its_last_node() -> None:
    tree = tree_of(node("a1", "a"), node("b1", "b"))
    tree.remove("a1")
    tree.remove("unknown")
    tree.add(node("a2", "a"))
    assert tree.names() == ["b1", "a2"]
    assert len(tree) == 2


def test_region_and_zone_together_make_a_zone_and_beta_labels_count_too() -> None:
    beta = {"failure-domain.beta.kubernetes.io/zone": "z", "failure-domain.beta.kubernetes.io/region": "r"}
    assert zone_of(make_node("n").labels(beta).build()) == ("r", "z")
    assert zone_of(make_node("n").labels(beta).zone("new").build()) == ("r", "z")


@given(st.dictionaries(st.text("abcdefgh", min_size=1, max_size=3), st.sampled_from(["", "x", "y", "z"])))
def test_every_node_is_visited_once_and_no_zone_waits_while_another_has_two_turns(
    zones: dict[str, str],
) -> None:
    names = tree_of(*(node(name, zone) for name, zone in zones.items())).names()
    assert sorted(names) == sorted(zones)
    turns = dict.fromkeys(zones.values(), 0)
    left = {zone: list(zones.values()).count(zone) for zone in turns}
    for name in names:
        turns[zones[name]] += 1
        left[zones[name]] -= 1
        assert all(turns[zone] >= turns[zones[name]] - 1 or not left[zone] for zone in turns)


@given(
    st.lists(
        st.tuples(st.booleans(), st.sampled_from("abcdef"), st.sampled_from(["", "x", "y"])), max_size=20
    )
)
def test_the_order_is_kept_from_change_to_change_as_if_it_were_found_out_anew(
    changes: list[tuple[bool, str, str]],
) -> None:
    tree, reference = NodeTree(), NodeTree()
    for is_added, name, zone in changes:
        for each in (tree, reference):
            if is_added:
                each.add(node(name, zone))
            else:
                each.remove(name)
        reference._names = None
        assert tree.names() == reference.names()
