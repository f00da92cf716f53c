"""Bringing scores into 0–100 (kube-scheduler `helper.DefaultNormalizeScore`)."""

from __future__ import annotations

import numpy as np

from kschedfw.framework.results import MAX_NODE_SCORE, IntArray


def normalized(scores: IntArray, *, reverse: bool = False) -> IntArray:
    """Non-negative scores scaled so that the highest becomes 100, rounded down; `reverse` makes 0 the best.

    Where all scores are 0, they stay 0, or all become 100 if reversed.
    """
    highest = int(scores.max(initial=0))
    scaled = scores * MAX_NODE_SCORE // highest if highest else np.zeros_like(scores)
    return MAX_NODE_SCORE - scaled if reverse else scaled
