"""The arguments, hooks and queueing hints of DynamicResources.

Semantics: kube-scheduler v1.36 `dynamicresources`; KEP-4381 (structured parameters) and the KEPs named in other
modules.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from kschedfw import (
    MEMBER_STATES,
    ActionType,
    ClusterEvent,
    CycleState,
    EventResource,
    Handle,
    IntArray,
    NodeInfo,
    NodeTable,
    NodeToStatus,
    Plugin,
    Pod,
    PostFilterResult,
    PreBindPreFlightResult,
    QueueingHint,
    Reads,
    StateKey,
    StateKeyError,
    Status,
    Verdicts,
    hookimpl,
)
from kschedfw.api import ResourceClaim
from kschedfw.plugins import DynamicResourcesArgs, normalized, queue_if
from kschedfw_devices.dynamic_resources.manager import (
    DeviceManager,
    DeviceRules,
    ResourceClaimProblem,
    ResourceClaims,
)
from kschedfw_devices.dynamic_resources.requests import MissingClass, WantedClaim

# The rest of the package is imported for the first pod that needs devices: most schedulers start without one.
if TYPE_CHECKING:
    from kschedfw.explain import Evidence
    from kschedfw_devices.dynamic_resources.batch import ReachColumn
    from kschedfw_devices.dynamic_resources.binding import ClaimBinder, DeviceReservation
    from kschedfw_devices.dynamic_resources.decision import Freeing, PodDevices

DEVICES: StateKey[PodDevices | None] = StateKey("DynamicResources.devices")
"""The pod's devices, for later hooks; None if pre_filter refused the pod, or it has no claims."""
RESERVATION: StateKey[DeviceReservation] = StateKey("DynamicResources.reservation")


# Made once, since every pod gets one of these two results.
_HAS_WORK: Final = PreBindPreFlightResult(allow_parallel=True, skip=False)
_IS_IDLE: Final = PreBindPreFlightResult(allow_parallel=True, skip=True)


class DynamicResources(Plugin[DynamicResourcesArgs]):
    """Lets a pod run on nodes where its claims' devices are or can be allocated, and allocates them.

    Devices are taken in the scheduling cycle, and written into the claims' status before the pod is bound.
    """

    name = "DynamicResources"
    args_type = DynamicResourcesArgs
    reads = Reads.NODE

    def __init__(self, args: DynamicResourcesArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._manager = DeviceManager.of(handle.cluster, DeviceRules.of(handle.feature_gates))
        self._reach_column: ReachColumn | None = None

    @cached_property
    def binder(self) -> ClaimBinder:
        from kschedfw_devices.dynamic_resources.binding import ClaimBinder

        joins = self._manager.rules.joins_configurations
        return ClaimBinder(self._manager.claims, self.handle, self.args.binding_timeout, joins)

    def sign(self, pod: Pod) -> Hashable | None:
        # The devices that are left for a pod with claims depend on all other claims. Pods without claims score 0.
        if pod.spec.resource_claims:
            return None
        return None if pod.requests.amounts.scalar_resources and self._manager.requested_by(pod) else ()

    def sign_for_batch(self, pod: Pod) -> Hashable | None:
        return None if pod.spec.resource_claims else ()  # NodeResourcesFit refuses to sign extended resources

    def takes_members_alike(self, pod: Pod) -> bool:
        return not pod.spec.resource_claims and not self._manager.requested_by(pod)

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        problem = self._manager.claims.problem_of(pod)
        return Status.unresolvable(problem) if problem else None

    @hookimpl
    def pre_filter(self, state: CycleState, pod: Pod) -> Status | None:
        state.write(DEVICES, None)
        try:
            devices = self._devices(state, pod)
        except (ResourceClaimProblem, MissingClass) as problem:
            return Status.unresolvable(str(problem))
        if devices is None:
            return Status.skip()
        state.write(DEVICES, devices)
        return None

    def _devices(self, state: CycleState, pod: Pod) -> PodDevices | None:
        extended = self._manager.requested_by(pod)
        if not pod.spec.resource_claims and not extended:
            return None
        from kschedfw_devices.dynamic_resources.decision import PodDevices
        from kschedfw_devices.dynamic_resources.extended import special_claim

        trial = state.find(MEMBER_STATES)
        claims = (
            [self._manager.claims.as_shared(each, trial) for each in self._manager.claims.of(pod)]
            if pod.spec.resource_claims
            else []
        )
        special = left_over = None
        if extended:
            left_over = self._manager.claims.extended_of(pod)
            special = special_claim(pod)
        if not claims and special is None:
            return None
        to_allocate: list[WantedClaim] = []
        for claim in claims:
            if claim.status.allocation is None:
                if self._manager.claims.book.in_flight(claim.uid) is not None:
                    raise ResourceClaimProblem(
                        f"resource claim {claim.key} is in the process of being allocated"
                    )
                to_allocate.append(self._manager.requests.wanted(claim))
        return PodDevices(
            pod=pod,
            claims=claims,
            wanted=to_allocate,
            special=special,
            left_over=left_over,
            classes=self._manager.classes.by_resource(),
            inventory=self._manager.inventory(),
            answers=self._manager.answers,
            requests=self._manager.requests,
            usage=self._manager.claims.usage(),
            now=self.handle.clock.now(),
            binding_timeout=self.args.binding_timeout,
            filter_timeout=self.args.filter_timeout,
        )

    @hookimpl
    def filter(self, state: CycleState, node_info: NodeInfo) -> Status | None:
        devices = state.read(DEVICES)
        if devices is None:
            return None
        problem = devices.problem_on(node_info)
        return Status.unresolvable(problem) if problem else None

    def evidence(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Iterable[Evidence]:  # noqa: ARG002  # see GivesEvidence
        devices = state.read(DEVICES)
        if devices is None:
            return ()
        # Here, since a scheduler that explains nothing needs no explanations.
        from kschedfw_devices.dynamic_resources.evidence import evidence_of

        return evidence_of(devices, node_info, self._manager.claims.book.holder_of)

    @hookimpl
    def filter_batch(self, state: CycleState, nodes: NodeTable, rows: IntArray) -> Verdicts | None:
        devices = state.read(DEVICES)
        if devices is None:
            return Verdicts.passing(len(rows))
        from kschedfw_devices.dynamic_resources.batch import verdicts

        return verdicts(devices, nodes, rows, self._reaches(devices, nodes, rows))

    def _reaches(self, devices: PodDevices, nodes: NodeTable, rows: IntArray) -> IntArray:
        from kschedfw_devices.dynamic_resources.batch import ReachColumn

        column = self._reach_column
        if column is None or column.inventory is not devices.inventory:
            column = self._reach_column = ReachColumn(devices.inventory, nodes)
        return column.numbers(nodes, rows)

    def plan_freeing(self, state: CycleState, node_to_status: NodeToStatus) -> Freeing:
        """Return the claims that post_filter could free for the pod; without effects.

        Raises:
            StateKeyError: pre_filter hasn't been called.
        """
        from kschedfw_devices.dynamic_resources.decision import Freeing

        devices = state.read(DEVICES)
        if devices is None:
            return Freeing("no new claims to deallocate")
        return devices.freeing(self.name, node_to_status, self.handle.snapshot.node_infos)

    @hookimpl
    def post_filter(
        self, state: CycleState, pod: Pod, node_to_status: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        if DEVICES not in state:
            return None, self.post_filter_status(state, pod, node_to_status)
        freeing = self.plan_freeing(state, node_to_status)
        if freeing.left_over is not None:
            self.binder.remove(freeing.left_over)
        elif freeing.eligible:
            # At random, as in kube-scheduler: nothing tells which claim is best freed.
            self.binder.deallocate(self.handle.random.choice(freeing.eligible))
        return None, Status.unschedulable(freeing.message)

    def post_filter_status(self, state: CycleState, pod: Pod, node_to_status: NodeToStatus) -> Status:  # noqa: ARG002  # see explain
        """Return the status that `post_filter` would return; without effects."""
        if DEVICES not in state:
            # kube-scheduler's text of an error of its cycle state.
            return Status.from_error(StateKeyError("not found"))
        return Status.unschedulable(self.plan_freeing(state, node_to_status).message)

    @hookimpl
    def score(self, state: CycleState, node_info: NodeInfo) -> int:
        devices = state.find(DEVICES)
        return 0 if devices is None else devices.score(node_info)

    @hookimpl
    def score_batch(self, state: CycleState, nodes: NodeTable, rows: IntArray) -> IntArray | None:
        devices = state.find(DEVICES)
        if devices is None:
            return np.zeros(len(rows), dtype=np.int64)
        from kschedfw_devices.dynamic_resources.batch import scores

        return scores(devices, nodes, rows, self._reaches(devices, nodes, rows))

    @hookimpl
    def normalize_score(self, scores: IntArray) -> IntArray:
        return normalized(scores)

    @hookimpl
    def reserve(self, state: CycleState, node_name: str) -> None:
        devices = state.find(DEVICES)
        if devices is not None:
            info = self.handle.snapshot.get(node_name)
            trial = state.find(MEMBER_STATES)
            reservation = self.binder.reserve(devices, info.node, devices.on(info), trial)
            state.write(RESERVATION, reservation)

    @hookimpl
    def unreserve(self, state: CycleState, pod: Pod) -> None:
        if RESERVATION in state:
            self.binder.give_up(state.read(RESERVATION), pod)

    @hookimpl
    def pre_bind_pre_flight(self, state: CycleState) -> PreBindPreFlightResult:
        return _HAS_WORK if RESERVATION in state else _IS_IDLE

    @hookimpl
    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        if RESERVATION in state:
            self.binder.bind(state.read(RESERVATION), pod, node_name)

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        return claim_events(self._manager.claims)


def claim_events(claims: ResourceClaims) -> Sequence[ClusterEvent]:
    """Return the events that the plugin subscribes to, each with its hint."""

    def after_pod_change(pod: Pod, _old: object | None, new: object | None) -> QueueingHint:
        """Queue when the pod's own claims have been made."""
        if not isinstance(new, Pod) or new.uid != pod.uid:
            return QueueingHint.SKIP
        return queue_if(not claims.problem_of(new))

    def after_claim_change(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        """Queue when devices become free, or something happens to one of the pod's own claims."""
        if not isinstance(new, ResourceClaim):
            return QueueingHint.SKIP
        before = old if isinstance(old, ResourceClaim) else None
        try:
            # asked first: `of` raises if any of the pod's claims is a problem
            own = new.uid in [claim.uid for claim in claims.of(pod)]
        except ResourceClaimProblem:
            return QueueingHint.SKIP  # another claim of the pod is the problem, so this change can't help
        if before is not None and before.status.allocation is not None and new.status.allocation is None:
            return QueueingHint.QUEUE
        return queue_if(own and (before is None or before.status != new.status))

    add_or_update = ActionType.ADD | ActionType.UPDATE
    node_changes = ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE
    return (
        ClusterEvent(
            EventResource.UNSCHEDULED_POD, ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM, after_pod_change
        ),
        # Not their deletion, as in kube-scheduler: the finalizer keeps a claim until its devices are free, which is an
        # update.
        ClusterEvent(EventResource.RESOURCE_CLAIM, add_or_update, after_claim_change),
        ClusterEvent(EventResource.DEVICE_CLASS, add_or_update),
        ClusterEvent(EventResource.RESOURCE_SLICE, add_or_update),
        ClusterEvent(EventResource.NODE, node_changes),
    )
