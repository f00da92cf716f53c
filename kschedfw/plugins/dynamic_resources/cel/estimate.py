"""The static estimate of what an expression costs at most, by which the API server refuses selectors.

It follows every value's greatest size through the expression: of literals, of what `device` can hold at most, of
results of functions. What has no bound counts as 2⁶⁴ − 1. All sums and products stop there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

import attrs

from kschedfw.plugins.dynamic_resources.cel.call_costs import (
    LIST_COST,
    MAP_COST,
    PER_CHARACTER,
    PER_PATTERN_CHARACTER,
)
from kschedfw.plugins.dynamic_resources.cel.syntax import (
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
)
from kschedfw.plugins.dynamic_resources.cel.types import Overload, Type

__all__ = ["estimated_cost"]

_MAX: Final = 2**64 - 1


def _sum(a: int, b: int) -> int:
    return min(a + b, _MAX)


def _product(a: int, b: int) -> int:
    return min(a * b, _MAX)


def _scaled(size: int, factor: float = PER_CHARACTER) -> int:
    return min(math.ceil(float(size) * factor), _MAX)


@attrs.frozen
class _Size:
    least: int
    most: int

    def union(self, other: _Size) -> _Size:
        return _Size(min(self.least, other.least), max(self.most, other.most))

    def plus(self, other: _Size) -> _Size:
        return _Size(_sum(self.least, other.least), _sum(self.most, other.most))


_UNKNOWN: Final = _Size(0, _MAX)


@attrs.frozen
class _Entries:
    """The sizes of the keys (of a list: indices) and of the values of a container."""

    keys: _Size
    values: _Size

    def union(self, other: _Entries | None) -> _Entries | None:
        return other and _Entries(self.keys.union(other.keys), self.values.union(other.values))


@attrs.frozen
class _Shape:
    """What is known of a part of `device`: its greatest size, and the shapes in it."""

    most: int
    fields: Mapping[str, _Shape] = attrs.field(factory=dict)
    keys: _Shape | None = None
    values: _Shape | None = None
    any_field: bool = False
    """Fields of any name have the shape of `values`."""


# The limits of resource.k8s.io/v1: characters of domains, identifiers, driver names and values; entries of the maps.
_DOMAIN, _IDENTIFIER, _DRIVER, _VALUE, _ENTRIES = 63, 32, 63, 64, 32


def _by_domain(values: _Shape, *, any_field: bool) -> _Shape:
    inner = _Shape(_ENTRIES, keys=_Shape(_IDENTIFIER), values=values, any_field=any_field)
    return _Shape(_ENTRIES, keys=_Shape(_DOMAIN), values=inner)


_DEVICE: Final = _Shape(
    0,
    fields={
        "driver": _Shape(_DRIVER),
        "allowMultipleAllocations": _Shape(1),
        "attributes": _by_domain(_Shape(_VALUE), any_field=True),
        "capacity": _by_domain(_Shape(0), any_field=False),
    },
)
_SCALARS: Final = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})


@attrs.frozen
class _Variable:
    shape: _Shape | None
    size: _Size | None
    entries: _Entries | None


def estimated_cost(tree: Node) -> int:
    """Give what one evaluation of a checked expression costs at most, up to 2⁶⁴ − 1."""
    return _Estimator().cost(tree)


class _Estimator:
    def __init__(self) -> None:
        self._variables: dict[str, list[_Variable]] = {"device": [_Variable(_DEVICE, None, None)]}
        self._sizes: dict[int, _Size] = {}
        self._entries: dict[int, _Entries] = {}
        self._shapes: dict[int, _Shape | None] = {}

    # --- Sizes

    def shape(self, node: Node) -> _Shape | None:
        if isinstance(node, Ident):
            variable = self._variable(node)
            return None if variable is None else variable.shape
        return self._shapes.get(id(node))

    def _variable(self, node: Node) -> _Variable | None:
        if not isinstance(node, Ident):
            return None
        stack = self._variables.get(node.name.removeprefix("."))
        return stack[-1] if stack else None

    def known_size(self, node: Node) -> _Size | None:
        if id(node) in self._sizes:
            return self._sizes[id(node)]
        match node:
            case Literal(value=str() | bytes() as text):
                return _Size(len(text), len(text))
            case Literal():
                return _Size(1, 1)
            case ListLiteral(elements=parts) | MapLiteral(entries=parts):
                return _Size(len(parts), len(parts))
        shape = self.shape(node)
        if shape is not None:
            return _Size(0, shape.most)
        if node.type is not None and _is_scalar(node.type):
            return _Size(1, 1)
        variable = self._variable(node)
        return None if variable is None else variable.size

    def size(self, node: Node) -> _Size:
        return self.known_size(node) or _UNKNOWN

    def entries(self, node: Node) -> _Entries | None:
        if id(node) in self._entries:
            return self._entries[id(node)]
        variable = self._variable(node)
        return None if variable is None else variable.entries

    def element(self, node: Node) -> tuple[Type, _Size] | None:
        """Give the type and the size of a list's elements; None: it is no list."""
        if node.type is None or not node.type.parameters:
            return None
        shape = self.shape(node)
        values = shape and shape.values
        return node.type.parameters[0], _Size(0, values.most) if values else _UNKNOWN

    def keep(self, node: Node, size: _Size | None, entries: _Entries | None) -> None:
        if size is not None:
            self._sizes[id(node)] = size
        if entries is not None:
            self._entries[id(node)] = entries

    # --- Costs

    def cost(self, node: Node) -> int:
        match node:
            case Literal():
                return 0
            case Ident():
                return 1
            case Select():
                return self._selection(node)
            case Call():
                return self._call(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
        assert isinstance(node, Comprehension)
        return self._binding(node) if node.is_binding else self._comprehension(node)

    def _selection(self, node: Select) -> int:
        if node.operand.type is None:  # the name of a type
            return 1
        cost = self.cost(node.operand)
        if node.test:
            return cost
        if node.optional:
            return _sum(cost, 1)
        shape = self.shape(node.operand)
        if shape is not None:
            self._shapes[id(node)] = shape.values if shape.any_field else shape.fields.get(node.field)
        has_cost = node.operand.type.name == "map" or node.operand.type.name.startswith("kubernetes.")
        return _sum(cost, 1) if has_cost else cost

    def _list(self, node: ListLiteral) -> int:
        cost, values = LIST_COST, _Size(_MAX if node.elements else 0, 0)
        for element in node.elements:
            cost = _sum(cost, self.cost(element))
            values = values.union(self.size(element))
        self.keep(node, None, _Entries(_Size(1, 1), values))
        return cost

    def _map(self, node: MapLiteral) -> int:
        least = _MAX if node.entries else 0
        cost, keys, values = MAP_COST, _Size(least, 0), _Size(least, 0)
        for key, value in node.entries:
            cost = _sum(_sum(cost, self.cost(key)), self.cost(value))
            keys, values = keys.union(self.size(key)), values.union(self.size(value))
        self.keep(node, None, _Entries(keys, values))
        return cost

    def _call(self, node: Call) -> int:
        costs = [self.cost(operand) for operand in node.operands]
        total = 0
        for cost in costs:
            total = _sum(total, cost)
        if node.function == "dyn":
            self.keep(node, self.known_size(node.arguments[0]), self.entries(node.arguments[0]))
            return _sum(total, 1)
        if node.function in ("_&&_", "_||_"):
            return total
        if node.function == "_?_:_":
            return self._conditional(node, costs)
        most = 0
        size: _Size | None = None
        for overload in node.overloads:
            cost, result = self._overload(node, overload)
            most = max(most, cost)
            if result is not None:
                size = result if size is None else size.union(result)
        self._follow_index(node)
        self.keep(node, size or self.known_size(node), None)
        return _sum(total, most)

    def _conditional(self, node: Call, costs: list[int]) -> int:
        _, then, otherwise = node.arguments
        entries = self.entries(then)
        self.keep(
            node,
            self.size(then).union(self.size(otherwise)),
            entries and entries.union(self.entries(otherwise)),
        )
        return _sum(costs[0], max(costs[1:]))

    def _follow_index(self, node: Call) -> None:
        if node.function != "_[_]":
            return
        container = node.arguments[0]
        shape = self.shape(container)
        if shape is not None:
            self._shapes[id(node)] = shape.values
        entries = self.entries(container)
        if entries is not None:
            self.keep(node, entries.values, None)

    def _overload(self, node: Call, overload: Overload) -> tuple[int, _Size | None]:
        """Give the greatest cost of one overload, without its arguments, and the size of its result if known."""
        if node.function in ("_==_", "_!=_"):
            return self._equality(node), None
        by_name = _BY_NAME.get(node.function)
        if by_name is not None:
            return by_name(self, node)
        by_signature = _BY_SIGNATURE.get(overload.signature)
        return (1, None) if by_signature is None else by_signature(self, node)

    def _equality(self, node: Call) -> int:
        a, b = node.arguments
        if node.function == "_==_" and a.type is not None and a.type == b.type:
            if a.type.name in ("net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"):
                return 1
            if a.type.name == "kubernetes.NamedFormat":
                return _scaled(64)
            if a.type.name == "kubernetes.URL":
                size = self.known_size(b)
                return _scaled(size.most if size else 1)
        return _scaled(min(self.size(a).most, self.size(b).most))

    def _binding(self, node: Comprehension) -> int:
        cost = _sum(self.cost(node.range), self.cost(node.initial))
        stack = self._variables.setdefault(node.accumulator, [])
        stack.append(
            _Variable(self.shape(node.initial), self.known_size(node.initial), self.entries(node.initial))
        )
        cost = _sum(cost, self.cost(node.result))
        self.keep(node, self.known_size(node.result), self.entries(node.result))
        stack.pop()
        return cost

    def _comprehension(self, node: Comprehension) -> int:
        cost = _sum(self.cost(node.range), self.cost(node.initial))
        scope = {node.accumulator: _Variable(None, self.known_size(node.initial), self.entries(node.initial))}
        scope |= self._iterated(node)
        for name, variable in scope.items():
            self._variables.setdefault(name, []).append(variable)
        loop = _sum(self.cost(node.condition), self.cost(node.step))
        for name in scope:
            if name != node.accumulator:
                self._variables[name].pop()
        cost = _sum(cost, self.cost(node.result))
        self._variables[node.accumulator].pop()
        count = self.size(node.range)
        if isinstance(node.initial, Literal):
            self.keep(node, self.known_size(node.initial), None)
        elif isinstance(node.initial, (ListLiteral, MapLiteral)):
            self.keep(node, count, self.entries(node.step))
        return _sum(cost, _product(count.most, loop))

    def _iterated(self, node: Comprehension) -> dict[str, _Variable]:
        shape, entries = self.shape(node.range), self.entries(node.range)
        keys = _Variable(shape and shape.keys, None if entries is None else entries.keys, None)
        values = _Variable(shape and shape.values, None if entries is None else entries.values, None)
        if node.variable2 is not None:
            return {node.variable: keys, node.variable2: values}
        is_list = node.range.type is not None and node.range.type.name == "list"
        return {node.variable: values if is_list else keys}


def _is_scalar(type: Type) -> bool:
    if type.name == "optional_type":
        return _is_scalar(type.parameters[0])
    return type.name in _SCALARS


# --- Functions

_Estimate = Callable[[_Estimator, Call], tuple[int, _Size | None]]


def _first_operand(estimator: _Estimator, node: Call) -> _Size:
    return estimator.size(node.operands[0])


def _traversal(estimator: _Estimator, node: Call) -> tuple[int, _Size | None]:
    size = _first_operand(estimator, node).most
    element = estimator.element(node.operands[0])
    if element is None:
        return _scaled(size), None
    type, element_size = element
    each = _sum(1, _scaled(element_size.most)) if type.name in ("string", "bytes") else 1
    return _product(size, each), None


def _read(estimator: _Estimator, node: Call) -> tuple[int, _Size | None]:
    return _scaled(_first_operand(estimator, node).most), None


def _read_twice(estimator: _Estimator, node: Call) -> tuple[int, _Size | None]:
    return _scaled(_first_operand(estimator, node).most, 2 * PER_CHARACTER), None


def _copied(estimator: _Estimator, node: Call) -> tuple[int, _Size | None]:
    size = _first_operand(estimator, node)
    return _scaled(size.most), size


def _replace(estimator: _Estimator, node: Call) -> tuple[int, _Size | None]:
    size, old, new = (estimator.size(operand) for operand in node.operands[:3])
    count, kept = 0, size.most
    if old.least == 0:
        count = _sum(size.most, 1)
    elif new.most > old.least:
        count, kept = math.ceil(float(size.most) / float(old.least)), 0
    least_count, least_kept = 0, size.least
    if old.most == 0:
        least_count = _sum(size.least, 1)
    elif old.most > new.least:
        least_count, least_kept = math.ceil(float(size.least) / float(old.most)), 0
    least = _sum(_product(least_count, new.least), least_kept)
    most = _sum(_product(min(count, _MAX), new.most), kept)
    return _scaled(size.most, 2 * PER_CHARACTER), _Size(least, most)


def _split(estimator: _Estimator, node: Call) -> tuple[int, _Size | None]:
    size = _first_operand(estimator, node).most
    limit = node.arguments[1] if len(node.arguments) > 1 else None
    parts = limit.value % 2**64 if isinstance(limit, Literal) and type(limit.value) is int else size
    return _scaled(size, 2 * PER_CHARACTER), _Size(0, parts)


def _join(estimator: _Estimator, node: Call) -> tuple[int, _Size | None]:
    count = _first_operand(estimator, node)
    element = estimator.element(node.operands[0])
    size = _Size(0, 0)
    if element is not None:
        size = _Size(_product(count.least, element[1].least), _product(count.most, element[1].most))
    if node.arguments:
        separator = estimator.size(node.arguments[0])
        size = size.plus(
            _Size(
                _product(separator.least, max(count.least - 1, 0)),
                _product(separator.most, max(count.most - 1, 0)),
            )
        )
    return _scaled(size.most), size


def _pattern(estimator: _Estimator, node: Call) -> int:
    text, pattern = estimator.size(node.operands[0]).most, estimator.size(node.operands[1]).most
    return _product(_scaled(_sum(text, 1)), _scaled(pattern, PER_PATTERN_CHARACTER))


def _found(estimator: _Estimator, node: Call) -> tuple[int, _Size | None]:
    return _pattern(estimator, node), _Size(0, _first_operand(estimator, node).most)


_LONGEST_PATTERN: Final = 128  # of the formats of names
_ADDRESS_BYTES: Final = 16


def _validate(estimator: _Estimator, node: Call) -> tuple[int, _Size | None]:
    text = estimator.size(node.arguments[0]).most
    return _scaled(_scaled(text), _LONGEST_PATTERN * PER_PATTERN_CHARACTER), None


def _containment(estimator: _Estimator, node: Call) -> tuple[int, _Size | None]:
    cost = _scaled(2 * _ADDRESS_BYTES)
    if node.function == "containsCIDR":
        cost += _scaled(_ADDRESS_BYTES) + 1
    argument = node.arguments[0]
    if argument.type is None or argument.type.name not in ("net.IP", "net.CIDR"):
        cost = _sum(cost, _scaled(estimator.size(argument).most))
    return cost, None


def _allocating(factor: float, size: int, result: _Size) -> tuple[int, _Size | None]:
    return _sum(_scaled(size, factor), LIST_COST + 1), result


def _literal_int(node: Node, default: int) -> int:
    if isinstance(node, Literal) and type(node.value) is int:
        return max(node.value, 0)
    return default


def _slice(estimator: _Estimator, node: Call) -> tuple[int, _Size | None]:
    start = _literal_int(node.arguments[0], 0)
    length = (_literal_int(node.arguments[1], _first_operand(estimator, node).most) - start) % 2**64
    return _allocating(1, length, _Size(length, length))


def _range(_: _Estimator, node: Call) -> tuple[int, _Size | None]:
    length = _literal_int(node.arguments[0], _MAX)
    return _allocating(1, length, _Size(length, length))


def _reverse(estimator: _Estimator, node: Call) -> tuple[int, _Size | None]:
    size = _first_operand(estimator, node)
    return _allocating(1, size.most, size)


def _flatten(estimator: _Estimator, node: Call) -> tuple[int, _Size | None]:
    size = _first_operand(estimator, node)
    depth = _literal_int(node.arguments[0], _MAX) if node.arguments else 1
    return _allocating(float(depth), size.most, size)


def _compared(estimator: _Estimator, node: Call) -> tuple[int, _Size | None]:
    """Estimate `distinct` and the sorts, which compare each element with each."""
    keys = node.operands[-1]
    size = estimator.size(keys)
    element = estimator.element(keys)
    of_text = node.function != "distinct" and element is not None and element[0].name in ("string", "bytes")
    square = _Size(_product(size.least, size.least), _product(size.most, size.most))
    return _allocating(2 + PER_CHARACTER if of_text else 2, square.most, square)


def _sets(factor: int) -> _Estimate:
    def estimate(estimator: _Estimator, node: Call) -> tuple[int, _Size | None]:
        a, b = (estimator.size(argument).most for argument in node.arguments)
        return _sum(_scaled(_product(a, b), factor), 1), None

    return estimate


def _ordered_texts(estimator: _Estimator, node: Call) -> tuple[int, _Size | None]:
    return _scaled(min(estimator.size(operand).most for operand in node.operands)), None


def _concatenated(estimator: _Estimator, node: Call) -> tuple[int, _Size | None]:
    a, b = (estimator.size(operand) for operand in node.operands)
    return _scaled(a.plus(b).most), a.plus(b)


def _appended(estimator: _Estimator, node: Call) -> tuple[int, _Size | None]:
    left, right = node.operands
    entries = estimator.entries(left)
    estimator.keep(node, None, entries and entries.union(estimator.entries(right)))
    return 1, estimator.size(left).plus(estimator.size(right))


def _in_list(estimator: _Estimator, node: Call) -> tuple[int, _Size | None]:
    return estimator.size(node.arguments[1]).most, None


def _affix(estimator: _Estimator, node: Call) -> tuple[int, _Size | None]:
    return _scaled(estimator.size(node.arguments[0]).most), None


def _contains(estimator: _Estimator, node: Call) -> tuple[int, _Size | None]:
    text, part = (estimator.size(operand).most for operand in node.operands)
    return _product(_scaled(text), _scaled(part)), None


def _resized(least: Callable[[int], int], most: Callable[[int], int]) -> _Estimate:
    def estimate(estimator: _Estimator, node: Call) -> tuple[int, _Size | None]:
        size = estimator.size(node.arguments[0])
        return _scaled(size.most), _Size(min(least(size.least), _MAX), min(most(size.most), _MAX))

    return estimate


_BY_NAME: Final[dict[str, _Estimate]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _traversal),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _copied),
    **dict.fromkeys(
        ("isIP", "isCIDR", "cidr", "quantity", "isQuantity", "semver", "isSemver", "format"), _read
    ),
    "ip.isCanonical": _read_twice,
    "replace": _replace,
    "split": _split,
    "join": _join,
    "find": _found,
    "findAll": _found,
    "validate": _validate,
    "containsIP": _containment,
    "containsCIDR": _containment,
    "slice": _slice,
    "lists.range": _range,
    "reverse": _reverse,
    "flatten": _flatten,
    "distinct": _compared,
    "sort": _compared,
    "@sortByAssociatedKeys": _compared,
    "sets.contains": _sets(1),
    "sets.intersects": _sets(1),
    "sets.equivalent": _sets(2),
    "strings.quote": _resized(lambda n: n + 2, lambda n: 2 * n + 2),
}

_BY_SIGNATURE: Final[dict[str, _Estimate]] = {
    **{
        f"_{sign}_({t}, {t}) -> bool": _ordered_texts
        for sign in ("<", "<=", ">", ">=")
        for t in ("string", "bytes")
    },
    "_+_(string, string) -> string": _concatenated,
    "_+_(bytes, bytes) -> bytes": _concatenated,
    "_+_(list(A), list(A)) -> list(A)": _appended,
    "@in(A, list(A)) -> bool": _in_list,
    "<string>.startsWith(string) -> bool": _affix,
    "<string>.endsWith(string) -> bool": _affix,
    "<string>.matches(string) -> bool": lambda estimator, node: (_pattern(estimator, node), None),
    "<string>.contains(string) -> bool": _contains,
    "ip(string) -> ip": _read,
    "bytes(string) -> bytes": _resized(lambda n: n, lambda n: 4 * n),
    "string(bytes) -> string": _resized(lambda n: n // 4, lambda n: n),
}
