"""Which events are worth another attempt for a pod that required terms, its own or others', kept off every node."""

from __future__ import annotations

import attrs

from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from kschedfw.framework.handle import ClusterClient
from kschedfw.framework.pod_info import AffinityTerm, required_terms
from kschedfw.plugins._hints import queue_if
from kschedfw.plugins.inter_pod_affinity.terms import RequiredTerms, matches, matches_all, namespace_labels


@attrs.frozen
class AffinityHints:
    """The events that the plugin subscribes to, and its judgement of each."""

    cluster: ClusterClient

    def events(self) -> tuple[ClusterEvent, ...]:
        pod_actions = ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.DELETE
        # A new node may be tainted at first, and its addition passed over; so its taints count as well.
        node_actions = ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
        return (
            ClusterEvent(EventResource.POD, pod_actions, self.after_pod_change),
            ClusterEvent(EventResource.NODE, node_actions, self.after_node_change),
        )

    def after_pod_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        """Queue when a pod on a node has become company, or has ceased to be in the way."""
        before = old if isinstance(old, Pod) else None
        after = new if isinstance(new, Pod) else None
        if any(state is not None and not state.node_name for state in (before, after)):
            return QueueingHint.SKIP
        terms = RequiredTerms.of(pod, self.cluster)
        if before is None:
            return queue_if(after is not None and matches_all(terms.affinity, after))
        if after is None:
            return queue_if(_is_avoided(terms, before) or self._minds(before, pod))
        became_company = matches_all(terms.affinity, after) and not matches_all(terms.affinity, before)
        return queue_if(
            became_company
            or any(matches(term, before) and not matches(term, after) for term in terms.anti_affinity)
        )

    def after_node_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        """Queue when a node came to a domain, or left one, that terms of the pod are about."""
        if not isinstance(new, Node):
            return QueueingHint.SKIP
        terms = RequiredTerms.of(pod, self.cluster)
        if not isinstance(old, Node):
            # A node outside of all domains is company to nobody, but breaks no anti-affinity either.
            has_company = any(term.topology_key in new.labels for term in terms.affinity)
            return queue_if(has_company or bool(terms.anti_affinity))
        entered = any(_domain(new, term) not in (None, _domain(old, term)) for term in terms.affinity)
        left = any(_domain(old, term) not in (None, _domain(new, term)) for term in terms.anti_affinity)
        return queue_if(entered or left)

    def _minds(self, existing: Pod, pod: Pod) -> bool:
        """Whether a required anti-affinity term of the existing pod is about the other one."""
        terms = required_terms(existing.spec.affinity.pod_anti_affinity, existing)
        labels = namespace_labels(pod, self.cluster)
        return any(term.matches(pod, labels) for term in terms)


def _is_avoided(terms: RequiredTerms, existing: Pod) -> bool:
    return any(matches(term, existing) for term in terms.anti_affinity)


def _domain(node: Node, term: AffinityTerm) -> str | None:
    return node.labels.get(term.topology_key)
