"""Conditions on the metrics of a comparison: `moved > 5%`, `placed < baseline.placed and lost`.

    leaf    = sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum]
    sum     = operand {("+" | "-") operand}
    operand = number ["%"] | ["baseline."] metric

Leaves are joined as `kschedfw_lab.compare.grammar` says.

A metric alone holds if it isn't 0. A percentage that is compared with counts is that of all pods.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final

import attrs

from kschedfw import KschedfwError
from kschedfw_lab.compare.comparison import Comparison
from kschedfw_lab.compare.grammar import LONGEST, WORDS, Expression, Parser
from kschedfw_lab.compare.metric_values import (
    DIFFERENCES,
    Unit,
    names,
    resource_of,
    similar_to,
    unit_of,
    value_of,
)

BASELINE: Final = "baseline."

_TOKEN = re.compile(
    r"(?P<number>\d{1,15}(?:\.\d{1,15})?)"
    r"|(?P<name>[A-Za-z](?:[\w./-]*\w)?)"
    r"|(?P<sign><=|>=|==|!=|[-<>()+%])"
)
_COMPARE: Final[Mapping[str, Callable[[Fraction, Fraction], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


class ConditionError(KschedfwError, ValueError):
    """A text isn't a condition; says what is wrong and what would be right."""


@attrs.frozen
class Metric:
    """A metric of the run that is tested, or of the baseline."""

    name: str
    of_baseline: bool = False

    def __str__(self) -> str:
        return f"{BASELINE if self.of_baseline else ''}{self.name}"

    def value(self, comparison: Comparison, index: int) -> Fraction:
        return value_of(self.name, comparison, 0 if self.of_baseline else index)


@attrs.frozen
class Number:
    """A number as it was written, perhaps with a percent sign."""

    value: Fraction
    is_percent: bool = False


@attrs.frozen
class Sum:
    """Operands, each with 1 or -1. All metrics in it have the same `unit`; None: there are only numbers."""

    parts: tuple[tuple[int, Metric | Number], ...]
    unit: Unit | None

    def value(self, comparison: Comparison, index: int, unit: Unit) -> Fraction:
        """The value, in an expression with this unit."""
        total = Fraction(0)
        for sign, part in self.parts:
            if isinstance(part, Metric):
                total += sign * part.value(comparison, index)
            elif part.is_percent:
                whole = comparison.runs[index].report.pods if unit is Unit.COUNT else 1
                total += sign * part.value * whole / 100
            else:
                total += sign * part.value
        return total

    @property
    def metrics(self) -> Iterator[Metric]:
        return (part for _, part in self.parts if isinstance(part, Metric))


@attrs.frozen
class Compared:
    """A comparison of two sums, or of one sum with 0."""

    left: Sum
    sign: str
    right: Sum
    unit: Unit

    @property
    def metrics(self) -> Iterator[Metric]:
        yield from self.left.metrics
        yield from self.right.metrics

    def holds(self, comparison: Comparison, index: int) -> bool:
        left = self.left.value(comparison, index, self.unit)
        return _COMPARE[self.sign](left, self.right.value(comparison, index, self.unit))


@attrs.frozen
class Condition:
    """A condition, and its text."""

    text: str
    test: Expression[Compared]

    @classmethod
    def parse(cls, text: str) -> Condition:
        """
        Raises:
            ConditionError: the text isn't a condition, or is too long or too deeply nested.
        """
        if len(text) > LONGEST:
            raise ConditionError(f"a condition of {len(text):,} characters; at most {LONGEST}")
        return cls(text, _Parser(text).whole())

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return tuple(dict.fromkeys(metric for leaf in self.test.leaves for metric in leaf.metrics))

    @property
    def resources(self) -> frozenset[str]:
        """The resources in its metrics."""
        return frozenset(name for each in self.metrics if (name := resource_of(each.name)) is not None)

    def holds(self, comparison: Comparison, index: int) -> bool:
        """Whether the condition is true for a run, by its index; not for the baseline."""
        return self.test.holds(lambda leaf: leaf.holds(comparison, index))

    def values(self, comparison: Comparison, index: int) -> dict[str, int | float]:
        """The values of its metrics."""
        found = {metric: metric.value(comparison, index) for metric in self.metrics}
        return {
            str(metric): float(value) if unit_of(metric.name) is Unit.SHARE else int(value)
            for metric, value in found.items()
        }

    def told(self, comparison: Comparison, index: int) -> str:
        """Its metrics with their values, as text."""
        pods = comparison.runs[index].report.pods
        return ", ".join(
            f"{metric} is {_shown(metric, metric.value(comparison, index), pods)}" for metric in self.metrics
        )


def _shown(metric: Metric, value: Fraction, pods: int) -> str:
    if unit_of(metric.name) is Unit.SHARE:
        return f"{float(value * 100):.1f}%"
    return f"{int(value):,} of {pods:,} pods" if metric.name in DIFFERENCES else f"{int(value):,}"


@attrs.frozen
class Failure:
    """A condition that is true for a run, by the run's label.

    `values` are the values of its metrics, by the metrics' text: counts, or shares from 0 to 1. `told` has them as
    text.
    """

    label: str
    condition: str
    values: Mapping[str, int | float]
    told: str

    def to_json(self) -> dict[str, object]:
        return {"label": self.label, "condition": self.condition, "values": dict(self.values)}


def failures(comparison: Comparison, conditions: Sequence[Condition]) -> list[Failure]:
    """The conditions that are true, with their runs; the baseline isn't tested."""
    return [
        Failure(
            moves.label,
            condition.text,
            condition.values(comparison, index),
            condition.told(comparison, index),
        )
        for index, moves in enumerate(comparison.moves, 1)
        for condition in conditions
        if condition.holds(comparison, index)
    ]


class _Parser(Parser[Compared]):
    token = _TOKEN

    def error(self, why: str) -> ConditionError:
        return ConditionError(f"{self.text!r} is no condition: {why}")

    def leaf(self) -> Compared:
        left = self._sum()
        sign = next((sign for sign in _COMPARE if self.take(sign)), None)
        right = Sum(((1, Number(Fraction(0))),), None) if sign is None else self._sum()
        units = {unit for unit in (left.unit, right.unit) if unit is not None}
        if not units:
            raise self.error("a metric is missing: numbers alone say nothing")
        if len(units) > 1:
            raise self.error("a count and a share can't be compared")
        return Compared(left, sign or "!=", right, units.pop())

    def _sum(self) -> Sum:
        parts = [(1, self._operand())]
        while self.peek() in ("+", "-"):
            sign = 1 if self.pop() == "+" else -1
            parts.append((sign, self._operand()))
        units = {unit_of(part.name) for _, part in parts if isinstance(part, Metric)}
        if len(units) > 1:
            raise self.error("a count and a share can't be added up")
        return Sum(tuple(parts), units.pop() if units else None)

    def _operand(self) -> Metric | Number:
        token = self.pop()
        if token[:1].isdecimal():
            return Number(Fraction(token), is_percent=self.take("%"))
        if not token[:1].isalpha() or token in WORDS:
            raise self.error(
                f"a metric or a number is missing{f' before {token!r}' if token else ' at the end'}"
            )
        of_baseline = token.startswith(BASELINE)
        name = token.removeprefix(BASELINE)
        if unit_of(name) is None:
            similar = similar_to(name)
            hint = f"there are {names()}" if similar is None else f"did you mean {similar}?"
            raise self.error(f"there is no metric {name!r}; {hint}")
        if of_baseline and name in DIFFERENCES:
            raise self.error(f"{token}: {name} is what differs from the baseline, so the baseline has none")
        return Metric(name, of_baseline)
