"""The static types of an expression: an expression that can't work for any device is refused."""

from typing import Final

import kschedfw_devices.cel.containers
import kschedfw_devices.cel.formats
import kschedfw_devices.cel.kubernetes
import kschedfw_devices.cel.network
import kschedfw_devices.cel.standard  # noqa: F401 # these fill the table of functions
from kschedfw_devices.cel.functions import FUNCTIONS, dispatcher
from kschedfw_devices.cel.strings import compiled_pattern, format_clauses
from kschedfw_devices.cel.syntax import (
    Call,
    Comprehension,
    Ident,
    Issue,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
    SyntaxNode,
    Visitor,
    compilation_failed,
)
from kschedfw_devices.cel.types import (
    ANY,
    BOOL,
    DYN,
    ERROR,
    INT,
    STRING,
    Overload,
    Type,
    TypeBindings,
    most_general,
)
from kschedfw_devices.cel.values import EvaluationError, type_name

_DEVICE: Final = Type("kubernetes.DRADevice")
DEVICE_FIELDS: Final = {
    "driver": STRING,
    "allowMultipleAllocations": BOOL,
    "attributes": Type("map", (STRING, Type("map", (STRING, ANY)))),
    "capacity": Type("map", (STRING, Type("map", (STRING, Type("kubernetes.Quantity"))))),
}

_TYPE_NAMES: Final = {
    "bool": BOOL,
    "bytes": Type("bytes"),
    "double": Type("double"),
    "int": INT,
    "list": Type("list", (DYN,)),
    "map": Type("map", (DYN, DYN)),
    "null_type": Type("null_type"),
    "string": STRING,
    "type": Type("type"),
    "uint": Type("uint"),
    "optional_type": Type("optional_type", (DYN,)),
    "google.protobuf.Timestamp": Type("timestamp"),
    "google.protobuf.Duration": Type("duration"),
    "kubernetes.Quantity": Type("kubernetes.Quantity"),
    "kubernetes.Semver": Type("kubernetes.Semver"),
    "kubernetes.URL": Type("kubernetes.URL"),
    "net.IP": Type("net.IP"),
    "net.CIDR": Type("net.CIDR"),
}
"""The types that have a name in expressions."""


def check(tree: SyntaxNode, source: str) -> Type:
    """Return the type of an expression; store the types of its parts, and possible overloads of calls, in `tree`.

    Raises:
        CompileError: the types don't go together, a name is unknown, or a literal is no duration, timestamp or
            pattern.
    """
    checker = _Checker()
    checker.check(tree)
    if not checker.issues:
        checker.finish(tree)
    if checker.issues:
        raise compilation_failed(source, checker.issues)
    assert tree.type is not None
    return tree.type


class _Checker(Visitor[Type]):
    def __init__(self) -> None:
        self.issues: list[Issue] = []
        self._bindings = TypeBindings()
        self._scopes: list[dict[str, Type]] = [{"device": _DEVICE}]
        self._nodes: list[SyntaxNode] = []

    def check(self, node: SyntaxNode) -> Type:
        found = self.visit(node)
        node.type = found
        self._nodes.append(node)
        return found

    def finish(self, tree: SyntaxNode) -> None:
        """Replace variables by types, and check literals that functions will read."""
        for node in self._nodes:
            assert node.type is not None
            node.type = self._bindings.resolve(node.type, final=True)
        for node in self._nodes:
            if isinstance(node, Call):
                self._check_literals(node)
        self._check_homogeneous(tree)

    def _issue(self, node: SyntaxNode, message: str) -> Type:
        self.issues.append(Issue(node.offset, message))
        return ERROR

    def literal(self, node: Literal) -> Type:
        return Type(type_name(node.value))

    # --- Names and fields

    def identifier(self, node: Ident) -> Type:
        name = node.name.removeprefix(".")
        # A name with a leading dot is looked for in the outermost scope alone.
        for scope in reversed(self._scopes if name == node.name else self._scopes[:1]):
            if name in scope:
                return scope[name]
        if name in _TYPE_NAMES:
            node.name, node.is_type = name, True
            return Type("type", (_TYPE_NAMES[name],))
        return self._issue(node, _undeclared(node.name))

    def selection(self, node: Select) -> Type:
        name = qualified_name(node)
        if not node.test and name is not None and name.removeprefix(".") in _TYPE_NAMES:
            return Type("type", (_TYPE_NAMES[name.removeprefix(".")],))
        operand = self._bindings.resolve(self.check(node.operand))
        is_optional = operand.name == "optional_type"
        if is_optional:
            operand = self._bindings.resolve(operand.parameters[0])
        found = self._field(node, operand)
        if node.test:
            return BOOL
        found = self._bindings.resolve(found)
        return Type("optional_type", (found,)) if is_optional or node.optional else found

    def _field(self, node: Select, operand: Type) -> Type:
        if operand.name == "map":
            return operand.parameters[1]
        if operand == _DEVICE:
            if node.field in DEVICE_FIELDS:
                return DEVICE_FIELDS[node.field]
            return self._issue(node, f"undefined field '{node.field}'")
        if operand.is_variable:
            self._bindings.assign([DYN], [operand])
            return DYN
        if operand.name.startswith("kubernetes."):
            return self._issue(node, f"undefined field '{node.field}'")
        if not operand.is_dynamic:
            self._issue(node, f"type '{operand}' does not support field selection")
        return DYN

    # --- Calls

    def call(self, node: Call) -> Type:
        for argument in node.arguments:
            self.check(argument)
        if node.target is None:
            name = node.function.removeprefix(".")
            if name not in FUNCTIONS:
                return self._issue(node, _undeclared(node.function))
            node.function = name
            return self._resolve(node)
        prefix = qualified_name(node.target)
        if prefix is not None and f"{prefix.removeprefix('.')}.{node.function}" in FUNCTIONS:
            # The target is no value but the first part of the function's name.
            node.function, node.target = f"{prefix.removeprefix('.')}.{node.function}", None
            return self._resolve(node)
        self.check(node.target)
        if node.function not in FUNCTIONS:
            return self._issue(node, _undeclared(node.function))
        return self._resolve(node)

    def _resolve(self, node: Call) -> Type:
        given = [argument.type or ERROR for argument in node.operands]
        if node.function in ("_&&_", "_||_"):
            return self._logical(node, given)
        result: Type | None = None
        candidates: list[Overload] = []
        for overload in FUNCTIONS[node.function]:
            if overload.member is not (node.target is not None):
                continue
            returned, *wanted = self._bindings.instance([overload.result, *overload.parameters])
            if not self._bindings.assign(given, wanted):
                continue
            candidates.append(overload)
            returned = self._bindings.resolve(returned)
            if result is None:
                result = returned
            # Which overload is called shows at run time; so does the type where their results differ.
            elif not result.is_dynamic and returned != result:
                result = DYN
        node.overloads = candidates
        if result is None:
            shown = [str(self._bindings.resolve(t, final=True)) for t in given]
            receiver = f"{shown.pop(0)}." if node.target is not None else ""
            arguments = f"{receiver}({', '.join(shown)})"
            return self._issue(
                node, f"found no matching overload for '{node.function}' applied to '{arguments}'"
            )
        return result

    def _logical(self, node: Call, given: list[Type]) -> Type:
        node.overloads = FUNCTIONS[node.function]
        for argument, found in zip(node.arguments, given, strict=True):
            if not self._bindings.assign([found], [BOOL]):
                self._issue(argument, f"expected type 'bool' but found '{self._bindings.resolve(found)}'")
        return BOOL

    # --- Lists, maps, comprehensions

    def list_literal(self, node: ListLiteral) -> Type:
        joined: Type | None = None
        for i, element in enumerate(node.elements):
            found = self._content(element, self.check(element), i in node.optional)
            joined = self._join(joined, found)
        return Type("list", (joined or self._bindings.variable(),))

    def map_literal(self, node: MapLiteral) -> Type:
        keys: Type | None = None
        values: Type | None = None
        for i, (key, value) in enumerate(node.entries):
            keys = self._join(keys, self.check(key))
            values = self._join(values, self._content(value, self.check(value), i in node.optional))
        if keys is None or values is None:
            return Type("map", (self._bindings.variable(), self._bindings.variable()))
        return Type("map", (keys, values))

    def _content(self, node: SyntaxNode, found: Type, is_optional: bool) -> Type:
        if not is_optional:
            return found
        found = self._bindings.resolve(found)
        if found.name == "optional_type":
            return found.parameters[0]
        if not found.is_dynamic:
            self._issue(node, f"expected type 'optional_type({found})' but found '{found}'")
        return found

    def _join(self, previous: Type | None, current: Type) -> Type:
        if previous is None:
            return current
        return most_general(previous, current) if self._bindings.assign([previous], [current]) else DYN

    def comprehension(self, node: Comprehension) -> Type:
        elements = self._bindings.resolve(self.check(node.range))
        accumulated = self.check(node.initial)
        self._scopes.append({node.accumulator: accumulated})
        self._scopes.append(self._variables(node, elements))
        self._expect(node.condition, BOOL)
        self._expect(node.step, accumulated)
        self._scopes.pop()
        # The result sees the accumulator, and not the variables.
        result = self.check(node.result)
        self._scopes.pop()
        return self._bindings.resolve(result)

    def _variables(self, node: Comprehension, elements: Type) -> dict[str, Type]:
        if elements.name == "list":
            first, second = elements.parameters[0], elements.parameters[0]
            if node.variable2 is not None:
                first = INT
        elif elements.name == "map":
            first, second = elements.parameters
        elif elements.is_dynamic or elements.is_variable:
            self._bindings.assign([DYN], [elements])
            first = second = DYN
        else:
            first = second = self._issue(
                node.range,
                f"expression of type '{elements}' cannot be range of a comprehension (must be list, map, or dynamic)",
            )
        variables = {node.variable: first}
        if node.variable2 is not None:
            variables[node.variable2] = second
        return variables

    def _expect(self, node: SyntaxNode, wanted: Type) -> None:
        found = self.check(node)
        if not self._bindings.assign([wanted], [found]):
            expected, found = self._bindings.resolve(wanted), self._bindings.resolve(found)
            self._issue(node, f"expected type '{expected}' but found '{found}'")

    # --- Literals

    def _check_literals(self, node: Call) -> None:
        if node.function == "format":
            self._check_format(node)
        if not node.arguments or not isinstance(node.arguments[0], Literal):
            return
        argument = node.arguments[0]
        try:
            if node.function in ("duration", "timestamp") and node.target is None:
                dispatcher(node.function, False, 1)(argument.value)
            elif node.function == "matches" and isinstance(argument.value, str):
                compiled_pattern(argument.value)
        except EvaluationError:
            self._issue(argument, f"invalid {node.function} argument")

    def _check_homogeneous(self, node: SyntaxNode) -> None:
        """Find literal lists and maps of several types; only arguments of `format` may be such."""
        match node:
            case Call(function="format"):
                return
            case ListLiteral():
                self._check_one_type(node.elements, node.optional, first_only=True)
            case MapLiteral():
                self._check_one_type([key for key, _ in node.entries], frozenset())
                self._check_one_type([value for _, value in node.entries], node.optional)
        for child in node.children:
            self._check_homogeneous(child)

    def _check_one_type(
        self, nodes: list[SyntaxNode], optional: frozenset[int], *, first_only: bool = False
    ) -> None:
        expected: Type | None = None
        for i, node in enumerate(nodes):
            found = node.type or ERROR
            if i in optional and found.parameters:
                found = found.parameters[0]
            expected = expected or found
            if found != expected:
                self._issue(node, f"expected type '{expected}' but found '{found}'")
                if first_only:
                    return

    def _check_format(self, node: Call) -> None:
        """Compare a literal format with a literal list of arguments."""
        template, arguments = node.target, node.arguments[0]
        if not (isinstance(template, Literal) and isinstance(arguments, ListLiteral)):
            return
        if not isinstance(template.value, str):
            return
        try:
            letters = [letter for _, letter, _ in format_clauses(template.value) if letter]
        except EvaluationError as error:
            self._issue(template, str(error))
            return
        if len(letters) > len(arguments.elements):
            self._issue(arguments, f"index {len(arguments.elements)} out of range")
            return
        if len(letters) < len(arguments.elements):
            self._issue(
                arguments,
                "too many arguments supplied to string.format "
                f"(expected {len(letters)}, got {len(arguments.elements)})",
            )
            return
        for letter, element in zip(letters, arguments.elements, strict=True):
            wrong = next((e for e in _formatted(letter, element) if not _may_format(letter, e)), None)
            if wrong is not None:
                assert wrong.type is not None
                self._issue(
                    wrong, f"error during formatting: %{letter} can't show a value of type {wrong.type}"
                )


_FORMATTED: Final = {
    "d": ("int", "uint"),
    "f": ("double", "string"),
    "e": ("double", "string"),
    "b": ("int", "uint", "bool"),
    "x": ("int", "uint", "string", "bytes"),
    "X": ("int", "uint", "string", "bytes"),
    "o": ("int", "uint"),
    "s": (
        *("list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration", "type"),
        "null_type",
    ),
}


def _formatted(letter: str, element: SyntaxNode) -> list[SyntaxNode]:
    """Return the expressions whose types matter: the element, and the parts of a literal list or map."""
    inner: list[SyntaxNode] = []
    if letter == "s" and isinstance(element, ListLiteral):
        inner = element.elements
    elif letter == "s" and isinstance(element, MapLiteral):
        inner = [part for entry in element.entries for part in entry]
    return [element, *(found for part in inner for found in _formatted(letter, part))]


def _may_format(letter: str, element: SyntaxNode) -> bool:
    assert element.type is not None
    return element.type == DYN or element.type.name in _FORMATTED[letter]


def qualified_name(node: SyntaxNode) -> str | None:
    """Return the name that `a.b.c` is; None if it is no name."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test and not node.optional:
        prefix = qualified_name(node.operand)
        return None if prefix is None else f"{prefix}.{node.field}"
    return None


def _undeclared(name: str) -> str:
    return f"undeclared reference to '{name}' (in container '')"
