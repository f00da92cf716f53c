"""The explanation of one decision of the scheduler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Final

import attrs

from kschedfw.api.errors import KschedfwError
from kschedfw.api.frozendict import EMPTY
from kschedfw.api.records import frozen
from kschedfw.explain.steps import Beyond, FilterStep, PreemptionStep, PreFilterStep, ScoreStep
from kschedfw.framework.diagnosis import Evidence
from kschedfw.framework.results import not_left_over
from kschedfw.framework.status import Status

if TYPE_CHECKING:
    # groups.py imports this module for its members' explanations.
    from kschedfw.explain.groups import GroupStep


class Result(StrEnum):
    """The result of one attempt to schedule a pod."""

    PLACED = "placed"
    """The pod was placed on `Explanation.node`."""
    WAITING = "waiting"
    """The pod has a node, and waits for a permit plugin."""
    NOMINATED = "nominated"
    """The pod fits nowhere yet; preemption has made room on `Explanation.nominated`."""
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    """There was no attempt: a pre_enqueue plugin keeps the pod out of the queue."""
    FAILED = "failed"
    """A plugin or an extender failed."""


class Verdict(StrEnum):
    """The verdict on one node in one decision."""

    CHOSEN = "chosen"
    FEASIBLE = "feasible"
    """The pod fits; another node had a higher total, or was drawn."""
    REFUSED = "refused"
    """A filter or an extender rejected it."""
    LEFT_OUT = "left out"
    """pre_filter rejected the pod, or limited it to other nodes."""
    NOT_LOOKED_AT = "not looked at"
    """The search ended before: enough nodes had passed, a plugin failed, or only the nominated node was tried."""


class UnknownNodeError(KschedfwError, KeyError):
    """There was no node of this name."""

    def __str__(self) -> str:
        return str(self.args[0])


@frozen
class Score:
    """A plugin's score of a node: raw, normalized to 0–100, and weighted."""

    raw: int
    normalized: int
    weight: int

    @property
    def weighted(self) -> int:
        return self.normalized * self.weight


_UNKNOWN: Final = (None,)
"""Stands for the evidence for a refusal by a plugin that gives none."""


def _distance(evidence: Iterable[Iterable[Evidence | None]]) -> tuple[int, float]:
    """Return the number of obstacles without a gap, and the sum of the gaps of others."""
    hard, gaps = 0, 0.0
    for each in chain.from_iterable(evidence):
        if each is None or each.gap is None:
            hard += 1
        else:
            gaps += each.gap
    return hard, gaps


@frozen
class NodeExplanation:
    """The explanation for one node.

    `refusal` is the status if it was rejected or left out; its plugin is empty for an extender's. `scores`, by
    plugin, and `total` are set if it was feasible and scored. `also_refused_by` has the rejections of other filters,
    which the decision didn't call. `evidence`, by plugin, is the evidence for all these rejections. Only
    explanations with `beyond` have the last two.
    """

    node: str
    verdict: Verdict
    refusal: Status | None = None
    scores: Mapping[str, Score] = EMPTY
    total: int | None = None
    is_tied: bool = False
    also_refused_by: Mapping[str, Status] = EMPTY
    evidence: Mapping[str, tuple[Evidence, ...]] = EMPTY

    @property
    def obstacles(self) -> tuple[int, float]:
        """The distance from feasible: the number of obstacles without a gap, then the sum of the gaps of others."""
        refusals = (self.refusal, *self.also_refused_by.values())
        plugins = dict.fromkeys(status.plugin for status in refusals if status is not None)
        return _distance(self.evidence.get(plugin) or _UNKNOWN for plugin in plugins)


@frozen(eq=False, slots=False)
class Explanation:
    """Why a pod went to a node, or to none, in one attempt to schedule it.

    It has columns over `nodes`, the names of all nodes in the scheduler's order. `of` and `rows` make the
    explanations of single nodes on demand.

    `pod` is its key; `attempt` is the number of the attempt, from 1. `node` is the node that the algorithm chose,
    even if the pod wasn't bound to it (see `result`); `message` says why it wasn't, in kube-scheduler's words.
    `nominated` is the node on which preemption has made room for it. A step that wasn't reached is None.

    Of a member of a PodGroup, it is the decision on the placement that was taken, or on the first one tried if none
    would do, and `nodes` are those of the placement. `group` is the decision on the group; None for other pods.
    """

    pod: str
    profile: str
    result: Result
    nodes: tuple[str, ...] = ()
    attempt: int = 1
    node: str | None = None
    nominated: str | None = None
    message: str = ""
    pre_filter: PreFilterStep = attrs.field(factory=PreFilterStep)
    filter: FilterStep | None = None
    score: ScoreStep | None = None
    preemption: PreemptionStep | None = None
    beyond: Beyond | None = None
    group: GroupStep | None = None

    def __repr__(self) -> str:
        where = self.node or self.nominated
        said = f" {where}" if where else f": {self.message}" if self.message else ""
        return f"<Explanation of {self.pod}: {self.result}{said}>"

    @property
    def feasible(self) -> tuple[str, ...]:
        """The feasible nodes among those that were filtered, in visiting order."""
        return () if self.filter is None else tuple(self.nodes[row] for row in self.filter.feasible.tolist())

    @property
    def tied(self) -> tuple[str, ...]:
        """The nodes with the highest total, in order, one of which was drawn; empty without scores."""
        feasible = self.feasible
        return tuple(feasible[place] for place in self._tied_places)

    @property
    def plugins(self) -> tuple[str, ...]:
        """Every plugin that this explanation mentions."""
        named = [*self.pre_filter.skipped, *self.pre_filter.narrowing]
        if self.pre_filter.refusal is not None:
            named.append(self.pre_filter.refusal.plugin)
        if self.filter is not None:
            named.extend(self.filter.plugins)
        if self.score is not None:
            named.extend((*self.score.plugins, *self.score.skipped))
        return tuple(dict.fromkeys(filter(None, named)))

    def of(self, node: str) -> NodeExplanation:
        """The explanation for one node.

        Raises:
            UnknownNodeError: there was no such node.
        """
        row = self._rows.get(node)
        if row is None:
            raise UnknownNodeError(
                f"node {node!r}: the decision on pod {self.pod} knows no node of this name"
            )
        return self._of_row(row)

    def rows(self) -> Iterator[NodeExplanation]:
        """The explanations for all nodes, in the scheduler's order."""
        return map(self._of_row, range(len(self.nodes)))

    def best(self) -> Iterator[NodeExplanation]:
        """The feasible nodes, the chosen one first and then by falling total."""
        feasible = self.feasible
        places = list(range(len(feasible)))
        if (score := self.score) is not None:
            totals = score.totals.tolist()
            places.sort(key=lambda place: (feasible[place] != self.node, -totals[place]))
        return (self.of(feasible[place]) for place in places)

    def closest(self) -> Iterator[NodeExplanation]:
        """The nodes that aren't feasible, the ones closest to it first (see `obstacles`).

        Only an explanation with `beyond` knows all obstacles; for others there are none.
        """
        # Lazily, since callers take only the first few nodes of a large cluster.
        return (self._of_row(row) for row, _ in self._closest_rows())

    def closest_by_requirement(self, most: int, among: Collection[str] = ()) -> Iterator[NodeExplanation]:
        """The nodes of `closest`, but only the first `most` of those that fail the same requirements.

        With `among`, only nodes with these names.

        A requirement is what a plugin's evidence says was asked, such as one entry of a node selector or one taint. A
        plugin without evidence counts as one requirement.
        """
        seen: Counter[frozenset[str]] = Counter()
        for row, plugins in self._closest_rows():
            if among and self.nodes[row] not in among:
                continue
            requirements = self._requirements(row, plugins)
            seen[requirements] += 1
            if seen[requirements] <= most:
                yield self._of_row(row)

    def _requirements(self, row: int, plugins: Iterable[str]) -> frozenset[str]:
        """Return the requirements that a node fails, in the words of the evidence, without making its explanation."""
        evidence = {} if self.beyond is None else self.beyond.evidence
        return frozenset(
            [
                asked
                for plugin in plugins
                for asked in ([each.asked for each in evidence.get(plugin, EMPTY).get(row, ())] or (plugin,))
            ]
        )

    def _closest_rows(self) -> Sequence[tuple[int, Collection[str]]]:
        """The rows of nodes with obstacles and the plugins that refuse them, the closest first."""
        if self.beyond is None:
            return ()
        # As lists, since single items of arrays take longer.
        beyond = [(each.statuses, each.codes.tolist()) for each in self.beyond.refusals.values()]
        refusers = {
            row: self._refusers(row, [said[codes[row]] for said, codes in beyond if codes[row]])
            for row in range(len(self.nodes))
        }
        # Nodes without any are feasible, or were not looked at.
        obstacles = {
            row: found for row, plugins in refusers.items() if any(found := self._obstacles(row, plugins))
        }
        return [(row, refusers[row]) for row in sorted(obstacles, key=obstacles.__getitem__)]

    def _of_row(self, row: int) -> NodeExplanation:
        explained = self._without_evidence(row)
        evidence = {} if self.beyond is None else self.beyond.evidence
        found = {plugin: by_row[row] for plugin, by_row in evidence.items() if row in by_row}
        return attrs.evolve(explained, evidence=found) if found else explained

    def _refusers(self, row: int, beyond: Iterable[Status]) -> Collection[str]:
        """The plugins that refuse a node in the decision, and those that do so `beyond` it."""
        refusal = self._refusal(row)
        decided = [] if refusal is None else [refusal.plugin]
        return dict.fromkeys([*decided, *[status.plugin for status in beyond]])

    def _obstacles(self, row: int, plugins: Iterable[str]) -> tuple[int, float]:
        """Return the node's `NodeExplanation.obstacles`, without making its explanation."""
        evidence = {} if self.beyond is None else self.beyond.evidence
        return _distance(evidence.get(plugin, EMPTY).get(row) or _UNKNOWN for plugin in plugins)

    def _refusal(self, row: int) -> Status | None:
        """Return why the decision didn't take the node; None if it was feasible, or wasn't looked at."""
        if row in self._places:
            return None
        refusal = None if self.filter is None else self.filter.refusals.of(row)
        return self._left_out(row) if refusal is None else refusal

    def _without_evidence(self, row: int) -> NodeExplanation:
        name = self.nodes[row]
        also = self._also_refused_by(row)
        if (place := self._places.get(row)) is not None:
            verdict = Verdict.CHOSEN if name == self.node else Verdict.FEASIBLE
            return self._feasible(NodeExplanation(name, verdict, also_refused_by=also), place)
        if self.filter is not None and (refusal := self.filter.refusals.of(row)) is not None:
            others = {plugin: status for plugin, status in also.items() if plugin != refusal.plugin}
            return NodeExplanation(name, Verdict.REFUSED, refusal, also_refused_by=others)
        left_out = self._left_out(row)
        verdict = Verdict.NOT_LOOKED_AT if left_out is None else Verdict.LEFT_OUT
        return NodeExplanation(name, verdict, left_out, also_refused_by=also)

    def _feasible(self, row: NodeExplanation, place: int) -> NodeExplanation:
        score = self.score
        if score is None:
            return row
        scores = {
            plugin: Score(int(given.raw[place]), int(given.normalized[place]), given.weight)
            for plugin, given in score.plugins.items()
        }
        total, is_tied = int(score.totals[place]), place in self._tied_places
        return attrs.evolve(row, scores=scores, total=total, is_tied=is_tied)

    def _left_out(self, row: int) -> Status | None:
        step = self.pre_filter
        if step.left_over is not None and row not in self._left_over:
            return step.refusal or self._narrowed
        return step.refusal

    def _also_refused_by(self, row: int) -> Mapping[str, Status]:
        if self.beyond is None:
            return EMPTY
        said = ((plugin, refusals.of(row)) for plugin, refusals in self.beyond.refusals.items())
        return {plugin: status for plugin, status in said if status is not None}

    @cached_property
    def _narrowed(self) -> Status:
        return not_left_over(self.pre_filter.narrowing)

    @cached_property
    def _rows(self) -> Mapping[str, int]:
        return {name: row for row, name in enumerate(self.nodes)}

    @cached_property
    def _places(self) -> Mapping[int, int]:
        """The places of the feasible nodes, by row."""
        rows = [] if self.filter is None else self.filter.feasible.tolist()
        return {row: place for place, row in enumerate(rows)}

    @cached_property
    def _tied_places(self) -> Sequence[int]:
        return () if self.score is None or self.score.beyond else self.score.tied.tolist()

    @cached_property
    def _left_over(self) -> frozenset[int]:
        left_over = self.pre_filter.left_over
        return frozenset() if left_over is None else frozenset(left_over.tolist())
