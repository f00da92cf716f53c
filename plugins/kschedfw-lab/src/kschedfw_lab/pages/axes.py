"""Axes, ticks and marks of plots. Positions are in units of the SVG's viewBox, which is as wide as a narrow screen."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

import attrs

WIDTH: Final = 340
HEIGHT: Final = 190
SQUARE: Final = 308
"""The height of a plot with two axes of equal length."""

LEFT: Final = 52
RIGHT: Final = 12
TOP: Final = 8
BOTTOM: Final = 24
MOST_SERIES: Final = 8
"""The most series in a plot of points or lines. More can't be told apart."""

_TICKS: Final = 5
_PADDING: Final = 0.05
_SMALLEST: Final = 1e-3
"""The least value on a logarithmic axis, which has no 0. Smaller values are drawn here."""
_R: Final = 3.5


@attrs.frozen
class Unit:
    """The unit of values: the factor for them, and the text after a value and after a difference of two."""

    scale: float
    text: str
    difference: str

    @property
    def of_differences(self) -> Unit:
        """The unit of differences."""
        return Unit(self.scale, self.difference, self.difference)


NO_UNIT: Final = Unit(1.0, "", "")
PERCENT: Final = Unit(100.0, "%", " pp")


@attrs.frozen
class Axis:
    """Maps values to positions, linearly or by their logarithm: `low` to `start`, `high` to `end`."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    @classmethod
    def over(cls, values: Iterable[float], start: float, end: float) -> Axis:
        """Return an axis that contains all values."""
        values = list(values)
        low, high = min(values), max(values)
        # All values may be equal, and even 0; an axis needs a length.
        room = (high - low) * _PADDING or abs(high) * _PADDING or 1.0
        return cls(low - room, high + room, start, end)

    @classmethod
    def powers(cls, values: Iterable[float], start: float, end: float) -> Axis:
        """Return a logarithmic axis from a power of ten to another, which contains all values from 0.001 on."""
        values = [max(value, _SMALLEST) for value in values]
        low = 10.0 ** math.floor(math.log10(min(values)))
        return cls(low, 10.0 ** math.ceil(math.log10(max(*values, 10 * low))), start, end, is_log=True)

    def at(self, value: float) -> float:
        """Return a value's position. On a logarithmic axis, values below its low end are drawn there."""
        if self.is_log:
            share = math.log10(max(value, self.low) / self.low) / math.log10(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self, most: int = _TICKS) -> list[float]:
        """Return at most `most` round values with equal distances; the powers of ten of a logarithmic axis."""
        if self.is_log:
            first, last = round(math.log10(self.low)), round(math.log10(self.high))
            return [10.0**power for power in range(first, last + 1)]
        rough = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(rough))
        # With a tolerance: `rough` may be a rounding error above a round number.
        step = next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= rough * (1 - 1e-9))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [step * number for number in range(first, last + 1)]


@attrs.frozen
class Tick:
    at: float
    text: str


def mark(series: int, x: float, y: float) -> str:
    """Return the path data of a mark at a point. Each series has its own shape."""
    match (series + series // MOST_SERIES) % MOST_SERIES:
        case 0:
            return f"M{x - _R:.1f} {y:.1f}a{_R} {_R} 0 1 0 {2 * _R} 0a{_R} {_R} 0 1 0-{2 * _R} 0"
        case 1:
            return f"M{x - 3:.1f} {y - 3:.1f}h6v6h-6z"
        case 2:
            return f"M{x:.1f} {y - 4.2:.1f}l4 7h-8z"
        case 3:
            return f"M{x:.1f} {y - 4.5:.1f}l4.5 4.5l-4.5 4.5l-4.5-4.5z"
        case 4:
            return f"M{x - 1.2:.1f} {y - 4:.1f}h2.4v2.8h2.8v2.4h-2.8v2.8h-2.4v-2.8h-2.8v-2.4h2.8z"
        case 5:
            return f"M{x:.1f} {y + 4.2:.1f}l4-7h-8z"
        case 6:
            return f"M{x - 4.5:.1f} {y - 1.5:.1f}h9v3h-9z"
        case _:
            return f"M{x - 1.5:.1f} {y - 4.5:.1f}h3v9h-3z"


def line(points: Sequence[tuple[float, float]]) -> str:
    """Return the path data of a line through these points."""
    return "M" + "L".join(f"{x} {y}" for x, y in points) if points else ""


def ticks(axis: Axis, unit: Unit = NO_UNIT) -> tuple[Tick, ...]:
    """Return the axis' ticks. Their labels have as many digits as their distance needs."""
    values = axis.ticks()
    step = abs(values[1] - values[0]) * unit.scale if len(values) > 1 else 1.0
    decimals = next((digits for digits in range(10) if math.isclose(step, round(step, digits))), 10)
    percent = "%" if unit.text == "%" else ""
    return tuple(
        Tick(axis.at(value), f"{value * unit.scale + 0.0:,.{decimals}f}{percent}".replace("-", "−"))
        for value in values
    )


def general_ticks(axis: Axis, values: Iterable[float] | None = None) -> tuple[Tick, ...]:
    """Return ticks at these values, by default round ones. Each label has the digits that its value needs."""
    return tuple(Tick(axis.at(each), f"{each:,g}") for each in (axis.ticks() if values is None else values))
