"""The steps that programs are made of: closures that evaluate a part of an expression and count its cost.

A step takes the frame of the evaluation and returns a value, or raises: `EvaluationError` is an error value,
which other steps may absorb; the error of the cost limit is a bare `SelectorError`, which none absorbs.
"""

from collections.abc import Callable
from typing import Final

from kschedfw_devices.cel.budget import Budget
from kschedfw_devices.cel.call_costs import CallCost
from kschedfw_devices.cel.containers import contains
from kschedfw_devices.cel.values import (
    MISSING,
    NONE,
    EvaluationError,
    Map,
    Optional,
    SelectorError,
    UInt,
    Value,
    no_such_key,
    no_such_overload,
    text_of,
    type_name,
)


class Frame:
    """One evaluation: the values of variables, the cost so far, and the budget for work that costs don't cover."""

    __slots__ = ("budget", "cost", "limit", "variables")

    def __init__(self, variables: list[Value], limit: int, budget: Budget) -> None:
        self.variables = variables
        self.limit = limit
        self.budget = budget
        self.cost = 0

    def charge(self, cost: int) -> None:
        self.cost += cost
        if self.cost > self.limit:
            raise _limit_exceeded()


def _limit_exceeded() -> SelectorError:
    return SelectorError("operation cancelled: actual cost limit exceeded")


Step = Callable[[Frame], Value]
DEVICE_SLOT: Final = 0
"""The index of the device in a frame's variables."""


class Constant:
    """A step with a constant value."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __call__(self, _: Frame) -> Value:
        return self.value


def copied(value: Value) -> Value:
    if isinstance(value, list):
        return list(value)
    return Map(value.items()) if isinstance(value, Map) else value


def append(accumulator: list[Value], elements: list[Value]) -> list[Value]:
    # In place: only the macro has the accumulator, whose first value `copied` made.
    accumulator.extend(elements)
    return accumulator


class Failed:
    """An accumulator that is an error."""

    __slots__ = ("error",)

    def __init__(self, error: EvaluationError) -> None:
        self.error = error


class Lazy:
    """The variable of `cel.bind`, evaluated where it is first used."""

    __slots__ = ("_error", "_step", "_value")

    def __init__(self, step: Step) -> None:
        self._step: Step | None = step
        self._value: Value = None
        self._error: EvaluationError | None = None

    def value(self, frame: Frame) -> Value:
        if self._step is not None:
            # Before the evaluation, since it isn't tried again: the error of the cost limit, which isn't kept
            # here, ends the whole program.
            step, self._step = self._step, None
            try:
                self._value = step(frame)
            except EvaluationError as error:
                self._error = error
        if self._error is not None:
            raise self._error
        return self._value


def device_path(names: list[str]) -> Step:
    """Return the step of a path of names into the device, which most selectors consist of."""
    count = len(names)

    def path(frame: Frame) -> Value:
        value = frame.variables[DEVICE_SLOT]
        for i, name in enumerate(names, start=1):
            found = value.field(name) if isinstance(value, Map) else MISSING
            if found is MISSING:
                frame.charge(i)
                raise no_such_key(name)
            value = found
        frame.charge(count)
        return value

    return path


def accumulator_value(slot: int) -> Step:
    def accumulator(frame: Frame) -> Value:
        value = frame.variables[slot]
        if type(value) is Failed:
            raise value.error
        return value

    return accumulator


def negation(value: Value) -> bool:
    if value is True or value is False:
        return not value
    raise no_such_overload()


def membership(value: Value, container: Value) -> bool:
    if isinstance(container, list):
        return contains(container, value)
    if isinstance(container, Map):
        return container.contains(value)
    raise no_such_overload()


def constant_membership(step: Step, elements: list[Value]) -> Step:
    """Return the step of `in` with a list of constants, which costs nothing."""
    if not elements:
        return Constant(False)

    def member(frame: Frame) -> Value:
        return contains(elements, step(frame))

    return member


# --- Calls that evaluate their arguments, and count


_ERROR: Final = object()
"""The stand-in for an argument or a result that is an error, when costs are computed."""


def unary_call(function: Callable[..., Value], operand: Step, cost: CallCost) -> Step:
    def unary(frame: Frame) -> Value:
        try:
            value = operand(frame)
        except EvaluationError:
            _charge(frame, cost, (_ERROR,), _ERROR)
            raise
        return _applied(frame, function, (value,), cost)

    return unary


def binary_call(function: Callable[..., Value], left: Step, right: Step, cost: CallCost) -> Step:
    """Return the step of a call that evaluates both arguments, even if the first is an error; that is its result."""

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


def nary_call(function: Callable[..., Value], steps: list[Step], cost: CallCost) -> Step:
    """Return the step of a call that stops at the first argument that is an error, and then costs nothing."""

    def nary(frame: Frame) -> Value:
        return _applied(frame, function, tuple(step(frame) for step in steps), cost)

    return nary


def known_call(function: Callable[..., Value], steps: list[Step], cost: CallCost) -> Step | None:
    """Return the step of a call of constants, done once but charged each time.

    Return None if an argument isn't constant, or the call fails.
    """
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
    if cost.effort is not None:
        frame.budget.spend(cost.effort(arguments))
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


def charged(step: Step, cost: int) -> Step:
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


def logical_step(left: Step, right: Step, deciding: bool) -> Step:
    """Return the step of `||` (`deciding` is true) or `&&` (false): a deciding side absorbs an error of the other."""

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
            # The left side's error, as in cel-go.
            raise failed or error from None
        if failed is not None:
            raise failed
        return not deciding

    return logical


def conditional_step(condition: Step, then: Step, otherwise: Step) -> Step:
    def conditional(frame: Frame) -> Value:
        return then(frame) if _boolean(condition(frame)) else otherwise(frame)

    return conditional


def not_strictly_false_step(step: Step) -> Step:
    def not_strictly_false(frame: Frame) -> Value:
        try:
            value = step(frame)
        except EvaluationError:
            value = True
        frame.charge(1)
        return value is not False

    return not_strictly_false


def alternative_step(left: Step, right: Step, value: bool) -> Step:
    """Return the step of `or` and `orValue` of optionals, which evaluate the alternative only if it is needed."""

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
    """Return `value[key]`, and whether it exists."""
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


def indexed_step(operand: Step, index: Step, *, optional: bool) -> Step:
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


def presence_step(operand: Step, field: str) -> Step:
    def presence(frame: Frame) -> Value:
        value = operand(frame)
        frame.charge(1)
        if isinstance(value, Optional):
            if not value.present:
                return False
            value = value.content
        return _qualified(value, field)[1]

    return presence
