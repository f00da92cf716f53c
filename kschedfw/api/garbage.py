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

    The collector takes a sixth of the time of reading, and half of it for a cluster with 50,000 pods. Afterwards,
    what was made counts as old: the first collection would look at all of it.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            # Fewer objects than a collection waits for are left to it. What somebody else has frozen must stay so; to
            # count it takes 10 ms for the objects of a suite of tests, and every framework is made in such a block.
            if gc.get_count()[0] > gc.get_threshold()[0] and not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()
