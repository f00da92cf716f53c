"""Waiting in tests for what other threads and processes do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

PATIENCE: Final = 600.0
"""Seconds after which a wait is given up. Only what hangs takes so long, on a slow machine, too."""


def eventually(is_so: Callable[[], object]) -> None:
    """Wait until it is so.

    Raises:
        AssertionError: it isn't after `PATIENCE`.
    """
    end = time.perf_counter() + PATIENCE
    while not is_so():
        assert time.perf_counter() < end, "it never came about"
        time.sleep(0.005)
