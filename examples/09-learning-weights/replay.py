"""The objective: how much of a generated day's pods a scheduler with these weights places."""

from __future__ import annotations

from functools import cache
from random import Random

from kschedfw import (
    EnabledPlugin,
    InMemoryCluster,
    NodeInfo,
    Plugin,
    Pod,
    Profile,
    Registry,
    Scheduler,
    default_profile,
    hookimpl,
    make_node,
    make_pod,
)
from kschedfw.testing import FakeClock

GPU = "nvidia.com/gpu"


class SpareGPUs(Plugin):
    """Prefers nodes without GPUs for pods that want none."""

    name = "SpareGPUs"

    @hookimpl
    def score(self, pod: Pod, node_info: NodeInfo) -> int:
        return 0 if GPU in node_info.node.status.allocatable and "gpu" not in pod.labels else 100


LEARNED = ("NodeResourcesBalancedAllocation", "NodeResourcesMostAllocated", "SpareGPUs")
"""Whose weights are learned; NodeResourcesFit keeps its weight of 1, for only ratios count."""

Weights = tuple[int, ...]
"""One for each of them, 0 to do without."""

DEFAULT: Weights = (1, 0, 0)

REGISTRY = Registry()  # one for all replays: finding plugins takes longer than a replay
REGISTRY.register(SpareGPUs)

NODES = [
    *(make_node(f"cpu-{i}").capacity(cpu=16, memory="64Gi").build() for i in range(5)),
    *(make_node(f"gpu-{i}").capacity({GPU: 4}, cpu=16, memory="64Gi").build() for i in range(3)),
]


@cache
def pods_of(day: int) -> tuple[Pod, ...]:
    """A day's pods in the order of their arrival: small ones, GPU jobs, and some that want most of a node."""
    random = Random(day)
    pods: list[Pod] = []
    for number in range(40):
        pod = make_pod(f"pod-{number}")
        kind = random.choices(["small", "gpu", "big"], [70, 20, 10])[0]
        if kind == "small":
            pod.requests(cpu=random.choice([1, 2, 3]), memory=f"{random.choice([2, 4, 16])}Gi")
        elif kind == "gpu":
            pod.labels(gpu="yes").requests({GPU: random.choice([1, 1, 2])}, cpu=3, memory="8Gi")
        else:
            pod.requests(cpu=random.choice([10, 12]), memory="24Gi")
        pods.append(pod.build())
    return tuple(pods)


def profile(weights: Weights) -> Profile:
    """The default profile with these weights; without preemption, for all pods have the same priority."""
    left_out = {"DefaultPreemption", *LEARNED}
    others = [plugin for plugin in default_profile().multi_point if plugin.name not in left_out]
    learned = zip(LEARNED, weights, strict=True)
    return Profile([*others, *(EnabledPlugin(name, weight) for name, weight in learned if weight)])


@cache
def placed(weights: Weights, day: int) -> float:
    """The percentage of the day's pods that find a node, each counted with its CPUs."""
    cluster = InMemoryCluster([*NODES, *pods_of(day)])
    Scheduler(cluster, [profile(weights)], registry=REGISTRY, clock=FakeClock()).run_until_idle()
    wanted = {pod.name: pod.requests.amounts.milli_cpu for pod in cluster.list(Pod)}
    return 100 * sum(wanted[pod.name] for pod in cluster.list(Pod) if pod.node_name) / sum(wanted.values())
