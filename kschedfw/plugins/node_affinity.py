"""NodeAffinity: refuses and prefers nodes by the affinity of a pod or of the scheduler's configuration."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from kschedfw import (
    ActionType,
    ClusterEvent,
    CycleState,
    DomainVerdicts,
    EventResource,
    FieldError,
    Handle,
    IntArray,
    KschedfwError,
    Node,
    NodeInfo,
    NodeTable,
    PluginByDomain,
    Pod,
    PreFilterResult,
    QueueingHint,
    Reads,
    StateKey,
    Status,
    Verdicts,
    api,
    hookimpl,
)
from kschedfw.api import NodeSelector, NodeSelectorTerm, PreferredSchedulingTerm
from kschedfw.api.records import frozen
from kschedfw.framework.diagnosis import Evidence
from kschedfw.plugins._hints import queue_if
from kschedfw.plugins._node_terms import (
    RequiredNodeAffinity,
    any_mask,
    any_matches,
    in_any_order,
    is_empty,
    not_had,
    preferred_errors,
    selector_errors,
    term_mask,
    unmatched_terms,
    usable_terms,
)
from kschedfw.plugins._normalize import normalized

_NOT_THE_PODS = Status.unresolvable("node(s) didn't match Pod's node affinity/selector")
_NOT_ENFORCED = Status.unresolvable("node(s) didn't match scheduler-enforced node affinity")
_VERDICTS = (Status.success(), _NOT_ENFORCED, _NOT_THE_PODS)
_NOT_THE_PODS_CODE = np.int8(_VERDICTS.index(_NOT_THE_PODS))
_CONFLICT = Status.unresolvable("pod affinity terms conflict")

WeightedTerms = tuple[tuple[int, NodeSelectorTerm], ...]

_REQUIRED = StateKey[RequiredNodeAffinity]("NodeAffinity.required")
_PREFERRED = StateKey[WeightedTerms]("NodeAffinity.preferred")


class MalformedAffinityError(KschedfwError, ValueError):
    """The error of a preferred term that breaks the API's rules; says where and how."""


@frozen
class NodeAffinityArgs:
    """Arguments of NodeAffinity.

    `added_affinity` holds for all pods of the profile, beside each pod's own affinity.
    """

    added_affinity: api.NodeAffinity | None = None

    def validate(self) -> Iterator[FieldError]:
        added = self.added_affinity
        if added is None:
            return
        if added.required is not None:
            path = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution"
            yield from selector_errors(added.required, path)
        path = "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"
        yield from preferred_errors(added.preferred, path)


class NodeAffinity(PluginByDomain[NodeAffinityArgs]):
    """Refuses nodes that don't match the pod's `nodeSelector` and required node affinity.

    Of the other nodes, those that match more of its preferred terms, by weight, score higher.
    """

    name = "NodeAffinity"
    args_type: ClassVar[type[object] | None] = NodeAffinityArgs
    reads = Reads.NODE

    def __init__(self, args: NodeAffinityArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        added = args.added_affinity or api.NodeAffinity()
        self._enforced = None if added.required is None else usable_terms(added.required)
        self._added_preferred = _weighted(added.preferred)

    def sign(self, pod: Pod) -> Hashable | None:
        return pod.spec.node_selector, pod.spec.affinity.node_affinity

    def sign_for_batch(self, pod: Pod) -> Hashable | None:
        return pod.spec.node_selector, in_any_order(pod.spec.affinity.node_affinity)

    @hookimpl
    def pre_filter(self, state: CycleState, pod: Pod) -> PreFilterResult | Status | None:
        required = _required(pod)
        if required is None and not pod.spec.node_selector and self._enforced is None:
            return Status.skip()
        state.write(_REQUIRED, RequiredNodeAffinity.of(pod))
        names = None if required is None else _only_nodes(required)
        # A single named node, as in DaemonSets' pods, spares the filters all other nodes.
        if names is None:
            return None
        return PreFilterResult(names) if names else _CONFLICT

    @hookimpl
    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status | None:
        node = node_info.node
        if self._enforced is not None and not any_matches(self._enforced, node):
            return _NOT_ENFORCED
        return None if _prepared(state, pod).allows(node) else _NOT_THE_PODS

    def evidence(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Iterable[Evidence]:  # noqa: ARG002  # see GivesEvidence
        node = node_info.node
        if self._enforced is not None and not any_matches(self._enforced, node):
            yield from unmatched_terms(self._enforced, node, "addedAffinity")
        yield from _unmatched_labels(pod.spec.node_selector, node)
        required = RequiredNodeAffinity.of(pod).terms
        if required is not None and not any_matches(required, node):
            selector = _required(pod)
            terms = () if selector is None else selector.node_selector_terms
            yield from unmatched_terms(terms, node, "nodeAffinity")

    @hookimpl
    def filter_batch(self, state: CycleState, pod: Pod, nodes: NodeTable, rows: IntArray) -> Verdicts:
        codes = (~_prepared(state, pod).mask(nodes, rows)).view(np.int8) * _NOT_THE_PODS_CODE
        if self._enforced is not None:
            # Over the pod's own refusals, since `filter` checks the enforced affinity first.
            codes[~any_mask(self._enforced, nodes, rows)] = 1
        return Verdicts(codes, _VERDICTS)

    def domain_refusals(self, state: CycleState, nodes: NodeTable) -> DomainVerdicts | None:
        refused = None if self._enforced is not None else state.read(_REQUIRED).refused_domains(nodes)
        return None if refused is None else DomainVerdicts(refused, [_NOT_THE_PODS] * len(refused))

    @hookimpl
    def pre_score(self, state: CycleState, pod: Pod) -> Status | None:
        if not _preferred(pod) and not self._added_preferred:
            return Status.skip()
        state.write(_PREFERRED, self._preferred_terms(pod))
        return None

    @hookimpl
    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """Return the sum of the weights of the preferred terms that the node matches."""
        labels, name = node_info.node.labels, node_info.name
        score = 0
        for weight, term in self._prepared_terms(state, pod):
            if term.matches(labels, name):
                score += weight
        return score

    @hookimpl
    def score_batch(self, state: CycleState, pod: Pod, nodes: NodeTable, rows: IntArray) -> IntArray:
        scores = np.zeros(len(rows), dtype=np.int64)
        for weight, term in self._prepared_terms(state, pod):
            scores += weight * term_mask(term, nodes, rows)
        return scores

    @hookimpl
    def normalize_score(self, scores: IntArray) -> IntArray:
        return normalized(scores)

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        changes = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
        return [ClusterEvent(EventResource.NODE, changes, self._after_node_change)]

    def _prepared_terms(self, state: CycleState, pod: Pod) -> WeightedTerms:
        # None where this plugin isn't enabled at pre_score.
        terms = state.find(_PREFERRED)
        return self._preferred_terms(pod) if terms is None else terms

    def _preferred_terms(self, pod: Pod) -> WeightedTerms:
        return self._added_preferred + _compiled(_preferred(pod))

    def _after_node_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        if not isinstance(new, Node) or (self._enforced is not None and not any_matches(self._enforced, new)):
            return QueueingHint.SKIP
        required = RequiredNodeAffinity.of(pod)
        return queue_if(required.allows(new) and not (isinstance(old, Node) and required.allows(old)))


def _required(pod: Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity.node_affinity
    return None if affinity is None else affinity.required


def _prepared(state: CycleState, pod: Pod) -> RequiredNodeAffinity:
    # None where this plugin isn't enabled at pre_filter.
    required = state.find(_REQUIRED)
    return RequiredNodeAffinity.of(pod) if required is None else required


def _preferred(pod: Pod) -> tuple[PreferredSchedulingTerm, ...]:
    affinity = pod.spec.affinity.node_affinity
    return () if affinity is None else affinity.preferred


@functools.lru_cache(maxsize=4096)
def _compiled(terms: tuple[PreferredSchedulingTerm, ...]) -> WeightedTerms:
    """Return a pod's terms; cached, since the pods of one controller have equal ones.

    Raises:
        MalformedAffinityError: kube-scheduler couldn't compile some of them.
    """
    if errors := [str(error) for error in preferred_errors(terms, "")]:
        raise MalformedAffinityError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
    return _weighted(terms)


def _weighted(terms: Sequence[PreferredSchedulingTerm]) -> WeightedTerms:
    return tuple(
        (term.weight, term.preference) for term in terms if term.weight and not is_empty(term.preference)
    )


def _only_nodes(selector: NodeSelector) -> frozenset[str] | None:
    """Return the node names that `metadata.name` fields of the terms allow; None if a term has no such field."""
    allowed: frozenset[str] | None = None
    for term in selector.node_selector_terms:
        names = term.only_names
        if names is None:
            return None
        allowed = names if allowed is None else allowed | names
    return allowed


def _unmatched_labels(node_selector: Mapping[str, str], node: Node) -> Iterator[Evidence]:
    """Yield evidence for the entries of a `nodeSelector` that the node doesn't have."""
    for key, value in node_selector.items():
        if node.labels.get(key) != value:
            yield not_had(
                f"nodeSelector {key}={value}",
                key,
                node.labels,
                "node-selector",
                term="nodeSelector",
                wanted=value,
            )
