"""Scaling of scores to 0–100 (kube-scheduler `helper.DefaultNormalizeScore`)."""

from __future__ import annotations

import numpy as np

from kschedfw import MAX_NODE_SCORE, IntArray


def normalized(scores: IntArray, *, reverse: bool = False) -> IntArray:
    """Return non-negative scores scaled so that the highest becomes 100, rounded down; `reverse` makes 0 the best.

    If all scores are 0, they stay 0, or all become 100 if reversed.
    """
    # argmax takes a third of max's time.
    highest = max(int(scores[scores.argmax()]), 0) if len(scores) else 0
    if highest == 0:
        return np.full_like(scores, MAX_NODE_SCORE if reverse else 0)
    scaled: IntArray = scores * MAX_NODE_SCORE
    scaled //= highest
    return np.subtract(MAX_NODE_SCORE, scaled, out=scaled) if reverse else scaled
