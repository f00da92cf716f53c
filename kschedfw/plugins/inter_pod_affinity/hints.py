"""The events that are worth another attempt for a pod that required terms kept off every node."""

from __future__ import annotations

import attrs

from kschedfw import ActionType, ClusterEvent, EventResource, Node, Pod, QueueingHint
from kschedfw.framework.nodes.pod_info import required_terms
from kschedfw.plugins._hints import queue_if, takes_a_place
from kschedfw.plugins.inter_pod_affinity.terms import OwnTerms, TermReader, namespace_labels


@attrs.frozen
class AffinityHints:
    """The events that the plugin subscribes to, with its hints.

    kube-scheduler leaves some pods to its flush after five minutes although an event would help them: pods that
    an existing pod's anti-affinity refused, when nodes come, go or change labels, and pods that may be the
    first of their group, when its last pod goes. `complete` wakes these, too.
    """

    reader: TermReader
    complete: bool = False

    def events(self) -> tuple[ClusterEvent, ...]:
        pod_actions = ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.DELETE
        # Not taints: with hints no node's addition is passed over, so there is nothing that they would make up for.
        node_actions = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
        if self.complete:
            node_actions |= ActionType.DELETE
        return (
            ClusterEvent(EventResource.POD, pod_actions, self.after_pod_change),
            ClusterEvent(EventResource.NODE, node_actions, self.after_node_change),
        )

    def after_pod_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        """Queue when a pod on a node begins to match the pod's affinity, or ceases to match its anti-affinity.

        Also queue when the pod's own labels changed. A nominated pod counts as on its node.
        """
        before = old if isinstance(old, Pod) else None
        after = new if isinstance(new, Pod) else None
        if before is not None and after is not None and after.uid == pod.uid:
            # Terms of existing pods may be about other labels, and its own are, where it may be the first of a group.
            return queue_if(before.labels != after.labels)
        if any(state is not None and not takes_a_place(state) for state in (before, after)):
            return QueueingHint.SKIP
        terms = self.reader.of(pod)
        if before is None:
            return queue_if(after is not None and _is_company(terms, after))
        if after is None:
            avoided = any(term.query.matches(before) for term in terms.anti_affinity)
            return queue_if(
                avoided or self._minds(before, pod) or self._may_be_first_after(before, pod, terms)
            )
        became_company = _is_company(terms, after) and not _is_company(terms, before)
        ceased_to_be = _is_company(terms, before) and not _is_company(terms, after)
        return queue_if(
            became_company
            or any(
                term.query.matches(before) and not term.query.matches(after) for term in terms.anti_affinity
            )
            or (ceased_to_be and self._may_be_first_after(before, pod, terms))
        )

    def after_node_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        """Queue when a node was added to a domain of the pod's terms, or removed from one."""
        if self.complete:
            return QueueingHint.QUEUE
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
        """Whether a required anti-affinity term of the existing pod selects the other pod."""
        terms = required_terms(existing.spec.affinity.pod_anti_affinity, existing)
        labels = namespace_labels(pod, self.reader.cluster)
        return any(term.matches(pod, labels) for term in terms)

    def _may_be_first_after(self, gone: Pod, pod: Pod, terms: OwnTerms) -> bool:
        """Whether the removed pod may have been the last that the pod's affinity terms select.

        If so, the pod may go anywhere.
        """
        return self.complete and _is_company(terms, gone) and _is_company(terms, pod)


def _is_company(terms: OwnTerms, existing: Pod) -> bool:
    return terms.company is not None and terms.company.matches(existing)
