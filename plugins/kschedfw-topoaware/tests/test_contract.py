"""The plugin keeps the contract that every plugin must keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kschedfw_topoaware import (
    NodeResourceTopologyMatch,
    NodeResourceTopologyMatchArgs,
    ScoringStrategy,
    ScoringStrategyType,
)
from kschedfw_topoaware.testing import make_topology

from kschedfw import Node, Pod, make_node, make_pod
from kschedfw.testing import PluginContract

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

GPU = "example.com/gpu"
SMALL: dict[str, str | int] = {"cpu": 2, "memory": "4Gi"}
LARGE: dict[str, str | int] = {"cpu": 4, "memory": "2Gi", GPU: 1}

TOPOLOGIES = (
    make_topology("node-0", SMALL),
    make_topology("node-1", SMALL, LARGE),
    make_topology("node-2", LARGE, SMALL, scope="pod"),
    make_topology("node-3", LARGE, LARGE, scope="pod", costs=((10, 20), (20, 10))),
    make_topology("node-4", SMALL, policy="none"),
    make_topology("node-5"),
)


def pod(init: int, cpus: list[int], gpu: int, guaranteed: bool) -> Pod:
    builder = make_pod()
    if init:
        builder.init_container("init", requests={"cpu": init, "memory": "1Gi"})
    for number, cpu in enumerate(cpus):
        amounts: dict[str, str | int] = {"cpu": cpu, "memory": "1Gi"}
        builder.container(f"c{number}").requests(amounts).requests({GPU: gpu} if gpu else {})
        if guaranteed:
            builder.limits(amounts)
    return builder.build()


class TestNodeResourceTopologyMatch(PluginContract):
    plugin = NodeResourceTopologyMatch
    objects = TOPOLOGIES

    def pods(self) -> SearchStrategy[Pod]:
        from hypothesis import strategies as st

        cpus = st.lists(st.integers(1, 4), min_size=1, max_size=3)
        own = st.builds(pod, st.sampled_from([0, 0, 0, 1]), cpus, st.integers(0, 1), st.booleans())
        return own | super().pods()

    def nodes(self) -> SearchStrategy[Node]:
        from hypothesis import strategies as st

        def with_gpus(gpus: int) -> Node:
            return make_node("node").capacity({"cpu": 16, "memory": "64Gi", GPU: gpus}).build()

        return st.builds(with_gpus, st.integers(0, 2)) | super().nodes()


class TestWithLeastNumaNodes(TestNodeResourceTopologyMatch):
    args = NodeResourceTopologyMatchArgs(ScoringStrategy(ScoringStrategyType.LEAST_NUMA_NODES))
