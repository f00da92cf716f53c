"""Priority queues whose items can be looked up, replaced and removed by key (kube-scheduler `heap.Heap`)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import cmp_to_key
from typing import Generic, TypeVar

T = TypeVar("T")


def in_order(items: Iterable[T], before: Callable[[T, T], bool]) -> list[T]:
    """Return the items sorted by `before`."""

    def compare(first: T, second: T) -> int:
        return -1 if before(first, second) else int(before(second, first))

    return sorted(items, key=cmp_to_key(compare))


class KeyedHeap(Generic[T]):
    """A heap of items with keys; the item that comes `before` all others is popped first.

    `before` is a strict order; items of which neither comes before the other are popped in any order. After a change
    of an item that affects `before`, `push` must be called for its key at once.
    """

    def __init__(self, before: Callable[[T, T], bool]) -> None:
        self._before = before
        self._entries: list[tuple[str, T]] = []
        self._positions: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._positions

    def get(self, key: str) -> T | None:
        position = self._positions.get(key)
        return None if position is None else self._entries[position][1]

    def peek(self) -> T | None:
        """Return the first item, without removing it."""
        return self._entries[0][1] if self._entries else None

    def ordered(self) -> list[T]:
        """Return all items in the order in which they would be popped. Sorts all of them, as reports need it."""
        return in_order((item for _, item in self._entries), self._before)

    def push(self, key: str, item: T) -> None:
        """Add the item, or replace the one with its key."""
        position = self._positions.get(key)
        if position is None:
            self._entries.append((key, item))
            self._rise(len(self._entries) - 1)
        else:
            self._entries[position] = (key, item)
            self._settle(position)

    def pop(self) -> T | None:
        """Remove and return the first item; None if there is none."""
        return self.remove(self._entries[0][0]) if self._entries else None

    def remove(self, key: str) -> T | None:
        position = self._positions.pop(key, None)
        if position is None:
            return None
        removed = self._entries[position]
        last = self._entries.pop()
        if last is not removed:
            self._entries[position] = last
            self._settle(position)
        return removed[1]

    def _settle(self, position: int) -> None:
        """Move the entry at the position to its place.

        It sinks to a leaf first and then rises, perhaps above its old position: that takes fewer comparisons than
        stopping on the way down, and comparisons call plugins.
        """
        entries, positions, before = self._entries, self._positions, self._before
        entry, size = entries[position], len(entries)
        child = 2 * position + 1
        while child < size:
            right = child + 1
            if right < size and before(entries[right][1], entries[child][1]):
                child = right
            entries[position] = risen = entries[child]
            positions[risen[0]] = position
            position, child = child, 2 * child + 1
        entries[position] = entry
        self._rise(position)

    def _rise(self, position: int) -> None:
        entry = self._entries[position]
        while position:
            parent = (position - 1) >> 1
            if not self._before(entry[1], self._entries[parent][1]):
                break
            self._place(position, self._entries[parent])
            position = parent
        self._place(position, entry)

    def _place(self, position: int, entry: tuple[str, T]) -> None:
        self._entries[position] = entry
        self._positions[entry[0]] = position


class KeyedLine(Generic[T]):
    """A `KeyedHeap` that is faster for items in order: an item that comes after all others costs one comparison.

    Pods of one priority arrive in order, and comparisons call plugins. Items in order are in a queue, all others in
    a heap.
    """

    def __init__(self, before: Callable[[T, T], bool]) -> None:
        self._before = before
        self._line: OrderedDict[str, T] = OrderedDict()
        self._early = KeyedHeap[T](before)

    def __len__(self) -> int:
        return len(self._line) + len(self._early)

    def __contains__(self, key: str) -> bool:
        return key in self._line or key in self._early

    def get(self, key: str) -> T | None:
        item = self._line.get(key)
        return self._early.get(key) if item is None else item

    def peek(self) -> T | None:
        """Return the first item, without removing it."""
        if not self._line:
            return self._early.peek()
        first, early = next(iter(self._line.values())), self._early.peek()
        return early if early is not None and self._before(early, first) else first

    def ordered(self) -> list[T]:
        """Return all items in the order in which they would be popped. Sorts all of them, as reports need it."""
        return in_order([*self._line.values(), *self._early.ordered()], self._before)

    def push(self, key: str, item: T) -> None:
        """Add the item, or replace the one with its key."""
        # The line stays in order: an item joins it only behind all others, and a changed one leaves it first.
        self._line.pop(key, None)
        last = next(reversed(self._line.values()), None)
        if key in self._early or (last is not None and self._before(item, last)):
            self._early.push(key, item)
        else:
            self._line[key] = item

    def pop(self) -> T | None:
        """Remove and return the first item; None if there is none."""
        if not self._line:
            return self._early.pop()
        early = self._early.peek()
        if early is not None and self._before(early, next(iter(self._line.values()))):
            return self._early.pop()
        return self._line.popitem(last=False)[1]

    def remove(self, key: str) -> T | None:
        item = self._line.pop(key, None)
        return self._early.remove(key) if item is None else item
