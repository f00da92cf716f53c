"""The reason why a pod wasn't placed on the node that another configuration chose."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import attrs

from kschedfw.explain import Evidence, Explanation, NodeExplanation, Verdict, code_of_plugin


class Ground(StrEnum):
    """The ground on which a node wasn't chosen in a scheduling cycle."""

    REFUSED = "refused"
    """pre_filter, a filter or an extender rejected it."""
    OUTSCORED = "outscored"
    """Another node had a higher total."""
    TIED = "tied"
    """Another node had the same total and was drawn."""
    UNSEEN = "unseen"
    """The search for feasible nodes ended before this node's turn."""

    @property
    def meaning(self) -> str:
        """Return what it says of the node."""
        return _MEANINGS[self]


_MEANINGS: Final = {
    Ground.REFUSED: "pre_filter, a filter or an extender rejected the node; `evidence` says why",
    Ground.OUTSCORED: "another node had a higher total",
    Ground.TIED: "another node had the same total and was drawn",
    Ground.UNSEEN: "the search for feasible nodes ended before this node's turn",
}


@attrs.frozen
class Points:
    """A score plugin's scores of the chosen and of the other node, from 0 to 100, and its weight."""

    plugin: str
    weight: int
    chosen: int
    other: int

    @property
    def lead(self) -> int:
        """The weighted difference between the chosen node's score and the other node's."""
        return (self.chosen - self.other) * self.weight

    def __str__(self) -> str:
        return f"{self.plugin}: {self.chosen}×{self.weight} to {self.other}×{self.weight}"


@attrs.frozen
class Against:
    """The reason why a node wasn't chosen in the last scheduling cycle of a pod.

    `chosen` is the node that was chosen instead; None if no node was feasible. `plugin` rejected the node for these
    `reasons`, or gave the chosen node the largest weighted lead; it is empty if no plugin decided. `evidence` has the
    numbers behind the rejection. `points` are in profile order, and empty unless both nodes were scored. `chosen_total`
    and `other_total` include the extenders' scores.
    """

    node: str
    chosen: str | None
    ground: Ground
    plugin: str = ""
    reasons: tuple[str, ...] = ()
    points: Sequence[Points] = ()
    chosen_total: int = 0
    other_total: int = 0
    evidence: tuple[Evidence, ...] = ()

    def __str__(self) -> str:
        chosen = f"{self.chosen or 'no node'} rather than {self.node}"
        match self.ground:
            case Ground.REFUSED:
                by = f" by {self.plugin}" if self.plugin else ""
                why = f": {', '.join(self.reasons)}" if self.reasons else ""
                return f"{self.node} was refused{by}{why}"
            case Ground.TIED:
                return f"{chosen}, drawn from those with {self.chosen_total} points"
            case Ground.UNSEEN:
                return f"{self.node} wasn't looked at before the search was over"
            case Ground.OUTSCORED:
                totals = f"{chosen}, with {self.chosen_total} to {self.other_total} points"
                decisive = next((each for each in self.points if each.plugin == self.plugin), None)
                return totals if decisive is None else f"{totals}, most by {decisive}"

    def to_json(self) -> dict[str, object]:
        return {
            "node": self.node,
            "chosen": self.chosen,
            "ground": self.ground.value,
            "plugin": self.plugin or None,
            "reasons": list(self.reasons),
            "evidence": [_evidence_json(each, self.plugin) for each in self.evidence],
            "points": {
                each.plugin: {"weight": each.weight, "chosen": each.chosen, "other": each.other}
                for each in self.points
            },
            "chosenTotal": self.chosen_total,
            "otherTotal": self.other_total,
            "text": str(self),
        }


def _evidence_json(evidence: Evidence, plugin: str) -> dict[str, object]:
    code = evidence.code or code_of_plugin(plugin)
    return {"code": code, "parameters": dict(evidence.values), "text": str(evidence)}


def against(explanation: Explanation, node: str) -> Against | None:
    """Return why this decision didn't choose the node; None if it did, or if the reason isn't known."""
    # No nodes were considered for the pod.
    if node not in explanation.nodes:
        return None
    other = explanation.of(node)
    match other.verdict:
        case Verdict.CHOSEN:
            return None
        case Verdict.NOT_LOOKED_AT:
            return Against(node, explanation.node, Ground.UNSEEN)
        case Verdict.REFUSED | Verdict.LEFT_OUT:
            refusal = other.refusal
            plugin, reasons = ("", ()) if refusal is None else (refusal.plugin, tuple(refusal.reasons))
            evidence = tuple(other.evidence.get(plugin, ()))
            return Against(node, explanation.node, Ground.REFUSED, plugin, reasons, evidence=evidence)
        case Verdict.FEASIBLE:
            # A node was chosen, but a plugin failed in a later step.
            if explanation.node is None:
                return None
            return _outdone(explanation.of(explanation.node), other)


def _outdone(chosen: NodeExplanation, other: NodeExplanation) -> Against:
    points = tuple(
        Points(plugin, score.weight, score.normalized, other.scores[plugin].normalized)
        for plugin, score in chosen.scores.items()
    )
    most, least = chosen.total or 0, other.total or 0
    if most == least:
        return Against(other.node, chosen.node, Ground.TIED, "", (), points, most, least)
    best = max(points, key=lambda each: each.lead, default=None)
    plugin = best.plugin if best is not None and best.lead > 0 else ""
    return Against(other.node, chosen.node, Ground.OUTSCORED, plugin, (), points, most, least)
