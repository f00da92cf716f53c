"""Measurements in processes of their own."""

from __future__ import annotations

import os
import signal
import time

import pytest

from kschedfw.bench.apart import BenchmarkError, end_of_process, footprint_apart, measure_apart, run_apart
from kschedfw.bench.measure import Progress
from kschedfw.bench.stage import Case

pytestmark = pytest.mark.slow


def process_id(progress: Progress) -> int:
    progress(1, 2)
    return os.getpid()


def fails(_progress: Progress) -> None:
    raise ValueError("like this")


def is_killed(_progress: Progress) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_it_is_another_process_and_tells_of_its_progress() -> None:
    told: list[tuple[int, int]] = []
    assert run_apart(process_id, lambda done, total: told.append((done, total))) != os.getpid()
    assert told == [(1, 2)]


def test_measures() -> None:
    case = Case("basic", 10, 0, 3)
    measurement = measure_apart(case, time.perf_counter)
    assert measurement.placed == 3
    assert (measurement.peak_resident_bytes or 0) > 10_000_000
    assert footprint_apart(case).bytes > 0


def test_errors_come_back() -> None:
    with pytest.raises(BenchmarkError, match="broke off: ValueError: like this"):
        run_apart(fails)


def test_so_does_the_end_of_the_process() -> None:
    with pytest.raises(BenchmarkError, match="killed by SIGKILL, for want of memory"):
        run_apart(is_killed)
    assert end_of_process(3) == "its process ended with exit code 3"
