"""Counts calls: how the work grows with its input, whatever else the machine does."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

_NOISE = 20_000  # calls; caches that are filled, modules that are imported


def calls_of(work: Callable[[], object]) -> int:
    """How many functions are called and left meanwhile on this thread, those that are written in C among them."""
    count = 0

    def note(_frame: FrameType, _event: str, _argument: object) -> None:
        nonlocal count
        count += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def assert_linear(half: Callable[[], object], whole: Callable[[], object]) -> None:
    """The work on the whole input takes about twice the calls of that on half of it; quadratic work takes four."""
    for_half, for_whole = calls_of(half), calls_of(whole)
    assert for_whole < 3 * for_half + _NOISE, f"{for_half} calls for half, {for_whole} for the whole"
