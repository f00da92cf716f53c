"""The values of CEL as Python objects, their equality, order, arithmetic and sizes.

    CEL      Python                      CEL        Python
    null     None                        list       list
    bool     bool                        map        Map
    int      int (64 bits)               timestamp  Timestamp
    uint     UInt                        duration   Duration
    double   float                       type       TypeValue
    string   str                         optional   Optional
    bytes    bytes

Errors are exceptions: `EvaluationError` is one that `||`, `&&` and the macros absorb where the other side decides.
The semantics are those of cel-go 0.26, which kube-scheduler v1.36 uses, error texts included.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from kschedfw.api import KschedfwError

Value = Any
"""A CEL value: one of the table above, or an object of one of Kubernetes' types (see `kubernetes`)."""

MAX_LENGTH: Final = 1_000_000
"""Elements of a list: the cost limit allows no more work than that, and memory must not go first."""

_INT_MIN: Final = -(2**63)
_INT_MAX: Final = 2**63 - 1
_UINT_MAX: Final = 2**64 - 1
# 0001-01-01T00:00:00Z.
TIMESTAMP_MIN: Final = -62135596800 * 10**9
# The last nanosecond of the year 9999.
TIMESTAMP_MAX: Final = 253402300800 * 10**9 - 1

MAX_TEXT: Final = 10_000_000
"""Characters of a string, likewise."""


class SelectorError(KschedfwError):
    """The error of a selector that can't be evaluated; the text is Kubernetes'."""


class CompileError(SelectorError):
    """The error of an expression that doesn't compile."""


class EvaluationError(SelectorError):
    """An error value of CEL."""


class UInt(int):
    """An unsigned integer of 64 bits."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{int(self)}u"


@attrs.frozen
class Duration:
    """A span of time."""

    nanoseconds: int


@attrs.frozen
class Timestamp:
    """A point in time, in nanoseconds since 1970 UTC."""

    nanoseconds: int


@attrs.frozen
class TypeValue:
    """The name of a type, which is a value, too."""

    name: str


@attrs.frozen
class Optional:
    """An optional value; `NONE` is the one without a value."""

    content: Value
    present: bool = True

    def value(self) -> Value:
        if not self.present:
            raise EvaluationError("optional.none() dereference")
        return self.content


NONE: Final = Optional(None, present=False)
MISSING: Final = object()
"""Stands for a key that a map doesn't have."""


def _normalized(key: Value) -> Value:
    """Return the canonical form of a key: `1`, `1u` and `1.0` are one key, `true` is another."""
    if isinstance(key, bool):
        # A tuple, since True and 1 are one key to Python.
        return (key,)
    if isinstance(key, float):
        return int(key) if key.is_integer() else (key,)
    return int(key) if isinstance(key, int) else key


class Map:
    """A map; keys are bools, ints, uints and strings."""

    __slots__ = ("_keys", "_values")

    def __init__(self, entries: Iterable[tuple[Value, Value]] = ()) -> None:
        self._keys: dict[Value, Value] = {}
        self._values: dict[Value, Value] = {}
        for key, value in entries:
            self.insert(key, value)

    @classmethod
    def of_strings(cls, values: Mapping[str, Value]) -> "Map":
        """Make a map with string keys; `values` is not copied."""
        result = cls.__new__(cls)
        result._values = result._keys = values  # type: ignore[assignment] # neither is ever changed
        return result

    def insert(self, key: Value, value: Value) -> None:
        """Add an entry; only for the code that makes the map."""
        normalized = _normalized(key)
        self._keys[normalized] = key
        self._values[normalized] = value

    def find(self, key: Value) -> tuple[Value, bool]:
        """Return the value of `key`, and whether there is one."""
        if type(key) is not str:
            if not isinstance(key, (bool, int, float, str)):
                return None, False
            key = _normalized(key)
        if key in self._values:
            return self._values[key], True
        return None, False

    def contains(self, key: Value) -> bool:
        """Return whether there is an entry, as `in` does: a default of `find` isn't one."""
        return Map.find(self, key)[1]

    def field(self, name: str) -> Value:
        """Return the value of a key that is a string; `MISSING` if there is none."""
        return self._values.get(name, MISSING)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Value]:
        return iter(self._keys if self._keys is self._values else self._keys.values())

    def items(self) -> Iterator[tuple[Value, Value]]:
        return zip(self, self._values.values(), strict=True)


_NAMES: Final[dict[type, str]] = {
    type(None): "null_type",
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    Map: "map",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    TypeValue: "type",
    Optional: "optional_type",
}


def type_name(value: Value) -> str:
    """Return the name of a value's type, as `type()` and error texts have it."""
    name = _NAMES.get(type(value)) or getattr(type(value), "cel_name", None)
    # Subclasses of Map have no entry of their own.
    return name or "map"


def size_of(value: Value) -> int:
    """Return the size that costs are counted by: code points, bytes, elements or entries; 1 for all others."""
    if isinstance(value, (str, bytes, list, Map)):
        return len(value)
    if isinstance(value, Optional) and value.present:
        return size_of(value.content)
    return 1


def no_such_key(key: Value) -> EvaluationError:
    return EvaluationError(f"no such key: {text_of(key)}")


def text_of(value: Value) -> str:
    """Return a key or an index as error texts show it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, int) else str(value)


def no_such_overload() -> EvaluationError:
    return EvaluationError("no such overload")


# --- Equality and order


def equal(a: Value, b: Value) -> bool:
    """Compare as `==` does: values of different types differ, but numbers are compared as numbers.

    Raises:
        EvaluationError: one of Kubernetes' types on the left is compared with another type.
    """
    kind, other = type(a), type(b)
    if kind is other and kind in _PLAIN:
        return bool(a == b)
    if kind in _NUMBERS and other in _NUMBERS:
        return _equal_numbers(a, b)
    if kind is not other and not (isinstance(a, Map) and isinstance(b, Map)):
        if kind in _NAMES or b is None or isinstance(a, Map):
            return False
        # Kubernetes' types refuse others.
        raise no_such_overload()
    if kind is list:
        return len(a) == len(b) and all(equal_or(x, y, otherwise=True) for x, y in zip(a, b, strict=True))
    if isinstance(a, Map):
        if len(a) != len(b):
            return False
        for key, value in a.items():
            found, present = b.find(key)
            if not present or not equal_or(value, found, otherwise=True):
                return False
        return True
    if kind is Optional:
        return bool(a.present == b.present and (not a.present or equal(a.content, b.content)))
    return bool(a == b)


def equal_or(a: Value, b: Value, *, otherwise: bool) -> bool:
    """Compare as `==` does; an error gives `otherwise`, which is true for elements of lists and maps, as in cel-go."""
    try:
        return equal(a, b)
    except EvaluationError:
        return otherwise


_NUMBERS: Final = frozenset({int, UInt, float})
_PLAIN: Final = frozenset({bool, int, UInt, str, bytes})
"""Types that Python compares with themselves as CEL does."""


def _equal_numbers(a: Value, b: Value) -> bool:
    if type(a) is float or type(b) is float:
        if math.isnan(a) or math.isnan(b):
            return False
        return _compare_numbers(a, b) == 0
    return int(a) == int(b)


def compare(a: Value, b: Value) -> int:
    """Return -1, 0 or 1; numbers of different types are ordered as numbers.

    Raises:
        EvaluationError: the types have no order, or one is NaN.
    """
    kind, other = type(a), type(b)
    if kind is other and kind in _PLAIN:
        return int((a > b) - (a < b))
    if kind in _NUMBERS and other in _NUMBERS:
        if a != a or b != b:  # noqa: PLR0124 # NaN
            raise EvaluationError("NaN values cannot be ordered")
        return _compare_numbers(a, b)
    if kind is not other:
        raise no_such_overload()
    if kind is Timestamp or kind is Duration:
        return int((a.nanoseconds > b.nanoseconds) - (a.nanoseconds < b.nanoseconds))
    raise no_such_overload()


def _compare_numbers(a: Value, b: Value) -> int:
    """Compare without NaN. An integer next to a double is rounded to one, unless the double is out of range."""
    if type(a) is float and type(b) is not float:
        return -_compare_numbers(b, a)
    if type(b) is float and type(a) is not float:
        low, high = (0.0, 2.0**64) if type(a) is UInt else (-(2.0**63), 2.0**63)
        if b < low:
            return 1
        if b > high:
            return -1
        a = float(a)
    return int((a > b) - (a < b))


# --- Arithmetic


def int64(number: int) -> int:
    """Return `number` if it fits 64 bits with a sign."""
    if _INT_MIN <= number <= _INT_MAX:
        return number
    raise EvaluationError("integer overflow")


def uint64(number: int) -> UInt:
    """Return `number` if it fits 64 bits without a sign."""
    if 0 <= number <= _UINT_MAX:
        return UInt(number)
    raise EvaluationError("unsigned integer overflow")


def duration(nanoseconds: int) -> Duration:
    """Make a duration if it fits 64 bits."""
    if _INT_MIN <= nanoseconds <= _INT_MAX:
        return Duration(nanoseconds)
    raise EvaluationError("duration overflow")


def timestamp(nanoseconds: int) -> Timestamp:
    """Make a timestamp if it is in the years 1 to 9999."""
    if TIMESTAMP_MIN <= nanoseconds <= TIMESTAMP_MAX:
        return Timestamp(nanoseconds)
    raise EvaluationError("timestamp overflow")


_FITTING: Final = {int: int64, UInt: uint64}


def add(a: Value, b: Value) -> Value:
    kind, other = type(a), type(b)
    if kind is other:
        if kind is int:
            return int64(a + b)
        if kind is UInt:
            return uint64(int(a) + int(b))
        if kind in _JOINED:
            # Joining two lists, or texts whose type isn't known, costs nothing by their size, and doubling is quick.
            if kind is list and len(a) + len(b) > MAX_LENGTH:
                raise EvaluationError(f"a list has at most {MAX_LENGTH} elements")
            if kind in _TEXTS and len(a) + len(b) > MAX_TEXT:
                raise EvaluationError(f"a string has at most {MAX_TEXT} characters")
            return a + b
        if kind is Duration:
            return duration(a.nanoseconds + b.nanoseconds)
    elif {kind, other} == {Timestamp, Duration}:
        return timestamp(a.nanoseconds + b.nanoseconds)
    raise no_such_overload()


_JOINED: Final = frozenset({float, str, bytes, list})
_TEXTS: Final = frozenset({str, bytes})


def subtract(a: Value, b: Value) -> Value:
    kind, other = type(a), type(b)
    if kind is other:
        if kind in _FITTING:
            return _FITTING[kind](int(a) - int(b))
        if kind is float:
            return a - b
        if kind is Duration or kind is Timestamp:
            return duration(a.nanoseconds - b.nanoseconds)
    elif kind is Timestamp and other is Duration:
        return timestamp(a.nanoseconds - b.nanoseconds)
    raise no_such_overload()


def multiply(a: Value, b: Value) -> Value:
    kind = type(a)
    if kind is type(b):
        if kind in _FITTING:
            return _FITTING[kind](int(a) * int(b))
        if kind is float:
            return a * b
    raise no_such_overload()


def divide(a: Value, b: Value) -> Value:
    """Divide; the quotient of integers is rounded to zero."""
    kind = type(a)
    if kind is not type(b):
        raise no_such_overload()
    if kind is float:
        return _divide_doubles(a, b)
    if kind not in _FITTING:
        raise no_such_overload()
    if b == 0:
        raise EvaluationError("division by zero")
    quotient = abs(int(a)) // abs(int(b))
    return _FITTING[kind](quotient if (a < 0) == (b < 0) else -quotient)


def _divide_doubles(a: float, b: float) -> float:
    # Python raises where IEEE 754, and so Go, gives infinity or NaN.
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1, b)


def modulo(a: Value, b: Value) -> Value:
    """Return the remainder of `divide`, which has the sign of `a`."""
    kind = type(a)
    if kind is not type(b) or kind not in _FITTING:
        raise no_such_overload()
    if b == 0:
        raise EvaluationError("modulus by zero")
    # An error as in cel-go, although the remainder, 0, would fit.
    if kind is int and a == _INT_MIN and b == -1:
        raise EvaluationError("integer overflow")
    remainder = abs(int(a)) % abs(int(b))
    return _FITTING[kind](remainder if a >= 0 else -remainder)


def negate(a: Value) -> Value:
    if type(a) is int:
        return int64(-a)
    if type(a) is float:
        return -a
    raise EvaluationError("no such overload: -_")
