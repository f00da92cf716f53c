"""A dict with a maximal size, for caches."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedDict(OrderedDict[K, V]):
    """A dict that holds at most `limit` items: adding one more removes the oldest.

    The oldest item is the one whose key was added first; reading it or replacing its value doesn't change that.

    Raises:
        ValueError: the limit is below 1.
    """

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"limit must be 1 or more, not {limit}")
        super().__init__()
        self.limit: Final = limit

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        if len(self) > self.limit:
            self.popitem(last=False)
