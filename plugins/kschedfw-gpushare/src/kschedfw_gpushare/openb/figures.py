"""Measured and published figures, as tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs
from kschedfw_lab import Estimate, RunResult

from kschedfw import KschedfwError
from kschedfw_gpushare.args import Policy
from kschedfw_gpushare.openb.replay import Curve, Run

ARRIVED: Final = (80, 90, 95, 100, 110, 120, 130)
"""The percentages at which figures were published: GPUs requested by arrived pods, of the cluster's GPUs."""

LAST: Final = ARRIVED[-1]

PUBLISHED: Final = "anchors.json"

PUBLISHED_NAMES: Final[Mapping[str, str]] = {
    Policy.RANDOM: "01-Random",
    Policy.DOT_PRODUCT: "02-DotProd",
    Policy.GPU_CLUSTERING: "03-GpuClustering",
    Policy.GPU_PACKING: "04-GpuPacking",
    Policy.BEST_FIT: "05-BestFit",
    Policy.FGD: "06-FGD",
}


@attrs.frozen
class Measure:
    """A measured curve: its metric name, its name among the published figures, and its title in tables."""

    metric: str
    published: str
    text: str


MEASURES: Final = (
    Measure("allocated", "alloc", "GPUs allocated, % of all"),
    Measure("fragmented", "frag_amount", "GPUs fragmented, % of all"),
    Measure("fragmented_idle", "frag_ratio", "GPUs fragmented, % of those idle"),
)


@attrs.frozen
class Figure:
    """A published figure: the mean over seeds, their minimum and their maximum, in percent."""

    mean: float
    min: float
    max: float


Published = Mapping[str, Mapping[str, Mapping[int, Figure]]]
"""Published figures by policy name, metric and percentage arrived."""

NOTHING: Final[Published] = {}


def metrics_of(run: Run) -> Mapping[str, float]:
    """Return the run's figures at the published percentages, as shares by metric name such as `allocated.80`."""
    metrics: dict[str, float] = {"pods": run.pods, "placed": run.placed}
    for metric, curve in curves_of(run).items():
        metrics |= {f"{metric}.{percent}": curve[percent] for percent in ARRIVED if percent in curve}
    return metrics


def series_of(run: Run) -> Mapping[str, Sequence[tuple[float, float]]]:
    """Return the run's whole curves. The time axis is the arrived percentage."""
    return {metric: sorted(curve.items()) for metric, curve in curves_of(run).items() if curve}


def curves_of(run: Run) -> Mapping[str, Curve]:
    """Return the run's curves by metric name."""
    curves = run.allocated, run.fragmented, run.fragmented_idle
    return dict(zip((each.metric for each in MEASURES), curves, strict=True))


def read_published(path: Path, workload: str) -> Published:
    """Return the figures that the paper's authors published for this workload; empty if the file doesn't exist.

    Raises KschedfwError: the file has another format.
    """
    if not path.exists():
        return NOTHING
    try:
        workloads = json.loads(path.read_text(encoding="utf-8"))["workloads"]
        of_policies = workloads.get(workload, {})
        return {
            policy: {
                each.metric: {
                    percent: Figure(**{name: float(found[name]) for name in ("mean", "min", "max")})
                    for percent in ARRIVED
                    for found in (of_policies[name][each.published][str(percent)],)
                }
                for each in MEASURES
            }
            for policy, name in PUBLISHED_NAMES.items()
            if name in of_policies
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise KschedfwError(
            f"{path}: expected the published figures, as JSON with `workloads`: {type(error).__name__}: {error}"
        ) from error


def tables(runs: Mapping[str, Sequence[RunResult]], published: Published) -> Iterator[str]:
    """Yield a Markdown table per measure: means over the seeds. The last point has its 95 % interval and range, too."""
    for number, measure in enumerate(MEASURES):
        rows = list(_rows(measure, runs, published))
        if not rows:
            continue
        if number:
            yield ""
        arrived = "".join(f" {percent} % |" for percent in ARRIVED)
        yield f"| {measure.text} | |{arrived} ± at {LAST} % | range at {LAST} % |"
        yield "| --- | --- |" + " ---: |" * (len(ARRIVED) + 1) + " --- |"
        yield from rows


def _rows(measure: Measure, runs: Mapping[str, Sequence[RunResult]], published: Published) -> Iterator[str]:
    for policy, of_one in runs.items():
        names = [f"{measure.metric}.{percent}" for percent in ARRIVED]
        ours = [[100 * run.metrics[name] for run in of_one if name in run.metrics] for name in names]
        if not any(ours):
            continue
        estimates = [Estimate.of(values) if values else None for values in ours]
        last = estimates[-1]
        half = "" if last is None or last.half is None else f"{last.half:.2f}"
        means = ["" if each is None else f"{each.mean:.2f}" for each in estimates]
        spread = f"{min(ours[-1]):.2f}–{max(ours[-1]):.2f}" if ours[-1] else ""
        yield _row(policy, "measured", [*means, half, spread])
        theirs = published.get(policy, {}).get(measure.metric)
        if theirs is not None:
            means = [f"{theirs[percent].mean:.2f}" for percent in ARRIVED]
            yield _row("", "published", [*means, "", f"{theirs[LAST].min:.2f}–{theirs[LAST].max:.2f}"])


def _row(policy: str, what: str, cells: Iterable[str]) -> str:
    return f"| {policy} | {what} |" + "".join(f" {cell} |" for cell in cells)


def as_json(runs: Mapping[str, Sequence[RunResult]], published: Published) -> Mapping[str, object]:
    """Return all figures: `runs` as rows of metrics, `published` by policy, metric and percentage arrived."""
    return {
        "runs": [{**run.factors, **run.metrics} for of_one in runs.values() for run in of_one],
        "published": {
            policy: {
                metric: {str(percent): attrs.asdict(figure) for percent, figure in figures.items()}
                for metric, figures in of_policy.items()
            }
            for policy, of_policy in published.items()
            if policy in runs
        },
    }
