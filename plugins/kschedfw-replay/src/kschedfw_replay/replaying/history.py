"""The history of a recording, or of a window of it: changes of objects."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

import attrs

from kschedfw import InMemoryCluster
from kschedfw.api import DEFAULT_NAMESPACE, ManifestError, Named, Pod, object_from_manifest, supported_kind
from kschedfw_replay.recording.blocks import RecordingError
from kschedfw_replay.recording.lines import Key, key_of
from kschedfw_replay.records import ChangeType, Gap, Manifest, Record, RecordedChange, State

_NOTHING: Final = "nothing was recorded in that time"


@attrs.frozen
class Happening:
    """One change of one object. `old` is None when it appears, `new` when it is gone."""

    at: float
    """Seconds since 1970."""
    old: Named | None
    new: Named | None

    @property
    def object(self) -> Named:
        """The object after the change, or as it was last."""
        found = self.old if self.new is None else self.new
        assert found is not None
        return found


@attrs.define
class History:
    """The changes of a recording's objects; each iteration reads it from its beginning.

    All objects of the first state appear at the time at which the history begins. After a gap, the differences between
    the states before and after it happen at its end. A pod that has ended is gone, as for kube-scheduler.

    Only the objects that exist at a time are kept.

    Attributes:
        records: the recording.
        since: the window's begin, in seconds since 1970; what was there then appears then.
        until: the window's end.
        begins: the time of the first happening, known once an iteration has begun.
        ends: the time of the last record within the window, known once an iteration has ended.
        gaps: how many gaps the last iteration came across.
        left_out: objects that couldn't be read in the last iteration, by kind.
    """

    records: Iterable[Record]
    since: float = -math.inf
    until: float = math.inf
    begins: float = attrs.field(default=math.nan, init=False)
    ends: float = attrs.field(default=math.nan, init=False)
    gaps: int = attrs.field(default=0, init=False)
    left_out: Counter[str] = attrs.field(factory=Counter, init=False)
    _objects: dict[Key, Named] = attrs.field(factory=dict, init=False)
    _first_at: float | None = attrs.field(default=None, init=False)
    """The time of the recording's first state."""
    _length: int | None = attrs.field(default=None, init=False)
    """Return the number of records until the window's end."""

    def __iter__(self) -> Iterator[Happening]:
        """Yield the happenings in the order of their times.

        Raises:
            RecordingError: the recording is damaged, or nothing of it is in the window.
        """
        length = 0
        self._objects, self.gaps, self.left_out, self.begins, self.ends = {}, 0, Counter(), math.nan, math.nan
        has_begun = False
        # A recorder may go on writing: each iteration has the records of the first one.
        for record in itertools.islice(self.records, self._length):
            length += 1
            at = record.until if isinstance(record, Gap) else record.at
            if at > self.until:
                if math.isnan(self.begins):
                    raise RecordingError(f"{_NOTHING}; the recording begins at {_shown(at)}")
                break
            # The beginning is yielded with the first record after it: until then, its state may still change.
            if not has_begun and not math.isnan(self.begins) and at > self.since:
                has_begun = True
                yield from self._beginning(max(self.begins, self.since))
            self.ends = at
            match record:
                case Gap():
                    self.gaps += 1
                    continue
                case State():
                    found = list(self._folded(record))
                    if math.isnan(self.begins):
                        if self._first_at not in (None, at):
                            raise RecordingError("the begin of the recording was deleted while it was read")
                        self.begins = self._first_at = at
                case RecordedChange():
                    found = self._changed(at, record.type, record.manifest)
            if has_begun:
                yield from found
        else:
            if self.ends < self.since:
                raise RecordingError(f"{_NOTHING}; the last record is of {_shown(self.ends)}")
        if not has_begun:
            if math.isnan(self.begins):
                raise RecordingError(_NOTHING)
            yield from self._beginning(max(self.begins, self.since))
        self._length = length
        self.ends = max(self.ends, self.begins) if math.isinf(self.until) else self.until

    def _beginning(self, at: float) -> list[Happening]:
        self.begins = at
        return [Happening(at, None, obj) for obj in self._objects.values()]

    def _folded(self, state: State) -> Iterator[Happening]:
        """Yield the differences between the present objects and those of a state."""
        # A dict keeps the order, which a set of keys wouldn't.
        gone = dict.fromkeys(self._objects)
        for manifest in state.manifests:
            gone.pop(_identity(manifest), None)
        for key in gone:
            # What is gone goes first, so that its room is free for what has come.
            yield Happening(state.at, self._objects.pop(key), None)
        for manifest in state.manifests:
            yield from self._changed(state.at, ChangeType.MODIFIED, manifest)

    def _changed(self, at: float, type_: ChangeType, manifest: Manifest) -> list[Happening]:
        key = _identity(manifest)
        old = self._objects.get(key)
        new = None if type_ is ChangeType.DELETED else self._read(manifest)
        # An object that can't be read is as if it were gone.
        if new is None or (isinstance(new, Pod) and new.is_terminal):
            return [] if self._objects.pop(key, None) is None else [Happening(at, old, None)]
        self._objects[key] = new
        if old is not None and _is_another(old, new):
            return [Happening(at, old, None), Happening(at, None, new)]
        return [] if old == new else [Happening(at, old, new)]

    def _read(self, manifest: Manifest) -> Named | None:
        if supported_kind(manifest) is not None:
            try:
                # Unchecked: an API server has accepted it, by the rules of its version.
                return object_from_manifest(manifest, check=False)
            except ManifestError:
                pass
        self.left_out[str(manifest.get("kind"))] += 1
        return None


def _shown(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _identity(manifest: Manifest) -> Key:
    """Return the object's key. An object without a namespace counts as in `default`, where the API server puts it."""
    group, kind, namespace, name = key_of(manifest)
    return group, kind, namespace or DEFAULT_NAMESPACE, name


def _is_another(old: Named, new: Named) -> bool:
    """Return whether an object was deleted and created again while nobody looked. A pod never changes its node."""
    has_left = isinstance(old, Pod) and isinstance(new, Pod) and old.node_name not in ("", new.node_name)
    return has_left or old.metadata.uid != new.metadata.uid


def follow(cluster: InMemoryCluster, old: Named | None, new: Named | None) -> None:
    """Apply an object's change to the cluster, whether the cluster has the object or not."""
    if new is None:
        assert old is not None
        if cluster.get(type(old), old.key) is not None:
            # Without the uid: the object may have another one here, and the cluster would refuse.
            cluster.delete(old.with_metadata(attrs.evolve(old.metadata, uid="", resource_version="")))
    elif cluster.get(type(new), new.key) is None:
        cluster.add(new)
    else:
        cluster.update(new.with_metadata(attrs.evolve(new.metadata, resource_version="")))
