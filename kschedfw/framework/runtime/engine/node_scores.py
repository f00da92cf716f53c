"""The scores of CPU and memory of one node, in float64.

These are the numbers of the scalar forms for amounts up to `LARGEST_EXACT`. Both forms of the pass are made from them.
So they use what Numba compiles well: no branches, and NumPy's `floor`.
"""

from __future__ import annotations

import numpy as np


def least_allocated(
    allocatable: float, used: float, request: float, allocatable_2: float, used_2: float, request_2: float
) -> float:
    """Score the free shares of two resources. A resource that the node hasn't got doesn't count."""
    there, there_2 = allocatable > 0, allocatable_2 > 0
    share = np.floor(max(allocatable - used - request, 0.0) * 100.0 / allocatable) if there else 0.0
    share_2 = (
        np.floor(max(allocatable_2 - used_2 - request_2, 0.0) * 100.0 / allocatable_2) if there_2 else 0.0
    )
    return float(np.floor((share + share_2) / (2.0 if there & there_2 else 1.0)))


def most_allocated(
    allocatable: float, used: float, request: float, allocatable_2: float, used_2: float, request_2: float
) -> float:
    """Score the used shares of two resources. A resource that the node hasn't got doesn't count."""
    there, there_2 = allocatable > 0, allocatable_2 > 0
    share = np.floor(min(used + request, allocatable) * 100.0 / allocatable) if there else 0.0
    share_2 = np.floor(min(used_2 + request_2, allocatable_2) * 100.0 / allocatable_2) if there_2 else 0.0
    return float(np.floor((share + share_2) / (2.0 if there & there_2 else 1.0)))


def balanced_allocation(
    allocatable: float, used: float, request: float, allocatable_2: float, used_2: float, request_2: float
) -> float:
    """Score how evenly two resources are used. A node with only one of them is in balance."""
    # Of two fractions the standard deviation is half their difference, which kube-scheduler computes in this
    # way.
    both = 0.5 if (allocatable > 0) & (allocatable_2 > 0) else 0.0
    there = allocatable if allocatable > 0 else 1.0
    there_2 = allocatable_2 if allocatable_2 > 0 else 1.0
    before = min(used / there, 1.0) - min(used_2 / there_2, 1.0)
    after = min((used + request) / there, 1.0) - min((used_2 + request_2) / there_2, 1.0)
    gain = np.floor((1 - abs(after) * both) * 100) - np.floor((1 - abs(before) * both) * 100)
    return float(50 + np.floor((50 + gain) * 0.5))
