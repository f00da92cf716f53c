"""The hooks of PodTopologySpread.

Semantics: kube-scheduler v1.36 `podtopologyspread`; KEP-895, KEP-3022 (minDomains), KEP-3094 (inclusion policies),
KEP-3243 (matchLabelKeys), KEP-1258 (defaults).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from kschedfw.api.pod import Pod, UnsatisfiableAction
from kschedfw.framework.cycle_state import CycleState, StateKey
from kschedfw.framework.events import ClusterEvent
from kschedfw.framework.handle import Handle
from kschedfw.framework.node_info import NodeInfo
from kschedfw.framework.plugin import Plugin, Reads, hookimpl
from kschedfw.framework.pod_info import PodInfo
from kschedfw.framework.results import IntArray
from kschedfw.framework.status import Status
from kschedfw.plugins.pod_topology_spread.args import SYSTEM, SYSTEM_DEFAULTS, PodTopologySpreadArgs
from kschedfw.plugins.pod_topology_spread.constraints import (
    Constraint,
    MalformedSelectorError,
    default_constraints,
    own_constraints,
)
from kschedfw.plugins.pod_topology_spread.filtering import HardSpread
from kschedfw.plugins.pod_topology_spread.hints import SpreadHints
from kschedfw.plugins.pod_topology_spread.scoring import SoftSpread

HARD = StateKey[HardSpread]("PodTopologySpread.hard")
SOFT = StateKey[SoftSpread]("PodTopologySpread.soft")


class PodTopologySpread(Plugin[PodTopologySpreadArgs]):
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
        self._defaults = SYSTEM_DEFAULTS if self._system_defaults else args.default_constraints

    def constraints(self, pod: Pod, action: UnsatisfiableAction) -> tuple[Constraint, ...]:
        """The pod's constraints of one kind; the defaults count only where it has none of either kind."""
        if pod.spec.topology_spread_constraints:
            return own_constraints(pod, action)
        return default_constraints(self._defaults, pod, action, self.handle.cluster)

    def hard_constraints(self, pod: Pod) -> tuple[Constraint, ...]:
        return self.constraints(pod, UnsatisfiableAction.DO_NOT_SCHEDULE)

    def sign(self, pod: Pod) -> Hashable | None:
        # A score depends on which other nodes are feasible, and so on all that other plugins read of the pod.
        if self.constraints(pod, UnsatisfiableAction.SCHEDULE_ANYWAY):
            return None
        # Compiled constraints, since Services and controllers may change without a change of nodes or pods. Labels
        # matter to them alone.
        constraints = self.hard_constraints(pod)
        if not constraints:
            return ()
        spec = pod.spec
        node_affinity = spec.affinity.node_affinity
        required = None if node_affinity is None else node_affinity.required
        return (pod.namespace, constraints, spec.node_selector, required, spec.tolerations)

    @hookimpl
    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        try:
            constraints = self.hard_constraints(pod)
        except MalformedSelectorError as error:
            return Status.from_error(f"obtaining pod's hard topology spread constraints: {error}")
        if not constraints:
            return Status.skip()
        state.write(HARD, HardSpread.of(pod, constraints, nodes))
        return None

    @hookimpl
    def pre_filter_add_pod(
        self, state: CycleState, pod: Pod, pod_info_to_add: PodInfo, node_info: NodeInfo
    ) -> None:
        state.read(HARD).change(pod, pod_info_to_add.pod, node_info.node, 1)

    @hookimpl
    def pre_filter_remove_pod(
        self, state: CycleState, pod: Pod, pod_info_to_remove: PodInfo, node_info: NodeInfo
    ) -> None:
        state.read(HARD).change(pod, pod_info_to_remove.pod, node_info.node, -1)

    @hookimpl
    def filter(self, state: CycleState, node_info: NodeInfo) -> Status | None:
        return state.read(HARD).refusal(node_info.node.metadata.labels)

    @hookimpl
    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        all_nodes = self.handle.snapshot.node_infos
        if not all_nodes:
            return Status.skip()
        try:
            constraints = self.constraints(pod, UnsatisfiableAction.SCHEDULE_ANYWAY)
        except MalformedSelectorError as error:
            what = "obtaining pod's soft topology spread constraints"
            return Status.from_error(f"calculating preScoreState: {what}: {error}")
        if not constraints:
            return Status.skip()
        # The system's defaults spread over hosts even where nodes have no zone.
        require_all = bool(pod.spec.topology_spread_constraints) or not self._system_defaults
        state.write(SOFT, SoftSpread.of(pod, constraints, nodes, all_nodes, require_all=require_all))
        return None

    @hookimpl
    def score(self, state: CycleState, node_info: NodeInfo) -> int:
        return state.read(SOFT).score(node_info)

    @hookimpl
    def normalize_score(self, state: CycleState, nodes: Sequence[NodeInfo], scores: IntArray) -> IntArray:
        return state.read(SOFT).normalize(nodes, scores)

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        return SpreadHints(self.hard_constraints).events()
