"""A reflector of one kind's objects: lists them, then watches from the list's version on (client-go `Reflector`)."""

from __future__ import annotations

import logging
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
from kschedfw_kubernetes.cluster.client import Client, pause_after
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
from kschedfw_kubernetes.cluster.errors import (
    ApiError,
    ExpiredError,
    MissingObjectError,
    UnavailableError,
    api_error,
)
from kschedfw_kubernetes.cluster.resources import UNFINISHED_PODS, FollowedKind, Resource, resources_of
from kschedfw_kubernetes.cluster.stopping import Backoff, StopSignal
from kschedfw_kubernetes.cluster.store import Store
from kschedfw_kubernetes.cluster.transport import Stream
from kschedfw_kubernetes.cluster.watches import Watches

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
_TOO_LARGE: Final = "Too large resource version"
"""Part of the message of an API server that hasn't reached the version. It has no reason of its own."""

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
    """Keeps a store up to date with the API server, from `start` to `stop`.

    A thread lists the objects, begins a watch, and ends. `watches` reads that, and at its end another thread begins the
    next one. So a server that is slow with one kind doesn't hold up the others.

    Attributes:
        kind: the kind of the objects.
        store: the objects. Only `apply` changes it.
        resource: the resource in the API version that the server has.
        synced: whether the objects have been listed once.
        lingers: see `Watch`. Other kinds than pods change less often, and plugins look for what they have just written.
    """

    def __init__(
        self,
        client: Client,
        kind: FollowedKind,
        apply: Apply,
        chance: random.Random,
        clock: Clock,
        watches: Watches,
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
        self._watches = watches
        self.lingers = kind is Pod
        self._namespace = namespace
        self._query = {"fieldSelector": UNFINISHED_PODS} if kind is Pod else dict(query or {})
        self._unreadable: dict[str, str] = {}
        self._lists = 0
        self._last_error = ""
        self._version = ""
        """The version after which the next watch begins; empty if a list has to come first."""
        self._backoff = Backoff(chance, clock)
        self._lines: _Lines | None = None
        """The watch that is read."""
        self._pause = 0.0
        """Seconds to wait before the next watch."""
        self._stopping = StopSignal(clock)
        self._thread: threading.Thread | None = None
        """The thread that lists, or begins a watch."""
        self._ended = threading.Event()
        self._ended.set()

    def start(self) -> None:
        self._ended.clear()
        self._go_on()

    def stop(self) -> None:
        """Stop soon. A change that is being applied is completed."""
        self._stopping.set()
        if (lines := self._lines) is not None:
            lines.stream.shut_down()

    def join(self, timeout: float) -> None:
        """Wait until the end, unless a handler of changes calls this."""
        if not (self._watches.is_this_thread or self._thread is threading.current_thread()):
            self._ended.wait(timeout)

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

    def _go_on(self) -> None:
        name = f"reflector-{self.resource.plural}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        """List the objects if need be, and begin a watch. Repeat this until a watch has begun."""
        while not (self._stopping.is_set or (self._pause and self._stopping.wait(self._pause))):
            try:
                if not self._version:
                    self._version = self._list()
                self._begin_watch()
            except Exception as error:
                self._pause = self._pause_after(error)
            else:
                return
        self._ended.set()

    def _pause_after(self, error: Exception) -> float:
        """Return the seconds to wait after an error."""
        if isinstance(error, MissingObjectError):
            self._version = ""
            return self._not_served(error)
        if isinstance(error, ExpiredError) or _TOO_LARGE in str(error):
            # If many objects change, a listed version may already be too old. It is too large if the server's storage
            # was restored from a backup, or for a replica that lags behind the one that answered before.
            _LOG.info("%s: list anew: %s", self.resource, error)
            self._version = ""
        else:
            # Catch every error and retry: otherwise this kind would stop being updated. The version stays, so that the
            # next watch continues there.
            self._report(error)
        # The server's own pause comes first: a busy one asks for 1 s each time, while ours would grow to a minute.
        wanted = pause_after(error, self._backoff) if isinstance(error, ApiError) else None
        return wanted or self._backoff.next()

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

    def _begin_watch(self) -> None:
        """Begin to watch changes since the version. Raises the errors of `Client.watch`."""
        seconds = _WATCH_SECONDS * (1 + 0.5 * self._chance.random())
        query = {
            **self._query,
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(int(seconds)),
        }
        stream = self._client.watch(self.resource.collection(self._namespace), query)
        self._last_error = ""
        # Set before the check in `read`: if `stop` comes too early to see the stream, `read` sees the signal.
        self._lines = _Lines(stream, self._client.limits.event, self._clock.monotonic())
        # Lines that came with the response's head were read from the socket already: a selector won't report them.
        if self.read():
            self._watches.add(self)
        else:
            self.end()

    @property
    def stream(self) -> Stream:
        assert self._lines is not None
        return self._lines.stream

    def read(self) -> bool:
        """Apply the changes that have arrived. Return False at the end of the watch."""
        lines = self._lines
        assert lines is not None
        try:
            try:
                # If a line is an error, the version stays that of the batch before. The next watch repeats changes,
                # which `Store` recognises.
                self._version = self._take(lines.arrived()) or self._version
            except UnavailableError as error:
                # The changes before the error are applied; the next watch continues after them.
                self._report(error)
                lines.has_ended = True
            if not (lines.has_ended or self._stopping.is_set):
                return True
            lasted = self._clock.monotonic() - lines.begun
            self._pause = 0.0 if lines.told or lasted >= _SHORT_WATCH else self._backoff.next()
        except Exception as error:
            self._pause = self._pause_after(error)
        return False

    def end(self) -> None:
        """Close the watch, and begin another one unless this is the end."""
        self.stream.close()
        if self._stopping.is_set:
            self._ended.set()
        else:
            self._go_on()

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


class _Lines:
    """The lines of a watch.

    Attributes:
        begun: the time at which the watch began, in seconds.
        told: whether a line has come.
        has_ended: whether there will be no more.
    """

    def __init__(self, stream: Stream, longest: int, begun: float) -> None:
        self.stream, self.begun = stream, begun
        self.told = self.has_ended = False
        self._longest = longest
        self._pending: list[bytes] = []
        self._size = 0

    def arrived(self) -> Sequence[bytes]:
        """Return the complete lines that have arrived.

        Raises:
            UnavailableError: a line is too long, or the errors of `Stream.arrived`.
        """
        chunk = self.stream.arrived()
        if chunk is None:
            return ()
        self.has_ended = not chunk or self.stream.has_ended
        *complete, rest = chunk.split(b"\n")
        if complete:
            complete[0] = b"".join((*self._pending, complete[0]))
            self._pending, self._size = [], 0
        self._pending.append(rest)
        self._size += len(rest)
        if self._size > self._longest and not complete:
            raise UnavailableError(f"a change has more than {self._longest} bytes")
        lines = [line for line in complete if line]
        self.told = self.told or bool(lines)
        return lines
