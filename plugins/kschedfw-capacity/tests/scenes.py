"""Clusters with elastic quotas, in a few words each. All amounts are CPUs, unless a name says otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from random import Random

import attrs
from kschedfw_capacity import CapacityScheduling, ElasticQuota, ElasticQuotaSpec

from kschedfw import (
    EnabledPlugin,
    FrozenDict,
    InMemoryCluster,
    Node,
    ObjectMeta,
    Pod,
    Profile,
    Quantity,
    Registry,
    Scheduler,
    default_profile,
    make_node,
    make_pod,
)
from kschedfw.testing import FakeClock

NAMESPACES = ("a", "b", "c")


def resources(amounts: Mapping[str, str | int]) -> FrozenDict[str, Quantity]:
    return FrozenDict({name: Quantity.parse(amount) for name, amount in amounts.items()})


def quota(
    namespace: str, least: int | Mapping[str, str | int], most: int | Mapping[str, str | int] | None = None
) -> ElasticQuota:
    """`least` is guaranteed; without `most` there is no limit."""
    bounds = [{"cpu": each} if isinstance(each, int) else each or {} for each in (least, most)]
    return ElasticQuota(
        ObjectMeta(name="quota", namespace=namespace), ElasticQuotaSpec(*map(resources, bounds))
    )


def node(name: str = "n", cpu: int = 10) -> Node:
    return make_node(name).capacity(cpu=cpu, memory="64Gi", pods=110).build()


def pod(
    key: str,
    cpu: int = 1,
    *,
    on: str = "",
    priority: int = 0,
    nominated: str = "",
    labels: Mapping[str, str] | None = None,
) -> Pod:
    """A pod by `namespace/name`. Those on nodes have started at the same time."""
    namespace, name = key.split("/")
    builder = make_pod(name).namespace(namespace).uid(key).priority(priority).labels(labels or {})
    if cpu:
        builder.requests(cpu=cpu)
    if on:
        builder.node(on)
    if nominated:
        builder.nominated_node(nominated)
    made = builder.build()
    if on:
        made = attrs.evolve(made, status=attrs.evolve(made.status, start_time=datetime.fromtimestamp(0, UTC)))
    return made


def terminating(of: Pod) -> Pod:
    """The pod, being deleted."""
    return of.with_metadata(attrs.evolve(of.metadata, deletion_timestamp=datetime.fromtimestamp(0, UTC)))


def capacity_profile() -> Profile:
    """kube-scheduler's default plugins, and CapacityScheduling in the place of DefaultPreemption."""
    default = default_profile().multi_point
    others = [each for each in default if each.name != "DefaultPreemption"]
    return Profile([*others, EnabledPlugin("CapacityScheduling")])


def scheduler_of(cluster: InMemoryCluster, clock: FakeClock) -> Scheduler:
    registry = Registry()
    registry.register(CapacityScheduling)
    return Scheduler(cluster, [capacity_profile()], registry=registry, clock=clock, random=Random(0))


def placed(cluster: InMemoryCluster) -> set[str]:
    """The keys of the bound pods."""
    return {each.key for each in cluster.list(Pod) if each.node_name}


def used_by_namespace(pods: Iterable[Pod]) -> dict[str, int]:
    """CPUs of the bound ones."""
    used = dict.fromkeys(NAMESPACES, 0)
    for each in pods:
        if each.node_name:
            used[each.namespace] += each.requests.amounts.milli_cpu // 1000
    return used
