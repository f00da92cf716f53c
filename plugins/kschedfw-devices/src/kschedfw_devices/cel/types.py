"""The static types of CEL, their assignability, and declarations of functions.

Types of attributes are known at run time only (`any`): for the checker they agree with all others, as `dyn`
does.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

import attrs

from kschedfw_devices.cel.values import Value


@attrs.frozen
class Type:
    """A type; `parameters` are the types of elements, of keys and values, or of an optional's content."""

    name: str
    parameters: tuple["Type", ...] = ()

    @property
    def is_dynamic(self) -> bool:
        return self.name in ("dyn", "any", "error")

    @property
    def is_variable(self) -> bool:
        return self.name.startswith("'")

    def __str__(self) -> str:
        """Return the type as messages about calls show it."""
        if self.is_variable:
            return self.name[1:]
        return self._shown("null" if self.name == "null_type" else self.name, str)

    @property
    def full_name(self) -> str:
        """Return the type as messages about the whole expression show it."""
        return self._shown(_FULL_NAMES.get(self.name, self.name), lambda p: p.full_name)

    def _shown(self, name: str, shown: "Callable[[Type], str]") -> str:
        return f"{name}({', '.join(map(shown, self.parameters))})" if self.parameters else name


_FULL_NAMES: Final = {
    "any": "google.protobuf.Any",
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
}
ANY: Final = Type("any")
DYN: Final = Type("dyn")
ERROR: Final = Type("error")
BOOL: Final = Type("bool")
INT: Final = Type("int")
STRING: Final = Type("string")
NULL: Final = Type("null_type")
_NULLABLE: Final = frozenset({"any", "timestamp", "duration"})


class TypeBindings:
    """The types that the type variables met so far stand for."""

    def __init__(self, bound: dict[str, Type] | None = None) -> None:
        self._bound = bound or {}
        self._fresh = 0

    def variable(self) -> Type:
        """Make a variable without a type."""
        self._fresh += 1
        return Type(f"'_var{self._fresh}")

    def instance(self, types: list[Type]) -> list[Type]:
        """Return the types of a declaration with variables of their own."""
        fresh: dict[str, Type] = {}
        return [self._instance(t, fresh) for t in types]

    def _instance(self, type: Type, fresh: dict[str, Type]) -> Type:
        if type.is_variable:
            if type.name not in fresh:
                fresh[type.name] = self.variable()
            return fresh[type.name]
        if not type.parameters:
            return type
        return Type(type.name, tuple(self._instance(p, fresh) for p in type.parameters))

    def resolve(self, type: Type, *, final: bool = False) -> Type:
        """Replace variables by their types; with `final`, variables without a type by `dyn`."""
        if type.is_variable:
            if type.name in self._bound:
                return self.resolve(self._bound[type.name], final=final)
            return DYN if final else type
        if not type.parameters:
            return type
        return Type(type.name, tuple(self.resolve(p, final=final) for p in type.parameters))

    def assign(self, given: list[Type], wanted: list[Type]) -> bool:
        """Return whether all of `given` may be used as `wanted`; if so, bind variables."""
        # An overload that doesn't fit must leave no bindings to the next one.
        saved = dict(self._bound)
        if len(given) == len(wanted) and all(map(self._assign, given, wanted)):
            return True
        self._bound = saved
        return False

    def _assign(self, a: Type, b: Type) -> bool:
        if b.is_variable:
            fits, bound = self._bind(b, a)
            if fits or bound:
                return fits
        if a.is_variable:
            return self._bind(a, b)[0]
        if a.is_dynamic or b.is_dynamic:
            return True
        if NULL in (a, b):
            other = b if a == NULL else a
            return (
                # Names with a dot are those of Kubernetes' types, which are nullable like messages.
                other == NULL or other.name in _NULLABLE or "." in other.name or other.name == "optional_type"
            )
        return _agree(a, b, self._assign)

    def _bind(self, variable: Type, type: Type) -> tuple[bool, bool]:
        """Bind `variable` to `type`; return whether that is possible, and whether it was bound before."""
        if variable == type:
            return True, True
        bound = self._bound.get(variable.name)
        if bound is not None:
            if bound == type:
                return True, True
            if not self._assign(type, bound):
                return False, True
            general = most_general(type, bound)
            if not self._occurs(variable, general):
                self._bound[variable.name] = general
            return True, True
        if self._occurs(variable, type):
            return False, False
        self._bound[variable.name] = type
        return True, False

    def _occurs(self, variable: Type, type: Type) -> bool:
        if variable == type:
            return True
        if type.is_variable:
            bound = self._bound.get(type.name)
            return bound is not None and self._occurs(variable, bound)
        return any(self._occurs(variable, p) for p in type.parameters)


def most_general(a: Type, b: Type) -> Type:
    """Return the less specific of two types that agree."""
    return a if _is_as_general(a, b) else b


def _is_as_general(a: Type, b: Type) -> bool:
    if a.name in ("dyn", "any") or a.is_variable:
        return True
    if b.name in ("dyn", "any") or b.is_variable:
        return False
    return _agree(a, b, _is_as_general)


def _agree(a: Type, b: Type, relation: Callable[[Type, Type], bool]) -> bool:
    """Tell whether the types have one name and related parameters; those of types of types don't matter."""
    if a.name != b.name or a.name == "type":
        return a.name == b.name
    return len(a.parameters) == len(b.parameters) and all(map(relation, a.parameters, b.parameters))


@attrs.frozen(eq=False)
class Overload:
    """One of the signatures of a function, and its implementation."""

    function: str
    signature: str
    member: bool
    parameters: tuple[Type, ...]
    result: Type
    implementation: Callable[..., Value] | None


_SIGNATURE: Final = re.compile(
    r"(?:<(?P<target>.+)>\.)?(?P<name>[^ (]+)\((?P<parameters>.*)\) -> (?P<result>.+)"
)
_TOKEN: Final = re.compile(r"[A-Za-z_.]+|[(),]")
_SHORT: Final = {
    "null": "null_type",
    "optional": "optional_type",
    "quantity": "kubernetes.Quantity",
    "semver": "kubernetes.Semver",
    "url": "kubernetes.URL",
    "format": "kubernetes.NamedFormat",
    "ip": "net.IP",
    "cidr": "net.CIDR",
}


def read_signature(text: str, implementation: Callable[..., Value] | None) -> Overload:
    """Read `name(int, list(T)) -> T`, or `<string>.name(int) -> bool` of a method."""
    match = _SIGNATURE.fullmatch(text)
    assert match is not None, text
    parameters = list(_read_types(match["parameters"]))
    target = match["target"]
    if target is not None:
        parameters[:0] = _read_types(target)
    result = next(_read_types(match["result"]))
    return Overload(match["name"], text, target is not None, tuple(parameters), result, implementation)


def _read_types(text: str) -> Iterator[Type]:
    tokens = _TOKEN.findall(text)
    position = 0

    def read() -> Type:
        nonlocal position
        name = tokens[position]
        position += 1
        parameters: list[Type] = []
        if position < len(tokens) and tokens[position] == "(":
            while tokens[position] != ")":
                position += 1
                parameters.append(read())
            position += 1
        if len(name) == 1 and name.isupper():
            return Type(f"'{name}")
        return Type(_SHORT.get(name, name), tuple(parameters))

    while position < len(tokens):
        yield read()
        position += 1
