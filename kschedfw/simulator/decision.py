"""What became of one pod."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import attrs

from kschedfw.api.frozendict import EMPTY


class Outcome(StrEnum):
    """What became of a pod. One that was placed and has left since, because its time was up, is PLACED."""

    PLACED = "placed"
    PREEMPTED = "preempted"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    FAILED = "failed"


@attrs.frozen
class Decision:
    """What became of one pod (by its key) in the end, and why.

    `node` is where it was placed, also if it was preempted there. `attempts` counts its scheduling cycles; `evaluated`
    and `feasible` count the nodes in the last of them. `message` is what kube-scheduler would say where the pod wasn't
    placed, and `reasons` are its parts: on how many nodes each reason held (0: not about single nodes). `arrived` and
    `bound` are times in virtual seconds since the start.
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
        """Whether it lost its place to a pod of higher priority."""
        return self.outcome is Outcome.PREEMPTED

    def to_json(self) -> dict[str, object]:
        """The decision in types that `json.dumps` knows."""
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
