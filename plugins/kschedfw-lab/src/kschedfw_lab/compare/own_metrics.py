"""Metrics of one's own: numbers of a finished run that distributions offer, and that plugins count."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import attrs
import numpy as np

from kschedfw.api import Extensions
from kschedfw.cluster import Cluster
from kschedfw.metrics import MetricKind
from kschedfw.simulator import Report
from kschedfw_lab.compare.metrics import NodeAllocation, Unit

GROUP: Final = "kschedfw_lab.metrics"
"""The entry points of own metrics. Their names are the metrics' names."""
PLUGIN: Final = "plugin."
"""The beginning of the names of plugins' own counters, gauges and histograms."""
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)*")
_TAKEN: Final = ("plugin", "utilisation", "imbalance", "fragmentation", "pending", "wait_seconds", "cost")
"""The families of metrics that sweeps have already."""


@attrs.frozen
class FinishedRun:
    """A simulation that has ended, for own metrics.

    Attributes:
        report: what became of each pod, and the amounts that are requested on the nodes.
        cluster: the objects as they are in the end.
        allocations: each node's amounts, in the order of the input.
    """

    report: Report
    cluster: Cluster
    allocations: Sequence[NodeAllocation]


@attrs.frozen
class OwnMetric:
    """A metric of one's own.

    Attributes:
        measure: returns the value for a finished run; a finite number.
        unit: what `--fail-on` may compare it with.
        higher_is_better: for the verdicts of reports; None if neither is.
    """

    measure: Callable[[FinishedRun], float]
    unit: Unit = Unit.NUMBER
    higher_is_better: bool | None = None


METRICS: Final = Extensions[OwnMetric](GROUP, "metric", OwnMetric)


def installed_metric(name: str) -> OwnMetric | None:
    """Return the metric that an installed distribution offers under this name; None if there is none.

    Raises:
        ExtensionError: it can't be loaded, or its name can't be one.
    """
    if name not in METRICS.names():
        return None
    if _NAME.fullmatch(name) is None or name.partition(".")[0] in _TAKEN:
        why = f"expected a name such as energy_kwh, whose first part isn't one of {', '.join(_TAKEN)}"
        raise METRICS.failure(name, why)
    return METRICS.load(name)


def own_values(run: FinishedRun, metrics: Mapping[str, OwnMetric] | None = None) -> Mapping[str, float]:
    """Return the values of own metrics by their names, and those of plugins as `plugin.NAME`.

    `metrics` are those to measure; by default those of installed distributions.

    Raises:
        ExtensionError: a metric of a distribution can't be loaded, or doesn't return a finite number.
        ValueError: one of `metrics` doesn't.
    """
    found = dict(_of_plugins(run.report))
    if metrics is not None:
        for name, metric in metrics.items():
            value = metric.measure(run)
            if not _is_finite(value):
                raise ValueError(f"metric {name!r}: expected a finite number, found {value!r}")
            found[name] = float(value)
        return found
    for name in METRICS.names():
        installed = installed_metric(name)
        assert installed is not None
        with METRICS.calling(name):
            value = installed.measure(run)
        if not _is_finite(value):
            raise METRICS.failure(name, f"expected a finite number, found {value!r}")
        found[name] = float(value)
    return found


def _is_finite(value: object) -> bool:
    # True is an int, and no number.
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return is_number and math.isfinite(float(value))  # type: ignore[arg-type]  # as `is_number` says


def _of_plugins(report: Report) -> Iterator[tuple[str, float]]:
    """Yield the sums over all labels; of a histogram the number of values and their mean."""
    sums: dict[str, float] = defaultdict(float)
    counts: dict[str, int] = defaultdict(int)
    histograms: set[str] = set()
    for series in report.plugin_metrics:
        name = f"{PLUGIN}{series.metric.name}"
        sums[name] += series.value
        counts[name] += series.count
        if series.metric.kind is MetricKind.HISTOGRAM:
            histograms.add(name)
    for name, value in sums.items():
        if name in histograms:
            yield f"{name}.count", counts[name]
            yield f"{name}.mean", value / counts[name] if counts[name] else 0.0
        else:
            yield name, value
