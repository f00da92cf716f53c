"""Series are what prometheus-client's own metrics would be; and nothing that threads note at the same time is lost."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import prometheus_client as client
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_kubernetes.prometheus_metrics import Registry
from kschedfw_kubernetes.series import Counter, Gauge, Histogram

BOUNDS = (0.001, 0.1, 2.5)
VALUES = st.one_of(st.sampled_from((0.0, *BOUNDS)), st.floats(0, 10, allow_nan=False))
NOTES = st.lists(st.tuples(st.sampled_from(("a", 'b"\n')), VALUES), max_size=30)


@given(counted=NOTES, gauged=NOTES, observed=NOTES, unlabelled=st.booleans())
def test_series_are_exposed_as_those_of_the_client(
    counted: list[tuple[str, float]],
    gauged: list[tuple[str, float]],
    observed: list[tuple[str, float]],
    unlabelled: bool,
) -> None:
    labels = () if unlabelled else ("x",)
    ours, theirs = Registry(), Registry()
    counter = Counter("n_total", "Text.", labels, registry=ours)
    gauge = Gauge("g", "Text.", labels, registry=ours)
    level = Gauge("l", "Text.", labels, registry=ours)
    histogram = Histogram("h", "Text.", labels, buckets=BOUNDS, registry=ours)
    known = client.Counter("n_total", "Text.", labels, registry=theirs)
    other_gauge = client.Gauge("g", "Text.", labels, registry=theirs)
    other_level = client.Gauge("l", "Text.", labels, registry=theirs)
    other_histogram = client.Histogram("h", "Text.", labels, buckets=BOUNDS, registry=theirs)
    # Whole numbers, since sums of others depend on the order of additions.
    for label, value in counted:
        counter(*[label][: len(labels)]).inc(round(value))
        (known.labels(label) if labels else known).inc(round(value))
    for label, value in gauged:
        gauge(*[label][: len(labels)]).inc(-round(value))
        (other_gauge.labels(label) if labels else other_gauge).inc(-round(value))
        level(*[label][: len(labels)]).set(value)
        (other_level.labels(label) if labels else other_level).set(value)
    for label, value in observed:
        histogram(*[label][: len(labels)]).observe(value)
        (other_histogram.labels(label) if labels else other_histogram).observe(value)
    for own, other in zip(samples(ours), samples(theirs), strict=True):
        assert own[:2] == other[:2]
        assert own[2] == pytest.approx(other[2])


def samples(registry: Registry) -> Iterator[tuple[str, dict[str, str], float]]:
    for family in registry.collect():
        for sample in family.samples:
            yield sample.name, sample.labels, sample.value


def test_a_name_is_registered_once() -> None:
    registry = Registry()
    Counter("n_total", "Text.", registry=registry)
    with pytest.raises(ValueError, match="Duplicated timeseries"):
        Histogram("n", "Text.", buckets=BOUNDS, registry=registry)
    with pytest.raises(ValueError, match="Duplicated timeseries"):
        client.Counter("n", "Text.", registry=registry)


@pytest.mark.slow
def test_nothing_that_threads_note_while_it_is_read_is_lost() -> None:
    registry = Registry()
    counter = Counter("n_total", "Text.", ("x",), registry=registry)
    histogram = Histogram("h", "Text.", ("x",), buckets=BOUNDS, registry=registry)
    each, interval = 20_000, sys.getswitchinterval()
    begin = threading.Event()

    def note() -> None:
        begin.wait()
        for number in range(each):
            counter(str(number % 3)).inc()
            histogram(str(number % 3)).observe(number % 5)

    threads = [threading.Thread(target=note) for _ in range(4)]
    for thread in threads:
        thread.start()
    # Threads take turns as often as possible, so that they meet within each step. Not while they start: coverage sets a
    # trace function in each, and Python 3.11 refuses two at once.
    sys.setswitchinterval(1e-6)
    try:
        begin.set()
        while any(thread.is_alive() for thread in threads):
            list(samples(registry))
    finally:
        sys.setswitchinterval(interval)
    total = sum(value for name, _, value in samples(registry) if name == "n_total")
    count = sum(value for name, _, value in samples(registry) if name == "h_count")
    assert (total, count) == (4 * each, 4 * each)


def test_values_dont_pile_up_where_nobody_reads_them() -> None:
    series = Counter("n_total", "Text.", registry=None)()
    for _ in range(10_500):
        series.inc()
    assert series.total == 10_000
