"""The comparison of one metric: means with intervals, and differences from the baseline with a verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import Enum
from statistics import fmean
from typing import Final, TypeAlias

import attrs

from kschedfw_lab.compare.own_metrics import installed_metric
from kschedfw_lab.report.statistics import SIGNIFICANCE, Estimate, holm, least_p, sign_flip_p
from kschedfw_lab.results.results import TIMES
from kschedfw_lab.results.values import Value

Cell: TypeAlias = tuple[Value, ...]
"""Values of some factors, in the factors' order."""

Values: TypeAlias = Mapping[tuple[int, int], Mapping[Cell, float]]
"""A metric's values by context and treatment (as indexes), and then by repetition."""


EQUAL_WITHIN: Final = 1e-9
"""Values that differ by less than this share of the larger one count as equal. Sums of floats depend on their order."""


class ComparisonVerdict(Enum):
    """The conclusion about a difference from the baseline."""

    HIGHER = "higher"
    LOWER = "lower"
    CHANCE = "could be chance"
    SAME = "the same"
    TOO_FEW = "too few pairs to tell"


class Direction(Enum):
    """The direction in which a metric is better: higher, lower, or neither."""

    UP = "higher is better"
    DOWN = "lower is better"
    NEITHER = "neither is better as such"


_UP: Final = ("placed", "utilisation", "mean_utilisation", "decisions_per_second")
_DOWN: Final = (
    "unplaced",
    "unschedulable",
    "failed",
    "pending",
    "fragmentation",
    "wait_seconds",
    "completion_seconds",
    "makespan_seconds",
    "preempted",
    "deleted",
    "preemptions",
    "victims",
    "cost",
    "elapsed_seconds",
    "attempts",
)


def direction_of(metric: str) -> Direction:
    """Return whether higher values of this metric are better. Unknown metrics have no direction."""
    if (own := installed_metric(metric)) is not None:
        better = own.higher_is_better
        return Direction.NEITHER if better is None else Direction.UP if better else Direction.DOWN
    family = metric.partition(".")[0]
    return Direction.UP if family in _UP else Direction.DOWN if family in _DOWN else Direction.NEITHER


@attrs.frozen
class Difference:
    """The difference between a treatment and the baseline, from pairs of runs.

    Attributes:
        values: the differences of all pairs, treatment minus baseline.
        estimate: the mean difference.
        p: the probability that chance alone gives a mean difference as large, by the paired permutation test.
        corrected: `p` corrected by Holm's method for all comparisons of the metric in the same context.
        verdict: HIGHER and LOWER if `corrected` is at most 5 %.
    """

    values: tuple[float, ...]
    estimate: Estimate
    p: float
    corrected: float
    verdict: ComparisonVerdict


@attrs.frozen
class Row:
    """A metric's values in all runs of a treatment in a context.

    Attributes:
        context: the context's index in the analysis; None for the mean over all contexts.
        treatment: the treatment's index in the analysis.
        values: the values by repetition.
        estimate: None if there is no value.
        difference: None for the baseline itself, and if there is no pair.
    """

    context: int | None
    treatment: int
    values: Mapping[Cell, float]
    estimate: Estimate | None
    difference: Difference | None


@attrs.frozen
class MetricTable:
    """A metric's values under all treatments.

    Attributes:
        metric: the metric's name.
        rows: a row for each treatment in each context.
        overall: a row for each treatment. With several contexts, a repetition's value is its mean over the contexts
            that all treatments have. Repetitions that lack one of these contexts don't count.
    """

    metric: str
    rows: tuple[Row, ...]
    overall: tuple[Row, ...]

    @property
    def direction(self) -> Direction:
        return direction_of(self.metric)

    @property
    def only_value(self) -> float | None:
        """The value of all runs if it is the same one, or else None."""
        values = [value for row in self.rows for value in row.values.values()]
        return values[0] if values and not _minus(max(values), min(values)) else None

    @property
    def is_timed(self) -> bool:
        """Return whether a real clock measured the metric."""
        return self.metric in TIMES


def compare_metric(metric: str, values: Values, base: int) -> MetricTable:
    """Compare all treatments with the baseline, which has the index `base`, in each context and overall."""
    by_context: dict[int, dict[int, Mapping[Cell, float]]] = {}
    for (context, treatment), own in values.items():
        by_context.setdefault(context, {})[treatment] = own
    rows = [row for context, own in by_context.items() for row in _compared(context, own, base)]
    overall = rows if len(by_context) == 1 else _compared(None, _averaged(by_context), base)
    return MetricTable(metric, tuple(rows), tuple(overall))


def _averaged(
    by_context: Mapping[int, Mapping[int, Mapping[Cell, float]]],
) -> dict[int, Mapping[Cell, float]]:
    """Return the mean of each repetition, by treatment, over the contexts that all treatments have."""
    treatments = sorted({each for own in by_context.values() for each, values in own.items() if values})
    common = [own for own in by_context.values() if all(own.get(each) for each in treatments)]
    averaged: dict[int, Mapping[Cell, float]] = {}
    for treatment in treatments if common else ():
        found = [own[treatment] for own in common]
        complete = [key for key in found[0] if all(key in each for each in found)]
        averaged[treatment] = {key: fmean(each[key] for each in found) for key in complete}
    return averaged


def _compared(context: int | None, values: Mapping[int, Mapping[Cell, float]], base: int) -> list[Row]:
    rows = []
    baseline = values.get(base, {})
    for treatment, own in values.items():
        pairs = [_minus(value, baseline[key]) for key, value in own.items() if key in baseline]
        rows.append(
            Row(
                context,
                treatment,
                own,
                Estimate.of(list(own.values())) if own else None,
                _difference(pairs) if pairs and treatment != base else None,
            )
        )
    return _corrected(rows)


def _minus(value: float, other: float) -> float:
    """Return the difference; 0 if the values are equal except for rounding."""
    return 0.0 if math.isclose(value, other, rel_tol=EQUAL_WITHIN) else value - other


def _difference(pairs: Sequence[float]) -> Difference:
    p = sign_flip_p(pairs)
    return Difference(
        tuple(pairs),
        Estimate.of(pairs),
        p,
        p,
        ComparisonVerdict.SAME if not any(pairs) else ComparisonVerdict.CHANCE,
    )


def _corrected(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with their verdicts. All rows belong to one family of comparisons."""
    # Corrected together, since the chance of a false alarm grows with the number of comparisons.
    found = [row.difference for row in rows if row.difference is not None]
    corrected = iter(holm([each.p for each in found]))
    return [
        row
        if row.difference is None
        else attrs.evolve(row, difference=_judged(row.difference, next(corrected), len(found)))
        for row in rows
    ]


def _judged(difference: Difference, corrected: float, comparisons: int) -> Difference:
    verdict = difference.verdict
    if corrected <= SIGNIFICANCE:
        verdict = ComparisonVerdict.HIGHER if difference.estimate.mean > 0 else ComparisonVerdict.LOWER
    # Even if all pairs agreed, the correction would leave too large a probability.
    elif (
        verdict is ComparisonVerdict.CHANCE
        and least_p(difference.estimate.count) * comparisons > SIGNIFICANCE
    ):
        verdict = ComparisonVerdict.TOO_FEW
    return attrs.evolve(difference, corrected=corrected, verdict=verdict)
