"""Which new nodes get the pending pods a place."""

from __future__ import annotations

from decimal import Decimal
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kschedfw_advisor.node_groups import HOSTNAME, NodeGroup
from kschedfw_advisor.scale_up import ScaleUp, plan_scale_up
from small_clusters import REGISTRY, node, owned, what_if

from kschedfw import FeatureGates, InMemoryCluster, Pod, Scheduler, WhatIf, make_pod, make_pod_group
from kschedfw.api.builders import NodeBuilder
from kschedfw.api.selectors import Selector
from kschedfw.framework.clock import VirtualClock
from kschedfw.testing.properties import examples


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


class TestMixtures:
    def test_a_cheaper_mixture_than_one_group_after_the_other_is_found_and_proven(self) -> None:
        """Five pods are left. A pod costs the least on large nodes, but two of them cost more than one of each."""
        found = plan(pods(7, cpu=2), group(node("small", cpu=4), "3"), group(node("large", cpu=6), "4"))
        assert found.best.counts == {"small": 1, "large": 1}
        assert found.search is not None
        assert (found.search.cost, found.search.gap) == (7.0, 0.0)

    def test_a_mixture_that_only_requests_allow_is_not_the_answer(self) -> None:
        """By requests, one large node takes both pods; but they keep apart."""
        apart = [
            make_pod(f"p-{n}")
            .labels(app="a")
            .requests(cpu=2)
            .pod_anti_affinity(HOSTNAME, {"app": "a"})
            .build()
            for n in range(3)
        ]
        groups = group(node("small", cpu=2), "3"), group(node("large", cpu=8), "4")
        found = plan(apart, *groups)
        assert (found.best.counts, found.best.refused) == ({"small": 2}, ())

    def test_a_pod_that_moves_onto_a_new_node_leaves_none_behind_that_another_node_would_help(self) -> None:
        """One node of each would do, but the small pod takes the large node; with one more, both have one."""
        wanted = [
            make_pod("fast").requests(cpu=1, memory="1Gi").node_selector(ssd="yes").build(),
            make_pod("small").requests(cpu=1, memory="1Gi").build(),
            make_pod("large").requests(cpu=1, memory="4Gi").build(),
        ]
        fast = node("fast", cpu=2).capacity(memory="3Gi").labels(ssd="yes")
        groups = group(fast, "1"), group(node("wide", cpu=2).capacity(memory="4Gi"), "1")
        full = node("n1", cpu=0).build()
        found = plan_scale_up(what_if(full, wanted), groups)
        assert (found.best.counts, found.best.refused) == ({"fast": 1, "wide": 2}, ())

    def test_where_at_most_one_group_helps_nothing_is_searched(self) -> None:
        assert plan(pods(2), group(node("small"))).search is None
        assert plan(pods(1, cpu=64), group(node("a")), group(node("b"))).search is None
        assert plan(pods(2, cpu=4), group(node("a")), group(node("b", cpu=1))).search is None

    def test_without_scipy_the_answer_is_the_one_of_one_group_after_the_other(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("kschedfw_advisor.scale_up.is_installed", lambda: False)
        found = plan(pods(4, cpu=4), group(node("small", cpu=4), "3"), group(node("large", cpu=8), "4"))
        assert (found.search, found.best.refused) == (None, ())


PODS = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 7), st.booleans()), min_size=1, max_size=5)
GROUPS = st.lists(
    st.tuples(st.integers(2, 9), st.integers(3, 8), st.booleans(), st.integers(1, 9)), min_size=2, max_size=3
)


def drawn_pods(sizes: list[tuple[int, int, bool]]) -> list[Pod]:
    return [
        make_pod(f"p-{number}")
        .requests(cpu=cpu, memory=f"{memory}Gi")
        .node_selector({"ssd": "yes"} if ssd else {})
        .build()
        for number, (cpu, memory, ssd) in enumerate(sizes)
    ]


def drawn_groups(shapes: list[tuple[int, int, bool, int]]) -> list[NodeGroup]:
    return [
        group(
            node(f"g{number}", cpu).capacity(memory=f"{memory}Gi").labels({"ssd": "yes"} if ssd else {}),
            str(price),
        )
        for number, (cpu, memory, ssd, price) in enumerate(shapes)
    ]


def worth(found: ScaleUp) -> tuple[int, Decimal]:
    assert found.best.price is not None
    return len(found.best.refused), found.best.price


MORE_PODS = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 7), st.booleans()), min_size=1, max_size=6)


@pytest.mark.slow
@given(MORE_PODS, GROUPS, st.integers(0, 2))
@settings(max_examples=examples(200, usual=2))
def test_with_another_group_it_never_costs_more_and_never_leaves_more_pods(
    sizes: list[tuple[int, int, bool]], shapes: list[tuple[int, int, bool, int]], other: int
) -> None:
    wanted, groups = drawn_pods(sizes), drawn_groups(shapes)
    other %= len(groups)
    assert worth(plan(wanted, *groups)) <= worth(plan(wanted, *groups[:other], *groups[other + 1 :]))


@pytest.mark.slow
@given(PODS, GROUPS)
@example([(1, 1, True), (4, 1, False), (1, 1, False), (1, 4, False)], [(2, 3, True, 1), (2, 4, False, 1)])
@example([(1, 1, True), (1, 5, False), (1, 4, False), (4, 1, False)], [(2, 4, True, 1), (4, 3, True, 1)])
@settings(max_examples=examples(200, usual=3))
def test_of_small_cases_the_cost_is_within_2_percent_of_the_best_of_all_mixtures(
    sizes: list[tuple[int, int, bool]], shapes: list[tuple[int, int, bool, int]]
) -> None:
    wanted, groups = drawn_pods(sizes), drawn_groups(shapes)
    refused, cost = worth(plan(wanted, *groups))
    least = best_of_all(wanted, groups)
    assert (refused, cost) <= (least[0], least[1] * Decimal("1.02"))


def best_of_all(wanted: list[Pod], groups: list[NodeGroup]) -> tuple[int, Decimal]:
    cluster = what_if(node("n1").build(), wanted)
    found = []
    with cluster.transaction() as trial:
        waiting = trial.schedule(wanted).refused
        for counts in product(range(len(waiting) + 1), repeat=len(groups)):
            if sum(counts) <= len(waiting):
                with trial.transaction() as nested:
                    for each, count in zip(groups, counts, strict=True):
                        nested.add_nodes(each.template, count)
                    left = nested.schedule([each.pod for each in waiting]).refused
                price = sum((each.price or 0) * count for each, count in zip(groups, counts, strict=True))
                found.append((len(left), Decimal(price)))
    return min(found)


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
        Scheduler(cluster, registry=REGISTRY, clock=VirtualClock()).run_until_idle()
        for each in new:  # by then, the pods that have a place are bound
            cluster.add(each)
        Scheduler(cluster, registry=REGISTRY, clock=VirtualClock()).run_until_idle()
        return sum(bool(pod.node_name) for pod in cluster.list(Pod))

    total = len(found.placed_without) + len(found.best.placed)
    assert total == len(wanted) - len(found.best.refused)
    counts = {**found.best.counts}
    assert placed(counts) == total
    for name, count in counts.items():
        assert placed({**counts, name: count - 1}) < total


GATES = FeatureGates.of("GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling")


def rack_node(name: str, cpu: int = 10, rack: str = "x", **labels: str) -> NodeBuilder:
    return node(name, cpu=cpu).labels({"rack": rack, **labels})


def plan_of_gang(least: int, gang: list[Pod], *groups: NodeGroup, racks: bool = False) -> ScaleUp:
    made = make_pod_group("g").gang(min_count=least)
    objects = [rack_node("n1", cpu=4, rack="a").build(), (made.topology("rack") if racks else made).build()]
    return plan_scale_up(WhatIf([*objects, *gang], feature_gates=GATES), groups)


def gang_of(count: int, **selectors: int) -> list[Pod]:
    """So many members, and so many more for each kind of node."""
    plain = [make_pod(f"g-{number}").requests(cpu=2).group("g").build() for number in range(count)]
    return plain + [
        make_pod(f"{kind}-{number}").requests(cpu=2).group("g").node_selector(kind=kind).build()
        for kind, number_of_kind in selectors.items()
        for number in range(number_of_kind)
    ]


def test_gang_gets_as_many_nodes_as_place_all_of_it_beside_what_is_there() -> None:
    found = plan_of_gang(16, gang_of(16), group(rack_node("x")))
    assert (found.best.counts, len(found.best.placed)) == ({"x": 3}, 16)


def test_gang_with_a_topology_gets_all_its_nodes_in_one_rack() -> None:
    found = plan_of_gang(16, gang_of(16), group(rack_node("x")), racks=True)
    assert found.best.counts == {"x": 4}  # what is free in the other rack is of no use
    extending = plan_of_gang(16, gang_of(16), group(rack_node("more", rack="a")), racks=True)
    assert extending.best.counts == {"more": 3}


def test_gang_whose_members_need_nodes_of_two_groups_gets_both() -> None:
    groups = group(rack_node("gpu", kind="gpu")), group(rack_node("cpu", kind="cpu"))
    found = plan_of_gang(16, gang_of(0, gpu=15, cpu=1), *groups)
    assert [each.placed for each in found.alone.values()] == [(), ()]
    assert (found.best.counts, len(found.best.placed)) == ({"gpu": 3, "cpu": 1}, 16)


def test_gang_that_the_groups_bounds_do_not_suffice_for_gets_no_node_at_all() -> None:
    groups = group(rack_node("gpu", kind="gpu"), most=2), group(rack_node("cpu", kind="cpu"))
    found = plan_of_gang(16, gang_of(0, gpu=15, cpu=1), *groups)
    assert (found.best.counts, len(found.best.refused)) == ({}, 16)


def test_search_of_mixtures_knows_that_members_of_a_gang_need_each_other() -> None:
    pytest.importorskip("scipy")
    groups = group(rack_node("gpu", kind="gpu"), "5"), group(rack_node("cpu", kind="cpu"), "1")
    found = plan_of_gang(16, gang_of(0, gpu=15, cpu=1), *groups)
    assert found.search is not None
    assert (found.search.cost, found.search.bound) == (16.0, 16.0)


def test_a_group_alone_has_no_nodes_of_another_group_s_minimum() -> None:
    base = NodeGroup("base", node("base", cpu=1).build(), min=2, price=Decimal(5))
    big = NodeGroup("big", node("big", cpu=8).build(), price=Decimal(1))
    with what_if(node("n1", cpu=1).build(), make_pod("p").requests(cpu=3).build()) as cluster:
        found = plan_scale_up(cluster, [base, big])
    assert (found.alone["big"].counts, found.alone["big"].price) == ({"big": 1}, Decimal(1))
    assert found.best.counts == {"base": 2, "big": 1}
