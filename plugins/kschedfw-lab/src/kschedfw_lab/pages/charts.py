"""Plots as SVG, which pages and pictures draw alike: lines and marks over two axes, and rows with bars or intervals.

The shapes are path data; `templates/plots.html` has the SVG around them, `templates/plots.css` the colours, light and
dark. A plot loads nothing and has no script.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from kschedfw_lab.pages.axes import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Axis, Tick, mark
from kschedfw_lab.pages.static_page import environment

BAR: Final = 14
"""The height of a bar."""

VALUES: Final = 76
"""The width of the column of rows' values as texts."""


@attrs.frozen
class Series:
    """One of a chart's series, as path data: a line, marks, and intervals or a band. The number gives the colour."""

    number: int
    name: str
    line: str = ""
    marks: str = ""
    bars: str = ""
    band: str = ""


@attrs.frozen
class Chart:
    """Lines or marks over two axes.

    Attributes:
        kind: a description for readers who can't see the chart.
        reference: the path data of a line to compare with.
        left_out: the number of series that aren't drawn, since more than eight can't be told apart.
    """

    caption: str
    kind: str
    x_name: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    series: tuple[Series, ...]
    height: float = HEIGHT
    left_out: int = 0
    reference: str = ""

    @property
    def keys(self) -> list[tuple[int, str]]:
        """The numbers and names of the series, for a legend."""
        return [(each.number, each.name) for each in self.series]


@attrs.frozen
class Row:
    """A row of a plot, as path data: a bar or mark, and beside it its interval and single values.

    Attributes:
        name: what the row is about, for readers who can't see the plot.
        heading: the text above the row, if there is one.
        y: the middle of the row's shapes.
    """

    number: int
    name: str
    heading: str
    text: str
    y: float
    mark: str
    interval: str = ""
    values: str = ""


@attrs.frozen
class Rows:
    """Rows over one axis. `zero` is the position of 0 where it is marked, else None."""

    caption: str
    rows: tuple[Row, ...]
    ticks: tuple[Tick, ...]
    height: float
    zero: float | None = None


def across(values: Sequence[float]) -> Axis:
    """Return a chart's horizontal axis, which contains all values."""
    return Axis.over(values, LEFT, WIDTH - RIGHT)


def upwards(values: Sequence[float], height: float = HEIGHT) -> Axis:
    """Return the vertical axis of a chart of this height, which contains all values."""
    return Axis.over(values, height - BOTTOM, TOP)


def bar(axis: Axis, value: float, y: float) -> str:
    """Return the path data of a horizontal bar from the axis' start."""
    return f"M{axis.start} {y - BAR / 2}H{axis.at(min(value, axis.high))}v{BAR}H{axis.start}z"


def marked(points: Sequence[tuple[float, float]], number: int, x: Axis, y: Axis) -> str:
    """Return the path data of a series' marks at these points."""
    return "".join(mark(number, x.at(at), y.at(value)) for at, value in points)


def picture(title: str, charts: Sequence[Chart], columns: int) -> str:
    """Return charts in columns as one SVG file, with the legend of the first one's series above them."""
    return environment().get_template("picture.svg").render(title=title, charts=charts, columns=columns)
