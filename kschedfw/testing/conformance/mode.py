"""The ways in which recorded decisions are made again; all must come to the same."""

from __future__ import annotations

from enum import Enum

from kschedfw.framework.runtime.evaluation import Evaluation


class Mode(Enum):
    """How the plugins are asked, and what happens between decisions."""

    SCALAR = "scalar"
    """Node by node."""
    BATCH = "batch"
    """By batch forms."""
    MEMO = "memo"
    """With answers kept from one pod to the next, as schedulers do it."""
    CHANGES = "changes"
    """The same, while the cluster changes back and forth before each decision."""

    @property
    def evaluation(self) -> Evaluation:
        return Evaluation.MEMO if self is Mode.CHANGES else Evaluation(self.value)
