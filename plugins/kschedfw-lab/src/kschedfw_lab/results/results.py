"""The results of a sweep: the metrics of each run, as objects and as the columns of a tidy table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Self

import attrs

from kschedfw.api.reading import shown
from kschedfw_lab.results.values import (
    Number,
    ResultsError,
    Value,
    checked_name,
    checked_number,
    checked_value,
    of_one_type,
)

RUN, METRIC, VALUE, ERROR = "run", "metric", "value", "error"
FIXED: Final = (RUN, METRIC, VALUE, ERROR)
"""The columns that aren't factors."""

TIMES: Final = frozenset({"elapsed_seconds", "decisions_per_second"})
"""The metrics that a real clock measures. All others are equal in every repetition of a run."""


def _values(factors: Mapping[str, object]) -> dict[str, Value]:
    return {name: checked_value(name, value) for name, value in factors.items()}


def _numbers(metrics: Mapping[str, object]) -> dict[str, Number]:
    return {checked_name(METRIC, name): checked_number(name, value) for name, value in metrics.items()}


@attrs.frozen
class RunResult:
    """The metrics of a run, or the reason why it failed.

    Attributes:
        run: the key of the run.
        factors: the value of every factor.
        metrics: the value of every metric; empty if the run failed.
        error: the reason of the failure in one line; empty if the run succeeded.

    Raises:
        ResultsError: a name or value can't be in results (see `values`); or there are neither metrics nor an error, or
            both.
    """

    run: str
    factors: Mapping[str, Value] = attrs.field(converter=_values)
    metrics: Mapping[str, Number] = attrs.field(converter=_numbers)
    error: str = ""

    def __attrs_post_init__(self) -> None:
        checked_name(RUN, self.run)
        if bool(self.metrics) == bool(self.error):
            what = "both metrics and an error" if self.error else "neither a metric nor an error"
            raise ResultsError(f"run {self.run}: {what}")

    def rows(self) -> Iterator[dict[str, Value]]:
        """Yield the run's rows of the tidy table."""
        start: dict[str, Value] = {RUN: self.run, **self.factors}
        if self.error:
            yield {**start, METRIC: "", VALUE: None, ERROR: self.error}
        for metric, value in self.metrics.items():
            yield {**start, METRIC: metric, VALUE: value, ERROR: ""}


@attrs.frozen
class Results:
    """A tidy table: a row per run and metric, and a single row for a failed run.

    Attributes:
        factors: the names of the factors, in the order of their columns.
        columns: `run`, a column per factor, `metric`, `value` and `error`, of equal length. `pandas.DataFrame(columns)`
            and `polars.DataFrame(columns)` accept them: apart from None, all values of a column have one type, and
            `value` has floats. The rows of a run are next to each other. In the row of a failed run, `metric` is empty
            and `value` is None.
        counts: the metrics with int values. They are ints in files and in `rows` and `runs`.
    """

    factors: tuple[str, ...]
    columns: Mapping[str, Sequence[Value]]
    counts: frozenset[str]

    @classmethod
    def of(cls, factors: Sequence[str], runs: Iterable[RunResult]) -> Self:
        """Make the table of these runs, in their order.

        Raises:
            ResultsError: a factor's name is taken or comes twice, or a run has other factors.
        """
        factors = checked_factors(factors)
        runs = list(runs)
        for result in runs:
            if set(result.factors) != set(factors):
                raise ResultsError(
                    f"run {result.run}: has the factors {', '.join(result.factors)} instead of {', '.join(factors)}"
                )
        is_count: dict[str, bool] = {}
        for result in runs:
            for metric, number in result.metrics.items():
                is_count[metric] = is_count.get(metric, True) and isinstance(number, int)
        lengths = [len(result.metrics) or 1 for result in runs]

        def repeated(values: Iterable[Value]) -> list[Value]:
            return [value for value, times in zip(values, lengths, strict=True) for _ in range(times)]

        columns: dict[str, Sequence[Value]] = {RUN: repeated(result.run for result in runs)}
        for factor in factors:
            columns[factor] = repeated(of_one_type([result.factors[factor] for result in runs]))
        columns[METRIC] = [metric for result in runs for metric in (result.metrics or ("",))]
        columns[VALUE] = [
            None if number is None else float(number)
            for result in runs
            for number in (result.metrics.values() or (None,))
        ]
        columns[ERROR] = repeated(result.error for result in runs)
        return cls(factors, columns, frozenset(metric for metric, counts in is_count.items() if counts))

    def rows(self) -> Iterator[dict[str, Value]]:
        """Yield the rows of the table."""
        for row in zip(*self.columns.values(), strict=True):
            cells = dict(zip(self.columns, row, strict=True))
            if cells[METRIC] in self.counts and isinstance(cells[VALUE], float):
                cells[VALUE] = int(cells[VALUE])
            yield cells

    def runs(self) -> Sequence[RunResult]:
        """Return the runs of the table, in the order of the rows."""
        return list(runs_of(self.factors, self.rows()))


def checked_factors(factors: Sequence[str]) -> tuple[str, ...]:
    """Return the names of factors, if they can be columns.

    Raises:
        ResultsError: a name is taken or comes twice.
    """
    for index, name in enumerate(factors):
        checked_name("factor", name)
        if name in FIXED or name in factors[:index]:
            raise ResultsError(f"factor {name}: there is a column of this name already")
    return tuple(factors)


def runs_of(factors: Sequence[str], rows: Iterable[Mapping[str, Value]]) -> Iterator[RunResult]:
    """Yield the runs of a tidy table in the order of their first rows. The table's rows may be in any order.

    Raises:
        ResultsError: the rows of a run contradict each other, or a cell has the wrong type.
    """
    by_run: dict[str, list[Mapping[str, Value]]] = {}
    for row in rows:
        run, metric = row[RUN], row[METRIC]
        if not isinstance(run, str) or not isinstance(metric or "", str):
            raise ResultsError(f"run {shown(run)}: expected texts in the columns run and metric")
        by_run.setdefault(run, []).append(row)
    for found in by_run.values():
        yield _run(factors, found)


def _run(factors: Sequence[str], rows: Sequence[Mapping[str, Value]]) -> RunResult:
    first = rows[0]
    run, error = str(first[RUN]), first[ERROR]
    if not isinstance(error or "", str):
        raise ResultsError(f"run {run}: expected a text in the column error")
    values = {factor: first[factor] for factor in factors}
    metrics: dict[str, Value] = {}
    for row in rows:
        metric = row[METRIC]
        same = row[ERROR] == error and all(row[factor] == value for factor, value in values.items())
        if not same:
            raise ResultsError(f"run {run}: its rows have different factors or errors")
        if metric in metrics or (error and len(rows) > 1):
            raise ResultsError(f"run {run}: has more than one row of {metric or 'its error'}")
        if metric:
            metrics[str(metric)] = row[VALUE]
        elif not error:
            raise ResultsError(f"run {run}: a row has neither a metric nor an error")
    return RunResult(run, values, metrics, str(error or ""))
