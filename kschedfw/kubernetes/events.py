"""Tells users what happened: events.k8s.io/v1 events, sent in the background (client-go `tools/events`).

The same event again becomes a series: its second occurrence is written at once, and from then on the count when the
series has ended, or every half hour.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import socket
import threading
from collections import OrderedDict
from typing import Final

import attrs

from kschedfw.api.custom import CustomObject, CustomResource
from kschedfw.api.field_errors import printable
from kschedfw.api.kinds import KIND_OF
from kschedfw.api.meta import DEFAULT_NAMESPACE, Named
from kschedfw.api.pod import Pod
from kschedfw.cluster.errors import AlreadyExistsError, ClusterError, NotFoundError
from kschedfw.framework.clock import Clock
from kschedfw.kubernetes.client import MERGE_PATCH, Client, micro_time
from kschedfw.kubernetes.decoding import Content
from kschedfw.kubernetes.errors import FencedError
from kschedfw.kubernetes.resources import Resource

_LOG = logging.getLogger(__name__)

EVENTS: Final = Resource("Event", "events.k8s.io/v1", "events")

_ACTIONS: Final = {"Scheduled": "Binding", "FailedScheduling": "Scheduling", "Preempted": "Preempting"}
"""What kube-scheduler was doing, by the reason of its event; other reasons stand for themselves."""
_LONGEST_NOTE: Final = 1024
_LONGEST_NAME: Final = 128
_DEFAULT_CONTROLLER: Final = "default-scheduler"
_QUEUED: Final = 10_000
_REMEMBERED: Final = 4096
_SENDERS: Final = 4
_SERIES_ENDS: Final = 360.0
"""Seconds without the event, after which its series has ended."""
_SERIES_TOLD: Final = 1800.0
"""Seconds after which the count of a series that goes on is told."""
_SWEEP_SECONDS: Final = 30.0


@attrs.define(eq=False)
class _Told:
    """An event, and how many times it was recorded. Guarded by the recorder's lock."""

    content: Content
    last: float
    count: int = 1
    told_count: int = 0
    told_at: float = 0.0
    sending: bool = False

    @property
    def path(self) -> str:
        metadata = self.content["metadata"]
        return EVENTS.path(metadata["namespace"], metadata["name"])

    @property
    def is_due(self) -> bool:
        """The first and the second occurrence are told at once."""
        return self.told_count < min(self.count, 2)


_Key = tuple[str, str, str, str, str]


class EventRecorder:
    """Takes events from any thread, never blocks and never raises, from `start` to `close`.

    Where the server can't keep up, or refuses an event, it is dropped; the log says how many.
    """

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._told: OrderedDict[_Key, _Told] = OrderedDict()
        self._lock = threading.Lock()
        self._queue: queue.Queue[_Told | None] = queue.Queue(_QUEUED)
        self._dropped = 0
        self._swept = clock.monotonic()
        self._host = printable(socket.gethostname(), 60)
        self._threads = [
            threading.Thread(target=self._run, name=f"events-{number}", daemon=True)
            for number in range(_SENDERS)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def record(self, regarding: Named, type: str, reason: str, message: str) -> None:
        """Have an event sent."""
        try:
            self._record(regarding, type, reason, printable(message, _LONGEST_NOTE))
        except Exception:  # whatever it is, it isn't worth a decision
            _LOG.exception("can't record the event %s of %s", reason, regarding.key)

    def close(self, timeout: float) -> None:
        """Send what is left for at most so many seconds, then close the client."""
        deadline = self._clock.monotonic() + timeout
        with self._lock:
            for told in self._told.values():
                if told.told_count < told.count and not told.sending:
                    self._send_later(told)
        alive = [thread for thread in self._threads if thread.is_alive()]
        for _ in alive:
            try:
                self._queue.put(None, timeout=max(0.0, deadline - self._clock.monotonic()))
            except queue.Full:
                break
        for thread in alive:
            thread.join(max(0.0, deadline - self._clock.monotonic()))
        self._client.close()
        if left := self._queue.qsize() + self._dropped:
            _LOG.warning("%d events were not sent", left)

    def _record(self, regarding: Named, type: str, reason: str, note: str) -> None:
        now = self._clock.monotonic()
        key = (regarding.uid, regarding.key, type, reason, note)
        with self._lock:
            told = self._told.get(key)
            if told is None or now - told.last > _SERIES_ENDS:
                told = self._told[key] = _Told(self._content(regarding, type, reason, note), now)
            else:
                told.count += 1
                told.last = now
            self._told.move_to_end(key)
            if told.is_due and not told.sending:
                self._send_later(told)
            self._sweep(now)

    def _sweep(self, now: float) -> None:
        """Have the counts of series told that have ended, or went on for long, and forget what nobody records."""
        if now - self._swept < _SWEEP_SECONDS and len(self._told) <= _REMEMBERED:
            return
        self._swept = now
        surplus = len(self._told) - _REMEMBERED * 3 // 4 if len(self._told) > _REMEMBERED else 0
        ended = []
        for position, (key, told) in enumerate(self._told.items()):
            is_over = position < surplus or now - told.last > _SERIES_ENDS
            if is_over:
                ended.append(key)
            is_due = is_over or now - told.told_at > _SERIES_TOLD
            if is_due and told.told_count < told.count and not told.sending:
                self._send_later(told)
        for key in ended:
            del self._told[key]

    def _send_later(self, told: _Told) -> None:
        """Queue it; with the lock held."""
        try:
            self._queue.put_nowait(told)
        except queue.Full:
            if not self._dropped:
                _LOG.warning("events come faster than the API server takes them; some are dropped")
            self._dropped += 1
        else:
            told.sending = True

    def _run(self) -> None:
        while (told := self._queue.get()) is not None:
            with self._lock:
                count = told.count
                content = self._with_series(told, count)
                is_new = not told.told_count
            try:
                self._send(told.path, content, is_new=is_new)
            except FencedError:
                pass  # whoever is the leader now has its own to tell
            except Exception as error:
                known = isinstance(error, ClusterError)
                _LOG.warning("an event is dropped: %s", error, exc_info=None if known else error)
            with self._lock:
                told.sending = False
                told.told_count, told.told_at = count, self._clock.monotonic()
                if told.is_due:
                    self._send_later(told)

    def _send(self, path: str, content: Content, *, is_new: bool) -> None:
        if not is_new:
            try:
                self._client.write("PATCH", path, {"series": content["series"]}, content_type=MERGE_PATCH)
                return
            except NotFoundError:
                pass  # it was too old
        with contextlib.suppress(AlreadyExistsError):  # an answer got lost
            self._client.write("POST", EVENTS.collection(content["metadata"]["namespace"]), content)

    def _with_series(self, told: _Told, count: int) -> Content:
        if count == 1:
            return told.content
        seen = self._clock.now() - (self._clock.monotonic() - told.last)
        return {**told.content, "series": {"count": count, "lastObservedTime": micro_time(seen)}}

    def _content(self, regarding: Named, type: str, reason: str, note: str) -> Content:
        now = self._clock.now()
        controller = _DEFAULT_CONTROLLER
        if isinstance(regarding, Pod):
            controller = regarding.spec.scheduler_name or controller
        namespace = regarding.namespace or DEFAULT_NAMESPACE
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": f"{regarding.name}.{int(now * 1e9):x}", "namespace": namespace},
            "eventTime": micro_time(now),
            "reportingController": controller,
            "reportingInstance": f"{controller}-{self._host}"[:_LONGEST_NAME],
            "action": _ACTIONS.get(reason, reason)[:_LONGEST_NAME],
            "reason": reason[:_LONGEST_NAME],
            "regarding": _reference(regarding),
            "note": note,
            "type": type,
        }


def _reference(obj: Named) -> Content:
    if isinstance(obj, CustomObject | CustomResource):
        kind, version = obj.kind.name, obj.kind.api_version
    else:
        kind, version = KIND_OF[type(obj)].name, KIND_OF[type(obj)].api_version
    reference = {
        "kind": kind,
        "apiVersion": version,
        "namespace": obj.namespace,
        "name": obj.name,
        "uid": obj.uid,
        "resourceVersion": obj.metadata.resource_version,
    }
    return {key: value for key, value in reference.items() if value}
