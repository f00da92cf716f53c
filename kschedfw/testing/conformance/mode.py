"""The modes in which recorded decisions are repeated; all must give the same result."""

from __future__ import annotations

from enum import Enum

from kschedfw.framework.runtime.evaluation import Evaluation


class Mode(Enum):
    """The ways of calling plugins, and the changes between decisions."""

    SCALAR = "scalar"
    """Node by node."""
    BATCH = "batch"
    """By batch forms."""
    MEMO = "memo"
    """With the memo, as schedulers do it."""
    CHANGES = "changes"
    """With the memo, and changes of the cluster before each decision that are undone."""

    @property
    def evaluation(self) -> Evaluation:
        return Evaluation.MEMO if self is Mode.CHANGES else Evaluation(self.value)
