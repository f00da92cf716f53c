"""Runs a sweep on an engine, and records its results as they arrive."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Final

import attrs

from kschedfw_lab.results.journal import NO_LIMIT
from kschedfw_lab.results.reading import JOURNAL, SPECIFICATION, journalled
from kschedfw_lab.results.results import Results, RunResult
from kschedfw_lab.results.writer import ResultsWriter
from kschedfw_lab.sweep.dispatching import Dispatcher
from kschedfw_lab.sweep.errors import EngineError, SweepError
from kschedfw_lab.sweep.plan import Plan
from kschedfw_lab.sweep.recording import Recorder
from kschedfw_lab.sweep.runs import Run, RunOutcome, outcome_of
from kschedfw_lab.sweep.specification import Sweep

_TOLD: Final = ("kschedfw", "kschedfw-lab", "numpy")
"""Distributions whose versions are recorded, in addition to those of the plugins."""
_GIT_SECONDS: Final = 10.0

Progress = Callable[[Run, RunOutcome, int, int], None]
"""Called after each run with the run, its outcome, and the numbers of finished and of all runs."""


@attrs.frozen
class Summary:
    """The outcome of a sweep.

    Attributes:
        results: the results of the plan's finished runs, earlier ones included.
        done: the number of runs that were done this time.
        failed: the number of the plan's runs with an error.
        skipped: the number of runs whose results were there already.
        stale: keys of runs in the directory that don't belong to the plan.
        interrupted: whether Ctrl-C ended the sweep.
    """

    results: Results
    done: int
    failed: int
    skipped: int
    stale: Sequence[str]
    interrupted: bool


def run_sweep(
    sweep: Sweep,
    directory: str | Path,
    executor: Executor,
    *,
    workers: int = 1,
    plan: Plan | None = None,
    resume: bool = False,
    retry_failed: bool = False,
    parquet: bool = False,
    timeout: float | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Do the runs of the sweep's plan. Record each run when it is finished.

    Args:
        sweep: the sweep to run.
        directory: the directory of results. Without `resume` it must have none.
        executor: runs them: processes, Dask's `client.get_executor()`, or any other whose workers have kschedfw and the
            plugins, and can read the clusters' files at the same paths. It isn't shut down.
        workers: the number of runs that the executor does at the same time. Twice as many are handed to it.
        plan: the sweep's plan, if it is known already.
        resume: skip runs whose results are in the directory.
        retry_failed: when resuming, do failed runs again.
        parquet: write a Parquet file at the end as well.
        timeout: seconds of real time after which a run fails.
        progress: called after each run.

    Ctrl-C ends the sweep. Unfinished runs are lost; all others are recorded.

    Raises:
        SweepError: the sweep can't be planned; or the directory has results, and `resume` is false.
        EngineError: the executor has stopped working.
        ResultsError: the directory has results of other factors.
        OSError: the directory can't be written to.
    """
    plan = sweep.plan() if plan is None else plan
    directory = Path(directory)
    done = runs_done(directory, plan.factors, resume=resume)
    with ResultsWriter(directory, plan.factors, parquet=parquet) as writer:
        known = {run.key for run in plan.runs}
        stale = [key for key in done if key not in known]
        todo = runs_to_do(plan, done, retry_failed=retry_failed)
        # Before the runs, so that it is there if they are interrupted.
        _write_specification(directory, sweep, plan)
        recorder = Recorder(writer, len(todo), progress)
        interrupted = False
        try:
            do = partial(outcome_of, timeout=timeout)
            Dispatcher(executor, workers, do, recorder.take).run(todo)
        except KeyboardInterrupt:
            interrupted = True
        except EngineError:
            # The tables get what was done before the engine broke down.
            writer.finish((run.key for run in plan.runs), others=False)
            raise
        results = writer.finish((run.key for run in plan.runs), others=False)
        failed = sum(bool(writer.done.get(run.key)) for run in plan.runs)
        return Summary(results, recorder.count, failed, len(plan.runs) - len(todo), stale, interrupted)


def runs_done(directory: Path, columns: Sequence[str], *, resume: bool) -> Mapping[str, RunResult]:
    """Return the runs that the directory has, by key.

    Raises:
        SweepError: there are some, and `resume` is false; or they have other factors than these.
        ResultsError, OSError: the journal can't be read.
    """
    journal = directory / JOURNAL
    if not journal.exists():
        return {}
    if not resume:
        raise SweepError(
            f"{directory}: has results already; --resume adds what is missing, or choose another directory"
        )
    factors, runs = journalled(journal, NO_LIMIT)
    if runs and factors != tuple(columns):
        raise SweepError(
            f"{directory}: has results of the factors {', '.join(factors)}, and the specification has "
            f"{', '.join(columns)}; choose another directory"
        )
    return runs


def runs_to_do(plan: Plan, done: Mapping[str, RunResult], *, retry_failed: bool = False) -> Sequence[Run]:
    """Return the plan's runs without results; with `retry_failed` also those that have failed."""
    return [run for run in plan.runs if run.key not in done or (retry_failed and done[run.key].error)]


def _write_specification(directory: Path, sweep: Sweep, plan: Plan) -> None:
    content = {
        "plan": plan.key,
        "runs": len(plan.runs),
        "columns": list(plan.factors),
        "distributions": list(plan.distributions),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in _TOLD}},
        "commit": _commit(sweep.folder),
        "warnings": list(plan.warnings),
        **sweep.to_json(),
    }
    text = json.dumps(content, indent=2, ensure_ascii=False)
    (directory / SPECIFICATION).write_text(f"{text}\n", encoding="utf-8")


def _commit(folder: Path) -> str | None:
    """Return the git commit of the folder's files, with `-dirty` if some have changed since; None outside of git."""
    # Without tags: always the whole hash.
    command = ["git", "-C", str(folder), "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=_GIT_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip()
