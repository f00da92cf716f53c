"""What became of one pod."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import attrs

from kschedfw.api.frozendict import EMPTY


class Outcome(StrEnum):
    """What became of a pod."""

    PLACED = "placed"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    FAILED = "failed"


@attrs.frozen
class Decision:
    """What became of one pod (by its key), and why.

    `evaluated` and `feasible` count nodes. `message` is what kube-scheduler would say where the pod wasn't placed, and
    `reasons` are its parts: on how many nodes each reason held (0: not about single nodes).
    """

    pod: str
    outcome: Outcome
    node: str | None = None
    message: str = ""
    evaluated: int = 0
    feasible: int = 0
    reasons: Mapping[str, int] = EMPTY

    def to_json(self) -> dict[str, object]:
        """The decision in types that `json.dumps` knows."""
        return {
            "pod": self.pod,
            "outcome": self.outcome.value,
            "node": self.node,
            "message": self.message,
            "evaluated": self.evaluated,
            "feasible": self.feasible,
        }
