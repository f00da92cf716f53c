"""Conditions on the metrics of a comparison: `moved > 5%`, `placed < baseline.placed and lost`.

    leaf    = sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum]
    sum     = operand {("+" | "-") operand}
    operand = number ["%"] | ["baseline."] metric

`kschedfw_lab.compare.grammar` defines how leaves are joined.

A metric alone holds if it isn't 0. If a percentage is compared with counts of pods, it is a percentage of all pods.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final, Generic, TypeVar, overload

import attrs

from kschedfw import KschedfwError
from kschedfw_lab.compare import metric_values
from kschedfw_lab.compare.comparison import Comparison
from kschedfw_lab.compare.grammar import LONGEST, WORDS, Expression, Parser
from kschedfw_lab.compare.metric_values import Vocabulary, resource_of
from kschedfw_lab.compare.metrics import Unit

ComparisonT = TypeVar("ComparisonT")

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
    """A text isn't a condition. The message says what is wrong and what would be right."""


@attrs.frozen
class Metric(Generic[ComparisonT]):
    """A metric of the tested run, or of the baseline."""

    name: str
    unit: Unit
    of_baseline: bool
    vocabulary: Vocabulary[ComparisonT] = attrs.field(repr=False)

    def __str__(self) -> str:
        return f"{BASELINE if self.of_baseline else ''}{self.name}"

    def value(self, comparison: ComparisonT, index: int) -> Fraction:
        return self.vocabulary.value_of(self.name, comparison, 0 if self.of_baseline else index)

    def shown(self, comparison: ComparisonT, index: int) -> str:
        """Format the metric's value."""
        value = self.value(comparison, index)
        match self.unit:
            case Unit.SHARE:
                return f"{float(value * 100):.1f}%"
            case Unit.SECONDS:
                return f"{float(value):,.3f} s"
            case Unit.NUMBER:
                return f"{float(value):,.6g}"
            case Unit.COUNT if self.name in self.vocabulary.DIFFERENCES:
                return f"{int(value):,} of {self.vocabulary.pods_of(comparison, index):,} pods"
            case Unit.COUNT:
                return f"{int(value):,}"


@attrs.frozen
class Number:
    """A number as it was written, optionally with a percent sign."""

    value: Fraction
    is_percent: bool = False


@attrs.frozen
class Sum(Generic[ComparisonT]):
    """Operands with their signs, 1 or -1. `unit` is that of all metrics in the sum; None if it has only numbers."""

    parts: tuple[tuple[int, Metric[ComparisonT] | Number], ...]
    unit: Unit | None
    vocabulary: Vocabulary[ComparisonT] = attrs.field(repr=False)

    def value(self, comparison: ComparisonT, index: int, unit: Unit) -> Fraction:
        """Return the sum's value in an expression with this unit."""
        # Fractions, so that a threshold such as 5 % of the pods is compared exactly.
        total = Fraction(0)
        for sign, part in self.parts:
            if isinstance(part, Metric):
                total += sign * part.value(comparison, index)
            elif part.is_percent:
                whole = self.vocabulary.pods_of(comparison, index) if unit is Unit.COUNT else 1
                total += sign * part.value * whole / 100
            else:
                total += sign * part.value
        return total

    @property
    def has_percent(self) -> bool:
        return any(isinstance(part, Number) and part.is_percent for _, part in self.parts)

    @property
    def metrics(self) -> Iterator[Metric[ComparisonT]]:
        return (part for _, part in self.parts if isinstance(part, Metric))


@attrs.frozen
class Compared(Generic[ComparisonT]):
    """A comparison of two sums, or of one sum with 0."""

    left: Sum[ComparisonT]
    sign: str
    right: Sum[ComparisonT]
    unit: Unit

    @property
    def metrics(self) -> Iterator[Metric[ComparisonT]]:
        yield from self.left.metrics
        yield from self.right.metrics

    def holds(self, comparison: ComparisonT, index: int) -> bool:
        left = self.left.value(comparison, index, self.unit)
        return _COMPARE[self.sign](left, self.right.value(comparison, index, self.unit))


@attrs.frozen
class Condition(Generic[ComparisonT]):
    """A condition and its text."""

    text: str
    test: Expression[Compared[ComparisonT]]

    @overload
    @classmethod
    def parse(cls, text: str) -> Condition[Comparison]: ...

    @overload
    @classmethod
    def parse(cls, text: str, vocabulary: Vocabulary[ComparisonT]) -> Condition[ComparisonT]: ...

    @classmethod
    def parse(
        cls, text: str, vocabulary: Vocabulary[ComparisonT] | None = None
    ) -> Condition[ComparisonT] | Condition[Comparison]:
        """Parse a condition on the metrics of the vocabulary. By default these are the metrics of a `Comparison`.

        Raises:
            ConditionError: the text isn't a condition, or is too long or too deeply nested.
        """
        if len(text) > LONGEST:
            raise ConditionError(f"a condition of {len(text):,} characters; at most {LONGEST}")
        if vocabulary is None:
            return Condition(text, _Parser(text, metric_values).whole())
        return Condition(text, _Parser(text, vocabulary).whole())

    @property
    def metrics(self) -> tuple[Metric[ComparisonT], ...]:
        return tuple(dict.fromkeys(metric for leaf in self.test.leaves for metric in leaf.metrics))

    @property
    def resources(self) -> frozenset[str]:
        """The resources whose metrics the condition names."""
        return frozenset(name for each in self.metrics if (name := resource_of(each.name)) is not None)

    def holds(self, comparison: ComparisonT, index: int) -> bool:
        """Return whether the condition is true for the run with this index. The baseline can't be tested."""
        return self.test.holds(lambda leaf: leaf.holds(comparison, index))

    def values(self, comparison: ComparisonT, index: int) -> dict[str, int | float]:
        """Return the values of the condition's metrics, by the metrics' text."""
        found = {metric: metric.value(comparison, index) for metric in self.metrics}
        return {
            str(metric): int(value) if metric.unit is Unit.COUNT else float(value)
            for metric, value in found.items()
        }

    def told(self, comparison: ComparisonT, index: int) -> str:
        """Format the condition's metrics with their values."""
        return ", ".join(f"{metric} is {metric.shown(comparison, index)}" for metric in self.metrics)


@attrs.frozen
class Failure:
    """A condition that is true for a run, with the run's label.

    `values` are the values of the condition's metrics, by the metrics' text: counts, shares from 0 to 1, or seconds.
    `told` has them as text.
    """

    label: str
    condition: str
    values: Mapping[str, int | float]
    told: str

    def to_json(self) -> dict[str, object]:
        return {"label": self.label, "condition": self.condition, "values": dict(self.values)}


def failures(comparison: Comparison, conditions: Sequence[Condition[Comparison]]) -> list[Failure]:
    """Return the conditions that are true, with their runs. The baseline isn't tested."""
    return failures_of(comparison, [moves.label for moves in comparison.moves], conditions)


def failures_of(
    comparison: ComparisonT, labels: Sequence[str], conditions: Sequence[Condition[ComparisonT]]
) -> list[Failure]:
    """Return the conditions that are true, with their runs. `labels` are the runs' labels, without the baseline's."""
    return [
        Failure(label, condition.text, condition.values(comparison, index), condition.told(comparison, index))
        for index, label in enumerate(labels, 1)
        for condition in conditions
        if condition.holds(comparison, index)
    ]


class _Parser(Parser[Compared[ComparisonT]]):
    token = _TOKEN

    def __init__(self, text: str, vocabulary: Vocabulary[ComparisonT]) -> None:
        super().__init__(text)
        self._vocabulary = vocabulary

    def error(self, why: str) -> ConditionError:
        return ConditionError(f"{self.text!r} is no condition: {why}")

    def leaf(self) -> Compared[ComparisonT]:
        left = self._sum()
        sign = next((sign for sign in _COMPARE if self.take(sign)), None)
        zero: Sum[ComparisonT] = Sum(((1, Number(Fraction(0))),), None, self._vocabulary)
        right = zero if sign is None else self._sum()
        units = {unit for unit in (left.unit, right.unit) if unit is not None}
        if not units:
            raise self.error("a metric is missing: numbers alone say nothing")
        if len(units) > 1:
            raise self.error(f"{_joined(units)} can't be compared")
        (unit,) = units
        if unit in (Unit.SECONDS, Unit.NUMBER) and (left.has_percent or right.has_percent):
            raise self.error(f"a percentage can't be compared with {unit.value}")
        return Compared(left, sign or "!=", right, unit)

    def _sum(self) -> Sum[ComparisonT]:
        parts = [(1, self._operand())]
        while self.peek() in ("+", "-"):
            sign = 1 if self.pop() == "+" else -1
            parts.append((sign, self._operand()))
        units = {part.unit for _, part in parts if isinstance(part, Metric)}
        if len(units) > 1:
            raise self.error(f"{_joined(units)} can't be added up")
        return Sum(tuple(parts), units.pop() if units else None, self._vocabulary)

    def _operand(self) -> Metric[ComparisonT] | Number:
        token = self.pop()
        if token[:1].isdecimal():
            return Number(Fraction(token), is_percent=self.take("%"))
        if not token[:1].isalpha() or token in WORDS:
            raise self.error(
                f"a metric or a number is missing{f' before {token!r}' if token else ' at the end'}"
            )
        of_baseline, name = token.startswith(BASELINE), token.removeprefix(BASELINE)
        unit = self._vocabulary.unit_of(name)
        if unit is None:
            similar = self._vocabulary.similar_to(name)
            hint = f"there are {self._vocabulary.names()}" if similar is None else f"did you mean {similar}?"
            raise self.error(f"there is no metric {name!r}; {hint}")
        if of_baseline and name in self._vocabulary.DIFFERENCES:
            raise self.error(f"{token}: {name} is what differs from the baseline, so the baseline has none")
        return Metric(name, unit, of_baseline, self._vocabulary)


def _joined(units: Collection[Unit]) -> str:
    return " and ".join(sorted(unit.value for unit in units))
