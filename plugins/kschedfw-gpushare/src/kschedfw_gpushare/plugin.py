"""The plugin GpuShare."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial

import attrs
import numpy as np

from kschedfw import (
    ActionType,
    ClusterEvent,
    CycleState,
    EventResource,
    FrozenDict,
    Handle,
    Node,
    NodeInfo,
    NodeTable,
    Plugin,
    Pod,
    QueueingHint,
    Reads,
    StateKey,
    Status,
    Verdicts,
    hookimpl,
    retry_on_conflict,
)
from kschedfw_gpushare.args import GpuShareArgs, Policy
from kschedfw_gpushare.demand import (
    GPU_COUNT,
    GPU_INDEX,
    GPU_MILLI,
    GPU_MODEL,
    NOTHING,
    DemandError,
    GpuDemand,
    demand_of,
    index_text,
)
from kschedfw_gpushare.devices import (
    DeviceColumns,
    IntArray,
    NodeDevices,
    Reservations,
    Room,
    devices_of,
)
from kschedfw_gpushare.fragmentation import Fragmentation, FragmentationGauge, typical_pods
from kschedfw_gpushare.policies import GpuRequest, Rater, pick_devices, stretched, with_one_best

# Only missing room can be made by preemption.
_NO_GPUS = Status.unresolvable("node(s) had no GPUs")
_OTHER_MODEL = Status.unresolvable("node(s) had GPUs of another model")
_TOO_FEW = Status.unresolvable("node(s) had fewer GPUs than the pod asks for")
_NO_ROOM = Status.unschedulable("node(s) had too little left of their GPUs")
_STATUSES = (Status.success(), _NO_GPUS, _OTHER_MODEL, _TOO_FEW, _NO_ROOM)

_DEVICES = StateKey[tuple[int, ...]]("GpuShare.devices")


@attrs.frozen
class _State:
    """The state that `restore_state` brings back."""

    reservations: Mapping[str, Mapping[str, tuple[int, ...]]]
    rater: Rater | None


class GpuShare(Plugin[GpuShareArgs]):
    """Places pods on parts of GPUs or on whole ones, and tracks the free part of each device.

    Free parts follow from the pods on a node: the annotation `gpu-index` names a pod's devices and is written before
    the pod is bound. Between a pod's reservation and the arrival of its annotation, `Reservations` names its devices.
    Filter and score read these reservations, an attribute that changes, so they aren't pure.
    """

    name = "GpuShare"
    args_type = GpuShareArgs
    reads = Reads.PODS

    def __init__(self, args: GpuShareArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._reservations = Reservations.of(handle.snapshot)
        self._columns: DeviceColumns | None = None
        self._rater: Rater | None = None

    def sign(self, pod: Pod) -> Hashable | None:
        annotations = pod.annotations
        return (
            pod.requests.non_zero_milli_cpu,
            pod.requests.amounts.scalar_resources.get(self.args.gpu_resource, 0),
            annotations.get(GPU_MILLI),
            annotations.get(GPU_COUNT),
            annotations.get(GPU_MODEL),
        )

    # Filter

    @hookimpl
    def pre_filter(self, pod: Pod) -> Status | None:
        try:
            demand = self._demand(pod)
        except DemandError as error:
            return Status.unresolvable(str(error))
        return Status.skip() if demand.is_none else None

    @hookimpl
    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        demand, devices = self._demand(pod), self._devices(node_info)
        if not devices.left:
            return _NO_GPUS
        if not demand.accepts(devices.model):
            return _OTHER_MODEL
        if len(devices.left) < demand.count:
            return _TOO_FEW
        return None if devices.room_for(demand) else _NO_ROOM

    @hookimpl
    def filter_batch(self, pod: Pod, nodes: NodeTable, rows: IntArray) -> Verdicts:
        demand, room = self._demand(pod), self._room(nodes, rows)
        suits = np.array([demand.accepts(model) for model in room.model_names], dtype=np.bool_)
        fitting = (room.gpus >= demand.milli).sum(axis=1)
        codes = np.select(
            # `np.select` takes the first condition that holds, in the order of `filter`.
            [room.counts == 0, ~suits[room.models], room.counts < demand.count, fitting < demand.count],
            [1, 2, 3, 4],
        )
        return Verdicts(codes, _STATUSES)

    # Score

    @hookimpl
    def pre_score(self) -> Status | None:
        if self.args.policy is Policy.RANDOM:
            return Status.skip()
        self._learn()
        return None

    @hookimpl
    def score(self, pod: Pod, node_info: NodeInfo) -> int:
        room = Room.of(node_info, self._devices(node_info))
        return int(self._learn().rate(room, self._request(pod))[0])

    @hookimpl
    def score_batch(self, pod: Pod, nodes: NodeTable, rows: IntArray) -> IntArray:
        return self._learn().rate(self._room(nodes, rows), self._request(pod))

    @hookimpl
    def normalize_score(self, scores: IntArray) -> IntArray:
        if self.args.policy is Policy.BEST_FIT:
            scores = stretched(scores)
        return with_one_best(scores) if self.args.fill_in_order else scores

    # Reserve and bind

    @hookimpl
    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        demand = self._demand(pod)
        if demand.is_none:
            return None
        info = self.handle.snapshot.get(node_name)
        # Reservations of an earlier attempt must not count against the pod.
        self._reservations.remove(pod, node_name)
        devices = self._devices(info)
        if not devices.room_for(demand):
            return _NO_ROOM
        room = Room.of(info, devices)
        chosen = pick_devices(self.args.pick, room, self._request(pod), self._learn(), self.handle.random)
        self._reservations.add(pod, info, chosen)
        state.write(_DEVICES, chosen)
        return None

    @hookimpl
    def unreserve(self, pod: Pod, node_name: str) -> None:
        self._reservations.remove(pod, node_name)

    @hookimpl
    def pre_bind_pre_flight(self, pod: Pod) -> Status | None:
        return Status.skip() if self._demand(pod).is_none else None

    @hookimpl
    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        if self._demand(pod).is_none:
            return None
        present = self.handle.cluster.get(Pod, pod.key)
        # A new pod may have the name by now.
        if present is None or present.uid != pod.uid:
            return Status.from_error(f"pod {pod.key} is gone, so its GPUs can't be noted")
        # After `restore_state`, the reservation is newer than the choice in the cycle's state.
        chosen = self._reservations.on(node_name).get(pod.uid)
        index = index_text(state.read(_DEVICES) if chosen is None else chosen)
        retry_on_conflict(self.handle.cluster, present, partial(_annotated, index=index))
        return None

    # Restore points. Later decisions depend on the reservations and on the typical pods, which were derived at an
    # earlier time.

    def save_state(self) -> _State:
        return _State(self._reservations.save(), self._rater)

    def restore_state(self, token: _State) -> None:
        self._reservations.restore(token.reservations)
        self._rater = token.rater

    # Events that wake pods

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        node = ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE
        return [
            ClusterEvent(EventResource.NODE, node, self._after_node_change),
            ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE, self._after_pod_went),
            ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.UPDATE, self._after_own_change),
        ]

    def _after_node_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:  # noqa: ARG002
        if not isinstance(new, Node):
            return QueueingHint.SKIP
        try:
            demand = self._demand(pod)
        except DemandError:
            return QueueingHint.SKIP
        info = NodeInfo.of(new)
        suits = demand.accepts(new.labels.get(GPU_MODEL, ""))
        helps = suits and info.allocatable.get(self.args.gpu_resource) >= demand.count
        return QueueingHint.QUEUE if helps else QueueingHint.SKIP

    def _after_pod_went(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:  # noqa: ARG002
        # A pod with an invalid annotation used nothing: `devices_of` skips it.
        helps = isinstance(old, Pod) and not self._demand_or_none(old).is_none
        return QueueingHint.QUEUE if helps else QueueingHint.SKIP

    def _after_own_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        if not (isinstance(old, Pod) and isinstance(new, Pod) and new.uid == pod.uid):
            return QueueingHint.SKIP
        # The signature has all that the filter reads of a pod.
        return QueueingHint.SKIP if self.sign(old) == self.sign(new) else QueueingHint.QUEUE

    # Requests, devices and the workload

    def gauge(self, nodes: NodeTable) -> FragmentationGauge:
        """Return a gauge of the GPU capacity that is idle and unusable to the workload. It follows the table."""
        return FragmentationGauge(self._columns_of(nodes), self._learn().fragmentation)

    def _demand(self, pod: Pod) -> GpuDemand:
        return demand_of(pod, self.args.gpu_resource)

    def _demand_or_none(self, pod: Pod) -> GpuDemand:
        try:
            return self._demand(pod)
        except DemandError:
            return NOTHING

    def _request(self, pod: Pod) -> GpuRequest:
        return GpuRequest(pod.requests.non_zero_milli_cpu, self._demand(pod))

    def _devices(self, info: NodeInfo) -> NodeDevices:
        return self._devices_afresh(info) if self._columns is None else self._columns.devices(info)

    def _devices_afresh(self, info: NodeInfo) -> NodeDevices:
        return devices_of(info, self.args.gpu_resource, self._reservations)

    def _columns_of(self, nodes: NodeTable) -> DeviceColumns:
        if self._columns is None or self._columns.table is not nodes:
            self._columns = DeviceColumns(nodes, self._devices_afresh)
        return self._columns

    def _room(self, nodes: NodeTable, rows: IntArray) -> Room:
        return self._columns_of(nodes).room(rows)

    def _learn(self) -> Rater:
        """Return the rater. It is made at the first attempt, since the workload isn't known before."""
        if self._rater is None:
            typical = self.args.typical_pods or typical_pods(
                self.handle.cluster.list(Pod), self.args.gpu_resource, self.args.popularity
            )
            self._rater = Rater(self.args, Fragmentation(typical))
        return self._rater


def _annotated(pod: Pod, index: str) -> Pod:
    if pod.annotations.get(GPU_INDEX) == index:
        return pod
    annotations = FrozenDict({**pod.annotations, GPU_INDEX: index})
    return pod.with_metadata(attrs.evolve(pod.metadata, annotations=annotations))
