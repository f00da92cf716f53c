"""NodeResourcesLeastAllocated, NodeResourcesMostAllocated and RequestedToCapacityRatio, as v1.20 had them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_legacy.plugins.node_resources_scores import (
    NodeResourcesLeastAllocated,
    NodeResourcesMostAllocated,
    RequestedToCapacityRatio,
)

from kschedfw import make_node, make_pod
from kschedfw.api.builders import NodeBuilder
from kschedfw.api.pod import Pod
from kschedfw.framework.plugin import AnyPlugin
from kschedfw.framework.runtime.args import ArgsError
from kschedfw.testing import FrameworkHarness

RISING = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]


def score(
    plugin: type[AnyPlugin], pod: Pod, node: NodeBuilder, *others: Pod, args: Mapping[str, Any] | None = None
) -> int:
    harness = FrameworkHarness(
        plugin, nodes=[node.build()], pods=others, args={} if args is None else {plugin.name: args}
    )
    return next(iter(harness.score(pod).values()))


def machine(cpu: str, memory: int, **more: int) -> NodeBuilder:
    return make_node("n").capacity({"cpu": cpu, "memory": memory, **more})


def asking(cpu: str, memory: int, name: str = "pod", **more: int) -> Any:
    return make_pod(name).requests({"cpu": cpu, "memory": memory}, **more)


@pytest.mark.parametrize(
    ("node", "least", "most"),
    [
        # (4000 − 3000) / 4000 = 25 %, (10000 − 5000) / 10000 = 50 %
        (machine("4", 10000), 37, 62),
        # (6000 − 3000) / 6000 = 50 %, 50 %
        (machine("6", 10000), 50, 50),
        # overcommitted: counts as neither free nor used
        (machine("2", 10000), 25, 25),
        (machine("0", 10000), 25, 25),
    ],
)
def test_it_is_the_average_over_cpu_and_memory(node: NodeBuilder, least: int, most: int) -> None:
    pod = asking("3", 5000).build()
    assert score(NodeResourcesLeastAllocated, pod, node) == least
    assert score(NodeResourcesMostAllocated, pod, node) == most


def test_pods_on_the_node_count() -> None:
    other = asking("3", 5000, "other").node("n").build()
    assert score(NodeResourcesMostAllocated, asking("3", 5000).build(), machine("10", 20000), other) == 55
    assert score(NodeResourcesLeastAllocated, asking("3", 5000).build(), machine("10", 20000), other) == 45


def test_containers_without_requests_count_as_100m_and_200_mib() -> None:
    node = make_node("n").capacity(cpu="1", memory="1000Mi")
    assert score(NodeResourcesMostAllocated, make_pod().build(), node) == 15
    assert score(NodeResourcesLeastAllocated, make_pod().build(), node) == 85


def test_resources_have_weights() -> None:
    resources = [{"name": "cpu", "weight": 3}, {"name": "memory", "weight": 1}]
    # (75 × 3 + 50) / 4
    args = {"resources": resources}
    assert score(NodeResourcesMostAllocated, asking("3", 5000).build(), machine("4", 10000), args=args) == 68


def test_a_resource_that_the_node_has_not_got_counts_as_0() -> None:
    resources = {"resources": [{"name": "cpu", "weight": 1}, {"name": "example.com/gpu", "weight": 1}]}
    pod = asking("3", 5000).build()
    assert score(NodeResourcesMostAllocated, pod, machine("4", 10000), args=resources) == 37
    assert score(NodeResourcesLeastAllocated, pod, machine("4", 10000), args=resources) == 12


@pytest.mark.parametrize("plugin", [NodeResourcesLeastAllocated, NodeResourcesMostAllocated])
def test_weights_are_from_1_to_100_and_resources_named_once(plugin: type[AnyPlugin]) -> None:
    resources = [
        {"name": "cpu", "weight": 101},
        {"name": "memory", "weight": 0},
        {"name": "cpu", "weight": 1},
        {"name": "ephemeral-storage"},
    ]
    with pytest.raises(ArgsError) as caught:
        score(plugin, make_pod().build(), make_node("n"), args={"resources": resources})
    assert str(caught.value) == (
        f'{plugin.name}: resources[2].name: Duplicate value: "cpu"; '
        "resources[0].weight: Invalid value: 101: resource weight of cpu not in valid range (0, 100]; "
        "resources[1].weight: Invalid value: 0: resource weight of memory not in valid range (0, 100]; "
        "resources[3].weight: Invalid value: 0: resource weight of ephemeral-storage not in valid range (0, 100]"
    )


class TestRatio:
    @pytest.mark.parametrize(
        ("cpu", "memory", "expected"),
        [("0", 0, 0), ("4", 10000, 100), ("2", 5000, 50), ("3", 5000, 63), ("5", 20000, 100)],
    )
    def test_a_rising_shape_packs(self, cpu: str, memory: int, expected: int) -> None:
        # what is on the node already is what counts; the pod itself asks for next to nothing
        others = [asking(cpu, memory, "other").node("n").build()] if memory else []
        pod = make_pod().requests(cpu="0", memory="0").build()
        node = machine("4", 10000)
        assert score(RequestedToCapacityRatio, pod, node, *others, args={"shape": RISING}) == expected

    def test_utilization_is_rounded_up(self) -> None:
        # (400 − 3) × 100 / 400 is 99.25, and 100 − 99 = 1; the score 0–10 becomes 0–100
        pod, node = (
            make_pod().requests({"example.com/gpu": 3}).build(),
            make_node("n").capacity({"example.com/gpu": 400}),
        )
        args = {"shape": RISING, "resources": [{"name": "example.com/gpu", "weight": 1}]}
        assert score(RequestedToCapacityRatio, pod, node, args=args) == 1

    def test_a_resource_that_scores_0_does_not_count(self) -> None:
        args = {
            "shape": [{"utilization": 50, "score": 0}, {"utilization": 100, "score": 10}],
            "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 99}],
        }
        pod = asking("3", 1).build()
        assert score(RequestedToCapacityRatio, pod, machine("4", 10000), args=args) == 50

    def test_a_resource_that_the_node_has_not_got_is_full(self) -> None:
        args = {"shape": RISING, "resources": [{"name": "example.com/gpu", "weight": 1}]}
        assert score(RequestedToCapacityRatio, make_pod().build(), make_node("n"), args=args) == 100

    def test_a_shape_is_needed_and_has_rules(self) -> None:
        with pytest.raises(ArgsError, match="shape: Required value: at least one point must be specified"):
            score(RequestedToCapacityRatio, make_pod().build(), make_node("n"))
        args = {
            "shape": [{"utilization": 50, "score": 11}, {"utilization": 50, "score": 0}],
            "resources": [{"name": "cpu", "weight": -1}, {"name": "memory", "weight": 0}],
        }
        with pytest.raises(ArgsError) as caught:
            score(RequestedToCapacityRatio, make_pod().build(), make_node("n"), args=args)
        assert [error.path for error in caught.value.errors] == [
            "shape[1].utilization",
            "shape[0].score",
            "resources[0].weight",
            "resources[1].weight",
        ]


AMOUNTS = st.integers(0, 1 << 40)


@given(st.sampled_from([NodeResourcesLeastAllocated, NodeResourcesMostAllocated]), AMOUNTS, AMOUNTS)
def test_scores_are_within_bounds(plugin: type[AnyPlugin], requested: int, allocatable: int) -> None:
    node = make_node("n").capacity(cpu="4", memory=allocatable)
    assert 0 <= score(plugin, asking("1", requested).build(), node) <= 100


@given(AMOUNTS, st.integers(1, 1 << 40))
def test_free_and_used_make_up_the_whole(requested: int, allocatable: int) -> None:
    pod, node = asking("0", requested).build(), machine("0", allocatable)
    resources = {"resources": [{"name": "memory", "weight": 1}]}
    least = score(NodeResourcesLeastAllocated, pod, node, args=resources)
    most = score(NodeResourcesMostAllocated, pod, node, args=resources)
    assert (least, most) == (0, 0) if requested > allocatable else least + most in (99, 100)
