"""The workloads, with the shapes of Kubernetes' own benchmark, scheduler_perf."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path

from kschedfw import KschedfwError
from kschedfw_lab.bench import kinds, openb, shapes, storage
from kschedfw_lab.bench.device_workloads import DEVICE_WORKLOADS
from kschedfw_lab.bench.distinct import distinct
from kschedfw_lab.bench.groups import GROUP_WORKLOADS
from kschedfw_lab.bench.shapes import Manifest
from kschedfw_lab.bench.workload import Placement, Workload, nothing


class UnknownWorkloadError(KschedfwError):
    """No workload has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        similar = get_close_matches(self.name, [*WORKLOADS, *DISTINCT_WORKLOADS], n=1)
        hint = f"did you mean {similar[0]!r}? " if similar else ""
        return f"there is no workload {self.name!r}; {hint}`kschedfw bench --help` lists them"


# Pods by their number


def _initial(shape: Callable[[str, str], Manifest], namespace: str = "default") -> Callable[[int], Manifest]:
    return lambda index: shape(f"initial-{index}", namespace)


def _measured(shape: Callable[[str, str], Manifest], namespace: str = "default") -> Callable[[int], Manifest]:
    return lambda index: shape(f"pod-{index}", namespace)


def _initial_mixture(index: int) -> Manifest:
    mixture = (
        kinds.plain,
        kinds.near_blue,
        kinds.away_from_green,
        kinds.rather_near_red,
        kinds.rather_away_from_yellow,
    )
    return mixture[index % len(mixture)](f"initial-{index}", "sched-0")


def _initial_of_devops(shape: Callable[[str, str], Manifest]) -> Callable[[int], Manifest]:
    return lambda index: shape(f"initial-{index}", f"init-ns-{index % _INITIAL_NAMESPACES}")


_INITIAL_NAMESPACES = 100
_SCHED_0_AND_1 = (shapes.namespace("sched-0"), shapes.namespace("sched-1"))
_NAMESPACES_OF_DEVOPS = tuple(
    shapes.namespace(name, {"team": "devops"})
    for name in (*(f"init-ns-{i}" for i in range(_INITIAL_NAMESPACES)), "measure-ns-0")
)


def _between_pods(
    name: str,
    measures: str,
    follows: str,
    shape: Callable[[str, str], Manifest],
    *,
    initial_pods: int = 5000,
    node: Callable[[int], Manifest] = kinds.node,
    placement: Placement = Placement.ROUND_ROBIN,
) -> Workload:
    """Return a workload with affinity between the pods of two namespaces, which the terms name."""
    return Workload(
        name,
        measures,
        f"{follows} (5000Nodes)",
        nodes=5000,
        initial_pods=initial_pods,
        pods=1000,
        node=node,
        initial_pod=_initial(shape, "sched-0"),
        measured_pod=_measured(shape, "sched-1"),
        others=_SCHED_0_AND_1,
        placement=placement,
    )


def _between_namespaces(
    name: str,
    measures: str,
    follows: str,
    shape: Callable[[str, str], Manifest],
    *,
    initial_pods: int,
    node: Callable[[int], Manifest] = kinds.node,
    placement: Placement = Placement.ROUND_ROBIN,
) -> Workload:
    """Return a workload with affinity between the pods of all namespaces with a label.

    The `initial_pods` are in 100 namespaces, the measured ones in another.
    """
    return Workload(
        name,
        measures,
        f"{follows} (5000Nodes)",
        nodes=5000,
        initial_pods=initial_pods,
        pods=1000,
        node=node,
        initial_pod=_initial_of_devops(shape),
        measured_pod=_measured(shape, "measure-ns-0"),
        others=_NAMESPACES_OF_DEVOPS,
        placement=placement,
    )


def _with_volumes(
    name: str,
    measures: str,
    follows: str,
    with_pod: Callable[[Manifest], tuple[Manifest, ...]],
    *,
    node: Callable[[int], Manifest] = kinds.node,
    with_node: Callable[[Manifest], tuple[Manifest, ...]] = nothing,
) -> Workload:
    """Return a workload in which each pod has a bound volume of its own."""
    return Workload(
        name,
        measures,
        f"{follows} (5000Nodes)",
        nodes=5000,
        initial_pods=5000,
        pods=1000,
        node=node,
        initial_pod=_initial(storage.with_claim),
        measured_pod=_measured(storage.with_claim),
        with_node=with_node,
        with_pod=with_pod,
    )


def _spreading(name: str, measures: str, follows: str, shape: Callable[[str, str], Manifest]) -> Workload:
    return Workload(
        name,
        measures,
        f"{follows} (5000Nodes)",
        nodes=5000,
        initial_pods=5000,
        pods=2000,
        node=kinds.three_zones,
        initial_pod=_initial(kinds.plain),
        measured_pod=_measured(shape),
    )


_ALL = (
    Workload(
        "basic",
        "pods that only ask for resources",
        "SchedulingBasic (5000Nodes)",
        nodes=5000,
        initial_pods=1000,
        pods=1000,
        node=kinds.node,
        initial_pod=_initial(kinds.plain),
        measured_pod=_measured(kinds.plain),
    ),
    Workload(
        "node-affinity",
        "required affinity to the nodes of two zones, in a cluster with one",
        "SchedulingNodeAffinity (5000Nodes)",
        nodes=5000,
        initial_pods=5000,
        pods=1000,
        node=kinds.one_zone,
        initial_pod=_initial(kinds.in_zone_1_or_2),
        measured_pod=_measured(kinds.in_zone_1_or_2),
    ),
    _between_pods(
        "pod-affinity",
        "required affinity to pods of the same colour, by zone",
        "SchedulingPodAffinity",
        kinds.near_blue,
        node=kinds.one_zone,
    ),
    _between_pods(
        "pod-anti-affinity",
        "required anti-affinity to pods of the same colour, by node",
        "SchedulingPodAntiAffinity",
        kinds.away_from_green,
        initial_pods=1000,
    ),
    _between_pods(
        "preferred-pod-affinity",
        "preferred affinity to pods of the same colour, by node",
        "SchedulingPreferredPodAffinity",
        kinds.rather_near_red,
        placement=Placement.SCHEDULED,
    ),
    _between_pods(
        "preferred-pod-anti-affinity",
        "preferred anti-affinity to pods of the same colour, by node",
        "SchedulingPreferredPodAntiAffinity",
        kinds.rather_away_from_yellow,
    ),
    _spreading(
        "topology-spreading",
        "a spread constraint over three zones that must hold",
        "TopologySpreading",
        kinds.spread,
    ),
    _spreading(
        "preferred-topology-spreading",
        "a spread constraint over three zones that is scored",
        "PreferredTopologySpreading",
        kinds.rather_spread,
    ),
    Workload(
        "mixed",
        "plain pods among pods with every kind of pod affinity",
        "MixedSchedulingBasePod (5000Nodes, with half of its initial pods)",
        nodes=5000,
        initial_pods=5000,
        pods=1000,
        node=kinds.one_zone,
        initial_pod=_initial_mixture,
        measured_pod=_measured(kinds.plain),
        others=_SCHED_0_AND_1,
        placement=Placement.SCHEDULED,
    ),
    Workload(
        "unschedulable",
        "pods that ask for more CPU than any node has",
        "Unschedulable (500Nodes/10Init/1kPods), its churn alone",
        nodes=500,
        initial_pods=10,
        pods=1000,
        node=kinds.node,
        initial_pod=_initial(kinds.plain),
        measured_pod=_measured(kinds.large_cpu),
    ),
    Workload(
        "unschedulable-churn",
        "plain pods, while pods of higher priority arrive that fit nowhere",
        "Unschedulable (5kNodes/100Init/1kPods)",
        nodes=5000,
        initial_pods=100,
        pods=1000,
        node=kinds.node,
        initial_pod=_initial(kinds.plain),
        measured_pod=_measured(kinds.plain),
        churn=lambda index: kinds.large_cpu(f"churn-{index}"),
    ),
    Workload(
        "preemption",
        "pods for which three others have to go (without preemption, alone: attempts that find no room)",
        "PreemptionBasic (1000Nodes)",
        nodes=1000,
        initial_pods=4000,
        pods=1000,
        node=kinds.node,
        initial_pod=_initial(kinds.low_priority),
        measured_pod=_measured(kinds.high_priority),
    ),
    Workload(
        "default-topology-spreading",
        "pods of a Service, which are spread by default",
        "DefaultTopologySpreading (5000Nodes_10000Pods)",
        nodes=5000,
        initial_pods=5000,
        pods=10_000,
        node=kinds.three_zones,
        initial_pod=_initial(kinds.plain),
        measured_pod=_measured(kinds.of_the_service, "service-ns"),
        others=(
            shapes.namespace("service-ns"),
            shapes.service("service", "service-ns", {"app": "scheduler-perf"}),
        ),
    ),
    Workload(
        "node-inclusion-policy",
        "a spread constraint over nodes, of which a fifth is tainted and doesn't count",
        "SchedulingWithNodeInclusionPolicy (5000Nodes)",
        nodes=5000,
        initial_pods=0,
        pods=4000,
        node=kinds.one_in_five_tainted,
        initial_pod=_initial(kinds.spread_over_honoured_nodes),
        measured_pod=_measured(kinds.spread_over_honoured_nodes),
    ),
    _between_namespaces(
        "pod-affinity-namespace-selector",
        "required affinity by zone, to pods of namespaces with a label",
        "SchedulingRequiredPodAffinityWithNSSelector",
        kinds.near_blue_of_devops,
        initial_pods=5000,
        node=kinds.one_zone,
    ),
    _between_namespaces(
        "pod-anti-affinity-namespace-selector",
        "required anti-affinity by node, to pods of namespaces with a label",
        "SchedulingRequiredPodAntiAffinityWithNSSelector",
        kinds.away_from_green_of_devops,
        initial_pods=4000,
    ),
    _between_namespaces(
        "preferred-pod-affinity-namespace-selector",
        "preferred affinity by node, to pods of namespaces with a label",
        "SchedulingPreferredAffinityWithNSSelector",
        kinds.rather_near_red_of_devops,
        initial_pods=5000,
        placement=Placement.SCHEDULED,
    ),
    _between_namespaces(
        "preferred-pod-anti-affinity-namespace-selector",
        "preferred anti-affinity by node, to pods of namespaces with a label",
        "SchedulingPreferredAntiAffinityWithNSSelector",
        kinds.rather_away_from_green_of_devops,
        initial_pods=4000,
    ),
    Workload(
        "extended-resource",
        "each pod asks for a device that one node has",
        "SchedulingWithExtendedResource (5000pods_5000nodes)",
        nodes=5000,
        initial_pods=0,
        pods=5000,
        node=kinds.with_a_device_of_its_own,
        initial_pod=_initial(kinds.plain),
        measured_pod=lambda index: kinds.for_one_device(f"pod-{index}", index=index),
        others=(shapes.namespace("test"),),
    ),
    Workload(
        "secrets",
        "pods with a volume that needs no scheduling",
        "SchedulingSecrets (5000Nodes)",
        nodes=5000,
        initial_pods=5000,
        pods=1000,
        node=kinds.node,
        initial_pod=_initial(storage.with_secret),
        measured_pod=_measured(storage.with_secret),
    ),
    _with_volumes(
        "in-tree-volumes",
        "pods with a disk of AWS each",
        "SchedulingInTreePVs",
        storage.in_tree_disk,
    ),
    _with_volumes(
        "migrated-in-tree-volumes",
        "the same on nodes where a CSI driver has replaced the in-tree plugin",
        "SchedulingMigratedInTreePVs",
        storage.in_tree_disk,
        node=storage.node,
        with_node=storage.migrated_csi_node,
    ),
    _with_volumes(
        "csi-volumes",
        "pods with a volume of a CSI driver each, of which a node can attach 39",
        "SchedulingCSIPVs",
        storage.csi_volume,
        node=storage.node,
        with_node=storage.csi_node,
    ),
    Workload(
        "daemonset",
        "pods that name their node, as a DaemonSet's do",
        "SchedulingDaemonset (15000Nodes)",
        nodes=15_001,
        initial_pods=0,
        pods=30_000,
        node=kinds.first_is_the_target,
        initial_pod=_initial(kinds.for_the_target),
        measured_pod=_measured(kinds.for_the_target),
    ),
)

SCHEDULER_PERF: Mapping[str, Workload] = {workload.name: workload for workload in (*_ALL, *DEVICE_WORKLOADS)}
"""Workloads with the shapes of scheduler_perf's, by name."""

_GANGS: Mapping[str, Workload] = {workload.name: workload for workload in GROUP_WORKLOADS}

WORKLOADS: Mapping[str, Workload] = {**SCHEDULER_PERF, **_GANGS, openb.NAME: openb.openb()}
"""All workloads, by name."""

DISTINCT_WORKLOADS: Mapping[str, Workload] = {
    workload.name: workload for workload in map(distinct, (*SCHEDULER_PERF.values(), *GROUP_WORKLOADS))
}
"""Variants in which no two pods are alike, by name. `openb` has no variant, since its requests are real ones."""


def find_workload(name: str, trace: Path | None = None) -> Workload:
    """Return the workload or variant of this name. `trace` is the folder of the OpenB trace for `openb`, if any.

    Raises:
        UnknownWorkloadError: there is no such workload.
        OpenbError, OSError: the trace can't be read.
    """
    if name == openb.NAME:
        return openb.openb(trace)
    found = WORKLOADS.get(name) or DISTINCT_WORKLOADS.get(name)
    if found is None:
        raise UnknownWorkloadError(name)
    return found
