"""The recorder: follows a live cluster, and writes its changes."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from typing import Any, Final

import attrs
from kschedfw_kubernetes import (
    READ_KINDS,
    SCHEDULING_ANNOTATIONS,
    Anonymizer,
    KubernetesCluster,
    NotSyncedError,
    scheduling_fields,
)

from kschedfw import Clock
from kschedfw.api import DeviceTaintRule, Named, PodGroup, to_manifest
from kschedfw.cluster import EventType, WatchEvent
from kschedfw_replay.recording.lines import Key, key_of
from kschedfw_replay.recording.order import insert_by_version, version_of
from kschedfw_replay.recording.writer import RecordingWriter
from kschedfw_replay.records import ChangeType, Gap, Manifest, RecordedChange, State

RECORDED_KINDS: Final = (*READ_KINDS, PodGroup, DeviceTaintRule)
"""The kinds that are followed, where the server has them."""
_NEEDED: Final[tuple[str, ...]] = ("nodes", "pods")
_POLL_SECONDS: Final = 0.2
_OTHERS_SECONDS: Final = 10.0
"""Seconds to wait for kinds that can't be listed, once nodes and pods are listed."""
_SETTLING_SECONDS: Final = 10.0


@attrs.frozen
class Fields:
    """The recorded fields of objects, and the names in them.

    Attributes:
        annotations: the keys of annotations that stay.
        anonymizer: gives other names; None keeps them.
    """

    annotations: Collection[str] = SCHEDULING_ANNOTATIONS
    anonymizer: Anonymizer | None = None

    def of(self, obj: Named) -> Named:
        """The object with the fields that scheduling reads.

        Its resource version isn't among them: nearly every change differs by it, and most by nothing else that counts.
        """
        kept = scheduling_fields(obj, self.annotations)
        return kept.with_metadata(attrs.evolve(kept.metadata, resource_version=""))

    def manifest(self, reduced: Named) -> dict[str, Any]:
        """The manifest to record, of an object that has only those fields."""
        return to_manifest(reduced) if self.anonymizer is None else self.anonymizer.manifest(reduced)


class Recorder:
    """Writes a cluster's state, then its changes. `begin` and `step` are called on one thread.

    Changes that come in between two steps are written in the order in which the API server stored them. Each has the
    time at which it came in, or that of the change before it if that came in later. When the server has forgotten
    changes that weren't seen yet, a gap and the state after it are written; the gap begins with the last record, the
    kind in question may have been silent for longer.
    """

    def __init__(
        self, cluster: KubernetesCluster, writer: RecordingWriter, clock: Clock, fields: Fields | None = None
    ) -> None:
        """`cluster` is started, and follows at least nodes and pods. `writer` writes nothing else."""
        self._cluster, self._writer, self._clock = cluster, writer, clock
        self._fields = fields or Fields()
        self._lock = threading.Lock()
        self._seen: list[tuple[float, WatchEvent]] = []
        self._held: list[tuple[float, WatchEvent]] = []
        """Changes that were seen during a gap and aren't written yet."""
        self._missed: dict[str, None] = {}
        """The kinds of which changes may have been missed since the last record."""
        self._missed_at = 0.0
        self._lists: dict[str, int] = {}
        self.changes = 0
        """The number of changes written."""
        self.gaps = 0
        """The number of gaps written."""

    def begin(self, timeout: float) -> Mapping[str, str]:
        """Write the state of the cluster. Return the kinds that couldn't be listed, with the reason of each.

        Objects of these kinds are recorded from when they can be listed on.

        Raises:
            NotSyncedError: nodes or pods couldn't be listed within so many seconds.
            RecordingError: the recording can't be written.
        """
        missing = self._wait_for_lists(timeout)
        # Only notes the lists so far: what was listed anew before the state misses nothing.
        self._relisted()
        self._cluster.watch(self._see)
        seen = self._taken()
        self._writer.write(State(self._now(), tuple(self._folded({}, seen).values())))
        return missing

    def step(self, *, ends: bool = False) -> None:
        """Write what has come in since the last step, so that another process reads it.

        After a gap, the state is written when all kinds are followed again, or ten seconds later: a server that
        was started again has forgotten all changes, and each kind is listed anew by itself. `ends` says that there is
        no further step.

        Raises:
            RecordingError: the recording can't be written.
        """
        self._held += self._taken()
        # Asked for afterwards: so nothing that came in by listing anew is written without a gap before it.
        if relisted := self._relisted():
            if not self._missed:
                self._missed_at = self._clock.monotonic()
            self._missed.update(dict.fromkeys(relisted))
        is_settling = self._missed and self._clock.monotonic() - self._missed_at < _SETTLING_SECONDS
        if is_settling and not ends and self.errors():
            return
        held, self._held = self._held, []
        if self._missed:
            self._write_gap(held)
        else:
            for at, event in held:
                self._write_change(at, event)
        self._writer.flush()

    def errors(self) -> Mapping[str, str]:
        """The kinds that aren't followed at the moment, with the reason of each.

        A kind that the server doesn't have isn't among them: it counts as listed, without ever having been.
        """
        return {
            kind: status.last_error
            for kind, status in self._cluster.sync_status().items()
            if status.last_error and (status.lists or not status.synced)
        }

    # --- behind the scenes ---

    def _wait_for_lists(self, timeout: float) -> Mapping[str, str]:
        begun = self._clock.monotonic()
        while not self._cluster.wait_for_sync(_POLL_SECONDS):
            status = self._cluster.sync_status()
            waited = self._clock.monotonic() - begun
            missing = {kind: each.last_error for kind, each in status.items() if not each.synced}
            needed = next((kind for kind in _NEEDED if kind in missing), None)
            # Each missing kind has an error, so none is still being listed.
            if needed is None and all(missing.values()) and waited > min(_OTHERS_SECONDS, timeout):
                return missing
            if waited > timeout:
                kind: str = needed or next(iter(missing))
                raise NotSyncedError(
                    f"{kind}: not listed after {timeout:g} s: {missing[kind] or 'no answer yet'}"
                )
        return {}

    def _see(self, event: WatchEvent) -> None:
        with self._lock:
            # Only kept: watches call from threads of their own, and must not wait for the disk.
            self._seen.append((self._clock.now(), event))

    def _taken(self) -> list[tuple[float, WatchEvent]]:
        """Return the changes since the last call, in the order in which the API server stored them."""
        with self._lock:
            seen, self._seen = self._seen, []
        taken: list[tuple[float, WatchEvent]] = []
        for each in seen:
            insert_by_version(taken, each, lambda one: version_of(one[1]))
        return taken

    def _now(self, at: float | None = None) -> float:
        """Return the time, or that of a change, but none before the last record: clocks may be set back."""
        now = self._clock.now() if at is None else at
        return now if self._writer.last_at is None else max(now, self._writer.last_at)

    def _relisted(self) -> list[str]:
        """Return the kinds of which changes may have been missed since the last call."""
        lists = {kind: status.lists for kind, status in self._cluster.sync_status().items()}
        before, self._lists = self._lists, lists
        # A kind's first list misses nothing.
        return [kind for kind, count in lists.items() if count > max(before.get(kind, 1), 1)]

    def _write_change(self, at: float, event: WatchEvent) -> None:
        reduced = self._fields.of(event.object)
        # Most changes concern nothing that scheduling reads.
        if event.old is not None and reduced == self._fields.of(event.old):
            return
        manifest = self._fields.manifest(reduced)
        self._writer.write(RecordedChange(self._now(at), ChangeType(event.type.value), manifest))
        self.changes += 1

    def _write_gap(self, seen: list[tuple[float, WatchEvent]]) -> None:
        known = {key_of(manifest): manifest for manifest in self._writer.manifests()}
        now, since = self._now(), self._writer.last_at
        assert since is not None
        reason = f"the API server no longer had all changes of {', '.join(self._missed)}; listed anew"
        self._missed = {}
        self._writer.write(Gap(since, now, reason))
        self._writer.write(State(now, tuple(self._folded(known, seen).values())))
        self.gaps += 1

    def _folded(
        self, manifests: dict[Key, Manifest], seen: list[tuple[float, WatchEvent]]
    ) -> dict[Key, Manifest]:
        """The manifests after the changes."""
        for _, event in seen:
            manifest = self._fields.manifest(self._fields.of(event.object))
            if event.type is EventType.DELETED:
                manifests.pop(key_of(manifest), None)
            else:
                manifests[key_of(manifest)] = manifest
        return manifests
