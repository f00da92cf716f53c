"""From a checked tree to a program of nested closures, which counts what it costs.

Costs are cel-go's: one for each identifier, field and index; what `call_costs` says of a call, also of one that ends
with an error; ten and thirty for a list and a map that is made; nothing for constants. As there, calls of conversions
with a constant are done once, when the program is made.
"""

import contextlib
from collections.abc import Callable
from typing import Final

import attrs

from kschedfw.plugins.dynamic_resources.cel.call_costs import LIST_COST, MAP_COST, CallCost, call_cost
from kschedfw.plugins.dynamic_resources.cel.containers import contains, inserted
from kschedfw.plugins.dynamic_resources.cel.functions import dispatcher
from kschedfw.plugins.dynamic_resources.cel.strings import compiled_pattern
from kschedfw.plugins.dynamic_resources.cel.syntax import (
    ACCUMULATOR,
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
)
from kschedfw.plugins.dynamic_resources.cel.values import (
    MISSING,
    NONE,
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
    no_such_key,
    no_such_overload,
    subtract,
    text_of,
    type_name,
)

__all__ = ["Program", "plan"]


class Frame:
    """One evaluation: the values of variables, and the cost so far."""

    __slots__ = ("cost", "limit", "variables")

    def __init__(self, variables: list[Value], limit: int) -> None:
        self.variables = variables
        self.limit = limit
        self.cost = 0

    def charge(self, cost: int) -> None:
        self.cost += cost
        if self.cost > self.limit:
            raise _limit_exceeded()


def _limit_exceeded() -> SelectorError:
    return SelectorError("operation cancelled: actual cost limit exceeded")


Step = Callable[[Frame], Value]
_DEVICE: Final = 0
"""Where a frame has the device."""


class Constant:
    """A step whose value is known."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __call__(self, _: Frame) -> Value:
        return self.value


@attrs.frozen
class Program:
    """An expression that can be evaluated; it keeps nothing from one evaluation to the next."""

    _root: Step
    _size: int

    def evaluate(self, device: Value, limit: int) -> Value:
        """Evaluate with `device` as the variable of this name.

        Raises:
            EvaluationError: the value is an error.
            SelectorError: it costs more than `limit`.
        """
        return self._root(Frame([device, *[None] * self._size], limit))

    def cost(self, device: Value, limit: int) -> int:
        """Give what the evaluation costs, whether it ends with an error or not."""
        frame = Frame([device, *[None] * self._size], limit)
        with contextlib.suppress(SelectorError):
            self._root(frame)
        return frame.cost


def plan(tree: Node) -> Program:
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
    "_!=_": lambda a, b: not contains([a], b),  # what can't be compared differs
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
        self._scopes: list[dict[str, tuple[int, bool]]] = [{"device": (_DEVICE, False)}]

    def plan(self, node: Node) -> Step:
        match node:
            case Literal():
                return Constant(node.value)
            case Ident(is_type=True):
                return Constant(TypeValue(node.name))
            case Select() if _names_type(node):
                return Constant(TypeValue(_dotted(node)))
            case Select(test=True):
                return self._presence(node)
            case Ident() | Select() | Call(function="_[_]" | "_[?_]" | "_?_:_"):
                path = self._attribute(node)
                return path if _is_conditional(node) else _charged_after(path, 1)
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

    def _attribute(self, node: Node) -> Step:
        """Plan a variable or a path into a value, without the cost that the whole path has."""
        if isinstance(node, Ident) and not node.is_type:
            return self._variable(node)
        fields = _fields(node)
        if fields is not None and self._slot("device") == (_DEVICE, False):
            return _path(fields)
        if isinstance(node, Select) and not node.test and not _names_type(node):
            return _indexed(self._attribute(node.operand), Constant(node.field), optional=node.optional)
        if isinstance(node, Call) and node.function in _INDEXING:
            operand, index = node.operands
            return _indexed(
                self._attribute(operand), self._attribute(index), optional=node.function == "_[?_]"
            )
        if isinstance(node, Call) and node.function == "_?_:_":
            condition, *branches = node.operands
            return _conditional(self.plan(condition), *map(self._attribute, branches))
        return self.plan(node)

    def _slot(self, name: str) -> tuple[int, bool]:
        """Give where the value of a variable is, and whether it is one of `cel.bind`."""
        plain = name.removeprefix(".")
        scopes = reversed(self._scopes) if plain == name else iter(self._scopes[:1])
        return next(scope[plain] for scope in scopes if plain in scope)

    def _variable(self, node: Ident) -> Step:
        slot, lazy = self._slot(node.name)
        if lazy:
            return lambda frame: frame.variables[slot].value(frame)
        if node.name == ACCUMULATOR:
            return _accumulator(slot)
        return lambda frame: frame.variables[slot]

    def _presence(self, node: Select) -> Step:
        return _presence(self._attribute(node.operand), node.field)

    # --- Calls

    def _call(self, node: Call) -> Step:
        name = node.function
        steps = [self.plan(operand) for operand in node.operands]
        match name:
            case "_&&_" | "_||_":
                return _logical(steps[0], steps[1], name == "_||_")
            case "@not_strictly_false":
                return _not_strictly_false(steps[0])
            case "or" | "orValue":
                return _or(steps[0], steps[1], name == "orValue")
            case "@in":
                if isinstance(steps[1], Constant) and [o.parameters[1].name for o in node.overloads] == [
                    "list"
                ]:
                    return _in_constant(steps[0], steps[1].value)
        function = _function(node)
        cost = call_cost(node)
        if name in ("find", "findAll", "matches") and isinstance(steps[1], Constant):
            if isinstance(steps[1].value, str):
                compiled_pattern(steps[1].value)
            return _nary(function, steps, cost)
        if name in _CONVERSIONS and len(steps) == 1 and isinstance(steps[0], Constant):
            return Constant(function(steps[0].value))
        if name in ("quantity", "semver"):
            known = _known(function, steps, cost)
            if known is not None:
                return known
        if len(steps) == 1:
            return _unary(function, steps[0], cost)
        if len(steps) == 2:
            return _binary(function, steps[0], steps[1], cost)
        return _nary(function, steps, cost)

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

        return _charged_after(made, LIST_COST)

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
            return Constant(made(Frame([], 0)))
        return _charged_after(made, MAP_COST)

    # --- Comprehensions

    def _binding(self, node: Comprehension) -> Step:
        value = self.plan(node.initial)
        slot = self._declare(node.accumulator, lazy=True)
        result = self.plan(node.result)
        self._scopes.pop()

        def binding(frame: Frame) -> Value:
            frame.variables[slot] = _Lazy(value)
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
                pairs = enumerate(iterated) if second else ((e, None) for e in iterated)
            else:
                raise EvaluationError(f"got '{type_name(iterated)}', expected iterable type")
            # The steps of macros change lists and maps in place, which nothing else refers to.
            accumulated = _copied(initial(frame))
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
                    accumulated = _Failed(error)
            variables[accumulator] = accumulated
            return result(frame)

        return comprehension


def _copied(value: Value) -> Value:
    if isinstance(value, list):
        return list(value)
    return Map(value.items()) if isinstance(value, Map) else value


def _append(accumulator: list[Value], elements: list[Value]) -> list[Value]:
    accumulator.extend(elements)
    return accumulator


class _Failed:
    """An accumulator that is an error."""

    __slots__ = ("error",)

    def __init__(self, error: EvaluationError) -> None:
        self.error = error


class _Lazy:
    """The variable of `cel.bind`, evaluated where it is first used."""

    __slots__ = ("_error", "_step", "_value")

    def __init__(self, step: Step) -> None:
        self._step: Step | None = step
        self._value: Value = None
        self._error: EvaluationError | None = None

    def value(self, frame: Frame) -> Value:
        if self._step is not None:
            step, self._step = self._step, None
            try:
                self._value = step(frame)
            except EvaluationError as error:
                self._error = error
        if self._error is not None:
            raise self._error
        return self._value


def _fields(node: Node) -> list[str] | None:
    """Give the names in `device.a["b"].c`; None: it is another path."""
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


def _path(names: list[str]) -> Step:
    """Give a path of names into the device, which most selectors consist of."""
    count = len(names)

    def path(frame: Frame) -> Value:
        value = frame.variables[_DEVICE]
        for i, name in enumerate(names, start=1):
            found = value.field(name) if isinstance(value, Map) else MISSING
            if found is MISSING:
                frame.charge(i)
                raise no_such_key(name)
            value = found
        frame.charge(count)
        return value

    return path


def _accumulator(slot: int) -> Step:
    def accumulator(frame: Frame) -> Value:
        value = frame.variables[slot]
        if type(value) is _Failed:
            raise value.error
        return value

    return accumulator


_INDEXING: Final = ("_[_]", "_[?_]")


def _names_type(node: Select) -> bool:
    """Say whether `a.b` is the name of a type: then the checker has not looked at `a`."""
    return node.operand.type is None


def _is_conditional(node: Node) -> bool:
    """Say whether a path starts at a `?:`, whose branches have the cost of a path then."""
    while True:
        if isinstance(node, Call) and node.function in _INDEXING:
            node = node.operands[0]
        elif isinstance(node, Select) and not node.test and not _names_type(node):
            node = node.operand
        else:
            return isinstance(node, Call) and node.function == "_?_:_"


def _dotted(node: Node) -> str:
    if isinstance(node, Select):
        return f"{_dotted(node.operand)}.{node.field}"
    assert isinstance(node, Ident)
    return node.name.removeprefix(".")


def _is_accumulator(node: Node) -> bool:
    return isinstance(node, Ident) and node.name == ACCUMULATOR


def _function(node: Call) -> Callable[..., Value]:
    name = node.function
    if name == "_+_" and isinstance(node.arguments[1], ListLiteral) and _is_accumulator(node.arguments[0]):
        return _append
    if name in _OPERATORS:
        return _OPERATORS[name]
    match name:
        case "!_":
            return _not
        case "-_":
            return negate
        case "@in":
            return _in
        case "cel.@mapInsert":
            return inserted
    return dispatcher(name, node.target is not None, len(node.operands))


def _not(value: Value) -> bool:
    if value is True or value is False:
        return not value
    raise no_such_overload()


def _in(value: Value, container: Value) -> bool:
    if isinstance(container, list):
        return contains(container, value)
    if isinstance(container, Map):
        return container.find(value)[1]
    raise no_such_overload()


def _in_constant(step: Step, elements: list[Value]) -> Step:
    """Give `in` of a list of constants, which costs nothing."""
    if not elements:
        return Constant(False)

    def member(frame: Frame) -> Value:
        return contains(elements, step(frame))

    return member


# --- Calls that evaluate their arguments, and count


_ERROR: Final = object()
"""What costs are computed with in place of an argument or a result that is an error."""


def _unary(function: Callable[..., Value], operand: Step, cost: CallCost) -> Step:
    def unary(frame: Frame) -> Value:
        try:
            value = operand(frame)
        except EvaluationError:
            _charge(frame, cost, (_ERROR,), _ERROR)
            raise
        return _applied(frame, function, (value,), cost)

    return unary


def _binary(function: Callable[..., Value], left: Step, right: Step, cost: CallCost) -> Step:
    """Give a call that evaluates both arguments even if the first is an error, which then is the result."""

    fixed = cost if isinstance(cost, int) else None

    def binary(frame: Frame) -> Value:
        try:
            a = left(frame)
        except EvaluationError:
            try:
                b = right(frame)
            except EvaluationError:
                b = _ERROR
            _charge(frame, cost, (_ERROR, b), _ERROR)
            raise
        try:
            b = right(frame)
        except EvaluationError:
            _charge(frame, cost, (a, _ERROR), _ERROR)
            raise
        if fixed is None:
            return _applied(frame, function, (a, b), cost)
        frame.cost += fixed
        if frame.cost > frame.limit:
            raise _limit_exceeded()
        return function(a, b)

    return binary


def _nary(function: Callable[..., Value], steps: list[Step], cost: CallCost) -> Step:
    """Give a call that stops at the first argument that is an error, and costs nothing then."""

    def nary(frame: Frame) -> Value:
        return _applied(frame, function, tuple(step(frame) for step in steps), cost)

    return nary


def _known(function: Callable[..., Value], steps: list[Step], cost: CallCost) -> Step | None:
    """Give the call of constants, done once but charged each time; None: one isn't constant, or it fails."""
    arguments = tuple(step.value for step in steps if isinstance(step, Constant))
    if len(arguments) < len(steps):
        return None
    try:
        value = function(*arguments)
    except EvaluationError:
        return None
    charged = cost if isinstance(cost, int) else cost.of(arguments, value)

    def known(frame: Frame) -> Value:
        frame.charge(charged)
        return value

    return known


def _charge(frame: Frame, cost: CallCost, arguments: tuple[Value, ...], result: Value) -> None:
    frame.charge(cost if isinstance(cost, int) else cost.of(arguments, result))


def _applied(
    frame: Frame, function: Callable[..., Value], arguments: tuple[Value, ...], cost: CallCost
) -> Value:
    if isinstance(cost, int):
        frame.charge(cost)
        return function(*arguments)
    if not cost.by_result:
        # Before the call: what costs too much isn't done.
        frame.charge(cost.of(arguments, _ERROR))
        return function(*arguments)
    try:
        result = function(*arguments)
    except EvaluationError:
        frame.charge(cost.of(arguments, _ERROR))
        raise
    frame.charge(cost.of(arguments, result))
    return result


def _charged_after(step: Step, cost: int) -> Step:
    def made(frame: Frame) -> Value:
        try:
            value = step(frame)
        except EvaluationError:
            frame.charge(cost)
            raise
        frame.cost += cost
        if frame.cost > frame.limit:
            raise _limit_exceeded()
        return value

    return made


# --- Logic


def _boolean(value: Value) -> bool:
    if value is True or value is False:
        return bool(value)
    raise no_such_overload()


def _logical(left: Step, right: Step, deciding: bool) -> Step:
    """Give `||` (`deciding` is true) or `&&` (false): one side that decides makes up for an error of the other."""

    def logical(frame: Frame) -> Value:
        failed: EvaluationError | None = None
        try:
            if _boolean(left(frame)) is deciding:
                return deciding
        except EvaluationError as error:
            failed = error
        try:
            if _boolean(right(frame)) is deciding:
                return deciding
        except EvaluationError as error:
            raise failed or error from None
        if failed is not None:
            raise failed
        return not deciding

    return logical


def _conditional(condition: Step, then: Step, otherwise: Step) -> Step:
    def conditional(frame: Frame) -> Value:
        return then(frame) if _boolean(condition(frame)) else otherwise(frame)

    return conditional


def _not_strictly_false(step: Step) -> Step:
    def not_strictly_false(frame: Frame) -> Value:
        try:
            value = step(frame)
        except EvaluationError:
            value = True
        frame.charge(1)
        return value is not False

    return not_strictly_false


def _or(left: Step, right: Step, value: bool) -> Step:
    """Give `or` and `orValue` of optionals, which evaluate the alternative only where it is needed."""

    def alternative(frame: Frame) -> Value:
        optional = left(frame)
        if not isinstance(optional, Optional):
            raise no_such_overload()
        if optional.present:
            return optional.content if value else optional
        return right(frame)

    return alternative


# --- Fields and indices


def _qualified(value: Value, key: Value) -> tuple[Value, bool]:
    """Give `value[key]`, and whether there is such a thing."""
    if isinstance(value, Map):
        return value.find(key)
    if isinstance(value, list):
        index = _list_index(key)
        return (value[index], True) if 0 <= index < len(value) else (None, False)
    return None, False


def _list_index(key: Value) -> int:
    if type(key) in (int, UInt):
        return int(key)
    if type(key) is float and key.is_integer():
        return int(key)
    if type(key) is float:
        raise EvaluationError(f"unsupported index value {key} in list")
    raise EvaluationError(f"unsupported index type '{type_name(key)}' in list")


def _indexed(operand: Step, index: Step, *, optional: bool) -> Step:
    def indexed(frame: Frame) -> Value:
        value = operand(frame)
        if isinstance(value, Optional) or optional:
            if isinstance(value, Optional):
                if not value.present:
                    return NONE
                value = value.content
            found, present = _qualified(value, index(frame))
            if not present:
                return NONE
            frame.charge(1)
            return Optional(found)
        frame.charge(1)
        key = index(frame)
        found, present = _qualified(value, key)
        if present:
            return found
        if isinstance(value, list):
            raise EvaluationError(f"index out of bounds: {text_of(key)}")
        raise no_such_key(key)

    return indexed


def _presence(operand: Step, field: str) -> Step:
    def presence(frame: Frame) -> Value:
        value = operand(frame)
        frame.charge(1)
        if isinstance(value, Optional):
            if not value.present:
                return False
            value = value.content
        return _qualified(value, field)[1]

    return presence
