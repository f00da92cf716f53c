"""The decision of the cluster's scheduler on a pod, the shadow's decision, and their comparison."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import attrs

from kschedfw import Pod
from kschedfw.cluster import EventType, WatchEvent
from kschedfw.explain import Explanation, Result, UnknownNodeError, Verdict

_UNSCHEDULABLE = "Unschedulable"


@attrs.frozen
class Recorded:
    """A decision of the cluster's scheduler on a pod: a node, or a refusal with a message and perhaps a nomination."""

    pod: Pod
    """The pod as it was before, pending."""
    node: str = ""
    message: str = ""
    nominated: str = ""

    @classmethod
    def of(cls, before: Pod | None, event: WatchEvent) -> Recorded | None:
        """Return the decision in an event, given the pod's state before it; None if the event has no decision."""
        after = event.object
        if (
            not isinstance(after, Pod)
            or before is None
            or event.type is EventType.DELETED
            or before.uid != after.uid
            or before.node_name
        ):
            return None
        if after.node_name:
            return cls(before, after.node_name)
        said, nominated = refusal(after), after.status.nominated_node_name
        if said is None or (said, nominated) == (refusal(before), before.status.nominated_node_name):
            return None
        return cls(before, message=said, nominated=nominated)


def refusal(pod: Pod) -> str | None:
    """The message with which the pod was refused last; None if it wasn't."""
    for condition in pod.status.conditions:
        if (
            condition.type == "PodScheduled"
            and condition.status == "False"
            and condition.reason == _UNSCHEDULABLE
        ):
            return condition.message
    return None


def expected_node(before: Pod | None, after: Pod, expected: str = "") -> str:
    """The node on which a pod is about to be bound; empty if it isn't known, or is bound.

    Preemption nominates together with a refusal, so a nomination by itself tells of a decision for that node
    (KEP-5278, on by default since 1.35).
    """
    nominated = after.status.nominated_node_name
    if after.node_name or not nominated:
        return ""
    if nominated == expected:
        return expected if before is not None and refusal(before) == refusal(after) else ""
    if before is None:
        return nominated if refusal(after) is None else ""
    is_new = not before.status.nominated_node_name and refusal(before) == refusal(after)
    return nominated if is_new else ""


class Agreement(StrEnum):
    """The outcomes of comparing the shadow's decision on a pod with that of the cluster's scheduler."""

    SAME = "same"
    """The same node; or both refuse it, with the same nomination."""
    TIED = "tied"
    """The cluster's node, or nomination, is one of those that are equally good here."""
    BETTER = "better"
    """The cluster's node is feasible here, and another one has a higher total of the shadow's own scores."""
    REFUSED_HERE = "refused-here"
    """The cluster's node isn't feasible here."""
    PLACED_HERE = "placed-here"
    """The cluster's scheduler refused the pod, and the shadow has a node for it."""
    NOMINATED_ELSEWHERE = "nominated-elsewhere"
    """Both refuse the pod, and preemption makes room elsewhere, or for one of them only."""
    FAILED = "failed"
    """A plugin or an extender of the shadow failed."""

    @property
    def agrees(self) -> bool:
        return self in (Agreement.SAME, Agreement.TIED)


class Cause(StrEnum):
    """The causes of decisions that don't agree."""

    RACE = "race"
    """The decisions agree if other pods are bound, changed or deleted a moment earlier or later."""
    NEWER_STATE = "newer-state"
    """The decisions agree if another object, such as a node, changes a moment earlier or later."""
    PARTIAL_SEARCH = "partial-search"
    """More nodes fit than the cluster's scheduler looks for, so it may not have seen the better one."""
    UNKNOWN = "unknown"
    """The decisions agree in no state around that moment: the configurations differ, or the cause is unknown."""


@attrs.frozen
class Comparison:
    """One decision of the cluster's scheduler beside that of the shadow, on the same state.

    Attributes:
        ours: the shadow's node; empty if it refuses the pod or failed.
        nominated: the node on which the shadow's preemption would make room; empty for none.
        feasible: how many nodes are feasible here.
        tied: how many nodes are equally good to the shadow.
        reason: why the cluster's node isn't feasible here, why the shadow failed, or with what the pod was refused by
            the side that refuses it.
        margin: by how much the total of the shadow's node is above that of the cluster's; 0 where one has none.
        points: for BETTER, each plugin's weighted scores of the cluster's node and the shadow's, where they differ.
        plugin: the plugin that refused the cluster's node, or failed; empty if it isn't known.
        at: when the cluster's decision was seen, in seconds since the epoch.
        seconds: how long the shadow took to decide, with the explanation.
        cause: None if it agrees, or the shadow failed.
    """

    recorded: Recorded
    agreement: Agreement
    ours: str = ""
    nominated: str = ""
    feasible: int = 0
    tied: int = 0
    reason: str = ""
    margin: int = 0
    points: Mapping[str, tuple[int, int]] = attrs.field(factory=dict)
    plugin: str = ""
    at: float = 0.0
    seconds: float = 0.0
    cause: Cause | None = None

    def to_json(self) -> dict[str, object]:
        """Return the comparison as in a line of `--json`, without empty fields."""
        told: dict[str, object] = {
            "at": round(self.at, 3),
            "pod": self.recorded.pod.key,
            "agreement": str(self.agreement),
            "cause": self.cause and str(self.cause),
            "node": self.recorded.node,
            "message": self.recorded.message,
            "nominated": self.recorded.nominated,
            "shadowNode": self.ours,
            "shadowNominated": self.nominated,
            "tied": self.tied,
            "reason": self.reason,
            "plugin": self.plugin,
            "margin": self.margin,
            "points": {plugin: list(both) for plugin, both in self.points.items()},
            "milliseconds": round(self.seconds * 1000, 3),
        }
        return {name: value for name, value in told.items() if value not in (None, "", 0, {})}


def compared(recorded: Recorded, explanation: Explanation, plugins: tuple[str, ...]) -> Comparison:
    """Compare the cluster scheduler's decision with the shadow's; `plugins` are the names of plugins that may fail."""
    if explanation.result is Result.FAILED:
        return failed(recorded, explanation.message, plugins)
    comparison = Comparison(
        recorded,
        Agreement.SAME,
        explanation.node or "",
        explanation.nominated or "",
        len(explanation.feasible),
        len(explanation.tied) or int(explanation.node is not None),
    )
    if not recorded.node and (explanation.node is None or not recorded.nominated):
        return _refused(comparison, explanation)
    # A nomination is written when room has been made for the pod: its victims may be gone already, and it fits there.
    theirs = recorded.node or recorded.nominated
    if explanation.node == theirs:
        return comparison
    if theirs in explanation.tied:
        return attrs.evolve(comparison, agreement=Agreement.TIED)
    return _elsewhere(comparison, explanation, theirs)


def failed(recorded: Recorded, message: str, plugins: tuple[str, ...]) -> Comparison:
    """Return the comparison for a failed plugin or extender; messages have the plugin's name in quotes."""
    named = next((name for name in plugins if f'"{name}"' in message), "")
    return Comparison(recorded, Agreement.FAILED, reason=message, plugin=named)


def _elsewhere(comparison: Comparison, explanation: Explanation, node: str) -> Comparison:
    """Return the comparison for a pod whose node isn't among the shadow's best ones."""
    try:
        theirs = explanation.of(node)
    except UnknownNodeError:
        return attrs.evolve(
            comparison,
            agreement=Agreement.REFUSED_HERE,
            reason="the shadow knows no such node yet, or no longer",
        )
    if explanation.node is not None and theirs.verdict in (Verdict.FEASIBLE, Verdict.NOT_LOOKED_AT):
        ours = explanation.of(explanation.node)
        points = {
            name: (score.weighted, ours.scores[name].weighted)
            for name, score in theirs.scores.items()
            if score.weighted != ours.scores[name].weighted
        }
        margin = (ours.total or 0) - (theirs.total or 0) if theirs.total is not None else 0
        return attrs.evolve(comparison, agreement=Agreement.BETTER, margin=margin, points=points)
    refusal = theirs.refusal
    return attrs.evolve(
        comparison,
        agreement=Agreement.REFUSED_HERE,
        reason=explanation.message if refusal is None else refusal.message,
        plugin="" if refusal is None else refusal.plugin,
    )


def _refused(comparison: Comparison, explanation: Explanation) -> Comparison:
    """Return the comparison for a pod that the cluster's scheduler refused."""
    recorded = comparison.recorded
    if explanation.node is not None:
        return attrs.evolve(comparison, agreement=Agreement.PLACED_HERE, reason=recorded.message)
    comparison = attrs.evolve(comparison, reason=explanation.message)
    before = recorded.pod.status.nominated_node_name
    if comparison.nominated == recorded.nominated or (
        not comparison.nominated and recorded.nominated == before
    ):
        # A pod that waits for its victims keeps its nomination.
        return comparison
    step = explanation.preemption
    if step is not None and recorded.nominated in (candidate.node for candidate in step.tied):
        return attrs.evolve(comparison, agreement=Agreement.TIED, tied=len(step.tied))
    return attrs.evolve(comparison, agreement=Agreement.NOMINATED_ELSEWHERE)
