"""Real time, and durations as Go prints them."""

from __future__ import annotations

import re
import threading
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kschedfw.framework.clock import SystemClock, format_duration
from kschedfw.testing.waiting import PATIENCE


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (1e-9, "1ns"),
        (999e-9, "999ns"),
        (1.5e-6, "1.5µs"),
        (2.25e-3, "2.25ms"),
        (0.5, "500ms"),
        (1, "1s"),
        (1.1, "1.1s"),
        (59.000000001, "59.000000001s"),
        (60, "1m0s"),
        (90, "1m30s"),
        (900, "15m0s"),
        (3600, "1h0m0s"),
        (3661.5, "1h1m1.5s"),
        (100 * 3600, "100h0m0s"),
        (-1.5, "-1.5s"),
        (-0.002, "-2ms"),
    ],
)
def test_durations_look_as_go_prints_them(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


UNITS = {"h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "µs": 10**3, "ns": 1}


@given(st.integers(-(10**14), 10**14))
@example(10**9 - 1)
@example(60 * 10**9 - 1)
def test_durations_lose_no_nanosecond(nanoseconds: int) -> None:
    text = format_duration(nanoseconds / 10**9)
    total = 0
    for whole, fraction, unit in re.findall(r"(\d+)(?:\.(\d+))?(h|ms|m|µs|ns|s)", text):
        total += int(whole) * UNITS[unit]
        if fraction:
            total += int(fraction) * UNITS[unit] // 10 ** len(fraction)
    assert total == abs(nanoseconds)
    assert text.startswith("-") is (nanoseconds < 0)


class TestSystemClock:
    def test_it_is_the_wall_clock(self) -> None:
        before = time.time()
        assert before <= SystemClock().now() <= time.time()

    def test_a_deadline_in_the_past_does_not_block(self) -> None:
        condition = threading.Condition()
        with condition:
            SystemClock().wait_until(condition, SystemClock().now() - 1)

    def test_waiting_ends_at_the_deadline(self) -> None:
        clock, condition = SystemClock(), threading.Condition()
        begin = time.monotonic()
        with condition:
            clock.wait_until(condition, clock.now() + 0.05)
        assert time.monotonic() - begin > 0.04

    @pytest.mark.parametrize("seconds", [60.0, 1e300])
    def test_waiting_ends_with_a_notification(self, seconds: float) -> None:
        """However far away the deadline is: a wait can't be longer than some hundred years."""
        clock, condition = SystemClock(), threading.Condition()

        def notify() -> None:
            with condition:
                condition.notify_all()

        with condition:
            thread = threading.Thread(target=notify)
            thread.start()
            clock.wait_until(condition, clock.now() + seconds)
        thread.join(PATIENCE)
        assert not thread.is_alive()
