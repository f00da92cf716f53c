"""A decision for the page: nodes × plugins as columns, and the text of `kschedfw explain`."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from kschedfw import Status
from kschedfw.explain import Explanation, Refusals, Section, Verdict, headline, overview
from kschedfw_lab.pages.columns import NONE, Column, column

TOP = 10
"""The most nodes that the tables of the text list."""


class Table(msgspec.Struct, frozen=True):
    """A section of the text of `kschedfw explain`; `numeric` has the columns that are numbers."""

    title: str
    headers: tuple[str, ...]
    numeric: tuple[int, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[str, ...]

    @classmethod
    def of(cls, section: Section) -> Table:
        numeric = tuple(place for place, header in enumerate(section.headers) if header not in section.text)
        return cls(section.title, section.headers, numeric, section.rows, section.lines)


class Refusal(msgspec.Struct, frozen=True):
    """A status with which nodes were refused; an extender's, or pre_filter's for all plugins, names no plugin."""

    plugin: str
    code: str
    message: str


class PluginColumns(msgspec.Struct, frozen=True):
    """One plugin's answers.

    `refusals` has a code per node: a place in the matrix' `refusals`, or NONE. `raw` and `normalized` are
    scores of the feasible nodes, in their order; None if the plugin didn't score. `says` is the reason if the
    plugin has no answer.
    """

    name: str
    weight: int = 0
    filters: bool = False
    says: str = ""
    refusals: Column = NONE
    raw: Column | None = None
    normalized: Column | None = None
    evidence: dict[int, tuple[str, ...]] = {}


class DecisionMatrix(msgspec.Struct, frozen=True):
    """A decision: `verdicts` has a place in `kinds` per node, `refusals_of` the refusal that decided, or NONE.

    `feasible` are rows in visiting order, `totals` their totals, `tied` the rows with the highest total. `extenders` is
    the extenders' part of the totals. `closest` are rows of refused nodes, the one that is closest to feasible first.
    """

    pod: str
    attempt: int
    result: str
    node: str | None
    headline: str
    text: list[Table]
    nodes: tuple[str, ...]
    kinds: list[str]
    verdicts: Column
    refusals: list[Refusal]
    refusals_of: Column
    plugins: list[PluginColumns]
    feasible: list[int]
    totals: list[int]
    tied: list[int]
    extenders: Column
    closest: list[int]


def decision_matrix(explanation: Explanation) -> DecisionMatrix:
    """Return the matrix of an explanation, complete if it has `beyond`; otherwise with the answers of the decision."""
    told = _Told()
    rows = list(explanation.rows())
    places = {name: row for row, name in enumerate(explanation.nodes)}
    kinds = list(Verdict)
    step, score = explanation.filter, explanation.score
    feasible: list[int] = [] if step is None else step.feasible.tolist()
    tied = [] if score is None or score.beyond else [feasible[place] for place in score.tied.tolist()]
    return DecisionMatrix(
        pod=explanation.pod,
        attempt=explanation.attempt,
        result=explanation.result.value,
        node=explanation.node or explanation.nominated,
        headline=headline(explanation),
        text=[Table.of(section) for section in overview(explanation, TOP)],
        nodes=explanation.nodes,
        kinds=[kind.value for kind in kinds],
        verdicts=column(kinds.index(row.verdict) for row in rows),
        refusals_of=column(told.code(row.refusal) for row in rows),
        plugins=list(_plugins(explanation, told)),
        refusals=told.refusals,
        feasible=feasible,
        totals=[] if score is None else score.totals.tolist(),
        tied=tied,
        closest=[places[node.node] for node in explanation.closest()],
        extenders=0 if score is None else column(score.extenders.tolist()),
    )


class _Told:
    """The different refusals of a decision, and the code of each."""

    def __init__(self) -> None:
        self._codes: dict[Status, int] = {}

    def code(self, status: Status | None) -> int:
        return NONE if status is None else self._codes.setdefault(status, len(self._codes))

    @property
    def refusals(self) -> list[Refusal]:
        return [Refusal(each.plugin, str(each.code), each.message) for each in self._codes]


def _plugins(explanation: Explanation, told: _Told) -> Iterator[PluginColumns]:
    """Yield the plugins that the decision mentions, in profile order."""
    step, score, beyond = explanation.filter, explanation.score, explanation.beyond
    filters = () if step is None else step.plugins
    scores = {} if score is None else score.plugins
    for name in explanation.plugins:
        scored = scores.get(name)
        asked = None if beyond is None else beyond.refusals.get(name)
        evidence = {} if beyond is None else beyond.evidence.get(name, {})
        yield PluginColumns(
            name,
            weight=0 if scored is None else scored.weight,
            filters=name in filters,
            says=_silence(explanation, name),
            refusals=_refusals(explanation, name, asked, told),
            raw=None if scored is None else column(scored.raw.tolist()),
            normalized=None if scored is None else column(scored.normalized.tolist()),
            evidence={row: tuple(map(str, found)) for row, found in evidence.items()},
        )


def _refusals(explanation: Explanation, name: str, asked: Refusals | None, told: _Told) -> Column:
    """Return the plugin's refusals: those of the decision, and those that were only asked for the explanation."""
    codes = np.full(len(explanation.nodes), NONE)
    decided = None if explanation.filter is None else explanation.filter.refusals
    # The decision's last: where both are known, its refusal is the one that counted.
    for refusals in (asked, decided):
        for status, rows in {} if refusals is None else refusals.by_status().items():
            if status.plugin == name:
                codes[rows] = told.code(status)
    return column(codes.tolist())


def _silence(explanation: Explanation, name: str) -> str:
    parts = []
    if name in explanation.pre_filter.skipped:
        parts.append("filter skipped: nothing to do for this pod")
    if explanation.score is not None and name in explanation.score.skipped:
        parts.append("score skipped: nothing to do for this pod")
    if name in explanation.pre_filter.narrowing:
        parts.append("named the only nodes in question")
    return "; ".join(parts)
