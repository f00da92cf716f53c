"""Runs a sweep on an engine, and records its results as they come."""

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
from kschedfw_lab.results.results import Results
from kschedfw_lab.results.writer import ResultsWriter
from kschedfw_lab.sweep.dispatching import Dispatcher
from kschedfw_lab.sweep.errors import EngineError, SweepError
from kschedfw_lab.sweep.plan import Plan
from kschedfw_lab.sweep.recording import Recorder
from kschedfw_lab.sweep.runs import Outcome, Run, outcome_of
from kschedfw_lab.sweep.specification import Sweep

_TOLD: Final = ("kschedfw", "kschedfw-lab", "numpy")
"""Distributions whose versions are told, beside those of the plugins."""
_GIT_SECONDS: Final = 10.0

Progress = Callable[[Run, Outcome, int, int], None]
"""Called after each run with the run, its outcome, and how many are done of how many."""


@attrs.frozen
class Summary:
    """How a sweep went.

    Attributes:
        results: the results of the plan's runs that are done, earlier ones included.
        done: how many runs were done this time.
        failed: how many runs of the plan have an error.
        skipped: how many runs were there already.
        stale: keys of runs in the directory that don't belong to the plan.
        interrupted: whether Ctrl-C ended it.
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
    """Do the runs of the sweep's plan, each recorded when it is done.

    Args:
        sweep: what to run.
        directory: where the results go; must have no results without `resume`.
        executor: runs them: processes, Dask's `client.get_executor()`, or any other whose workers have kschedfw and
            the plugins, and can read the clusters' files at the same paths. It isn't shut down.
        workers: how many runs it does at the same time; twice as many are handed to it.
        plan: the sweep's plan, if it is known already.
        resume: whether runs are skipped that the directory has.
        retry_failed: whether runs that failed are done again when resuming.
        parquet: whether a Parquet file is written at the end as well.
        timeout: seconds of the wall clock after which a run fails.
        progress: called after each run.

    Ctrl-C ends it: runs in flight are lost, and all others are recorded.

    Raises:
        SweepError: the sweep can't be planned; or the directory has results, and `resume` is false.
        EngineError: the executor doesn't work any more.
        ResultsError: the directory has results of other factors.
        OSError: the directory can't be written to.
    """
    plan = sweep.plan() if plan is None else plan
    directory = Path(directory)
    done = runs_done(directory, plan, resume=resume)
    with ResultsWriter(directory, plan.factors, parquet=parquet) as writer:
        known = {run.key for run in plan.runs}
        stale = [key for key in done if key not in known]
        todo = runs_to_do(plan, done, retry_failed=retry_failed)
        _write_specification(directory, sweep, plan)
        recorder = Recorder(writer, len(todo), progress)
        interrupted = False
        try:
            do = partial(outcome_of, timeout=timeout)
            Dispatcher(executor, workers, do, recorder.take).run(todo)
        except KeyboardInterrupt:
            interrupted = True
        except EngineError:
            writer.finish((run.key for run in plan.runs), others=False)
            raise
        results = writer.finish((run.key for run in plan.runs), others=False)
        failed = sum(bool(writer.done.get(run.key)) for run in plan.runs)
        return Summary(results, recorder.count, failed, len(plan.runs) - len(todo), stale, interrupted)


def runs_done(directory: Path, plan: Plan, *, resume: bool) -> Mapping[str, str]:
    """The runs that are in the directory, by key; the value is the error of a run that failed, else empty.

    Raises:
        SweepError: there are some, and `resume` is false; or they are of other factors than the plan's.
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
    if runs and factors != plan.factors:
        raise SweepError(
            f"{directory}: has results of the factors {', '.join(factors)}, and the specification has "
            f"{', '.join(plan.factors)}; choose another directory"
        )
    return {key: result.error for key, result in runs.items()}


def runs_to_do(plan: Plan, done: Mapping[str, str], *, retry_failed: bool = False) -> Sequence[Run]:
    """The plan's runs that aren't done; with `retry_failed` also those that have failed."""
    return [run for run in plan.runs if run.key not in done or (retry_failed and done[run.key])]


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
    """The commit that the folder's files are of, with `-dirty` if some have changed since; None outside of git."""
    command = ["git", "-C", str(folder), "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=_GIT_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip()
