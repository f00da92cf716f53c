"""While many objects are read the garbage collector rests."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from kschedfw.api.garbage import without_collections


def test_it_rests_and_goes_on_whatever_happens() -> None:
    def fail() -> None:
        with without_collections():
            assert not gc.isenabled()
            raise RuntimeError

    assert gc.isenabled()
    with pytest.raises(RuntimeError):
        fail()
    assert gc.isenabled()


def test_garbage_collection_stays_off_where_it_was_off() -> None:
    gc.disable()
    try:
        with without_collections():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


MANY_LISTS = """
import gc, weakref
from kschedfw.api.garbage import without_collections
class Cycle:
    def __init__(self): self.itself = self
gone, kept = weakref.ref(Cycle()), []
for _ in range(3):
    with without_collections():
        kept.append([[] for _ in range(50_000)])
assert gone() is None
"""
SCHEDULERS = """
import weakref
from kschedfw import InMemoryCluster, Scheduler, VirtualClock
def use():
    with_cycles = Scheduler(InMemoryCluster(), clock=VirtualClock(0.0))
    with_cycles.close()
    return weakref.ref(with_cycles)
first = use()
for _ in range(200):
    if first() is None: break
    use()
assert first() is None
"""


@pytest.mark.parametrize("script", [MANY_LISTS, SCHEDULERS], ids=["many lists", "schedulers"])
def test_garbage_between_blocks_is_collected(script: str) -> None:
    """In a process of its own: the suite has frozen what was there when it began."""
    subprocess.run([sys.executable, "-c", script], check=True)
