"""Runs the hooks of a plugin that looks at the whole cluster, as one scheduling cycle would."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from kschedfw.api.meta import Named
from kschedfw.api.node import Node
from kschedfw.api.objects import object_from_manifest
from kschedfw.api.pod import Pod
from kschedfw.cluster import InMemoryCluster
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.handle import Handle
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.parts import Parts
from kschedfw.framework.status import Status
from kschedfw.plugins.inter_pod_affinity import InterPodAffinity
from kschedfw.plugins.pod_topology_spread import PodTopologySpread

Plugin = InterPodAffinity | PodTopologySpread

REFUSALS = {
    "node(s) didn't match pod topology spread constraints": "skew",
    "node(s) didn't match pod topology spread constraints (missing required label)": "no label",
    "node(s) didn't match pod affinity rules": "affinity",
    "node(s) didn't match pod anti-affinity rules": "anti-affinity",
    "node(s) didn't satisfy existing pods anti-affinity rules": "existing anti-affinity",
}


def make(
    kind: str, name: str, namespace: str = "", labels: Mapping[str, str] | None = None, **rest: Any
) -> Any:
    metadata = {"name": name, "labels": dict(labels or {}), **rest.pop("metadata", {})}
    if namespace:
        metadata["namespace"] = namespace
    return object_from_manifest({"kind": kind, "metadata": metadata, **rest}, kind)


def make_pod(
    name: str = "pod",
    labels: Mapping[str, str] | None = None,
    *,
    on: str = "",
    namespace: str = "default",
    metadata: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    containers = [{"name": "main", "image": "registry.example/app:1"}]
    pod = make(
        "Pod",
        name,
        namespace,
        labels,
        metadata={"uid": f"{namespace}/{name}", **(metadata or {})},
        spec={"containers": containers, "nodeName": on, **spec},
    )
    assert isinstance(pod, Pod)
    return pod


def make_node(name: str, labels: Mapping[str, str] | None = None, *taints: str, **more: str) -> Node:
    """Labels by mapping or keyword; taints as `key:Effect`."""
    spec = {"taints": [dict(zip(("key", "effect"), taint.split(":"), strict=True)) for taint in taints]}
    node = make("Node", name, labels={**(labels or {}), **more}, spec=spec)
    assert isinstance(node, Node)
    return node


def short(status: Status | None) -> str:
    """A refusal in a word: `ok`, `skew`, …"""
    return "ok" if status is None else REFUSALS[status.message]


@attrs.define
class Cycle:
    """A snapshot, a cluster around it, and one plugin."""

    plugin: Plugin
    snapshot: Snapshot
    state: CycleState = attrs.field(factory=CycleState)

    @classmethod
    def of(
        cls,
        plugin: type[Plugin],
        args: Any,
        nodes: Iterable[Node],
        pods: Iterable[Pod] = (),
        objects: Iterable[Named] = (),
    ) -> Cycle:
        snapshot = Snapshot.of(nodes, pods)
        parts = Parts(InMemoryCluster(objects), snapshot=snapshot, parallelizer=Parallelizer(1))
        handle = Handle("default-scheduler", parts)
        return cls(plugin(args, handle), snapshot)

    def pre_filter(self, pod: Pod) -> Status | None:
        self.state = CycleState()
        return self.plugin.pre_filter(self.state, pod)

    def verdicts(self) -> dict[str, str]:
        return {info.name: short(self.plugin.filter(self.state, info)) for info in self.snapshot.node_infos}

    def filter(self, pod: Pod) -> dict[str, str] | str:
        """A word per node, or "skip" """
        status = self.pre_filter(pod)
        if status is None:
            return self.verdicts()
        assert status.is_skip, status
        return "skip"

    def fits(self, pod: Pod) -> list[str]:
        verdicts = self.filter(pod)
        if isinstance(verdicts, str):
            return [info.name for info in self.snapshot.node_infos]
        return [name for name, verdict in verdicts.items() if verdict == "ok"]

    def add(self, pod: Pod, other: Pod, node_name: str) -> None:
        info, other_info = self._info(other, node_name)
        info.add_pod(other_info)
        self.plugin.pre_filter_add_pod(self.state, other_info, info)

    def remove(self, pod: Pod, other: Pod, node_name: str) -> None:
        info, other_info = self._info(other, node_name)
        info.remove_pod(other)
        self.plugin.pre_filter_remove_pod(self.state, other_info, info)

    def _info(self, other: Pod, node_name: str) -> tuple[NodeInfo, PodInfo]:
        return self.snapshot.get(node_name).clone(), PodInfo.of(other)

    def pre_score(self, pod: Pod, feasible: Sequence[NodeInfo] | None = None) -> Status | None:
        self.state = CycleState()
        if isinstance(self.plugin, PodTopologySpread):
            nodes = self.snapshot.node_infos if feasible is None else feasible
            return self.plugin.pre_score(self.state, pod, nodes)
        return self.plugin.pre_score(self.state, pod)

    def skips_scoring(self, pod: Pod) -> bool:
        status = self.pre_score(pod)
        return status is not None and status.is_skip

    def score(self, pod: Pod, feasible: Sequence[str] | None = None) -> tuple[list[int], list[int]]:
        """Raw and normalised scores of the feasible nodes (all, unless said otherwise)."""
        nodes = (
            self.snapshot.node_infos if feasible is None else [self.snapshot.get(name) for name in feasible]
        )
        plugin = self.plugin
        assert self.pre_score(pod, nodes) is None
        if isinstance(plugin, PodTopologySpread):
            raw = np.array([plugin.score(self.state, info) for info in nodes], dtype=np.int64)
            normalized = plugin.normalize_score(self.state, nodes, raw.copy())
        else:
            raw = np.array([plugin.score(self.state, info) for info in nodes], dtype=np.int64)
            normalized = plugin.normalize_score(self.state, raw.copy())
        return raw.tolist(), normalized.tolist()
