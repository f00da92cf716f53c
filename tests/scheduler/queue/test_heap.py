"""A heap with keys, and a line with a heap beside it, do what a sorted list would."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw.scheduler.queue.heap import KeyedHeap, KeyedLine

KEYS = st.sampled_from("abcdefghijkl")
Item = tuple[int, str]


Queue = type[KeyedHeap[Any]] | type[KeyedLine[Any]]

both = pytest.mark.parametrize("queue", [KeyedHeap, KeyedLine])


def smaller(first: Item, second: Item) -> bool:
    return first < second


@both
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("push"), KEYS, st.integers(0, 20)),
            st.tuples(st.just("remove"), KEYS, st.just(0)),
            st.tuples(st.just("pop"), st.just(""), st.just(0)),
        ),
        max_size=80,
    )
)
def test_it_agrees_with_sorting(queue: Queue, steps: list[tuple[str, str, int]]) -> None:
    heap = queue(smaller)
    model: dict[str, Item] = {}
    for step, key, weight in steps:
        if step == "push":
            heap.push(key, (weight, key))
            model[key] = (weight, key)
        elif step == "remove":
            assert heap.remove(key) == model.pop(key, None)
        else:
            first = min(model.values(), default=None)
            assert heap.pop() == first
            if first is not None:
                del model[first[1]]
        assert len(heap) == len(model)
        assert heap.peek() == min(model.values(), default=None)
        assert heap.ordered() == sorted(model.values())
        for each in "abcdefghijkl":
            assert heap.get(each) == model.get(each)
            assert (each in heap) is (each in model)
    assert [heap.pop() for _ in range(len(model))] == sorted(model.values())


@both
@given(st.lists(st.integers(0, 5), max_size=30))
def test_equal_items_are_all_popped(queue: Queue, weights: list[int]) -> None:
    heap = queue(lambda first, second: first < second)
    for index, weight in enumerate(weights):
        heap.push(str(index), weight)
    assert heap.ordered() == sorted(weights)
    assert [heap.pop() for _ in weights] == sorted(weights)
    assert heap.pop() is None


@both
@given(st.lists(st.integers(), min_size=1, max_size=30, unique=True), st.data())
def test_an_item_may_change_if_it_is_pushed_again(
    queue: Queue, weights: list[int], data: st.DataObject
) -> None:
    items = [[weight] for weight in weights]
    heap = queue(lambda first, second: first[0] < second[0])
    for index, item in enumerate(items):
        heap.push(str(index), item)
    changed = data.draw(st.integers(0, len(items) - 1))
    items[changed][0] = data.draw(st.integers())
    heap.push(str(changed), items[changed])
    assert [item[0] for item in heap.ordered()] == sorted(item[0] for item in items)
    popped = [heap.pop() for _ in items]
    assert [item[0] for item in popped if item is not None] == sorted(item[0] for item in items)


@given(st.lists(st.integers(), min_size=1, max_size=30))
def test_lining_up_at_the_end_takes_one_comparison_and_going_none(weights: list[int]) -> None:
    comparisons = 0

    def counted(first: int, second: int) -> bool:
        nonlocal comparisons
        comparisons += 1
        return first < second

    line = KeyedLine[int](counted)
    for index, weight in enumerate(sorted(weights)):
        line.push(str(index), weight)
    assert [line.pop() for _ in weights] == sorted(weights)
    assert comparisons == len(weights) - 1
