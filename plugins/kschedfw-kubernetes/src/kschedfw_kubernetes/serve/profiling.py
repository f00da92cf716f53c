"""Profiles of the running process, on demand (`--profiling`), in place of Go's `net/http/pprof`.

| path | answer |
| --- | --- |
| `/debug/pprof/` | what there is |
| `/debug/pprof/profile?seconds=30` | stacks of all threads, 100 samples a second, folded as for flame graphs |
| `/debug/pprof/goroutine` | the stack of each thread at this moment |
| `/debug/pprof/cmdline` | the command line; its words end with NUL |

They are samples: cProfile slows down each call, and up to Python 3.11 covers only the thread that began it.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Final

from kschedfw import Clock
from kschedfw_kubernetes.web.asgi import NO_SNIFFING, PLAIN_TEXT, Asked, Response

RATE: Final = 100.0
"""Samples per second, as in Go's CPU profiles."""
DEFAULT_SECONDS: Final = 30.0
LONGEST: Final = 300.0
"""The most seconds of a profile."""

_ROOT: Final = "/debug/pprof/"


class Profiling:
    """Makes profiles, one at a time. They end early when `stopping` is set."""

    def __init__(self, clock: Clock, stopping: Callable[[], bool]) -> None:
        self._clock, self._stopping = clock, stopping
        self._busy = threading.Lock()

    def pages(self) -> Mapping[str, Callable[[Asked], Response]]:
        """Return the pages by path."""
        pages = {
            "profile": (self._profile, "folded stacks of all threads, sampled for ?seconds=30"),
            "goroutine": (_threads, "the stack of each thread"),
            "cmdline": (_command_line, "the command line"),
        }
        index = "".join(f"{_ROOT}{name}: {text}\n" for name, (_, text) in pages.items())
        return {
            **dict.fromkeys((_ROOT, _ROOT.rstrip("/")), lambda _asked: _text(index)),
            **{f"{_ROOT}{name}": make for name, (make, _) in pages.items()},
        }

    def _profile(self, asked: Asked) -> Response:
        given = asked.query.get("seconds", [""])[-1]
        try:
            seconds = float(given or DEFAULT_SECONDS)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds <= LONGEST:
            return _text(f"seconds={given}: must be a number above 0, and at most {LONGEST:g}\n", 400)
        if not self._busy.acquire(blocking=False):
            return _text("Could not enable CPU profiling: cpu profiling already in use\n", 500)
        try:
            counts = self._sampled(seconds)
        finally:
            self._busy.release()
        return _text("".join(f"{stack} {count}\n" for stack, count in sorted(counts.items())))

    def _sampled(self, seconds: float) -> Counter[str]:
        counts = Counter[str]()
        own, pause = threading.get_ident(), threading.Event()
        end = self._clock.monotonic() + seconds
        while self._clock.monotonic() < end and not self._stopping():
            names = _names()
            for number, frame in _frames():
                if number != own:
                    counts[_folded(names.get(number, "?"), frame)] += 1
            pause.wait(1 / RATE)
        return counts


def _frames() -> Iterator[tuple[int, FrameType]]:
    """Yield each thread's number and innermost frame."""
    yield from sys._current_frames().items()


def _names() -> Mapping[int, str]:
    return {thread.ident: thread.name for thread in threading.enumerate() if thread.ident is not None}


def _folded(thread: str, innermost: FrameType) -> str:
    """Return the thread and its functions from the outermost on, as `thread;module.function;module.function`."""
    functions = []
    frame: FrameType | None = innermost
    while frame is not None:
        functions.append(f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_qualname}")
        frame = frame.f_back
    return ";".join([thread, *reversed(functions)]).replace(" ", "_")


def _threads(_asked: Asked) -> Response:
    names = _names()
    return _text(
        "\n".join(
            f"thread {names.get(number, '?')} ({number}):\n{''.join(traceback.format_stack(frame))}"
            for number, frame in _frames()
        )
    )


def _command_line(_asked: Asked) -> Response:
    return _text("".join(f"{word}\0" for word in sys.orig_argv))


def _text(content: str, status: int = 200) -> Response:
    return Response(status, content.encode(errors="replace"), PLAIN_TEXT, (NO_SNIFFING,))
