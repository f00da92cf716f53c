"""Counts of comparisons, latencies, and the conditions on them at which a shadow gives the alarm."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection
from fractions import Fraction
from typing import Final

import attrs
from kschedfw_lab.compare import Condition, Unit

from kschedfw_replay.shadow.decision import Agreement, Cause, Comparison

_LATENCIES: Final = 10_000
"""The number of the latest decisions in quantiles."""
_MOST_REASONS: Final = 100
_SHOWN: Final = 5

QUANTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


class Tally:
    """Counts of the comparisons so far. Its size doesn't grow with the number of decisions.

    Attributes:
        counts: decisions by agreement, and by the cause where they don't agree.
        failures: decisions in which a plugin failed, by the plugin's name; extenders have none.
        messages: the first failure of each of them.
        refusals: how often a plugin refused the cluster's node, by plugin and reason.
        differing: the latest decisions that don't agree.
    """

    def __init__(self) -> None:
        self.counts: Counter[tuple[Agreement, Cause | None]] = Counter()
        self.failures: Counter[str] = Counter()
        self.messages: dict[str, str] = {}
        self.refusals: Counter[tuple[str, str]] = Counter()
        self.differing: deque[Comparison] = deque(maxlen=_SHOWN)
        self._seconds: deque[float] = deque(maxlen=_LATENCIES)

    def add(self, comparison: Comparison) -> None:
        self.counts[comparison.agreement, comparison.cause] += 1
        self._seconds.append(comparison.seconds)
        if not comparison.agreement.agrees:
            self.differing.append(comparison)
        if comparison.agreement is Agreement.FAILED:
            self.failures[comparison.plugin] += 1
            self.messages.setdefault(comparison.plugin, comparison.reason)
        elif comparison.agreement is Agreement.REFUSED_HERE:
            refusal = comparison.plugin, comparison.reason
            if refusal in self.refusals or len(self.refusals) < _MOST_REASONS:
                self.refusals[refusal] += 1

    @property
    def decisions(self) -> int:
        return self.counts.total()

    def of(self, which: Agreement | Cause) -> int:
        """The number of decisions with this agreement, or this cause."""
        return sum(count for both, count in self.counts.items() if which in both)

    @property
    def agreeing(self) -> int:
        return sum(count for (agreement, _), count in self.counts.items() if agreement.agrees)

    def latency(self, quantile: float) -> float:
        """The quantile of the latest decisions' seconds; 0 without decisions."""
        ordered = sorted(self._seconds)
        return ordered[min(len(ordered) - 1, int(quantile * len(ordered)))] if ordered else 0.0

    def value(self, metric: str) -> float:
        """A metric by its name in conditions: a number of decisions, or milliseconds."""
        if metric in QUANTILES:
            return self.latency(QUANTILES[metric]) * 1000
        if metric == "decisions":
            return self.decisions
        if metric == "agreement":
            return self.agreeing
        return self.of(Agreement(metric) if metric in set(Agreement) else Cause(metric))

    def to_json(self) -> dict[str, object]:
        """The summary, as the last line of `--json` has it."""
        return {
            "decisions": self.decisions,
            "agreement": self.agreeing / self.decisions if self.decisions else None,
            "counts": {str(each): count for each in Agreement if (count := self.of(each))},
            "causes": {str(each): count for each in Cause if (count := self.of(each))},
            "failures": dict(self.failures),
            "refusals": [
                {"plugin": plugin, "reason": reason, "decisions": count}
                for (plugin, reason), count in self.refusals.most_common()
            ],
            "milliseconds": {
                name: round(self.latency(quantile) * 1000, 3) for name, quantile in QUANTILES.items()
            },
        }


METRICS: Final = ("decisions", "agreement", *map(str, Agreement), *map(str, Cause), *QUANTILES)


class _Vocabulary:
    """The metrics of a `Tally`, for conditions."""

    DIFFERENCES: Final[Collection[str]] = METRICS
    """There is no baseline."""

    def unit_of(self, name: str, /) -> Unit | None:
        if name in QUANTILES:
            return Unit.NUMBER
        return Unit.COUNT if name in METRICS else None

    def similar_to(self, _name: str, /) -> str | None:
        return None

    def names(self) -> str:
        return ", ".join(METRICS)

    def value_of(self, name: str, tally: Tally, _index: int, /) -> Fraction:
        return Fraction(tally.value(name))

    def pods_of(self, tally: Tally, _index: int, /) -> int:
        return tally.decisions


@attrs.frozen
class Alarm:
    """A condition such as `agreement < 99%`. A percentage is one of all decisions."""

    condition: Condition[Tally]

    @classmethod
    def parse(cls, text: str) -> Alarm:
        """Read a condition as `--fail-on` has it.

        Raises:
            ConditionError: the text isn't one.
        """
        return cls(Condition.parse(text, _Vocabulary()))

    def holds(self, tally: Tally) -> bool:
        """Return whether the condition is true. Without a decision it isn't, unless it names `decisions`."""
        # The share of nothing is no share: `agreement < 99%` would be as wrong as `agreement >= 99%`.
        is_about_something = bool(tally.decisions) or "decisions" in self.condition.metrics
        return is_about_something and self.condition.holds(tally, 1)

    def told(self, tally: Tally) -> str:
        """Return the condition with the values of its metrics, for people."""
        values = ", ".join(self._told(metric, tally) for metric in self.condition.metrics)
        return f"{self.condition.text}: {values}"

    def _told(self, metric: str, tally: Tally) -> str:
        value = tally.value(metric)
        if metric in QUANTILES:
            return f"{metric} is {value:.1f} ms"
        share = f" ({100 * value / tally.decisions:.2f}%)" if tally.decisions else ""
        return f"{metric} is {value:,.0f} of {tally.decisions:,} decisions{share}"
