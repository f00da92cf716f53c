"""The changes of a version of Kubernetes by which recorded pods would have been placed otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
from kschedfw_lab.compare import UpgradeReason, reasons

from kschedfw.config import FeatureGates
from kschedfw.scheduler import Setup
from kschedfw_replay.replaying.replay import Replayed

ReplayOf = Callable[[Setup], Replayed]
"""A function that replays the recording under a configuration, and keeps each pod's node."""


@attrs.frozen
class UpgradeMove:
    """A pod that another version bound to another node first; a node is empty if the version bound it to none.

    `reason` is the change that it comes from.
    """

    pod: str
    before: str
    after: str
    reason: UpgradeReason

    def to_json(self) -> dict[str, Any]:
        return {
            "pod": self.pod,
            "before": self.before or None,
            "after": self.after or None,
            "reason": self.reason.to_json(),
        }


@attrs.frozen
class Upgrade:
    """The pods that one version places otherwise than another one; both are named by their configuration's label."""

    baseline: str
    label: str
    moves: tuple[UpgradeMove, ...]

    @property
    def reasons(self) -> Mapping[str, int]:
        """The numbers of pods by reason, the most frequent first."""
        counts = Counter(str(move.reason) for move in self.moves)
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def to_json(self) -> dict[str, Any]:
        return {
            "baseline": self.baseline,
            "label": self.label,
            "reasons": [{"reason": reason, "pods": pods} for reason, pods in self.reasons.items()],
            "moves": [move.to_json() for move in self.moves],
        }


def upgrades(
    setups: Sequence[Setup],
    runs: Sequence[Replayed],
    remake: Callable[[FeatureGates], Setup],
    replay: ReplayOf,
) -> tuple[Upgrade, ...]:
    """Return for each version but the first the pods that it places otherwise, with their reasons.

    `runs` are the replays of `setups`, one configuration in several versions, with each pod's node; `remake` returns
    the configuration with other gates. Reasons are found by replaying with single changes, as `kschedfw compare` does.
    """
    had = _outcomes(runs[0])

    def outcomes(gates: FeatureGates) -> Mapping[str, object]:
        return _outcomes(replay(remake(gates)))

    found = []
    for setup, run in zip(setups[1:], runs[1:], strict=True):
        has = _outcomes(run)
        why = reasons(setups[0].configuration.gates, setup.configuration.gates, had, has, outcomes)
        moves = tuple(_move(runs[0], run, int(number), reason) for number, reason in why.items())
        found.append(Upgrade(runs[0].label, run.label, moves))
    return tuple(found)


def _outcomes(run: Replayed) -> Mapping[str, object]:
    return {str(number): node for number, (_, node) in run.nodes.items()}


def _move(before: Replayed, after: Replayed, number: int, reason: UpgradeReason) -> UpgradeMove:
    pod, node = after.nodes.get(number, ("", ""))
    earlier, earlier_node = before.nodes.get(number, ("", ""))
    return UpgradeMove(pod or earlier, earlier_node, node, reason)
