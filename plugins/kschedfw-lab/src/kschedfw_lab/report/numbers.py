"""Formats figures with their unit, and with as many digits as their uncertainty allows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Final

import attrs

from kschedfw_lab.pages.axes import NO_UNIT, PERCENT, Unit
from kschedfw_lab.report.comparison import ComparisonVerdict, Difference, Direction, MetricTable
from kschedfw_lab.report.statistics import Estimate

LEVEL: Final = "95\N{NO-BREAK SPACE}%"
_SHARES: Final = ("utilisation", "mean_utilisation", "peak_utilisation", "fragmentation", "imbalance")
_MOST_DECIMALS: Final = 6
_MOST_DIGITS: Final = 5
_NOTHING: Final = "–"


def unit_of(metric: str) -> Unit:
    """Return the unit of a metric: percent for shares, seconds for times, otherwise none."""
    if metric.partition(".")[0] in _SHARES:
        return PERCENT
    return Unit(1.0, " s", " s") if "_seconds" in metric else NO_UNIT


@attrs.frozen
class Format:
    """The format of one metric's figures: the numbers of decimals for values and for differences."""

    unit: Unit
    decimals: int
    difference_decimals: int

    @classmethod
    def of(cls, table: MetricTable) -> Format:
        """Return the format for a table: two significant digits of a typical interval's half width.

        Without intervals, values have four significant digits. Values never have more than five.
        """
        unit = unit_of(table.metric)
        rows = table.overall or table.rows
        means = [row.estimate for row in rows if row.estimate is not None]
        differences = [row.difference.estimate for row in rows if row.difference is not None]
        return cls(unit, _decimals(means, unit), _decimals(differences or means, unit))

    def value(self, value: float) -> str:
        return f"{self._rounded(value, self.decimals):,.{self.decimals}f}{self.unit.text}"

    def difference(self, value: float) -> str:
        decimals = self.difference_decimals
        return f"{self._rounded(value, decimals):+,.{decimals}f}{self.unit.difference}".replace("-", "−")

    def mean(self, estimate: Estimate | None) -> str:
        return _NOTHING if estimate is None else self.value(estimate.mean)

    def interval(self, estimate: Estimate | None) -> str:
        """Format the ends of the interval."""
        if estimate is None or estimate.low is None or estimate.high is None:
            return _NOTHING
        return f"{self.value(estimate.low)} to {self.value(estimate.high)}"

    def difference_interval(self, estimate: Estimate) -> str:
        if estimate.low is None or estimate.high is None:
            return _NOTHING
        return f"{self.difference(estimate.low)} to {self.difference(estimate.high)}"

    def _rounded(self, value: float, decimals: int) -> float:
        return round(value * self.unit.scale, decimals) + 0.0  # Adding 0.0 turns −0 into 0.


def _decimals(estimates: Sequence[Estimate], unit: Unit) -> int:
    halves = [each.half * unit.scale for each in estimates if each.half]
    means = [abs(each.mean) * unit.scale for each in estimates]
    most = _MOST_DIGITS - 1 - _magnitude(max(means, default=0.0))
    if halves:
        decimals = min(1 - _magnitude(median(halves)), most)
    else:
        # Counts have no decimals.
        decimals = 0 if all(mean.is_integer() for mean in means) else most - 1
    return min(_MOST_DECIMALS, max(0, decimals))


def _magnitude(value: float) -> int:
    return math.floor(math.log10(value)) if value else 0


def probability(p: float) -> str:
    """Format a probability with three decimals."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


@attrs.frozen
class Judgement:
    """A verdict in words, with a sign, and whether it is good news.

    Attributes:
        sign: an arrow if the difference is significant.
        words: the verdict as text.
        tone: `better`, `worse`, or empty.
    """

    sign: str
    words: str
    tone: str

    @property
    def is_told(self) -> bool:
        """Return whether the difference is significant."""
        return self.sign in "▲▼"


def judgement(table: MetricTable, difference: Difference) -> Judgement:
    """Return what the difference means for this metric."""
    verdict = difference.verdict
    if verdict not in (ComparisonVerdict.HIGHER, ComparisonVerdict.LOWER):
        return Judgement(
            {ComparisonVerdict.SAME: "=", ComparisonVerdict.CHANCE: "≈", ComparisonVerdict.TOO_FEW: "?"}[
                verdict
            ],
            verdict.value,
            "",
        )
    sign = "▲" if verdict is ComparisonVerdict.HIGHER else "▼"
    if table.direction is Direction.NEITHER:
        return Judgement(sign, verdict.value, "")
    is_good = (verdict is ComparisonVerdict.HIGHER) == (table.direction is Direction.UP)
    tone = "better" if is_good else "worse"
    return Judgement(sign, f"{verdict.value}, {tone}", tone)
