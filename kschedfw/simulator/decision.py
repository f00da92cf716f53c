"""The outcome of a simulation for one pod."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import attrs

from kschedfw.api.frozendict import EMPTY


class Outcome(StrEnum):
    """The outcomes for a pod. A pod that was placed and has left at the end of its stay is PLACED."""

    PLACED = "placed"
    PREEMPTED = "preempted"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    FAILED = "failed"


@attrs.frozen
class Decision:
    """The final outcome for one pod (by its key), and the reasons.

    `node` is the node where it was placed, even if it was preempted there. `attempts` is the number of its
    scheduling cycles; `evaluated` and `feasible` are numbers of nodes in the last one. `message` is
    kube-scheduler's message for a pod that wasn't placed. `reasons` are its parts, with the number of nodes for
    each (0 for a reason that isn't about single nodes). `arrived` and `bound` are times in virtual seconds
    since the start.
    """

    pod: str
    outcome: Outcome
    node: str | None = None
    message: str = ""
    attempts: int = 0
    evaluated: int = 0
    feasible: int = 0
    reasons: Mapping[str, int] = EMPTY
    arrived: float = 0.0
    bound: float | None = None

    @property
    def preempted(self) -> bool:
        """Whether the pod was preempted."""
        return self.outcome is Outcome.PREEMPTED

    def to_json(self) -> dict[str, object]:
        """Return the decision in types that `json.dumps` knows."""
        return {
            "pod": self.pod,
            "outcome": self.outcome.value,
            "node": self.node,
            "message": self.message,
            "reasons": [{"text": text, "nodes": nodes} for text, nodes in self.reasons.items()],
            "attempts": self.attempts,
            "preempted": self.preempted,
            "evaluated": self.evaluated,
            "feasible": self.feasible,
            "arrivedAt": self.arrived,
            "boundAt": self.bound,
        }
