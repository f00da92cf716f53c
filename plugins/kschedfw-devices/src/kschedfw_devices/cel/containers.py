"""Lists, sets and optionals."""

from collections.abc import Callable
from functools import cmp_to_key, partial
from itertools import pairwise
from typing import Final

from kschedfw_devices.cel.functions import overload, overloads
from kschedfw_devices.cel.values import (
    MAX_LENGTH,
    NONE,
    Duration,
    EvaluationError,
    Map,
    Optional,
    Timestamp,
    UInt,
    Value,
    add,
    compare,
    equal_or,
    no_such_overload,
)

_COMPARABLE: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")


def contains(elements: list[Value], value: Value) -> bool:
    """Return whether an element equals `value`; elements that can't be compared with it don't."""
    return any(equal_or(element, value, otherwise=False) for element in elements)


# --- Lists, Kubernetes' own functions


@overload(*(f"<list({t})>.isSorted() -> bool" for t in _COMPARABLE))
def _is_sorted(elements: list[Value]) -> bool:
    return all(compare(a, b) <= 0 for a, b in pairwise(elements))


def _declare_sum(kind: str, zero: Value) -> None:
    @overload(f"<list({kind})>.sum() -> {kind}")
    def _(elements: list[Value]) -> Value:
        total = (
            zero if not elements or type(elements[0]) is type(zero) else _ZEROS.get(type(elements[0]), zero)
        )
        for element in elements:
            total = add(total, element)
        return total


_ZEROS: Final[dict[type, Value]] = {int: 0, UInt: UInt(0), float: 0.0, Duration: Duration(0)}
for _kind, _zero in (("int", 0), ("uint", UInt(0)), ("double", 0.0), ("duration", Duration(0))):
    _declare_sum(_kind, _zero)


def _extreme(name: str, sign: int, elements: list[Value]) -> Value:
    if not elements:
        raise EvaluationError(f"{name} called on empty list")
    best = elements[0]
    for element in elements[1:]:
        if compare(element, best) == sign:
            best = element
    return best


for _name, _sign in (("max", 1), ("min", -1)):
    overload(*(f"<list({t})>.{_name}() -> {t}" for t in _COMPARABLE))(partial(_extreme, _name, _sign))


@overload("<list(A)>.indexOf(A) -> int")
def _index_of(elements: list[Value], value: Value) -> int:
    return next((i for i, element in enumerate(elements) if equal_or(element, value, otherwise=False)), -1)


@overload("<list(A)>.lastIndexOf(A) -> int")
def _last_index_of(elements: list[Value], value: Value) -> int:
    return next(
        (i for i in reversed(range(len(elements))) if equal_or(elements[i], value, otherwise=False)), -1
    )


# --- Lists, the extended functions (version 3)


@overload("<list(T)>.slice(int, int) -> list(T)")
def _slice(elements: list[Value], start: int, end: int) -> list[Value]:
    where = f"cannot slice({start}, {end})"
    if start < 0 or end < 0:
        raise EvaluationError(f"{where}, negative indexes not supported")
    if start > end:
        raise EvaluationError(f"{where}, start index must be less than or equal to end index")
    if end > len(elements):
        raise EvaluationError(f"{where}, list is length {len(elements)}")
    return elements[start:end]


@overload("<list(list(T))>.flatten() -> list(T)", "<list(dyn)>.flatten(int) -> list(dyn)")
def _flatten(elements: list[Value], depth: int = 1) -> list[Value]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat: list[Value] = []
    for element in elements:
        if isinstance(element, list) and depth > 0:
            flat.extend(_flatten(element, depth - 1))
        else:
            flat.append(element)
    return flat


@overload(*(f"<list({t})>.sort() -> list({t})" for t in _COMPARABLE))
def _sort(elements: list[Value]) -> list[Value]:
    return _sort_by(elements, elements)


@overload(*(f"<list(T)>.@sortByAssociatedKeys(list({t})) -> list(T)" for t in _COMPARABLE))
def _sort_by(elements: list[Value], keys: list[Value]) -> list[Value]:
    if not elements:
        return elements
    if type(keys[0]) not in _ORDERED:
        raise EvaluationError("list elements must be comparable")
    if any(type(key) is not type(keys[0]) for key in keys):
        raise EvaluationError("list elements must have the same type")
    keys_in_order = cmp_to_key(compare)
    order = sorted(range(len(elements)), key=lambda i: keys_in_order(keys[i]))
    return [elements[i] for i in order]


_ORDERED: Final = frozenset({bool, int, UInt, float, str, bytes, Timestamp, Duration})


@overload("lists.range(int) -> list(int)")
def _range(count: int) -> list[int]:
    if count > MAX_LENGTH:
        raise EvaluationError(f"lists.range({count}): a list has at most {MAX_LENGTH} elements")
    return list(range(count))


def _distinct(elements: list[Value]) -> list[Value]:
    unique: list[Value] = []
    for element in elements:
        if not contains(unique, element):
            unique.append(element)
    return unique


_OF_LIST: Final[dict[str, Callable[[list[Value]], Value]]] = {
    "<list(T)>.reverse() -> list(T)": lambda elements: elements[::-1],
    "<list(T)>.distinct() -> list(T)": _distinct,
    "<list(T)>.first() -> optional(T)": lambda elements: Optional(elements[0]) if elements else NONE,
    "<list(T)>.last() -> optional(T)": lambda elements: Optional(elements[-1]) if elements else NONE,
}
overloads(_OF_LIST)


# --- Sets


def _sets_contains(elements: list[Value], subset: list[Value]) -> bool:
    return all(contains(elements, element) for element in subset)


_OF_SETS: Final[dict[str, Callable[[list[Value], list[Value]], bool]]] = {
    "sets.contains(list(T), list(T)) -> bool": _sets_contains,
    "sets.equivalent(list(T), list(T)) -> bool": lambda a, b: _sets_contains(a, b) and _sets_contains(b, a),
    "sets.intersects(list(T), list(T)) -> bool": lambda a, b: any(contains(b, element) for element in a),
}
overloads(_OF_SETS)


# --- Optionals


@overload("optional.ofNonZeroValue(V) -> optional(V)")
def _optional_of_non_zero(value: Value) -> Optional:
    zero = value is None
    if isinstance(value, (bool, int, float)):
        zero = value == 0
    elif isinstance(value, (str, bytes, list, Map)):
        zero = len(value) == 0
    elif isinstance(value, Duration):
        zero = value.nanoseconds == 0
    elif isinstance(value, Optional):
        zero = not value.present
    return NONE if zero else Optional(value)


_OF_OPTIONAL: Final[dict[str, Callable[..., Value]]] = {
    "optional.of(V) -> optional(V)": Optional,
    "optional.none() -> optional(V)": lambda: NONE,
    "<optional(V)>.value() -> V": Optional.value,
    "<optional(V)>.hasValue() -> bool": lambda optional: optional.present,
    "<optional(V)>.or(optional(V)) -> optional(V)": lambda optional, other: (
        optional if optional.present else other
    ),
    "<optional(V)>.orValue(V) -> V": lambda optional, other: optional.content if optional.present else other,
}
overloads(_OF_OPTIONAL)


@overload("optional.unwrap(list(optional(V))) -> list(V)", "<list(optional(V))>.unwrapOpt() -> list(V)")
def _unwrap(optionals: list[Value]) -> list[Value]:
    for optional in optionals:
        if not isinstance(optional, Optional):
            raise EvaluationError(f"value {optional} is not optional")
    return [optional.content for optional in optionals if optional.present]


def inserted(accumulator: Map, *arguments: Value) -> Map:
    """Add an entry, or those of another map, to the map that a macro is making; a key may come once only."""
    entries = [(arguments[0], arguments[1])] if len(arguments) == 2 else _entries(arguments[0])
    for key, value in entries:
        if accumulator.find(key)[1]:
            raise EvaluationError(f"insert failed: key {key} already exists")
        accumulator.insert(key, value)
    return accumulator


def _entries(value: Value) -> list[tuple[Value, Value]]:
    if not isinstance(value, Map):
        raise no_such_overload()
    return list(value.items())
