"""The lines in a segment's blocks: JSON, one object a line, tagged by `is`.

A segment's first line is its header. Then come a state, each of whose objects is a line of its own, and the changes
after it. An end mark says that the segment is complete. A gap begins another segment, whose header tells of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from kschedfw.api.reading import DEEPEST, TOO_DEEP, is_too_deep
from kschedfw_replay.recording.blocks import LONGEST_BLOCK, RecordingError
from kschedfw_replay.records import ChangeType, Manifest, RecordedChange


class GapBefore(msgspec.Struct, frozen=True):
    """A gap between two segments."""

    since: float
    until: float
    reason: str


class Header(msgspec.Struct, frozen=True, kw_only=True, tag_field="is", tag="header", omit_defaults=True):
    """The header of a segment.

    `gap` is what lies between the segment before and this one; without it, the state at the beginning is the one at the
    end of the segment before.
    """

    number: int
    begins: float
    cluster: str
    kschedfw: str
    """The version that wrote it."""
    anonymized: bool = False
    gap: GapBefore | None = None


class StateLine(msgspec.Struct, frozen=True, tag_field="is", tag="state"):
    at: float
    objects: int
    """The number of lines with objects that follow."""


class ChangeLine(msgspec.Struct, frozen=True, tag_field="is", tag="change"):
    at: float
    type: ChangeType
    object: dict[str, Any]


class _ChangeHead(msgspec.Struct, frozen=True, tag_field="is", tag="change"):
    """A change whose object is encoded already."""

    at: float
    type: ChangeType
    object: msgspec.Raw


class EndLine(msgspec.Struct, frozen=True, tag_field="is", tag="end"):
    at: float
    more: bool
    """True if another segment follows without a pause."""


Line = Header | StateLine | ChangeLine | EndLine

Key = tuple[str, str, str, str]
"""The group, kind, namespace and name of an object."""

_encode: Final = msgspec.json.Encoder().encode
_decode: Final[Callable[[bytes], Line]] = msgspec.json.Decoder(Line).decode
_decode_object: Final = msgspec.json.Decoder(dict[str, Any]).decode
_FARTHEST: Final = 6e10
"""Seconds from 1970: times that are farther away, by more than 19 centuries, are no dates."""
_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def check_time(at: float) -> None:
    """Check that a time is one that recordings have.

    Raises:
        RecordingError: it isn't.
    """
    # Written so that NaN is refused, too.
    if not abs(at) <= _FARTHEST:
        raise RecordingError(f"time {at:g} is out of range; expected seconds since 1970, up to {_FARTHEST:g}")


def decode_line(line: bytes) -> Line:
    """Return the record of a line.

    Raises:
        RecordingError: it is none, or its times are no times.
    """
    try:
        decoded = _decode(line)
    except _UNREADABLE as error:
        raise RecordingError(f"not a line of a recording: {error}") from None
    for time in _times(decoded):
        check_time(time)
    if isinstance(decoded, ChangeLine):
        key_of(decoded.object)
    return decoded


def decode_object(line: bytes) -> dict[str, Any]:
    """Return an object of a state.

    Raises:
        RecordingError: it is no Kubernetes object.
    """
    try:
        decoded = _decode_object(line)
    except _UNREADABLE as error:
        raise RecordingError(f"not an object: {error}") from None
    key_of(decoded)
    return decoded


def encode_object(manifest: Manifest) -> bytes:
    """The object as a line, without the line's end.

    Raises:
        RecordingError: it can't be written as JSON, or is too long or too deep.
    """
    try:
        line = _encode(manifest)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise RecordingError(f"{'/'.join(key_of(manifest))}: can't be written as JSON: {error}") from None
    # Brackets are counted first, which is fast. The reader's recursion ends at a depth that depends on its caller.
    if line.count(b"{") + line.count(b"[") > DEEPEST and is_too_deep(manifest):
        raise RecordingError(f"{'/'.join(key_of(manifest))}: {TOO_DEEP}")
    # The rest is for what surrounds the object in a change.
    if len(line) > LONGEST_BLOCK - 1024:
        raise RecordingError(
            f"{'/'.join(key_of(manifest))}: {len(line)} bytes; a block has at most {LONGEST_BLOCK}"
        )
    return line


def encode_change(change: RecordedChange, encoded: bytes) -> bytes:
    """The change as a line, given its object's line."""
    return _encode(_ChangeHead(change.at, change.type, msgspec.Raw(encoded)))


def encode_line(line: Header | StateLine | EndLine) -> bytes:
    return _encode(line)


def key_of(manifest: Mapping[str, Any]) -> Key:
    """The identity of an object.

    Raises:
        RecordingError: it has no apiVersion, kind or name.
    """
    version, kind, metadata = manifest.get("apiVersion"), manifest.get("kind"), manifest.get("metadata")
    # Nearly all are dicts, for which the check against an ABC would take longer than everything else here.
    if isinstance(version, str) and isinstance(kind, str) and isinstance(metadata, dict | Mapping):
        name, namespace = metadata.get("name"), metadata.get("namespace", "")
        if isinstance(name, str) and name and isinstance(namespace, str):
            # The group without the version: the API server has one object in all versions.
            return version.rpartition("/")[0], kind, namespace, name
    raise RecordingError("not a Kubernetes object: it needs apiVersion, kind and metadata.name")


def state_lines(at: float, objects: Mapping[Key, bytes]) -> Iterator[bytes]:
    """The lines of a state, given its objects' lines."""
    yield encode_line(StateLine(at, len(objects)))
    yield from objects.values()


def encoded_objects(manifests: Iterable[Manifest]) -> dict[Key, bytes]:
    """The line of each object, by its identity.

    Raises:
        RecordingError: an object is there twice, or can't be written.
    """
    encoded: dict[Key, bytes] = {}
    for manifest in manifests:
        key = key_of(manifest)
        if key in encoded:
            raise RecordingError(f"{'/'.join(key)}: twice in a state; an object is in it once")
        encoded[key] = encode_object(manifest)
    return encoded


def _times(line: Line) -> tuple[float, ...]:
    if not isinstance(line, Header):
        return (line.at,)
    return (line.begins,) if line.gap is None else (line.gap.since, line.gap.until, line.begins)
