"""Cluster traces that other distributions read, such as recordings, for sweeps and environments."""

from __future__ import annotations

import hashlib
import importlib.util
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import attrs

from kschedfw import KschedfwError
from kschedfw.api import Extensions, Named
from kschedfw.api.reading import shown
from kschedfw_lab.sweep.draws import Draw, drawn
from kschedfw_lab.sweep.errors import SweepError, one_line

GROUP: Final = "kschedfw_lab.traces"
"""The entry points of trace readers. Their names are the fields that name such a trace in a specification."""
WINDOW: Final = ("from", "to")
"""The fields of a window."""


@attrs.frozen
class Trace:
    """A part of a trace, as the objects of a cluster in which pods come and go.

    Attributes:
        objects: those that are there at the first time, and the pods that arrive. Each pod that arrives has its
            `creationTimestamp` and, in the annotation `kschedfw/duration-seconds`, how long it stays after its binding.
            A pod that is bound from the beginning has there how long it is still there.
        left_out: the numbers of pods that arrive and that no run can have, by the cause: `a claim without a volume`.
    """

    objects: Sequence[Named] = attrs.field(repr=lambda objects: f"<{len(objects)} objects>")
    left_out: Mapping[str, int] = attrs.field(factory=dict)


TraceReader = Callable[[Path, float, float], Trace]
"""Reads what is between two times (seconds since 1970, perhaps infinite) of a trace."""

TRACES: Final = Extensions[Any](GROUP, "trace", object, {"recording": "kschedfw-replay"})


OWN: Final = "reader"
"""The field of a trace that a function in a file reads, without a distribution: `readers.py:read`."""


def kinds_of_traces() -> list[str]:
    """Return the names of all known kinds of traces, installed or not."""
    return sorted({*TRACES.names(), *TRACES.homes})


def read_trace(kind: str, path: Path, since: float, until: float) -> Trace:
    """Read what is between two times of a trace. `kind` is a distribution's, or a function as `FILE.py:FUNCTION`.

    Raises:
        SweepError: no installed distribution reads this kind, there is no such function, or the trace can't be read.
    """
    if is_own_reader(kind):
        return own_reader(kind)(path, since, until)
    try:
        reader: TraceReader = TRACES.load(kind)
        with TRACES.calling(kind):
            return reader(path, since, until)
    except (KschedfwError, OSError) as error:
        raise SweepError(one_line(error)) from None


def is_own_reader(kind: str) -> bool:
    return ".py:" in kind


def own_reader(where: str) -> TraceReader:
    """Return a reader from a function in a file, given as `FILE.py:FUNCTION`. A file is imported once for each content.

    Errors of the function are raised as SweepError; what it returns must be a `Trace`.

    Raises:
        SweepError: the file can't be imported, or has no such function.
    """
    file, _, name = where.rpartition(":")
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        raise SweepError(one_line(error)) from None
    module = _imported(file, hashlib.sha256(content).hexdigest())
    function = getattr(module, name, None)
    if not callable(function):
        known = sorted(
            key
            for key, value in vars(module).items()
            if callable(value) and value.__module__ == module.__name__
        )
        raise SweepError(f"{where}: {file} has no function {name!r}; there is {', '.join(known) or 'none'}")

    def read(path: Path, since: float, until: float) -> Trace:
        try:
            trace = function(path, since, until)
        except Exception as error:
            raise SweepError(f"{where}: {one_line(error)}") from error
        if not isinstance(trace, Trace):
            raise SweepError(f"{where}: expected a Trace of kschedfw_lab, found {type(trace).__name__}")
        return trace

    return read


@cache
def _imported(file: str, digest: str) -> ModuleType:
    # A name that no other module has: two sweeps may have a readers.py each, and one may be changed and run again.
    name = f"kschedfw_trace_{digest}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None:
        raise SweepError(f"{file}: expected a Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        # Python's cache of bytecode takes a file that was changed within a second for the old one.
        exec(compile(Path(file).read_bytes(), file, "exec"), vars(module))
    except Exception as error:
        del sys.modules[name]
        raise SweepError(f"{file}: {one_line(error)}") from error
    return module


def files_of(path: Path) -> Iterator[Path]:
    """Yield the files of a trace: the path itself, or the files in its directory without hidden ones such as locks."""
    if path.is_dir():
        yield from sorted(each for each in path.iterdir() if each.is_file() and each.name[0] != ".")
    else:
        yield path


def read_window(given: Mapping[str, object]) -> tuple[float, float]:
    """Return the times `from` and `to` of a specification, in seconds since 1970.

    Raises:
        SweepError: a time is invalid or has no zone, or the times are in the wrong order.
    """
    since, until = (_moment(name, given.get(name)) for name in WINDOW)
    since, until = -math.inf if since is None else since, math.inf if until is None else until
    if since >= until:
        raise SweepError.at(WINDOW[0], "expected a time before the one of `to`")
    return since, until


def trace_workload(
    kind: str | TraceReader,
    path: Path | str,
    *,
    since: float = -math.inf,
    until: float = math.inf,
    draw: str | None = None,
) -> Callable[[int], Sequence[Named]]:
    """Return a workload for `Environment`: the objects of a trace. With `draw`, they are drawn anew for each seed.

    Pass `arrivals=Arrivals()` to the environment, so that pods come and go at their own times.

    Args:
        kind: the kind of the trace, such as `recording`, which kschedfw-replay reads; or a function that reads it.
        path: the path of the trace.
        since: the window's begin, in seconds since 1970.
        until: the window's end.
        draw: `shuffle`, `resample` or `days`, as the factor `draw` of a sweep. None keeps the pods unchanged.

    Raises:
        SweepError: the trace can't be read, or nothing can be drawn.
        ValueError: `draw` has another value.
    """
    way = None if draw is None else Draw(draw)
    trace = (
        read_trace(kind, Path(path), since, until)
        if isinstance(kind, str)
        else kind(Path(path), since, until)
    )
    objects = trace.objects
    return lambda seed: objects if way is None else drawn(objects, way, seed)


def _moment(name: str, given: object) -> float | None:
    if given is None:
        return None
    at: object = given
    if isinstance(given, str):
        try:
            at = datetime.fromisoformat(given)
        except ValueError:
            at = None
    if isinstance(at, datetime) and at.tzinfo is not None:
        return at.timestamp()
    raise SweepError.at(
        name, f"expected a time with a zone such as 2026-01-31T12:00:00Z, found {shown(given)}"
    )
