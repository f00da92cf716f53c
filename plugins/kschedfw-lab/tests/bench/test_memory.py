"""Memory: what the process has, and what nodes and pods take of it."""

from __future__ import annotations

import time
from functools import partial

import attrs
import pytest
from kschedfw_lab.bench.footprint import measure_footprint
from kschedfw_lab.bench.growth import Axis, cases, measure_row
from kschedfw_lab.bench.measure import measure
from kschedfw_lab.bench.memory import held_memory, peak_resident_bytes
from kschedfw_lab.bench.stage import Case
from kschedfw_lab.bench.workload import Placement

from kschedfw import Registry

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("_little_garbage")]

INSTALLED = Registry()


def test_the_peak_counts_what_is_gone_again() -> None:
    ballast = bytearray(b"x") * 250_000_000
    del ballast
    peak = peak_resident_bytes()
    assert peak is not None
    assert peak > 250_000_000


def test_held_is_what_is_left() -> None:
    with held_memory() as kept:
        ballast = bytearray(1_000_000)
    with held_memory() as dropped:
        bytearray(1_000_000)
    assert 1_000_000 <= kept.bytes < 1_100_000
    assert 0 <= dropped.bytes < 100_000
    del ballast


def test_nodes_and_pods_take_some() -> None:
    case = Case("basic", 20, 0, 1, own_placement=Placement.BOUND)
    measure_footprint(case, registry=INSTALLED)  # the first one of a process counts what all of them share
    few, many, full = (
        measure_footprint(attrs.evolve(case, nodes=nodes, initial_pods=pods), registry=INSTALLED)
        for nodes, pods in ((20, 0), (60, 0), (60, 120))
    )
    assert (full.nodes, full.pods) == (60, 120)
    assert 0 < few.bytes < many.bytes < full.bytes


def test_a_row_for_each_size() -> None:
    for axis, size in ((Axis.NODES, 5), (Axis.PODS, 20)):
        rows = [
            measure_row(
                axis,
                case,
                partial(measure, timer=time.perf_counter, registry=INSTALLED),
                partial(measure_footprint, registry=INSTALLED),
            )
            for case in cases(axis, Case("basic", 10, 5, 2), [size])
        ]
        assert [row.size for row in rows] == [size]
        assert all(row.bytes_each is not None and row.bytes_each >= 0 for row in rows)
        assert all(row.measurement.finished == 2 for row in rows)
