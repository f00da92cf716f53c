"""The ways in which a framework calls its plugins."""

from __future__ import annotations

from enum import Enum


class Evaluation(Enum):
    """The ways to the same decisions, from the plainest to the fastest. All but the last are for comparison."""

    SCALAR = "scalar"
    """Only `filter` and `score`, node by node."""
    BATCH = "batch"
    """`filter_batch` and `score_batch` where plugins have them."""
    MEMO = "memo"
    """Like BATCH; answers are also kept where plugins promise that they hold (`reads`, `sign`)."""
