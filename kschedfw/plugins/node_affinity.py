"""NodeAffinity: nodes that a pod, or the scheduler's configuration, asks for."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

import attrs

from kschedfw.api import pod as api
from kschedfw.api.errors import KschedfwError
from kschedfw.api.field_errors import FieldError
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.selectors import NodeSelector, NodeSelectorTerm, PreferredSchedulingTerm
from kschedfw.framework.cycle_state import CycleState, StateKey, StateKeyError
from kschedfw.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from kschedfw.framework.node_info import NodeInfo
from kschedfw.framework.plugin import Plugin, Reads, hookimpl
from kschedfw.framework.results import IntArray, PreFilterResult
from kschedfw.framework.status import Status
from kschedfw.plugins._hints import queue_if
from kschedfw.plugins._node_terms import (
    RequiredNodeAffinity,
    any_matches,
    is_empty,
    preferred_errors,
    selector_errors,
    usable_terms,
)
from kschedfw.plugins._normalize import normalized

if TYPE_CHECKING:
    from kschedfw.framework.handle import Handle

_NOT_THE_PODS = Status.unresolvable("node(s) didn't match Pod's node affinity/selector")
_NOT_ENFORCED = Status.unresolvable("node(s) didn't match scheduler-enforced node affinity")
_CONFLICT = Status.unresolvable("pod affinity terms conflict")

WeightedTerms = Sequence[tuple[int, NodeSelectorTerm]]

_REQUIRED = StateKey[RequiredNodeAffinity]("NodeAffinity.required")
_PREFERRED = StateKey[WeightedTerms]("NodeAffinity.preferred")


class MalformedAffinityError(KschedfwError, ValueError):
    """A preferred term of a pod breaks the API's rules; says where and how."""


@attrs.frozen
class NodeAffinityArgs:
    """`added_affinity` holds for all pods of the profile, beside what each pod asks for."""

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


class NodeAffinity(Plugin[NodeAffinityArgs]):
    """Refuses nodes that don't match the pod's `nodeSelector` and required node affinity.

    Among the others those that match more of its preferred terms, by weight, score higher.
    """

    name: ClassVar[str] = "NodeAffinity"
    args_type: ClassVar[type[object] | None] = NodeAffinityArgs
    reads: ClassVar[Reads | None] = Reads.NODE

    def __init__(self, args: NodeAffinityArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        added = args.added_affinity or api.NodeAffinity()
        self._enforced = None if added.required is None else usable_terms(added.required)
        self._added_preferred = _weighted(added.preferred)

    def sign(self, pod: Pod) -> Hashable | None:
        return pod.spec.node_selector, pod.spec.affinity.node_affinity

    @hookimpl
    def pre_filter(self, state: CycleState, pod: Pod) -> PreFilterResult | Status | None:
        required = _required(pod)
        if required is None and not pod.spec.node_selector and self._enforced is None:
            return Status.skip()
        state.write(_REQUIRED, RequiredNodeAffinity.of(pod))
        names = None if required is None else _only_nodes(required)
        if names is None:
            return None
        return PreFilterResult(names) if names else _CONFLICT

    @hookimpl
    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status | None:
        node = node_info.node
        if self._enforced is not None and not any_matches(self._enforced, node):
            return _NOT_ENFORCED
        try:
            required = state.read(_REQUIRED)
        except StateKeyError:  # this plugin isn't enabled at pre_filter
            required = RequiredNodeAffinity.of(pod)
        return None if required.allows(node) else _NOT_THE_PODS

    @hookimpl
    def pre_score(self, state: CycleState, pod: Pod) -> Status | None:
        if not _preferred(pod) and not self._added_preferred:
            return Status.skip()
        state.write(_PREFERRED, self._preferred_terms(pod))
        return None

    @hookimpl
    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """The sum of the weights of the preferred terms that the node matches."""
        try:
            terms = state.read(_PREFERRED)
        except StateKeyError:  # this plugin isn't enabled at pre_score
            terms = self._preferred_terms(pod)
        labels, name = node_info.node.labels, node_info.name
        score = 0
        for weight, term in terms:
            if term.matches(labels, name):
                score += weight
        return score

    @hookimpl
    def normalize_score(self, scores: IntArray) -> IntArray:
        return normalized(scores)

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        changes = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
        return [ClusterEvent(EventResource.NODE, changes, self._after_node_change)]

    def _preferred_terms(self, pod: Pod) -> WeightedTerms:
        preferred = _preferred(pod)
        if errors := [str(error) for error in preferred_errors(preferred, "")]:
            raise MalformedAffinityError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
        return [*self._added_preferred, *_weighted(preferred)]

    def _after_node_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        if not isinstance(new, Node) or (self._enforced is not None and not any_matches(self._enforced, new)):
            return QueueingHint.SKIP
        required = RequiredNodeAffinity.of(pod)
        return queue_if(required.allows(new) and not (isinstance(old, Node) and required.allows(old)))


def _required(pod: Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity.node_affinity
    return None if affinity is None else affinity.required


def _preferred(pod: Pod) -> Sequence[PreferredSchedulingTerm]:
    affinity = pod.spec.affinity.node_affinity
    return () if affinity is None else affinity.preferred


def _weighted(terms: Sequence[PreferredSchedulingTerm]) -> WeightedTerms:
    return [(term.weight, term.preference) for term in terms if term.weight and not is_empty(term.preference)]


def _only_nodes(selector: NodeSelector) -> frozenset[str] | None:
    """The nodes that the terms' `metadata.name` fields leave over; None where some term doesn't limit them."""
    allowed: frozenset[str] | None = None
    for term in selector.node_selector_terms:
        names = term.only_names
        if names is None:
            return None
        allowed = names if allowed is None else allowed | names
    return allowed
