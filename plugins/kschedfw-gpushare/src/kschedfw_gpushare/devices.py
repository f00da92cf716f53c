"""What the GPUs of a node have left, given the pods on it; for one node, and for all of them in columns."""

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
"""GPUs of a node, so that kinds of pods fit the bits of an int64; beyond that they aren't seen."""


@attrs.frozen
class NodeDevices:
    """The GPUs of a node: the model, what is left of each in thousandths, and the kinds of pods on them.

    `kinds` has a bit per kind (see `kind_bit`).
    """

    model: str = ""
    left: tuple[int, ...] = ()
    kinds: int = 0

    def room_for(self, demand: GpuDemand) -> bool:
        """Return whether enough of the devices have enough left."""
        return sum(left >= demand.milli for left in self.left) >= demand.count


def kind_bit(demand: GpuDemand) -> int:
    """The kind of a pod: one that shares a GPU, or has 1, 2, … of its own; 0 where it has none."""
    if demand.is_none:
        return 0
    return 1 if demand.is_share else 1 << min(demand.count, MOST_DEVICES)


class Reservations:
    """The devices of pods that have been given some, but whose `gpu-index` hasn't arrived in the cache yet."""

    _of_snapshot: ClassVar[WeakKeyDictionary[Snapshot, Reservations]] = WeakKeyDictionary()

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, tuple[int, ...]]] = {}

    @classmethod
    def of(cls, snapshot: Snapshot) -> Reservations:
        """Those of everyone who schedules onto the snapshot's nodes: a scheduler's profiles share them."""
        return cls._of_snapshot.setdefault(snapshot, cls())

    def on(self, node_name: str) -> Mapping[str, tuple[int, ...]]:
        """Devices by the pod's uid."""
        return self._by_node.get(node_name, {})

    def add(self, pod: Pod, info: NodeInfo, devices: tuple[int, ...]) -> None:
        """Note the pod's devices, and drop what the node's pods tell themselves by now, or what is gone from it."""
        of_node = self._by_node.setdefault(info.name, {})
        present = {each.pod.uid: each.pod for each in info.pods}
        for uid, given in tuple(of_node.items()):
            known = present.get(uid)
            if known is None or devices_told(known) == given:
                of_node.pop(uid, None)
        of_node[pod.uid] = devices

    def save(self) -> Mapping[str, Mapping[str, tuple[int, ...]]]:
        """All of them as they are now, by node and uid."""
        return {node_name: dict(of_node) for node_name, of_node in self._by_node.items()}

    def restore(self, by_node: Mapping[str, Mapping[str, tuple[int, ...]]]) -> None:
        """Go back to what `save` gave."""
        self._by_node = {node_name: dict(of_node) for node_name, of_node in by_node.items()}

    def remove(self, pod: Pod, node_name: str) -> None:
        self._by_node.get(node_name, {}).pop(pod.uid, None)


def devices_of(info: NodeInfo, resource: str, reservations: Reservations) -> NodeDevices:
    """The GPUs of the node and what its pods have left of them.

    A pod is on the devices that were reserved for it, else on those that its annotation tells. Of a pod with neither
    it is only known that it takes some; it is taken to be where it would fit best.
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
            continue  # what it has can't be known
        if demand.is_none:
            continue
        kinds |= kind_bit(demand)
        devices = reserved.get(each.pod.uid) or _told(each.pod, info)
        if devices is None or len(devices) != demand.count or max(devices) >= count:
            somewhere.append(demand)
        else:
            _take(left, devices, demand.milli)
    for demand in somewhere:
        _take(left, _likely(left, demand), demand.milli)
    return NodeDevices(info.node.labels.get(GPU_MODEL, ""), tuple(left), kinds)


def _told(pod: Pod, info: NodeInfo) -> tuple[int, ...] | None:
    # On a pod that isn't here, as in "what if it were", the annotation is about another time or place.
    return devices_told(pod) if pod.node_name == info.name else None


def _take(left: list[int], devices: Iterable[int], milli: int) -> None:
    for device in devices:
        left[device] = max(left[device] - milli, 0)


def _likely(left: Sequence[int], demand: GpuDemand) -> Sequence[int]:
    """Where the pod fits best; if nowhere, the emptiest devices."""
    order = sorted(range(len(left)), key=lambda device: (left[device] < demand.milli, left[device]))
    fitting = sum(each >= demand.milli for each in left)
    if fitting < demand.count:
        order = sorted(range(len(left)), key=lambda device: -left[device])
    return order[: demand.count]


@attrs.frozen(eq=False)
class Room:
    """What k nodes have left: `cpu` (k,) in millicores, `gpus` (k, d) in thousandths, 0 where there is no device.

    `counts` (k,) are the nodes' devices, `kinds` (k,) the kinds of pods on them, `models` (k,) indices into
    `model_names`.
    """

    cpu: IntArray
    gpus: IntArray
    counts: IntArray
    kinds: IntArray
    models: IntArray
    model_names: Sequence[str]

    @classmethod
    def of(cls, info: NodeInfo, devices: NodeDevices) -> Room:
        """That of a single node."""
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
        """What is left of all GPUs of a node together, (k,)."""
        total: IntArray = self.gpus.sum(axis=1)
        return total


class DeviceColumns:
    """The GPUs of all nodes of a table; listens to it, so that only nodes that have changed are looked at."""

    def __init__(self, table: NodeTable, of: Callable[[NodeInfo], NodeDevices]) -> None:
        self.table = table
        self._of = of
        self._model_names: list[str] = []
        self._fill()
        table.listen(self)

    def devices(self, info: NodeInfo) -> NodeDevices:
        """The GPUs of one node. A state of it that isn't the table's, as in "what if", is looked at afresh."""
        row = self.table.rows.get(info.name)
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
        self._gpus[row, count:] = 0
        self._counts[row] = count
        self._kinds[row] = devices.kinds
        if devices.model not in self._model_names:
            self._model_names.append(devices.model)
        self._models[row] = self._model_names.index(devices.model)
