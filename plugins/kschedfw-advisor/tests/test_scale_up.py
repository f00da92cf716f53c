"""Which new nodes get the pending pods a place."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_advisor.node_groups import NodeGroup
from kschedfw_advisor.scale_up import ScaleUp, plan_scale_up

from kschedfw import InMemoryCluster, Pod, Scheduler, make_pod
from kschedfw.api.builders import NodeBuilder
from kschedfw.api.selectors import Selector
from kschedfw.framework.clock import VirtualClock
from tests.properties import examples
from tests.what_if.builders import node, owned, what_if


def group(template: NodeBuilder, price: str | None = None, most: int = 1000, least: int = 0) -> NodeGroup:
    built = template.build()
    return NodeGroup(built.name, built, least, most, None if price is None else Decimal(price))


def plan(pods: list[Pod], *groups: NodeGroup) -> ScaleUp:
    return plan_scale_up(what_if(node("n1").build(), pods), groups)


def pods(count: int, cpu: int = 3, app: str = "job") -> list[Pod]:
    return [make_pod(f"{app}-{number}").labels(app=app).requests(cpu=cpu).build() for number in range(count)]


def test_as_few_nodes_as_are_needed_beside_what_is_there() -> None:
    found = plan(pods(4), group(node("small")))
    assert (len(found.placed_without), len(found.waiting)) == (1, 3)
    assert found.best.counts == {"small": 3}
    assert not found.best.refused


def test_the_cheapest_group_that_gets_all_pods_a_place() -> None:
    found = plan(pods(9), group(node("small", cpu=4), "1"), group(node("large", cpu=12), "2"))
    assert {name: each.price for name, each in found.alone.items()} == {
        "small": Decimal(8),
        "large": Decimal(4),
    }
    assert found.best.counts == {"large": 2}
    assert found.best.price == Decimal(4)


def test_without_prices_the_fewest_nodes_count() -> None:
    found = plan(pods(9), group(node("small", cpu=4)), group(node("large", cpu=12)))
    assert (found.best.counts, found.best.price) == ({"large": 2}, None)


def test_groups_are_mixed_where_none_does_alone() -> None:
    special = make_pod("special").node_selector(gpu="yes").build()
    found = plan([*pods(3), special], group(node("small"), "1"), group(node("gpu").labels(gpu="yes"), "9"))
    assert found.best.counts == {"small": 1, "gpu": 1}
    assert not found.best.refused


def test_a_node_that_becomes_needless_in_a_mixture_is_left_out() -> None:
    """The cheap node comes first; but the expensive one, which is needed anyway, has space for its pod."""
    special = make_pod("special").node_selector(gpu="yes").build()
    found = plan([*pods(2), special], group(node("small"), "1"), group(node("gpu").labels(gpu="yes"), "9"))
    assert found.best.counts == {"gpu": 1}


def test_no_more_nodes_than_the_group_may_have() -> None:
    found = plan(pods(5), group(node("small"), most=2))
    assert found.best.counts == {"small": 2}
    assert len(found.best.refused) == 2


def test_nodes_that_are_in_the_group_already_count() -> None:
    template = node("small").labels(pool="small").build()
    limited = NodeGroup("small", template, max=3, selector=Selector.from_labels({"pool": "small"}))
    there = [node(name).labels(pool="small").build() for name in ("s1", "s2")]
    found = plan_scale_up(what_if(there, pods(6)), [limited])
    assert (found.room, found.best.counts) == ({"small": 1}, {"small": 1})


def test_a_group_below_its_minimum_is_filled_up_first() -> None:
    found = plan(pods(2), group(node("small"), least=2), group(node("other")))
    assert found.best.counts == {"small": 2}


def test_pods_of_daemon_sets_take_their_part_of_new_nodes() -> None:
    agent = owned(make_pod("agent").node("n1").requests(cpu=1), "agent", "DaemonSet")
    found = plan([agent, *pods(1, cpu=4)], group(node("small", cpu=4)), group(node("larger", cpu=5)))
    assert found.best.counts == {"larger": 1}


def test_pods_that_no_group_helps_are_refused_with_the_reason() -> None:
    found = plan(pods(1, cpu=64), group(node("small")))
    assert (found.best.counts, found.best.nodes) == ({}, 0)
    assert [each.message for each in found.best.refused] == ["0/1 nodes are available: 1 Insufficient cpu."]


def test_nothing_pending_needs_nothing() -> None:
    found = plan([], group(node("small")))
    assert (found.waiting, found.best.counts) == ((), {})


SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=6)


@pytest.mark.slow
@given(SIZES, st.lists(st.sampled_from([2, 4, 8]), min_size=1, max_size=2, unique=True))
@settings(max_examples=examples(15))
def test_a_scheduler_on_the_cluster_with_these_nodes_places_as_many_pods_and_with_one_less_it_does_not(
    sizes: list[int], capacities: list[int]
) -> None:
    wanted = [make_pod(f"p-{number}").requests(cpu=cpu).build() for number, cpu in enumerate(sizes)]
    templates = {f"g{cpu}": node(f"g{cpu}", cpu=cpu).build() for cpu in capacities}
    found = plan(wanted, *(NodeGroup(name, template) for name, template in templates.items()))

    def placed(counts: dict[str, int]) -> int:
        new = [
            node(f"{name}-{number}", cpu=capacities[list(templates).index(name)]).build()
            for name, count in counts.items()
            for number in range(1, count + 1)
        ]
        cluster = InMemoryCluster([node("n1").build(), *wanted])
        Scheduler(cluster, clock=VirtualClock()).run_until_idle()
        for each in new:  # by then, the pods that have a place are bound
            cluster.add(each)
        Scheduler(cluster, clock=VirtualClock()).run_until_idle()
        return sum(bool(pod.node_name) for pod in cluster.list(Pod))

    total = len(found.placed_without) + len(found.best.placed)
    assert total == len(wanted) - len(found.best.refused)
    counts = {**found.best.counts}
    assert placed(counts) == total
    for name, count in counts.items():
        assert placed({**counts, name: count - 1}) < total
