"""A reflector of one kind's objects: lists them, then watches from the list's version on (client-go `Reflector`)."""

from __future__ import annotations

import logging
import math
import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import attrs
import msgspec

from kschedfw import Clock, KschedfwError, Pod
from kschedfw.api import ManifestError, Named
from kschedfw.api.reading import printable
from kschedfw.cluster import EventType, WatchEvent
from kschedfw_kubernetes.cluster.client import Client
from kschedfw_kubernetes.cluster.decoding import (
    UNREADABLE,
    Content,
    WatchLine,
    content_of,
    decode_line,
    key_of,
    read_json,
    version_of,
)
from kschedfw_kubernetes.cluster.errors import ExpiredError, MissingObjectError, UnavailableError, api_error
from kschedfw_kubernetes.cluster.resources import UNFINISHED_PODS, FollowedKind, Resource, resources_of
from kschedfw_kubernetes.cluster.stopping import Backoff, StopSignal
from kschedfw_kubernetes.cluster.store import Store
from kschedfw_kubernetes.cluster.transport import Stream

_LOG = logging.getLogger(__name__)

_WATCH_SECONDS: Final = 20
"""The shortest duration of a watch in seconds.

The API server is asked to end a watch after a random time up to half as long again.

A regular end shows that the server is alive, also through proxies, since HTTP/1.1 has no pings (client-go: 5 to 10
minutes, and HTTP/2 pings). `TransportLimits.quiet` determines when the end is overdue. Two seconds before the end the
server sends a bookmark, so the next watch begins at a recent version.
"""
_NOT_SERVED_SECONDS: Final = 60.0
"""Seconds after which a kind that the server doesn't have is requested again: it may be defined later."""
_SHORT_WATCH: Final = 1.0
"""Seconds. A shorter watch without any event or bookmark isn't repeated at once (client-go)."""
_LONGEST_TOLD: Final = 500
_LINGER: Final = 0.03
"""The least seconds between two reads of the watch of pods.

On a busy cluster several changes come in this time, and are read, delivered and scheduled together: waking three
threads for each took longer than all that is done with it. With 0.01 s, the two changes of a pod took 399 µs of
processor time instead of 323. A change that comes after a rest is read at once. Other kinds change less often, and
plugins look for what they have just written.
"""

Changes: TypeAlias = Callable[[Store], Iterator[WatchEvent]]
Apply: TypeAlias = Callable[[Changes], None]
"""Applies changes to a store while it holds the store's lock, and notifies watchers."""


@attrs.frozen
class KindStatus:
    """The status of following a kind.

    Attributes:
        synced: whether its objects have been listed.
        objects: the number of objects that could be parsed.
        unreadable: the number of objects that couldn't be parsed.
        lists: the number of lists. The objects are listed again when the server no longer has the changes since the
            last one seen.
        last_error: the text of the last error; empty after a success.
    """

    kind: str
    synced: bool = False
    objects: int = 0
    unreadable: int = 0
    lists: int = 0
    last_error: str = ""


class Reflector:
    """A thread that keeps a store up to date with the API server, from `start` to `stop`.

    Attributes:
        kind: the kind of the objects.
        store: the objects. Only `apply` changes it.
        resource: the resource in the API version that the server has.
        synced: whether the objects have been listed once.
    """

    def __init__(
        self,
        client: Client,
        kind: FollowedKind,
        apply: Apply,
        chance: random.Random,
        clock: Clock,
        *,
        namespace: str = "",
        query: Mapping[str, str] | None = None,
    ) -> None:
        """Make a reflector, of all namespaces if `namespace` is empty. `query` has the selectors."""
        self.kind = kind
        self.store = Store()
        self.synced = False
        self._resources: Sequence[Resource] = resources_of(kind)
        self.resource = self._resources[0]
        self._client, self._apply, self._chance, self._clock = client, apply, chance, clock
        self._namespace = namespace
        self._query = {"fieldSelector": UNFINISHED_PODS} if kind is Pod else dict(query or {})
        self._unreadable: dict[str, str] = {}
        self._lists = 0
        self._last_error = ""
        self._stream: Stream | None = None
        self._stopping = StopSignal(clock)
        self._thread = threading.Thread(
            target=self._run, name=f"reflector-{self.resource.plural}", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop soon. A change that is being applied is completed."""
        self._stopping.set()
        if (stream := self._stream) is not None:
            stream.close()

    def join(self, timeout: float) -> None:
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def status(self) -> KindStatus:
        """The state of the reflector. The lock of `apply` must be held."""
        return KindStatus(
            str(self.resource),
            self.synced,
            len(self.store),
            len(self._unreadable),
            self._lists,
            self._last_error,
        )

    # --- the loop ---

    def _run(self) -> None:
        backoff = Backoff(self._chance, self._clock)
        version = ""
        while not self._stopping.is_set:
            try:
                if not version:
                    version = self._list()
                # A failed watch keeps the version, so that the next one continues there. Only ExpiredError leads to a
                # new list.
                version, well = self._watch(version)
                pause = 0.0 if well else backoff.next()
            except MissingObjectError as error:
                version, pause = "", self._not_served(error)
            except ExpiredError as error:
                # If many objects change, a listed version may already be too old.
                _LOG.info("%s: list anew: %s", self.resource, error)
                version, pause = "", backoff.next()
            except Exception as error:
                # Catch every error and retry: otherwise this kind would stop being updated.
                pause = backoff.next()
                self._report(error)
            if pause:
                self._stopping.wait(pause)

    def _report(self, error: Exception) -> None:
        if self._stopping.is_set:
            return
        known = isinstance(error, KschedfwError)
        self._last_error = printable(str(error), _LONGEST_TOLD)
        _LOG.warning("%s: %s", self.resource, self._last_error, exc_info=None if known else error)

    def _not_served(self, error: MissingObjectError) -> float:
        """Return the seconds to wait before the kind, or its next version, is requested again."""
        position = self._resources.index(self.resource) + 1
        self.resource = self._resources[position % len(self._resources)]
        if position < len(self._resources):
            return 0.0
        self._last_error = "the API server doesn't have this kind"
        if not self.synced:
            _LOG.info("%s: %s", self.resource, error)
        # An unknown kind counts as synced without objects. Otherwise the scheduler would wait for it for ever.
        self._fill((), {})
        return _NOT_SERVED_SECONDS

    # --- list ---

    def _list(self) -> str:
        """Put all objects into the store. Return the resource version of the list."""
        objects: list[Named] = []
        unreadable: dict[str, str] = {}
        version = ""
        for page in self._client.pages(self.resource.collection(self._namespace), self._query):
            version = page.resource_version
            try:
                read = [self._read(text, unreadable) for text in page.items or ()]
            except UNREADABLE as error:
                raise UnavailableError(f"{self.resource}: an object can't be read: {error}") from None
            objects += [obj for obj in read if obj is not None]
            if self._stopping.is_set:
                # A list of many pages must not delay the end of the process. `_report` tells nobody while stopping.
                raise UnavailableError("stopped")
        if not version:
            raise UnavailableError(f"{self.resource}: the list has no resourceVersion")
        self._fill(objects, unreadable, lists=1)
        return version

    def _fill(self, objects: Sequence[Named], unreadable: dict[str, str], *, lists: int = 0) -> None:
        def changes(store: Store) -> Iterator[WatchEvent]:
            self._unreadable = unreadable
            self._lists += lists
            yield from store.replace(objects, unreadable)
            # After the events: whoever waits for the sync finds them queued.
            self.synced = True

        self._apply(changes)

    def _read(self, text: msgspec.Raw, unreadable: dict[str, str]) -> Named | None:
        """Return the object of this JSON. If a field has the wrong type, note it as unreadable and return None.

        Raises `UNREADABLE` if it isn't the JSON of an object.
        """
        try:
            obj = read_json(text, self.resource)
        except ManifestError as error:
            key, problem = key_of(content_of(text)), printable(str(error), _LONGEST_TOLD)
            if self._unreadable.get(key) != problem:
                _LOG.error("%s %s can't be read, and is passed over: %s", self.resource, key, problem)
            unreadable[key] = problem
            return None
        if unreadable:
            unreadable.pop(obj.key, None)
        return obj

    # --- watch ---

    def _watch(self, version: str) -> tuple[str, bool]:
        """Apply changes since the version until the watch ends.

        Return the last version, and whether the watch ended regularly.

        Raises:
            ExpiredError: the version is too old; the objects have to be listed again.
            Exception: the errors of `Client.watch`. The watch may be resumed after the last change received.
        """
        seconds = _WATCH_SECONDS * (1 + 0.5 * self._chance.random())
        query = {
            **self._query,
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(int(seconds)),
        }
        stream = self._client.watch(self.resource.collection(self._namespace), query)
        # Set before the check: if `stop` comes too early to see the stream, the check below sees the signal.
        self._stream = stream
        told, begun = False, self._clock.monotonic()
        try:
            if self._stopping.is_set:
                return version, True
            self._last_error = ""
            read = -math.inf
            for lines in _lines(stream, self._client.limits.event):
                told = True
                # If a line is an error, the version stays that of the batch before. The next watch repeats changes,
                # which `Store` recognises.
                version = self._take(lines) or version
                now = self._clock.monotonic()
                if self.kind is Pod and now - read < _LINGER:
                    self._stopping.wait(_LINGER)
                read = self._clock.monotonic()
        except UnavailableError as error:
            # The changes before the error are applied; the next watch continues after them.
            self._report(error)
        finally:
            self._stream = None
            stream.close()
        return version, told or self._clock.monotonic() - begun >= _SHORT_WATCH

    def _take(self, lines: Sequence[bytes]) -> str:
        """Put changes into the store. Return the version of the last one.

        Changes before an error are stored.
        """
        changes: list[Changes] = []
        version = ""
        try:
            for line in lines:
                try:
                    version = self._note(decode_line(line), changes) or version
                except UNREADABLE as error:
                    raise UnavailableError(f"{self.resource}: a change can't be read: {error}") from None
        finally:
            if changes and not self._stopping.is_set:
                # All changes that have arrived together are applied under one lock, and delivered once.
                self._apply(lambda store: (event for change in changes for event in change(store)))
        return version

    def _note(self, line: WatchLine, changes: list[Changes]) -> str:
        """Append what a line changes in the store. Return the version after it.

        Raises:
            Exception: the line is an error of the server.
        """
        if line.type == "ERROR":
            raise self._error(content_of(line.object))
        is_deleted = line.type == EventType.DELETED
        obj = None if line.type == "BOOKMARK" else self._read(line.object, self._unreadable)
        if obj is not None:
            changes.append(lambda store: store.remove(obj.key, obj) if is_deleted else store.put(obj))
            return obj.metadata.resource_version
        # A bookmark, which has nothing but a version, or an object that can't be read, whose last state is kept.
        content = content_of(line.object)
        if is_deleted:
            key = key_of(content)
            self._unreadable.pop(key, None)
            changes.append(lambda store: store.remove(key))
        return version_of(content)

    def _error(self, status: Content) -> Exception:
        code = status.get("code")
        return api_error(
            f"watch {self.resource}",
            code if isinstance(code, int) else 500,
            str(status.get("reason") or ""),
            str(status.get("message") or ""),
        )


def _lines(stream: Stream, longest: int) -> Iterator[list[bytes]]:
    """Yield lists of all complete lines that have arrived. Raises UnavailableError if a line is too long."""
    pending: list[bytes] = []
    size = 0
    for chunk in stream.chunks():
        *complete, rest = chunk.split(b"\n")
        if complete:
            complete[0] = b"".join((*pending, complete[0]))
            pending, size = [], 0
            if lines := [line for line in complete if line]:
                yield lines
        if rest:
            pending.append(rest)
            size += len(rest)
            if size > longest:
                raise UnavailableError(f"a change has more than {longest} bytes")
