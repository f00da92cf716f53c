"""The costs of calls at evaluation, in the units of cel-go and of Kubernetes' functions."""

import math
from collections.abc import Callable, Iterable
from typing import Final

import attrs

from kschedfw_devices.cel.formats import Format
from kschedfw_devices.cel.network import CIDR, IP
from kschedfw_devices.cel.strings import compiled_pattern
from kschedfw_devices.cel.syntax import Call
from kschedfw_devices.cel.values import Map, Optional, Value, size_of

LIST_COST: Final = 10
MAP_COST: Final = 30
PER_CHARACTER: Final = 0.1
PER_PATTERN_CHARACTER: Final = 0.25

_MATCHED_PER_STEP: Final = 300
"""Characters times instructions of a pattern that RE2 gets through in 3 µs, a step, where it is at its slowest."""
_ELEMENTS_PER_STEP: Final = 500
_COMPARED_PER_STEP: Final = 10
_MOST_NESTED: Final = 1_000_000


@attrs.frozen
class MeasuredCost:
    """A cost that depends on the arguments, or, with `by_result`, on the result (None if that is an error).

    `effort` returns the steps of a `Budget` for arguments with which a call takes far more work than it costs.
    """

    of: Callable[[tuple[Value, ...], Value], int]
    by_result: bool = False
    effort: Callable[[tuple[Value, ...]], float] | None = None


CallCost = int | MeasuredCost


def _scaled(size: float, factor: float = PER_CHARACTER) -> int:
    return math.ceil(size * factor)


def _size(value: Value) -> int:
    return len(value) if isinstance(value, (IP, CIDR)) else size_of(value)


def _traversal(value: Value) -> int:
    """Return the cost of reading all of a value."""
    if isinstance(value, str):
        # Cut off, here and below, as Kubernetes' `traversalCost` does; cel-go's costs are rounded up.
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
    # One more, as in cel-go: else an expensive pattern would cost nothing with an empty text.
    return _scaled(1 + _size(text)) * _scaled(_size(pattern), PER_PATTERN_CHARACTER)


def _matching(arguments: tuple[Value, ...]) -> float:
    """Return the steps of a match.

    RE2 may look at each character once for each instruction of the pattern, of which `{1000}` makes many.
    """
    text, pattern = arguments[:2]
    if not isinstance(text, str) or not isinstance(pattern, str):
        return 0
    return len(text) * compiled_pattern(pattern).programsize / _MATCHED_PER_STEP


def _matching_all(arguments: tuple[Value, ...]) -> float:
    """Return the steps of finding all matches: each one may look at all of the rest."""
    return _matching(arguments) * (1 + len(arguments[0])) if isinstance(arguments[0], str) else 0


def _nested(arguments: tuple[Value, ...]) -> float:
    """Return the steps for nested lists and maps, of which costs count only the outermost.

    `a == [b, b]` may be 2**40 of them.
    """
    count = 0
    stack = [each for each in arguments if isinstance(each, (list, Map, Optional))]
    while stack:
        value = stack.pop()
        if isinstance(value, Optional):
            inside: Iterable[Value] = (value.content,)
        else:
            inside = value if isinstance(value, list) else (content for _, content in value.items())
            count += len(value)
        if count > _MOST_NESTED:
            return math.inf
        stack.extend(each for each in inside if isinstance(each, (list, Map, Optional)))
    return count / _COMPARED_PER_STEP


def _nested_in_pairs(arguments: tuple[Value, ...]) -> float:
    """Return the steps for nested values in functions that compare each element of the first argument with others."""
    return _nested(arguments) * _size(arguments[0])


def _joining(arguments: tuple[Value, ...]) -> float:
    """Return the steps of joining two lists. Here lists are copied; cel-go doesn't copy them, so it charges nothing."""
    return sum(map(_size, arguments)) / _ELEMENTS_PER_STEP


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
_TRAVERSED: Final = MeasuredCost(lambda a, _: _traversal(a[0]), effort=_nested)
_PRODUCT: Final = MeasuredCost(lambda a, _: 1 + _size(a[0]) * _size(a[1]), effort=_nested_in_pairs)
_PATTERN: Final = MeasuredCost(_pattern, effort=_matching)
_JOIN: Final = MeasuredCost(lambda _, __: 1, effort=_joining)
_SMALLER: Final = MeasuredCost(_smaller, effort=_nested)


def _self_comparison(keys: Value) -> int:
    """Return the cost of comparing each element of a list with each other one."""
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
    "find": _PATTERN,
    "findAll": MeasuredCost(_pattern, effort=_matching_all),
    **dict.fromkeys(("_==_", "_!=_"), _SMALLER),
    "strings.quote": _FIRST,
    "format": MeasuredCost(lambda a, _: _scaled(_size(a[0])), effort=_nested),
    "join": MeasuredCost(lambda _, result: _scaled(_size(result) * 2), by_result=True),
    "validate": MeasuredCost(_validation),
    "containsIP": MeasuredCost(lambda a, _: _containment(a, 0)),
    "containsCIDR": MeasuredCost(lambda a, _: _containment(a, _scaled(_size(a[0])) + 1)),
    **dict.fromkeys(("sets.contains", "sets.intersects"), _PRODUCT),
    "sets.equivalent": MeasuredCost(lambda a, _: 1 + 2 * _size(a[0]) * _size(a[1]), effort=_nested_in_pairs),
    **dict.fromkeys(("slice", "reverse"), _RESULT_SIZE),
    **dict.fromkeys(
        ("distinct", "sort"), MeasuredCost(lambda a, _: _self_comparison(a[0]), effort=_nested_in_pairs)
    ),
    "@sortByAssociatedKeys": MeasuredCost(lambda a, _: _self_comparison(a[1])),
    "flatten": MeasuredCost(_flattening, effort=_nested),
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
    "_+_(list(A), list(A)) -> list(A)": _JOIN,
    "@in(A, list(A)) -> bool": MeasuredCost(lambda a, _: _size(a[1]), effort=_nested),
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
    """Return the cost of a call: a number, or a function of its arguments.

    Costs by overload count only where the checker left one overload: for other calls it isn't known yet.
    """
    found = _BY_NAME.get(node.function)
    if found is None and len(node.overloads) == 1:
        found = _BY_SIGNATURE.get(node.overloads[0].signature)
    elif found is None and node.function == "_+_":
        return _JOIN
    return 1 if found is None else found
