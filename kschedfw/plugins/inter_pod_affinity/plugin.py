"""The arguments, hooks and queueing hints of InterPodAffinity.

Semantics: kube-scheduler v1.36 `interpodaffinity`; KEP-2249 (namespaceSelector). matchLabelKeys and mismatchLabelKeys
(KEP-3633) are part of the label selectors already when pods get here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

import attrs

from kschedfw import (
    IDLE,
    ActionType,
    ClusterEvent,
    CycleState,
    DomainScores,
    DomainVerdicts,
    EventResource,
    FieldError,
    FrozenDict,
    Handle,
    Node,
    NodeInfo,
    NodeTable,
    PluginByDomain,
    Pod,
    PodInfo,
    QueueingHint,
    Reads,
    StateKey,
    Status,
    hookimpl,
)
from kschedfw.api import EMPTY
from kschedfw.api.records import frozen
from kschedfw.framework.diagnosis import Evidence
from kschedfw.framework.nodes.pod_info import NO_TERMS, AffinityTerm, AffinityTerms, affinity_terms
from kschedfw.framework.nodes.topology import TermTally
from kschedfw.framework.versions.v1_37 import ANTI_AFFINITY_HINTS
from kschedfw.plugins._hints import queue_if, takes_a_place
from kschedfw.plugins.inter_pod_affinity.evidence import Neighbours, evidence_of
from kschedfw.plugins.inter_pod_affinity.filtering import RequiredState
from kschedfw.plugins.inter_pod_affinity.scoring import Attraction
from kschedfw.plugins.inter_pod_affinity.terms import TermReader, company_keys, is_company, namespace_labels

_MAX_WEIGHT = 100


@frozen
class InterPodAffinityArgs:
    """The weights of existing pods' terms in scores (kubescheduler.config.k8s.io InterPodAffinityArgs).

    An existing pod that requires to be near pods like the new one attracts it with `hard_pod_affinity_weight`
    (0–100). With `ignore_preferred_terms_of_existing_pods`, existing pods aren't looked at for new pods without
    preferred terms.

    `complete_hints`, which kube-scheduler doesn't have, wakes refused pods by every event that may help them.
    kube-scheduler ignores some of these events, because it tries all pods again after five minutes. In a
    simulation nothing else would wake them.
    """

    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False
    complete_hints: bool = attrs.field(
        default=False, metadata={"beyond_kube_scheduler": "for simulations, which have no flush"}
    )

    def validate(self) -> Iterator[FieldError]:
        if not 0 <= self.hard_pod_affinity_weight <= _MAX_WEIGHT:
            yield FieldError.invalid(
                "hardPodAffinityWeight",
                self.hard_pod_affinity_weight,
                f"not in valid range [0, {_MAX_WEIGHT}]",
            )


_SKIP = Status.skip()

REQUIRED = StateKey[RequiredState]("InterPodAffinity.required")
PREFERRED = StateKey[Attraction]("InterPodAffinity.preferred")
NEIGHBOURS = StateKey[Neighbours]("InterPodAffinity.neighbours")


class InterPodAffinity(PluginByDomain[InterPodAffinityArgs]):
    """Places a pod near pods that its affinity terms select, and away from pods that its anti-affinity terms select.

    Required terms filter, preferred ones score. Terms of existing pods count, too: their required anti-affinity
    filters, and all their other terms score.
    """

    name = "InterPodAffinity"
    args_type = InterPodAffinityArgs
    reads = Reads.CLUSTER

    def __init__(self, args: InterPodAffinityArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._terms = TermReader(handle.cluster)

    def sign(self, pod: Pod) -> Hashable | None:
        # Without the calls that `affinity_terms` would take: this runs for every pod, and most have neither.
        affinity = pod.spec.affinity
        if affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None:
            return None
        return None if self.handle.snapshot.topology.has_terms else IDLE

    def sign_for_batch(self, pod: Pod) -> Hashable | None:
        affinity = pod.spec.affinity
        if affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None:
            return None
        # Terms of existing pods may select this pod by its labels.
        return () if self.args.ignore_preferred_terms_of_existing_pods else pod.labels

    def domain_refusals(self, state: CycleState, nodes: NodeTable) -> DomainVerdicts:
        return state.read(REQUIRED).verdicts(nodes)

    def domain_scores(self, state: CycleState, nodes: NodeTable) -> DomainScores:  # noqa: ARG002  # they are of one table
        return state.read(PREFERRED).scores()

    # False for members with terms, which attract or repel each other.
    def takes_members_alike(self, pod: Pod) -> bool:
        affinity = pod.spec.affinity
        return affinity.pod_affinity is None and affinity.pod_anti_affinity is None

    @hookimpl
    def pre_filter(self, state: CycleState, pod: Pod) -> Status | None:
        own, index = self._terms.of(pod), self.handle.snapshot.topology
        if own is NO_TERMS and not index.has_terms:
            return _SKIP
        if own.error is not None:
            # Also for an error in a preferred term: kube-scheduler parses all terms before it looks whether
            # any is required.
            return Status.unresolvable(f"parsing pod: {own.error}")
        if not own.are_required and not index.has_terms:
            return _SKIP
        labels, existing = self._about(pod)
        required = RequiredState.of(pod, labels, own, index, existing)
        # Also for a pod that is skipped here, since pre_score needs the terms of existing pods, too.
        state.write(REQUIRED, required)
        return None if required.rules_out else _SKIP

    @hookimpl
    def pre_filter_add_pod(self, state: CycleState, pod_info_to_add: PodInfo, node_info: NodeInfo) -> None:
        state.read(REQUIRED).change(pod_info_to_add, node_info.node.metadata.labels, 1)

    @hookimpl
    def pre_filter_remove_pod(
        self, state: CycleState, pod_info_to_remove: PodInfo, node_info: NodeInfo
    ) -> None:
        state.read(REQUIRED).change(pod_info_to_remove, node_info.node.metadata.labels, -1)

    def evidence(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Iterable[Evidence]:  # noqa: ARG002  # see GivesEvidence
        if NEIGHBOURS not in state:
            state.write(NEIGHBOURS, Neighbours(self.handle.snapshot))
        return evidence_of(state.read(REQUIRED), node_info, state.read(NEIGHBOURS))

    @hookimpl
    def pre_score(self, state: CycleState, pod: Pod) -> Status | None:
        required, existing = state.find(REQUIRED), None
        if required is not None:
            own, existing = required.terms, required.existing
        else:
            own = self._terms.of(pod)
            if self.handle.snapshot.topology.has_terms:
                _, existing = self._about(pod)
        if own is NO_TERMS and existing is None:
            return _SKIP
        prefers = own.are_preferred
        if self.args.ignore_preferred_terms_of_existing_pods and not prefers:
            return _SKIP
        if own.error is not None:
            return Status.from_error(f"failed to parse pod: {own.error}")
        if existing is None and not prefers:
            return _SKIP
        index = self.handle.snapshot.topology
        attraction = Attraction.of(own, existing, index, self.args.hard_pod_affinity_weight)
        if not attraction.by_key:
            return _SKIP
        state.write(PREFERRED, attraction)
        return None

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        return AffinityHints(
            self._terms,
            self.args.complete_hints,
            self.handle.feature_gates.follows(ANTI_AFFINITY_HINTS),
        ).events()

    def _about(self, pod: Pod) -> tuple[FrozenDict[str, str], TermTally | None]:
        """Return the labels of the pod's namespace, and the terms of existing pods that select the pod, if any."""
        labels, index = namespace_labels(pod, self.handle.cluster), self.handle.snapshot.topology
        existing = index.terms_about(pod, labels) if index.has_terms else None
        return labels, None if existing is None or existing.is_empty else existing


@frozen
class AffinityHints:
    """The events that the plugin subscribes to, with its hints.

    kube-scheduler leaves some pods to its flush after five minutes although an event would help them: pods that
    an existing pod's anti-affinity refused, when nodes come, go or change labels; pods that may be the first of
    their group, when its last pod goes; pods with several anti-affinity terms, when a pod goes that matches some of
    them; and those whose terms select namespaces by labels. `complete` wakes these, too. `one_suffices` wakes those
    with several anti-affinity terms alone, as v1.37 does.
    """

    reader: TermReader
    complete: bool = False
    one_suffices: bool = False

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
        if self.complete:
            return queue_if(self._helps(pod, before, after))
        terms = affinity_terms(pod)
        wanted, avoided = terms.required_affinity, terms.required_anti_affinity
        if before is None:
            return queue_if(_match_all(wanted, after))
        if after is None:
            others = affinity_terms(before).required_anti_affinity
            return queue_if(self._repelled(avoided, before) or self._repelled(others, pod))
        return queue_if(
            (_match_all(wanted, after) and not _match_all(wanted, before))
            or (self._repelled(avoided, before) and not self._repelled(avoided, after))
        )

    def _repelled(self, terms: Sequence[AffinityTerm], pod: Pod) -> bool:
        """Tell whether the pod counts as matched by anti-affinity terms."""
        if self.one_suffices:
            return any(term.matches(pod, EMPTY) for term in terms)
        return _match_all(terms, pod)

    def _helps(self, pod: Pod, before: Pod | None, after: Pod | None) -> bool:
        """Tell whether another pod on a node that came, changed or went may let the pod in."""
        terms = self.reader.of(pod)
        if before is None:
            return after is not None and is_company(terms, after)
        if after is None:
            avoided = any(term.matches(before) for term in terms.required_anti_affinity)
            return avoided or self._minds(before, pod) or _may_be_first_after(before, pod, terms)
        became_company = is_company(terms, after) and not is_company(terms, before)
        ceased_to_be = is_company(terms, before) and not is_company(terms, after)
        return (
            became_company
            or any(term.matches(before) and not term.matches(after) for term in terms.required_anti_affinity)
            or (ceased_to_be and _may_be_first_after(before, pod, terms))
        )

    def after_node_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        """Queue when a node was added to a domain of the pod's terms, or removed from one."""
        if self.complete:
            return QueueingHint.QUEUE
        if not isinstance(new, Node):
            return QueueingHint.SKIP
        terms = self.reader.of(pod)
        wanted = company_keys(terms)
        avoided = [term.topology_key for term in terms.required_anti_affinity]
        if not isinstance(old, Node):
            # A node without the topology labels satisfies no affinity term, but violates no anti-affinity either.
            return queue_if(any(key in new.labels for key in wanted) or bool(avoided))
        entered = any(new.labels.get(key) not in (None, old.labels.get(key)) for key in wanted)
        left = any(old.labels.get(key) not in (None, new.labels.get(key)) for key in avoided)
        return queue_if(entered or left)

    def _minds(self, existing: Pod, pod: Pod) -> bool:
        """Tell whether a required anti-affinity term of the existing pod selects the other pod."""
        labels = namespace_labels(pod, self.reader.cluster)
        return any(term.matches(pod, labels) for term in affinity_terms(existing).required_anti_affinity)


def _match_all(terms: Sequence[AffinityTerm], pod: Pod | None) -> bool:
    """Tell whether the pod matches all of the terms, and there are any.

    Up to v1.36 kube-scheduler asks this of anti-affinity, too, where one term suffices to refuse a pod; and it doesn't
    look up the labels of namespaces.
    """
    return bool(terms) and pod is not None and all(term.matches(pod, EMPTY) for term in terms)


def _may_be_first_after(gone: Pod, pod: Pod, terms: AffinityTerms) -> bool:
    """Tell whether the removed pod may have been the last that the pod's affinity terms select.

    If so, the pod may go anywhere.
    """
    return is_company(terms, gone) and is_company(terms, pod)
