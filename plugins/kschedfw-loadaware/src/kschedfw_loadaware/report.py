"""Reports of measured load over a window of time, and load-watcher's JSON format for them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence

import attrs

from kschedfw import KschedfwError

# load-watcher's names for the measured resource, and for how a figure summarises the window.
_CPU, _MEMORY = "CPU", "Memory"
_MEAN, _LATEST, _DEVIATION, _UNSAID = "AVG", "Latest", "STD", ""

_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,253}")

_LAST_MOMENT = 1e12
"""The latest accepted time, in seconds.

It is some 30,000 years from now; much later, floats can't tell seconds apart.
"""

# The number of characters that messages quote of a value. They suffice to find it in the file.
_SHOWN = 200


class MetricsError(KschedfwError):
    """Metrics couldn't be read. The message names the source and the problem."""


@attrs.frozen
class Load:
    """The measured utilisation of a node's resource: mean and standard deviation over the window, in percent.

    TargetLoadPacking uses `last`. load-watcher may report several figures; `last` is then the last mean or latest
    value, or None if no figure is marked as one of these. With other sources, `last` is the mean.
    """

    mean: float
    deviation: float = 0.0
    last: float | None = attrs.field(default=attrs.Factory(lambda self: self.mean, takes_self=True))


@attrs.frozen
class NodeLoad:
    """The load of one node. None means that the resource wasn't measured."""

    cpu: Load | None = None
    memory: Load | None = None


@attrs.frozen
class LoadReport:
    """The load of the measured nodes over a window. `start` and `end` are times in seconds."""

    start: float
    end: float
    nodes: Mapping[str, NodeLoad]

    def later(self, seconds: float) -> LoadReport:
        """Return this report with a window that is `seconds` later."""
        return attrs.evolve(self, start=self.start + seconds, end=self.end + seconds)


def report_from_json(value: object, path: str = "") -> LoadReport:
    """Parse a report in load-watcher's format, its `WatcherMetrics` at `/watcher`.

    Unused fields are ignored. Metrics without a finite value are ignored, too, since monitoring systems have gaps.

    Raises:
        MetricsError: the format differs. The message names the field, below `path`.
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
    """Return the load from the figures of a resource: the last mean, or else the last other one (scheduler-plugins)."""

    def last(*operators: str) -> float | None:
        return next((number for operator, number in reversed(listed) if operator in operators), None)

    mean = last(_MEAN)
    if mean is None:
        mean = last(_LATEST, _UNSAID)
    return None if mean is None else Load(mean, last(_DEVIATION) or 0.0, last(_MEAN, _LATEST))


def json_of(content: bytes) -> object:
    """Parse JSON.

    Raises MetricsError: the content is invalid, or nested too deeply.
    """
    try:
        value: object = json.loads(content)
    except RecursionError:
        raise MetricsError("is nested too deeply") from None
    except ValueError as error:
        raise MetricsError(str(error)) from error
    return value


def shown(value: object) -> str:
    """Format a value for a message.

    Texts are escaped and long ones cut. Of objects and lists, only the type is named.
    """
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
    # JSON's integers have any size.
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
