"""The free part of each GPU, computed from the pods on a node; for single nodes and as arrays over all nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar
from weakref import WeakKeyDictionary

import attrs
import numpy as np
import numpy.typing as npt

from kschedfw import NodeInfo, NodeTable, Pod, Snapshot
from kschedfw_gpushare.demand import GPU_MODEL, MILLI, DemandError, GpuDemand, demand_of, devices_told

IntArray = npt.NDArray[np.int64]

MOST_DEVICES = 62
"""The largest number of GPUs per node. Further GPUs are ignored, since kinds of pods must fit an int64's bits."""


@attrs.frozen
class NodeDevices:
    """A node's GPUs: the model, the thousandths that are left of each GPU, and the kinds of pods that use them.

    `kinds` is a bit set of `kind_bit` values.
    """

    model: str = ""
    left: tuple[int, ...] = ()
    kinds: int = 0

    def room_for(self, demand: GpuDemand) -> bool:
        """Return whether at least `demand.count` devices have `demand.milli` thousandths left."""
        return sum(left >= demand.milli for left in self.left) >= demand.count


def kind_bit(demand: GpuDemand) -> int:
    """Return the bit for a pod's kind: sharing a GPU, or using 1, 2, … whole ones. Return 0 if it uses none."""
    if demand.is_none:
        return 0
    return 1 if demand.is_share else 1 << min(demand.count, MOST_DEVICES)


class Reservations:
    """Devices of reserved pods whose annotation `gpu-index` hasn't arrived in the snapshot yet."""

    # Weak, so that the reservations go with their snapshot.
    _of_snapshot: ClassVar[WeakKeyDictionary[Snapshot, Reservations]] = WeakKeyDictionary()

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, tuple[int, ...]]] = {}

    @classmethod
    def of(cls, snapshot: Snapshot) -> Reservations:
        """Return the reservations of the snapshot. All profiles that schedule onto it share one instance."""
        return cls._of_snapshot.setdefault(snapshot, cls())

    def on(self, node_name: str) -> Mapping[str, tuple[int, ...]]:
        """Return the devices reserved on the node, by the pod's uid."""
        return self._by_node.get(node_name, {})

    def add(self, pod: Pod, info: NodeInfo, devices: tuple[int, ...]) -> None:
        """Reserve devices for the pod.

        Delete reservations on the node that aren't needed any more: those of pods whose annotation has arrived, and of
        pods that have left the node.
        """
        of_node = self._by_node.setdefault(info.name, {})
        present = {each.pod.uid: each.pod for each in info.pods}
        # A copy, and `pop` with a default: `unreserve` may remove pods from another thread.
        for uid, given in tuple(of_node.items()):
            known = present.get(uid)
            if known is None or devices_told(known) == given:
                of_node.pop(uid, None)
        of_node[pod.uid] = devices

    def save(self) -> Mapping[str, Mapping[str, tuple[int, ...]]]:
        """Return a copy of all reservations, by node name and uid."""
        return {node_name: dict(of_node) for node_name, of_node in self._by_node.items()}

    def restore(self, by_node: Mapping[str, Mapping[str, tuple[int, ...]]]) -> None:
        """Restore the reservations that `save` returned."""
        self._by_node = {node_name: dict(of_node) for node_name, of_node in by_node.items()}

    def remove(self, pod: Pod, node_name: str) -> None:
        self._by_node.get(node_name, {}).pop(pod.uid, None)


def devices_of(info: NodeInfo, resource: str, reservations: Reservations) -> NodeDevices:
    """Return the node's GPUs with the parts that its pods leave free.

    A pod's devices are the reserved ones, or else those in its annotation. If a pod has neither, only its amount is
    known. It is then counted on the devices where it fits best.
    """
    count = min(info.allocatable.get(resource), MOST_DEVICES)
    if count <= 0:
        return NodeDevices()
    left, kinds = [MILLI] * count, 0
    reserved = reservations.on(info.name)
    somewhere: list[GpuDemand] = []
    for each in info.pods:
        try:
            demand = demand_of(each.pod, resource)
        except DemandError:
            # An invalid annotation doesn't tell how much the pod uses.
            continue
        if demand.is_none:
            continue
        kinds |= kind_bit(demand)
        devices = reserved.get(each.pod.uid) or _told(each.pod, info)
        if devices is None or len(devices) != demand.count or max(devices) >= count:
            somewhere.append(demand)
        else:
            _take(left, devices, demand.milli)
    # Only now, since the known devices leave less room for these.
    for demand in somewhere:
        _take(left, _likely(left, demand), demand.milli)
    return NodeDevices(info.node.labels.get(GPU_MODEL, ""), tuple(left), kinds)


def _told(pod: Pod, info: NodeInfo) -> tuple[int, ...] | None:
    # A pod may be evaluated on a node other than its own, for example by a what-if question. Its annotation is about
    # its own node.
    return devices_told(pod) if pod.node_name == info.name else None


def _take(left: list[int], devices: Iterable[int], milli: int) -> None:
    for device in devices:
        left[device] = max(left[device] - milli, 0)


def _likely(left: Sequence[int], demand: GpuDemand) -> Sequence[int]:
    """Return the devices where the pod fits best, or the emptiest ones if it doesn't fit."""
    order = sorted(range(len(left)), key=lambda device: (left[device] < demand.milli, left[device]))
    fitting = sum(each >= demand.milli for each in left)
    if fitting < demand.count:
        order = sorted(range(len(left)), key=lambda device: -left[device])
    return order[: demand.count]


@attrs.frozen(eq=False)
class Room:
    """Free amounts of k nodes: `cpu` (k,) in millicores, `gpus` (k, d) in thousandths.

    A node with fewer than d devices has zeros. `counts` (k,) are the numbers of devices. `kinds` (k,) are bit sets of
    the kinds of pods on them. `models` (k,) are indices into `model_names`.
    """

    cpu: IntArray
    gpus: IntArray
    counts: IntArray
    kinds: IntArray
    models: IntArray
    model_names: Sequence[str]

    @classmethod
    def of(cls, info: NodeInfo, devices: NodeDevices) -> Room:
        """Return the free amounts of a single node."""
        return cls(
            cpu=np.array([info.allocatable.milli_cpu], dtype=np.int64) - info.requested.milli_cpu,
            gpus=np.array([devices.left], dtype=np.int64),
            counts=np.array([len(devices.left)]),
            kinds=np.array([devices.kinds]),
            models=np.zeros(1, dtype=np.int64),
            model_names=(devices.model,),
        )

    @property
    def total(self) -> IntArray:
        """The thousandths left on all GPUs of a node together, shape (k,)."""
        total: IntArray = self.gpus.sum(axis=1)
        return total


class DeviceColumns:
    """The GPUs of all nodes in a table, as arrays. Listens to the table and recomputes only changed nodes."""

    def __init__(self, table: NodeTable, of: Callable[[NodeInfo], NodeDevices]) -> None:
        self.table = table
        self._of = of
        self._model_names: list[str] = []
        self._fill()
        table.listen(self)

    def devices(self, info: NodeInfo) -> NodeDevices:
        """Return the GPUs of one node.

        If `info` differs from the table's node, as in what-if questions, compute them from `info`.
        """
        row = self.table.rows.get(info.name)
        # A NodeInfo's generation is new with every change.
        if row is None or self._generations[row] != info.generation:
            return self._of(info)
        return self._devices[row]

    def room(self, rows: IntArray) -> Room:
        cpu = self.table.columns["cpu"]
        return Room(
            cpu=self.table.allocatable[rows, cpu] - self.table.requested[rows, cpu],
            gpus=self._gpus[rows],
            counts=self._counts[rows],
            kinds=self._kinds[rows],
            models=self._models[rows],
            model_names=self._model_names,
        )

    def row_changed(self, row: int, old: NodeInfo, new: NodeInfo) -> None:  # noqa: ARG002  # a listener's signature
        devices = self._of(new)
        # The arrays are as wide as the node with the most devices.
        if len(devices.left) > self._gpus.shape[1]:
            self._fill()
        else:
            self._write(row, new, devices)

    def rows_moved(
        self,
        moved_from: IntArray,  # noqa: ARG002
        gone: Sequence[NodeInfo],  # noqa: ARG002
        added: Sequence[NodeInfo],  # noqa: ARG002
    ) -> None:
        self._fill()

    def table_rebuilt(self) -> None:
        self._fill()

    def _fill(self) -> None:
        infos = self.table.node_infos
        self._devices = [self._of(info) for info in infos]
        self._generations = [info.generation for info in infos]
        most = max((len(devices.left) for devices in self._devices), default=0)
        self._gpus: IntArray = np.zeros((len(infos), most), dtype=np.int64)
        self._counts: IntArray = np.zeros(len(infos), dtype=np.int64)
        self._kinds: IntArray = np.zeros(len(infos), dtype=np.int64)
        self._models: IntArray = np.zeros(len(infos), dtype=np.int64)
        for row, (info, devices) in enumerate(zip(infos, tuple(self._devices), strict=True)):
            self._write(row, info, devices)

    def _write(self, row: int, info: NodeInfo, devices: NodeDevices) -> None:
        self._devices[row] = devices
        self._generations[row] = info.generation
        count = len(devices.left)
        self._gpus[row, :count] = devices.left
        # The node may have had more devices before.
        self._gpus[row, count:] = 0
        self._counts[row] = count
        self._kinds[row] = devices.kinds
        # Names are never removed, so that the indices of other rows stay valid.
        if devices.model not in self._model_names:
            self._model_names.append(devices.model)
        self._models[row] = self._model_names.index(devices.model)
