"""Pods that permit plugins hold back until they are allowed, rejected or timed out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping

from kschedfw.api.pod import Pod
from kschedfw.framework.clock import Clock, format_duration
from kschedfw.framework.status import Status

MAX_PERMIT_TIMEOUT = 15 * 60.0
"""The longest wait in seconds that a permit plugin can ask for."""


class WaitingPod:
    """A pod and the permit plugins that still hold it, each with its own deadline. Thread-safe."""

    def __init__(self, pod: Pod, timeouts: Mapping[str, float], clock: Clock) -> None:
        self.pod = pod
        self._clock = clock
        self._changed = threading.Condition()
        self.started = clock.monotonic()
        """When the wait began, on the clock's monotonic scale."""
        self._status: Status | None = None
        self._when_settled: list[Callable[[], None]] = []
        now = clock.now()
        self._timeouts = {plugin: min(timeout, MAX_PERMIT_TIMEOUT) for plugin, timeout in timeouts.items()}
        self._deadlines = {plugin: now + timeout for plugin, timeout in self._timeouts.items()}

    @property
    def pending_plugins(self) -> tuple[str, ...]:
        """The plugins that still hold the pod."""
        with self._changed:
            return tuple(self._deadlines)

    @property
    def deadline(self) -> float | None:
        """When the first of the waits ends; None once the pod's fate is settled."""
        with self._changed:
            return min(self._deadlines.values(), default=None)

    def on_settled(self, callback: Callable[[], None]) -> None:
        """Call back once, on whatever thread settles the pod's fate; at once if it is settled."""
        with self._changed:
            if self._status is None:
                self._when_settled.append(callback)
                return
        callback()

    def allow(self, plugin: str) -> None:
        """Take back the plugin's hold; the pod goes on when the last one is gone."""
        with self._changed:
            self._deadlines.pop(plugin, None)
            if not self._deadlines:
                self._settle(Status.success())
        self._call_back()

    def reject(self, plugin: str, message: str) -> None:
        """Refuse the pod for good. Nothing happens if its fate is settled already."""
        with self._changed:
            self._settle(Status.unschedulable(message).with_plugin(plugin))
        self._call_back()

    def poll(self) -> Status | None:
        """The pod's fate, or None while it still waits; notices timeouts. Never blocks."""
        with self._changed:
            self._expire()
        self._call_back()
        return self._status

    def wait(self) -> Status:
        """Block until the pod is allowed (success), rejected or timed out (UNSCHEDULABLE)."""
        with self._changed:
            self._expire()
            while self._status is None:
                self._clock.wait_until(self._changed, min(self._deadlines.values()))
                self._expire()
            status = self._status
        self._call_back()
        return status

    def _expire(self) -> None:
        now = self._clock.now()
        for plugin, deadline in sorted(self._deadlines.items(), key=lambda item: item[1]):
            if deadline <= now:
                waited = format_duration(self._timeouts[plugin])
                self._settle(
                    Status.unschedulable(
                        f"rejected due to timeout after waiting {waited} at plugin {plugin}"
                    ).with_plugin(plugin)
                )

    def _settle(self, status: Status) -> None:
        if self._status is None:
            self._status = status
            self._deadlines.clear()
            self._changed.notify_all()

    def _call_back(self) -> None:
        """Tell those who asked that the fate is settled, without the lock, for they may do anything."""
        with self._changed:
            if self._status is None:
                return
            callbacks, self._when_settled = self._when_settled, []
        for callback in callbacks:
            callback()


class WaitingPods:
    """All waiting pods of a profile, by uid. Thread-safe."""

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}
        self._lock = threading.Lock()

    def add(self, waiting: WaitingPod) -> None:
        with self._lock:
            self._pods[waiting.pod.uid] = waiting

    def remove(self, uid: str) -> None:
        with self._lock:
            self._pods.pop(uid, None)

    def get(self, uid: str) -> WaitingPod | None:
        with self._lock:
            return self._pods.get(uid)

    def __iter__(self) -> Iterator[WaitingPod]:
        """The pods waiting at this moment, in the order in which they began to."""
        with self._lock:
            return iter(tuple(self._pods.values()))

    def __len__(self) -> int:
        with self._lock:
            return len(self._pods)

    def reject(self, uid: str) -> bool:
        """Reject a pod because it is gone; False where it isn't waiting."""
        waiting = self.get(uid)
        if waiting is None:
            return False
        waiting.reject("", "removed")
        return True
