"""Common parts of the reproductions' commands: runs by policy and seed, on an engine, recorded as a sweep's runs are.

A reproduction makes measurements of its own, so its runs aren't those of a `Sweep`. Everything else is the same: the
engines, the directory of results, and how a command resumes after an interruption.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Final

import attrs

from kschedfw import KschedfwError
from kschedfw.api import counted
from kschedfw.api.reading import printable
from kschedfw.scheduler import MissingExtraError
from kschedfw_lab.results.results import Results, RunResult
from kschedfw_lab.results.values import Value
from kschedfw_lab.results.writer import ResultsWriter
from kschedfw_lab.sweep.dask import dask_engine
from kschedfw_lab.sweep.dispatching import Dispatcher
from kschedfw_lab.sweep.engine import Engine, local_engine
from kschedfw_lab.sweep.errors import EngineError, one_line
from kschedfw_lab.sweep.measures import Metrics, Series
from kschedfw_lab.sweep.recording import Recorder
from kschedfw_lab.sweep.runs import RunOutcome
from kschedfw_lab.sweep.sweeping import runs_done

FACTORS: Final = ("policy", "seed")

DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

EXIT_CODES: Final = (
    "Exit codes: 0 done; 1 runs failed, or the engine broke down; 2 bad usage, or the input is wrong; 130 interrupted, "
    "and the table has what was done."
)

_PIECE: Final = 1 << 20
_MOST_SEEDS: Final = 10_000
_ONE_AT_A_TIME: Final = threading.Lock()
"""Held during a run, since the failures of plugins are collected per process."""

Measured = tuple[Metrics, Series]


@attrs.frozen
class Task:
    """A run of one policy with one seed. It can be pickled, since other processes run it.

    `key` identifies everything that its results depend on. `measure` does the run. It raises KschedfwError if a plugin
    fails.
    """

    key: str
    values: Mapping[str, Value]
    measure: Callable[[], Measured]


def task(
    policy: str,
    seed: int,
    measure: Callable[[], Measured],
    *,
    content: Sequence[str],
    distributions: Sequence[str],
) -> Task:
    """Return the run of a policy with a seed.

    Args:
        policy: the name of the measured policy in tables.
        seed: the seed of the run.
        measure: does the run. It must be picklable.
        content: everything else that the results depend on, such as digests of files.
        distributions: the distributions that the results depend on, as `installed` returns them.
    """
    text = json.dumps([policy, seed, *content, *distributions])
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    return Task(key, dict(zip(FACTORS, (policy, seed), strict=True)), measure)


def installed(*names: str) -> tuple[str, ...]:
    """Return these distributions with their versions, kschedfw first."""
    return tuple(f"{name} {version(name)}" for name in ("kschedfw", *names))


def digest_of(*files: Path) -> str:
    """Return a digest of the files' content.

    Raises OSError: a file can't be read.
    """
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
        # Between files, so that content that moves from one to the next changes the digest.
        digest.update(b"\0")
    return digest.hexdigest()


def outcome_of(run: Task) -> RunOutcome:
    """Do the run in this process. An error becomes a part of the outcome."""
    with _ONE_AT_A_TIME:
        start = time.perf_counter()
        try:
            metrics, series = run.measure()
        except Exception as error:
            return RunOutcome(run.key, error=one_line(error))
        return RunOutcome(run.key, {**metrics, "elapsed_seconds": time.perf_counter() - start}, series)


@attrs.frozen
class Reproduced:
    """The results of all finished runs, earlier ones included.

    `interrupted` is true if Ctrl-C ended the command early.
    """

    results: Results
    interrupted: bool

    @property
    def failed(self) -> Sequence[RunResult]:
        return [run for run in self.results.runs() if run.error]


def reproduce(
    tasks: Sequence[Task], directory: Path, engine: Engine, *, resume: bool, tell: Callable[[str], None]
) -> Reproduced:
    """Do the runs, and record each when it is finished. Ctrl-C ends this; unfinished runs are lost.

    Args:
        tasks: the runs, in the order of the tables.
        directory: the directory of results. Without `resume` it must have none.
        engine: does the runs.
        resume: skip runs whose results are in the directory.
        tell: called with a line about each finished run.

    Raises:
        KschedfwError: the directory has results already, or those of something else; or the engine broke down.
        OSError: the directory can't be written to.
    """
    done = runs_done(directory, FACTORS, resume=resume)
    with ResultsWriter(directory, FACTORS) as writer:
        waiting = [each for each in tasks if each.key not in done]
        if len(waiting) < len(tasks):
            tell(f"{len(tasks) - len(waiting)} of {len(tasks)} runs are there already")
        tell(f"{counted(len(waiting), 'run')} on {engine.name}")
        recorder = Recorder(writer, len(waiting), _Progress(time.perf_counter(), tell))
        is_interrupted = False
        try:
            Dispatcher(engine.executor, engine.workers, outcome_of, recorder.take).run(waiting)
        except KeyboardInterrupt:
            is_interrupted = True
        except EngineError:
            # The tables get what was done before the engine broke down.
            writer.finish((each.key for each in tasks), others=False)
            raise
        return Reproduced(writer.finish((each.key for each in tasks), others=False), is_interrupted)


@attrs.frozen
class _Progress:
    """Reports each finished run, and the expected time for the rest."""

    start: float
    tell: Callable[[str], None]

    def __call__(self, run: Task, outcome: RunOutcome, done: int, total: int) -> None:
        values = " ".join(f"{name} {printable(str(value))}" for name, value in run.values.items())
        seconds = outcome.metrics.get("elapsed_seconds", 0.0)
        how = f"failed: {outcome.error}" if outcome.error else f"{seconds:.1f} s"
        left = (time.perf_counter() - self.start) / done * (total - done)
        self.tell(f"{done}/{total}  {values}: {how}" + (f", {left:.0f} s to go" if done < total else ""))


# The command


def add_options(parser: argparse.ArgumentParser, *, seeds: str, directory: str) -> None:
    """Add the options that all reproductions have."""
    parser.epilog = EXIT_CODES
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="where the trace's CSV files are"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(directory),
        metavar="DIR",
        help="where the results go, for `kschedfw report` (%(default)s)",
    )
    parser.add_argument("--seeds", type=seeds_of, default=seeds, help="such as 42-51 or 42,45 (%(default)s)")
    parser.add_argument("--resume", action="store_true", help="skip the runs that DIR has already")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--workers", type=_workers, metavar="N", help="processes on this machine (the processors)"
    )
    where.add_argument("--dask", metavar="ADDRESS", help="the workers of this Dask cluster: tcp://HOST:8786")
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")


@contextmanager
def engine_of(options: argparse.Namespace, distributions: Sequence[str]) -> Iterator[Engine]:
    """Make the engine that the options ask for. Its workers must have these distributions.

    Raises:
        MissingExtraError: Dask isn't installed.
        SweepError: the Dask cluster can't be reached, or a worker lacks a distribution.
    """
    if options.dask is not None:
        with dask_engine(options.dask, distributions) as engine:
            yield engine
    else:
        with local_engine(options.workers) as engine:
            yield engine


def run_command(name: str, command: Callable[[], int]) -> int:
    """Run a command and return its exit code. Errors become one line on standard error."""
    try:
        return command()
    except (MissingExtraError, EngineError) as error:
        return _complain(name, error, FAILED)
    except (KschedfwError, OSError) as error:
        return _complain(name, error, BAD_INPUT)
    except KeyboardInterrupt:
        tell("interrupted before anything was measured")
        return INTERRUPTED


def _complain(name: str, error: Exception, code: int) -> int:
    tell(f"{name}: {one_line(error)}")
    return code


def exit_code(reproduced: Reproduced, tasks: Sequence[Task]) -> int:
    """Print to standard error what is missing, and return the exit code."""
    if reproduced.failed:
        failed = ", ".join(dict.fromkeys(str(run.factors["policy"]) for run in reproduced.failed))
        tell(f"{counted(len(reproduced.failed), 'run')} failed, so there are no figures for {failed}")
    if reproduced.interrupted:
        tell(
            f"interrupted; {len(reproduced.results.runs())} of {len(tasks)} runs are done, --resume does the rest"
        )
        return INTERRUPTED
    return FAILED if reproduced.failed else DONE


def by_policy(results: Results) -> Mapping[str, Sequence[RunResult]]:
    """Return the runs of each policy, without policies of which a run failed."""
    found: dict[str, list[RunResult]] = {}
    for run in results.runs():
        found.setdefault(str(run.factors["policy"]), []).append(run)
    return {policy: runs for policy, runs in found.items() if not any(run.error for run in runs)}


def tell(text: str) -> None:
    """Print a line to standard error."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def seeds_of(text: str) -> tuple[int, ...]:
    """Parse seeds, such as `42-51` or `42,45`.

    Raises ArgumentTypeError: the text has another format.
    """
    seeds: list[int] = []
    try:
        for part in text.split(","):
            first, _, last = part.partition("-")
            these = range(int(first), int(last or first) + 1)
            # Checked before they are listed, since a range may be of any size.
            if not these or len(these) + len(seeds) > _MOST_SEEDS:
                raise ValueError
            seeds.extend(these)
    except ValueError:
        expected = f"seeds such as 42-51 or 42,45, at most {_MOST_SEEDS:,}"
        raise argparse.ArgumentTypeError(f"expected {expected}, found {text!r}") from None
    return tuple(dict.fromkeys(seeds))


def _workers(text: str) -> int:
    # Cut, since `int` refuses thousands of digits with an error of its own.
    if text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= 1024:
        return int(text)
    raise argparse.ArgumentTypeError(f"expected a number from 1 to 1024, found {text!r}")
