"""The tree of a parsed expression, and positions of errors in its source."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import attrs

from kschedfw_devices.cel.values import CompileError, Value

if TYPE_CHECKING:
    from kschedfw_devices.cel.types import Overload, Type


T = TypeVar("T")

ACCUMULATOR: Final = "@result"
"""The variable in which the macros collect their result; no expression can name it."""


@attrs.define(eq=False)
class SyntaxNode:
    """An expression; `offset` is its position for errors."""

    offset: int
    type: "Type | None" = attrs.field(default=None, init=False)
    """The type that the checker found."""

    @property
    def children(self) -> "list[SyntaxNode]":
        """Return the direct parts of this expression."""
        return []


@attrs.define(eq=False)
class Literal(SyntaxNode):
    value: Value


@attrs.define(eq=False)
class Ident(SyntaxNode):
    name: str
    is_type: bool = attrs.field(default=False, init=False)
    """True if the identifier names a type, False if it names a variable."""


@attrs.define(eq=False)
class Select(SyntaxNode):
    """`operand.field`; with `test`, `has(operand.field)`; with `optional`, `operand.?field`."""

    operand: SyntaxNode
    field: str
    test: bool = False
    optional: bool = False

    @property
    def children(self) -> list[SyntaxNode]:
        return [self.operand]


@attrs.define(eq=False)
class Call(SyntaxNode):
    """A call of a function, of a method where there is a `target`, or of an operator (`_+_`)."""

    function: str
    target: SyntaxNode | None
    arguments: list[SyntaxNode]
    overloads: "list[Overload]" = attrs.field(factory=list, init=False)
    """The overloads that fit the types of the arguments, as the checker found them."""

    @property
    def operands(self) -> list[SyntaxNode]:
        return self.arguments if self.target is None else [self.target, *self.arguments]

    @property
    def children(self) -> list[SyntaxNode]:
        return self.operands


@attrs.define(eq=False)
class ListLiteral(SyntaxNode):
    elements: list[SyntaxNode]
    optional: frozenset[int] = frozenset()
    """The positions of elements that were written `?element`."""

    @property
    def children(self) -> list[SyntaxNode]:
        return self.elements


@attrs.define(eq=False)
class MapLiteral(SyntaxNode):
    entries: list[tuple[SyntaxNode, SyntaxNode]]
    optional: frozenset[int] = frozenset()

    @property
    def children(self) -> list[SyntaxNode]:
        return [part for entry in self.entries for part in entry]


@attrs.define(eq=False)
class Comprehension(SyntaxNode):
    """A fold, to which every macro over a list or a map expands.

    `accumulator` starts as `initial`; for each element, as long as `condition` holds, it becomes `step`; the
    value is `result`. `cel.bind` is one over an empty list.
    """

    range: SyntaxNode
    variable: str
    variable2: str | None
    accumulator: str
    initial: SyntaxNode
    condition: SyntaxNode
    step: SyntaxNode
    result: SyntaxNode

    @property
    def children(self) -> list[SyntaxNode]:
        return [self.range, self.initial, self.condition, self.step, self.result]

    @property
    def is_binding(self) -> bool:
        return self.accumulator != ACCUMULATOR


class Visitor(ABC, Generic[T]):
    """A visitor with a method for each kind of node."""

    def visit(self, node: SyntaxNode) -> T:
        match node:
            case Literal():
                return self.literal(node)
            case Ident():
                return self.identifier(node)
            case Select():
                return self.selection(node)
            case Call():
                return self.call(node)
            case ListLiteral():
                return self.list_literal(node)
            case MapLiteral():
                return self.map_literal(node)
        assert isinstance(node, Comprehension)
        return self.comprehension(node)

    @abstractmethod
    def literal(self, node: Literal) -> T: ...

    @abstractmethod
    def identifier(self, node: Ident) -> T: ...

    @abstractmethod
    def selection(self, node: Select) -> T: ...

    @abstractmethod
    def call(self, node: Call) -> T: ...

    @abstractmethod
    def list_literal(self, node: ListLiteral) -> T: ...

    @abstractmethod
    def map_literal(self, node: MapLiteral) -> T: ...

    @abstractmethod
    def comprehension(self, node: Comprehension) -> T: ...


@attrs.frozen
class Issue:
    """An error at a position in the source."""

    offset: int
    message: str


def compilation_failed(source: str, issues: Iterable[Issue]) -> CompileError:
    """Make the error that lists all issues, each with its line and a mark below it."""
    shown = "\n".join(_shown(source, issue) for issue in sorted(issues, key=lambda i: i.offset))
    return CompileError(f"compilation failed: {shown}")


def _shown(source: str, issue: Issue) -> str:
    if not source:
        return f"ERROR: <input>:1:0: {issue.message}"
    before = source[: issue.offset]
    line, column = before.count("\n"), issue.offset - (before.rfind("\n") + 1)
    lines: Sequence[str] = source.split("\n")
    text = lines[line].replace("\t", " ")
    return f"ERROR: <input>:{line + 1}:{column + 1}: {issue.message}\n | {text}\n | {'.' * column}^"
