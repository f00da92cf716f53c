"""Pods that have a node but aren't bound yet: those held by permit plugins, and those in pre_bind.

All profiles of a scheduler share both collections, so that a preemption finds its victims wherever they are.
Semantics: kube-scheduler v1.36 `waitingPodsMap` and `podsInPreBindMap`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, Protocol, TypeAlias, TypeVar

from kschedfw.api.pod import Pod
from kschedfw.api.records import frozen
from kschedfw.framework.clock import Clock, format_duration
from kschedfw.framework.status import Status

# kube-scheduler's `maxTimeout`.
MAX_PERMIT_TIMEOUT = 15 * 60.0
"""The longest wait in seconds that a permit plugin can ask for."""


@frozen
class WaitState:
    """The state of a wait for permission, for `WaitingPods.restore`."""

    status: Status | None
    deadlines: Mapping[str, float]
    when_settled: Sequence[Callable[[], None]]


class WaitingPod:
    """A pod and the permit plugins that still hold it, each with its own deadline. Thread-safe."""

    def __init__(
        self, pod: Pod, timeouts: Mapping[str, float], clock: Clock, reasons: Sequence[str] = ()
    ) -> None:
        self.pod = pod
        self.reasons = tuple(reasons)
        """The plugins' reasons for the wait."""
        self._clock = clock
        self._changed = threading.Condition()
        self.started = clock.monotonic()
        """The start of the wait, in seconds on the clock's monotonic scale."""
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
        """The first plugin's deadline, in seconds since the epoch; None once the wait has ended."""
        with self._changed:
            return min(self._deadlines.values(), default=None)

    def on_settled(self, callback: Callable[[], None]) -> None:
        """Call back once the wait has ended, on the thread that ends it; at once if it has ended already."""
        with self._changed:
            if self._status is None:
                self._when_settled.append(callback)
                return
        callback()

    def save(self) -> WaitState:
        """Return the state of the wait, for `restore`."""
        with self._changed:
            return WaitState(self._status, dict(self._deadlines), tuple(self._when_settled))

    def restore(self, state: WaitState) -> None:
        """Go back to an earlier state, even if the wait has ended since. No callback is called."""
        with self._changed:
            self._status = state.status
            self._deadlines = dict(state.deadlines)
            self._when_settled = list(state.when_settled)

    def allow(self, plugin: str) -> None:
        """Allow the pod for a plugin. The wait ends when every plugin that asked to wait has allowed it."""
        with self._changed:
            self._deadlines.pop(plugin, None)
            if not self._deadlines:
                # After a rejection this changes nothing: the first status is kept.
                self._settle(Status.success())
        self._call_back()

    def reject(self, plugin: str, message: str) -> bool:
        """End the wait with a rejection; return False if the pod was allowed before."""
        return self._refuse(Status.unschedulable(message).with_plugin(plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        """End the wait because a preemption needs the room; return False if the pod was allowed before.

        A preemption is no verdict on the pod: the pod comes back after its backoff, as after an error.
        """
        return self._refuse(Status.from_error(message).with_plugin(plugin))

    def _refuse(self, status: Status) -> bool:
        with self._changed:
            self._settle(status)
            refused = self._status is not None and not self._status.is_success
        self._call_back()
        return refused

    def poll(self) -> Status | None:
        """Return the status that ended the wait; None while the pod waits. Checks the timeouts, never blocks."""
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
        # The earliest deadline first: its plugin is the one that the message names, and `_settle` keeps the
        # first status.
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
        """Call the callbacks outside of the lock, since they may do anything."""
        with self._changed:
            if self._status is None:
                return
            callbacks, self._when_settled = self._when_settled, []
        for callback in callbacks:
            callback()


class _Held(Protocol):
    @property
    def pod(self) -> Pod: ...


HeldT = TypeVar("HeldT", bound=_Held)


class PodsByUid(Generic[HeldT]):
    """Pods in one stage of their binding, by uid. Thread-safe."""

    def __init__(self) -> None:
        self._pods: dict[str, HeldT] = {}
        self._lock = threading.Lock()

    def add(self, held: HeldT) -> None:
        with self._lock:
            self._pods[held.pod.uid] = held

    def remove(self, uid: str) -> None:
        with self._lock:
            self._pods.pop(uid, None)

    def get(self, uid: str) -> HeldT | None:
        with self._lock:
            return self._pods.get(uid)

    def __iter__(self) -> Iterator[HeldT]:
        """Iterate over the pods at this moment, in the order in which they were added."""
        with self._lock:
            return iter(tuple(self._pods.values()))

    def __len__(self) -> int:
        with self._lock:
            return len(self._pods)


Waits: TypeAlias = tuple[tuple[WaitingPod, WaitState], ...]
"""Waiting pods, and how far their waits had come."""


class WaitingPods(PodsByUid[WaitingPod]):
    """All waiting pods of a scheduler. Thread-safe."""

    def reject(self, uid: str) -> bool:
        """Reject a pod because it is deleted; return False if it doesn't wait."""
        waiting = self.get(uid)
        return waiting is not None and waiting.reject("", "removed")

    def save(self) -> Waits:
        """Return all waiting pods with the states of their waits."""
        return tuple((waiting, waiting.save()) for waiting in self)

    def restore(self, waits: Waits) -> None:
        """Restore exactly the waits that were under way when `save` returned `waits`."""
        for waiting, state in waits:
            waiting.restore(state)
        with self._lock:
            self._pods = {waiting.pod.uid: waiting for waiting, _ in waits}


class PodInPreBind:
    """A pod whose binding cycle has begun, and which isn't being bound yet. Thread-safe.

    A preemption that needs its room cancels it: the pod isn't bound, its reservations are undone, and it comes
    back to the queue. A pre_bind that takes long should read `cancelled` from time to time, and end early.
    """

    def __init__(self, pod: Pod, on_cancelled: Callable[[str], None] | None = None) -> None:
        """Make a pod in pre_bind. `on_cancelled` is called with the first message, on the thread that cancels."""
        self.pod = pod
        self._on_cancelled = on_cancelled
        self._lock = threading.Lock()
        self._cancelled: str | None = None
        self._finished = False

    @property
    def cancelled(self) -> str | None:
        """The reason for the cancellation; None if the binding isn't cancelled."""
        return self._cancelled

    def cancel(self, message: str) -> bool:
        """Cancel the binding; return False if it is too late. The first message is kept."""
        with self._lock:
            if self._finished:
                return False
            if self._cancelled is not None:
                return True
            self._cancelled = message
        if self._on_cancelled is not None:
            # Outside of the lock, since it may do anything.
            self._on_cancelled(message)
        return True

    def finish(self) -> str | None:
        """Make it too late to cancel. Return the message if the binding is cancelled already."""
        with self._lock:
            if self._cancelled is None:
                self._finished = True
            return self._cancelled


class PodsInPreBind(PodsByUid[PodInPreBind]):
    """All pods of a scheduler whose binding cycle has begun, until `bind`. Thread-safe."""
