"""Which events are worth another attempt for a pod that required terms, its own or others', kept off every node."""

from __future__ import annotations

import attrs

from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from kschedfw.framework.pod_info import required_terms
from kschedfw.plugins._hints import queue_if
from kschedfw.plugins.inter_pod_affinity.terms import OwnTerms, TermReader, namespace_labels


@attrs.frozen
class AffinityHints:
    """The events that the plugin subscribes to, and its judgement of each."""

    reader: TermReader

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
        terms = self.reader.of(pod)
        if before is None:
            return queue_if(after is not None and _is_company(terms, after))
        if after is None:
            avoided = any(term.query.matches(before) for term in terms.anti_affinity)
            return queue_if(avoided or self._minds(before, pod))
        became_company = _is_company(terms, after) and not _is_company(terms, before)
        return queue_if(
            became_company
            or any(
                term.query.matches(before) and not term.query.matches(after) for term in terms.anti_affinity
            )
        )

    def after_node_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        """Queue when a node came to a domain, or left one, that terms of the pod are about."""
        if not isinstance(new, Node):
            return QueueingHint.SKIP
        terms = self.reader.of(pod)
        wanted = () if terms.company is None else [term.topology_key for term in terms.company.terms]
        avoided = [term.topology_key for term in terms.anti_affinity]
        if not isinstance(old, Node):
            # A node outside of all domains is company to nobody, but breaks no anti-affinity either.
            return queue_if(any(key in new.labels for key in wanted) or bool(avoided))
        entered = any(new.labels.get(key) not in (None, old.labels.get(key)) for key in wanted)
        left = any(old.labels.get(key) not in (None, new.labels.get(key)) for key in avoided)
        return queue_if(entered or left)

    def _minds(self, existing: Pod, pod: Pod) -> bool:
        """Whether a required anti-affinity term of the existing pod is about the other one."""
        terms = required_terms(existing.spec.affinity.pod_anti_affinity, existing)
        labels = namespace_labels(pod, self.reader.cluster)
        return any(term.matches(pod, labels) for term in terms)


def _is_company(terms: OwnTerms, existing: Pod) -> bool:
    return terms.company is not None and terms.company.matches(existing)
