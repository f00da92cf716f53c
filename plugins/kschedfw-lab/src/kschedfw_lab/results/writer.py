"""Writes the results of a sweep as they arrive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from kschedfw_lab.results.journal import NO_LIMIT, Journal, Row
from kschedfw_lab.results.parquet import pyarrow, write_parquet
from kschedfw_lab.results.reading import (
    CSV,
    JOURNAL,
    PARQUET,
    SERIES_COLUMNS,
    SERIES_CSV,
    SERIES_JOURNAL,
    TIME,
    journalled,
    series_rows,
)
from kschedfw_lab.results.results import METRIC, RUN, VALUE, Results, RunResult, checked_factors
from kschedfw_lab.results.tables import write_csv
from kschedfw_lab.results.values import ResultsError, Value, checked_number, one_line


class ResultsWriter:
    """A directory of results that is being filled.

    When the directory is opened, the incomplete results of a run that a crash interrupted are removed. The tables are
    removed, too; `finish` writes them again.

    Only one process may write to a directory at a time.
    """

    def __init__(self, directory: str | Path, factors: Sequence[str], *, parquet: bool = False) -> None:
        """Open a directory, and create it if it doesn't exist.

        Args:
            directory: the directory of the results, with or without earlier ones.
            factors: the names of the factors, in the order of their columns.
            parquet: whether `finish` writes Parquet as well.

        Raises:
            ResultsError: a factor's name can't be a column's; or the directory has results of other factors.
            MissingExtraError: Parquet is wanted, and pyarrow isn't installed.
            OSError: the directory can't be written to.
        """
        self._factors = checked_factors(factors)
        self._parquet = parquet
        if parquet:
            # Fails now rather than after hours of runs.
            pyarrow()
        self._directory = Path(directory)
        self._directory.mkdir(parents=True, exist_ok=True)
        self._done = {run: result.error for run, result in self._runs().items()}
        self._results = Journal(self._directory / JOURNAL)
        self._series: Journal | None = None
        for table in (CSV, PARQUET, SERIES_CSV):
            (self._directory / table).unlink(missing_ok=True)

    @property
    def done(self) -> Mapping[str, str]:
        """The recorded runs by key. The value is the error of a failed run; empty if it succeeded."""
        return self._done

    def add(
        self,
        run: str,
        factors: Mapping[str, Value],
        metrics: Mapping[str, float],
        series: Mapping[str, Iterable[tuple[float, float]]] | None = None,
    ) -> None:
        """Add a successful run. The results are in the journal when this method returns.

        A recorded run with the same key is replaced.

        Args:
            run: the key of the run.
            factors: the value of every factor.
            metrics: the value of every metric: finite, and an int for a count.
            series: pairs of virtual time in seconds and value, for metrics over time.

        Raises:
            ResultsError: a name or a value can't be in results, or factors are missing; nothing is written.
            OSError: the results can't be written.
        """
        self._add(RunResult(run, self._ordered(run, factors), metrics), series or {})

    def add_failure(self, run: str, factors: Mapping[str, Value], error: str) -> None:
        """Add a failed run with its error, which is converted to one line.

        Raises:
            ResultsError: as for `add`; or there is no error.
            OSError: the results can't be written.
        """
        self._add(RunResult(run, self._ordered(run, factors), {}, one_line(error)), {})

    def finish(self, order: Iterable[str] = (), *, others: bool = True) -> Results:
        """Write the tables, and return them.

        Args:
            order: keys of runs, in the order of the plan.
            others: whether the tables also have other runs. These follow in the order in which they finished.

        Raises:
            ResultsError: the journal was changed by others.
            OSError: the tables can't be written.
        """
        places = {run: place for place, run in enumerate(order)}
        wanted = (result for result in self._runs().values() if others or result.run in places)
        runs = sorted(wanted, key=lambda result: places.get(result.run, len(places)))
        results = Results.of(self._factors, runs)
        write_csv(
            self._directory / CSV, list(results.columns), (tuple(row.values()) for row in results.rows())
        )
        if self._parquet:
            write_parquet(self._directory / PARQUET, results)
        series = self._directory / SERIES_JOURNAL
        if series.is_file():
            rows = series_rows(series, NO_LIMIT, [result.run for result in runs])
            write_csv(
                self._directory / SERIES_CSV,
                SERIES_COLUMNS,
                ([row[name] for name in SERIES_COLUMNS] for row in rows),
            )
        return results

    def close(self) -> None:
        """Close the journal. Nothing can be added afterwards."""
        for journal in (self._results, self._series):
            if journal is not None:
                journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _add(self, result: RunResult, series: Mapping[str, Iterable[tuple[float, float]]]) -> None:
        # All values are checked before anything is written.
        points: list[Row] = [
            {
                RUN: result.run,
                TIME: checked_number(TIME, time),
                METRIC: metric,
                VALUE: checked_number(metric, value),
            }
            for metric, curve in series.items()
            for time, value in curve
        ]
        # The series first, so that a recorded run always has its series.
        if points:
            self._series = self._series or Journal(self._directory / SERIES_JOURNAL)
            self._series.append(points)
        self._results.append(result.rows())
        self._done[result.run] = result.error

    def _ordered(self, run: str, factors: Mapping[str, Value]) -> dict[str, Value]:
        if set(factors) != set(self._factors):
            raise ResultsError(
                f"run {run}: has the factors {', '.join(factors)} instead of {', '.join(self._factors)}"
            )
        return {name: factors[name] for name in self._factors}

    def _runs(self) -> dict[str, RunResult]:
        journal = self._directory / JOURNAL
        factors, runs = journalled(journal, NO_LIMIT) if journal.is_file() else ((), {})
        if runs and factors != self._factors:
            raise ResultsError(
                f"{journal}: has results of the factors {', '.join(factors)}; "
                f"expected {', '.join(self._factors)}"
            )
        return runs
