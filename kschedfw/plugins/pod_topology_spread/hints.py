"""The events that are worth another attempt for a pod that its hard constraints kept off every node."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from kschedfw import ActionType, ClusterEvent, EventResource, Node, Pod, QueueingHint
from kschedfw.plugins._hints import queue_if, takes_a_place
from kschedfw.plugins.pod_topology_spread.constraints import SpreadConstraint, has_topologies


@attrs.frozen
class SpreadHints:
    """The events that the plugin subscribes to, with its hints.

    kube-scheduler leaves some pods to its flush after five minutes although an event would help them: when a
    counted pod begins to terminate, and so no longer counts, and when a node begins or ceases to match the
    pod's node affinity. `complete` wakes these, too.
    """

    hard_constraints: Callable[[Pod], tuple[SpreadConstraint, ...]]
    complete: bool = False

    def events(self) -> tuple[ClusterEvent, ...]:
        pod_actions = (
            ActionType.ADD
            | ActionType.DELETE
            | ActionType.UPDATE_POD_LABEL
            # the rejected pod itself may come to tolerate nodes that then count
            | ActionType.UPDATE_POD_TOLERATION
        )
        if self.complete:
            pod_actions |= ActionType.UPDATE
        node_actions = (
            ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
        )
        return (
            ClusterEvent(EventResource.POD, pod_actions, self.after_pod_change),
            ClusterEvent(EventResource.NODE, node_actions, self.after_node_change),
        )

    def after_pod_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        """Queue when the change can alter a count, or the set of counted nodes.

        A nominated pod counts as on its node.
        """
        changed = [state for state in (old, new) if isinstance(state, Pod)]
        if not all(_is_involved(state, pod) for state in changed):
            return QueueingHint.SKIP
        constraints = self.hard_constraints(pod)
        if isinstance(old, Pod) and isinstance(new, Pod):
            return queue_if(
                _tolerates_otherwise(pod, old, new, constraints)
                or any(
                    c.siblings.selector.matches(old.labels) != c.siblings.selector.matches(new.labels)
                    for c in constraints
                )
                or (
                    self.complete
                    and any(c.siblings.matches(old) and not c.siblings.matches(new) for c in constraints)
                )
            )
        return queue_if(
            any(c.siblings.selector.matches(state.labels) for state in changed for c in constraints)
        )

    def after_node_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        """Queue when a domain may have come, gone or changed its extent."""
        constraints = self.hard_constraints(pod)
        was_in, is_in = (
            isinstance(node, Node) and has_topologies(node.labels, constraints) for node in (old, new)
        )
        if not (isinstance(old, Node) and isinstance(new, Node)):
            return queue_if(was_in or is_in)
        if was_in != is_in:
            return QueueingHint.QUEUE
        if self.complete:
            return queue_if(is_in)
        moved = any(old.labels.get(c.topology_key) != new.labels.get(c.topology_key) for c in constraints)
        return queue_if(is_in and (moved or old.spec.taints != new.spec.taints))


def _is_involved(other: Pod, pod: Pod) -> bool:
    """Whether the pod is the rejected one itself, or on a node so that it may be counted."""
    return other.uid == pod.uid or (takes_a_place(other) and other.namespace == pod.namespace)


def _tolerates_otherwise(pod: Pod, old: Pod, new: Pod, constraints: tuple[SpreadConstraint, ...]) -> bool:
    return (
        new.uid == pod.uid
        and old.spec.tolerations != new.spec.tolerations
        and any(constraint.honors_taints for constraint in constraints)
    )
