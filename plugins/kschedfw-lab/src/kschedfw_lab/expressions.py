"""The language of conditions and constraints: comparisons of numbers and texts, joined by `and`, `or` and `not`.

    test        = conjunction {"or" conjunction}
    conjunction = single {"and" single}
    single      = "not" single | "(" test ")" | sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum]
    sum         = product {("+" | "-") product}
    product     = operand {"*" operand}
    operand     = number ["%"] | text in quotes | name

The users of the language say what names stand for. A sum alone holds if it isn't 0, false, null or empty. Numbers are
decimal and exact: 0.1 + 0.2 == 0.3.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Final, TypeAlias

import attrs

LONGEST: Final = 500
"""The greatest length of an expression, in characters."""
DEEPEST: Final = 20
"""The deepest nesting of parentheses and `not`."""

Scalar: TypeAlias = str | int | float | bool | None
Value: TypeAlias = Scalar | Fraction

_TOKEN: Final = re.compile(
    r"(?P<number>\d{1,15}(?:\.\d{1,15})?)"
    r"|(?P<text>\"[^\"]*\"|'[^']*')"
    r"|(?P<name>[A-Za-z_](?:(?:[\w./-]|\[[^\[\]]*\])*[\w\]])?)"
    r"|(?P<sign><=|>=|==|!=|[-<>()+*%])"
)
_WORDS: Final = ("and", "or", "not")
_ORDERS: Final[Mapping[str, Callable[[Fraction, Fraction], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_CALCULATIONS: Final[Mapping[str, Callable[[Fraction, Fraction], Fraction]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}


class ExpressionError(ValueError):
    """The error of a text that is no expression, or of one whose values have no order."""


@attrs.frozen
class Constant:
    """A number as it was written, a text, true, false or null."""

    value: Fraction | str | bool | None
    is_percent: bool = False


@attrs.frozen
class Name:
    """The value of a name."""

    text: str


@attrs.frozen
class Combined:
    """Two numbers, added, subtracted or multiplied."""

    left: Term
    sign: str
    right: Term


Term: TypeAlias = Constant | Name | Combined


@attrs.frozen
class Compared:
    """A comparison of two terms; without a sign, the left one alone."""

    left: Term
    sign: str = ""
    right: Term = Constant(None)

    @property
    def names(self) -> Iterator[str]:
        """The names in both terms, from left to right."""
        yield from _names(self.left)
        yield from _names(self.right)


@attrs.frozen
class Joined:
    """Tests joined by `and` or `or`, or a single one with `not`."""

    word: str
    tests: tuple[Test, ...]


Test: TypeAlias = Compared | Joined


def comparisons(test: Test) -> Iterator[Compared]:
    """Yield the comparisons in a test, from left to right."""
    if isinstance(test, Compared):
        yield test
        return
    for each in test.tests:
        yield from comparisons(each)


def _names(term: Term) -> Iterator[str]:
    if isinstance(term, Name):
        yield term.text
    elif isinstance(term, Combined):
        yield from _names(term.left)
        yield from _names(term.right)


def holds(
    test: Test, value_of: Callable[[str], Value], whole_of: Callable[[Compared], int] = lambda _: 1
) -> bool:
    """Return whether a test is true.

    Args:
        test: the test.
        value_of: returns the value of a name.
        whole_of: returns what the percentages of a comparison are of. Those in a product are plain numbers.

    Raises:
        ExpressionError: values that aren't numbers are ordered or added up.
    """
    if isinstance(test, Joined):
        held = (holds(each, value_of, whole_of) for each in test.tests)
        if test.word == "not":
            return not next(held)
        return all(held) if test.word == "and" else any(held)
    whole = whole_of(test)
    left, right = _value(test.left, value_of, whole), _value(test.right, value_of, whole)
    if not test.sign:
        return bool(left)
    if test.sign in _ORDERS:
        return _ORDERS[test.sign](_number(left), _number(right))
    return (left == right) is (test.sign == "==")


def _value(term: Term, value_of: Callable[[str], Value], whole: int) -> Value:
    match term:
        case Constant():
            return _number(term.value) * whole / 100 if term.is_percent else term.value
        case Name():
            value = value_of(term.text)
            # The decimal number that is written, not the binary one next to it.
            return Fraction(repr(value)) if isinstance(value, float) and math.isfinite(value) else value
        case Combined():
            of = 1 if term.sign == "*" else whole
            left, right = (_number(_value(each, value_of, of)) for each in (term.left, term.right))
            return _CALCULATIONS[term.sign](left, right)


def _number(value: Value) -> Fraction:
    if isinstance(value, (int, float, Fraction)):
        return value  # type: ignore[return-value]  # Python calculates with all of them alike
    raise ExpressionError(f"{value!r} is no number")


def parse(
    text: str,
    noun: str,
    operands: str,
    operand: Callable[[str], Term],
    check: Callable[[Compared], object] = lambda _: None,
) -> Test:
    """Parse an expression.

    Args:
        text: the text.
        noun: what errors call an expression, such as `condition`.
        operands: what errors call its operands.
        operand: returns what a name or a text in quotes stands for. It may raise ExpressionError.
        check: called with each comparison. It may raise ExpressionError.

    Raises:
        ExpressionError: the text is no expression, or is too long or too deeply nested.
    """
    if len(text) > LONGEST:
        raise ExpressionError(f"a {noun} of {len(text):,} characters; at most {LONGEST}")
    try:
        return _Parser(text, operands, operand, check).whole()
    except ExpressionError as error:
        raise ExpressionError(f"{text!r} is no {noun}: {error}") from None


class _Parser:
    """Parses one text, token by token, from left to right. White space between tokens is ignored."""

    def __init__(
        self,
        text: str,
        operands: str,
        operand: Callable[[str], Term],
        check: Callable[[Compared], object],
    ) -> None:
        self._tokens = list(_tokens(text))
        self._next = 0
        self._depth = 0
        self._operands, self._operand_of, self._check = operands, operand, check

    def whole(self) -> Test:
        test = self._test()
        if self._peek():
            raise ExpressionError(f"{self._peek()!r} is one too many")
        return test

    def _peek(self) -> str:
        """Return the next token; empty at the end."""
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self, *tokens: str) -> str:
        """Consume the next token if it is one of these. Return it; empty if it is another one."""
        token = self._peek()
        if token not in tokens:
            return ""
        self._next += 1
        return token

    def _test(self) -> Test:
        return self._joined("or", lambda: self._joined("and", self._single))

    def _joined(self, word: str, read: Callable[[], Test]) -> Test:
        tests = [read()]
        while self._take(word):
            tests.append(read())
        return tests[0] if len(tests) == 1 else Joined(word, tuple(tests))

    def _single(self) -> Test:
        # Counted, so that no text exhausts the stack.
        self._depth += 1
        if self._depth > DEEPEST:
            raise ExpressionError(f"it is nested more than {DEEPEST} levels deep")
        try:
            if self._take("not"):
                return Joined("not", (self._single(),))
            if self._take("("):
                test = self._test()
                if not self._take(")"):
                    raise ExpressionError("a closing parenthesis is missing")
                return test
            left = self._sum()
            sign = self._take(*_ORDERS, "==", "!=")
            compared = Compared(left, sign, self._sum()) if sign else Compared(left)
            self._check(compared)
            return compared
        finally:
            self._depth -= 1

    def _sum(self) -> Term:
        return self._combined(("+", "-"), lambda: self._combined(("*",), self._operand))

    def _combined(self, signs: tuple[str, ...], read: Callable[[], Term]) -> Term:
        left = read()
        while sign := self._take(*signs):
            left = Combined(left, sign, read())
        return left

    def _operand(self) -> Term:
        token = self._peek()
        self._next += 1
        if token[:1].isdecimal():
            return Constant(Fraction(token), is_percent=bool(self._take("%")))
        if (token[:1] in ("'", '"', "_") and token) or (token[:1].isalpha() and token not in _WORDS):
            return self._operand_of(token)
        raise ExpressionError(
            f"{self._operands} is missing{f' before {token!r}' if token else ' at the end'}"
        )


def _tokens(text: str) -> Iterator[str]:
    position, end = 0, len(text.rstrip())
    while position < end:
        if text[position].isspace():
            position += 1
            continue
        match = _TOKEN.match(text, position)
        if match is None:
            raise ExpressionError(f"{text[position:].split(maxsplit=1)[0]!r} is not understood")
        yield match[0]
        position = match.end()
