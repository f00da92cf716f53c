"""The memory of the process, and the memory that objects hold."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

_STATUS = Path("/proc/self/status")


def peak_resident_bytes() -> int | None:
    """Return this process's peak resident memory in bytes; None if the system doesn't report it."""
    if _STATUS.exists():
        # On Linux read /proc: `ru_maxrss` would include the memory of the process that started this one.
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    try:
        import resource
    except ModuleNotFoundError:  # Windows has no module `resource`.
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@attrs.define
class Held:
    """The bytes that a `held_memory` block left allocated, set when the block has ended."""

    bytes: int = 0


@contextmanager
def held_memory() -> Iterator[Held]:
    """Count the memory, NumPy's included, that is allocated within the block and still held at its end.

    Counting slows the block down considerably.
    """
    held = Held()
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        yield held
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        held.bytes = max(0, after - before)
    finally:
        tracemalloc.stop()
