"""The arguments, hooks, scoring and queueing hints of VolumeBinding.

Semantics: kube-scheduler v1.36 `volumebinding`; KEP-490 (delayed binding), KEP-1472 (storage capacity), KEP-1845 and
KEP-4049 (scoring), KEP-1698 (generic ephemeral volumes).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from kschedfw import (
    IDLE,
    ActionType,
    ClusterEvent,
    CycleState,
    EventResource,
    FeatureGates,
    FieldError,
    Handle,
    IntArray,
    Node,
    NodeInfo,
    NodeTable,
    Pod,
    PreBindPreFlightResult,
    QueueingHint,
    Reads,
    StateKey,
    Status,
    Verdicts,
    hookimpl,
)
from kschedfw.api import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    StorageClass,
    requested_storage,
    storage_capacity,
)
from kschedfw.api.records import frozen
from kschedfw.framework.diagnosis import Evidence
from kschedfw.framework.gate_table import STORAGE_CAPACITY_SCORING
from kschedfw.metrics import VolumeStage
from kschedfw.plugins._hints import queue_if
from kschedfw.plugins._migration import MIGRATED_PLUGINS
from kschedfw.plugins._storage import StoragePlugin, queue_if_used
from kschedfw.plugins.node_resources_fit.args import (
    MAX_SHAPE_SCORE,
    MAX_UTILIZATION,
    UtilizationShapePoint,
    shape_errors,
)
from kschedfw.plugins.node_resources_fit.scoring import value_at
from kschedfw.plugins.volume_binding.binder import VolumeBinder, VolumeReservation
from kschedfw.plugins.volume_binding.claims import VolumeClaimProblem, VolumeClaims
from kschedfw.plugins.volume_binding.pod_volumes import NodeVolumes, PodVolumes
from kschedfw.plugins.volume_binding.provisioning import FINE, STATUSES, largest_volume

Shape = Sequence[UtilizationShapePoint]


def score(shape: Shape, volumes: NodeVolumes, node: Node) -> int:
    """Return the average over the storage classes of the volumes to bind or provision, rounded to nearest.

    Volumes to provision count only if no volume is to be bound.
    """
    usage = _bound(volumes) if volumes.bindings else _made(volumes, node)
    if not usage:
        return 0
    total = sum(_value(shape, requested, capacity) for requested, capacity in usage.values())
    # math.Round of kube-scheduler, in integers.
    return (2 * total + len(usage)) // (2 * len(usage))


def _bound(volumes: NodeVolumes) -> dict[str, tuple[int, int]]:
    """Return the requested bytes and the volumes' bytes, by storage class."""
    usage: dict[str, tuple[int, int]] = {}
    for volume, claim in volumes.bindings:
        requested, capacity = usage.get(volume.spec.storage_class_name, (0, 0))
        usage[volume.spec.storage_class_name] = (
            requested + requested_storage(claim).value(),
            capacity + storage_capacity(volume).value(),
        )
    return usage


def _made(volumes: NodeVolumes, node: Node) -> dict[str, tuple[int, int]]:
    """Return requested and free bytes of volumes to provision, by storage class with published capacity."""
    usage: dict[str, tuple[int, int]] = {}
    for provisioning in volumes.provisionings:
        room = provisioning.room(node)
        if room is not None:
            name = provisioning.claim.spec.storage_class_name or ""
            requested, _ = usage.get(name, (0, 0))
            free = 0 if room.capacity is None else room.capacity.value()
            usage[name] = requested + requested_storage(provisioning.claim).value(), free
    return usage


def _value(shape: Shape, requested: int, capacity: int) -> int:
    full = capacity == 0 or requested > capacity
    return value_at(shape, MAX_UTILIZATION if full else requested * MAX_UTILIZATION // capacity)


DEFAULT_SHAPE: Final = (UtilizationShapePoint(0, MAX_SHAPE_SCORE), UtilizationShapePoint(100, 0))
"""The shape by which emptier volumes score higher."""


@frozen
class VolumeBindingArgs:
    """Arguments of VolumeBinding.

    `bind_timeout_seconds` is the time that a pod waits for its volumes before its binding fails.

    With the feature gate StorageCapacityScoring nodes are scored by `shape`: by the utilization of a volume by its
    claim and, where a volume has to be provisioned, of the available storage. The points are by rising utilization;
    the function is linear between them and constant outside. None stands for the default: 10 points at 0 %, 0 at
    100 %. Without the gate, a shape is refused.
    """

    bind_timeout_seconds: int = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None

    def validate(self) -> Iterator[FieldError]:
        if self.bind_timeout_seconds < 0:
            why = "invalid BindTimeoutSeconds, should not be a negative value"
            yield FieldError.invalid("bindTimeoutSeconds", self.bind_timeout_seconds, why)

    def validate_with(self, gates: FeatureGates) -> Iterator[FieldError]:
        if self.shape is None:
            return
        if gates.enabled(STORAGE_CAPACITY_SCORING):
            yield from shape_errors(self.shape, "shape")
        else:
            why = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
            # kube-scheduler shows its own type, whose fields have no other names than these.
            points = [{"Utilization": point.utilization, "Score": point.score} for point in self.shape]
            yield FieldError.invalid("shape", points, why)


VOLUMES = StateKey[PodVolumes]("VolumeBinding.volumes")
RESERVATION = StateKey[VolumeReservation]("VolumeBinding.reservation")


# Made once, since every pod gets one of these two results.
_HAS_WORK: Final = PreBindPreFlightResult(allow_parallel=True, skip=False)
_IS_IDLE: Final = PreBindPreFlightResult(allow_parallel=True, skip=True)


class VolumeBinding(StoragePlugin[VolumeBindingArgs, PodVolumes]):
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
        scores = handle.feature_gates.enabled(STORAGE_CAPACITY_SCORING)
        self._shape: Shape | None = (args.shape or DEFAULT_SHAPE) if scores else None
        # With a shape, pre_score doesn't skip pods without claims.
        self._without_claims: Hashable = IDLE if self._shape is None else ()
        self.concerns = "volumes" if self._shape is None else ""
        self._binder = VolumeBinder(self.claims, handle.clock, args.bind_timeout_seconds)

    def sign(self, pod: Pod) -> Hashable | None:
        signature = super().sign(pod)
        return self._without_claims if signature is IDLE else signature

    def signature(self, found: PodVolumes) -> Hashable | None:
        # Unbound claims change while nodes stay the same.
        return IDLE if found.is_empty else found.reaches

    def find(self, pod: Pod) -> PodVolumes | Status:
        try:
            return self.claims.needs(pod)
        except VolumeClaimProblem as problem:
            return Status.unresolvable(str(problem))

    def takes_members_alike(self, pod: Pod) -> bool:
        return not pod.spec.volumes

    @hookimpl
    def pre_filter(self, state: CycleState, pod: Pod) -> Status | None:
        if not pod.spec.volumes or not pod.storage:
            return Status.skip()
        needs = self.found(pod)
        if isinstance(needs, Status):
            return needs
        if needs.is_empty:
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
                # Decided again, for this node alone. kube-scheduler keeps what the filter found for each
                # node.
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


def volume_events() -> tuple[ClusterEvent, ...]:
    """Return the events that the plugin subscribes to, each with its hint."""
    add_or_update = ActionType.ADD | ActionType.UPDATE
    return (
        ClusterEvent(EventResource.STORAGE_CLASS, add_or_update, _after_storage_class_change),
        ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, add_or_update, queue_if_used),
        ClusterEvent(EventResource.PERSISTENT_VOLUME, add_or_update),
        ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
        ClusterEvent(EventResource.CSI_NODE, add_or_update, _after_csi_node_change),
        ClusterEvent(EventResource.CSI_DRIVER, ActionType.UPDATE, _after_driver_change),
        ClusterEvent(EventResource.CSI_STORAGE_CAPACITY, add_or_update, _after_capacity_change),
        # Not deletions of pods, as in kube-scheduler: a pod for which volumes were reserved in vain wakes nobody.
    )


def _after_storage_class_change(_pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    """Queue when the class is new, or its allowed topologies have changed; nothing else in it is mutable."""
    if not (isinstance(old, StorageClass) and isinstance(new, StorageClass)):
        return QueueingHint.QUEUE
    return queue_if(old.allowed_topologies != new.allowed_topologies)


def _after_csi_node_change(_pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    """Queue when the migrated in-tree plugins of a node have changed, since that changes its zone label."""
    if not (isinstance(old, CSINode) and isinstance(new, CSINode)):
        return QueueingHint.QUEUE
    return queue_if(old.annotations.get(MIGRATED_PLUGINS, "") != new.annotations.get(MIGRATED_PLUGINS, ""))


def _after_driver_change(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    """Queue when a driver of the pod's own volumes no longer publishes storage capacity."""
    if not (isinstance(old, CSIDriver) and isinstance(new, CSIDriver)):
        return QueueingHint.QUEUE
    concerned = any(volume.csi is not None and volume.csi.driver == new.name for volume in pod.spec.volumes)
    return queue_if(concerned and old.spec.storage_capacity and not new.spec.storage_capacity)


def _after_capacity_change(_pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    """Queue when a capacity admits larger volumes."""
    if not (isinstance(old, CSIStorageCapacity) and isinstance(new, CSIStorageCapacity)):
        return QueueingHint.QUEUE
    before, now = largest_volume(old), largest_volume(new)
    return queue_if(now is not None and (before is None or now.value() > before.value()))
