"""Tidy tables of runs: a row per run and kind of jobs, and a row per setting, kind and metric with its confidence."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import NormalDist, fmean, stdev
from typing import Final

import attrs

from kschedfw.experiments.omega.run import Figures
from kschedfw.experiments.omega.sweeps import Point

METRICS: Final = ("wait", "wait_90", "busyness", "conflict_fraction", "useful_work", "waiting")
CONFIDENCE: Final = 0.95
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
        """What was set, as the columns of both tables."""
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


@attrs.frozen
class Interval:
    """The mean of some runs, and where the true mean is with 95 % confidence, by Student's t distribution."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Interval:
        """Without an interval for a single value."""
        mean = fmean(values)
        if len(values) < 2:
            return cls(mean, mean, mean)
        half = t_quantile(len(values) - 1) * stdev(values) / math.sqrt(len(values))
        return cls(mean, mean - half, mean + half)


def t_quantile(freedom: int) -> float:
    """The 97.5 % quantile of Student's t distribution, from 5 degrees of freedom on right to 1 %.

    Cornish and Fisher's expansion by that of the normal distribution: Abramowitz and Stegun, 26.7.5.
    """
    z, n = NormalDist().inv_cdf((1 + CONFIDENCE) / 2), freedom
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    )


def write_runs(rows: Iterable[Row], file: Path) -> None:
    """A row per run and kind of jobs."""
    with file.open("w", encoding="utf-8", newline="") as lines:
        table = csv.writer(lines, lineterminator="\n")
        table.writerow([*_SETTING, "seed", "jobs", *METRICS])
        for row in rows:
            values = [f"{getattr(row.figures, metric):.6g}" for metric in METRICS]
            table.writerow([*row.setting, row.seed, row.figures.jobs, *values])


def write_figures(rows: Iterable[Row], file: Path) -> None:
    """A row per setting, kind of jobs and metric, with the mean of all seeds and its confidence interval."""
    by_setting: dict[tuple[str, ...], list[Figures]] = {}
    for row in rows:
        by_setting.setdefault(row.setting, []).append(row.figures)
    with file.open("w", encoding="utf-8", newline="") as lines:
        table = csv.writer(lines, lineterminator="\n")
        table.writerow([*_SETTING, "metric", "seeds", "mean", "low", "high"])
        for setting, figures in by_setting.items():
            for metric in METRICS:
                found = Interval.of([getattr(each, metric) for each in figures])
                interval = (f"{value:.6g}" for value in (found.mean, found.low, found.high))
                table.writerow([*setting, metric, len(figures), *interval])
