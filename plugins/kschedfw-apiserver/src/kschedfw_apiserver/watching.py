"""Watches: the changes since a version, and then every change when it happens."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import attrs
import msgspec

from kschedfw.cluster import EventType
from kschedfw_apiserver import status
from kschedfw_apiserver.events import as_shown
from kschedfw_apiserver.requests import ApiRequest
from kschedfw_apiserver.selection import Selection, selection_of
from kschedfw_apiserver.status import StatusError
from kschedfw_apiserver.store import Store, Stored, StoredChange

_LONGEST: Final = 3600.0
"""The duration in seconds of a watch whose client requests none."""

Shown = Callable[[Stored], bytes]


@attrs.define
class Watch:
    """One client's watch of a resource.

    `events` returns the frames of the changes since the last call, `wait` returns when there may be more. `version`
    is the version from which the client can resume.
    """

    store: Store
    request: ApiRequest
    shown: Shown
    """Returns the JSON of an object in the form that this client wants."""
    version: int
    selection: Selection
    bookmarks: bool
    _initial: Sequence[Stored] | None
    _ends_initial: bool
    _tells_beginning: bool
    _changed: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _unlisten: Callable[[], None] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        loop = asyncio.get_running_loop()
        resource = self.request.resource.kept_as or self.request.resource

        def wake() -> None:
            if not self._changed.is_set():
                loop.call_soon_threadsafe(self._changed.set)

        self._unlisten = self.store.listen(resource, wake)

    @property
    def seconds(self) -> float:
        """The duration of the watch in seconds, as the client requested it."""
        return float(self.request.number("timeoutSeconds") or _LONGEST)

    def close(self) -> None:
        self._unlisten()

    async def wait(self, seconds: float) -> None:
        """Wait for changes, for at most `seconds`."""
        with contextlib.suppress(TimeoutError):
            # asyncio.wait_for may lose a cancellation in Python 3.11, so it isn't used.
            async with asyncio.timeout(seconds):
                await self._changed.wait()

    def events(self) -> list[bytes]:
        """Return the frames of new changes. Raises StatusError if some are no longer kept."""
        # Before reading: a change that comes in between wakes the watch once more, and none is missed.
        self._changed.clear()
        frames = list(self._beginning())
        resource = self.request.resource.kept_as or self.request.resource
        with self.store.lock:
            present, changes = self.store.version, self.store.changes(resource, self.version)
        frames += [frame for change in changes if (frame := self._frame_of(change)) is not None]
        self.version = max(self.version, present)
        return frames

    def bookmark(self) -> bytes:
        """Return the frame with the version to resume from. After the initial events, it has their end mark once."""
        resource = self.request.resource
        metadata: dict[str, Any] = {"resourceVersion": str(self.version), "creationTimestamp": None}
        if self._tells_beginning:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
            self._tells_beginning = False
        obj = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
        return _frame("BOOKMARK", msgspec.json.encode(obj))

    def _beginning(self) -> Iterator[bytes]:
        if self._initial is None:
            return
        for stored in self._initial:
            if self.selection.matches(stored.manifest):
                yield _frame(EventType.ADDED, self.shown(stored))
        self._initial = None
        if self._ends_initial:
            yield self.bookmark()

    def _frame_of(self, change: StoredChange) -> bytes | None:
        """Return the frame of a change as the client sees it: for it, an object exists only while it is selected."""
        if self.selection.is_everything:
            return _frame(change.type, self.shown(change.stored))
        was = change.old is not None and self.selection.matches(change.old.manifest)
        is_now = change.type is not EventType.DELETED and self.selection.matches(change.stored.manifest)
        if is_now:
            return _frame(EventType.MODIFIED if was else EventType.ADDED, self.shown(change.stored))
        if not was:
            return None
        return _frame(EventType.DELETED, self.shown(_as_it_was(change)))


def start_watch(store: Store, request: ApiRequest, shown: Shown) -> Watch:
    """Return a watch. Raises StatusError if the request is malformed."""
    selection = selection_of(request.resource, request.namespace, request.query)
    if request.name:
        raise status.bad_request("a watch of one object needs fieldSelector=metadata.name=NAME")
    sends_initial = request.says("sendInitialEvents")
    match = request.query.get("resourceVersionMatch", "")
    if "sendInitialEvents" in request.query and match != "NotOlderThan":
        why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        raise status.invalid_options("resourceVersionMatch", why)
    version = request.number("resourceVersion")
    initial = None
    if sends_initial or (version == 0 and "sendInitialEvents" not in request.query):
        present, initial = store.all(request.resource.kept_as or request.resource)
        if version > present:
            raise status.too_large_version(version, present)
        version = present
    elif version == 0:
        version = store.version
    bookmarks = request.says("allowWatchBookmarks")
    ends = sends_initial and bookmarks
    return Watch(store, request, shown, version, selection, bookmarks, initial, ends, initial is not None)


def error_frame(error: StatusError) -> bytes:
    return _frame("ERROR", msgspec.json.encode(error.status))


def shown_in_full(request: ApiRequest) -> Shown:
    """Return the function that shows an object unchanged, or in the form of the request's group."""
    resource = request.resource
    if resource.kept_as is None:
        return lambda stored: stored.json
    head = {"kind": resource.kind, "apiVersion": resource.api_version}
    return lambda stored: msgspec.json.encode({**head, **as_shown(stored.manifest)})


def _as_it_was(change: StoredChange) -> Stored:
    """Return the last selected state, with the version at which the object ceased to be selected."""
    if change.type is EventType.DELETED:
        return change.stored
    assert change.old is not None
    metadata = {**change.old.manifest["metadata"], "resourceVersion": str(change.version)}
    return Stored(change.old.resource, {**change.old.manifest, "metadata": metadata}, change.version)


def _frame(type: str, obj: bytes) -> bytes:
    return b'{"type":"' + type.encode() + b'","object":' + obj + b"}\n"
