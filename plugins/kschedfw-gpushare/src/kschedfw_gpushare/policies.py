"""Policies that score nodes for a pod, k nodes at once, and pick its GPUs on the chosen node."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import attrs
import numpy as np

from kschedfw_gpushare.args import DevicePick, GpuShareArgs, Policy
from kschedfw_gpushare.demand import MILLI, GpuDemand
from kschedfw_gpushare.devices import IntArray, Room, kind_bit
from kschedfw_gpushare.fragmentation import Fragmentation

MOST = 100


@attrs.frozen
class GpuRequest:
    """A pod's requests that scores use. `milli_cpu` includes the default of containers without a request."""

    milli_cpu: int
    gpus: GpuDemand


@attrs.frozen(eq=False)
class Rater:
    """Scores nodes by the policy in `args`. `fragmentation` is measured with the workload's typical pods."""

    args: GpuShareArgs
    fragmentation: Fragmentation

    def rate(self, room: Room, request: GpuRequest) -> IntArray:
        """Return raw scores, shape (k,). Higher is better."""
        return _RATERS[self.args.policy](self, room, request)

    def _fgd(self, room: Room, request: GpuRequest) -> IntArray:
        """Score higher the less fragmentation grows. A sharing pod gets the score of the node's best device."""
        gpus = request.gpus
        if gpus.is_share:
            by_device = self.fragmentation.scores(
                self.fragmentation.gains_by_device(room, request.milli_cpu, gpus.milli)
            )
            # The initial value is for tables in which no node has a device.
            best: IntArray = by_device.max(axis=1, initial=0)
            return best
        return self.fragmentation.scores(self.fragmentation.gains(room, request.milli_cpu, gpus.count))

    def _dot_product(self, room: Room, request: GpuRequest) -> IntArray:
        """Score higher the smaller the product of free and requested amounts, both as shares of the largest node."""
        cpu, gpu = self._largest()
        product = room.cpu / cpu * (request.milli_cpu / cpu) + room.total / gpu * (request.gpus.total / gpu)
        # Nodes may be larger than the arguments' largest node.
        return ((1 - product / 2) * MOST).astype(np.int64).clip(0, MOST)

    def _best_fit(self, room: Room, request: GpuRequest) -> IntArray:
        """Score higher the less is left over, with equal weights for CPU and GPUs."""
        cpu, gpu = self._largest()
        left_over = (room.cpu - request.milli_cpu) / cpu * 0.5
        left_over = left_over + (room.total - request.gpus.total) / gpu * 0.5
        return ((1 - left_over) * MOST).astype(np.int64)

    def _packing(self, room: Room, request: GpuRequest) -> IntArray:
        """Prefer GPUs that are shared already, then free GPUs on used nodes, then free nodes with few GPUs."""
        gpus = request.gpus
        if gpus.is_none:
            return np.zeros(len(room.cpu), dtype=np.int64)
        free = (room.gpus == MILLI).sum(axis=1)
        free_node = np.maximum(MOST // 3 - free, free)
        free_gpus = max(MOST // 2 - gpus.count, MOST // 3)
        left = np.where(room.gpus >= gpus.milli, room.gpus, MILLI).min(axis=1, initial=MILLI)
        shared_gpu = np.maximum(MOST - left * MOST // MILLI // 10, MOST // 2)
        return np.where(free == room.counts, free_node, np.where(left == MILLI, free_gpus, shared_gpu))

    def _clustering(self, room: Room, request: GpuRequest) -> IntArray:
        """Prefer nodes with pods of the same kind only, then nodes that have this kind and others, then free nodes.

        Within these, prefer nodes with less GPU capacity left.
        """
        if request.gpus.is_none:
            return np.zeros(len(room.cpu), dtype=np.int64)
        kind, quarter = kind_bit(request.gpus), MOST // 4
        _, gpu = self._largest()
        fullness = quarter * (gpu - room.total).clip(0) // gpu
        beside_others = np.where(room.kinds & kind, 2, np.where(room.kinds == 0, 1, 0))
        scores: IntArray = fullness + quarter * np.where(room.kinds == kind, 3, beside_others)
        return scores

    def _largest(self) -> tuple[int, int]:
        """Return the CPU and GPUs of the largest node, in thousandths."""
        return self.args.largest_node_cpus * MILLI, self.args.largest_node_gpus * MILLI

    def _random(self, room: Room, request: GpuRequest) -> IntArray:  # noqa: ARG002  # as all
        """Return equal scores, so that the scheduler draws among all nodes."""
        return np.zeros(len(room.cpu), dtype=np.int64)


_RATERS: dict[Policy, Callable[[Rater, Room, GpuRequest], IntArray]] = {
    Policy.FGD: Rater._fgd,
    Policy.DOT_PRODUCT: Rater._dot_product,
    Policy.BEST_FIT: Rater._best_fit,
    Policy.GPU_PACKING: Rater._packing,
    Policy.GPU_CLUSTERING: Rater._clustering,
    Policy.RANDOM: Rater._random,
}


def stretched(scores: IntArray) -> IntArray:
    """Stretch the scores to the range from 0 (lowest) to 100 (highest). Return zeros if all are equal."""
    least, span = int(scores.min()), int(scores.max()) - int(scores.min())
    return (scores - least) * MOST // span if span else np.zeros_like(scores)


def with_one_best(scores: IntArray) -> IntArray:
    """Return the scores with ties at the top broken: the first of the best nodes keeps its score, the others lose 1."""
    first = int(scores.argmax())
    # At least 1, so that the others don't fall below 0.
    best = max(int(scores[first]), 1)
    scores = np.where(scores == best, best - 1, scores)
    scores[first] = best
    return scores


def pick_devices(
    how: DevicePick, room: Room, request: GpuRequest, rater: Rater, random: Random
) -> tuple[int, ...]:
    """Return the devices for a pod. `room` has only the chosen node, and the pod fits on it."""
    left, demand = room.gpus[0].tolist(), request.gpus
    if not demand.is_share:
        return tuple([device for device, idle in enumerate(left) if idle == MILLI][: demand.count])
    fitting = [device for device, idle in enumerate(left) if idle >= demand.milli]
    match how:
        case DevicePick.BEST_FIT:
            # `min` and `max` return the first of equal devices.
            return (min(fitting, key=left.__getitem__),)
        case DevicePick.WORST_FIT:
            return (max(fitting, key=left.__getitem__),)
        case DevicePick.RANDOM:
            return (random.choice(fitting),)
        case DevicePick.FGD:
            gains = rater.fragmentation.gains_by_device(room, request.milli_cpu, demand.milli)
            scores = rater.fragmentation.scores(gains)[0]
            return (max(fitting, key=scores.__getitem__),)
