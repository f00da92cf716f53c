"""The scores of CPU and memory, or any two resources, of many nodes, in loops that Numba compiles (extra `fast`).

They give the numbers of the NumPy forms in a fraction of the time, since no arrays are made in between, and amounts in
float64 are worked on four at a time. Only int32 can be made of four floats at once, hence the detour from float64 to
int64. `compiled_scores` says where they hold.
"""

from __future__ import annotations

import numpy as np

from kschedfw import IntArray
from kschedfw.framework.nodes.arrays import FloatArray
from kschedfw.framework.runtime import _one_pass


@_one_pass.compiled
def least_allocated(
    allocatable: FloatArray,
    used: FloatArray,
    request: float,
    allocatable_2: FloatArray,
    used_2: FloatArray,
    request_2: float,
) -> IntArray:
    """See `ScoreOfTwo`."""
    scores = np.empty(len(used), np.int64)
    for k in range(len(used)):
        scores[k] = np.int32(
            _one_pass.least_allocated(
                allocatable[k], used[k], request, allocatable_2[k], used_2[k], request_2
            )
        )
    return scores


@_one_pass.compiled
def balanced_allocation(
    allocatable: FloatArray,
    used: FloatArray,
    request: float,
    allocatable_2: FloatArray,
    used_2: FloatArray,
    request_2: float,
) -> IntArray:
    """See `ScoreOfTwo`."""
    scores = np.empty(len(used), np.int64)
    for k in range(len(used)):
        scores[k] = np.int32(
            _one_pass.balanced_allocation(
                allocatable[k], used[k], request, allocatable_2[k], used_2[k], request_2
            )
        )
    return scores
