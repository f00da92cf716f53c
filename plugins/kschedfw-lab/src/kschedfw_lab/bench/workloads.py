"""The workloads, with the shapes of Kubernetes' own benchmark, scheduler_perf."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from kschedfw import KschedfwError
from kschedfw_lab.bench import kinds, openb, shapes, storage
from kschedfw_lab.bench.device_workloads import DEVICE_WORKLOADS
from kschedfw_lab.bench.distinct import distinct
from kschedfw_lab.bench.groups import GROUP_WORKLOADS
from kschedfw_lab.bench.kinds import Shape
from kschedfw_lab.bench.shapes import Manifest
from kschedfw_lab.bench.workload import Placement, Workload


class UnknownWorkloadError(KschedfwError):
    """No workload has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        similar = get_close_matches(self.name, [*WORKLOADS, *DISTINCT_WORKLOADS], n=1)
        hint = f"did you mean {similar[0]!r}? " if similar else ""
        return f"there is no workload {self.name!r}; {hint}`kschedfw bench --help` lists them"


def _initial_mixture(index: int) -> Manifest:
    mixture = (
        kinds.plain,
        kinds.near_blue,
        kinds.away_from_green,
        kinds.rather_near_red,
        kinds.rather_away_from_yellow,
    )
    return mixture[index % len(mixture)](f"initial-{index}", "sched-0")


_INITIAL_NAMESPACES = 100
_BETWEEN_TWO: Final[Mapping[str, Any]] = {
    "namespaces": ("sched-0", "sched-1"),
    "others": (shapes.namespace("sched-0"), shapes.namespace("sched-1")),
}
"""Affinity between the pods of two namespaces, which the terms name."""
_OF_DEVOPS: Final[Mapping[str, Any]] = {
    "namespaces": ("init-ns-{}", "measure-ns-0"),
    "others": tuple(
        shapes.namespace(name, {"team": "devops"})
        for name in (*(f"init-ns-{i}" for i in range(_INITIAL_NAMESPACES)), "measure-ns-0")
    ),
}
"""Affinity between the pods of all namespaces with a label: 100 with the initial pods, one with the measured ones."""


def _workload(
    name: str,
    measures: str,
    follows: str,
    shape: Shape,
    initial: Shape | None = None,
    *,
    namespaces: tuple[str, str] = ("default", "default"),
    **more: Any,
) -> Workload:
    """Return a workload of pods with a shape, on as many nodes, and with as many pods, as most have.

    The initial pods may have a shape of their own. `{}` in their namespace stands for the number of one of several.
    """
    before, measured = namespaces
    given: dict[str, Any] = {
        "nodes": 5000,
        "initial_pods": 5000,
        "pods": 1000,
        "node": kinds.node,
        "initial_pod": lambda index: (initial or shape)(
            f"initial-{index}", before.format(index % _INITIAL_NAMESPACES)
        ),
        "measured_pod": lambda index: shape(f"pod-{index}", measured),
        **more,
    }
    return Workload(name, measures, follows, **given)


_ALL = (
    _workload(
        "basic",
        "pods that only ask for resources",
        "SchedulingBasic (5000Nodes)",
        kinds.plain,
        initial_pods=1000,
    ),
    _workload(
        "node-affinity",
        "required affinity to the nodes of two zones, in a cluster with one",
        "SchedulingNodeAffinity (5000Nodes)",
        kinds.in_zone_1_or_2,
        node=kinds.one_zone,
    ),
    _workload(
        "pod-affinity",
        "required affinity to pods of the same colour, by zone",
        "SchedulingPodAffinity (5000Nodes)",
        kinds.near_blue,
        **_BETWEEN_TWO,
        node=kinds.one_zone,
    ),
    _workload(
        "pod-anti-affinity",
        "required anti-affinity to pods of the same colour, by node",
        "SchedulingPodAntiAffinity (5000Nodes)",
        kinds.away_from_green,
        **_BETWEEN_TWO,
        initial_pods=1000,
    ),
    _workload(
        "preferred-pod-affinity",
        "preferred affinity to pods of the same colour, by node",
        "SchedulingPreferredPodAffinity (5000Nodes)",
        kinds.rather_near_red,
        **_BETWEEN_TWO,
        placement=Placement.SCHEDULED,
    ),
    _workload(
        "preferred-pod-anti-affinity",
        "preferred anti-affinity to pods of the same colour, by node",
        "SchedulingPreferredPodAntiAffinity (5000Nodes)",
        kinds.rather_away_from_yellow,
        **_BETWEEN_TWO,
    ),
    _workload(
        "topology-spreading",
        "a spread constraint over three zones that must hold",
        "TopologySpreading (5000Nodes)",
        kinds.spread,
        kinds.plain,
        pods=2000,
        node=kinds.three_zones,
    ),
    _workload(
        "preferred-topology-spreading",
        "a spread constraint over three zones that is scored",
        "PreferredTopologySpreading (5000Nodes)",
        kinds.rather_spread,
        kinds.plain,
        pods=2000,
        node=kinds.three_zones,
    ),
    _workload(
        "mixed",
        "plain pods among pods with every kind of pod affinity",
        "MixedSchedulingBasePod (5000Nodes, with half of its initial pods)",
        kinds.plain,
        others=_BETWEEN_TWO["others"],
        node=kinds.one_zone,
        initial_pod=_initial_mixture,
        placement=Placement.SCHEDULED,
    ),
    _workload(
        "unschedulable",
        "pods that ask for more CPU than any node has",
        "Unschedulable (500Nodes/10Init/1kPods), its churn alone",
        kinds.large_cpu,
        kinds.plain,
        nodes=500,
        initial_pods=10,
    ),
    _workload(
        "unschedulable-churn",
        "plain pods, while pods of higher priority arrive that fit nowhere",
        "Unschedulable (5kNodes/100Init/1kPods)",
        kinds.plain,
        initial_pods=100,
        churn=lambda index: kinds.large_cpu(f"churn-{index}"),
    ),
    _workload(
        "preemption",
        "pods for which three others have to go (without preemption, alone: attempts that find no room)",
        "PreemptionBasic (1000Nodes)",
        kinds.high_priority,
        kinds.low_priority,
        nodes=1000,
        initial_pods=4000,
    ),
    _workload(
        "default-topology-spreading",
        "pods of a Service, which are spread by default",
        "DefaultTopologySpreading (5000Nodes_10000Pods)",
        kinds.of_the_service,
        kinds.plain,
        namespaces=("default", "service-ns"),
        others=(
            shapes.namespace("service-ns"),
            shapes.service("service", "service-ns", {"app": "scheduler-perf"}),
        ),
        pods=10_000,
        node=kinds.three_zones,
    ),
    _workload(
        "node-inclusion-policy",
        "a spread constraint over nodes, of which a fifth is tainted and doesn't count",
        "SchedulingWithNodeInclusionPolicy (5000Nodes)",
        kinds.spread_over_honoured_nodes,
        initial_pods=0,
        pods=4000,
        node=kinds.one_in_five_tainted,
    ),
    _workload(
        "pod-affinity-namespace-selector",
        "required affinity by zone, to pods of namespaces with a label",
        "SchedulingRequiredPodAffinityWithNSSelector (5000Nodes)",
        kinds.near_blue_of_devops,
        **_OF_DEVOPS,
        node=kinds.one_zone,
    ),
    _workload(
        "pod-anti-affinity-namespace-selector",
        "required anti-affinity by node, to pods of namespaces with a label",
        "SchedulingRequiredPodAntiAffinityWithNSSelector (5000Nodes)",
        kinds.away_from_green_of_devops,
        **_OF_DEVOPS,
        initial_pods=4000,
    ),
    _workload(
        "preferred-pod-affinity-namespace-selector",
        "preferred affinity by node, to pods of namespaces with a label",
        "SchedulingPreferredAffinityWithNSSelector (5000Nodes)",
        kinds.rather_near_red_of_devops,
        **_OF_DEVOPS,
        placement=Placement.SCHEDULED,
    ),
    _workload(
        "preferred-pod-anti-affinity-namespace-selector",
        "preferred anti-affinity by node, to pods of namespaces with a label",
        "SchedulingPreferredAntiAffinityWithNSSelector (5000Nodes)",
        kinds.rather_away_from_green_of_devops,
        **_OF_DEVOPS,
        initial_pods=4000,
    ),
    _workload(
        "extended-resource",
        "each pod asks for a device that one node has",
        "SchedulingWithExtendedResource (5000pods_5000nodes)",
        kinds.plain,
        others=(shapes.namespace("test"),),
        initial_pods=0,
        pods=5000,
        node=kinds.with_a_device_of_its_own,
        measured_pod=lambda index: kinds.for_one_device(f"pod-{index}", index=index),
    ),
    _workload(
        "secrets",
        "pods with a volume that needs no scheduling",
        "SchedulingSecrets (5000Nodes)",
        storage.with_secret,
    ),
    _workload(
        "in-tree-volumes",
        "pods with a disk of AWS each",
        "SchedulingInTreePVs (5000Nodes)",
        storage.with_claim,
        with_pod=storage.in_tree_disk,
    ),
    _workload(
        "migrated-in-tree-volumes",
        "the same on nodes where a CSI driver has replaced the in-tree plugin",
        "SchedulingMigratedInTreePVs (5000Nodes)",
        storage.with_claim,
        with_pod=storage.in_tree_disk,
        node=storage.node,
        with_node=storage.migrated_csi_node,
    ),
    _workload(
        "csi-volumes",
        "pods with a volume of a CSI driver each, of which a node can attach 39",
        "SchedulingCSIPVs (5000Nodes)",
        storage.with_claim,
        with_pod=storage.csi_volume,
        node=storage.node,
        with_node=storage.csi_node,
    ),
    _workload(
        "daemonset",
        "pods that name their node, as a DaemonSet's do",
        "SchedulingDaemonset (15000Nodes)",
        kinds.for_the_target,
        nodes=15_001,
        initial_pods=0,
        pods=30_000,
        node=kinds.first_is_the_target,
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
