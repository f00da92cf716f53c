"""Conditions on the metrics of a comparison: `moved > 5%`, `placed < baseline.placed and lost`.

`kschedfw_lab.expressions` has the language. Names are metrics of the tested run, or with `baseline.` before them of the
baseline. If a percentage is compared with counts of pods, it is a percentage of all pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Final, Generic, TypeVar, overload

import attrs

from kschedfw import KschedfwError
from kschedfw_lab.compare import metric_values
from kschedfw_lab.compare.comparison import Comparison
from kschedfw_lab.compare.metric_values import Vocabulary, resource_of
from kschedfw_lab.compare.metrics import Unit
from kschedfw_lab.expressions import (
    Combined,
    Compared,
    Constant,
    ExpressionError,
    Name,
    Term,
    Test,
    comparisons,
    holds,
    parse,
)

ComparisonT = TypeVar("ComparisonT")

BASELINE: Final = "baseline."
OPERANDS: Final = "a metric or a number"


class ConditionError(KschedfwError, ValueError):
    """A text isn't a condition. The message says what is wrong and what would be right."""


@attrs.frozen
class Condition(Generic[ComparisonT]):
    """A condition and its text. Its metrics are those of the vocabulary."""

    text: str
    test: Test
    vocabulary: Vocabulary[ComparisonT] = attrs.field(repr=False)

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
        if vocabulary is None:
            return Condition.parse(text, metric_values)
        operand, check = partial(_metric, vocabulary), partial(_checked_unit, vocabulary)
        try:
            return Condition(text, parse(text, "condition", OPERANDS, operand, check), vocabulary)
        except ExpressionError as error:
            raise ConditionError(str(error)) from None

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that the condition names, those of the baseline with `baseline.` before them."""
        return tuple(dict.fromkeys(name for each in comparisons(self.test) for name in each.names))

    @property
    def resources(self) -> frozenset[str]:
        """The resources whose metrics the condition names."""
        named = (resource_of(name.removeprefix(BASELINE)) for name in self.metrics)
        return frozenset(resource for resource in named if resource is not None)

    def holds(self, comparison: ComparisonT, index: int) -> bool:
        """Return whether the condition is true for the run with this index. The baseline can't be tested."""

        def whole_of(compared: Compared) -> int:
            is_count = _checked_unit(self.vocabulary, compared) is Unit.COUNT
            return self.vocabulary.pods_of(comparison, index) if is_count else 1

        return holds(self.test, lambda name: self._value(name, comparison, index), whole_of)

    def values(self, comparison: ComparisonT, index: int) -> dict[str, int | float]:
        """Return the values of the condition's metrics, by the metrics' text."""
        found = {name: self._value(name, comparison, index) for name in self.metrics}
        return {
            name: int(value) if _unit_of(self.vocabulary, Name(name)) is Unit.COUNT else float(value)
            for name, value in found.items()
        }

    def told(self, comparison: ComparisonT, index: int) -> str:
        """Format the condition's metrics with their values."""
        return ", ".join(f"{name} is {self._shown(name, comparison, index)}" for name in self.metrics)

    def _value(self, name: str, comparison: ComparisonT, index: int) -> Fraction:
        index = 0 if name.startswith(BASELINE) else index
        return self.vocabulary.value_of(name.removeprefix(BASELINE), comparison, index)

    def _shown(self, name: str, comparison: ComparisonT, index: int) -> str:
        value = self._value(name, comparison, index)
        match _unit_of(self.vocabulary, Name(name)):
            case Unit.SHARE:
                return f"{float(value * 100):.1f}%"
            case Unit.SECONDS:
                return f"{float(value):,.3f} s"
            case Unit.COUNT if name in self.vocabulary.DIFFERENCES:
                return f"{int(value):,} of {self.vocabulary.pods_of(comparison, index):,} pods"
            case Unit.COUNT:
                return f"{int(value):,}"
        return f"{float(value):,.6g}"


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


def _metric(vocabulary: Vocabulary[ComparisonT], token: str) -> Name:
    """Return the metric that a token names.

    Raises:
        ExpressionError: it names none.
    """
    if token[0] in ("'", '"'):
        raise ExpressionError(f"{OPERANDS} is missing before {token!r}")
    name = token.removeprefix(BASELINE)
    if vocabulary.unit_of(name) is None:
        similar = vocabulary.similar_to(name)
        hint = f"there are {vocabulary.names()}" if similar is None else f"did you mean {similar}?"
        raise ExpressionError(f"there is no metric {name!r}; {hint}")
    if name != token and name in vocabulary.DIFFERENCES:
        why = f"{name} is what differs from the baseline, so the baseline has none"
        raise ExpressionError(f"{token}: {why}")
    return Name(token)


def _checked_unit(vocabulary: Vocabulary[ComparisonT], compared: Compared) -> Unit:
    """Return the unit of a comparison's metrics.

    Raises:
        ExpressionError: there is no metric, or the units don't go with each other.
    """
    terms = (compared.left, compared.right)
    units = {unit for term in terms if (unit := _unit_of(vocabulary, term)) is not None}
    if not units:
        raise ExpressionError("a metric is missing: numbers alone say nothing")
    if len(units) > 1:
        raise ExpressionError(f"{_listed(units)} can't be compared")
    (unit,) = units
    if unit in (Unit.SECONDS, Unit.NUMBER) and any(map(_has_percent, terms)):
        raise ExpressionError(f"a percentage can't be compared with {unit.value}")
    return unit


def _unit_of(vocabulary: Vocabulary[ComparisonT], term: Term) -> Unit | None:
    """Return the unit of a term; None if it has only numbers."""
    match term:
        case Name(text):
            return vocabulary.unit_of(text.removeprefix(BASELINE))
        case Combined(left, sign, right):
            both = (_unit_of(vocabulary, left), _unit_of(vocabulary, right))
            units = [unit for unit in both if unit is not None]
            if len(units if sign == "*" else {*units}) > 1:
                what = "multiplied" if sign == "*" else "added up"
                raise ExpressionError(f"{_listed(units)} can't be {what}")
            return units[0] if units else None
    return None


def _has_percent(term: Term) -> bool:
    """Tell whether the term has a percentage outside of products: `110%` of something is a plain number."""
    if isinstance(term, Combined):
        return term.sign != "*" and (_has_percent(term.left) or _has_percent(term.right))
    return isinstance(term, Constant) and term.is_percent


def _listed(units: Iterable[Unit]) -> str:
    return " and ".join(sorted(unit.value for unit in units))
