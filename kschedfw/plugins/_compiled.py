"""The scores of CPU and memory, or any two resources, in loops that Numba compiles (extra `fast`).

They give the numbers of the NumPy forms in a fraction of the time, since no arrays are made in between, and amounts in
float64 are worked on four at a time. Only int32 can be made of four floats at once, hence the detour from float64 to
int64. `compiled_scores` says where they hold. The compiled code is kept on disk, if there is a place for it.
"""

from __future__ import annotations

from typing import Final, cast

import numba
import numpy as np

from kschedfw import IntArray
from kschedfw.framework.nodes.arrays import FloatArray
from kschedfw.plugins._resources import ScoreOfTwo


def _compile(loop: ScoreOfTwo) -> ScoreOfTwo:
    try:
        compiled = numba.njit(error_model="numpy", nogil=True, cache=True)(loop)
    except RuntimeError:  # there is no place that can be written to
        compiled = numba.njit(error_model="numpy", nogil=True)(loop)
    return cast("ScoreOfTwo", compiled)


def _least_allocated(
    allocatable: FloatArray,
    used: FloatArray,
    request: float,
    allocatable_2: FloatArray,
    used_2: FloatArray,
    request_2: float,
) -> IntArray:
    scores = np.empty(len(used), np.int64)
    for k in range(len(used)):
        there, there_2 = allocatable[k], allocatable_2[k]
        share = np.floor(max(there - used[k] - request, 0.0) * 100.0 / there) if there > 0 else 0.0
        share_2 = (
            np.floor(max(there_2 - used_2[k] - request_2, 0.0) * 100.0 / there_2) if there_2 > 0 else 0.0
        )
        count = 2.0 if (there > 0) & (there_2 > 0) else 1.0
        scores[k] = np.int32((share + share_2) / count)
    return scores


def _balanced_allocation(
    allocatable: FloatArray,
    used: FloatArray,
    request: float,
    allocatable_2: FloatArray,
    used_2: FloatArray,
    request_2: float,
) -> IntArray:
    scores = np.empty(len(used), np.int64)
    for k in range(len(used)):
        # A single resource is in balance with itself.
        both = 0.5 if (allocatable[k] > 0) & (allocatable_2[k] > 0) else 0.0
        there = allocatable[k] if allocatable[k] > 0 else 1.0
        there_2 = allocatable_2[k] if allocatable_2[k] > 0 else 1.0
        before = min(used[k] / there, 1.0) - min(used_2[k] / there_2, 1.0)
        after = min((used[k] + request) / there, 1.0) - min((used_2[k] + request_2) / there_2, 1.0)
        gain = np.int32((1 - abs(after) * both) * 100) - np.int32((1 - abs(before) * both) * 100)
        scores[k] = 50 + ((50 + gain) >> 1)
    return scores


least_allocated: Final = _compile(_least_allocated)
balanced_allocation: Final = _compile(_balanced_allocation)
