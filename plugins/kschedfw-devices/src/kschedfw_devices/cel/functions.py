"""The table of functions: each module of functions adds its own."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from kschedfw_devices.cel.types import Overload, read_signature
from kschedfw_devices.cel.values import (
    Duration,
    EvaluationError,
    Map,
    Optional,
    Timestamp,
    TypeValue,
    UInt,
    Value,
    type_name,
)

FUNCTIONS: Final[dict[str, list[Overload]]] = {}
"""The overloads of functions, methods and operators by name."""

_F = TypeVar("_F", bound=Callable[..., Any])

_CHECKS: Final[dict[str, Callable[[Value], bool]]] = {
    # By the exact type: to `isinstance`, bools and UInts are ints.
    "bool": lambda v: type(v) is bool,
    "int": lambda v: type(v) is int,
    "uint": lambda v: type(v) is UInt,
    "double": lambda v: type(v) is float,
    "string": lambda v: type(v) is str,
    "bytes": lambda v: type(v) is bytes,
    "list": lambda v: type(v) is list,
    "map": lambda v: isinstance(v, Map),
    "null_type": lambda v: v is None,
    "timestamp": lambda v: type(v) is Timestamp,
    "duration": lambda v: type(v) is Duration,
    "type": lambda v: type(v) is TypeValue,
    "optional_type": lambda v: type(v) is Optional,
}


def overload(*signatures: str) -> Callable[[_F], _F]:
    """Declare signatures that the decorated function implements."""

    def declare(implementation: _F) -> _F:
        for signature in signatures:
            made = read_signature(signature, implementation)
            FUNCTIONS.setdefault(made.function, []).append(made)
        return implementation

    return declare


def overloads(implementations: Mapping[str, Callable[..., Any]]) -> None:
    """Declare functions by their signatures."""
    for signature, implementation in implementations.items():
        overload(signature)(implementation)


def accepts(read: Callable[..., object]) -> Callable[..., bool]:
    """Return a function that tells whether `read` takes its arguments without an error."""

    def accepted(*arguments: Value) -> bool:
        try:
            read(*arguments)
        except EvaluationError:
            return False
        return True

    return accepted


def check_of(name: str) -> Callable[[Value], bool] | None:
    """Return the test whether a value is of a type at run time; None if any value is."""
    if name in ("dyn", "any") or name.startswith("'"):
        return None
    return _CHECKS.get(name) or (lambda v: type_name(v) == name)


def dispatcher(name: str, member: bool, count: int) -> Callable[..., Value]:
    """Make a function that calls the overload that fits the types of its arguments."""
    candidates = [
        ([check_of(p.name) for p in o.parameters], o.implementation)
        for o in FUNCTIONS[name]
        if o.member is member and len(o.parameters) == count and o.implementation is not None
    ]

    chosen: dict[tuple[type, ...], Callable[..., Value]] = {}

    def call(*arguments: Value) -> Value:
        # Which overload fits depends on nothing but the Python types, of which there are few.
        types = tuple(map(type, arguments))
        # Without a lock: threads that miss at a time find the same implementation.
        implementation = chosen.get(types)
        if implementation is None:
            implementation = chosen[types] = find(arguments)
        return implementation(*arguments)

    def find(arguments: tuple[Value, ...]) -> Callable[..., Value]:
        for checks, implementation in candidates:
            if all(check is None or check(a) for check, a in zip(checks, arguments, strict=True)):
                assert implementation is not None
                return implementation
        if name in _PLAIN:
            raise EvaluationError("no such overload")
        if name == "size":
            raise EvaluationError("no such overload: size")
        raise EvaluationError(f"no such overload: {name}({', '.join(map(type_name, arguments))})")

    return call


_PLAIN: Final = frozenset({"contains", "startsWith", "endsWith", "matches", "!_", "@in"})
