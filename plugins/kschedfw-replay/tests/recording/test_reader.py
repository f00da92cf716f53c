"""Damaged and hostile recordings: one clear error, and all before it can be used."""

from __future__ import annotations

import os
import struct
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_replay import Record, RecordingError, SegmentLimits, open_recording
from recording.histories import SMALL, write

FIRST_LINE = b"kschedfw recording 1\n"
HEADER = b'{"is":"header","number":1,"begins":0,"cluster":"c","kschedfw":"1"}'
EMPTY_STATE = b'{"is":"state","at":0,"objects":0}'


def readable(path: Path) -> tuple[list[Record], str, str]:
    """The records before the error, the error, and what an end without one says."""
    records: list[Record] = []
    try:
        recording = open_recording(path)
        records.extend(recording)  # which keeps what came before an error
    except RecordingError as error:
        return records, str(error), ""
    return records, "", recording.unfinished


def segment(*lines: bytes, announced: int | None = None) -> bytes:
    """A segment of one block, whose length may be announced wrongly."""
    content = b"".join(line + b"\n" for line in lines)
    packer = zlib.compressobj(wbits=-15)
    packed = packer.compress(content) + packer.flush(zlib.Z_SYNC_FLUSH)
    length = len(content) if announced is None else announced
    head = struct.pack("<III", len(packed), length, zlib.crc32(packed))
    return FIRST_LINE + head + struct.pack("<I", zlib.crc32(head)) + packed


def is_prefix(records: Sequence[Record]) -> bool:
    return list(records) == list(SMALL[: len(records)])


def test_a_recording_that_is_cut_at_any_byte_is_read_up_to_there_and_says_that_its_end_is_missing(
    tmp_path: Path,
) -> None:
    write(tmp_path, SMALL)
    (path,) = tmp_path.glob("*.ksr")
    content = path.read_bytes()
    counts = []
    for length in range(len(content)):
        path.write_bytes(content[:length])
        records, error, unfinished = readable(tmp_path)
        assert is_prefix(records)
        assert str(path) in (error or unfinished)
        counts.append(len(records))
    assert counts == sorted(counts)
    assert set(counts) >= {0, 1, 2, 3}


def test_a_segment_in_between_that_is_cut_at_any_byte_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, SMALL, SegmentLimits(bytes=1))
    first, _ = sorted(tmp_path.glob("*.ksr"))
    content = first.read_bytes()
    for length in range(len(content)):
        first.write_bytes(content[:length])
        records, error, _ = readable(tmp_path)
        assert is_prefix(records)
        assert str(first) in error


@given(st.data())
def test_a_flipped_bit_anywhere_is_an_error_and_nothing_wrong_is_read(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        write(Path(directory), SMALL, SegmentLimits(bytes=data.draw(st.sampled_from([1, 10**9]))))
        path = data.draw(st.sampled_from(sorted(Path(directory).glob("*.ksr"))))
        content = bytearray(path.read_bytes())
        bit = data.draw(st.integers(0, 8 * len(content) - 1))
        content[bit // 8] ^= 1 << bit % 8
        path.write_bytes(content)
        records, error, unfinished = readable(Path(directory))
        assert is_prefix(records)
        # A damaged first line can look like one that isn't written yet.
        assert error or (unfinished and bit < 8 * len(FIRST_LINE))
        assert f"{path}: offset " in (error or unfinished)


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_read_or_refused(content: bytes, valid_start: bool) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "segment-00000001.ksr"
        path.write_bytes(FIRST_LINE * valid_start + content)
        records, error, unfinished = readable(Path(directory))
        assert not records
        assert str(path) in error + unfinished


@given(
    st.lists(
        st.sampled_from([HEADER, EMPTY_STATE, b"{}", b"", b"1", b'{"is":"end","at":1,"more":false}'])
        | st.binary(max_size=20)
    )
)
def test_any_lines_are_read_or_refused(lines: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "segment-00000001.ksr").write_bytes(segment(HEADER, EMPTY_STATE, *lines))
        records, error, unfinished = readable(Path(directory))
        assert len(records) == 1
        assert error or unfinished or lines == [b'{"is":"end","at":1,"more":false}']


BOMB = b'{"is":"gap","x":"' + b"0" * (17 << 20) + b'"}'  # a little more than a block may have


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "ends in the middle of a block"),
        (b"kschedfw recording 2\n", "format 2 of recordings; this kschedfw reads format 1"),
        (
            b"PK\x03\x04" + b"x" * 50,
            "isn't a segment of a recording, which begins with 'kschedfw recording 1'",
        ),
        (segment(BOMB, announced=100), "other contents than the 100 bytes that it announces"),
        (segment(BOMB), "at most 16777216 are allowed"),
        (segment(b"[" * 1_000_000), "not a line of a recording"),
        (segment(b'{"is":"header","a":' + b"[" * 1_000_000), "not a line of a recording"),
        (segment(EMPTY_STATE), "expected the header of a segment"),
        (segment(HEADER.replace(b'"begins":0', b'"begins":1e999')), "not a line of a recording"),
        (segment(HEADER.replace(b'"c"', b"3")), "Expected `str`, got `int` - at `$.cluster`"),
        (segment(b'{"is":"header","number":1,"begins":0,"cluster":"\xff","kschedfw":"1"}'), "not a line"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "content",
)
def test_a_file_that_is_no_segment_is_refused_when_it_is_opened(
    tmp_path: Path, content: bytes, why: str
) -> None:
    path = tmp_path / "segment-00000001.ksr"
    path.write_bytes(content)
    with pytest.raises(RecordingError) as caught:
        open_recording(tmp_path)
    assert str(caught.value).startswith(f"{path}: offset ")
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([b'{"is":"end","at":0,"more":false}'], "expected a state after the header"),
        ([b'{"is":"state","at":-1,"objects":0}'], "times never decrease"),
        ([b'{"is":"state","at":1e15,"objects":0}'], "time 1e+15 is out of range"),
        (
            [b'{"is":"state","at":0,"objects":1}', b'{"kind":"Pod"}'],
            "needs apiVersion, kind and metadata.name",
        ),
        ([b'{"is":"state","at":0,"objects":1}', b"[" * 100_000], "not an object"),
        ([EMPTY_STATE, EMPTY_STATE], "expected a change or the end mark"),
        ([EMPTY_STATE, HEADER], "expected a change or the end mark"),
        ([EMPTY_STATE, b'{"is":"change","at":1,"type":"GONE","object":{}}'], "Invalid enum value 'GONE'"),
        ([EMPTY_STATE, b'{"is":"change","at":1,"type":"ADDED","object":{}}'], "needs apiVersion"),
        ([EMPTY_STATE, b'{"is":"end","at":1,"more":false}', HEADER], "something after the end mark"),
    ],
)
def test_a_line_that_is_wrong_is_named_by_its_place(tmp_path: Path, lines: list[bytes], why: str) -> None:
    path = tmp_path / "segment-00000001.ksr"
    path.write_bytes(segment(HEADER, *lines))
    _, error, _ = readable(tmp_path)
    assert error.startswith(f"{path}: offset ")
    assert why in error


def test_a_state_that_announces_more_objects_than_there_are_ends_the_reading(tmp_path: Path) -> None:
    path = tmp_path / "segment-00000001.ksr"
    path.write_bytes(segment(HEADER, b'{"is":"state","at":0,"objects":9223372036854775807}'))
    assert readable(tmp_path) == ([], "", f"{path}: offset {path.stat().st_size}: ends within its state")


def test_damage_ends_the_reading_with_a_warning_where_that_is_asked_for(tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    (path,) = tmp_path.glob("*.ksr")
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(RecordingError, match="checksum"):
        list(open_recording(tmp_path))
    damages: list[RecordingError] = []
    assert is_prefix(list(open_recording(tmp_path, on_damage=damages.append)))
    assert [str(each) for each in damages] == [readable(tmp_path)[1]]


def test_what_is_no_regular_file_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "segment-00000001.ksr"
    target = tmp_path / "elsewhere"
    target.write_bytes(segment(HEADER, EMPTY_STATE))
    path.symlink_to(target)
    assert f"{path}: is a symbolic link" in readable(tmp_path)[1]
    path.unlink()
    os.mkfifo(path)
    assert f"{path}: is no regular file" in readable(tmp_path)[1]
    path.unlink()
    path.mkdir()
    assert f"{path}: is no regular file" in readable(tmp_path)[1]


def test_what_is_no_directory_of_segments_is_no_recording(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for path, why in (
        (tmp_path / "none", "a recording is a directory of segments"),
        (file, "a recording is a directory of segments"),
        (tmp_path, "has no segments (segment-00000001.ksr, …); it is no recording"),
    ):
        with pytest.raises(RecordingError) as caught:
            open_recording(path)
        assert str(path) in str(caught.value)
        assert why in str(caught.value)


def test_a_missing_segment_is_named(tmp_path: Path) -> None:
    write(tmp_path, SMALL, SegmentLimits(seconds=1))
    first, second, *_ = sorted(tmp_path.glob("*.ksr"))
    assert len(list(tmp_path.glob("*.ksr"))) > 2
    second.unlink()
    assert f"{second}: is missing" in readable(tmp_path)[1]
    second.write_bytes(first.read_bytes())
    records, error, _ = readable(tmp_path)
    assert is_prefix(records)
    assert f"{second}: its header has number 1; the file was renamed" in error


def test_a_segment_that_retention_deletes_while_it_is_awaited_is_named(tmp_path: Path) -> None:
    write(tmp_path, SMALL, SegmentLimits(seconds=1))
    reading = iter(open_recording(tmp_path))
    next(reading)
    *old, _ = sorted(tmp_path.glob("*.ksr"))
    for path in old:
        path.unlink()
    with pytest.raises(RecordingError, match="was deleted"):
        list(reading)
