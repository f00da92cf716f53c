"""The order in which Go's `sort.Slice` leaves a list.

kube-scheduler sorts victims with it, and it isn't stable: among more than 12, equal ones change places. Which of them
are evicted follows from where they end up. The places depend on nothing but the list, so they can be computed.

The algorithm is pattern-defeating quicksort (Orson R. L. Peters, 2021), with the limits and the pseudo-random numbers
of Go 1.19 and later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from kschedfw.api.records import define

T = TypeVar("T")

_SHORT = 12
"""Up to this length the sort is an insertion sort, which is stable."""
_MEDIAN_OF_MEDIANS = 50
"""From this length on, the pivot is the median of three medians of neighbours."""
_ALL_DESCEND = 12
"""The number of exchanges while the pivot is sought if all that was compared is in descending order."""
_REPAIRS = 5
_WORTH_REPAIRING = 50


def go_sorted(items: Iterable[T], less: Callable[[T, T], bool]) -> list[T]:
    """Return the items sorted, with equal ones in the order in which Go leaves them.

    `less` may contradict itself, as that of pods without a start time does.
    """
    result = list(items)
    _Sort(result, less).sort(0, len(result), len(result).bit_length())
    return result


@define(eq=False)
class _Sort(Generic[T]):
    """Sorts a list in place. A stretch of it is given by the index of its first item, and the index behind its last."""

    _items: list[T]
    _less: Callable[[T, T], bool]

    def sort(self, begin: int, end: int, failures: int) -> None:
        """Sort a stretch. After so many `failures`, which are pivots far from the middle, go on with heapsort."""
        is_balanced = was_parted = True
        while (length := end - begin) > _SHORT:
            if not failures:
                self._sort_as_heap(begin, end)
                return
            if not is_balanced:
                self._disturb(begin, end)
                failures -= 1
            pivot, exchanges = self._choose_pivot(begin, end)
            if exchanges == _ALL_DESCEND:
                self._items[begin:end] = reversed(self._items[begin:end])
                pivot, exchanges = begin + end - 1 - pivot, 0
            if is_balanced and was_parted and not exchanges and self._repair(begin, end):
                return
            # The item before the stretch was a pivot, and is above nothing in the stretch. If it isn't less
            # than the pivot, the pivot is among the least.
            if begin and not self._is_less(begin - 1, pivot):
                begin = self._part_equal(begin, end, pivot)
                continue
            middle, was_parted = self._part(begin, end, pivot)
            left, right = middle - begin, end - middle
            is_balanced = min(left, right) >= length // 8
            # The shorter part by recursion, the longer one by the loop: the depth grows with the logarithm of
            # the length.
            if left < right:
                self.sort(begin, middle, failures)
                begin = middle + 1
            else:
                self.sort(middle + 1, end, failures)
                end = middle
        for index in range(begin + 1, end):
            self._move_down(index, begin)

    def _is_less(self, one: int, other: int) -> bool:
        return self._less(self._items[one], self._items[other])

    def _swap(self, one: int, other: int) -> None:
        items = self._items
        items[one], items[other] = items[other], items[one]

    def _move_down(self, index: int, first: int) -> None:
        """Move an item towards `first` until the one before it isn't greater."""
        while index > first and self._is_less(index, index - 1):
            self._swap(index, index - 1)
            index -= 1

    def _choose_pivot(self, begin: int, end: int) -> tuple[int, int]:
        """Return the pivot's index, and how many of the items that were compared had to change places."""
        exchanges = 0

        def median(one: int, two: int, three: int) -> int:
            nonlocal exchanges
            if self._is_less(two, one):
                one, two, exchanges = two, one, exchanges + 1
            if self._is_less(three, two):
                two, exchanges = three, exchanges + 1
            if self._is_less(two, one):
                two, exchanges = one, exchanges + 1
            return two

        quarter = (end - begin) // 4
        candidates = [begin + quarter, begin + 2 * quarter, begin + 3 * quarter]
        if end - begin >= _MEDIAN_OF_MEDIANS:
            candidates = [median(each - 1, each, each + 1) for each in candidates]
        return median(*candidates), exchanges

    def _repair(self, begin: int, end: int) -> bool:
        """Move a few items of a stretch that is nearly sorted. Return whether it is sorted."""
        index = begin + 1
        for _ in range(_REPAIRS):
            while index < end and not self._is_less(index, index - 1):
                index += 1
            if index == end:
                return True
            if end - begin < _WORTH_REPAIRING:
                return False
            self._swap(index, index - 1)
            if index - begin >= 2:
                # Not from `begin`: Go goes on to the beginning of the list, which matters if `less` contradicts itself.
                self._move_down(index - 1, 0)
            for above in range(index + 1, end):
                if not self._is_less(above, above - 1):
                    break
                self._swap(above, above - 1)
        return False

    def _part(self, begin: int, end: int, pivot: int) -> tuple[int, bool]:
        """Put lesser items before the pivot, others behind it. Return its index, and whether all were there already."""
        self._swap(begin, pivot)
        low, high, exchanges = begin + 1, end - 1, 0
        while True:
            while low <= high and self._is_less(low, begin):
                low += 1
            while low <= high and not self._is_less(high, begin):
                high -= 1
            if low > high:
                self._swap(high, begin)
                return high, not exchanges
            self._swap(low, high)
            low, high, exchanges = low + 1, high - 1, exchanges + 1

    def _part_equal(self, begin: int, end: int, pivot: int) -> int:
        """Put the items that equal the pivot, the least of the stretch, before the others. Return where these begin."""
        self._swap(begin, pivot)
        low, high = begin + 1, end - 1
        while True:
            while low <= high and not self._is_less(begin, low):
                low += 1
            while low <= high and self._is_less(begin, high):
                high -= 1
            if low > high:
                return low
            self._swap(low, high)
            low, high = low + 1, high - 1

    def _disturb(self, begin: int, end: int) -> None:
        """Exchange the three items in the middle for others, so that a pattern that leads to bad pivots is broken."""
        length = number = end - begin
        middle = begin + length // 4 * 2
        for index in (middle - 1, middle, middle + 1):
            # Go's xorshift on an unsigned number of 64 bits, which begins with the length.
            number ^= number << 13 & 0xFFFF_FFFF_FFFF_FFFF
            number ^= number >> 7
            number ^= number << 17 & 0xFFFF_FFFF_FFFF_FFFF
            other = number & (1 << length.bit_length()) - 1
            self._swap(index, begin + (other - length if other >= length else other))

    def _sort_as_heap(self, begin: int, end: int) -> None:
        length = end - begin
        for root in reversed(range((length + 1) // 2)):
            self._sift_down(begin, root, length)
        for last in reversed(range(length)):
            self._swap(begin, begin + last)
            self._sift_down(begin, 0, last)

    def _sift_down(self, begin: int, root: int, length: int) -> None:
        while (child := 2 * root + 1) < length:
            if child + 1 < length and self._is_less(begin + child, begin + child + 1):
                child += 1
            if not self._is_less(begin + root, begin + child):
                return
            self._swap(begin + root, begin + child)
            root = child
