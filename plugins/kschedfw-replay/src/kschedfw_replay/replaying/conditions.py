"""The metrics of replays by name, for conditions such as `wait.p95 > baseline.wait.p95 + 5`.

The baseline is what really happened.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Mapping
from difflib import get_close_matches
from fractions import Fraction
from typing import Final

from kschedfw_lab.compare import Unit

from kschedfw_replay.replaying.comparing import ReplayComparison
from kschedfw_replay.replaying.measures import Measures, Waits
from kschedfw_replay.replaying.replay import Replayed

_COUNTS: Final[Mapping[str, Callable[[Measures], int]]] = {
    name: operator.attrgetter(name) for name in ("bound", "pending", "preemptions", "victims", "evictions")
}
_DIFFERENCES: Final[Mapping[str, Callable[[Replayed], int]]] = {
    name: operator.attrgetter(name) for name in ("moved", "gained", "lost")
}
_QUANTILES: Final[Mapping[str, Callable[[Waits], float]]] = {
    name: operator.attrgetter(name) for name in ("p50", "p95", "p99", "max")
}
_WAIT, _UTILISATION, _FRAGMENTATION = "wait.", "utilisation.", "fragmentation."


class ReplayVocabulary:
    """The metrics of a `ReplayComparison`, whose run 0 is what really happened."""

    @property
    def DIFFERENCES(self) -> Collection[str]:  # noqa: N802  # see Vocabulary
        return _DIFFERENCES.keys()

    def unit_of(self, name: str, /) -> Unit | None:
        if name in _COUNTS or name in _DIFFERENCES:
            return Unit.COUNT
        if name.startswith(_WAIT) and name.rpartition(".")[2] in _QUANTILES:
            return Unit.SECONDS
        is_share = name.startswith((_UTILISATION, _FRAGMENTATION)) and not name.endswith(".")
        return Unit.SHARE if is_share else None

    def similar_to(self, name: str, /) -> str | None:
        known = [*_COUNTS, *_DIFFERENCES, *(f"{_WAIT}{quantile}" for quantile in _QUANTILES)]
        return next(iter(get_close_matches(name, known, n=1)), None)

    def names(self) -> str:
        waits = ", ".join(f"{_WAIT}{quantile}" for quantile in _QUANTILES)
        counts = ", ".join([*_COUNTS, *_DIFFERENCES])
        shares = f"{_UTILISATION}RESOURCE, {_FRAGMENTATION}RESOURCE"
        return f"{counts}, {waits}, {_WAIT}PRIORITYCLASS.p95 and so on, {shares}"

    def value_of(self, name: str, comparison: ReplayComparison, index: int, /) -> Fraction:
        """Return a metric; 0 for a class without pods, and for a resource that no pod requests."""
        if name in _DIFFERENCES:
            # Run 0 is the recording, so that of a configuration has one less.
            return Fraction(_DIFFERENCES[name](comparison.runs[index - 1]))
        measures = comparison.runs[index - 1].measures if index else comparison.recorded
        if name in _COUNTS:
            return Fraction(_COUNTS[name](measures))
        if name.startswith(_UTILISATION):
            return Fraction(measures.utilisation.get(name.removeprefix(_UTILISATION), 0.0))
        if name.startswith(_FRAGMENTATION):
            return Fraction(measures.fragmentation.get(name.removeprefix(_FRAGMENTATION), 0.0))
        family, _, quantile = name.rpartition(".")
        class_name = family.removeprefix("wait").removeprefix(".")
        waits = measures.waits_by_class.get(class_name, Waits()) if class_name else measures.waits
        return Fraction(_QUANTILES[quantile](waits))

    def pods_of(self, comparison: ReplayComparison, index: int, /) -> int:  # noqa: ARG002  # the same pods everywhere
        return comparison.pods


RECORDED: Final = "recorded"
"""The policy in results that stands for what really happened."""


def metrics_by_policy(comparison: ReplayComparison) -> Mapping[str, Mapping[str, float]]:
    """The metrics of what really happened, and of each replay by the label of its configuration."""
    labels = [RECORDED, *(run.label for run in comparison.runs)]
    measures = [comparison.recorded, *(run.measures for run in comparison.runs)]
    found = {label: dict(_metrics(each)) for label, each in zip(labels, measures, strict=True)}
    for run in comparison.runs:
        found[run.label] |= {name: count(run) for name, count in _DIFFERENCES.items()}
    if comparison.fidelity is not None:
        found[comparison.runs[0].label]["fidelity"] = comparison.fidelity.agreeing
    return found


def _metrics(measures: Measures) -> Iterator[tuple[str, float]]:
    for name, count in _COUNTS.items():
        yield name, count(measures)
    for class_name, waits in {"": measures.waits, **measures.waits_by_class}.items():
        family = f"{_WAIT}{class_name}." if class_name else _WAIT
        for name, quantile in _QUANTILES.items():
            yield f"{family}{name}", quantile(waits)
    for resource, share in measures.utilisation.items():
        yield f"{_UTILISATION}{resource}", share
    for resource, share in measures.fragmentation.items():
        yield f"{_FRAGMENTATION}{resource}", share
    yield "node_hours", measures.node_hours
    if measures.cost is not None:
        yield "cost", measures.cost
    if measures.cost_of_all is not None:
        yield "cost_of_all_nodes", measures.cost_of_all
