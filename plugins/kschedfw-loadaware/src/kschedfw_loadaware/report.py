"""What was measured: the load of nodes over a window of time, and load-watcher's JSON for it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence

import attrs

from kschedfw import KschedfwError

# load-watcher's names for what a metric is about and how it sums up the window.
_CPU, _MEMORY = "CPU", "Memory"
_MEAN, _LATEST, _DEVIATION, _UNSAID = "AVG", "Latest", "STD", ""

_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,253}")

_LAST_MOMENT = 1e12
"""Seconds; some 30,000 years, after which times can't be told from one another any more."""

_SHOWN = 200  # a value is quoted so that it can be found, not to repeat it


class MetricsError(KschedfwError):
    """Metrics couldn't be read; says where they should have come from and what was wrong."""


@attrs.frozen
class Load:
    """How much of a resource of a node was used: mean and standard deviation over the window, in percent.

    `last` is what TargetLoadPacking goes by. Of several figures, as load-watcher may have them, it is the last one that
    is a mean or the latest value; None if no figure says that it is that. Elsewhere it is the mean.
    """

    mean: float
    deviation: float = 0.0
    last: float | None = attrs.field(default=attrs.Factory(lambda self: self.mean, takes_self=True))


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
    start, end = (_time(window.get(name), _join(path, f"window.{name}")) for name in ("start", "end"))
    where = _join(path, "data.NodeMetricsMap")
    data = _mapping(document.get("data"), _join(path, "data"))
    nodes = _mapping(data.get("NodeMetricsMap"), where)
    return LoadReport(
        start, end, {name: _node_load(entry, _at(where, name)) for name, entry in nodes.items()}
    )


def _node_load(value: object, path: str) -> NodeLoad:
    metrics = _mapping(value, path).get("metrics") or ()
    if not isinstance(metrics, Sequence) or isinstance(metrics, str):
        raise MetricsError(f"{path}.metrics: must be a list, not {type(metrics).__name__}")
    listed: dict[object, list[tuple[object, float]]] = {_CPU: [], _MEMORY: []}
    for index, each in enumerate(metrics):
        where = f"{path}.metrics[{index}]"
        metric = _mapping(each, where)
        number = _number(metric.get("value"), f"{where}.value")
        kind = metric.get("type")
        if isinstance(kind, str) and kind in listed and math.isfinite(number):
            listed[kind].append((metric.get("operator", _UNSAID), number))
    return NodeLoad(_load(listed[_CPU]), _load(listed[_MEMORY]))


def _load(listed: Sequence[tuple[object, float]]) -> Load | None:
    """What a resource's figures mean, as the original's plugins take them: a mean before all, else the last one."""

    def last(*operators: str) -> float | None:
        return next((number for operator, number in reversed(listed) if operator in operators), None)

    mean = last(_MEAN)
    if mean is None:
        mean = last(_LATEST, _UNSAID)
    return None if mean is None else Load(mean, last(_DEVIATION) or 0.0, last(_MEAN, _LATEST))


def json_of(content: bytes) -> object:
    """What it says as JSON. Raises MetricsError: nothing, or too much."""
    try:
        value: object = json.loads(content)
    except RecursionError:
        raise MetricsError("is nested too deeply") from None
    except ValueError as error:
        raise MetricsError(str(error)) from error
    return value


def shown(value: object) -> str:
    """A value in a message: escaped, and cut where it is long; of one with parts, what it is."""
    if isinstance(value, Mapping | list):
        return f"a {type(value).__name__}"
    text = ascii(value[:_SHOWN] if isinstance(value, str) else value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _mapping(value: object, path: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise MetricsError(f"{path or 'a report'}: must be an object, not {type(value).__name__}")
    return value


def _number(value: object, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MetricsError(f"{path}: must be a number, not {shown(value)}")
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _time(value: object, path: str) -> float:
    seconds = _number(value, path)
    if not abs(seconds) <= _LAST_MOMENT:
        raise MetricsError(f"{path}: must be a time in seconds, not {seconds}")
    return seconds


def _at(path: str, name: str) -> str:
    return f"{path}.{name}" if _PLAIN.fullmatch(name) else f"{path}[{shown(name)}]"


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
