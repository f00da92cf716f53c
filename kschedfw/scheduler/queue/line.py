"""A priority queue for items most of which come in the order in which they go."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from kschedfw.scheduler.queue.heap import KeyedHeap, in_order

T = TypeVar("T")


class KeyedLine(Generic[T]):
    """Does what a `KeyedHeap` does. An item that comes after all others just lines up, at the cost of one comparison.

    Pods of one priority come like that, and comparisons call plugins. An item that has to go before others waits
    in a heap beside the line.
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
        """The first item, which stays."""
        if not self._line:
            return self._early.peek()
        first, early = next(iter(self._line.values())), self._early.peek()
        return early if early is not None and self._before(early, first) else first

    def ordered(self) -> list[T]:
        """All items in the order in which they would be popped; for people, since it sorts."""
        return in_order([*self._line.values(), *self._early.ordered()], self._before)

    def push(self, key: str, item: T) -> None:
        """Add the item, or put it in the place of the one with its key."""
        self._line.pop(key, None)
        last = next(reversed(self._line.values()), None)
        if key in self._early or (last is not None and self._before(item, last)):
            self._early.push(key, item)
        else:
            self._line[key] = item

    def pop(self) -> T | None:
        """Remove the first item."""
        if not self._line:
            return self._early.pop()
        early = self._early.peek()
        if early is not None and self._before(early, next(iter(self._line.values()))):
            return self._early.pop()
        return self._line.popitem(last=False)[1]

    def remove(self, key: str) -> T | None:
        item = self._line.pop(key, None)
        return self._early.remove(key) if item is None else item
