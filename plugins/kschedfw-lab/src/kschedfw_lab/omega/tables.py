"""Tidy tables: runs.csv with a row per run and kind of jobs, figures.csv with means over seeds and their intervals."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import attrs

from kschedfw_lab.omega.run import Figures
from kschedfw_lab.omega.sweeps import Point
from kschedfw_lab.report.statistics import Estimate

METRICS: Final = ("wait", "wait_90", "busyness", "conflict_fraction", "useful_work", "waiting")
_SETTING: Final = (
    "sweep",
    "workload",
    "architecture",
    "detection",
    "mode",
    "t_job_service",
    "batch_schedulers",
    "rate",
    "kind",
)


@attrs.frozen
class Row:
    """One run's figures for a kind of jobs."""

    point: Point
    seed: int
    figures: Figures

    @property
    def setting(self) -> tuple[str, ...]:
        """The values of the settings' columns, which both tables have."""
        point, setting = self.point, self.point.setting
        return (
            point.sweep,
            point.workload,
            setting.architecture.name,
            setting.detection,
            setting.mode,
            f"{setting.t_job:g}",
            str(setting.batch_schedulers),
            f"{point.rate:g}",
            self.figures.kind,
        )


def write_runs(rows: Iterable[Row], file: Path) -> None:
    """Write a row per run and kind of jobs."""
    with file.open("w", encoding="utf-8", newline="") as lines:
        table = csv.writer(lines, lineterminator="\n")
        table.writerow([*_SETTING, "seed", "jobs", *METRICS])
        for row in rows:
            values = [f"{getattr(row.figures, metric):.6g}" for metric in METRICS]
            table.writerow([*row.setting, row.seed, row.figures.jobs, *values])


def write_figures(rows: Iterable[Row], file: Path) -> None:
    """Write a row per setting, kind of jobs and metric, with the mean over all seeds and its confidence interval."""
    by_setting: dict[tuple[str, ...], list[Figures]] = {}
    for row in rows:
        by_setting.setdefault(row.setting, []).append(row.figures)
    with file.open("w", encoding="utf-8", newline="") as lines:
        table = csv.writer(lines, lineterminator="\n")
        table.writerow([*_SETTING, "metric", "seeds", "mean", "low", "high"])
        for setting, figures in by_setting.items():
            for metric in METRICS:
                found = Estimate.of([getattr(each, metric) for each in figures])
                interval = (f"{value:.6g}" for value in (found.mean, found.ends[0], found.ends[-1]))
                table.writerow([*setting, metric, len(figures), *interval])
