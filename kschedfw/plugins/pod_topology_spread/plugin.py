"""The hooks and queueing hints of PodTopologySpread.

Semantics: kube-scheduler v1.36 `podtopologyspread`; KEP-895, KEP-3022 (minDomains), KEP-3094 (inclusion policies),
KEP-3243 (matchLabelKeys), KEP-1258 (defaults).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

import numpy as np

from kschedfw import (
    IDLE,
    ActionType,
    ClusterEvent,
    CycleState,
    DomainScores,
    DomainVerdicts,
    EventResource,
    Handle,
    IntArray,
    Node,
    NodeInfo,
    NodeSelection,
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
from kschedfw.api import Selector, UnsatisfiableAction
from kschedfw.api.records import frozen
from kschedfw.api.selectors import EVERYTHING
from kschedfw.framework.diagnosis import Evidence
from kschedfw.framework.gate_table import TAINT_TOLERATION_COMPARISON_OPERATORS
from kschedfw.plugins._hints import queue_if, takes_a_place
from kschedfw.plugins.pod_topology_spread.args import SYSTEM, SYSTEM_DEFAULTS, PodTopologySpreadArgs
from kschedfw.plugins.pod_topology_spread.constraints import (
    MalformedSelectorError,
    SiblingQuery,
    SpreadConstraint,
    default_constraints,
    has_topologies,
    own_constraints,
)
from kschedfw.plugins.pod_topology_spread.default_selectors import DefaultSelectors
from kschedfw.plugins.pod_topology_spread.extents import Extents
from kschedfw.plugins.pod_topology_spread.filtering import HardSpread
from kschedfw.plugins.pod_topology_spread.scoring import SoftSpread

_SKIP = Status.skip()

HARD = StateKey[HardSpread]("PodTopologySpread.hard")
SOFT = StateKey[SoftSpread]("PodTopologySpread.soft")


class PodTopologySpread(PluginByDomain[PodTopologySpreadArgs]):
    """Keeps the number of matching pods in any two domains of a topology no further apart than allowed.

    Hard constraints (DoNotSchedule) filter, soft ones (ScheduleAnyway) score. Pods without constraints of their
    own get the defaults of the arguments.
    """

    name = "PodTopologySpread"
    args_type = PodTopologySpreadArgs
    reads = Reads.CLUSTER

    def __init__(self, args: PodTopologySpreadArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._system_defaults = args.defaulting_type == SYSTEM
        defaults = SYSTEM_DEFAULTS if self._system_defaults else args.default_constraints
        self._defaults = {
            action: tuple(constraint for constraint in defaults if constraint.when_unsatisfiable is action)
            for action in UnsatisfiableAction
        }
        self._has_defaults = any(self._defaults.values())
        self._default_selectors = DefaultSelectors(handle.cluster)
        self._extents = Extents(compares=handle.feature_gates.enabled(TAINT_TOLERATION_COMPARISON_OPERATORS))

    def constraints(self, pod: Pod, action: UnsatisfiableAction) -> tuple[SpreadConstraint, ...]:
        """Return the pod's constraints of one kind; the defaults count only if it has none of either kind.

        Raises:
            MalformedSelectorError: the selector of one is malformed.
        """
        if pod.spec.topology_spread_constraints:
            return own_constraints(pod, action)
        defaults = self._defaults[action]
        if not defaults:
            return ()
        selector = self._sibling_selector(pod)
        if selector is None:
            return ()
        return default_constraints(defaults, SiblingQuery(pod.namespace, selector), pod.labels)

    def _sibling_selector(self, pod: Pod) -> Selector | None:
        """Return the selector of default constraints; None if the pod has no Service and no controller."""
        selector = self._default_selectors.of(pod)
        return None if selector is EVERYTHING or selector.everything else selector

    def hard_constraints(self, pod: Pod) -> tuple[SpreadConstraint, ...]:
        return self.constraints(pod, UnsatisfiableAction.DO_NOT_SCHEDULE)

    def sign(self, pod: Pod) -> Hashable | None:
        if pod.spec.topology_spread_constraints:
            return None
        # Mostly the selector is this very object, which spares a call for every pod.
        if not self._has_defaults or (selector := self._default_selectors.of(pod)) is EVERYTHING:
            return IDLE
        return IDLE if selector.everything else None

    def sign_for_batch(self, pod: Pod) -> Hashable | None:
        # Default constraints count for every pod, even for one that no Service selects.
        has_constraints = pod.spec.topology_spread_constraints or self._has_defaults
        return None if has_constraints else ()

    def domain_refusals(self, state: CycleState, nodes: NodeTable) -> DomainVerdicts:  # noqa: ARG002  # they are of one table
        return state.read(HARD).verdicts()

    def domain_scores(self, state: CycleState, nodes: NodeTable) -> DomainScores | None:  # noqa: ARG002  # they are of one table
        return state.read(SOFT).by_domain()

    def takes_members_alike(self, pod: Pod) -> bool:  # noqa: ARG002  # it passes over pods without constraints
        return True

    @hookimpl
    def pre_filter(self, state: CycleState, pod: Pod) -> Status | None:
        try:
            constraints = self.hard_constraints(pod)
        except MalformedSelectorError as error:
            return Status.from_error(f"obtaining pod's hard topology spread constraints: {error}")
        if not constraints:
            return _SKIP
        state.write(HARD, HardSpread.of(pod, constraints, self.handle.snapshot, self._extents))
        return None

    @hookimpl
    def pre_filter_add_pod(self, state: CycleState, pod_info_to_add: PodInfo, node_info: NodeInfo) -> None:
        state.read(HARD).change(pod_info_to_add.pod, node_info.node, 1)

    @hookimpl
    def pre_filter_remove_pod(
        self, state: CycleState, pod_info_to_remove: PodInfo, node_info: NodeInfo
    ) -> None:
        state.read(HARD).change(pod_info_to_remove.pod, node_info.node, -1)

    def evidence(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Iterable[Evidence]:  # noqa: ARG002  # see GivesEvidence
        return state.read(HARD).evidence(node_info.node.metadata.labels)

    @hookimpl
    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        snapshot = self.handle.snapshot
        if not len(snapshot):
            return _SKIP
        try:
            constraints = self.constraints(pod, UnsatisfiableAction.SCHEDULE_ANYWAY)
        except MalformedSelectorError as error:
            what = "obtaining pod's soft topology spread constraints"
            return Status.from_error(f"calculating preScoreState: {what}: {error}")
        if not constraints:
            return _SKIP
        # As kube-scheduler: its own defaults spread over hosts even where nodes have no zone label.
        require_all = bool(pod.spec.topology_spread_constraints) or not self._system_defaults
        rows = _rows(snapshot.table, nodes)
        state.write(
            SOFT, SoftSpread.of(pod, constraints, rows, snapshot, self._extents, require_all=require_all)
        )
        return None

    @hookimpl
    def score(self, state: CycleState, node_info: NodeInfo) -> int:
        row = self.handle.snapshot.table.rows[node_info.name]
        return int(state.read(SOFT).scores(np.array([row]))[0])

    @hookimpl
    def score_batch(self, state: CycleState, rows: IntArray) -> IntArray:
        return state.read(SOFT).scores(rows)

    @hookimpl
    def normalize_score(self, state: CycleState, nodes: Sequence[NodeInfo], scores: IntArray) -> IntArray:
        return state.read(SOFT).normalize(_rows(self.handle.snapshot.table, nodes), scores)

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        return SpreadHints(self.hard_constraints, self.args.complete_hints).events()


def _rows(table: NodeTable, nodes: Sequence[NodeInfo]) -> IntArray:
    if isinstance(nodes, NodeSelection) and nodes.table is table:
        return nodes.rows
    return np.array([table.rows[info.name] for info in nodes], dtype=np.int64)


@frozen
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
            # The rejected pod itself may come to tolerate nodes, which then count.
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
    """Tell whether the pod is the rejected one itself, or on a node so that it may be counted."""
    return other.uid == pod.uid or (takes_a_place(other) and other.namespace == pod.namespace)


def _tolerates_otherwise(pod: Pod, old: Pod, new: Pod, constraints: tuple[SpreadConstraint, ...]) -> bool:
    return (
        new.uid == pod.uid
        and old.spec.tolerations != new.spec.tolerations
        and any(constraint.honors_taints for constraint in constraints)
    )
