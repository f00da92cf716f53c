"""Constraints between factors: `plugins.CostAware > 0 or strategy != "MostAllocated"`.

    leaf    = sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum]
    sum     = product {("+" | "-") product}
    product = operand {"*" operand}
    operand = number | text in quotes | "true" | "false" | factor

`kschedfw_lab.compare.grammar` defines how leaves are joined. A factor alone holds if its value isn't 0, false, null or
empty.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final, TypeAlias

import attrs

from kschedfw_lab.compare.grammar import LONGEST, WORDS, Expression, Parser
from kschedfw_lab.sweep.errors import SweepError, similar

Scalar: TypeAlias = str | int | float | bool | None
Cell: TypeAlias = Mapping[str, Scalar]
"""The values of a run's factors, by their names."""

_TOKEN: Final = re.compile(
    r"(?P<number>\d{1,15}(?:\.\d{1,15})?)"
    r"|(?P<text>\"[^\"]*\"|'[^']*')"
    r"|(?P<name>[A-Za-z_](?:[\w./-]|\[[^\[\]]*\])*)"
    r"|(?P<sign><=|>=|==|!=|[-<>()+*])"
)
_ORDERS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_CALCULATIONS: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_LITERALS: Final = {"true": True, "false": False, "null": None}


@attrs.frozen
class Constant:
    """A number or a text."""

    value: Scalar

    def of(self, _cell: Cell) -> Scalar:
        return self.value


@attrs.frozen
class Named:
    """The value of a factor."""

    factor: str

    def of(self, cell: Cell) -> Scalar:
        return cell[self.factor]


@attrs.frozen
class Combined:
    """Two numbers, added, subtracted or multiplied."""

    left: Operand
    sign: str
    right: Operand

    def of(self, cell: Cell) -> Scalar:
        return _CALCULATIONS[self.sign](_number(self.left.of(cell)), _number(self.right.of(cell)))


Operand: TypeAlias = Constant | Named | Combined


def _number(value: Scalar) -> float:
    if isinstance(value, (int, float)):
        return value
    raise SweepError(f"{value!r} is no number")


@attrs.frozen
class Compared:
    """A comparison of two operands; or a single operand that must not be 0, false, null or empty."""

    left: Operand
    sign: str = ""
    right: Operand = Constant(None)

    def holds(self, cell: Cell) -> bool:
        left, right = self.left.of(cell), self.right.of(cell)
        if not self.sign:
            return bool(left)
        if self.sign in _ORDERS:
            return _ORDERS[self.sign](_number(left), _number(right))
        return (left == right) is (self.sign == "==")


@attrs.frozen
class Constraint:
    """A condition that the factors of each run must fulfil, and its text."""

    text: str
    test: Expression[Compared]

    @classmethod
    def parse(cls, text: object, factors: Collection[str]) -> Constraint:
        """Parse a constraint between these factors.

        Raises:
            SweepError: the text is no constraint between these factors. The message says what would be right.
        """
        if not isinstance(text, str):
            raise SweepError(f"expected a text such as 'nodes < pods', found {text!r}")
        if len(text) > LONGEST:
            raise SweepError(f"a constraint of {len(text):,} characters; at most {LONGEST}")
        return cls(text, _Parser(text, factors).whole())

    def holds(self, cell: Cell) -> bool:
        """Return whether the constraint is true for these values.

        Raises:
            SweepError: values that aren't numbers are ordered or added up.
        """
        try:
            return self.test.holds(lambda leaf: leaf.holds(cell))
        except SweepError as error:
            raise SweepError(f"{self.text!r} can't be decided: {error}") from None


class _Parser(Parser[Compared]):
    token = _TOKEN

    def __init__(self, text: str, factors: Collection[str]) -> None:
        super().__init__(text)
        self._factors = factors

    def error(self, why: str) -> SweepError:
        return SweepError(f"{self.text!r} is no constraint: {why}")

    def leaf(self) -> Compared:
        left = self._sum()
        for sign in (*_ORDERS, "==", "!="):
            if self.take(sign):
                return Compared(left, sign, self._sum())
        return Compared(left)

    def _sum(self) -> Operand:
        return self._combined(("+", "-"), lambda: self._combined(("*",), self._operand))

    def _combined(self, signs: Collection[str], read: Callable[[], Operand]) -> Operand:
        left = read()
        while self.peek() in signs:
            left = Combined(left, self.pop(), read())
        return left

    def _operand(self) -> Operand:
        token = self.pop()
        if token[:1].isdecimal():
            return Constant(float(token) if "." in token else int(token))
        if token[:1] in ("'", '"') and token:
            return Constant(token[1:-1])
        if token in _LITERALS:
            return Constant(_LITERALS[token])
        if token in self._factors:
            return Named(token)
        if not (token[:1].isalpha() or token[:1] == "_") or token in WORDS:
            where = f" before {token!r}" if token else " at the end"
            raise self.error(f"a factor, a number or a text is missing{where}")
        raise self.error(
            f"there is no factor {token!r} (texts are in quotes); {similar(token, self._factors)}"
        )


def keeping(constraints: Collection[Constraint], cells: Iterator[Cell]) -> Iterator[Cell]:
    """Yield the cells for which all constraints hold."""
    return (cell for cell in cells if all(constraint.holds(cell) for constraint in constraints))
