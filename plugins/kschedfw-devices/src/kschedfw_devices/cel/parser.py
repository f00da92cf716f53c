"""Parsing of the text of an expression to its tree."""

from collections.abc import Callable
from typing import Final, TypeVar

from kschedfw_devices.cel.lexer import LexError, Token, literal, tokens
from kschedfw_devices.cel.macros import MACROS, MacroError
from kschedfw_devices.cel.syntax import (
    Call,
    Ident,
    Issue,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
    SyntaxNode,
    compilation_failed,
)

MAX_NESTING: Final = 64
"""The deepest nesting of an expression, and the longest chain of one operator other than `&&` and `||`.

cel-go's limit is 250; here every level takes several of Python's 1,000 stack frames.
"""

_MAX_DEPTH: Final = 160
"""The greatest depth of the tree after macros are expanded, each of which stands for several levels."""

_RESERVED: Final = frozenset(
    {"as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop"}
    | {"package", "namespace", "return", "var", "void", "while"}
)
_PRECEDENCE: Final = {
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!=", "in"), 1),
    **dict.fromkeys(("+", "-"), 2),
    **dict.fromkeys(("*", "/", "%"), 3),
}
_NUMBERS: Final = ("int", "uint", "double")
_T = TypeVar("_T")


def parse(source: str) -> SyntaxNode:
    """Parse an expression and expand its macros.

    Raises:
        CompileError: it is no expression, or is nested deeper than `MAX_NESTING`.
    """
    try:
        parser = _Parser(source)
        tree = parser.expression()
        parser.expect("end")
    except LexError as error:
        raise compilation_failed(source, [error.issue]) from None
    if parser.issues:
        raise compilation_failed(source, parser.issues)
    _check_depth(tree, source)
    return tree


def _check_depth(tree: SyntaxNode, source: str) -> None:
    """Refuse a tree that macros made too deep."""
    level = [tree]
    for _ in range(_MAX_DEPTH):
        # A node may be in the tree several times.
        level = list({id(child): child for node in level for child in node.children}.values())
        if not level:
            return
    issue = Issue(level[0].offset, f"expression recursion limit exceeded: {_MAX_DEPTH}")
    raise compilation_failed(source, [issue])


class _Parser:
    def __init__(self, source: str) -> None:
        self._tokens = list(tokens(source))
        self._position = 0
        self._depth = 0
        self.issues: list[Issue] = []

    # --- Tokens

    @property
    def _token(self) -> Token:
        return self._tokens[self._position]

    def _next(self) -> Token:
        token = self._token
        self._position += 1
        return token

    def _accept(self, kind: str) -> Token | None:
        return self._next() if self._token.kind == kind else None

    def expect(self, kind: str) -> Token:
        if self._token.kind != kind:
            raise self._unexpected(f"expecting '{'<EOF>' if kind == 'end' else kind}'")
        return self._next()

    def _unexpected(self, expecting: str) -> LexError:
        token = self._token
        return LexError(token.offset, f"Syntax error: mismatched input '{token.text}' {expecting}")

    def _check_limit(self, level: int) -> None:
        if level > MAX_NESTING:
            raise LexError(self._token.offset, f"expression recursion limit exceeded: {MAX_NESTING}")

    def _deeper(self, parse: Callable[[], _T]) -> _T:
        self._depth += 1
        self._check_limit(self._depth)
        result = parse()
        self._depth -= 1
        return result

    # --- Expressions, from the loosest to the tightest

    def expression(self) -> SyntaxNode:
        condition = self._logical("||", "_||_", self._conjunction)
        question = self._accept("?")
        if question is None:
            return condition
        then = self._logical("||", "_||_", self._conjunction)
        self.expect(":")
        otherwise = self._deeper(self.expression)
        return Call(question.offset, "_?_:_", None, [condition, then, otherwise])

    def _conjunction(self) -> SyntaxNode:
        return self._logical("&&", "_&&_", self._binary)

    def _logical(self, sign: str, function: str, operand: Callable[[], SyntaxNode]) -> SyntaxNode:
        operands = [operand()]
        offsets = []
        while token := self._accept(sign):
            offsets.append(token.offset)
            operands.append(operand())
        return _balanced(function, operands, offsets)

    def _binary(self, least: int = 1) -> SyntaxNode:
        left = self._unary()
        length = 0
        while (precedence := _PRECEDENCE.get(self._token.kind, 0)) >= least:
            length += 1
            self._check_limit(length)
            token = self._next()
            right = self._binary(precedence + 1)
            function = "@in" if token.kind == "in" else f"_{token.kind}_"
            left = Call(token.offset, function, None, [left, right])
        return left

    def _unary(self) -> SyntaxNode:
        start = self._position
        sign = self._token.kind
        if sign not in ("!", "-"):
            return self._member(self._primary())
        while self._accept(sign):
            pass
        count, offset = self._position - start, self._tokens[start].offset
        if sign == "-" and self._token.kind in ("int", "double"):
            # The last sign belongs to the number.
            number = Literal(self._tokens[self._position - 1].offset, literal(self._next(), negative=True))
            count -= 1
            operand = self._member(number)
        else:
            operand = self._member(self._primary())
        # Pairs of signs cancel each other out, as in cel-go's parser.
        return Call(offset, f"{sign}_", None, [operand]) if count % 2 else operand

    def _member(self, operand: SyntaxNode) -> SyntaxNode:
        length = 0
        while self._token.kind in (".", "["):
            length += 1
            self._check_limit(length)
            operand = self._index(operand) if self._token.kind == "[" else self._selection(operand)
        return operand

    def _index(self, operand: SyntaxNode) -> SyntaxNode:
        offset = self._next().offset
        optional = self._accept("?") is not None
        index = self._deeper(self.expression)
        self.expect("]")
        return Call(offset, "_[?_]" if optional else "_[_]", None, [operand, index])

    def _selection(self, operand: SyntaxNode) -> SyntaxNode:
        offset = self._next().offset
        optional = self._accept("?") is not None
        if self._token.kind != "identifier":
            raise self._unexpected("expecting IDENTIFIER")
        name = self._next().text
        if optional or self._token.kind != "(":
            return Select(offset, operand, name, optional=optional)
        return self._call(name, operand)

    def _call(self, name: str, target: SyntaxNode | None) -> SyntaxNode:
        offset = self.expect("(").offset
        arguments = self._deeper(lambda: self._list(")"))
        macro = MACROS.get((name, len(arguments), target is not None))
        if macro is not None:
            try:
                expanded = macro(offset, target, arguments)
            except MacroError as error:
                self.issues.append(error.issue)
                return Literal(offset, None)
            if expanded is not None:
                return expanded
        return Call(offset, name, target, arguments)

    def _list(self, end: str) -> list[SyntaxNode]:
        elements: list[SyntaxNode] = []
        while self._token.kind != end:
            elements.append(self.expression())
            if self._accept(",") is None:
                break
            if end == ")" and self._token.kind == end:
                raise self._unexpected("expecting an argument")
        self.expect(end)
        return elements

    # --- Primaries

    def _primary(self) -> SyntaxNode:
        token = self._token
        match token.kind:
            case "int" | "uint" | "double" | "string" | "bytes":
                return Literal(self._next().offset, literal(token))
            case "true" | "false" | "null":
                return Literal(self._next().offset, {"true": True, "false": False}.get(token.text))
            case "(":
                self._next()
                result = self._deeper(self.expression)
                self.expect(")")
                return result
            case "[":
                return self._deeper(lambda: ListLiteral(*self._items("]", self.expression)))
            case "{":
                return self._deeper(lambda: MapLiteral(*self._items("}", self._entry)))
            case "identifier" | ".":
                return self._name()
        raise self._unexpected(
            "expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, "
            "BYTES, IDENTIFIER}"
        )

    def _name(self) -> SyntaxNode:
        root = "." if self._accept(".") else ""
        token = self.expect("identifier")
        if token.text in _RESERVED:
            self.issues.append(Issue(token.offset, f"reserved identifier: {token.text}"))
        if self._token.kind == "(":
            return self._call(root + token.text, None)
        return Ident(token.offset, root + token.text)

    def _items(self, end: str, item: Callable[[], _T]) -> tuple[int, list[_T], frozenset[int]]:
        """Return the offset of a literal list or map, its items, and the positions of the optional ones."""
        offset = self._next().offset
        items: list[_T] = []
        optional: list[int] = []
        while self._token.kind != end:
            if self._accept("?"):
                optional.append(len(items))
            items.append(item())
            if self._accept(",") is None:
                break
        self.expect(end)
        return offset, items, frozenset(optional)

    def _entry(self) -> tuple[SyntaxNode, SyntaxNode]:
        key = self.expression()
        self.expect(":")
        return key, self.expression()


def _balanced(function: str, operands: list[SyntaxNode], offsets: list[int]) -> SyntaxNode:
    """Make a tree of least height of a chain of `&&` or `||`, which may be long."""
    if len(operands) == 1:
        return operands[0]
    middle = (len(offsets) - 1) // 2 + 1 if len(offsets) > 1 else 1
    left = _balanced(function, operands[:middle], offsets[: middle - 1])
    right = _balanced(function, operands[middle:], offsets[middle:])
    return Call(offsets[middle - 1], function, None, [left, right])
