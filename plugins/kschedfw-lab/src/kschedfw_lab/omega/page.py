"""A page with the figures of Omega's paper. It loads no other files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import attrs

from kschedfw_lab.omega.tables import Row
from kschedfw_lab.omega.workload import BATCH, SERVICE
from kschedfw_lab.pages import environment
from kschedfw_lab.pages.axes import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Axis, general_ticks, ticks
from kschedfw_lab.pages.charts import Chart, upwards
from kschedfw_lab.report.charts import estimated
from kschedfw_lab.report.statistics import Estimate

T_JOB: Final = "t_job(service), s"
SCHEDULERS: Final = "batch schedulers"

Lines: TypeAlias = Mapping[str, Sequence[tuple[float, Estimate]]]
"""Means over x by the lines' names, x ascending."""


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

    def charts(self, rows: Sequence[Row]) -> Sequence[Chart]:
        """Return the charts of these runs, without panels that have no runs."""
        return [
            _chart(f"{METRICS[metric]}, {kind} jobs", self.x_name, lines, is_log=metric == "wait")
            for metric, kind in self.panels
            if (lines := self._lines(metric, [row for row in rows if row.figures.kind == kind]))
        ]

    def _lines(self, metric: str, rows: Iterable[Row]) -> Lines:
        found: defaultdict[str, defaultdict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
        for row in rows:
            found[self.line(row)][self.x(row)].append(getattr(row.figures, metric))
        return {
            name: [(x, Estimate.of(values)) for x, values in sorted(points.items())]
            for name, points in found.items()
        }


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
    workloads = {
        workload: [
            (figure, charts)
            for figure in FIGURES
            if (charts := figure.charts([row for row in rows if _is_of(row, workload, figure.sweep)]))
        ]
        for workload in dict.fromkeys(row.point.workload for row in rows)
    }
    template = environment("kschedfw_lab.report").get_template("omega.html")
    file.write_text(template.render(workloads=workloads), encoding="utf-8")


def _is_of(row: Row, workload: str, sweep: str) -> bool:
    return row.point.workload == workload and row.point.sweep == sweep


def _chart(caption: str, x_name: str, lines: Lines, *, is_log: bool) -> Chart:
    """Return a chart over a logarithmic x axis, with a tick at each point."""
    points = [point for line in lines.values() for point in line]
    xs = sorted({at for at, _ in points})
    x = Axis.powers(xs, LEFT, WIDTH - RIGHT)
    if is_log:
        # Without the low ends of intervals: these may be below 0.
        high = [estimate.ends[-1] for _, estimate in points]
        y = Axis.powers([*high, *(estimate.mean for _, estimate in points)], HEIGHT - BOTTOM, TOP)
        marked = general_ticks(y)
    else:
        extent = [end for _, estimate in points for end in estimate.ends]
        y = upwards([0.0, *extent])
        marked = ticks(y)
    return Chart(
        caption,
        f"lines over {x_name}",
        x_name,
        general_ticks(x, xs),
        marked,
        estimated(lines, x, y),
    )
