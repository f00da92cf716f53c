"""Reading a recording: its records one after the other, in memory that doesn't grow with its length."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import attrs

from kschedfw_replay.recording.blocks import RecordingError, TornError
from kschedfw_replay.recording.segments import Segment, segment_numbers, segment_path
from kschedfw_replay.records import Gap, Record

OnDamage = Callable[[RecordingError], object]


@attrs.define
class Recording:
    """A recording. Each iteration reads it from its beginning: a state, then changes, and after each gap another state.

    A recording may be read while it is written, and when its recorder was killed: it ends with the last block that is
    complete. Old segments may have been deleted: it begins with the oldest one that is left.

    Attributes:
        path: its directory.
        cluster: the name of the cluster, as given to the recorder.
        kschedfw: the version that wrote the oldest segment.
        anonymized: whether names are pseudonyms.
        begins: the time of the first state, in seconds since 1970.
        unfinished: set by an iteration that came to the end of what there is, but to no end mark: the recorder is
            still writing, was killed or failed, or the last part of the recording wasn't copied. It says where. Empty
            if the last iteration that came so far found the mark, and before there was one.
    """

    path: Path
    cluster: str
    kschedfw: str
    anonymized: bool
    begins: float
    unfinished: str = attrs.field(default="", init=False)
    _on_damage: OnDamage | None = None

    def __iter__(self) -> Iterator[Record]:
        """Yield the records.

        Raises:
            RecordingError: something is damaged or missing. All that was yielded before is sound. With `on_damage`,
                that is called with the error, and the iteration ends.
        """
        try:
            yield from self._records()
        except RecordingError as error:
            if self._on_damage is None:
                raise
            self._on_damage(error)

    def _records(self) -> Iterator[Record]:
        number = _oldest(self.path)
        before: Segment | None = None
        # Listed anew for each segment: while this is read, a recorder may begin one or delete one.
        while number <= (newest := _newest(self.path, number)):
            try:
                segment = Segment(segment_path(self.path, number))
            except TornError as error:
                self._come_to_an_end(error, is_newest=number == newest)
                return
            with closing(segment):
                yield from _records_after(segment, before)
            if segment.end is None:
                why = segment.torn or RecordingError(f"{segment.path}: ends without its end mark")
                self._come_to_an_end(why, is_newest=number == newest)
                return
            before, number = segment, number + 1
        has_more = before is not None and before.end is not None and before.end.more
        self.unfinished = f"{segment_path(self.path, number)}: isn't there" if has_more else ""

    def _come_to_an_end(self, why: RecordingError, *, is_newest: bool) -> None:
        """Treat the end of the newest segment as the recording's end; older segments must have an end mark."""
        if not is_newest:
            # A recorder ends each segment before it begins another one, so a kill explains only the newest.
            raise why
        self.unfinished = str(why)


def _records_after(segment: Segment, before: Segment | None) -> Iterator[Record]:
    """The records of a segment, without its state if that is known from the segment before."""
    if before is None:
        yield from segment.records()
        return
    _check_follows(segment, before)
    if (gap := segment.header.gap) is not None:
        yield Gap(gap.since, gap.until, gap.reason)
    yield from segment.records(skip_state=gap is None)


def open_recording(path: Path | str, *, on_damage: OnDamage | None = None) -> Recording:
    """Open the recording in a directory. Only the header of its oldest segment is read.

    Args:
        path: the directory that `kschedfw record` or a `RecordingWriter` wrote.
        on_damage: called with the error where the recording is damaged; what comes before can be used. Without it, the
            iteration raises the error.

    Raises:
        RecordingError: it is no recording, or one of another version of the format.
    """
    directory = Path(path)
    first = segment_path(directory, _oldest(directory))
    with closing(Segment(first)) as segment:
        header = segment.header
    return Recording(
        directory, header.cluster, header.kschedfw, header.anonymized, header.begins, on_damage=on_damage
    )


def _oldest(directory: Path) -> int:
    numbers = segment_numbers(directory)
    if numbers:
        return numbers[0]
    raise RecordingError(
        f"{directory}: has no segments ({segment_path(directory, 1).name}, …); it is no recording"
    )


def _newest(directory: Path, wanted: int) -> int:
    """The number of the newest segment; retention may have deleted the wanted one, which is an error."""
    numbers = segment_numbers(directory)
    if not numbers or wanted < numbers[0]:
        raise RecordingError(f"{segment_path(directory, wanted)}: was deleted before it was read")
    return numbers[-1]


def _check_follows(segment: Segment, before: Segment) -> None:
    """Check that a segment was written right after the other one."""
    number, end = segment.header.number, before.end
    if number != before.header.number + 1:
        raise RecordingError(f"{segment.path}: its header has number {number}; the file was renamed")
    gap, begins = segment.header.gap, segment.header.begins
    times = (begins,) if gap is None else (gap.since, gap.until, begins)
    # Sorting leaves the list as it is only if no time decreases.
    if end is not None and sorted((end.at, *times)) != [end.at, *times]:
        raise RecordingError(f"{segment.path}: offset 0: times {times} after {end.at}; times never decrease")
    if gap is None and end is not None and not end.more:
        raise RecordingError(
            f"{segment.path}: no gap before it, although the segment before is the last of its run"
        )
