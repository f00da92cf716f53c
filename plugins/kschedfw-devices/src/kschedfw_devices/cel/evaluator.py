"""Programs made from checked trees: nested steps, which count their costs.

Costs are cel-go's: one for each identifier, field and index; `call_costs`' for a call, also one that ends with
an error; ten and thirty for a list and a map that is made; nothing for constants. As there, calls of
conversions with a constant are done once, when the program is made.
"""

import contextlib
from collections.abc import Callable
from typing import Final

import attrs

from kschedfw_devices.cel.budget import Budget
from kschedfw_devices.cel.call_costs import LIST_COST, MAP_COST, call_cost
from kschedfw_devices.cel.containers import contains, inserted
from kschedfw_devices.cel.functions import dispatcher
from kschedfw_devices.cel.steps import (
    DEVICE_SLOT,
    Constant,
    Failed,
    Frame,
    Lazy,
    Step,
    accumulator_value,
    alternative_step,
    append,
    binary_call,
    charged,
    conditional_step,
    constant_membership,
    copied,
    device_path,
    indexed_step,
    known_call,
    logical_step,
    membership,
    nary_call,
    negation,
    not_strictly_false_step,
    presence_step,
    unary_call,
)
from kschedfw_devices.cel.strings import compiled_pattern
from kschedfw_devices.cel.syntax import (
    ACCUMULATOR,
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
    SyntaxNode,
)
from kschedfw_devices.cel.values import (
    CompileError,
    EvaluationError,
    Map,
    Optional,
    SelectorError,
    TypeValue,
    UInt,
    Value,
    add,
    compare,
    divide,
    equal,
    modulo,
    multiply,
    negate,
    no_such_overload,
    subtract,
    type_name,
)

_COST_PER_STEP: Final = 10
"""The cost of what is evaluated in a step: the limit of one evaluation is half of the default of `filterTimeout`."""


@attrs.frozen
class Program:
    """An expression that can be evaluated; evaluations share no state."""

    _root: Step
    _size: int

    def evaluate(self, device: Value, limit: int, budget: Budget) -> Value:
        """Evaluate with `device` as the variable of this name.

        Raises:
            EvaluationError: the value is an error.
            SelectorError: it costs more than `limit`.
            OutOfStepsError: the budget is spent.
        """
        frame = Frame([device, *[None] * self._size], limit, budget)
        try:
            return self._root(frame)
        finally:
            # An evaluation that ends with an error has done its work, too.
            budget.spend(frame.cost / _COST_PER_STEP)

    def cost(self, device: Value, limit: int) -> int:
        """Return the cost of the evaluation, even if it ends with an error."""
        frame = Frame([device, *[None] * self._size], limit, Budget())
        with contextlib.suppress(SelectorError):
            self._root(frame)
        return frame.cost


def plan(tree: SyntaxNode) -> Program:
    """Make the program of a checked tree.

    Raises:
        CompileError: a conversion of a constant, or a constant pattern, is wrong.
    """
    planner = _Planner()
    try:
        root = planner.plan(tree)
    except EvaluationError as error:
        raise CompileError(f"program instantiation failed: {error}") from None
    return Program(root, planner.size)


_OPERATORS: Final[dict[str, Callable[[Value, Value], Value]]] = {
    "_==_": equal,
    # Values that can't be compared count as different.
    "_!=_": lambda a, b: not contains([a], b),
    "_<_": lambda a, b: compare(a, b) < 0,
    "_<=_": lambda a, b: compare(a, b) <= 0,
    "_>_": lambda a, b: compare(a, b) > 0,
    "_>=_": lambda a, b: compare(a, b) >= 0,
    "_+_": add,
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": modulo,
}
_CONVERSIONS: Final = frozenset(
    ("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint")
)


class _Planner:
    def __init__(self) -> None:
        self.size = 0
        self._scopes: list[dict[str, tuple[int, bool]]] = [{"device": (DEVICE_SLOT, False)}]

    def plan(self, node: SyntaxNode) -> Step:
        match node:
            case Literal():
                return Constant(node.value)
            case Ident(is_type=True):
                return Constant(TypeValue(node.name))
            case Select() if _names_type(node):
                return Constant(TypeValue(_dotted(node)))
            case Select(test=True):
                return presence_step(self._attribute(node.operand), node.field)
            case Ident() | Select() | Call(function="_[_]" | "_[?_]" | "_?_:_"):
                path = self._attribute(node)
                return path if _is_conditional(node) else charged(path, 1)
            case Call():
                return self._call(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
        assert isinstance(node, Comprehension)
        return self._binding(node) if node.is_binding else self._comprehension(node)

    # --- Variables, fields and indices

    def _declare(self, name: str, *, lazy: bool = False) -> int:
        self.size += 1
        self._scopes.append({name: (self.size, lazy)})
        return self.size

    def _attribute(self, node: SyntaxNode) -> Step:
        """Plan a variable or a path into a value. The cost of the path as a whole isn't part of the plan."""
        if isinstance(node, Ident) and not node.is_type:
            return self._variable(node)
        fields = _fields(node)
        if fields is not None and self._slot("device") == (DEVICE_SLOT, False):
            return device_path(fields)
        if isinstance(node, Select) and not node.test and not _names_type(node):
            return indexed_step(self._attribute(node.operand), Constant(node.field), optional=node.optional)
        if isinstance(node, Call) and node.function in _INDEXING:
            operand, index = node.operands
            return indexed_step(
                self._attribute(operand), self._attribute(index), optional=node.function == "_[?_]"
            )
        if isinstance(node, Call) and node.function == "_?_:_":
            condition, *branches = node.operands
            return conditional_step(self.plan(condition), *map(self._attribute, branches))
        return self.plan(node)

    def _slot(self, name: str) -> tuple[int, bool]:
        """Return the slot of a variable's value, and whether it is one of `cel.bind`."""
        plain = name.removeprefix(".")
        scopes = reversed(self._scopes) if plain == name else iter(self._scopes[:1])
        return next(scope[plain] for scope in scopes if plain in scope)

    def _variable(self, node: Ident) -> Step:
        slot, lazy = self._slot(node.name)
        if lazy:
            return lambda frame: frame.variables[slot].value(frame)
        if node.name == ACCUMULATOR:
            return accumulator_value(slot)
        return lambda frame: frame.variables[slot]

    # --- Calls

    def _call(self, node: Call) -> Step:
        name = node.function
        steps = [self.plan(operand) for operand in node.operands]
        match name:
            case "_&&_" | "_||_":
                return logical_step(steps[0], steps[1], name == "_||_")
            case "@not_strictly_false":
                return not_strictly_false_step(steps[0])
            case "or" | "orValue":
                return alternative_step(steps[0], steps[1], name == "orValue")
            case "@in":
                if isinstance(steps[1], Constant) and [o.parameters[1].name for o in node.overloads] == [
                    "list"
                ]:
                    return constant_membership(steps[0], steps[1].value)
        function = _function(node)
        # Appending to the list that a macro is building has a fixed cost, unlike joining two lists.
        cost = 1 if function is append else call_cost(node)
        if name in ("find", "findAll", "matches") and isinstance(steps[1], Constant):
            # Compiled now, so that a wrong pattern is told of when the program is made.
            if isinstance(steps[1].value, str):
                compiled_pattern(steps[1].value)
            return nary_call(function, steps, cost)
        if name in _CONVERSIONS and len(steps) == 1 and isinstance(steps[0], Constant):
            return Constant(function(steps[0].value))
        if name in ("quantity", "semver"):
            known = known_call(function, steps, cost)
            if known is not None:
                return known
        if len(steps) == 1:
            return unary_call(function, steps[0], cost)
        if len(steps) == 2:
            return binary_call(function, steps[0], steps[1], cost)
        return nary_call(function, steps, cost)

    # --- Lists and maps

    def _list(self, node: ListLiteral) -> Step:
        steps = [self.plan(element) for element in node.elements]
        if not node.optional and all(isinstance(step, Constant) for step in steps):
            return Constant([step.value for step in steps if isinstance(step, Constant)])
        optional = node.optional

        def made(frame: Frame) -> Value:
            elements = []
            for i, step in enumerate(steps):
                value = step(frame)
                if i in optional:
                    if not isinstance(value, Optional):
                        raise no_such_overload()
                    if not value.present:
                        continue
                    value = value.content
                elements.append(value)
            return elements

        return charged(made, LIST_COST)

    def _map(self, node: MapLiteral) -> Step:
        steps = [(self.plan(key), self.plan(value)) for key, value in node.entries]
        optional = node.optional

        def made(frame: Frame) -> Value:
            entries = []
            for i, (key_step, value_step) in enumerate(steps):
                key = key_step(frame)
                if type(key) not in (str, bool, int, UInt):
                    raise EvaluationError(f"unsupported key type: {type_name(key)}")
                value = value_step(frame)
                if i in optional:
                    if not isinstance(value, Optional):
                        raise no_such_overload()
                    if not value.present:
                        continue
                    value = value.content
                entries.append((key, value))
            return Map(entries)

        if not optional and all(isinstance(s, Constant) for entry in steps for s in entry):
            return Constant(made(Frame([], 0, Budget())))
        return charged(made, MAP_COST)

    # --- Comprehensions

    def _binding(self, node: Comprehension) -> Step:
        value = self.plan(node.initial)
        slot = self._declare(node.accumulator, lazy=True)
        result = self.plan(node.result)
        self._scopes.pop()

        def binding(frame: Frame) -> Value:
            frame.variables[slot] = Lazy(value)
            return result(frame)

        return binding

    def _comprehension(self, node: Comprehension) -> Step:
        elements = self.plan(node.range)
        initial = self.plan(node.initial)
        accumulator = self._declare(node.accumulator)
        first = self._declare(node.variable)
        second = None if node.variable2 is None else self._declare(node.variable2)
        condition, step = self.plan(node.condition), self.plan(node.step)
        del self._scopes[-(1 if second is None else 2) :]
        result = self.plan(node.result)
        self._scopes.pop()

        def comprehension(frame: Frame) -> Value:
            variables = frame.variables
            iterated = elements(frame)
            if isinstance(iterated, Map):
                pairs = iterated.items()
            elif isinstance(iterated, list):
                # Slot 0 is the device's, so the slot of a second variable is true.
                pairs = enumerate(iterated) if second else ((e, None) for e in iterated)
            else:
                raise EvaluationError(f"got '{type_name(iterated)}', expected iterable type")
            # The steps of macros change lists and maps in place, which nothing else refers to.
            accumulated = copied(initial(frame))
            for key, value in pairs:
                variables[first] = key
                if second:
                    variables[second] = value
                variables[accumulator] = accumulated
                if condition(frame) is False:
                    break
                # An error is a value like others: the next step may absorb it.
                try:
                    accumulated = step(frame)
                except EvaluationError as error:
                    accumulated = Failed(error)
            variables[accumulator] = accumulated
            return result(frame)

        return comprehension


_INDEXING: Final = ("_[_]", "_[?_]")


def _names_type(node: Select) -> bool:
    """Return whether `a.b` is the name of a type: if so, the checker has not typed `a`."""
    return node.operand.type is None


def _is_conditional(node: SyntaxNode) -> bool:
    """Return whether a path starts at a `?:`, whose branches then have the cost of a path."""
    while True:
        if isinstance(node, Call) and node.function in _INDEXING:
            node = node.operands[0]
        elif isinstance(node, Select) and not node.test and not _names_type(node):
            node = node.operand
        else:
            return isinstance(node, Call) and node.function == "_?_:_"


def _fields(node: SyntaxNode) -> list[str] | None:
    """Return the names in `device.a["b"].c`; None for another path."""
    names: list[str] = []
    while True:
        match node:
            case Select(test=False, optional=False, operand=operand, field=name) if not _names_type(node):
                pass
            case Call(function="_[_]", arguments=[operand, Literal(value=str(name))]):
                pass
            case Ident(name="device"):
                return names[::-1] or None
            case _:
                return None
        names.append(name)
        node = operand


def _dotted(node: SyntaxNode) -> str:
    if isinstance(node, Select):
        return f"{_dotted(node.operand)}.{node.field}"
    assert isinstance(node, Ident)
    return node.name.removeprefix(".")


def _is_accumulator(node: SyntaxNode) -> bool:
    return isinstance(node, Ident) and node.name == ACCUMULATOR


def _function(node: Call) -> Callable[..., Value]:
    name = node.function
    if name == "_+_" and isinstance(node.arguments[1], ListLiteral) and _is_accumulator(node.arguments[0]):
        return append
    if name in _OPERATORS:
        return _OPERATORS[name]
    match name:
        case "!_":
            return negation
        case "-_":
            return negate
        case "@in":
            return membership
        case "cel.@mapInsert":
            return inserted
    return dispatcher(name, node.target is not None, len(node.operands))
