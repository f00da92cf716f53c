"""Clusters whose amounts are odd: nothing at all, more used than there is, nearly all that an int64 holds."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from hypothesis import strategies as st

from kschedfw.api.manifests import node_from_manifest, pod_from_manifest
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.testing.strategies import Manifest

GPU, NIC, HUGE_PAGES = "example.com/gpu", "example.com/nic", "hugepages-2Mi"
RESOURCES = ("cpu", "memory", "ephemeral-storage", GPU, NIC, HUGE_PAGES)
# What a pod may have without CPU and memory, and without limits.
PLAIN = ("cpu", "memory", "ephemeral-storage")

MAX_INT64 = 2**63 - 1
LARGEST_SCORED = MAX_INT64 // 200
"""The largest amount that batch scores are promised for."""


def ordinary() -> st.SearchStrategy[int]:
    return st.sampled_from([0, 1, 2, 3, 7, 100, 1000, 3 * 2**30]) | st.integers(0, 20)


def huge(largest: int) -> st.SearchStrategy[int]:
    edges = [LARGEST_SCORED, LARGEST_SCORED + 1, MAX_INT64 // 100, 2**53 + 1, 2**61 + 1, MAX_INT64, largest]
    return ordinary() | st.sampled_from([edge for edge in edges if edge <= largest])


def _named(draw: st.DrawFn, names: Sequence[str], amounts: st.SearchStrategy[int]) -> dict[str, str]:
    """Quantities of some of the resources, each of which counts as the amount that was drawn."""
    chosen = draw(st.lists(st.sampled_from(names), unique=True))
    return {name: f"{draw(amounts)}{'m' if name == 'cpu' else ''}" for name in chosen}


@st.composite
def _containers(draw: st.DrawFn, prefix: str, least: int, amounts: st.SearchStrategy[int]) -> list[Manifest]:
    made = []
    for index in range(draw(st.integers(least, 2))):
        requests = _named(draw, PLAIN, amounts)
        limits = _named(draw, (GPU, NIC), amounts) if draw(st.booleans()) else {}
        made.append(
            {
                "name": f"{prefix}-{index}",
                "image": "app:1",
                "resources": {"requests": requests | limits, "limits": limits},
            }
        )
    return made


@st.composite
def pods_of(draw: st.DrawFn, name: str, node_name: str, amounts: st.SearchStrategy[int]) -> Pod:
    init_containers = draw(_containers("init", 0, amounts))
    for container in init_containers:
        if draw(st.booleans()):
            container["restartPolicy"] = "Always"
    spec: Manifest = {
        "nodeName": node_name,
        "containers": draw(_containers("main", 1, amounts)),
        "initContainers": init_containers,
    }
    if draw(st.integers(0, 3)) == 0:
        spec["overhead"] = {"cpu": "10m", "memory": str(draw(amounts))}
    if draw(st.integers(0, 3)) == 0:  # pod-level requests, which nothing inside may exceed
        spec["resources"] = {"requests": _named(draw, ("cpu", "memory"), amounts)}
        for container in (*spec["containers"], *init_containers):
            container["resources"] = {}
    return pod_from_manifest(
        {"kind": "Pod", "metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec}
    )


@st.composite
def nodes_of(draw: st.DrawFn, name: str, amounts: st.SearchStrategy[int]) -> Node:
    capacity = _named(draw, RESOURCES, amounts)
    capacity["pods"] = str(draw(st.sampled_from([0, 1, 2, 110])))
    return node_from_manifest({"kind": "Node", "metadata": {"name": name}, "status": {"capacity": capacity}})


@attrs.frozen
class ResourceCluster:
    nodes: Sequence[Node]
    bound: Sequence[Pod]
    pending: Sequence[Pod]
    rows: Sequence[int]
    """Some of the nodes, in any order."""


@st.composite
def resource_clusters(draw: st.DrawFn, *, with_huge_amounts: bool = False) -> ResourceCluster:
    """Unless there are huge amounts, every sum of two, times 100, fits an int64."""
    # Amounts wrap around, and sums of amounts, too.
    amounts = huge(2**64 - 1) if with_huge_amounts else ordinary()
    names = [f"node-{index}" for index in range(draw(st.integers(1, 5)))]
    hosts = draw(st.lists(st.sampled_from(names), max_size=5))
    return ResourceCluster(
        [draw(nodes_of(name, amounts)) for name in names],
        [draw(pods_of(f"bound-{index}", host, amounts)) for index, host in enumerate(hosts)],
        [draw(pods_of("new", "", amounts))],
        draw(st.lists(st.integers(0, len(names) - 1), unique=True) | st.permutations(range(len(names)))),
    )
