"""The scores of CPU and memory, or any two resources, of many nodes, in loops that Numba compiles (extra `fast`).

They give the numbers of the NumPy forms in a fraction of the time, since no arrays are made in between, and
four amounts in float64 are worked on at a time. Four floats can only be converted at once to int32, hence the
detour from float64 to int64. `compiled_scores` checks for which amounts they are exact.
"""

from __future__ import annotations

import numpy as np

from kschedfw import IntArray
from kschedfw.framework.nodes.arrays import FloatArray
from kschedfw.framework.runtime.engine import _pass


@_pass.compiled
def least_allocated(
    allocatable: FloatArray,
    used: FloatArray,
    request: float,
    allocatable_2: FloatArray,
    used_2: FloatArray,
    request_2: float,
) -> IntArray:
    """Return the scores of least allocation, as `ScoreOfTwo` defines."""
    scores = np.empty(len(used), np.int64)
    for k in range(len(used)):
        scores[k] = np.int32(
            _pass.least_allocated(allocatable[k], used[k], request, allocatable_2[k], used_2[k], request_2)
        )
    return scores


@_pass.compiled
def balanced_allocation(
    allocatable: FloatArray,
    used: FloatArray,
    request: float,
    allocatable_2: FloatArray,
    used_2: FloatArray,
    request_2: float,
) -> IntArray:
    """Return the scores of balanced allocation, as `ScoreOfTwo` defines."""
    scores = np.empty(len(used), np.int64)
    for k in range(len(used)):
        scores[k] = np.int32(
            _pass.balanced_allocation(
                allocatable[k], used[k], request, allocatable_2[k], used_2[k], request_2
            )
        )
    return scores
