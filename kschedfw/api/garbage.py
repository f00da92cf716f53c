"""Reading many objects without the garbage collector, which would look through all of them again and again.

Reading files, reading a live cluster and starting to follow one all need it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collections() -> Iterator[None]:
    """Pause the garbage collector: nothing that is read has reference cycles.

    It takes a sixth of the time that reading takes, and half of it where a cluster has 50,000 pods.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
