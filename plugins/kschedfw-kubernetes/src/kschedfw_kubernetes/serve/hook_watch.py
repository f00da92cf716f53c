"""Reports hooks that take too long."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Final

import attrs

from kschedfw import Clock, KschedfwError, format_duration

_log = logging.getLogger(__name__)

_WAITS_ANYWAY: Final = frozenset({"pre_bind"})
"""Hooks that may take minutes, for example until a volume is provisioned."""
_BELONGS_TO_NO_ATTEMPT: Final = frozenset(
    {"queue_sort", "pre_enqueue", "hint", "pre_hint", "events_to_register"}
)
_HAS_LASTING_EFFECTS: Final = frozenset({"post_filter", "unreserve", "bind", "post_bind"})
"""Hooks whose effects remain, for example a bound pod or a deleted victim. Their late answers can't be discarded."""
_CHECKS_IN_A_TIMEOUT: Final = 4
_SHORTEST_PAUSE: Final = 0.01
_DEEPEST_STACK: Final = 30
"""The number of logged frames of a hook's stack, the innermost ones."""


class HookTimeoutError(KschedfwError, TimeoutError):
    """A hook took longer than `hookTimeout`, and `failOnHookTimeout` makes this fail the attempt."""


@attrs.define(eq=False)
class _Call:
    """A call of a hook that hasn't returned. `started` is on the clock's monotonic scale, in seconds."""

    plugin: str
    hook: str
    started: float
    is_reported: bool = False


class HookWatch:
    """Reports hooks that run longer than `timeout` seconds, with their stack. Thread-safe.

    `guard` is for a registry. `check` examines the hooks that run now; `start` calls it regularly on a thread. With
    `fail`, a hook of a scheduling cycle that returns too late raises a HookTimeoutError. It can't be ended earlier,
    since Python can't interrupt a thread.
    """

    def __init__(self, clock: Clock, timeout: float, *, fail: bool = False) -> None:
        self._now = clock.monotonic
        self._timeout = timeout
        self._fail = fail
        self._running: dict[int, list[_Call]] = {}
        """The current calls by thread, the outermost first."""
        self._ended = threading.Event()

    def guard(self, hook: str, plugin: str, function: Callable[..., object]) -> Callable[..., object]:
        """Return the function, wrapped such that its calls are watched."""
        if hook in _WAITS_ANYWAY:
            return function
        fails = self._fail and hook not in _HAS_LASTING_EFFECTS | _BELONGS_TO_NO_ATTEMPT
        now, running, thread = self._now, self._running, threading.get_ident

        def guarded(*arguments: object) -> object:
            # No lock: each thread changes only its own list, and `check` reads copies.
            calls = running.setdefault(thread(), [])
            call = _Call(plugin, hook, now())
            calls.append(call)
            try:
                answer = function(*arguments)
            finally:
                calls.pop()
                if not calls:
                    # Threads end, and their numbers are used again.
                    del running[thread()]
                seconds = now() - call.started
                if seconds > self._timeout:
                    self._report_late(call, seconds)
            if fails and seconds > self._timeout:
                raise HookTimeoutError(
                    f"{hook} took {_told(seconds)}, longer than hookTimeout ({_told(self._timeout)})"
                )
            return answer

        return guarded

    def check(self) -> None:
        """Report the calls that have exceeded the timeout, each once."""
        now = self._now()
        for thread, calls in tuple(self._running.items()):
            late = [call for call in tuple(calls) if now - call.started > self._timeout]
            # Report only the innermost call: the outer ones wait for it.
            if late and not late[-1].is_reported:
                self._report_blocked(late[-1], now - late[-1].started, thread)
                for call in late:
                    call.is_reported = True

    def start(self) -> None:
        """Call `check` regularly on a thread, until `close`."""
        threading.Thread(target=self._work, name="kschedfw-hook-watch", daemon=True).start()

    def close(self) -> None:
        """End the thread that calls `check`."""
        self._ended.set()

    def _work(self) -> None:
        pause = max(self._timeout / _CHECKS_IN_A_TIMEOUT, _SHORTEST_PAUSE)
        while not self._ended.wait(pause):
            self.check()

    def _report_blocked(self, call: _Call, seconds: float, thread: int) -> None:
        frame = sys._current_frames().get(thread)
        stack = [] if frame is None else list(traceback.extract_stack(frame))
        # The frames after the last one of this module are the hook's.
        outside = max((at for at, each in enumerate(stack) if each.filename == __file__), default=-1)
        inside = stack[outside + 1 :][-_DEEPEST_STACK:]
        _log.warning(
            "plugin %s: %s hasn't returned for %s, longer than hookTimeout (%s); it is at\n%s",
            call.plugin,
            call.hook,
            _told(seconds),
            _told(self._timeout),
            "".join(traceback.format_list(inside)).rstrip(),
        )

    def _report_late(self, call: _Call, seconds: float) -> None:
        """Report a call that has ended late. `check` may have missed it, or reported it before it ended."""
        _log.warning(
            "plugin %s: %s returned after %s, longer than hookTimeout (%s)",
            call.plugin,
            call.hook,
            _told(seconds),
            _told(self._timeout),
        )


def _told(seconds: float) -> str:
    return format_duration(round(seconds, 3))
