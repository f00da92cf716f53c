"""While many objects are read the garbage collector rests."""

from __future__ import annotations

import gc

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
