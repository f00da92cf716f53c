"""Workloads of gangs: groups of pods that are placed together, on nodes in racks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from kschedfw import FeatureGates, Profile, default_profile
from kschedfw.config import FEATURE_GATES, REFERENCE
from kschedfw_lab.bench import shapes
from kschedfw_lab.bench.shapes import Manifest, metadata_of, name_of
from kschedfw_lab.bench.workload import Placement, Workload

_GATES: Final = (
    "GenericWorkload",
    "GangScheduling",
    "TopologyAwareWorkloadScheduling",
    "WorkloadAwarePreemption",
)
GPU: Final = "nvidia.com/gpu"
_RACK: Final = "rack"
_CAPACITY: Final = {"cpu": "256", "memory": "1Ti", "pods": "1000", GPU: "8"}
_REQUESTS: Final = {"cpu": "1", "memory": "2Gi"}


def group_gates(version: str) -> FeatureGates:
    """Return the gates for groups of a version of Kubernetes; v1.37 has merged two of them into another."""
    given = {name: True for name in _GATES if FEATURE_GATES[name].at(version) is not None}
    return FeatureGates(given, version)


def with_groups(profile: Profile, gates: FeatureGates) -> Profile:
    """Return the profile with the plugins that these gates add to the default profile."""
    known = {*default_profile().plugin_names, *profile.plugin_names}
    added = [each for each in default_profile(feature_gates=gates).multi_point if each.name not in known]
    return attrs.evolve(profile, multi_point=(*profile.multi_point, *added))


def in_rack(node: Manifest, index: int, racks: int) -> Manifest:
    """Return the node with the label of its rack; `index` is the node's number."""
    metadata = metadata_of(node)
    labels = metadata.get("labels") or {}
    assert isinstance(labels, Mapping)
    return {**node, "metadata": {**metadata, "labels": {**labels, _RACK: f"rack-{index % racks}"}}}


def in_groups(pods: Sequence[Manifest], members: int, racks: int) -> Iterator[Manifest]:
    """Yield the pods in gangs of `members`, each gang after its PodGroup. The last gang may be smaller.

    A gang runs with all its members or not at all. With several racks, all members must be in the same one.
    """
    for first in range(0, len(pods), members):
        own = pods[first : first + members]
        name = f"gang-of-{name_of(own[0])}"
        yield _gang(name, str(metadata_of(own[0])["namespace"]), len(own), constrained=racks > 1)
        yield from (_in_group(pod, name) for pod in own)


def _gang(name: str, namespace: str, members: int, *, constrained: bool) -> Manifest:
    constraints = {"schedulingConstraints": {"topology": [{"key": _RACK}]}} if constrained else {}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"schedulingPolicy": {"gang": {"minCount": members}}, **constraints},
    }


def _in_group(pod: Manifest, group: str) -> Manifest:
    spec = pod["spec"]
    assert isinstance(spec, Mapping)
    return {**pod, "spec": {**spec, "schedulingGroup": {"podGroupName": group}}}


def _initial(index: int) -> Manifest:
    requests = {"cpu": str(1 + index % 7), "memory": "4Gi"}
    return shapes.pod(f"initial-{index}", requests=requests)


def _workload(
    name: str, measures: str, requests: Mapping[str, str], kube_version: str = REFERENCE
) -> Workload:
    return Workload(
        name,
        measures,
        "none: scheduler_perf has no gangs of this size",
        nodes=5000,
        initial_pods=1667,
        pods=1024,
        node=lambda index: shapes.node(f"node-{index}", capacity=_CAPACITY),
        initial_pod=_initial,
        measured_pod=lambda index: shapes.pod(f"pod-{index}", requests=requests),
        placement=Placement.BOUND,
        members=64,
        racks=50,
        kube_version=kube_version,
    )


GROUP_WORKLOADS = (
    _workload("gang", "gangs of 64 pods, each in one of 50 racks", _REQUESTS),
    _workload("gang-1.37", "the same as v1.37 schedules them", _REQUESTS, "1.37"),
    _workload("gang-with-gpus", "those of v1.36 with a GPU for each pod", {**_REQUESTS, GPU: "1"}),
)
