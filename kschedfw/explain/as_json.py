"""An explanation as JSON, with every node."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from kschedfw.explain.causes import cause_of_group, causes_of
from kschedfw.explain.explanation import Explanation, NodeExplanation
from kschedfw.explain.groups import GroupStep, MemberStep
from kschedfw.explain.steps import PreemptionCandidate
from kschedfw.framework.diagnosis import code_of_plugin
from kschedfw.framework.status import Status

SCHEMA_VERSION = 1
"""The version of codes and their parameters in JSON; it rises when one of them is taken away or changes its meaning."""

MOST_CLOSEST = 10
"""The most nodes that are named of those closest to feasible, the closest first."""


def as_json(explanation: Explanation) -> dict[str, object]:
    """The decision in types that `json.dumps` knows, with an object per node."""
    step, score, preemption = explanation.filter, explanation.score, explanation.preemption
    refusal = explanation.pre_filter.refusal
    return {
        "pod": explanation.pod,
        "profile": explanation.profile,
        "attempt": explanation.attempt,
        "result": explanation.result.value,
        "node": explanation.node,
        "nominated": explanation.nominated,
        "message": explanation.message,
        "schemaVersion": SCHEMA_VERSION,
        "causes": [] if explanation.node else [cause.to_json() for cause in causes_of(explanation)],
        "preFilter": {
            "skipped": list(explanation.pre_filter.skipped),
            "narrowing": list(explanation.pre_filter.narrowing),
            "refusal": None if refusal is None else _status(refusal),
        },
        "filter": None
        if step is None
        else {
            "plugins": list(step.plugins),
            "start": step.start,
            "wanted": step.wanted,
            "lookedAt": step.looked_at,
            "nominatedNodeOnly": step.nominated,
            "batchOf": step.batch_of,
        },
        "score": None
        if score is None
        else {
            "plugins": {name: scores.weight for name, scores in score.plugins.items()},
            "skipped": list(score.skipped),
            "forThisExplanationOnly": score.beyond,
        },
        "tied": list(explanation.tied),
        "preemption": None
        if preemption is None
        else {
            "message": preemption.message,
            "chosen": None if preemption.chosen is None else preemption.chosen.node,
            "tied": [candidate.node for candidate in preemption.tied],
            "candidates": _candidates(preemption.candidates),
        },
        "closest": [node.node for node in islice(explanation.closest(), MOST_CLOSEST)],
        "nodes": [_node(node) for node in explanation.rows()],
        "group": None if explanation.group is None else explanation.group.group,
    }


def group_as_json(step: GroupStep) -> dict[str, object]:
    """The decision on a group, with an object per placement, and in it one per member."""
    preemption = step.preemption
    return {
        "group": step.group,
        "profile": step.profile,
        "attempt": step.attempt,
        "result": step.result.value,
        "endedBy": None if step.ended_by is None else step.ended_by.value,
        "message": step.message,
        "schemaVersion": SCHEMA_VERSION,
        "cause": cause_of_group(step),
        "minCount": step.min_count,
        "scheduledBefore": step.scheduled,
        "topologyKey": step.topology_key,
        "members": list(step.members),
        "taken": step.taken,
        "nearest": None if step.nearest is None else step.nearest.name,
        "placements": [
            {
                "name": each.name,
                "nodes": list(each.nodes),
                "suffices": each.suffices,
                "message": each.message,
                "placed": each.placed,
                "scores": dict(each.scores),
                "total": each.total,
                "members": [_member(member) for member in each.members],
            }
            for each in step.placements
        ],
        "preemption": None
        if preemption is None
        else {
            "isSuccess": preemption.is_success,
            "message": preemption.message,
            "considered": preemption.considered,
            "victims": [list(pods) for pods in preemption.victims],
            "budgetViolations": preemption.budget_violations,
        },
    }


def _member(member: MemberStep) -> dict[str, object]:
    decision = member.decision
    return {
        "pod": member.pod,
        "node": member.node or None,
        "message": member.message,
        "permit": None if member.permit is None else _status(member.permit),
        "preempts": member.preempts,
        "preFilter": None
        if decision is None or decision.pre_filter.refusal is None
        else _status(decision.pre_filter.refusal),
        "feasible": [] if decision is None else list(decision.feasible),
        "refused": {}
        if decision is None
        else {node.node: _status(node.refusal) for node in decision.rows() if node.refusal is not None},
        "closest": []
        if decision is None
        else [_node(node) for node in islice(decision.closest(), MOST_CLOSEST)],
    }


def _node(node: NodeExplanation) -> dict[str, object]:
    return {
        "node": node.node,
        "verdict": node.verdict.value,
        "refusal": None if node.refusal is None else _status(node.refusal),
        "total": node.total,
        "scores": {
            name: {"raw": score.raw, "normalized": score.normalized, "weighted": score.weighted}
            for name, score in node.scores.items()
        },
        "wouldAlsoBeRefusedBy": [_status(status) for status in node.also_refused_by.values()],
        "evidence": [
            {
                "plugin": plugin,
                "code": each.code or code_of_plugin(plugin),
                "text": str(each),
                "gap": each.gap,
                "values": dict(each.values),
            }
            for plugin, found in node.evidence.items()
            for each in found
        ],
    }


def _status(status: Status) -> dict[str, object]:
    return {"code": str(status.code), "plugin": status.plugin, "reasons": list(status.reasons)}


def _candidates(candidates: Iterable[PreemptionCandidate]) -> list[dict[str, object]]:
    return [
        {
            "node": candidate.node,
            "victims": [{"pod": victim.pod, "priority": victim.priority} for victim in candidate.victims],
            "budgetViolations": candidate.budget_violations,
        }
        for candidate in candidates
    ]
