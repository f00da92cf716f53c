"""Pausing the garbage collector while many objects are made that last.

The collector would scan these objects again and again while manifests or a live cluster are read, or a command's
modules are imported.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_MANY: Final = 20_000
"""The collector looks at so many new objects in a few milliseconds."""


class _Ageing:
    """Makes all objects old: none is looked at before the next full collection.

    Freezing does that, but also sets the collector's counts back. If nothing else were done, a program that reads one
    cluster after the other would never come to a full collection, and the garbage of its schedulers would stay. So
    where none came since the last freezing, this is one.
    """

    def __init__(self) -> None:
        self._full_collections = -1

    def __call__(self) -> None:
        done: int = gc.get_stats()[-1]["collections"]
        if done == self._full_collections:
            gc.collect()
        else:
            self._full_collections = done
            gc.freeze()
            gc.unfreeze()


_make_all_old: Final = _Ageing()


@contextmanager
def without_collections() -> Iterator[None]:
    """Pause the garbage collector during the block: what is made there lasts, or has no reference cycles.

    The collector takes a sixth of the time of reading, and half of it for a cluster with 50,000 pods. Afterwards,
    many objects count as old: the first collection would look at all of them.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            # Fewer objects than a collection waits for are left to it. What somebody else has frozen must stay so; to
            # count it takes 10 ms for the objects of a suite of tests, and every framework is made in such a block.
            if gc.get_count()[0] > max(_MANY, gc.get_threshold()[0]) and not gc.get_freeze_count():
                _make_all_old()
            gc.enable()
