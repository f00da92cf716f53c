"""The exported state of pending pods in the cluster itself: conditions, nominations and claims."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from kschedfw import Node, Pod, WhatIf
from kschedfw.api import (
    Finding,
    PersistentVolumeClaim,
    PodGroup,
    PodPhase,
    WarningEvent,
    did_you_mean,
    group_key,
)
from kschedfw.cluster import Cluster, Workload, workload_of
from kschedfw.explain import Explanation, NodeExplanation
from kschedfw.what_if import Placed

_VOLUME_PLUGINS: Final = ("VolumeBinding", "VolumeZone", "NodeVolumeLimits")


@attrs.frozen
class Disagreement:
    """A pod that the cluster's scheduler called unschedulable, and that has a place here.

    `recorded` is the message of its condition, `node_name` the place that it has here, `why` the likely reason why the
    two differ.
    """

    pod: Pod
    recorded: str
    node_name: str
    why: Finding

    @property
    def likely(self) -> str:
        """Return the likely reason in words."""
        return str(self.why)


def recorded_message(pod: Pod) -> str:
    """Return the message with which the cluster's scheduler refused the pod last (PodScheduled); empty if none."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.reason == "Unschedulable":
            return condition.message
    return ""


def disagreements_of(placed: Iterable[Placed], cluster: Cluster) -> Iterator[Disagreement]:
    """The pods that have a place now although their conditions say that they are unschedulable."""
    ending = _ending(cluster)
    for each in placed:
        if recorded := recorded_message(each.pod):
            yield Disagreement(each.pod, recorded, each.node_name, _likely(each.pod, cluster, ending))


def awaiting_victims(what_if: WhatIf, refused: Iterable[Pod]) -> Mapping[str, Finding]:
    """Return, by pod key, what nominated pods wait for: the victims of their preemption have to end first.

    That was tried in a transaction: for all these pods together, without the pods that end.
    """
    ending = _ending(what_if.cluster)
    nominated = [pod for pod in refused if pod.status.nominated_node_name in ending]
    if not nominated:
        return {}
    with what_if.transaction() as trial:
        for node in {pod.status.nominated_node_name for pod in nominated}:
            trial.delete(*ending[node])
        placed = {each.pod.key: each.node_name for each in trial.schedule(nominated).placed}
    nodes = {pod.key: pod.status.nominated_node_name for pod in nominated}
    return {
        key: _preemption_under_way(node, ending[node])
        for key, node in nodes.items()
        if placed.get(key) == node
    }


def _ending(cluster: Cluster) -> Mapping[str, Sequence[Pod]]:
    """The pods that are being deleted, by their node."""
    ending: defaultdict[str, list[Pod]] = defaultdict(list)
    for pod in cluster.list(Pod):
        if pod.node_name and pod.is_terminating:
            ending[pod.node_name].append(pod)
    return ending


def _likely(pod: Pod, cluster: Cluster, ending: Mapping[str, Sequence[Pod]]) -> Finding:
    """Return the likely reason why the cluster placed the pod nowhere; `ending` has the pods being deleted, by node."""
    if node := pod.status.nominated_node_name:
        return _preemption_under_way(node, ending.get(node, ()))
    claims = [key for key, claim in _claims(pod, cluster) if claim is None or not claim.spec.volume_name]
    if claims:
        return Finding.of("volumes-unbound", "its volumes aren't bound yet: {claims}", claims=tuple(claims))
    return Finding.of(
        "changed-since", "the cluster has changed since, or the pod's next attempt is still to come"
    )


def _preemption_under_way(node: str, ending: Sequence[Pod]) -> Finding:
    """Return the finding that the pod is nominated to the node, and that its victims still have to end."""
    if not ending:
        return Finding.of("nominated", "it is nominated to {node}, where preemption has made room", node=node)
    until = max(pod.metadata.deletion_timestamp for pod in ending if pod.metadata.deletion_timestamp)
    return Finding.of(
        "preemption-under-way",
        "it is nominated to {node}, and waits for pods that end there by {until}: {victims}",
        node=node,
        until=f"{until:%H:%M:%S}",
        victims=tuple(pod.key for pod in ending),
    )


def missing_group(pod: Pod, cluster: Cluster) -> Iterator[Finding]:
    """Yield a finding if the pod's PodGroup is missing, for which its members wait."""
    key = group_key(pod)
    if key and cluster.get(PodGroup, key) is None:
        names = [each.name for each in cluster.list(PodGroup, pod.namespace)]
        hint = did_you_mean(key.partition("/")[2], names)
        yield Finding.of("pod-group-missing", "PodGroup {group} doesn't exist{hint}", group=key, hint=hint)


def volume_obstacles(pod: Pod, explanation: Explanation) -> Iterator[Finding]:
    """Yield a finding for each of the pod's volumes that keeps it off nodes, those of the most nodes first.

    Volumes that keep it only off nodes which something else refuses, too, are left out.
    """
    if not pod.storage:
        return
    rows = tuple(explanation.rows())
    if not any(_is_refused_by_volumes_alone(row) for row in rows):
        return
    refused = Counter(
        each.asked for row in rows for plugin in _VOLUME_PLUGINS for each in row.evidence.get(plugin, ())
    )
    for asked, nodes in refused.most_common():
        yield Finding.of(
            "volume-keeps-off",
            "{volume}, which keeps it off {nodes} of {ofNodes} nodes",
            volume=asked,
            nodes=nodes,
            ofNodes=len(explanation.nodes),
        )


def _is_refused_by_volumes_alone(row: NodeExplanation) -> bool:
    refusals = [each for each in (row.refusal, *row.also_refused_by.values()) if each is not None]
    return bool(refusals) and all(each.plugin in _VOLUME_PLUGINS for each in refusals)


def _claims(pod: Pod, cluster: Cluster) -> Iterator[tuple[str, PersistentVolumeClaim | None]]:
    """Return the claims that the pod names, by key; None for a missing claim. Ephemeral claims are left out."""
    for volume in pod.spec.volumes:
        if (source := volume.persistent_volume_claim) is not None:
            key = f"{pod.namespace}/{source.claim_name}"
            yield key, cluster.get(PersistentVolumeClaim, key)


_STARTING: Final = frozenset(("", "ContainerCreating", "PodInitializing"))
"""Reasons for which containers wait while their pod starts as it should."""


_NOT_READY: Final = frozenset(("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"))
"""The taints of nodes whose kubelet doesn't answer, or starts no pods."""


@attrs.frozen
class Stuck:
    """Pods of one workload that have a node and don't start there for one reason; the workload is None without one."""

    pods: tuple[Pod, ...]
    workload: Workload | None
    finding: Finding


def stuck_pods(cluster: Cluster, warnings: Mapping[str, WarningEvent]) -> Iterator[Stuck]:
    """Yield the pods that have a node and don't start there, those of most pods first.

    `warnings` are the last ones about each pod's start, by the pod's key.
    """
    nodes = {node.name: node for node in cluster.list(Node)}
    found: defaultdict[tuple[Workload | None, Finding], list[Pod]] = defaultdict(list)
    for pod in cluster.list(Pod):
        if pod.node_name and not (pod.is_terminal or pod.is_terminating):
            finding = _why_not_started(pod, nodes, warnings.get(pod.key))
            if finding is not None:
                found[workload_of(pod, cluster), finding].append(pod)
    for (workload, finding), pods in sorted(found.items(), key=lambda each: -len(each[1])):
        yield Stuck(tuple(pods), workload, finding)


def _why_not_started(pod: Pod, nodes: Mapping[str, Node], warning: WarningEvent | None) -> Finding | None:
    if nodes and pod.node_name not in nodes and pod.status.phase is PodPhase.PENDING:
        text = "bound to node {node}, which doesn't exist, so nothing starts it"
        return Finding.of("node-missing", text, node=pod.node_name)
    for each in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        waiting = None if each.state is None else each.state.waiting
        if waiting is not None and waiting.reason not in _STARTING:
            text = "container {container} waits with {reason}" + (": {message}" if waiting.message else "")
            return Finding.of(
                "container-waiting", text, container=each.name, reason=waiting.reason, message=waiting.message
            )
    if pod.status.phase is not PodPhase.PENDING:
        return None
    if warning is not None:
        return Finding.of("start-failed", "{message}", reason=warning.reason, message=warning.message)
    node = nodes.get(pod.node_name)
    if node is not None and any(taint.key in _NOT_READY for taint in node.spec.taints):
        text = "bound to node {node}, which isn't ready, so nothing starts it"
        return Finding.of("node-not-ready", text, node=node.name)
    return None
