"""What a call costs when it is evaluated, in the units of cel-go and of Kubernetes' functions."""

import math
from collections.abc import Callable
from typing import Final

import attrs

from kschedfw.plugins.dynamic_resources.cel.formats import Format
from kschedfw.plugins.dynamic_resources.cel.network import CIDR, IP
from kschedfw.plugins.dynamic_resources.cel.syntax import Call
from kschedfw.plugins.dynamic_resources.cel.values import Map, Value, size_of

__all__ = [
    "LIST_COST",
    "MAP_COST",
    "PER_CHARACTER",
    "PER_PATTERN_CHARACTER",
    "CallCost",
    "MeasuredCost",
    "call_cost",
]

LIST_COST: Final = 10
MAP_COST: Final = 30
PER_CHARACTER: Final = 0.1
PER_PATTERN_CHARACTER: Final = 0.25


@attrs.frozen
class MeasuredCost:
    """A cost that depends on the arguments, or, with `by_result`, on the result (None if that is an error)."""

    of: Callable[[tuple[Value, ...], Value], int]
    by_result: bool = False


CallCost = int | MeasuredCost


def _scaled(size: float, factor: float = PER_CHARACTER) -> int:
    return math.ceil(size * factor)


def _size(value: Value) -> int:
    return len(value) if isinstance(value, (IP, CIDR)) else size_of(value)


def _traversal(value: Value) -> int:
    """Give what it costs to look at all of a value."""
    if isinstance(value, str):
        return int(len(value.encode(errors="surrogatepass")) * PER_CHARACTER)
    if isinstance(value, bytes):
        return int(len(value) * PER_CHARACTER)
    if isinstance(value, list):
        return sum(map(_traversal, value))
    if isinstance(value, Map):
        return sum(_traversal(k) + _traversal(v) for k, v in value.items())
    return 1


def _smaller(arguments: tuple[Value, ...], _: Value) -> int:
    # What isn't sized counts as one: no need to look at both.
    size = 1 if type(arguments[0]) in _UNSIZED else min(_size(arguments[0]), _size(arguments[1]))
    return (size + 9) // 10


_UNSIZED: Final = frozenset({bool, int, float})


def _pattern(arguments: tuple[Value, ...], _: Value) -> int:
    text, pattern = arguments[:2]
    return _scaled(1 + _size(text)) * _scaled(_size(pattern), PER_PATTERN_CHARACTER)


def _validation(arguments: tuple[Value, ...], _: Value) -> int:
    format, text = arguments
    if not isinstance(format, Format):
        return 1
    return _scaled(1 + _size(text)) * _scaled(format.pattern_size, PER_PATTERN_CHARACTER)


def _containment(arguments: tuple[Value, ...], network: int) -> int:
    parsed = _scaled(_size(arguments[1])) if isinstance(arguments[1], str) else 0
    return _scaled(2 * _size(arguments[0])) + network + parsed


_FIRST: Final = MeasuredCost(lambda a, _: _scaled(_size(a[0])))
_FIRST_TWICE: Final = MeasuredCost(lambda a, _: _scaled(_size(a[0]) * 2))
_TRAVERSED: Final = MeasuredCost(lambda a, _: _traversal(a[0]))
_PRODUCT: Final = MeasuredCost(lambda a, _: 1 + _size(a[0]) * _size(a[1]))
_PATTERN: Final = MeasuredCost(_pattern)
_SMALLER: Final = MeasuredCost(_smaller)


def _self_comparison(keys: Value) -> int:
    """Give the cost of comparing each element of a list with each other one."""
    of_text = isinstance(keys, list) and keys and isinstance(keys[0], (str, bytes))
    return LIST_COST + 1 + int(_size(keys) ** 2 * (2 + PER_CHARACTER if of_text else 2))


def _flattening(arguments: tuple[Value, ...], _: Value) -> int:
    depth = arguments[1] if len(arguments) == 2 and isinstance(arguments[1], int) else 1
    return LIST_COST + 1 + _size(arguments[0]) * max(depth, 0)


_RESULT_SIZE: Final = MeasuredCost(lambda _, result: LIST_COST + 1 + _size(result), by_result=True)

_BY_NAME: Final[dict[str, MeasuredCost]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _TRAVERSED),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _FIRST),
    **dict.fromkeys(("isIP", "isCIDR", "cidr", "quantity", "isQuantity", "semver", "isSemver"), _FIRST),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _FIRST_TWICE),
    **dict.fromkeys(("find", "findAll"), _PATTERN),
    **dict.fromkeys(("_==_", "_!=_"), _SMALLER),
    **dict.fromkeys(("strings.quote", "format"), _FIRST),
    "join": MeasuredCost(lambda _, result: _scaled(_size(result) * 2), by_result=True),
    "validate": MeasuredCost(_validation),
    "containsIP": MeasuredCost(lambda a, _: _containment(a, 0)),
    "containsCIDR": MeasuredCost(lambda a, _: _containment(a, _scaled(_size(a[0])) + 1)),
    **dict.fromkeys(("sets.contains", "sets.intersects"), _PRODUCT),
    "sets.equivalent": MeasuredCost(lambda a, _: 1 + 2 * _size(a[0]) * _size(a[1])),
    **dict.fromkeys(("slice", "reverse"), _RESULT_SIZE),
    **dict.fromkeys(("distinct", "sort"), MeasuredCost(lambda a, _: _self_comparison(a[0]))),
    "@sortByAssociatedKeys": MeasuredCost(lambda a, _: _self_comparison(a[1])),
    "flatten": MeasuredCost(_flattening),
}

_BY_SIGNATURE: Final[dict[str, MeasuredCost]] = {
    **{
        f"_{sign}_({kind}, {kind}) -> bool": _SMALLER
        for sign in ("<", "<=", ">", ">=")
        for kind in ("string", "bytes")
    },
    **{
        f"_+_({kind}, {kind}) -> {kind}": MeasuredCost(lambda a, _: _scaled(_size(a[0]) + _size(a[1])))
        for kind in ("string", "bytes")
    },
    "@in(A, list(A)) -> bool": MeasuredCost(lambda a, _: _size(a[1])),
    "<string>.startsWith(string) -> bool": _FIRST,
    "<string>.endsWith(string) -> bool": _FIRST,
    "bytes(string) -> bytes": _FIRST,
    "string(bytes) -> string": _FIRST,
    "<string>.matches(string) -> bool": _PATTERN,
    "<string>.contains(string) -> bool": MeasuredCost(
        lambda a, _: _scaled(_size(a[0])) * _scaled(_size(a[1]))
    ),
    "ip(string) -> ip": _FIRST,
    "lists.range(int) -> list(int)": _RESULT_SIZE,
}


def call_cost(node: Call) -> CallCost:
    """Give the cost of a call: a number, or how to compute it.

    What depends on the overload counts only where the checker left one: of other calls it isn't known yet.
    """
    found = _BY_NAME.get(node.function)
    if found is None and len(node.overloads) == 1:
        found = _BY_SIGNATURE.get(node.overloads[0].signature)
    return 1 if found is None else found
