"""The causes of a pod without a place: the requirements that keep it off nodes, with codes for programs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import attrs

from kschedfw.api.records import define, frozen
from kschedfw.explain.explanation import Explanation
from kschedfw.explain.groups import GroupStep
from kschedfw.framework.diagnosis import Evidence, code_of_plugin
from kschedfw.framework.status import Status

_RequirementKey: TypeAlias = tuple[str, str, str]
"""The plugin, the code and the text of a requirement."""


@frozen
class Cause:
    """A requirement that keeps a pod off `nodes` of all nodes.

    `node` is the one of them that is closest to meeting it, with `evidence` of what it has instead; empty where the
    pod was refused before any node was looked at. A `decisive` cause keeps the pod off the closest node of all, or off
    another one that decides (`decided_on`): the pod gets no place there unless it goes.
    """

    plugin: str
    evidence: Evidence
    nodes: int
    of: int
    node: str = ""
    decisive: bool = False

    @property
    def code(self) -> str:
        """Return the code of the requirement."""
        return self.evidence.code or code_of_plugin(self.plugin)

    def __str__(self) -> str:
        text = f"{self.evidence.asked}: keeps it off {self.nodes:,} of {self.of:,} nodes"
        if not self.node:
            return self.evidence.asked
        return f"{text}; {self.node}: {self.evidence.found}" if self.evidence.found else text

    def to_json(self) -> dict[str, object]:
        """Return the cause in types that `json.dumps` knows."""
        return {
            "code": self.code,
            "parameters": dict(self.evidence.values),
            "plugin": self.plugin,
            "nodes": self.nodes,
            "ofNodes": self.of,
            "closestNode": self.node or None,
            "decisive": self.decisive,
            "text": str(self),
        }


def causes_of(explanation: Explanation) -> tuple[Cause, ...]:
    """Return the causes for which a pod has no place, the decisive ones first, then those of the most nodes.

    Without `Explanation.beyond` only the first refusal of each node is known. Of an explained pod with a place there
    are the causes for which it isn't on other nodes.
    """
    of = len(explanation.nodes)
    refusal = explanation.pre_filter.refusal
    if refusal is not None:
        return (Cause(refusal.plugin, _without_evidence(refusal), of, of, decisive=True),)
    found: dict[_RequirementKey, _UnmetRequirement] = {}
    by_node: defaultdict[str, list[tuple[_RequirementKey, Evidence]]] = defaultdict(list)
    for node, plugin, each in _obstacles(explanation):
        key = (plugin, each.code, each.asked)
        by_node[node].append((key, each))
        tally = found.get(key)
        if tally is None:
            found[key] = _UnmetRequirement(node, each)
        else:
            tally.count(node, each)
    decisive = _decisive(by_node.values(), found)
    return _in_order(
        Cause(key[0], tally.evidence, tally.nodes, of, tally.node, key in decisive)
        for key, tally in found.items()
    )


def decided_on(causes: Sequence[Cause], explanation: Explanation, node: str) -> tuple[Cause, ...]:
    """Return the causes of an explanation with those on another node as the decisive ones, and with its numbers.

    Such a node is the one that a remedy opens to the pod. Where the explanation has no refusal of it, such as of a
    new node, the causes stay as they are.
    """
    if node not in explanation.nodes:
        return tuple(causes)
    row = explanation.of(node)
    there: dict[_RequirementKey, Evidence] = {}
    for status in (row.refusal, *row.also_refused_by.values()):
        if status is not None:
            for each in row.evidence.get(status.plugin, (_without_evidence(status),)):
                there[status.plugin, each.code, each.asked] = each
    moved = []
    for cause in causes:
        found = there.get((cause.plugin, cause.evidence.code, cause.evidence.asked))
        # Another node may be closer to meeting this requirement by itself, but it fails others.
        moved.append(
            attrs.evolve(cause, decisive=False)
            if found is None
            else attrs.evolve(cause, decisive=True, node=node, evidence=found)
        )
    return _in_order(moved) if any(cause.decisive for cause in moved) else tuple(causes)


def _in_order(causes: Iterable[Cause]) -> tuple[Cause, ...]:
    return tuple(sorted(causes, key=lambda cause: (not cause.decisive, -cause.nodes, str(cause))))


@define
class _UnmetRequirement:
    """The number of nodes that a requirement keeps the pod off, and the closest one of them."""

    node: str
    evidence: Evidence
    nodes: int = 1

    def count(self, node: str, evidence: Evidence) -> None:
        self.nodes += 1
        if _gap(evidence) < _gap(self.evidence):
            self.node, self.evidence = node, evidence


def _gap(evidence: Evidence) -> float:
    return float("inf") if evidence.gap is None else evidence.gap


def _obstacles(explanation: Explanation) -> Iterator[tuple[str, str, Evidence]]:
    """Yield each obstacle of each node: the node, the plugin that refuses it, and the evidence."""
    beyond = explanation.beyond
    if beyond is None:
        for node in explanation.rows():
            if node.refusal is not None:
                yield node.node, node.refusal.plugin, _without_evidence(node.refusal)
        return
    for plugin, refusals in beyond.refusals.items():
        evidence = beyond.evidence.get(plugin, {})
        for status, rows in refusals.by_status().items():
            stated = (_without_evidence(status),)
            for row in rows.tolist():
                for each in evidence.get(row, stated):
                    yield explanation.nodes[row], plugin, each
    step = explanation.filter
    if step is not None:
        # Extenders are asked last, about nodes that every filter let pass.
        for status, rows in step.refusals.by_status().items():
            if not status.plugin:
                for row in rows.tolist():
                    yield explanation.nodes[row], "", _without_evidence(status)


def _without_evidence(status: Status) -> Evidence:
    """Return the words of a plugin that gives no evidence."""
    reason = ", ".join(status.reasons)
    return Evidence(reason or "refused", values={"reason": reason})


def _decisive(
    nodes: Iterable[Sequence[tuple[_RequirementKey, Evidence]]],
    causes: Mapping[_RequirementKey, _UnmetRequirement],
) -> frozenset[_RequirementKey]:
    """Return the causes on the closest node; of equally close ones, that whose causes are of the fewest nodes."""
    # What few nodes lack is what the nodes that the pod is meant for lack: 2 GPU nodes among 120 others.
    closest = min(
        nodes,
        key=lambda on_node: (
            *_distance(each for _, each in on_node),
            sum(causes[key].nodes for key, _ in on_node),
        ),
        default=(),
    )
    return frozenset(key for key, _ in closest)


def _distance(obstacles: Iterable[Evidence]) -> tuple[int, float]:
    """Return how many obstacles no smaller amount removes, and the sum of the gaps of the others.

    An amount is one of the former where the node has none of the resource: no request for a GPU is small enough.
    """
    hard, gaps = 0, 0.0
    for each in obstacles:
        if each.gap is None or each.values.get("allocatable") == 0:
            hard += 1
        else:
            gaps += each.gap
    return hard, gaps


def cause_of_group(step: GroupStep) -> dict[str, object] | None:
    """Return the cause of a group without a place, for programs; None for a group that has one.

    Its code is the stage that ended the cycle, as in `group-members`. It names the nearest placement and the first
    member without a node there, with that member's causes.
    """
    if step.ended_by is None:
        return None
    nearest = step.nearest
    member = None if nearest is None else next(iter(nearest.refused), None)
    decision = None if member is None else member.decision
    return {
        "code": f"group-{step.ended_by.value.replace(' ', '-').replace('_', '-')}",
        "parameters": {
            "group": step.group,
            "needed": step.needed,
            "minCount": step.min_count,
            "topologyKey": step.topology_key or None,
            "placements": len(step.placements),
            "nearest": None if nearest is None else nearest.name,
            "placed": None if nearest is None else nearest.placed,
            "pod": None if member is None else member.pod,
        },
        "text": step.message,
        "causes": [] if decision is None else [cause.to_json() for cause in causes_of(decision)],
    }
