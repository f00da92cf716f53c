"""Indexes of selectors by labels, and of labels by selectors.

Most selectors ask for a label with one of some values, and items are indexed by such labels. The place `None`
is for items that any labels may match.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from typing import Generic, TypeVar

from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.selectors import Operator, Selector

_MOST_KEYS = 64

ItemT = TypeVar("ItemT")

_IndexKey = tuple[str, str] | None


class AskedLabels:
    """The label keys that any selector has asked for so far.

    Pods that differ only in other labels, such as a hash or an index per pod, are in one class. Once more than 64
    keys were asked for, all labels count.
    """

    __slots__ = ("_keys",)

    def __init__(self) -> None:
        self._keys: dict[str, None] | None = {}

    def ask_for(self, keys: Set[str]) -> bool:
        """Add the label keys that a selector asks for. Return whether `of` gives different results from now on."""
        known = self._keys
        if known is None or keys <= known.keys():
            return False
        known.update(dict.fromkeys(keys))
        if len(known) > _MOST_KEYS:
            self._keys = None
        return True

    def of(self, labels: FrozenDict[str, str]) -> FrozenDict[str, str]:
        """Return the part of the labels whose keys were asked for."""
        keys = self._keys
        return labels if keys is None else FrozenDict([(key, labels[key]) for key in keys if key in labels])

    def key_of(self, labels: FrozenDict[str, str]) -> Hashable:
        """Return what is equal for labels with the same part, and found faster. Valid until new keys are asked for."""
        keys = self._keys
        return labels if keys is None else tuple(map(labels.get, keys))


class _ItemsByKey(Generic[ItemT]):
    __slots__ = ("_at",)

    def __init__(self) -> None:
        self._at: dict[_IndexKey, dict[ItemT, None]] = {}  # a dict, not a set, to keep the order

    def _put(self, item: ItemT, places: Iterable[_IndexKey]) -> None:
        for place in places:
            self._at.setdefault(place, {})[item] = None

    def _take(self, item: ItemT, places: Iterable[_IndexKey]) -> None:
        for place in places:
            items = self._at[place]
            del items[item]
            if not items:
                del self._at[place]

    def _find(self, places: Iterable[_IndexKey]) -> list[ItemT]:
        return [item for place in places for item in self._at.get(place, ())] if self._at else []


class SelectorIndex(_ItemsByKey[ItemT]):
    """Items with a selector each, to be found by labels."""

    def add(self, selector: Selector, item: ItemT) -> None:
        self._put(item, _wanted(selector))

    def discard(self, selector: Selector, item: ItemT) -> None:
        self._take(item, _wanted(selector))

    def candidates(self, labels: Mapping[str, str]) -> Sequence[ItemT]:
        """Return every item whose selector matches the labels, once, and some whose selector doesn't."""
        return self._find(_offered(labels))


class LabelIndex(_ItemsByKey[ItemT]):
    """Items with labels, to be found by a selector."""

    def add(self, labels: Mapping[str, str], item: ItemT) -> None:
        self._put(item, _offered(labels))

    def discard(self, labels: Mapping[str, str], item: ItemT) -> None:
        self._take(item, _offered(labels))

    def candidates(self, selector: Selector) -> Sequence[ItemT]:
        """Return every item whose labels the selector matches, once, and some whose labels it doesn't."""
        return self._find(_wanted(selector))


def _wanted(selector: Selector) -> Iterable[_IndexKey]:
    """Return labels such that every match of the selector has exactly one of them."""
    if selector.nothing:
        return ()
    for requirement in selector.requirements:
        if requirement.operator is Operator.IN:
            key = requirement.key
            return {(key, value): None for value in requirement.values}
    return (None,)


def _offered(labels: Mapping[str, str]) -> Iterable[_IndexKey]:
    return (None, *labels.items())
