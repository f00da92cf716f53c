"""The segments of a recording: files in a directory, numbered without gaps, each of which can be read by itself."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from kschedfw_replay.recording.blocks import BlockReader, RecordingError, TornError, open_regular
from kschedfw_replay.recording.lines import (
    ChangeLine,
    EndLine,
    Header,
    StateLine,
    decode_line,
    decode_object,
)
from kschedfw_replay.records import Manifest, RecordedChange, State

T = TypeVar("T")

LONGEST_STATE: Final = 4 << 30
"""Bytes of the lines of a state: more than all objects of the largest clusters that Kubernetes supports."""

_NAME: Final = re.compile(r"segment-(\d{8})\.ksr")


def segment_path(directory: Path, number: int) -> Path:
    return directory / f"segment-{number:08}.ksr"


def segment_numbers(directory: Path) -> list[int]:
    """The numbers of the segments in a directory, in order.

    Raises:
        RecordingError: the directory can't be read, or one in between is missing.
    """
    try:
        names = [path.name for path in directory.iterdir()]
    except OSError as error:
        raise RecordingError(
            f"{directory}: can't be read ({error.strerror}); a recording is a directory of segments"
        ) from None
    numbers = sorted(int(match[1]) for name in names if (match := _NAME.fullmatch(name)))
    for before, number in itertools.pairwise(numbers):
        if number != before + 1:
            missing = segment_path(directory, before + 1)
            raise RecordingError(f"{missing}: is missing, although there are segments before and after it")
    return numbers


class Segment:
    """A segment that is read once, from its first line on.

    Attributes:
        header: what it says of itself.
        end: its end mark, once all has been read; None if there is none.
        torn: why it ends too early, once all has been read; None if it ends with a whole block.
        stateless: whether it ends within its state.
    """

    def __init__(self, path: Path) -> None:
        """Read the header.

        Raises:
            TornError: the file ends within it.
            RecordingError: it isn't a segment that this version reads.
        """
        self.path = path
        self.end: EndLine | None = None
        self.torn: TornError | None = None
        self.stateless = True
        self._file = open_regular(path)
        self._blocks = BlockReader(path, self._file)
        self._lines = self._each_line()
        try:
            self.header = self._read_header()
        except BaseException:
            # Nobody could close the file otherwise: the caller gets no segment.
            self.close()
            raise

    def close(self) -> None:
        self._file.close()

    def records(self, *, skip_state: bool = False) -> Iterator[State | RecordedChange]:
        """Yield the state, unless it is to be skipped, and the changes after it.

        Raises:
            RecordingError: something is damaged, or not as it should be. All that was yielded before is sound.
        """
        try:
            last, manifests = self._state(skip=skip_state)
            self.stateless = False
            if not skip_state:
                yield State(last, manifests)
            yield from self._changes(last)
        except TornError as error:
            self.torn = error
        finally:
            self.close()

    def _state(self, *, skip: bool) -> tuple[float, tuple[Manifest, ...]]:
        """The state at the beginning, with its time."""
        line = next(self._lines, None)
        if line is None:
            raise self._ends_within("its state")
        state = self._checked(decode_line, line)
        if not isinstance(state, StateLine):
            raise self._blocks.error("expected a state after the header")
        self._check_time(state.at, self.header.begins)
        manifests: list[Manifest] = []
        size = 0
        for _ in range(state.objects):
            line = next(self._lines, None)
            if line is None:
                raise self._ends_within("its state")
            # Counted while it is read: the number of objects is only announced.
            size += len(line)
            if size > LONGEST_STATE:
                raise self._blocks.error(f"a state of more than {LONGEST_STATE} bytes")
            if not skip:
                manifests.append(self._checked(decode_object, line))
        return state.at, tuple(manifests)

    def _changes(self, last: float) -> Iterator[RecordedChange]:
        for line in self._lines:
            if self.end is not None:
                raise self._blocks.error("there is something after the end mark")
            decoded = self._checked(decode_line, line)
            if not isinstance(decoded, ChangeLine | EndLine):
                raise self._blocks.error("expected a change or the end mark")
            self._check_time(decoded.at, last)
            last = decoded.at
            if isinstance(decoded, EndLine):
                self.end = decoded
            else:
                yield RecordedChange(decoded.at, decoded.type, decoded.object)

    def _read_header(self) -> Header:
        line = next(self._lines, None)
        if line is None:
            raise self._ends_within("its header")
        header = self._checked(decode_line, line)
        if not isinstance(header, Header):
            raise self._blocks.error("expected the header of a segment")
        return header

    def _check_time(self, at: float, last: float) -> None:
        if at < last:
            raise self._blocks.error(f"time {at} after {last}; times never decrease")

    def _ends_within(self, part: str) -> TornError:
        offset = self._blocks.offset
        return TornError(f"{self.path}: offset {offset}: ends within {part}", offset)

    def _checked(self, decode: Callable[[bytes], T], line: bytes) -> T:
        try:
            return decode(line)
        except RecordingError as error:
            raise self._blocks.error(str(error)) from None

    def _each_line(self) -> Iterator[bytes]:
        for block in self._blocks:
            *lines, rest = block.split(b"\n")
            # Lines never cross blocks: a block is what was flushed, in whole lines.
            if rest:
                raise self._blocks.error("the last line of a block has no end")
            yield from lines
