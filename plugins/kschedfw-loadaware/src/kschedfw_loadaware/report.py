"""What was measured: the load of nodes over a window of time, and load-watcher's JSON for it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import attrs

from kschedfw import KschedfwError

# load-watcher's names for what a metric is about and how it sums up the window.
_CPU, _MEMORY = "CPU", "Memory"
_MEAN_OPERATORS = ("AVG", "Latest", "")
"""The operators that say how much is used, the best one first."""
_DEVIATION_OPERATOR = "STD"


class MetricsError(KschedfwError):
    """Metrics couldn't be read; says where they should have come from and what was wrong."""


@attrs.frozen
class Load:
    """How much of a resource of a node was used: mean and standard deviation over the window, in percent."""

    mean: float
    deviation: float = 0.0


@attrs.frozen
class NodeLoad:
    """The load of one node; None is what wasn't measured."""

    cpu: Load | None = None
    memory: Load | None = None


@attrs.frozen
class LoadReport:
    """The load of all nodes that were measured, over a window that begins and ends at these times, in seconds."""

    start: float
    end: float
    nodes: Mapping[str, NodeLoad]

    def later(self, seconds: float) -> LoadReport:
        """The same, measured so much later."""
        return attrs.evolve(self, start=self.start + seconds, end=self.end + seconds)


def report_from_json(value: object, path: str = "") -> LoadReport:
    """A report as load-watcher gives it at `/watcher` (its `WatcherMetrics`).

    Fields that aren't needed are passed over, and so are metrics without a finite value: a monitoring system has gaps.

    Raises:
        MetricsError: it is something else; names the field, below `path`.
    """
    document = _mapping(value, path)
    window = _mapping(document.get("window"), _join(path, "window"))
    start, end = (_number(window.get(name), _join(path, f"window.{name}")) for name in ("start", "end"))
    where = _join(path, "data.NodeMetricsMap")
    data = _mapping(document.get("data"), _join(path, "data"))
    nodes = _mapping(data.get("NodeMetricsMap"), where)
    return LoadReport(
        start, end, {name: _node_load(entry, f"{where}.{name}") for name, entry in nodes.items()}
    )


def _node_load(value: object, path: str) -> NodeLoad:
    metrics = _mapping(value, path).get("metrics") or ()
    if not isinstance(metrics, Sequence) or isinstance(metrics, str):
        raise MetricsError(f"{path}.metrics: must be a list, not {type(metrics).__name__}")
    values: dict[tuple[str, str], float] = {}
    for index, each in enumerate(metrics):
        where = f"{path}.metrics[{index}]"
        metric = _mapping(each, where)
        number = _number(metric.get("value"), f"{where}.value")
        if math.isfinite(number):
            values[str(metric.get("type", "")), str(metric.get("operator", ""))] = number
    return NodeLoad(_load(values, _CPU), _load(values, _MEMORY))


def _load(values: Mapping[tuple[str, str], float], resource: str) -> Load | None:
    for operator in _MEAN_OPERATORS:
        if (resource, operator) in values:
            return Load(values[resource, operator], values.get((resource, _DEVIATION_OPERATOR), 0.0))
    return None


def _mapping(value: object, path: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise MetricsError(f"{path or 'a report'}: must be an object, not {type(value).__name__}")
    return value


def _number(value: object, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MetricsError(f"{path}: must be a number, not {value!r}")
    return float(value)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
