"""What the original's own tests expect of three nodes with two zones each."""

from __future__ import annotations

import pytest
from kschedfw_topoaware import NodeResourceTopologyMatch
from kschedfw_topoaware.testing import make_topology

from kschedfw import Pod, make_node, make_pod
from kschedfw.testing import FrameworkHarness

ZONES: dict[str, dict[str, str | int]] = {
    "node1": {"cpu": 4, "memory": "500Mi"},
    "node2": {"cpu": 2, "memory": "50Mi"},
    "node3": {"cpu": 6, "memory": "60Mi"},
}


def scores(
    strategy: str, pod: Pod, *, scope: str = "container", policy: str = "single-numa-node"
) -> list[int]:
    it = FrameworkHarness(
        NodeResourceTopologyMatch,
        nodes=[make_node(name).capacity(cpu=16, memory="1Gi").build() for name in ZONES],
        objects=[make_topology(name, zone, zone, scope=scope, policy=policy) for name, zone in ZONES.items()],
        args={"NodeResourceTopologyMatch": {"scoringStrategy": {"type": strategy}}},
    )
    return list(it.score(pod).values())


def guaranteed(memory: str, *cpus: int) -> Pod:
    builder = make_pod()
    for number, cpu in enumerate(cpus):
        builder.container(f"c{number}").requests(cpu=cpu, memory=memory).limits(cpu=cpu, memory=memory)
    return builder.build()


@pytest.mark.parametrize(
    ("strategy", "node", "expected"),
    [
        ("MostAllocated", "node1", 27),
        ("MostAllocated", "node2", 70),
        ("LeastAllocated", "node1", 73),
        ("BalancedAllocation", "node1", 89),
        ("BalancedAllocation", "node3", 100),
    ],
)
def test_by_zone(strategy: str, node: str, expected: int) -> None:
    assert scores(strategy, guaranteed("20Mi", 2))[list(ZONES).index(node)] == expected


@pytest.mark.parametrize(
    ("scope", "cpus", "expected"),
    [
        ("container", [2], [94, 94, 94]),
        ("container", [4], [94, 82, 94]),
        ("container", [6], [82, 0, 94]),
        ("container", [2, 2], [94, 94, 94]),
        ("container", [1, 3], [94, 82, 94]),
        ("container", [5, 3], [82, 0, 94]),
        ("pod", [2, 2], [94, 82, 82]),
        ("pod", [1, 3], [94, 82, 82]),
        ("pod", [5, 3], [82, 0, 82]),
    ],
)
def test_least_numa_nodes(scope: str, cpus: list[int], expected: list[int]) -> None:
    pod = guaranteed("50Mi", *cpus)
    assert scores("LeastNUMANodes", pod, scope=scope, policy="best-effort") == expected
