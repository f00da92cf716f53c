"""NodeDeclaredFeatures: refuses nodes whose kubelet lacks features that a pod needs (KEP-5328).

A node that has a new feature declares it in `status.declaredFeatures`. A pod doesn't name the features: they
follow from its spec. kube-scheduler v1.36 knows five features; three of them matter when a running pod changes,
not when it is placed. Unknown declared names are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final

from kschedfw import (
    ActionType,
    ClusterEvent,
    CycleState,
    EventResource,
    Node,
    NodeInfo,
    Plugin,
    Pod,
    QueueingHint,
    Reads,
    StateKey,
    Status,
    hookimpl,
)
from kschedfw.api import PodSpec, RestartRuleAction
from kschedfw.plugins._hints import queue_if

_LACKING = Status.unresolvable("node(s) didn't match Pod's required features")
_REQUIRED = StateKey[frozenset[str]]("NodeDeclaredFeatures.required")


def _restarts_all_containers(spec: PodSpec) -> bool:
    for container in (*spec.containers, *spec.init_containers):
        for rule in container.restart_policy_rules:
            if rule.action is RestartRuleAction.RESTART_ALL_CONTAINERS:
                return True
    return False


def _has_own_users_in_the_hosts_network(spec: PodSpec) -> bool:
    return spec.host_network and spec.host_users is False


_FEATURES: Mapping[str, Callable[[PodSpec], bool]] = {
    "RestartAllContainersOnContainerExits": _restarts_all_containers,
    "UserNamespacesHostNetworkSupport": _has_own_users_in_the_hosts_network,
}
"""The features by name, with a function that tells whether a pod with this spec needs the feature."""


_NO_FEATURES: Final[frozenset[str]] = frozenset()


def required_features(pod: Pod) -> frozenset[str]:
    """Return the features that a node must declare to get the pod."""
    spec = pod.spec
    has_rules = bool(spec.init_containers) or any(each.restart_policy_rules for each in spec.containers)
    if not has_rules and not spec.host_network:
        return _NO_FEATURES  # as of nearly every pod
    return frozenset([name for name, needed_by in _FEATURES.items() if needed_by(spec)])


class NodeDeclaredFeatures(Plugin):
    """Refuses nodes that don't declare every feature that the pod needs."""

    name = "NodeDeclaredFeatures"
    pure = True
    reads = Reads.NODE

    def sign_for_batch(self, pod: Pod) -> Hashable | None:
        return required_features(pod)

    @hookimpl
    def pre_filter(self, state: CycleState, pod: Pod) -> Status | None:
        required = required_features(pod)
        if not required:
            return Status.skip()
        state.write(_REQUIRED, required)
        return None

    @hookimpl
    def filter(self, state: CycleState, node_info: NodeInfo) -> Status | None:
        declared = node_info.node.status.declared_features
        return None if state.read(_REQUIRED).issubset(declared) else _LACKING

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        changes = ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE
        return [
            ClusterEvent(EventResource.NODE, changes, _after_node_change),
            ClusterEvent(EventResource.POD, ActionType.UPDATE, _after_pod_update),
        ]


def _after_node_change(_pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    """Queue when a node was added, or changed its declared features, whether or not the pod needs these."""
    if not isinstance(new, Node):
        return QueueingHint.SKIP
    return queue_if(not isinstance(old, Node) or old.status.declared_features != new.status.declared_features)


def _after_pod_update(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    """Queue when the pod itself was changed so that it needs other features."""
    if not isinstance(old, Pod) or not isinstance(new, Pod) or new.uid != pod.uid:
        return QueueingHint.SKIP
    return queue_if(required_features(old) != required_features(new))
