"""The static estimate of an expression's greatest cost, by which the API server refuses selectors.

It follows every value's greatest size through the expression.
"""

from __future__ import annotations

from kschedfw_devices.cel.call_costs import LIST_COST, MAP_COST
from kschedfw_devices.cel.call_estimates import (
    DEVICE,
    MOST,
    SCALARS,
    UNKNOWN,
    Entries,
    Shape,
    Size,
    Variable,
    added,
    call_estimate,
    multiplied,
    scaled,
)
from kschedfw_devices.cel.syntax import (
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
    SyntaxNode,
    Visitor,
)
from kschedfw_devices.cel.types import Type


def estimated_cost(tree: SyntaxNode) -> int:
    """Return the greatest cost of one evaluation of a checked expression, up to 2⁶⁴ − 1."""
    return Estimator().cost(tree)


class Estimator(Visitor[int]):
    """The costs of an expression's parts, and what is known of their sizes."""

    def __init__(self) -> None:
        self._variables: dict[str, list[Variable]] = {"device": [Variable(DEVICE, None, None)]}
        # By id, which stays a node's own: the tree outlives the estimator.
        self._sizes: dict[int, Size] = {}
        self._entries: dict[int, Entries] = {}
        self._shapes: dict[int, Shape | None] = {}

    # --- Sizes

    def shape(self, node: SyntaxNode) -> Shape | None:
        if isinstance(node, Ident):
            variable = self._variable(node)
            return None if variable is None else variable.shape
        return self._shapes.get(id(node))

    def _variable(self, node: SyntaxNode) -> Variable | None:
        if not isinstance(node, Ident):
            return None
        stack = self._variables.get(node.name.removeprefix("."))
        return stack[-1] if stack else None

    def known_size(self, node: SyntaxNode) -> Size | None:
        if id(node) in self._sizes:
            return self._sizes[id(node)]
        match node:
            case Literal(value=str() | bytes() as text):
                return Size(len(text), len(text))
            case Literal():
                return Size(1, 1)
            case ListLiteral(elements=parts) | MapLiteral(entries=parts):
                return Size(len(parts), len(parts))
        shape = self.shape(node)
        if shape is not None:
            return Size(0, shape.most)
        if node.type is not None and _is_scalar(node.type):
            return Size(1, 1)
        variable = self._variable(node)
        return None if variable is None else variable.size

    def size(self, node: SyntaxNode) -> Size:
        return self.known_size(node) or UNKNOWN

    def entries(self, node: SyntaxNode) -> Entries | None:
        if id(node) in self._entries:
            return self._entries[id(node)]
        variable = self._variable(node)
        return None if variable is None else variable.entries

    def element(self, node: SyntaxNode) -> tuple[Type, Size] | None:
        """Return the type and the size of a list's elements; None if the node is no list."""
        if node.type is None or not node.type.parameters:
            return None
        shape = self.shape(node)
        values = shape and shape.values
        return node.type.parameters[0], Size(0, values.most) if values else UNKNOWN

    def keep(self, node: SyntaxNode, size: Size | None, entries: Entries | None) -> None:
        if size is not None:
            self._sizes[id(node)] = size
        if entries is not None:
            self._entries[id(node)] = entries

    # --- Costs

    def cost(self, node: SyntaxNode) -> int:
        return self.visit(node)

    def literal(self, node: Literal) -> int:  # noqa: ARG002  # see Visitor
        return 0

    def identifier(self, node: Ident) -> int:  # noqa: ARG002  # see Visitor
        return 1

    def selection(self, node: Select) -> int:
        # The operand is the name of a type.
        if node.operand.type is None:
            return 1
        cost = self.cost(node.operand)
        if node.test:
            return cost
        if node.optional:
            return added(cost, 1)
        shape = self.shape(node.operand)
        if shape is not None:
            self._shapes[id(node)] = shape.values if shape.any_field else shape.fields.get(node.field)
        has_cost = node.operand.type.name == "map" or node.operand.type.name.startswith("kubernetes.")
        return added(cost, 1) if has_cost else cost

    def list_literal(self, node: ListLiteral) -> int:
        cost, values = LIST_COST, Size(MOST if node.elements else 0, 0)
        for element in node.elements:
            cost = added(cost, self.cost(element))
            values = values.union(self.size(element))
        self.keep(node, None, Entries(Size(1, 1), values))
        return cost

    def map_literal(self, node: MapLiteral) -> int:
        least = MOST if node.entries else 0
        cost, keys, values = MAP_COST, Size(least, 0), Size(least, 0)
        for key, value in node.entries:
            cost = added(added(cost, self.cost(key)), self.cost(value))
            keys, values = keys.union(self.size(key)), values.union(self.size(value))
        self.keep(node, None, Entries(keys, values))
        return cost

    def call(self, node: Call) -> int:
        costs = [self.cost(operand) for operand in node.operands]
        total = 0
        for cost in costs:
            total = added(total, cost)
        if node.function == "dyn":
            self.keep(node, self.known_size(node.arguments[0]), self.entries(node.arguments[0]))
            return added(total, 1)
        # They cost nothing themselves, and at most both sides are evaluated.
        if node.function in ("_&&_", "_||_"):
            return total
        if node.function == "_?_:_":
            return self._conditional(node, costs)
        most = 0
        size: Size | None = None
        for overload in node.overloads:
            if node.function in ("_==_", "_!=_"):
                cost, result = self._equality(node), None
            else:
                cost, result = call_estimate(self, node, overload)
            most = max(most, cost)
            if result is not None:
                size = result if size is None else size.union(result)
        self._follow_index(node)
        self.keep(node, size or self.known_size(node), None)
        return added(total, most)

    def _conditional(self, node: Call, costs: list[int]) -> int:
        _, then, otherwise = node.arguments
        entries = self.entries(then)
        self.keep(
            node,
            self.size(then).union(self.size(otherwise)),
            entries and entries.union(self.entries(otherwise)),
        )
        return added(costs[0], max(costs[1:]))

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

    def _equality(self, node: Call) -> int:
        a, b = node.arguments
        if node.function == "_==_" and a.type is not None and a.type == b.type:
            if a.type.name in ("net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"):
                return 1
            if a.type.name == "kubernetes.NamedFormat":
                return scaled(64)
            if a.type.name == "kubernetes.URL":
                size = self.known_size(b)
                return scaled(size.most if size else 1)
        return scaled(min(self.size(a).most, self.size(b).most))

    def _binding(self, node: Comprehension) -> int:
        cost = added(self.cost(node.range), self.cost(node.initial))
        stack = self._variables.setdefault(node.accumulator, [])
        stack.append(
            Variable(self.shape(node.initial), self.known_size(node.initial), self.entries(node.initial))
        )
        cost = added(cost, self.cost(node.result))
        self.keep(node, self.known_size(node.result), self.entries(node.result))
        stack.pop()
        return cost

    def comprehension(self, node: Comprehension) -> int:
        if node.is_binding:
            return self._binding(node)
        cost = added(self.cost(node.range), self.cost(node.initial))
        scope = {node.accumulator: Variable(None, self.known_size(node.initial), self.entries(node.initial))}
        scope |= self._iterated(node)
        for name, variable in scope.items():
            self._variables.setdefault(name, []).append(variable)
        loop = added(self.cost(node.condition), self.cost(node.step))
        for name in scope:
            if name != node.accumulator:
                self._variables[name].pop()
        cost = added(cost, self.cost(node.result))
        self._variables[node.accumulator].pop()
        count = self.size(node.range)
        if isinstance(node.initial, Literal):
            self.keep(node, self.known_size(node.initial), None)
        elif isinstance(node.initial, (ListLiteral, MapLiteral)):
            self.keep(node, count, self.entries(node.step))
        return added(cost, multiplied(count.most, loop))

    def _iterated(self, node: Comprehension) -> dict[str, Variable]:
        shape, entries = self.shape(node.range), self.entries(node.range)
        keys = Variable(shape and shape.keys, None if entries is None else entries.keys, None)
        values = Variable(shape and shape.values, None if entries is None else entries.values, None)
        if node.variable2 is not None:
            return {node.variable: keys, node.variable2: values}
        is_list = node.range.type is not None and node.range.type.name == "list"
        return {node.variable: values if is_list else keys}


def _is_scalar(type: Type) -> bool:
    if type.name == "optional_type":
        return _is_scalar(type.parameters[0])
    return type.name in SCALARS
