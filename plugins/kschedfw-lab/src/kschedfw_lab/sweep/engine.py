"""The engine of a sweep: an executor, and how many runs it does at the same time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

import attrs

from kschedfw.api import counted
from kschedfw_lab.sweep.processes import WorkerProcesses


@attrs.frozen
class Engine:
    """An executor, the number of runs that it does at the same time, and its name in messages."""

    executor: Executor
    workers: int
    name: str


@contextmanager
def local_engine(workers: int | None = None) -> Iterator[Engine]:
    """Start worker processes on this machine, by default one for each processor that this process may use.

    They are ended at the end of the block, even if they are busy.
    """
    count = workers or _processors()
    executor = WorkerProcesses(count)
    try:
        yield Engine(executor, count, counted(count, "process"))
    finally:
        executor.shutdown(cancel_futures=True)


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):  # macOS and Windows lack this function.
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
