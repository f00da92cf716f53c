"""Adds results of experiments that are measured as a whole, such as a comparison, to a directory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from kschedfw.cli import FILE
from kschedfw_lab.results.values import Value
from kschedfw_lab.results.writer import ResultsWriter

keep_option = click.option(
    "--results",
    type=FILE,
    metavar="DIR",
    help="Also add the results to this directory, as the tidy table that sweep writes and report reads.",
)


class Keeper:
    """Adds runs to a directory of results. A run's key consists of its factors' values."""

    def __init__(self, writer: ResultsWriter | None) -> None:
        self._writer = writer

    def add(self, factors: Mapping[str, Value], metrics: Mapping[str, float], *, repeat: str = "") -> None:
        """Add a run. A run with the same factors is replaced.

        `repeat` names a factor that counts repetitions. It is set to the first number that isn't used yet, so that no
        run is replaced.

        Raises:
            ResultsError: a name or a value can't be in results.
        """
        if self._writer is None:
            return
        number = 1
        while True:
            numbered = {**factors, repeat: number} if repeat else factors
            key = "/".join(str(value) for value in numbered.values())
            if not repeat or key not in self._writer.done:
                break
            number += 1
        self._writer.add(key, numbered, metrics)


@contextmanager
def kept(directory: Path | None, factors: Sequence[str]) -> Iterator[Keeper]:
    """Open a directory for results of these factors before the work; write its tables at the end.

    None discards the runs.

    Raises:
        ResultsError: the directory has results of other factors.
        OSError: the directory can't be written to.
    """
    if directory is None:
        yield Keeper(None)
        return
    with ResultsWriter(directory, factors) as writer:
        try:
            yield Keeper(writer)
        finally:
            writer.finish()
