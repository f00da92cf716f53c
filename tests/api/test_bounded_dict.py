"""A dict with a limit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw.api.bounded_dict import BoundedDict


@given(st.lists(st.integers(0, 9)), st.integers(1, 5))
def test_it_has_the_items_that_were_added_last(keys: list[int], limit: int) -> None:
    bounded: BoundedDict[int, str] = BoundedDict(limit)
    model: list[int] = []
    for key in keys:
        bounded[key] = str(key)
        if key not in model:
            model = [*model, key][-limit:]
        assert list(bounded.items()) == [(each, str(each)) for each in model]


def test_every_way_of_adding_respects_the_limit() -> None:
    bounded: BoundedDict[int, str] = BoundedDict(2)
    bounded.update({1: "a", 2: "b", 3: "c"})
    assert bounded.setdefault(4, "d") == "d"
    bounded |= {5: "e"}
    assert list(bounded.items()) == [(4, "d"), (5, "e")]


def test_reading_and_replacing_make_no_item_younger() -> None:
    bounded: BoundedDict[str, int] = BoundedDict(2)
    bounded["old"] = bounded["new"] = 1
    bounded["old"] = 2
    assert bounded["old"] == bounded.get("old") == 2
    bounded["newest"] = 1
    assert list(bounded) == ["new", "newest"]


def test_a_limit_is_at_least_one() -> None:
    with pytest.raises(ValueError, match="limit must be 1 or more, not 0"):
        BoundedDict[str, int](0)
