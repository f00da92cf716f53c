"""`kschedfw sweep`: runs simulations that cross factors, on this machine's processors or on a Dask cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path

import click
from attrs import frozen

from kschedfw.api import FieldErrors
from kschedfw.api.reading import read_duration
from kschedfw.cli import (
    FILE,
    ExitCode,
    IntRange,
    UsageError,
    complain,
    json_lines_option,
    no_progress_option,
    progress_bar,
    tell,
)
from kschedfw.scheduler import MissingExtraError
from kschedfw_lab.cli.sweep_output import print_dry_run, print_run, print_summary
from kschedfw_lab.sweep.dask import TIMEOUT, dask_engine
from kschedfw_lab.sweep.engine import Engine, local_engine
from kschedfw_lab.sweep.errors import EngineError
from kschedfw_lab.sweep.runs import Run, RunOutcome, run_one
from kschedfw_lab.sweep.specification import Sweep
from kschedfw_lab.sweep.sweeping import Progress, run_sweep, runs_done, runs_to_do

SWEEP_HELP = """Run many simulations that cross factors, and write their results as a tidy table.

SPEC is a YAML file. It says which clusters or traces, configurations, arguments, plugins, seeds, rates and sizes are
crossed, and how. Every run is a simulation, as `kschedfw simulate` does one.

\b
factors:
  cluster: cluster.yaml                  # one value, a list, or a range
  configuration: [default, packing.yaml]
  plugins.NodeResourcesFit: [1, 5, 20]   # weights
  strategy:                              # any path in the configuration
    path: profiles[0].pluginConfig[NodeResourcesFit].args.scoringStrategy.type
    values: [LeastAllocated, MostAllocated]
  seed: {from: 1, to: 10}

A run that fails is one row with its error, and doesn't end the others. Results are written as they come: after Ctrl-C
or a crash, --resume does what is missing.

\b
Exit codes:
  0    all runs are done, and none has failed
  1    runs have failed (standard error says why); or the engine broke down;
       or an extra isn't installed: dask, which --dask needs, or parquet
  2    bad usage, or a wrong specification; nothing was run
  70   a bug in kschedfw
  130  interrupted; the results have the runs that were done
  141  the reader of the output has gone
"""


def _duration(text: str) -> float:
    try:
        seconds = read_duration(text, float)
    except FieldErrors:
        seconds = 0.0
    if seconds <= 0:
        raise click.BadParameter(f"{text!r} is no duration such as 90s or 10m")
    return seconds


@frozen
class EngineChoice:
    """The workers that do the runs of a sweep or a search, and the directory of the results."""

    results: Path | None
    workers: int | None
    dask: str | None
    run_timeout: float | None
    """Seconds that a run may take; None for no limit."""

    def directory(self, spec: Path) -> Path:
        """Return the directory of the results of this specification."""
        return Path(f"{spec.stem}-results") if self.results is None else self.results

    @contextmanager
    def engine(self, distributions: Sequence[str]) -> Iterator[Engine]:
        """Make the engine. Workers of a Dask cluster must have these distributions."""
        if self.dask is None:
            with local_engine(self.workers) as engine:
                yield engine
        else:
            with dask_engine(self.dask, distributions, TIMEOUT) as engine:
                yield engine


def engine_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of the engine and of its results, as its parameter `choice`."""

    @click.option(
        "--results",
        type=FILE,
        metavar="DIR",
        help="Where the results go. Default: SPEC-results, by the file's name.",
    )
    @click.option(
        "--workers",
        type=IntRange(1, 1024),
        metavar="N",
        help="How many processes. Default: the processors.",
    )
    @click.option(
        "--dask",
        metavar="ADDRESS",
        help="Run on the workers of the Dask cluster with this scheduler: tcp://HOST:8786. Needs the extra dask.",
    )
    @click.option(
        "--run-timeout",
        type=_duration,
        metavar="DURATION",
        help="How long a run may take, such as 90s or 10m; one that takes longer has failed. Default: no limit.",
    )
    @wraps(command)
    def gathering(
        *,
        results: Path | None,
        workers: int | None,
        dask: str | None,
        run_timeout: float | None,
        **others: object,
    ) -> None:
        if workers is not None and dask is not None:
            raise UsageError(f"--workers {workers}: a Dask cluster has its own workers")
        command(choice=EngineChoice(results, workers, dask, run_timeout), **others)

    return gathering


@click.command("sweep", help=SWEEP_HELP)
@click.argument("spec", type=FILE, metavar="SPEC", help="The specification, a YAML file.")
@engine_options
@click.option("--resume", is_flag=True, help="Skip the runs that the results have already.")
@click.option("--retry-failed", is_flag=True, help="With --resume: do runs again that have failed.")
@click.option("--parquet", is_flag=True, help="Write results.parquet as well. Needs the extra parquet.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="List the runs, and estimate how long they take: the first one is done to see.",
)
@json_lines_option("each run, and one at the end")
@no_progress_option
def sweep(
    spec: Path,
    choice: EngineChoice,
    resume: bool,
    retry_failed: bool,
    parquet: bool,
    dry_run: bool,
    as_json: bool,
    no_progress: bool,
) -> None:
    if retry_failed and not resume:
        raise UsageError("--retry-failed goes with --resume")
    directory = choice.directory(spec)
    started = time.perf_counter()
    specification = Sweep.read(spec)
    plan = specification.plan()
    tell(plan.warnings)
    done = runs_done(directory, plan.factors, resume=resume)
    todo = runs_to_do(plan, done, retry_failed=retry_failed)
    try:
        with choice.engine(plan.distributions) as engine:
            if dry_run:
                print_dry_run(plan, todo, _seconds_of_first(todo), engine, as_json=as_json)
                return
            with progress_bar("sweeping", enabled=not no_progress) as bar:
                if bar is not None:
                    bar(0, len(todo))
                summary = run_sweep(
                    specification,
                    directory,
                    engine.executor,
                    workers=engine.workers,
                    plan=plan,
                    resume=resume,
                    retry_failed=retry_failed,
                    parquet=parquet,
                    timeout=choice.run_timeout,
                    progress=_progress(bar, as_json=as_json),
                )
    except (MissingExtraError, EngineError) as error:
        raise click.exceptions.Exit(complain(str(error), ExitCode.FAILED)) from None
    print_summary(summary, plan, directory, time.perf_counter() - started, as_json=as_json)
    if summary.interrupted:
        raise click.exceptions.Exit(ExitCode.INTERRUPTED)
    if summary.failed:
        raise click.exceptions.Exit(ExitCode.FAILED)


def _seconds_of_first(runs: Sequence[Run]) -> float:
    """Return how many seconds the first run takes in this process. The plan has read its cluster already.

    Raises:
        SweepError: the run fails.
    """
    if not runs:
        return 0.0
    start = time.perf_counter()
    run_one(runs[0])
    return time.perf_counter() - start


def _progress(bar: Callable[[int, int], None] | None, *, as_json: bool) -> Progress:
    def tell_of(run: Run, outcome: RunOutcome, done: int, total: int) -> None:
        if as_json:
            print_run(run, outcome, done, total)
        if bar is not None:
            bar(done, total)

    return tell_of
