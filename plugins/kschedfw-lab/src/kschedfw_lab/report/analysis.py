"""The analysis of a sweep's results for one question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import Final, TypeAlias

import attrs

from kschedfw_lab.report.comparison import Cell, ComparisonVerdict, MetricTable, compare_metric
from kschedfw_lab.report.question import Question, QuestionError, label, question_of, values_of
from kschedfw_lab.report.statistics import pairs_needed
from kschedfw_lab.results.results import Results, RunResult
from kschedfw_lab.results.values import ResultsError, Value

MOST_TREATMENTS: Final = 40
"""The most treatments that are shown. The JSON has all of them."""


@attrs.frozen
class Unpaired:
    """A repetition that can't be compared, because one of its two runs is missing or has failed."""

    context: int
    treatment: int
    repetition: Cell
    why: str


@attrs.frozen
class Analysis:
    """The analysis of some results.

    Attributes:
        question: what is compared.
        constants: the factors with only one value, with this value.
        context_factors: the factors that are neither compared nor repetitions. Comparisons are made within each
            combination of their values.
        treatments: the combinations of the compared factors' values.
        contexts: the combinations of the context factors' values; a single empty one if there are no such factors.
        baseline: the index of the baseline in `treatments`.
        tables: a table per metric.
        runs: the number of runs, failed ones included.
        failed: the runs that failed.
        unpaired: the repetitions that can't be compared.
        notes: warnings that a reader of the figures needs.
    """

    question: Question
    constants: Mapping[str, Value]
    context_factors: tuple[str, ...]
    treatments: tuple[Cell, ...]
    contexts: tuple[Cell, ...]
    baseline: int
    tables: tuple[MetricTable, ...]
    runs: int
    failed: tuple[RunResult, ...]
    unpaired: tuple[Unpaired, ...]
    notes: tuple[str, ...]

    def treatment_label(self, place: int) -> str:
        """Return the name of a treatment: its value, or `factor=value` for several factors."""
        return named(self.question.compared, self.treatments[place]) or "all runs"

    def context_label(self, place: int | None) -> str:
        """Return the name of a context, such as `rate=2`.

        The mean over all contexts (None) is called `all`. If there is only one context, the name is empty.
        """
        return "all" if place is None else named(self.context_factors, self.contexts[place], always=True)

    def repetition_label(self, repetition: Cell) -> str:
        """Return the name of a repetition, such as `seed=3`."""
        return named(self.question.over, repetition, always=True)


def named(factors: Sequence[str], values: Cell, *, always: bool = False) -> str:
    """Format the values of some factors. The factors' names are included if there are several, or with `always`."""
    if len(factors) == 1 and not always:
        return label(values[0])
    return ", ".join(f"{factor}={label(value)}" for factor, value in zip(factors, values, strict=True))


def series_order(analysis: Analysis) -> list[int]:
    """Return the indexes of the treatments that are shown, the baseline first."""
    places = range(len(analysis.treatments))
    others = (place for place in places if place != analysis.baseline)
    return [*places[analysis.baseline : analysis.baseline + 1], *islice(others, MOST_TREATMENTS - 1)]


def analyse(
    results: Results,
    baseline: Mapping[str, Value] | str | None = None,
    *,
    over: Sequence[str] = (),
    metrics: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Analysis:
    """Compare the runs of a sweep with the runs of a baseline, in pairs.

    Args:
        results: the results.
        baseline: the values to compare with, of one factor or more, or their text: `policy=default`. A factor without
            a value is compared with its first one. The default is the first value of the first factor that is crossed
            with the others.
        over: factors that are repetitions of the same experiment, in addition to the seed.
        metrics: names or patterns, such as `utilisation.*`; by default all.
        notes: what else a reader has to know, such as `read_warnings`.

    Raises:
        QuestionError: a factor, a value or a metric isn't in the results, or no run has the baseline's values together.
        ResultsError: two runs have the same values of all factors.
    """
    question = question_of(results, baseline, over, metrics)
    runs = results.runs()
    varying = [name for name in results.factors if len(values_of(results, name)) > 1]
    taken = (*question.compared, *question.over)
    context_factors = tuple(name for name in varying if name not in taken)
    treatments = _cells(results, runs, question.compared)
    contexts = _cells(results, runs, context_factors)
    by_cell = _by_cell(runs, contexts, treatments, context_factors, question)
    # Each value occurs in some run, but perhaps no run has all of them.
    if runs and question.baseline not in treatments:
        together = named(question.compared, question.baseline)
        raise QuestionError(f"--baseline: no run has {together} together")
    base = treatments.index(question.baseline) if runs else 0
    tables = tuple(compare_metric(metric, _values(metric, by_cell), base) for metric in question.metrics)
    return Analysis(
        question,
        {
            name: results.columns[name][0]
            for name in results.factors
            if runs and name not in (*varying, *taken)
        },
        context_factors,
        treatments,
        contexts,
        base,
        tables,
        len(runs),
        tuple(run for run in runs if run.error),
        tuple(_unpaired(by_cell, base)),
        (*notes, *_notes(tables, question, len(treatments))),
    )


_Cells: TypeAlias = Mapping[tuple[int, int], Mapping[Cell, RunResult]]


def _cells(results: Results, runs: Sequence[RunResult], factors: Sequence[str]) -> tuple[Cell, ...]:
    """Return the combinations of these factors' values that some run has."""
    places = [{value: place for place, value in enumerate(values_of(results, name))} for name in factors]
    there = {tuple(run.factors[name] for name in factors) for run in runs}
    return tuple(sorted(there, key=lambda cell: [of[value] for of, value in zip(places, cell, strict=True)]))


def _by_cell(
    runs: Iterable[RunResult],
    contexts: Sequence[Cell],
    treatments: Sequence[Cell],
    context_factors: Sequence[str],
    question: Question,
) -> _Cells:
    context_places = {cell: place for place, cell in enumerate(contexts)}
    treatment_places = {cell: place for place, cell in enumerate(treatments)}
    found: dict[tuple[int, int], dict[Cell, RunResult]] = {}
    for run in runs:
        context = context_places[tuple(run.factors[name] for name in context_factors)]
        treatment = treatment_places[tuple(run.factors[name] for name in question.compared)]
        repetition = tuple(run.factors[name] for name in question.over)
        same = found.setdefault((context, treatment), {})
        if repetition in same:
            raise ResultsError(
                f"runs {same[repetition].run} and {run.run} have the same factors; results of two versions of "
                "something can't be compared until a factor tells them apart"
            )
        same[repetition] = run
    return found


def _values(metric: str, by_cell: _Cells) -> dict[tuple[int, int], dict[Cell, float]]:
    """Return the metric's values in all cells, by repetition."""
    return {
        cell: {key: float(run.metrics[metric]) for key, run in runs.items() if metric in run.metrics}
        for cell, runs in sorted(by_cell.items(), key=itemgetter(0))
    }


def _unpaired(by_cell: _Cells, base: int) -> Iterable[Unpaired]:
    for (context, treatment), own in sorted(by_cell.items(), key=itemgetter(0)):
        others = by_cell.get((context, base), {})
        if treatment == base:
            continue
        for repetition in dict.fromkeys((*others, *own)):
            mine, other = own.get(repetition), others.get(repetition)
            why = _why("it", mine) or _why("the baseline", other)
            if why:
                yield Unpaired(context, treatment, repetition, why)


def _why(who: str, run: RunResult | None) -> str:
    if run is None:
        return f"{who} wasn't run"
    return f"{who} failed" if run.error else ""


def _notes(tables: Sequence[MetricTable], question: Question, treatments: int) -> Iterable[str]:
    rows = [row for table in tables for row in table.rows]
    most = max((len(row.values) for row in rows), default=0)
    repetition = " and ".join(question.over) or "seed"
    if len(rows) > len(tables) and not question.compared:
        yield (
            "No factor is crossed with the others, so there is nothing to compare. The page has each metric over each "
            "factor that is a number."
        )
    elif rows and most < 2:
        yield (
            f"Nothing was repeated with another {repetition}, so there are no intervals, and nobody can tell a "
            "difference from chance."
        )
    elif any(row.difference and row.difference.verdict is ComparisonVerdict.TOO_FEW for row in rows):
        needed = pairs_needed(max(1, treatments - 1))
        what = (
            "The comparison takes"
            if treatments == 2
            else f"{treatments - 1} comparisons with a baseline take"
        )
        yield f"Some pairs are too few to tell any difference from chance. {what} at least {needed} pairs each."
    timed = [table.metric for table in tables if table.is_timed]
    if timed:
        yield f"Measured by the wall clock, so the machine and its other work matter: {', '.join(timed)}."
