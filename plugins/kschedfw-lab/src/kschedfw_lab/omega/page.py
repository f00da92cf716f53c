"""A page with the figures of Omega's paper. It loads no other files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Final

import attrs

from kschedfw_lab.omega.line_chart import Line, LineChart, legend_key
from kschedfw_lab.omega.tables import Row
from kschedfw_lab.omega.workload import BATCH, SERVICE
from kschedfw_lab.report.statistics import Estimate

T_JOB: Final = "t_job(service), s"
SCHEDULERS: Final = "batch schedulers"


@attrs.frozen
class Figure:
    """A figure: a chart per kind of jobs and metric, from the runs of a sweep.

    `line` returns the name of a run's line, `x` its position on the axis.
    """

    title: str
    paper: str
    sweep: str
    panels: tuple[tuple[str, str], ...]
    x_name: str
    x: Callable[[Row], float]
    line: Callable[[Row], str]

    def charts(self, rows: Sequence[Row]) -> Sequence[LineChart]:
        """Return the charts of these runs, without panels that have no runs."""
        return [
            LineChart(f"{METRICS[metric]}, {kind} jobs", self.x_name, lines, log=metric == "wait")
            for metric, kind in self.panels
            if (lines := self._lines(metric, [row for row in rows if row.figures.kind == kind]))
        ]

    def _lines(self, metric: str, rows: Iterable[Row]) -> tuple[Line, ...]:
        found: defaultdict[str, defaultdict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
        for row in rows:
            found[self.line(row)][self.x(row)].append(getattr(row.figures, metric))
        return tuple(
            Line(name, tuple((x, Estimate.of(values)) for x, values in sorted(points.items())))
            for name, points in found.items()
        )


METRICS: Final[Mapping[str, str]] = {
    "wait": "Mean job wait time, s",
    "busyness": "Scheduler busyness",
    "conflict_fraction": "Conflict fraction",
}
BOTH: Final = tuple((metric, kind) for metric in ("wait", "busyness") for kind in (BATCH, SERVICE))

FIGURES: Final = (
    Figure(
        "The architectures, by the length of service decisions",
        "figures 5 to 8",
        "architectures",
        BOTH,
        T_JOB,
        lambda row: row.point.setting.t_job,
        lambda row: row.point.setting.architecture.name,
    ),
    Figure(
        "More batch schedulers, with more batch jobs",
        "figure 9",
        "schedulers",
        tuple((metric, BATCH) for metric in METRICS),
        SCHEDULERS,
        lambda row: float(row.point.setting.batch_schedulers),
        lambda row: f"{row.point.rate:g} times as many jobs",
    ),
    Figure(
        "Detection of conflicts, and commits",
        "figure 14",
        "commits",
        (("conflict_fraction", SERVICE), ("conflict_fraction", BATCH), ("busyness", SERVICE)),
        T_JOB,
        lambda row: row.point.setting.t_job,
        lambda row: f"{row.point.setting.detection}, {row.point.setting.mode}",
    ),
)


def write_page(rows: Sequence[Row], file: Path) -> None:
    """Write all figures for which there are runs, for each workload."""
    body = []
    for workload in dict.fromkeys(row.point.workload for row in rows):
        of_workload = [row for row in rows if row.point.workload == workload]
        body.append(f"<h2>Workload: {escape(workload)}</h2>")
        for figure in FIGURES:
            charts = figure.charts([row for row in of_workload if row.point.sweep == figure.sweep])
            if charts:
                body.append(_section(figure, charts))
    page = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    file.write_text(page.replace("<!-- figures -->", "\n".join(body)), encoding="utf-8")


def _section(figure: Figure, charts: Sequence[LineChart]) -> str:
    keys = "".join(
        f"<li>{legend_key(number)}{escape(line.name)}</li>" for number, line in enumerate(charts[0].lines)
    )
    drawn = "".join(
        f"<figure><figcaption>{escape(chart.title)}</figcaption>{chart.svg()}</figure>" for chart in charts
    )
    heading = f"<h3>{escape(figure.title)} <small>as {figure.paper} of the paper</small></h3>"
    return f'<section>{heading}<ul>{keys}</ul><div class="charts">{drawn}</div></section>'
