"""Runs each measurement in a process of its own, so that others' memory and garbage don't affect it."""

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
    """A measurement failed. The message says why."""


def measure_in_child(case: Case, timer: Timer, progress: Progress | None = None) -> Measurement:
    """Run `measure` in a new process. The case and the timer must be picklable; raises as `run_in_child`."""
    return run_in_child(partial(_measure, case, timer), progress)


def footprint_in_child(case: Case) -> Footprint:
    """Run `measure_footprint` in a new process. The case must be picklable; raises as `run_in_child`."""
    return run_in_child(partial(_footprint, case))


def _measure(case: Case, timer: Timer, progress: Progress) -> Measurement:
    return measure(case, timer, progress=progress)


def _footprint(case: Case, _progress: Progress) -> Footprint:
    return measure_footprint(case)


def run_in_child(task: Callable[[Progress], ResultT], progress: Progress | None = None) -> ResultT:
    """Run the task in a new process, and return its result. Task and result must be picklable.

    Raises:
        BenchmarkError: the task raised something, or its process was killed.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sender, task), daemon=True)
    process.start()
    # Only the child keeps this end, so that its death ends `recv`.
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
    """Return a message about a process that ended without a result."""
    if exit_code is None or exit_code >= 0:
        return f"its process ended with exit code {exit_code}"
    name = signal.Signals(-exit_code).name
    return f"its process was killed by {name}" + (", for want of memory?" if name == "SIGKILL" else "")


def _work(sender: Connection, task: Callable[[Progress], object]) -> None:
    try:
        sender.send(_Done(task(lambda done, total: sender.send((done, total)))))
    except KeyboardInterrupt:  # The terminal sends Ctrl-C to the parent process, too, which reports it.
        return
    except KschedfwError as error:
        sender.send(BenchmarkError(str(error)))
    except Exception as error:
        sender.send(BenchmarkError(f"the measurement broke off: {type(error).__name__}: {error}"))
