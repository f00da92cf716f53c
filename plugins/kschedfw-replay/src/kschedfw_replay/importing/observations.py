"""Conversion of the observations in a foreign file to the records of a recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, cast

import attrs
import msgspec

from kschedfw.api import (
    KIND_OF,
    CustomObject,
    ManifestError,
    Named,
    Pod,
    PodCondition,
    object_from_manifest,
    supported_kind,
)
from kschedfw.api.reading import UnreadableError, lines_of, printable, shown
from kschedfw_replay.recording.blocks import RecordingError
from kschedfw_replay.recording.lines import Key, check_time, key_of
from kschedfw_replay.recording.recorder import Fields
from kschedfw_replay.records import ChangeType, Record, RecordedChange, State

LONGEST_LINE: Final = 64 << 20
"""Bytes of a line: the API server takes requests of 3 MiB, and a line may have many of their objects."""
MOST_VALUES: Final = 5_000_000
"""Values of a line: empty lists would take thirty times the memory of their text."""
MOST_PROBLEMS: Final = 20
_LONGEST_KIND: Final = 63
_OTHER_KINDS: Final = "other kinds"
_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


@attrs.frozen
class Observation:
    """An object was seen in a state, or is gone.

    Attributes:
        at: seconds since 1970.
        manifest: the object; of one that is gone, its kind and name are enough.
        gone: whether it was deleted.
        problem: why it can't be used, with its name; such an observation changes nothing.
    """

    at: float
    manifest: Mapping[str, Any]
    gone: bool = False
    problem: str = ""


@attrs.frozen
class Binding:
    """A pod was bound."""

    at: float
    namespace: str
    name: str
    node_name: str


class Importer:
    """Turns observations into records.

    Attributes:
        left_out: how many observations of each kind weren't used, since scheduling doesn't read the kind or the object
            can't be read; after the first kinds, of others together.
        problems: the distinct problems of observations that weren't used, at most `MOST_PROBLEMS`.
    """

    def __init__(self, fields: Fields, start: Iterable[Named] = ()) -> None:
        """`start` are objects that are there from the beginning, such as nodes that the file doesn't tell of."""
        self.left_out: Counter[str] = Counter()
        self.problems: dict[str, None] = {}
        self._fields = fields
        self._objects: dict[Key, Named] = {}
        for obj in start:
            reduced = fields.of(obj)
            self._objects[_key(reduced)] = reduced

    def records(self, observations: Iterable[Observation | Binding]) -> Iterator[Record]:
        """Yield a state, with the start and all that is observed at the first time, then a change for each observation
        that changes something.

        An observation before the last one counts as one at the same time: files are written by several threads.
        """
        begins: float | None = None
        last = 0.0
        is_told = False
        for observation in observations:
            if begins is None:
                begins = last = observation.at
            last = max(last, observation.at)
            if not is_told and last > begins:
                # Only now, since the state has all that is observed at the first time.
                yield self._state(begins)
                is_told = True
            change = self._change(last, observation)
            if is_told and change is not None:
                yield change
        if begins is not None and not is_told:
            yield self._state(begins)

    def _state(self, at: float) -> State:
        return State(at, tuple(map(self._fields.manifest, self._objects.values())))

    def _change(self, at: float, observation: Observation | Binding) -> RecordedChange | None:
        if isinstance(observation, Binding):
            pod = self._objects.get(("", "Pod", observation.namespace, observation.name))
            return None if pod is None else self._put(at, _bound(cast("Pod", pod), observation.node_name))
        if observation.problem:
            self._leave_out(observation)
            if len(self.problems) < MOST_PROBLEMS:
                self.problems[observation.problem] = None
            return None
        try:
            if observation.gone:
                return self._remove(at, key_of(observation.manifest))
            if supported_kind(observation.manifest) is None:
                self._leave_out(observation)
                return None
            # For its identity, without which nothing can be recorded.
            key_of(observation.manifest)
            obj = object_from_manifest(observation.manifest, check=False)
        except (ManifestError, RecordingError):
            self._leave_out(observation)
            return None
        # kube-scheduler, too, follows only pods that haven't ended.
        if isinstance(obj, Pod) and obj.is_terminal:
            return self._remove(at, _key(obj))
        return self._put(at, self._fields.of(obj))

    def _leave_out(self, observation: Observation) -> None:
        kind = printable(str(observation.manifest.get("kind")), _LONGEST_KIND)
        # A file may name any number of kinds; they are kept to be told.
        is_kept = kind in self.left_out or len(self.left_out) < MOST_PROBLEMS
        self.left_out[kind if is_kept else _OTHER_KINDS] += 1

    def _put(self, at: float, obj: Named) -> RecordedChange | None:
        key = _key(obj)
        known = self._objects.get(key)
        # Most updates change nothing that scheduling reads.
        if known == obj:
            return None
        self._objects[key] = obj
        type_ = ChangeType.ADDED if known is None else ChangeType.MODIFIED
        return RecordedChange(at, type_, self._fields.manifest(obj))

    def _remove(self, at: float, key: Key) -> RecordedChange | None:
        known = self._objects.pop(key, None)
        return None if known is None else RecordedChange(at, ChangeType.DELETED, self._fields.manifest(known))


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the number and the content of each line of a file of JSON lines; it may be gzipped.

    Raises:
        RecordingError: a line is no JSON, or is too long or has too many values; or the file can't be unpacked.
        OSError: the file can't be read.
    """
    for number, line in file_lines(path, LONGEST_LINE):
        if line.isspace():
            continue
        # A value but the first one has a comma, a bracket or a brace before it.
        if line.count(b",") + line.count(b"[") + line.count(b"{") > MOST_VALUES:
            raise RecordingError(f"{path}: line {number}: has more than {MOST_VALUES:,} values")
        try:
            yield number, msgspec.json.decode(line)
        except _UNREADABLE as error:
            raise RecordingError(f"{path}: line {number}: not JSON: {error}") from None


def file_lines(path: Path, longest: int) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the bytes of each line of a file; it may be gzipped.

    Raises:
        RecordingError: a line has more bytes than `longest`, or the file can't be unpacked.
        OSError: the file can't be read.
    """
    try:
        yield from lines_of(path, longest)
    except UnreadableError as error:
        raise RecordingError(f"{path}: {error}") from None


def items_of(content: Mapping[str, Any], where: str) -> Sequence[Any]:
    """Return the items of a list in a field; none if the field is missing.

    Raises:
        RecordingError: they are no list.
    """
    items = content.get("items")
    if items is not None and not isinstance(items, list):
        raise RecordingError(f"{where}: items: expected a list")
    return items or ()


def seconds_of(text: object, where: str) -> float:
    """Return the time of a text in RFC 3339, in seconds since 1970.

    Raises:
        RecordingError: it isn't one, or is one that recordings don't have.
    """
    try:
        at = datetime.fromisoformat(str(text))
        if at.tzinfo is not None:
            return checked_time(at.timestamp(), where)
        why = "has no time zone; expected a time"
    except (ValueError, OverflowError):
        why = "is no time"
    raise RecordingError(f"{where}: {shown(text)} {why} such as 2026-01-31T12:00:00Z")


def checked_time(at: float, where: str) -> float:
    """Return the time, if recordings may have it.

    Raises:
        RecordingError: they may not.
    """
    try:
        check_time(at)
    except RecordingError as error:
        raise RecordingError(f"{where}: {error}") from None
    return at


def _bound(pod: Pod, node_name: str) -> Pod:
    """Return the pod as it is after its binding: with the node and the condition PodScheduled."""
    others = tuple(each for each in pod.status.conditions if each.type != "PodScheduled")
    conditions = (*others, PodCondition("PodScheduled", "True"))
    return attrs.evolve(
        pod,
        spec=attrs.evolve(pod.spec, node_name=node_name),
        status=attrs.evolve(pod.status, conditions=conditions),
    )


def _key(obj: Named) -> Key:
    kind = obj.kind if isinstance(obj, CustomObject) else KIND_OF[type(obj)]
    return kind.api_version.rpartition("/")[0], kind.name, obj.namespace, obj.name
