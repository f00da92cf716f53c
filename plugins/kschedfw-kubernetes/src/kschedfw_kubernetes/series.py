"""Counters, gauges and histograms that are added up when they are read, and cost an append until then.

prometheus-client acquires a lock for each increment, and two for an observation. A pod has some fifty of them, which
took as long as a third of its scheduling cycle.
"""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import ClassVar, Final, Generic, TypeVar

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

_MOST_NOTED: Final = 1000
"""The number of values after which they are added up, even if nobody reads them."""


class Series(ABC):
    """The values for one combination of labels. Thread-safe."""

    __slots__ = ("_lock", "_noted")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._noted: list[float] = []

    def note(self, value: float = 1.0) -> None:
        """Keep a value, to be added up later."""
        noted = self._noted
        # An append is atomic, with or without a global interpreter lock; adding to a number isn't.
        noted.append(value)
        if len(noted) >= _MOST_NOTED:
            self.add_up()

    def add_up(self) -> None:
        """Add the values that are noted. Those that other threads note meanwhile stay for the next time."""
        with self._lock:
            noted = self._noted
            taken = noted[: len(noted)]
            del noted[: len(taken)]
            self._add(taken)

    @abstractmethod
    def _add(self, values: Sequence[float]) -> None:
        """Add these values, with the lock held."""


class CounterSeries(Series):
    """A sum of increments."""

    __slots__ = ("total",)

    def __init__(self) -> None:
        super().__init__()
        self.total = 0.0

    inc = Series.note

    def _add(self, values: Sequence[float]) -> None:
        self.total += math.fsum(values)


class GaugeSeries(CounterSeries):
    """A number that is set, or one that is changed by increments; not both."""

    __slots__ = ()

    def set(self, value: float) -> None:
        self.total = value


class HistogramSeries(Series):
    """Counts of observations by buckets, the last of which has no bound."""

    __slots__ = ("_bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        super().__init__()
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    observe = Series.note

    def _add(self, values: Sequence[float]) -> None:
        for value in values:
            self.counts[bisect_left(self._bounds, value)] += 1
        self.sum += math.fsum(values)


SeriesT = TypeVar("SeriesT", bound=Series)


class _Family(Collector, Generic[SeriesT]):
    """A metric: called with label values, it returns their series, which appears with that call.

    A metric without labels has its only series from the start.
    """

    _type: ClassVar[Callable[..., Metric]]

    def __init__(
        self, name: str, text: str, labels: Sequence[str] = (), *, registry: CollectorRegistry | None
    ) -> None:
        self._name, self._text, self._labels = name, text, labels
        self._known: dict[tuple[str, ...], SeriesT] = {}
        if not labels:
            self()
        if registry is not None:
            registry.register(self)

    def __call__(self, *labels: str) -> SeriesT:
        found = self._known.get(labels)
        # Two threads that miss at once get the same series.
        return self._known.setdefault(labels, self._made()) if found is None else found

    def describe(self) -> Iterable[Metric]:
        return (self._type(self._name, self._text, labels=self._labels),)

    def collect(self) -> Iterable[Metric]:
        family = self._type(self._name, self._text, labels=self._labels)
        # A copy, made in one step: other threads may add series.
        for labels, series in list(self._known.items()):
            series.add_up()
            self._tell(family, [str(label) for label in labels], series)
        return (family,)

    @abstractmethod
    def _made(self) -> SeriesT:
        """Return a new series."""

    @abstractmethod
    def _tell(self, family: Metric, labels: Sequence[str], series: SeriesT) -> None:
        """Add the series to what is read."""


class Counter(_Family[CounterSeries]):
    """A metric that only grows."""

    _type = CounterMetricFamily

    def _made(self) -> CounterSeries:
        return CounterSeries()

    def _tell(self, family: Metric, labels: Sequence[str], series: CounterSeries) -> None:
        assert isinstance(family, CounterMetricFamily)
        family.add_metric(labels, series.total)


class Gauge(_Family[GaugeSeries]):
    """A metric that grows and shrinks."""

    _type = GaugeMetricFamily

    def _made(self) -> GaugeSeries:
        return GaugeSeries()

    def _tell(self, family: Metric, labels: Sequence[str], series: GaugeSeries) -> None:
        assert isinstance(family, GaugeMetricFamily)
        family.add_metric(labels, series.total)


class Histogram(_Family[HistogramSeries]):
    """A metric of observations, counted in buckets with these upper bounds."""

    _type = HistogramMetricFamily

    def __init__(
        self,
        name: str,
        text: str,
        labels: Sequence[str] = (),
        *,
        buckets: Sequence[float],
        registry: CollectorRegistry | None,
    ) -> None:
        self._buckets = tuple(buckets)
        super().__init__(name, text, labels, registry=registry)

    def _made(self) -> HistogramSeries:
        return HistogramSeries(self._buckets)

    def _tell(self, family: Metric, labels: Sequence[str], series: HistogramSeries) -> None:
        assert isinstance(family, HistogramMetricFamily)
        bounds = map(floatToGoString, (*self._buckets, math.inf))
        buckets = list(zip(bounds, accumulate(series.counts), strict=True))
        family.add_metric(labels, buckets, series.sum)
