"""Fragmentation: how much of a node's idle GPUs the workload can't use (Weng et al., USENIX ATC '23).

A node's fragmentation is an expectation over the pods of the workload, which `TypicalPod`s stand for. If the node can't
take a pod, or if the pod requests no GPU, all idle GPUs of the node count. Otherwise only devices count that have less
left than the pod requests of one. The policy FGD (fragmentation gradient descent) puts a pod where fragmentation grows
least.

All figures are integers: thousandths of a GPU, times the number of pods that the typical pods stand for. Their sums
don't depend on the order of the summands, as sums of floats would.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import attrs
import numpy as np
import numpy.typing as npt

from kschedfw import NodeInfo, Pod
from kschedfw_gpushare.demand import MILLI, DemandError, GpuDemand, demand_of
from kschedfw_gpushare.devices import DeviceColumns, IntArray, Room

NOWHERE = np.iinfo(np.int64).min
"""The gain on a device where the pod doesn't fit."""


@attrs.frozen
class TypicalPod:
    """A request that `pods` pods of the workload make: `milli_cpu` millicores and these GPUs.

    `gpu_card_model` names the accepted models, separated by `|` as in the annotation.
    """

    pods: int
    milli_cpu: int = 0
    gpu_count: int = 0
    gpu_milli: int = 0
    gpu_card_model: str = ""

    @property
    def demand(self) -> GpuDemand:
        models = frozenset(filter(None, self.gpu_card_model.split("|")))
        return GpuDemand(self.gpu_count, self.gpu_milli, models)


def typical_pods(pods: Iterable[Pod], resource: str, popularity: int = 95) -> tuple[TypicalPod, ...]:
    """Return the pods' most frequent requests, until they cover `popularity` percent of the pods."""
    counts: Counter[tuple[int, int, int, str]] = Counter()
    for pod in pods:
        try:
            demand = demand_of(pod, resource)
        except DemandError:
            continue
        models = "|".join(sorted(demand.models))
        counts[pod.requests.non_zero_milli_cpu, demand.milli, demand.count, models] += 1
    wanted, covered = popularity * counts.total(), 0
    typical: list[TypicalPod] = []
    # The request decides between equally frequent ones, so that the order of the pods doesn't matter.
    for (milli_cpu, milli, count, models), pods_alike in sorted(
        counts.items(), key=lambda item: (item[1], item[0]), reverse=True
    ):
        if 100 * covered >= wanted:
            break
        covered += pods_alike
        typical.append(TypicalPod(pods_alike, milli_cpu, count, milli, models))
    return tuple(typical)


class Fragmentation:
    """The fragmentation of nodes for a given workload.

    Typical pods with the same GPU request form a group. They may differ in CPU. A node's idle GPUs are usable to the
    pods of a group that request at most the CPU that the node has left.
    """

    def __init__(self, typical: Sequence[TypicalPod]) -> None:
        self.pods = sum(each.pods for each in typical)
        groups = sorted(
            {each.demand for each in typical if not each.demand.is_none},
            key=lambda demand: (demand.milli, demand.count, sorted(demand.models)),
        )
        self._groups = tuple(groups)
        self._millis: IntArray = np.array([group.milli for group in groups], dtype=np.int64)
        self._counts: IntArray = np.array([group.count for group in groups], dtype=np.int64)
        self._cpus: IntArray = np.array(sorted({each.milli_cpu for each in typical}), dtype=np.int64)
        # Row i has the number of pods of each group that request at most the i-th lowest CPU amount.
        self._served: IntArray = np.zeros((len(self._cpus) + 1, len(groups)), dtype=np.int64)
        for each in typical:
            if not each.demand.is_none:
                lowest = int(np.searchsorted(self._cpus, each.milli_cpu)) + 1
                self._served[lowest:, groups.index(each.demand)] += each.pods
        # Inverse of 100 · sigmoid: a score of s, from 1 to 99, needs a gain of 1000 · pods · ln(s / (100 − s)).
        # Gains are integers, so comparing them with these limits is exact.
        self._steps: IntArray = np.array(
            [math.ceil(MILLI * self.pods * math.log(score / (100 - score))) for score in range(1, 100)],
            dtype=np.int64,
        )

    def amounts(self, room: Room) -> IntArray:
        """Return the idle amount that the workload can't use, times `pods`, shape (k,)."""
        amounts: IntArray = self.pods * room.total - self._usable(room, room.gpus, room.cpu)
        return amounts

    def gains_by_device(self, room: Room, milli_cpu: int, milli: int) -> IntArray:
        """Return how much fragmentation falls if a sharing pod goes to a device, shape (k, d).

        The gain is NOWHERE on devices where the pod doesn't fit.
        """
        left = room.gpus
        after = left - milli
        # One device changes at a time. So the counts and sums of the node are corrected by its change, and not computed
        # anew for each device.
        wide, wide_after = self._wide(left), self._wide(after)
        changed_count = wide_after.astype(np.int64) - wide
        changed_sum = after[:, :, np.newaxis] * wide_after - left[:, :, np.newaxis] * wide
        count = wide.sum(axis=1)[:, np.newaxis, :] + changed_count
        usable_sum = (left[:, :, np.newaxis] * wide).sum(axis=1)[:, np.newaxis, :] + changed_sum
        served = self._served_pods(room, room.cpu - milli_cpu)[:, np.newaxis, :]
        usable = (served * usable_sum * (count >= self._counts)).sum(axis=2)
        gains = self.pods * milli + usable - self._usable(room, left, room.cpu)[:, np.newaxis]
        return np.where(after >= 0, gains, NOWHERE)

    def gains(self, room: Room, milli_cpu: int, count: int) -> IntArray:
        """Return how much fragmentation falls if a pod with `count` whole GPUs goes to a node, shape (k,)."""
        idle = room.gpus == MILLI
        # The first idle devices, as `pick_devices` chooses them.
        taken = idle & (idle.cumsum(axis=1) <= count)
        after = np.where(taken, 0, room.gpus)
        gains: IntArray = (
            self.pods * (room.total - after.sum(axis=1))
            + self._usable(room, after, room.cpu - milli_cpu)
            - self._usable(room, room.gpus, room.cpu)
        )
        return gains

    def scores(self, gains: IntArray) -> IntArray:
        """Convert gains to scores from 0 to 99 by 100 · sigmoid of the gain in GPUs. No change scores 50."""
        if not self.pods:
            return np.full(gains.shape, 50, dtype=np.int64)
        return np.searchsorted(self._steps, gains, side="right")

    def _usable(self, room: Room, gpus: IntArray, cpu: IntArray) -> IntArray:
        """Return the usable part of `gpus`, summed over the workload's pods, shape (k,)."""
        wide = self._wide(gpus)
        usable_sum = (gpus[:, :, np.newaxis] * wide).sum(axis=1)
        fits = wide.sum(axis=1) >= self._counts
        usable: IntArray = (self._served_pods(room, cpu) * usable_sum * fits).sum(axis=1)
        return usable

    def _wide(self, gpus: IntArray) -> npt.NDArray[np.bool_]:
        """Return whether a device has as much left as a pod of the group requests of one, shape (k, d, groups)."""
        wide: npt.NDArray[np.bool_] = gpus[:, :, np.newaxis] >= self._millis
        return wide

    def _served_pods(self, room: Room, cpu: IntArray) -> IntArray:
        """Return how many pods of each group find their model and enough CPU on a node, shape (k, groups)."""
        served = self._served[np.searchsorted(self._cpus, cpu, side="right")]
        # Without models, every node suits every group.
        if any(group.models for group in self._groups):
            suits = [[group.accepts(model) for group in self._groups] for model in room.model_names]
            served = served * np.array(suits, dtype=np.int64)[room.models]
        return served


class FragmentationGauge:
    """Measures how much of all GPUs is idle and unusable to the workload. Only changed nodes are measured again."""

    def __init__(self, columns: DeviceColumns, fragmentation: Fragmentation) -> None:
        self._columns = columns
        self._fragmentation = fragmentation
        self._start()
        columns.table.listen(self)

    def shares(self) -> tuple[float, float]:
        """Return the fragmented share of all GPUs and of idle GPUs, from 0 to 1; 0 if there are none."""
        if self._stale:
            self._measure(np.array(sorted(self._stale), dtype=np.int64))
            self._stale.clear()
        pods = self._fragmentation.pods
        if not pods:
            return 0.0, 0.0
        of_all, of_idle = self._all * pods, self._idle_total * pods
        return self._amount / of_all if of_all else 0.0, self._amount / of_idle if of_idle else 0.0

    def row_changed(self, row: int, old: NodeInfo, new: NodeInfo) -> None:  # noqa: ARG002  # a listener's signature
        # Measured when somebody asks: a node may change several times before.
        self._stale.add(row)

    def rows_moved(
        self,
        moved_from: IntArray,  # noqa: ARG002
        gone: Sequence[NodeInfo],  # noqa: ARG002
        added: Sequence[NodeInfo],  # noqa: ARG002
    ) -> None:
        self._start()

    def table_rebuilt(self) -> None:
        self._start()

    def _start(self) -> None:
        count = len(self._columns.table)
        self._amounts: IntArray = np.zeros(count, dtype=np.int64)
        self._idle: IntArray = np.zeros(count, dtype=np.int64)
        self._counts: IntArray = np.zeros(count, dtype=np.int64)
        self._amount = self._idle_total = self._all = 0
        self._stale = set(range(count))

    def _measure(self, rows: IntArray) -> None:
        room = self._columns.room(rows)
        amounts, idle, counts = self._fragmentation.amounts(room), room.total, room.counts
        self._amount += int((amounts - self._amounts[rows]).sum())
        self._idle_total += int((idle - self._idle[rows]).sum())
        self._all += MILLI * int((counts - self._counts[rows]).sum())
        self._amounts[rows], self._idle[rows], self._counts[rows] = amounts, idle, counts
