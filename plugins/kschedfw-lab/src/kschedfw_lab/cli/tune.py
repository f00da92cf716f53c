"""`kschedfw tune`: searches for weights and arguments, and compares the best ones with the default on other runs."""

from __future__ import annotations

import json
import time
from pathlib import Path
from statistics import fmean

import click

from kschedfw.api.reading import printable
from kschedfw.cli import (
    FILE,
    ExitCode,
    complain,
    counted,
    json_option,
    no_progress_option,
    print_json,
    progress_bar,
    tell,
)
from kschedfw.scheduler import MissingExtraError
from kschedfw_lab.cli.sweep import EngineChoice, engine_options
from kschedfw_lab.cli.sweep_output import duration
from kschedfw_lab.sweep.errors import EngineError
from kschedfw_lab.tuning.outcome import PairedScores, TrialEnd, Tuned
from kschedfw_lab.tuning.specification import Tuning

TUNE_HELP = """Search for weights and arguments of plugins, and compare the best with the default.

SPEC is a YAML file. It says which values are searched, which runs a trial is judged by, and which runs no trial sees.
What was found and the configuration without changes both do the held-out runs; the difference comes with its 95 %
interval. The configuration is written to tuned.yaml in the results.

\b
search:
  plugins.NodeResourcesBalancedAllocation: [false, 1, 4, 16]
training:
  cluster: [monday.yaml, tuesday.yaml]
heldOut:
  cluster: [thursday.yaml, friday.yaml]
objective: {metric: placed, direction: maximize}
trials: 50

Needs the extra optuna. The same SPEC finds the same. After Ctrl-C or a crash, --resume goes on.

\b
Exit codes:
  0    the search is done, whether or not it found anything better
  1    a run of the default failed, or every trial; or the engine broke
       down; or the extra optuna, or dask for --dask, isn't installed
  2    bad usage, or a wrong specification; nothing was run
  70   a bug in kschedfw
  130  interrupted; the results have the runs that were done
  141  the reader of the output has gone
"""


@click.command("tune", help=TUNE_HELP)
@click.argument("spec", type=FILE, metavar="SPEC", help="The specification, a YAML file.")
@engine_options
@click.option("--resume", is_flag=True, help="Use the runs that the results have already.")
@json_option
@no_progress_option
def tune(
    spec: Path,
    choice: EngineChoice,
    resume: bool,
    as_json: bool,
    no_progress: bool,
) -> None:
    directory = choice.directory(spec)
    started = time.perf_counter()
    try:
        # Imported here, since Optuna is an extra.
        from kschedfw_lab.tuning.searching import CONFIGURATION, TuningError
        from kschedfw_lab.tuning.searching import tune as search
    except MissingExtraError as error:
        raise click.exceptions.Exit(complain(str(error), ExitCode.FAILED)) from None
    tuning = Tuning.read(spec)
    tell(tuning.training.warnings)
    try:
        with (
            choice.engine(tuning.training.distributions) as engine,
            progress_bar("searching", enabled=not no_progress) as bar,
        ):
            tuned = search(
                tuning,
                directory,
                engine.executor,
                workers=engine.workers,
                resume=resume,
                timeout=choice.run_timeout,
                progress=None if bar is None else lambda _run, _outcome, done, most: bar(done, most),
            )
    except KeyboardInterrupt:
        complain(
            f"interrupted; {directory} has the runs that were done, --resume goes on", ExitCode.INTERRUPTED
        )
        raise click.exceptions.Exit(ExitCode.INTERRUPTED) from None
    except (MissingExtraError, EngineError, TuningError) as error:
        raise click.exceptions.Exit(complain(str(error), ExitCode.FAILED)) from None
    if as_json:
        print_json({"results": str(directory), **tuned.to_json()})
        return
    _print(tuned)
    print(
        f"\n{directory / CONFIGURATION}: the configuration; searched in {duration(time.perf_counter() - started)}"
    )


def _print(tuned: Tuned) -> None:
    ended = ", ".join(f"{tuned.count(end):,} {end}" for end in TrialEnd if tuned.count(end))
    print(f"{counted(len(tuned.trials), 'trial')}: {ended}")
    for trial in tuned.trials:
        if trial.error:
            print(f"trial {trial.number} failed: {printable(trial.error)}")
    print(f"\nThe best, trial {tuned.best.number}:")
    for name, value in tuned.best.values.items():
        print(f"  {printable(name)}: {printable(json.dumps(value))}")
    print(
        f"\n{printable(tuned.objective.metric)}, mean{'default':>17}{'tuned':>12}  tuned − default, 95 % interval"
    )
    for name, each in (("training", tuned.training), ("held out", tuned.held_out)):
        print(_row(f"{name}, {counted(each.difference.count, 'run')}", each))
    print(f"held out, by chance alone: p = {tuned.held_out.probability:.2g}")


def _row(name: str, each: PairedScores) -> str:
    difference = each.difference
    interval = "" if difference.half is None else f" ± {difference.half:.4g}"
    return f"{name:24}{fmean(each.default):12.5g}{fmean(each.tuned):12.5g}  {difference.mean:+.5g}{interval}"
