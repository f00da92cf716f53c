"""The scores of CPU and memory, or any two resources, in loops that Numba compiles (extra `fast`).

They give the numbers of the NumPy forms in a fraction of the time, since no arrays are made in between.
`compiled_scores` says where they hold. The compiled code is kept on disk, if there is a place for it.
"""

from __future__ import annotations

from typing import Final, cast

import numba
import numpy as np

from kschedfw import IntArray
from kschedfw.plugins._resources import ScoreOfTwo


def _compile(loop: ScoreOfTwo) -> ScoreOfTwo:
    try:
        compiled = numba.njit(error_model="numpy", nogil=True, cache=True)(loop)
    except RuntimeError:  # there is no place that can be written to
        compiled = numba.njit(error_model="numpy", nogil=True)(loop)
    return cast("ScoreOfTwo", compiled)


def _least_allocated(
    allocatable: IntArray,
    used: IntArray,
    request: int,
    allocatable_2: IntArray,
    used_2: IntArray,
    request_2: int,
) -> IntArray:
    scores = np.empty(len(used), np.int64)
    for k in range(len(used)):
        free = max(allocatable[k] - used[k] - request, 0)
        free_2 = max(allocatable_2[k] - used_2[k] - request_2, 0)
        shares = np.floor(free * 100.0 / allocatable[k]) + np.floor(free_2 * 100.0 / allocatable_2[k])
        scores[k] = int(shares / 2)
    return scores


def _balanced_allocation(
    allocatable: IntArray,
    used: IntArray,
    request: int,
    allocatable_2: IntArray,
    used_2: IntArray,
    request_2: int,
) -> IntArray:
    scores = np.empty(len(used), np.int64)
    for k in range(len(used)):
        before = min(used[k] / allocatable[k], 1.0) - min(used_2[k] / allocatable_2[k], 1.0)
        after = min((used[k] + request) / allocatable[k], 1.0) - min(
            (used_2[k] + request_2) / allocatable_2[k], 1.0
        )
        gain = int((1 - abs(after / 2)) * 100) - int((1 - abs(before / 2)) * 100)
        scores[k] = 50 + ((50 + gain) >> 1)
    return scores


least_allocated: Final = _compile(_least_allocated)
balanced_allocation: Final = _compile(_balanced_allocation)
