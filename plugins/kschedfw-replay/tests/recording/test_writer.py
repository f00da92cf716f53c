"""What is written is read again, whatever ends the writer."""

from __future__ import annotations

import contextlib
import math
import stat
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kschedfw_apiserver.processes import running
from kschedfw_replay import (
    ChangeType,
    Gap,
    Record,
    RecordedChange,
    RecordingError,
    RecordingWriter,
    SegmentLimits,
    State,
    open_recording,
)
from recording.histories import SMALL, folded, histories, pod, write

from kschedfw import VirtualClock


def nested(levels: int) -> object:
    value: object = []
    for _ in range(levels):
        value = [value]
    return value


ODD_TIMES = (0.0, 5.0, 6e10, 7e10, -6.3e10, math.inf, -math.inf, math.nan, 1e300)
ODD_VALUES = (
    1,
    1 << 64,
    10**400,
    10**5000,
    math.nan,
    math.inf,
    "\ud800",
    b"\xff",
    nested(90),
    nested(988),
    {1: 2},
)


@given(histories(), st.integers(1, 300), st.floats(0.5, 10))
def test_records_are_read_as_they_were_written_whatever_the_size_of_segments(
    records: list[Record], size: int, seconds: float
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        write(Path(directory), records, SegmentLimits(bytes=size, seconds=seconds))
        recording = open_recording(directory)
        assert list(recording) == records
        assert not recording.unfinished
        assert list(recording) == records  # again, from the beginning
        assert (recording.cluster, recording.begins) == ("test", records[0].at)  # type: ignore[union-attr]


@given(
    st.lists(
        st.tuples(st.sampled_from(ODD_TIMES), st.sampled_from(ODD_TIMES), st.sampled_from(ODD_VALUES)),
        max_size=4,
    )
)
@example([(0.0, 0.0, 10**5000)])
def test_what_the_reader_refuses_is_refused_by_the_writer(odd: list[tuple[float, float, object]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        written: list[Record] = []
        with RecordingWriter(directory, clock=VirtualClock()) as writer:
            for since, until, value in ((0.0, 0.0, 1), *odd):
                state = State(until, (pod("a", value=value),))
                for record in (
                    state,
                    RecordedChange(since, ChangeType.ADDED, pod("b", value=value)),
                    Gap(since, until, "odd"),
                    state,
                ):
                    # Out of turn, or with a time or a value that can't be read.
                    with contextlib.suppress(RecordingError):
                        writer.write(record)
                        written.append(record)
        # A gap is written with the state that follows it: without one the recording isn't at its end.
        ends_in_gap = isinstance(written[-1], Gap)
        recording = open_recording(directory)
        assert len(list(recording)) == len(written) - ends_in_gap
        assert bool(recording.unfinished) == ends_in_gap


@given(histories(), histories(start=100.0))
def test_a_recorder_that_starts_again_goes_on_after_a_gap(before: list[Record], after: list[Record]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        write(Path(directory), before)
        write(Path(directory), after)
        last, first = before[-1], after[0]
        assert not isinstance(last, Gap)
        assert isinstance(first, State)
        gap = Gap(last.at, first.at, "the recorder wasn't running")
        assert list(open_recording(directory)) == [*before, gap, *after]


@given(histories(), st.integers(1, 5), st.floats(1, 20))
def test_what_is_left_after_old_segments_were_deleted_is_the_end_of_the_whole(
    records: list[Record], size: int, seconds: float
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        write(Path(directory), records, SegmentLimits(bytes=size, retained_seconds=seconds))
        first, *rest = open_recording(directory)
        assert isinstance(first, State)
        assert not rest or rest == records[-len(rest) :]
        before = records[: len(records) - len(rest)]
        assert folded([first]) == folded(before)
        last = records[-1]
        assert not isinstance(last, Gap)
        inside = [each for each in records if not isinstance(each, Gap) and each.at > last.at - seconds]
        assert len(rest) >= len(inside) - 1


def test_the_newest_segment_stays_however_little_is_to_be_kept(tmp_path: Path) -> None:
    write(tmp_path, SMALL, SegmentLimits(bytes=1, retained_bytes=1))
    assert [path.name for path in tmp_path.glob("*.ksr")] == ["segment-00000002.ksr"]
    assert folded(open_recording(tmp_path)) == folded(SMALL)


def test_a_change_is_read_a_second_after_it_was_written(tmp_path: Path) -> None:
    clock = VirtualClock()
    with RecordingWriter(tmp_path, clock=clock) as writer:
        writer.write(SMALL[0])
        assert list(open_recording(tmp_path)) == [SMALL[0]]
        clock.advance_to(0.5)
        writer.write(SMALL[1])
        assert list(open_recording(tmp_path)) == [SMALL[0]]
        clock.advance_to(1.5)
        writer.write(SMALL[2])
        recording = open_recording(tmp_path)
        assert list(recording) == list(SMALL[:3])
        assert "has no end mark" in recording.unfinished or "ends without" in recording.unfinished
        writer.write(SMALL[3])
        writer.flush()
        assert list(open_recording(tmp_path)) == list(SMALL)


def test_a_reader_goes_on_into_segments_that_are_begun_while_it_reads(tmp_path: Path) -> None:
    with RecordingWriter(tmp_path, limits=SegmentLimits(bytes=1), clock=VirtualClock()) as writer:
        writer.write(SMALL[0])
        writer.write(SMALL[1])
        reading = iter(open_recording(tmp_path))
        assert next(reading) == SMALL[0]
        for record in SMALL[2:]:
            writer.write(record)
        writer.flush()
        assert list(reading) == list(SMALL[1:])


KILLED = """
import sys
from kschedfw_replay import *
pod = lambda number: {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{number}"}, "spec": {"x": "y" * 500}}
writer = RecordingWriter(sys.argv[1], cluster="test", limits=SegmentLimits(bytes=3000))
writer.write(State(0.0, ()))
for number in range(10**9):
    writer.write(RecordedChange(number, ChangeType.ADDED, pod(number)))
    if number % 7 == 0:
        writer.flush()
        print(number, flush=True)
"""


@pytest.mark.slow
def test_nothing_that_was_flushed_is_lost_when_the_recorder_is_killed(tmp_path: Path) -> None:
    flushed = -1
    for run in range(3):
        with running([sys.executable, "-c", KILLED, str(tmp_path / str(run))]) as process:
            assert process.stdout is not None
            for line in process.stdout:
                flushed = int(line)
                if flushed >= 70 * (run + 1):
                    break
            process.kill()
            flushed = max([flushed, *map(int, process.stdout)])
        recording = open_recording(tmp_path / str(run))
        numbers = [int(each.at) for each in recording if isinstance(each, RecordedChange)]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) > flushed
        assert recording.unfinished
        # A recorder that starts again mends it.
        state = State(1e9, (pod("z"),))
        write(tmp_path / str(run), [state])
        mended = open_recording(tmp_path / str(run))
        *_, gap, last = mended
        assert last == state
        assert isinstance(gap, Gap)
        assert (gap.until, gap.reason) == (1e9, "the recorder wasn't running")
        # A segment may have been begun for a change that wasn't flushed any more.
        assert gap.since in (numbers[-1], numbers[-1] + 1)
        assert not mended.unfinished


def test_a_recorder_mends_what_a_kill_left_at_any_byte(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    write(whole, SMALL, SegmentLimits(bytes=60))
    segments = sorted(whole.glob("*.ksr"))
    assert len(segments) > 1
    content = segments[-1].read_bytes()
    after = State(100.0, (pod("z"),))
    for length in range(len(content)):
        path = tmp_path / str(length)
        path.mkdir()
        for each in segments[:-1]:
            (path / each.name).write_bytes(each.read_bytes())
        (path / segments[-1].name).write_bytes(content[:length])
        write(path, [after])
        recording = open_recording(path)
        *before, gap, state = recording
        assert before == list(SMALL[: len(before)])
        assert before
        assert isinstance(gap, Gap)
        assert gap.until == 100.0
        assert state == after
        assert not recording.unfinished


def test_a_recording_is_for_its_owner_alone(tmp_path: Path) -> None:
    write(tmp_path / "new", SMALL)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new", *(tmp_path / "new").iterdir())]
    assert modes == [0o700, 0o600, 0o600]


def test_two_recorders_do_not_write_one_directory(tmp_path: Path) -> None:
    with RecordingWriter(tmp_path), pytest.raises(RecordingError, match="another recorder is writing it"):
        RecordingWriter(tmp_path)


@pytest.mark.parametrize("options", [{"cluster": "other"}, {"cluster": "test", "anonymized": True}])
def test_a_recording_is_not_gone_on_with_as_another_ones(tmp_path: Path, options: dict[str, object]) -> None:
    write(tmp_path, SMALL)
    with pytest.raises(RecordingError, match="has a recording of test without pseudonyms"):
        RecordingWriter(tmp_path, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (RecordedChange(9.0, ChangeType.ADDED, pod("x")), "times never decrease"),
        (Gap(12.0, 11.0, ""), "times never decrease"),
        (State(11.0, ()), "a state without a gap before it"),
        (RecordedChange(11.0, ChangeType.ADDED, {"kind": "Pod"}), "needs apiVersion, kind and metadata.name"),
        (RecordedChange(11.0, ChangeType.ADDED, {**pod("x"), "spec": object()}), "can't be written as JSON"),
    ],
)
def test_a_record_out_of_turn_is_refused_and_the_rest_stays(tmp_path: Path, record: Record, why: str) -> None:
    with RecordingWriter(tmp_path) as writer:
        writer.write(SMALL[0])
        with pytest.raises(RecordingError, match=why):
            writer.write(record)
        writer.write(SMALL[1])
    assert list(open_recording(tmp_path)) == list(SMALL[:2])


def test_a_change_comes_after_a_state(tmp_path: Path) -> None:
    with RecordingWriter(tmp_path) as writer:
        with pytest.raises(RecordingError, match="a change before a state"):
            writer.write(SMALL[1])
        writer.write(SMALL[0])
        writer.write(Gap(20.0, 21.0, "blind"))
        with pytest.raises(RecordingError, match="a change before a state"):
            writer.write(RecordedChange(22.0, ChangeType.ADDED, pod("x")))
