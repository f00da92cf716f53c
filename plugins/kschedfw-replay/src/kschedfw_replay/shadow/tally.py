"""Counts of comparisons, latencies, and the conditions on them at which a shadow gives the alarm."""

from __future__ import annotations

import operator
import re
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Final

import attrs

from kschedfw import KschedfwError
from kschedfw_replay.shadow.decision import Agreement, Cause, Comparison

_LATENCIES: Final = 10_000
"""The number of the latest decisions in quantiles."""
_MOST_REASONS: Final = 100
_SHOWN: Final = 5

QUANTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99}

_CONDITION: Final = re.compile(
    r"(?P<metric>[a-z][a-z0-9-]*)"
    r"(?:\s*(?P<sign><=|>=|==|!=|<|>)\s*(?P<number>\d{1,15}(?:\.\d{1,15})?)\s*(?P<percent>%?))?"
)
_COMPARE: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


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


class ConditionError(KschedfwError, ValueError):
    """A text isn't a condition; says what is wrong and what would be right."""


@attrs.frozen
class Condition:
    """A condition such as `agreement<99%`. A metric alone holds if it isn't 0, a percentage is one of all decisions."""

    text: str
    metric: str
    sign: str = "!="
    number: float = 0.0
    is_percent: bool = False

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Read a condition as `--fail-on` has it.

        Raises:
            ConditionError: the text isn't one.
        """
        match = _CONDITION.fullmatch(text.strip())
        if match is None:
            raise ConditionError(f"{text!r} is no condition such as 'agreement < 99%' or 'failed > 0'")
        metric = match["metric"]
        if metric not in METRICS:
            raise ConditionError(f"{text!r}: there is no metric {metric!r}; there are {', '.join(METRICS)}")
        if match["sign"] is None:
            return cls(text, metric)
        if match["percent"] and metric in QUANTILES:
            raise ConditionError(f"{text!r}: {metric} is in milliseconds, which no percentage goes with")
        return cls(text, metric, match["sign"], float(match["number"]), bool(match["percent"]))

    def holds(self, tally: Tally) -> bool:
        """Return whether the condition is true; without a decision it isn't."""
        if not tally.decisions:
            return False
        number = self.number * tally.decisions / 100 if self.is_percent else self.number
        return _COMPARE[self.sign](tally.value(self.metric), number)

    def told(self, tally: Tally) -> str:
        """The condition's metric with its value, for people."""
        value = tally.value(self.metric)
        if self.metric in QUANTILES:
            return f"{self.metric} is {value:.1f} ms"
        share = f" ({100 * value / tally.decisions:.2f}%)" if tally.decisions else ""
        return f"{self.metric} is {value:,.0f} of {tally.decisions:,} decisions{share}"
