"""Places in an object that a hook reads, and the values found there."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from enum import Enum
from functools import lru_cache
from operator import attrgetter, itemgetter
from types import CodeType
from typing import Any, Final, Literal, TypeAlias, cast

from kschedfw.api.pod import Pod
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.plugin import IDLE

ReadStep: TypeAlias = tuple[Literal["attribute", "key", "each", "length", "empty", "items", "kind"], Any]
"""A step from a value to a part of it: its kind, and the attribute's name or the key.

`each` goes on from each item of a tuple; its argument tells whether the items are compared by value. `length` is the
number of items, `empty` whether there are none, `items` are a mapping's keys and values in their order, and `kind` is
the class of the value. Plain tuples, whose hash is computed in C: a view looks up a place at each first read.
"""

ReadPlace: TypeAlias = tuple[ReadStep, ...]
"""The way from the root, such as a pod, to a value in it. The empty place is the root itself."""

LENGTH: Final[ReadStep] = ("length", None)
EMPTY: Final[ReadStep] = ("empty", None)
ITEMS: Final[ReadStep] = ("items", None)
KIND: Final[ReadStep] = ("kind", None)

_MOST_PARTS: Final = 2
"""The number of parts of a tuple's items up to which these are compared. Of more, the tuple is compared as a whole:
that tells more pods apart, but takes a fraction of the time."""


class Absent(Enum):
    """The class of `ABSENT`, so that no value of a plugin or of the API is equal to it."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "absent"


ABSENT: Final = Absent.ABSENT
"""The value at a place that the object doesn't have: a missing key, or anything below a None."""

_OF_NODE_OBJECTS: Final = frozenset({"node", "name", "allocatable", "image_states"})
"""The attributes of a NodeInfo that only a change of the node object changes; see `NodeTable.update`."""


def reader(place: ReadPlace) -> Callable[[object], Hashable]:
    """Return a function from a root to the value at the place; ABSENT where there is none."""
    at = _first_each(place)
    if at >= 0:
        items, part = reader(place[:at]), reader(place[at + 1 :])

        def read_each(root: object) -> Hashable:
            found = items(root)
            # Item by item: what one of them lacks mustn't hide the others.
            return tuple([part(item) for item in found]) if isinstance(found, tuple) else ABSENT

        return read_each
    steps = [_follower(step) for step in place]

    def read(root: Any) -> Hashable:
        value = root
        try:
            for step in steps:
                value = step(value)
        # The property of a plugin's class may raise anything. Its hook has met the same failure, by `getattr`.
        except Exception:
            return ABSENT
        found: Hashable = value
        return found

    return read


def readers(places: Sequence[ReadPlace]) -> Callable[[object], tuple[Hashable, ...]]:
    """Return a function from a root to the values at all places, in their order."""
    constants: dict[str, object] = {"ABSENT": ABSENT}
    # An exception means that something isn't there, and has to be found out place by place.
    each = [reader(place) for place in places]
    constants["place_by_place"] = lambda root: tuple([read_one(root) for read_one in each])
    return _compiled(_values(places, constants), constants)


def signer(
    functions: Sequence[tuple[Callable[[Pod], Hashable], str]], groups: Sequence[Sequence[ReadPlace]]
) -> Callable[[Pod], tuple[Hashable, ...]]:
    """Return a function from a pod to the answers of the functions and what `readers` reads for each group.

    Each function comes with the field of a pod's spec without which it isn't called, and the answer is IDLE.
    """
    constants: dict[str, object] = {"ABSENT": ABSENT, "IDLE": IDLE}
    each = (*[function for function, _ in functions], *map(readers, groups))
    constants["place_by_place"] = lambda pod: tuple([answer(pod) for answer in each])
    calls = ""
    for index, (function, field) in enumerate(functions):
        constants[f"sign_{index}"] = function
        calls += f"sign_{index}(root)" + (f" if root.spec.{field} else IDLE," if field else ",")
    return _compiled(calls + "".join(f"{_values(places, constants)}," for places in groups), constants)


def _values(places: Sequence[ReadPlace], constants: dict[str, object]) -> str:
    """Return the source of a tuple of the values at these places of `root`."""
    parts = [f"{_expression(place, 'root', constants)}," for place in places]
    return f"({''.join(parts)})"


def _compiled(values: str, constants: dict[str, object]) -> Callable[[object], tuple[Any, ...]]:
    """Return a function of this source, or of `place_by_place` where that raises."""
    # Built as source since this runs for each pod and each changed node: a call for each step would take five times as
    # long. The names are those of attributes of API classes, and keys are constants of the function.
    exec(_code(values), constants)
    return cast("Callable[[object], tuple[Any, ...]]", constants["read"])


# Kept, since each scheduler learns the same of the same plugins: compiling was a fifth of a recorded decision's time.
@lru_cache(maxsize=1_000)
def _code(values: str) -> CodeType:
    function = f"def read(root):\n try: return ({values})\n except Exception: return place_by_place(root)"
    return compile(function, "<places>", "exec")


def _expression(place: ReadPlace, text: str, constants: dict[str, object]) -> str:
    """Return the source of an expression for the value at the place below `text`."""
    for index, (kind, argument) in enumerate(place):
        match kind:
            case "attribute":
                text = f"{text}.{argument}"
            case "key":
                name = f"key_{len(constants)}"
                constants[name] = argument
                is_last = place[index + 1 :] in ((), (KIND,))
                text = f"{text}.get({name}, ABSENT)" if is_last else f"{text}[{name}]"
            case "each":
                part = _expression(place[index + 1 :], "item", constants)
                # No call for a tuple without items; what has no items, such as None, still raises.
                return f"(tuple([{part} for item in {text}]) if {text} != () else ())"
            case "length":
                text = f"len({text})"
            case "empty":
                text = f"(not {text})"
            case "items":
                text = f"tuple({text}.items())"
            case "kind":
                text = f"type({text})"
    return text


def told_apart(places: Iterable[ReadPlace]) -> list[ReadPlace]:
    """Return as few places as tell as much apart: without those whose values follow from another one's."""
    known = dict.fromkeys(places)
    parts: dict[ReadPlace, int] = {}
    for place in known:
        at = _first_each(place)
        if at >= 0:
            # Objects that are compared by identity tell apart what has equal parts.
            parts[place[:at]] = parts.get(place[:at], 0) + (1 if place[at][1] else 0)
    known |= dict.fromkeys(of for of, number in parts.items() if number > _MOST_PARTS)
    # The order of a mapping doesn't follow from a value above it, since mappings in another order are equal.
    wholes = {place for place in known if not place or place[-1][0] in ("attribute", "key", "each")}
    wholes |= {place[:-1] for place in known if place[-1:] == (ITEMS,)}
    return [
        place
        for place in known
        if place[-1:] == (ITEMS,)
        or not (
            any(place[:end] in wholes for end in range(len(place)))
            # The values of each item tell how many there are.
            or (place[-1] in (LENGTH, EMPTY) and place[:-1] in parts)
        )
    ]


def _first_each(place: ReadPlace) -> int:
    return next((at for at, (kind, _) in enumerate(place) if kind == "each"), -1)


def reads_of_node(places: Iterable[ReadPlace]) -> Reads:
    """Return whether changes of pods on a node can change the values at these places of its NodeInfo."""
    for place in places:
        if not place or place[0][1] not in _OF_NODE_OBJECTS:
            return Reads.PODS
    return Reads.NODE


def _follower(step: ReadStep) -> Callable[[Any], Any]:
    kind, argument = step
    match kind:
        case "attribute":
            return attrgetter(argument)
        case "key":
            return itemgetter(argument)
        case "length":
            return len
        case "empty":
            return operator.not_
        case "items":
            return lambda mapping: tuple(mapping.items())
        case "kind":
            return type
        case "each":
            raise ValueError("each item is read by `reader`")
