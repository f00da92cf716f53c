"""`kschedfw sweep`: runs simulations that cross factors, on this machine's processors or on a Dask cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from kschedfw.api import FieldErrors
from kschedfw.api.reading import read_duration
from kschedfw.cli import ExitCode, NoProgressOption, UsageError, complain, progress_bar, tell
from kschedfw.scheduler import MissingExtraError
from kschedfw_lab.cli.sweep_output import print_dry_run, print_json_line, print_summary
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
  1    runs have failed (standard error says why); or the engine broke down; or an extra isn't
       installed: dask, which --dask needs, or parquet
  2    bad usage, or a wrong specification; nothing was run
  70   a bug in kschedfw
  130  interrupted; the results have the runs that were done
"""


def _duration(text: str) -> float:
    try:
        seconds = read_duration(text, float)
    except FieldErrors:
        seconds = 0.0
    if seconds <= 0:
        raise typer.BadParameter(f"{text!r} is no duration such as 90s or 10m")
    return seconds


WorkersOption = Annotated[
    int | None,
    typer.Option(min=1, max=1024, metavar="N", help="How many processes. Default: the processors."),
]

DaskOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Run on the workers of the Dask cluster with this scheduler: tcp://HOST:8786. Needs the extra dask.",
    ),
]

ResultsOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Where the results go. Default: SPEC-results, by the file's name."),
]

RunTimeoutOption = Annotated[
    float | None,
    typer.Option(
        parser=_duration,
        metavar="DURATION",
        help="How long a run may take, such as 90s or 10m; one that takes longer has failed. Default: no limit.",
    ),
]

sweep_app = typer.Typer(add_completion=False, rich_markup_mode=None)


@sweep_app.command(help=SWEEP_HELP)
def sweep(
    spec: Annotated[Path, typer.Argument(metavar="SPEC", help="The specification, a YAML file.")],
    results: ResultsOption = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Skip the runs that the results have already.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="With --resume: do runs again that have failed.")
    ] = False,
    workers: WorkersOption = None,
    dask: DaskOption = None,
    run_timeout: RunTimeoutOption = None,
    parquet: Annotated[
        bool, typer.Option("--parquet", help="Write results.parquet as well. Needs the extra parquet.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="List the runs, and estimate how long they take: the first one is done to see."
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a line of JSON for each run, and one at the end.")
    ] = False,
    no_progress: NoProgressOption = False,
) -> None:
    if retry_failed and not resume:
        raise UsageError("--retry-failed goes with --resume")
    check_engine(workers, dask)
    directory = Path(f"{spec.stem}-results") if results is None else results
    started = time.perf_counter()
    specification = Sweep.read(spec)
    plan = specification.plan()
    tell(plan.warnings)
    done = runs_done(directory, plan, resume=resume)
    todo = runs_to_do(plan, done, retry_failed=retry_failed)
    try:
        with run_engine(workers, dask, plan.distributions) as engine:
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
                    timeout=run_timeout,
                    progress=_progress(bar, as_json=as_json),
                )
    except (MissingExtraError, EngineError) as error:
        raise typer.Exit(complain(str(error), ExitCode.FAILED)) from None
    print_summary(summary, plan, directory, time.perf_counter() - started, as_json=as_json)
    if summary.interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)
    if summary.failed:
        raise typer.Exit(ExitCode.FAILED)


def check_engine(workers: int | None, dask: str | None) -> None:
    """Check that the options go together.

    Raises UsageError: they don't.
    """
    if workers is not None and dask is not None:
        raise UsageError(f"--workers {workers}: a Dask cluster has its own workers")


@contextmanager
def run_engine(workers: int | None, dask: str | None, distributions: Sequence[str]) -> Iterator[Engine]:
    """Make the engine that a command's options ask for. Workers of a Dask cluster must have these distributions."""
    if dask is None:
        with local_engine(workers) as engine:
            yield engine
    else:
        with dask_engine(dask, distributions, TIMEOUT) as engine:
            yield engine


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
            print_json_line(run, outcome, done, total)
        if bar is not None:
            bar(done, total)

    return tell_of
