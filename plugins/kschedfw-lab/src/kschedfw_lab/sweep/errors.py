"""Errors of sweeps."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Final

from kschedfw import KschedfwError
from kschedfw.api.reading import join, printable

_LONGEST_PLACE: Final = 500


class SweepError(KschedfwError, ValueError):
    """A sweep can't be planned or run. The message is one line with the place, its content, and what would be right.

    `place` is a path in the specification, such as `factors.seed[0]`; `source` is the specification's file.
    """

    def __init__(self, problem: str, place: str = "", source: str = "") -> None:
        super().__init__(problem, place, source)
        self.problem, self.place, self.source = problem, place, source

    def __str__(self) -> str:
        place = printable(self.place, _LONGEST_PLACE)  # The place may contain names from the file.
        return ": ".join(part for part in (self.source, place, self.problem) if part)

    @classmethod
    def at(cls, place: str, problem: str) -> SweepError:
        return cls(problem, place)

    def inside(self, place: str) -> SweepError:
        """Return the same error inside a larger place."""
        return SweepError(self.problem, join(place, self.place), self.source)

    def of(self, source: str) -> SweepError:
        """Return the same error in a file."""
        return SweepError(self.problem, self.place, source)


class EngineError(SweepError):
    """The engine broke down during a sweep. The runs that were finished are recorded."""


@contextmanager
def inside(place: str) -> Iterator[None]:
    """Prefix the place of errors in the block with this place."""
    try:
        yield
    except SweepError as error:
        raise error.inside(place) from None


def similar(name: str, known: Collection[str]) -> str:
    """Return the known name that is most similar, as a hint for messages; if none is similar, all of them."""
    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"


def one_line(error: BaseException) -> str:
    """Return the first line of an error's text, with the number of further lines.

    Errors that aren't kschedfw's also have their type.
    """
    lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    text = lines[0] if isinstance(error, KschedfwError) else f"{type(error).__name__}: {lines[0]}"
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    return text if len(lines) == 1 else f"{text} (and {len(lines) - 1} more)"
