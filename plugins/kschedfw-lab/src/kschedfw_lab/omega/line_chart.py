"""A line chart with confidence intervals as SVG, on a logarithmic axis. Units are those of the SVG's viewBox."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final
from xml.sax.saxutils import escape

import attrs

from kschedfw_lab.report.statistics import Estimate

WIDTH: Final = 360
HEIGHT: Final = 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 10.0, 10.0, 34.0
_DASHES: Final = ("", "7 4", "2 3", "10 3 2 3", "12 4")
"""The lines' dashes, which distinguish lines without colours."""
_SMALLEST: Final = 1e-3
"""The least value on a logarithmic axis, which has no 0. Smaller values are drawn here."""
_TICKS: Final = 4
_R: Final = 2.5
_BESIDE: Final = 2.0


@attrs.frozen
class Line:
    """A line: x values in ascending order, with means and their intervals."""

    name: str
    points: tuple[tuple[float, Estimate], ...]


@attrs.frozen
class Axis:
    """Maps values to positions, by their logarithm or linearly: `low` to `start`, `high` to `end`."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool

    def at(self, value: float) -> float:
        scale = self._log if self.is_log else float
        share = (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))
        return round(self.start + min(max(share, 0.0), 1.0) * (self.end - self.start), 1)

    def moved(self, by: float) -> Axis:
        return attrs.evolve(self, start=self.start + by, end=self.end + by)

    def ticks(self) -> Sequence[float]:
        """The values of the ticks: powers of ten, or round values with equal distances."""
        if self.is_log:
            powers = range(round(self._log(self.low)), round(self._log(self.high)) + 1)
            return [10.0**power for power in powers]
        rough = self.high / _TICKS
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(each * power for each in (1, 2, 2.5, 5, 10) if each * power >= rough * (1 - 1e-9))
        return [step * number for number in range(math.floor(self.high / step + 1e-9) + 1)]

    @staticmethod
    def _log(value: float) -> float:
        return math.log10(max(value, _SMALLEST))


@attrs.frozen
class LineChart:
    """A chart of lines over `xs`, which are evenly spaced and each have a tick. `log` makes the y axis logarithmic."""

    title: str
    x_name: str
    lines: tuple[Line, ...]
    log: bool = False

    def svg(self) -> str:
        """Return the chart as an `svg` element. The classes l0, f0, l1, f1 … determine the colours."""
        xs = sorted({x for line in self.lines for x, _ in line.points})
        across = Axis(xs[0], xs[-1], _LEFT + 8, WIDTH - _RIGHT - 8, is_log=True)
        up = self._up()
        parts = [
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img"><title>{escape(self.title)}</title>',
            f'<path class="axis" d="M{_LEFT} {_TOP}V{HEIGHT - _BOTTOM}H{WIDTH - _RIGHT}"/>',
        ]
        for value in up.ticks():
            parts.append(f'<path class="grid" d="M{_LEFT} {up.at(value)}H{WIDTH - _RIGHT}"/>')
            parts.append(_text(_LEFT - 5, up.at(value) + 3.5, f"{value:g}", "end"))
        parts += [_text(across.at(x), HEIGHT - _BOTTOM + 13, f"{x:g}", "middle") for x in xs]
        parts.append(_text((_LEFT + WIDTH) / 2, HEIGHT - 5, self.x_name, "middle"))
        for number, line in enumerate(self.lines):
            # Intervals are drawn beside each other, so that none hides another.
            shift = (number - (len(self.lines) - 1) / 2) * _BESIDE
            parts.append(_drawn(number, line, across.moved(shift).at, up.at))
        return "".join([*parts, "</svg>"])

    def _up(self) -> Axis:
        values = [interval.mean for line in self.lines for _, interval in line.points]
        if not self.log:
            highest = max(interval.ends[-1] for line in self.lines for _, interval in line.points)
            return Axis(
                0.0, min(highest, 2 * max(values)) * 1.05 or 1.0, HEIGHT - _BOTTOM, _TOP, is_log=False
            )
        low = 10.0 ** math.floor(math.log10(max(min(values), _SMALLEST)))
        high = 10.0 ** math.ceil(math.log10(max(*values, 10 * low)))
        return Axis(low, high, HEIGHT - _BOTTOM, _TOP, is_log=True)


def legend_key(number: int) -> str:
    """Return a short sample of a line, for the legend of charts."""
    line = f'<path class="l{number}" d="M0 6H28" stroke-dasharray="{_DASHES[number % len(_DASHES)]}"/>'
    return f'<svg viewBox="0 0 28 12" aria-hidden="true">{line}</svg>'


def _drawn(number: int, line: Line, across: Callable[[float], float], up: Callable[[float], float]) -> str:
    places = [(across(x), interval) for x, interval in line.points]
    path = "M" + "L".join(f"{x} {up(interval.mean)}" for x, interval in places)
    bars = "".join(f"M{x} {up(interval.ends[0])}V{up(interval.ends[-1])}" for x, interval in places)
    marks = "".join(
        f"M{x - _R:.1f} {up(interval.mean)}a{_R} {_R} 0 1 0 {2 * _R} 0a{_R} {_R} 0 1 0-{2 * _R} 0"
        for x, interval in places
    )
    dashes = _DASHES[number % len(_DASHES)]
    told = ", ".join(f"{x:g}: {interval.mean:.3g}" for x, interval in line.points)
    return (
        f"<g><title>{escape(line.name)}: {told}</title>"
        f'<path class="l{number}" d="{path}" stroke-dasharray="{dashes}"/><path class="l{number}" d="{bars}"/>'
        f'<path class="f{number}" d="{marks}"/></g>'
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'
