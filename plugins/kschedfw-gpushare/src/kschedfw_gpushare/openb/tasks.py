"""The runs of the evaluation: each contender with each seed."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path

import attrs
from kschedfw_lab import Measured, Task, digest_of, installed, task

from kschedfw_gpushare.openb.contenders import Contender, distributions_of
from kschedfw_gpushare.openb.figures import metrics_of, series_of
from kschedfw_gpushare.openb.replay import FailedRunError, replay
from kschedfw_gpushare.openb.trace import Trace


@attrs.frozen
class Named:
    """A contender with its name. `content` identifies what its figures depend on besides the name."""

    contender: Contender
    content: str


def tasks_of(
    contenders: Mapping[str, Named], nodes: Path, pods: Path, seeds: Sequence[int]
) -> tuple[Sequence[Task], Sequence[str]]:
    """Return the runs, ordered by seed, and the distributions that they need.

    Raises KschedfwError or OSError: the trace can't be read, or a contender can't be measured.
    """
    trace = _read(nodes, pods)
    needed = {name: distributions_of(name, each.contender, trace) for name, each in contenders.items()}
    own = installed("kschedfw-gpushare")
    digest = digest_of(nodes, pods)
    tasks = [
        task(
            name,
            seed,
            partial(measure, nodes, pods, each.contender, seed),
            content=["openb", digest, each.content],
            distributions=[*own, *needed[name]],
        )
        for seed in seeds
        for name, each in contenders.items()
    ]
    return tasks, sorted({*own, *(each for names in needed.values() for each in names)})


def measure(nodes: Path, pods: Path, contender: Contender, seed: int) -> Measured:
    """Return the figures and the curves of a run.

    Raises FailedRunError: a plugin failed. Standard error has the places and numbers of the failures.
    """
    trace = _read(nodes, pods)
    try:
        run = replay(trace, contender.make_scheduler(trace), seed)
    except FailedRunError as error:
        sys.stderr.write("".join(f"{line}\n" for line in error.failures.lines()))
        raise
    return metrics_of(run), series_of(run)


@lru_cache(maxsize=1)
def _read(nodes: Path, pods: Path) -> Trace:
    """Read the trace, or return it if this process has read it already."""
    return Trace.read(nodes, pods)
