"""A reflector of one kind's objects: lists them, then watches from the list's version on (client-go `Reflector`)."""

from __future__ import annotations

import logging
import math
import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import attrs

from kschedfw import Clock, KschedfwError, Pod
from kschedfw.api import ManifestError, Named
from kschedfw.api.reading import printable
from kschedfw.cluster import EventType, WatchEvent
from kschedfw_kubernetes.cluster.client import Client
from kschedfw_kubernetes.cluster.decoding import (
    UNREADABLE,
    Content,
    WatchLine,
    decode_line,
    key_of,
    read,
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
_LINGER: Final = 0.01
"""The least seconds between two reads of the watch of pods.

On a busy cluster several changes come in this time, and are read, delivered and scheduled together: waking three
threads for each took longer than all that is done with it. A change that comes after a rest is read at once. Other
kinds change less often, and plugins look for what they have just written.
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
            for content in page.items or ():
                obj = self._read(content, unreadable)
                if obj is not None:
                    objects.append(obj)
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

    def _read(self, content: Content, unreadable: dict[str, str]) -> Named | None:
        key = key_of(content)
        try:
            obj = read(content, self.resource)
        except ManifestError as error:
            problem = printable(str(error), _LONGEST_TOLD)
            if self._unreadable.get(key) != problem:
                _LOG.error("%s %s can't be read, and is passed over: %s", self.resource, key, problem)
            unreadable[key] = problem
            return None
        unreadable.pop(key, None)
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
        changes: list[Callable[[Store], Iterator[WatchEvent]]] = []
        version = ""
        try:
            for line in lines:
                try:
                    decoded = decode_line(line)
                except UNREADABLE as error:
                    raise UnavailableError(f"{self.resource}: a change can't be read: {error}") from None
                if decoded.type == "ERROR":
                    raise self._error(decoded.object)
                if decoded.type != "BOOKMARK":
                    changes.append(self._change(decoded))
                version = version_of(decoded.object) or version
        finally:
            if changes and not self._stopping.is_set:
                # All changes that have arrived together are applied under one lock, and delivered once.
                self._apply(lambda store: (event for change in changes for event in change(store)))
        return version

    def _change(self, line: WatchLine) -> Callable[[Store], Iterator[WatchEvent]]:
        key = key_of(line.object)
        obj = self._read(line.object, self._unreadable)
        if line.type == EventType.DELETED:
            self._unreadable.pop(key, None)
            return lambda store: store.remove(key if obj is None else obj.key, obj)
        if obj is None:
            # Keep the object's previous state, since the new one can't be parsed.
            return lambda _store: iter(())
        return lambda store: store.put(obj)

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
