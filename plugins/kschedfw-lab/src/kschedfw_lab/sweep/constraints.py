"""Constraints between factors: `plugins.CostAware > 0 or strategy != "MostAllocated"`.

`kschedfw_lab.expressions` has the language. Names are factors, true, false and null.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Final, TypeAlias

import attrs

from kschedfw_lab.expressions import Constant, ExpressionError, Name, Scalar, Term, Test, holds, parse
from kschedfw_lab.sweep.errors import SweepError, similar

Cell: TypeAlias = Mapping[str, Scalar]
"""The values of a run's factors, by their names."""

_LITERALS: Final = {"true": Constant(True), "false": Constant(False), "null": Constant(None)}


@attrs.frozen
class Constraint:
    """A condition that the factors of each run must fulfil, and its text."""

    text: str
    test: Test

    @classmethod
    def parse(cls, text: object, factors: Collection[str]) -> Constraint:
        """Parse a constraint between these factors.

        Raises:
            SweepError: the text is no constraint between these factors. The message says what would be right.
        """
        if not isinstance(text, str):
            raise SweepError(f"expected a text such as 'nodes < pods', found {text!r}")
        operands = "a factor, a number or a text"
        try:
            return cls(text, parse(text, "constraint", operands, partial(_operand, factors)))
        except ExpressionError as error:
            raise SweepError(str(error)) from None

    def holds(self, cell: Cell) -> bool:
        """Return whether the constraint is true for these values.

        Raises:
            SweepError: values that aren't numbers are ordered or added up.
        """
        try:
            return holds(self.test, cell.__getitem__)
        except ExpressionError as error:
            raise SweepError(f"{self.text!r} can't be decided: {error}") from None


def _operand(factors: Collection[str], token: str) -> Term:
    if token[0] in ("'", '"'):
        return Constant(token[1:-1])
    if token in _LITERALS:
        return _LITERALS[token]
    if token in factors:
        return Name(token)
    raise ExpressionError(f"there is no factor {token!r} (texts are in quotes); {similar(token, factors)}")
