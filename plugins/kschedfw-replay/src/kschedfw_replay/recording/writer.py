"""Writing a recording: appends to the segments of a directory, begins new ones and deletes old ones."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import attrs

from kschedfw import Clock, SystemClock, __version__
from kschedfw_replay.recording.blocks import (
    NO_LINK,
    BlockWriter,
    RecordingError,
    TornError,
    open_regular,
)
from kschedfw_replay.recording.lines import (
    EndLine,
    GapBefore,
    Header,
    Key,
    check_time,
    decode_object,
    encode_change,
    encode_line,
    encode_object,
    encoded_objects,
    key_of,
    state_lines,
)
from kschedfw_replay.recording.segments import Segment, segment_numbers, segment_path
from kschedfw_replay.records import ChangeType, Gap, Manifest, Record, RecordedChange, State

FLUSH_SECONDS: Final = 1.0
"""Seconds that a change may wait in memory."""
_BLOCK: Final = 256 << 10
"""Bytes of lines after which they are written, however little time has passed."""
_LOCK: Final = ".lock"


@attrs.frozen
class SegmentLimits:
    """The size of segments, and the retention of old ones.

    Attributes:
        bytes: of changes in a file, packed, after which another one is begun.
        seconds: of the recording in a file.
        retained_seconds: of the recording that stay; None keeps all. Whole segments are deleted, so it is up to
            `seconds` more.
        retained_bytes: of all files; None for no limit. The newest segment always stays.
    """

    bytes: int = 256 << 20
    seconds: float = 3600.0
    retained_seconds: float | None = None
    retained_bytes: int | None = None


class RecordingWriter:
    """Writes records to a directory, from its creation to `close`; a context manager that closes.

    After an error within the `with` block, what was written stays, without the mark that the recording ends there.

    The first record is a state; changes follow, and gaps, each with another state. A directory that has a recording
    already is continued: what a killed recorder left of its last block is cut off, and the time until the first
    state is a gap. Not thread-safe.

    Records are kept for up to a second of `clock`, then a `write` or `flush` writes them: call `flush` once a second
    where little happens. The state that the changes amount to is kept, too: each segment begins with it.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        cluster: str = "",
        anonymized: bool = False,
        limits: SegmentLimits | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Create the directory, or mend its last segment.

        Raises:
            RecordingError: it can't be written, is being written by somebody else, is of another cluster, or is
                damaged in a way that a kill doesn't explain.
        """
        self.path = Path(path)
        self._cluster, self._anonymized = cluster, anonymized
        self._limits = limits or SegmentLimits()
        self._clock = clock or SystemClock()
        # First of all: another recorder may be mending or deleting segments.
        self._lock = _locked(self.path)
        self._objects: dict[Key, bytes] = {}
        self._lines: list[bytes] = []
        self._waiting = 0
        self._flushed = self._clock.monotonic()
        self._blocks: BlockWriter | None = None
        self._state_size = 0
        """The length of the segment's state, packed, with all before it."""
        self._begins: dict[int, float] = {}
        """The time at which each segment begins."""
        self._gap: GapBefore | None = None
        self._expects_state = True
        self.last_at: float | None = None
        """The time of the last record, also of those of an earlier run; None if there is none."""
        self.records = 0
        """The number of records written by this writer."""
        self.written = 0
        """Bytes in files, written by this writer."""
        try:
            self._resume()
        except BaseException:
            os.close(self._lock)
            raise

    def write(self, record: Record) -> None:
        """Append a record.

        Raises:
            RecordingError: it is out of turn or before the last one, has no valid object or a time that the reader
                refuses, or can't be written.
        """
        begins, ends = (record.since, record.until) if isinstance(record, Gap) else (record.at, record.at)
        # What the reader refuses would make the whole recording useless from there on.
        check_time(begins)
        check_time(ends)
        if ends < begins or (self.last_at is not None and begins < self.last_at):
            raise RecordingError(
                f"{self.path}: a record of {begins} after {self.last_at}; times never decrease"
            )
        match record:
            case State():
                self._write_state(record)
            case RecordedChange():
                self._write_change(record)
            case Gap():
                self._write_gap(record)
        self.last_at = ends
        self.records += 1

    def flush(self) -> None:
        """Write what is kept in memory. Another process reads it from then on, and a kill doesn't lose it.

        Raises:
            RecordingError: it can't be written.
        """
        self._flushed = self._clock.monotonic()
        if self._lines and self._blocks is not None:
            content = b"\n".join((*self._lines, b""))
            self._lines, self._waiting = [], 0
            size = self._blocks.size
            try:
                self._blocks.write(content)
            except OSError as error:
                # A part of the block may be in the file: nothing may follow it, and a restart cuts it off.
                self._blocks.close()
                self._blocks = None
                raise RecordingError(f"{self.path}: can't be written ({error.strerror})") from None
            self.written += self._blocks.size - size

    def manifests(self) -> Iterator[Manifest]:
        """Yield the objects as they are after the last record."""
        return map(decode_object, self._objects.values())

    def close(self, *, is_whole: bool = True) -> None:
        """Write all, with the mark that the recording ends here. Nothing can be written afterwards.

        Without `is_whole` there is no such mark, as after a kill: readers tell that the recording is unfinished.
        """
        if self._lock < 0:
            return
        try:
            if is_whole:
                self._end_segment(more=False)
            elif self._blocks is not None:
                self.flush()
                self._close_segment()
        finally:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close(is_whole=error is None)

    # --- records ---

    def _write_state(self, state: State) -> None:
        if not self._expects_state:
            raise RecordingError(f"{self.path}: a state without a gap before it")
        # Encoded before anything is written: an invalid state changes nothing.
        self._objects = encoded_objects(state.manifests)
        if self._gap is None and self.last_at is not None:
            self._gap = GapBefore(self.last_at, state.at, "the recorder wasn't running")
        self._begin_segment(state.at)
        self._expects_state = False

    def _write_change(self, change: RecordedChange) -> None:
        if self._expects_state:
            raise self._stateless("change")
        # Encoded before anything is written: an invalid object changes nothing.
        key, encoded = key_of(change.manifest), encode_object(change.manifest)
        line = encode_change(change, encoded)
        # Before the change is in the objects: the new segment begins with the state before it.
        self._rotate_if_full(change.at)
        if change.type is ChangeType.DELETED:
            self._objects.pop(key, None)
        else:
            self._objects[key] = encoded
        self._put(line)

    def _write_gap(self, gap: Gap) -> None:
        if self._expects_state:
            raise self._stateless("gap")
        self._end_segment(more=True)
        self._gap = GapBefore(gap.since, gap.until, gap.reason)
        self._expects_state = True

    def _stateless(self, what: str) -> RecordingError:
        return RecordingError(
            f"{self.path}: a {what} before a state; a recording begins with one, and so does what follows a gap"
        )

    def _put(self, line: bytes) -> None:
        if self._waiting + len(line) > _BLOCK:
            self.flush()
        self._lines.append(line)
        self._waiting += len(line) + 1
        if self._clock.monotonic() - self._flushed >= FLUSH_SECONDS:
            self.flush()

    # --- segments ---

    def _rotate_if_full(self, at: float) -> None:
        if self._blocks is None:
            raise RecordingError(
                f"{self.path}: can't be written any more, since a write failed or it is closed"
            )
        begun = next(reversed(self._begins.values()))
        # Without the state: one that is larger than a segment would be written with each change.
        if self._blocks.size - self._state_size >= self._limits.bytes or at - begun >= self._limits.seconds:
            self._end_segment(more=True)
            self._begin_segment(at)

    def _begin_segment(self, at: float) -> None:
        number = 1 + next(reversed(self._begins), 0)
        path = segment_path(self.path, number)
        self._begins[number] = at
        try:
            self._blocks = BlockWriter(open_regular(path, os.O_RDWR | os.O_CREAT | os.O_EXCL))
        except OSError as error:
            raise RecordingError(f"{path}: can't be written ({error.strerror})") from None
        header = Header(
            number=number,
            begins=at,
            cluster=self._cluster,
            kschedfw=__version__,
            anonymized=self._anonymized,
            gap=self._gap,
        )
        self._gap = None
        # The encoded objects are kept, so a new segment encodes nothing anew.
        for line in (encode_line(header), *state_lines(at, self._objects)):
            self._put(line)
        self.flush()
        self._state_size = self._blocks.size
        # Only when the new segment has its state on the disk.
        self._delete_old(at)

    def _end_segment(self, *, more: bool) -> None:
        if self._blocks is not None:
            assert self.last_at is not None
            self._put(encode_line(EndLine(self.last_at, more)))
            self.flush()
            self._close_segment()

    def _close_segment(self) -> None:
        if self._blocks is not None:
            self._blocks.close()
            self._blocks = None

    def _delete_old(self, now: float) -> None:
        """Delete the oldest segments, as far as the limits say. What is left begins with a state."""
        seconds, limit = self._limits.retained_seconds, self._limits.retained_bytes
        sizes = {}
        if limit is not None:
            sizes = {number: segment_path(self.path, number).stat().st_size for number in self._begins}
        numbers = list(self._begins)
        for number, following in itertools.pairwise(numbers):
            # A segment is old once its last change is, which comes before the next one begins.
            is_old = seconds is not None and self._begins[following] < now - seconds
            if not is_old and (limit is None or sum(sizes.values()) <= limit):
                return
            # Somebody may have deleted it by hand.
            segment_path(self.path, number).unlink(missing_ok=True)
            sizes.pop(number, None)
            del self._begins[number]

    # --- going on with an earlier recording ---

    def _resume(self) -> None:
        """Find the end of an earlier recording, and give its last segment an end mark if it has none."""
        numbers = segment_numbers(self.path)
        for number in numbers[:-1]:
            with closing(Segment(segment_path(self.path, number))) as segment:
                self._begins[number] = segment.header.begins
        if numbers:
            self._mend(numbers[-1])

    def _mend(self, number: int) -> None:
        path = segment_path(self.path, number)
        try:
            segment = Segment(path)
        except TornError:
            self._drop(path, number)
            return
        with closing(segment):
            self._check_same(segment.header)
            last = segment.header.begins
            # Read to its end: that checks all blocks, and finds where the last whole one ends.
            for record in segment.records(skip_state=True):
                last = record.at
        if segment.stateless:
            self._drop(path, number)
            return
        self._begins[number], self.last_at = segment.header.begins, last
        if segment.end is None:
            file = open_regular(path, os.O_RDWR)
            if segment.torn is not None:
                # The rest is what a kill left of a block.
                file.truncate(segment.torn.whole)
            blocks = BlockWriter(file)
            blocks.write(encode_line(EndLine(last, more=False)) + b"\n")
            blocks.close()

    def _check_same(self, header: Header) -> None:
        if (header.cluster, header.anonymized) != (self._cluster, self._anonymized):
            what = "with pseudonyms" if header.anonymized else "without pseudonyms"
            raise RecordingError(
                f"{self.path}: has a recording of {header.cluster or 'an unnamed cluster'} {what}, which this one "
                f"can't be added to; give another directory"
            )

    def _drop(self, path: Path, number: int) -> None:
        """Delete a segment whose recorder was killed before its state was complete; the one before is the last then."""
        path.unlink()
        if number - 1 in self._begins:
            self._mend(number - 1)


def _locked(directory: Path) -> int:
    """Create the directory, readable by its owner alone, and lock it until the descriptor is closed.

    Raises:
        RecordingError: it can't be written, somebody else has locked it, or the system has no such locks.
    """
    try:
        import fcntl
    except ModuleNotFoundError:
        # Windows has no such locks. Recordings can be read there all the same.
        raise RecordingError(
            f"{directory}: can't be locked on this system; record on Linux or macOS"
        ) from None
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | NO_LINK, 0o600)
    except OSError as error:
        raise RecordingError(f"{directory}: can't be written ({error.strerror})") from None
    try:
        # The system drops this lock when the process ends, however that happens.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise RecordingError(f"{directory}: another recorder is writing it") from None
    return descriptor
