"""Runs each measurement in a process of its own, so that memory and garbage of others don't affect it."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from typing import TypeVar

from kschedfw import KschedfwError
from kschedfw_lab.bench.clock import Timer
from kschedfw_lab.bench.footprint import Footprint, measure_footprint
from kschedfw_lab.bench.laps import Progress
from kschedfw_lab.bench.measure import measure
from kschedfw_lab.bench.results import Measurement
from kschedfw_lab.bench.stage import Case

ResultT = TypeVar("ResultT")


class BenchmarkError(KschedfwError):
    """A measurement failed; says why."""


def measure_in_child(case: Case, timer: Timer, progress: Progress | None = None) -> Measurement:
    """`measure` in a new process; raises as `run_in_child`. The case and the timer must be picklable."""
    return run_in_child(partial(_measure, case, timer), progress)


def footprint_in_child(case: Case) -> Footprint:
    """`measure_footprint` in a new process; raises as `run_in_child`. The case must be picklable."""
    return run_in_child(partial(_footprint, case))


def _measure(case: Case, timer: Timer, progress: Progress) -> Measurement:
    return measure(case, timer, progress=progress)


def _footprint(case: Case, _progress: Progress) -> Footprint:
    return measure_footprint(case)


def run_in_child(task: Callable[[Progress], ResultT], progress: Progress | None = None) -> ResultT:
    """Run the task in a new process, and return its result. Both must be picklable.

    Raises:
        BenchmarkError: the task raised something, or its process was killed.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sender, task), daemon=True)
    process.start()
    sender.close()
    try:
        while True:
            message = receiver.recv()
            if isinstance(message, tuple):
                if progress is not None:
                    progress(*message)
                continue
            process.join()
            if isinstance(message, Exception):
                raise message
            result: ResultT = message.result
            return result
    except EOFError:
        process.join()
        raise BenchmarkError(f"the measurement broke off: {end_of_process(process.exitcode)}") from None
    finally:
        receiver.close()
        process.kill()
        process.join()


class _Done:
    def __init__(self, result: object) -> None:
        self.result = result


def end_of_process(exit_code: int | None) -> str:
    """How a process ended that returned no result."""
    if exit_code is None or exit_code >= 0:
        return f"its process ended with exit code {exit_code}"
    name = signal.Signals(-exit_code).name
    return f"its process was killed by {name}" + (", for want of memory?" if name == "SIGKILL" else "")


def _work(sender: Connection, task: Callable[[Progress], object]) -> None:
    try:
        sender.send(_Done(task(lambda done, total: sender.send((done, total)))))
    except KeyboardInterrupt:  # the parent process gets it, too
        return
    except KschedfwError as error:
        sender.send(BenchmarkError(str(error)))
    except Exception as error:
        sender.send(BenchmarkError(f"the measurement broke off: {type(error).__name__}: {error}"))
