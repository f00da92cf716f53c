"""Measurements in processes of their own."""

from __future__ import annotations

import os
import signal
import time

import pytest
from kschedfw_lab.bench.child_process import (
    BenchmarkError,
    end_of_process,
    footprint_in_child,
    measure_in_child,
    run_in_child,
)
from kschedfw_lab.bench.laps import Progress
from kschedfw_lab.bench.stage import Case

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
    assert run_in_child(process_id, lambda done, total: told.append((done, total))) != os.getpid()
    assert told == [(1, 2)]


def test_measures() -> None:
    case = Case("basic", 10, 0, 3)
    measurement = measure_in_child(case, time.perf_counter)
    assert measurement.placed == 3
    assert (measurement.peak_resident_bytes or 0) > 10_000_000
    assert footprint_in_child(case).bytes > 0


def test_errors_come_back() -> None:
    with pytest.raises(BenchmarkError, match="broke off: ValueError: like this"):
        run_in_child(fails)


def test_so_does_the_end_of_the_process() -> None:
    with pytest.raises(BenchmarkError, match="killed by SIGKILL, for want of memory"):
        run_in_child(is_killed)
    assert end_of_process(3) == "its process ended with exit code 3"
