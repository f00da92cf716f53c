"""Pausing the garbage collector while many objects are made that last.

The collector would scan these objects again and again while manifests or a live cluster are read, or a command's
modules are imported.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collections() -> Iterator[None]:
    """Pause the garbage collector during the block: what is made there lasts, or has no reference cycles.

    The collector takes a sixth of the time of reading, and half of it for a cluster with 50,000 pods.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
