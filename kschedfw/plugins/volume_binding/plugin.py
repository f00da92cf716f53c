"""The hooks of VolumeBinding.

Semantics: kube-scheduler v1.36 `volumebinding`; KEP-490 (delayed binding), KEP-1472 (storage capacity), KEP-1698
(generic ephemeral volumes).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from kschedfw import (
    ClusterEvent,
    CycleState,
    Handle,
    IntArray,
    NodeInfo,
    NodeTable,
    PlanPart,
    Plugin,
    Pod,
    PreBindPreFlightResult,
    Reads,
    StateKey,
    Status,
    Verdicts,
    VolumeStage,
    hookimpl,
    per_signature,
)
from kschedfw.framework.evidence import Evidence
from kschedfw.plugins._storage_plugin import volumes_of
from kschedfw.plugins.volume_binding.args import VolumeBindingArgs
from kschedfw.plugins.volume_binding.binder import VolumeBinder, VolumeReservation
from kschedfw.plugins.volume_binding.claims import VolumeClaimProblem, VolumeClaims
from kschedfw.plugins.volume_binding.hints import volume_events
from kschedfw.plugins.volume_binding.pod_volumes import PodVolumes
from kschedfw.plugins.volume_binding.problems import FINE, STATUSES
from kschedfw.plugins.volume_binding.scoring import score

VOLUMES = StateKey[PodVolumes]("VolumeBinding.volumes")
RESERVATION = StateKey[VolumeReservation]("VolumeBinding.reservation")


# Made once: every pod gets one of them.
_HAS_WORK: Final = PreBindPreFlightResult(allow_parallel=True, skip=False)
_IS_IDLE: Final = PreBindPreFlightResult(allow_parallel=True, skip=True)


class VolumeBinding(Plugin[VolumeBindingArgs]):
    """Lets a pod run on nodes where its volumes can be used, and binds the volumes that wait for its node.

    Claims with delayed binding get the smallest volume that fits and can be used from the node, or a new one is
    provisioned for the node. Volumes are reserved in the scheduling cycle and bound before the pod is.
    """

    name = "VolumeBinding"
    args_type = VolumeBindingArgs
    reads = Reads.NODE

    def __init__(self, args: VolumeBindingArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self.claims = VolumeClaims.of(handle.cluster)
        self._shape = args.scoring_shape
        self._binder = VolumeBinder(self.claims, handle.clock, args.bind_timeout_seconds)

    def sign(self, pod: Pod) -> Hashable | None:
        # Without claims there is nothing to refuse; the same goes for bound volumes that can be used from everywhere.
        return self.claims.reaches(pod) if pod.spec.volumes else ()

    def sign_for_batch(self, pod: Pod) -> Hashable | None:
        return volumes_of(pod)

    def plan_part(self, pod: Pod) -> PlanPart | None:  # noqa: ARG002  # no shape has volumes or claims
        return PlanPart.IDLE

    @hookimpl
    def pre_filter(self, state: CycleState, pod: Pod) -> Status | None:
        if not pod.spec.volumes:
            return Status.skip()
        try:
            needs = self.claims.needs(pod)
        except VolumeClaimProblem as problem:
            return Status.unresolvable(str(problem))
        if needs is None:
            return Status.skip()
        state.write(VOLUMES, needs)
        return None

    @hookimpl
    def filter(self, state: CycleState, node_info: NodeInfo) -> Status | None:
        problems = state.read(VOLUMES).on(node_info.node, self.handle.cluster).problems
        return None if problems == FINE else STATUSES[problems]

    def evidence(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Iterable[Evidence]:  # noqa: ARG002  # see GivesEvidence
        return self.claims.evidence(pod, node_info.node)

    @hookimpl
    def filter_batch(self, state: CycleState, nodes: NodeTable, rows: IntArray) -> Verdicts:
        return state.read(VOLUMES).verdicts(nodes, rows, self.handle.cluster)

    @hookimpl
    @per_signature
    def pre_score(self) -> Status | None:
        return Status.skip() if self._shape is None else None

    @hookimpl
    def score(self, state: CycleState, node_info: NodeInfo) -> int:
        if self._shape is None or VOLUMES not in state:
            return 0
        node = node_info.node
        return score(self._shape, state.read(VOLUMES).on(node, self.handle.cluster), node)

    @hookimpl
    def reserve(self, state: CycleState, node_name: str) -> None:
        if VOLUMES in state:
            volumes = state.read(VOLUMES)
            if not volumes.all_bound:
                decided = volumes.on(self.handle.snapshot.get(node_name).node, self.handle.cluster)
                with self._counting_failures(VolumeStage.ASSUME):
                    state.write(RESERVATION, self._binder.reserve(decided, node_name))

    @hookimpl
    def unreserve(self, state: CycleState) -> None:
        if RESERVATION in state:
            self._binder.give_up(state.read(RESERVATION))

    @hookimpl
    def pre_bind_pre_flight(self, state: CycleState) -> PreBindPreFlightResult:
        return _HAS_WORK if RESERVATION in state else _IS_IDLE

    @hookimpl
    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        if RESERVATION in state:
            with self._counting_failures(VolumeStage.BIND):
                self._binder.bind(
                    state.read(RESERVATION), pod, node_name, self.handle.pods_in_pre_bind.get(pod.uid)
                )

    @contextmanager
    def _counting_failures(self, stage: VolumeStage) -> Iterator[None]:
        try:
            yield
        except Exception:
            self.handle.metrics.volume_stage_failed(stage)
            raise

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        return volume_events()
