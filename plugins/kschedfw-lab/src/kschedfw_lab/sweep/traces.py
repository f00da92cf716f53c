"""Cluster traces that other distributions read, such as recordings, for sweeps and environments."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
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

    objects: Sequence[Named]
    left_out: Mapping[str, int] = attrs.field(factory=dict)


TraceReader = Callable[[Path, float, float], Trace]
"""Reads what is between two times (seconds since 1970, perhaps infinite) of a trace."""

TRACES: Final = Extensions[Any](GROUP, "trace", object, {"recording": "kschedfw-replay"})


def kinds_of_traces() -> list[str]:
    """Return the names of all known kinds of traces, installed or not."""
    return sorted({*TRACES.names(), *TRACES.homes})


def read_trace(kind: str, path: Path, since: float, until: float) -> Trace:
    """Read what is between two times of a trace.

    Raises:
        SweepError: no installed distribution reads this kind, or the trace can't be read.
    """
    try:
        reader: TraceReader = TRACES.load(kind)
        with TRACES.calling(kind):
            return reader(path, since, until)
    except (KschedfwError, OSError) as error:
        raise SweepError(one_line(error)) from None


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
    kind: str,
    path: Path | str,
    *,
    since: float = -math.inf,
    until: float = math.inf,
    draw: str | None = None,
) -> Callable[[int], Sequence[Named]]:
    """Return a workload for `Environment`: the objects of a trace. With `draw`, they are drawn anew for each seed.

    Pass `arrivals=Arrivals()` to the environment, so that pods come and go at their own times.

    Args:
        kind: the kind of the trace, such as `recording`, which kschedfw-replay reads.
        path: the path of the trace.
        since: the window's begin, in seconds since 1970.
        until: the window's end.
        draw: `shuffle`, `resample` or `days`, as the factor `draw` of a sweep. None keeps the pods unchanged.

    Raises:
        SweepError: the trace can't be read, or nothing can be drawn.
        ValueError: `draw` has another value.
    """
    way = None if draw is None else Draw(draw)
    objects = read_trace(kind, Path(path), since, until).objects
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
