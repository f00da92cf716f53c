"""Lists are sorted, whatever is equal. Recorded orders of equal items are in tests/conformance/data/order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kschedfw.framework.preemption.go_sort import go_sorted

KEYS = st.integers(0, 20).flatmap(lambda most: st.lists(st.integers(0, most), max_size=150))


def key_is_less(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[0]


@given(KEYS)
def test_nothing_is_lost_and_lesser_items_come_first(keys: list[int]) -> None:
    result = go_sorted(enumerate(keys), lambda one, other: one[1] < other[1])
    assert sorted(result) == list(enumerate(keys))
    assert [key for _, key in result] == sorted(keys)


@given(st.lists(st.integers(0, 5), max_size=12))
def test_up_to_twelve_items_equal_ones_keep_their_order(keys: list[int]) -> None:
    items = [(key, place) for place, key in enumerate(keys)]
    assert go_sorted(items, key_is_less) == sorted(items)


def test_more_than_twelve_equal_ones_change_places() -> None:
    items = [(place % 2, place) for place in range(13)]
    assert go_sorted(items, key_is_less) != sorted(items)


@given(st.integers(0, 300))
def test_it_ends_if_each_item_is_less_than_each_other(length: int) -> None:
    assert sorted(go_sorted(range(length), lambda _one, _other: True)) == list(range(length))
