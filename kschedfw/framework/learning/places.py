"""Places in an object that a hook reads, and the values found there."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable
from enum import Enum
from operator import attrgetter, itemgetter
from typing import Any, Final, Literal, TypeAlias

from kschedfw.framework.nodes.reads import Reads

Step: TypeAlias = tuple[Literal["attribute", "key", "index", "length", "empty", "items", "kind"], Any]
"""A step from a value to a part of it: its kind, and the attribute's name, the key, or the index.

`length` is the number of items, `empty` whether there are none, `items` are a mapping's keys and values in their order,
and `kind` is the class of the value. Plain tuples, whose hash is computed in C: a view looks up a place at each first
read.
"""

Place: TypeAlias = tuple[Step, ...]
"""The way from the root, such as a pod, to a value in it. The empty place is the root itself."""

LENGTH: Final[Step] = ("length", None)
EMPTY: Final[Step] = ("empty", None)
ITEMS: Final[Step] = ("items", None)
KIND: Final[Step] = ("kind", None)


class Absent(Enum):
    """The class of `ABSENT`, so that no value of a plugin or of the API is equal to it."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "absent"


ABSENT: Final = Absent.ABSENT
"""What is found at a place that the object doesn't have: a missing key, or anything below a None."""

_OF_NODE_OBJECTS: Final = frozenset({"node", "name", "allocatable", "image_states"})
"""The attributes of a NodeInfo that only a change of the node object changes; see `NodeTable.update`."""


def reader(place: Place) -> Callable[[object], Hashable]:
    """Return a function from a root to the value at the place; ABSENT where there is none."""
    names = [argument for kind, argument in place if kind == "attribute"]
    # One call for all attributes at the beginning: this runs for each pod and each changed node.
    leading = next((at for at, step in enumerate(place) if step[0] != "attribute"), len(place))
    lead = attrgetter(".".join(names[:leading])) if leading else _itself
    steps = [_follower(step) for step in place[leading:]]

    def read(root: Any) -> Hashable:
        try:
            value = lead(root)
            for step in steps:
                value = step(value)
        # The property of a plugin's class may raise anything. Its hook has met the same failure, by `getattr`.
        except Exception:
            return ABSENT
        found: Hashable = value
        return found

    return read


def readers(places: Iterable[Place]) -> Callable[[object], tuple[Hashable, ...]]:
    """Return a function from a root to the values at all places, in their order."""
    each = [reader(place) for place in places]
    if len(each) == 1:
        (read_one,) = each
        return lambda root: (read_one(root),)
    return lambda root: tuple([read(root) for read in each])


def told_apart(places: Iterable[Place]) -> list[Place]:
    """Return the places without those whose values follow from another one, which is above them."""
    known = list(places)
    # The order of a mapping doesn't follow from a value above it, since mappings in another order are equal.
    wholes = {place for place in known if not place or place[-1][0] in ("attribute", "key", "index")}
    wholes |= {place[:-1] for place in known if place[-1:] == (ITEMS,)}
    return [
        place
        for place in known
        if place[-1:] == (ITEMS,) or not any(place[:end] in wholes for end in range(len(place)))
    ]


def reads_of_node(places: Iterable[Place]) -> Reads:
    """Return whether changes of pods on a node can change the values at these places of its NodeInfo."""
    for place in places:
        if not place or place[0][1] not in _OF_NODE_OBJECTS:
            return Reads.PODS
    return Reads.NODE


def _itself(value: Any) -> Any:
    return value


def _follower(step: Step) -> Callable[[Any], Any]:
    kind, argument = step
    match kind:
        case "attribute":
            return attrgetter(argument)
        case "key" | "index":
            return itemgetter(argument)
        case "length":
            return len
        case "empty":
            return operator.not_
        case "items":
            return lambda mapping: tuple(mapping.items())
        case "kind":
            return type
