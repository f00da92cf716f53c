"""Metrics that a plugin defines itself: counters, gauges and histograms, made by `Handle`."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from itertools import pairwise
from typing import Final, TypeAlias

import attrs

from kschedfw.api.records import frozen

SECONDS: Final = tuple(0.001 * 2**exponent for exponent in range(15))
"""The upper bounds of a histogram's buckets unless it has others: from 1 ms to 16 s."""

_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_RESERVED: Final = "scheduler_"


class MetricKind(StrEnum):
    """The kinds of metrics, by Prometheus' names."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@frozen
class PluginMetric:
    """The definition of a plugin's metric. Plugins of several profiles share it: `profile` is its first label.

    `labels` are the names of the other labels. `buckets` are the upper bounds of a histogram's buckets, increasing.

    Raises:
        ValueError: a name isn't one that Prometheus takes, or is kube-scheduler's; or the buckets don't increase.
    """

    kind: MetricKind
    name: str
    text: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    def __attrs_post_init__(self) -> None:
        for name in (self.name, *self.labels):
            if not _NAME.fullmatch(name):
                raise ValueError(
                    f"metric {self.name!r}: {name!r} should have small letters, digits and _ only"
                )
        if self.name.startswith(_RESERVED):
            raise ValueError(f"metric {self.name!r}: names with {_RESERVED!r} are kube-scheduler's")
        if len(set(self.label_names)) < len(self.label_names):
            given = ", ".join(self.labels)
            raise ValueError(
                f"metric {self.name!r}: labels: expected distinct names other than profile, found {given}"
            )
        if any(low >= high for low, high in pairwise(self.buckets)):
            raise ValueError(
                f"metric {self.name!r}: buckets: expected bounds that increase, found {self.buckets}"
            )

    @property
    def label_names(self) -> tuple[str, ...]:
        return ("profile", *self.labels)


RecordValue: TypeAlias = Callable[[float, tuple[str, ...]], None]
"""Records a value of a metric: what a counter grows by, what a gauge is now, what a histogram observes. The texts are
the values of its labels, the profile's name first."""


@frozen
class _Recorded:
    """A metric of a plugin in one profile; `record` is None where its values are dropped."""

    definition: PluginMetric
    profile: str
    record: RecordValue | None = attrs.field(repr=False)

    def _tell(self, value: float, labels: tuple[str, ...]) -> None:
        if len(labels) != len(self.definition.labels):
            names = ", ".join(self.definition.labels) or "none"
            raise ValueError(f"metric {self.definition.name!r}: its labels are {names}; found {labels!r}")
        if self.record is not None:
            self.record(value, (self.profile, *labels))


class Counter(_Recorded):
    """A count of events; `Handle.counter` makes one. May be used from any thread."""

    def inc(self, *labels: str, by: float = 1.0) -> None:
        """Add to the count with these values of the labels.

        Raises:
            ValueError: `by` is negative, or there are more or fewer labels than the counter has.
        """
        if by < 0:
            raise ValueError(f"metric {self.definition.name!r}: a counter only grows; found by={by:g}")
        self._tell(by, labels)


class Gauge(_Recorded):
    """A number that goes up and down; `Handle.gauge` makes one. May be used from any thread."""

    def set(self, value: float, *labels: str) -> None:
        """Set the number with these values of the labels.

        Raises:
            ValueError: there are more or fewer labels than the gauge has.
        """
        self._tell(value, labels)


class Histogram(_Recorded):
    """The distribution of a quantity; `Handle.histogram` makes one. May be used from any thread."""

    def observe(self, value: float, *labels: str) -> None:
        """Add a value with these values of the labels.

        Raises:
            ValueError: there are more or fewer labels than the histogram has.
        """
        self._tell(value, labels)
