"""Ways to rate nodes for a pod. Each gives raw scores for k nodes at once; one node is an array of one."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np

from kschedfw_gpushare.args import GpuShareArgs, Policy
from kschedfw_gpushare.demand import MILLI, GpuDemand
from kschedfw_gpushare.devices import IntArray, Room, kind_bit
from kschedfw_gpushare.fragmentation import Fragmentation

MOST = 100


@attrs.frozen
class Request:
    """What a pod asks for, as far as it is rated; millicores as scores count them."""

    milli_cpu: int
    gpus: GpuDemand


@attrs.frozen(eq=False)
class Rater:
    """Rates nodes by one policy. `fragmentation` is that of the workload."""

    args: GpuShareArgs
    fragmentation: Fragmentation

    def rate(self, room: Room, request: Request) -> IntArray:
        """Scores, higher is better, shape (k,)."""
        return _RATERS[self.args.policy](self, room, request)

    def _fgd(self, room: Room, request: Request) -> IntArray:
        """Where fragmentation grows least; for a share, on the device of the node where it does."""
        gpus = request.gpus
        if gpus.is_share:
            by_device = self.fragmentation.scores(
                self.fragmentation.gains_by_device(room, request.milli_cpu, gpus.milli)
            )
            best: IntArray = by_device.max(axis=1, initial=0)
            return best
        return self.fragmentation.scores(self.fragmentation.gains(room, request.milli_cpu, gpus.count))

    def _dot_product(self, room: Room, request: Request) -> IntArray:
        """Where the product of what is left and what is asked for, as shares of the largest node, is least."""
        cpu, gpu = self._largest()
        product = room.cpu / cpu * (request.milli_cpu / cpu) + room.total / gpu * (request.gpus.total / gpu)
        return ((1 - product / 2) * MOST).astype(np.int64).clip(0, MOST)

    def _best_fit(self, room: Room, request: Request) -> IntArray:
        """Where least is left over, CPU and GPUs weighing the same."""
        cpu, gpu = self._largest()
        left_over = (room.cpu - request.milli_cpu) / cpu * 0.5
        left_over = left_over + (room.total - request.gpus.total) / gpu * 0.5
        return ((1 - left_over) * MOST).astype(np.int64)

    def _packing(self, room: Room, request: Request) -> IntArray:
        """Shared GPUs first, then free ones on nodes in use, then free nodes, the smaller the better."""
        gpus = request.gpus
        if gpus.is_none:
            return np.zeros(len(room.cpu), dtype=np.int64)
        free = (room.gpus == MILLI).sum(axis=1)
        free_node = np.maximum(MOST // 3 - free, free)
        free_gpus = max(MOST // 2 - gpus.count, MOST // 3)
        left = np.where(room.gpus >= gpus.milli, room.gpus, MILLI).min(axis=1, initial=MILLI)
        shared_gpu = np.maximum(MOST - left * MOST // MILLI // 10, MOST // 2)
        return np.where(free == room.counts, free_node, np.where(left == MILLI, free_gpus, shared_gpu))

    def _clustering(self, room: Room, request: Request) -> IntArray:
        """Beside pods of the same kind, best of all alone; then free nodes; fuller nodes first."""
        if request.gpus.is_none:
            return np.zeros(len(room.cpu), dtype=np.int64)
        kind, quarter = kind_bit(request.gpus), MOST // 4
        _, gpu = self._largest()
        fullness = quarter * (gpu - room.total).clip(0) // gpu
        beside_others = np.where(room.kinds & kind, 2, np.where(room.kinds == 0, 1, 0))
        scores: IntArray = fullness + quarter * np.where(room.kinds == kind, 3, beside_others)
        return scores

    def _largest(self) -> tuple[int, int]:
        """The largest node's CPU and GPUs, in thousandths."""
        return self.args.largest_node_cpus * MILLI, self.args.largest_node_gpus * MILLI

    def _random(self, room: Room, request: Request) -> IntArray:  # noqa: ARG002  # as all
        """All the same: the scheduler draws among the best."""
        return np.zeros(len(room.cpu), dtype=np.int64)


_RATERS: dict[Policy, Callable[[Rater, Room, Request], IntArray]] = {
    Policy.FGD: Rater._fgd,
    Policy.DOT_PRODUCT: Rater._dot_product,
    Policy.BEST_FIT: Rater._best_fit,
    Policy.GPU_PACKING: Rater._packing,
    Policy.GPU_CLUSTERING: Rater._clustering,
    Policy.RANDOM: Rater._random,
}


def stretched(scores: IntArray) -> IntArray:
    """The scores from 0 for the least to 100 for the best; 0 for all where they are the same."""
    least, span = int(scores.min()), int(scores.max()) - int(scores.min())
    return (scores - least) * MOST // span if span else np.zeros_like(scores)


def with_one_best(scores: IntArray) -> IntArray:
    """The scores with the first of the best ahead of the others."""
    first = int(scores.argmax())
    best = max(int(scores[first]), 1)
    scores = np.where(scores == best, best - 1, scores)
    scores[first] = best
    return scores
