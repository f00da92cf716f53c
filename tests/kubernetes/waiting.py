"""Waiting for what happens on other threads."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(is_so: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until it is so; fails where that takes too long."""
    end = time.perf_counter() + seconds
    while not is_so():
        assert time.perf_counter() < end, "it never came about"
        time.sleep(0.005)
