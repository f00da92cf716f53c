"""`kschedfw compare`: the same cluster under several configurations."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from kschedfw.cli.compare_output import print_comparison
from kschedfw.cli.compare_page import page_writer
from kschedfw.cli.compare_profiles import WHAT_THERE_IS, candidates_of, check_pods
from kschedfw.cli.exits import ExitCode, complain
from kschedfw.cli.inputs import InputFormat, read_input
from kschedfw.cli.options import (
    AttemptTimeOption,
    ClusterArgument,
    FormatOption,
    NoProgressOption,
    ParallelismOption,
    PodsOption,
    SeedOption,
    SkipInvalidOption,
    StartTimeOption,
)
from kschedfw.cli.output import labelled_progress_bar
from kschedfw.compare import compare as compare_candidates
from kschedfw.scheduler.errors import MissingExtraError

COMPARE_HELP = """Schedule the pending pods of a cluster under several configurations, and show how they differ.

CLUSTER is what simulate takes. Each configuration gets the cluster as it is and the same seed. The first one is the
baseline: pods that fare differently under another are counted and listed, with what made the difference.

\b
Exit codes:
  0    done, whether or not all pods fit
  1    nothing to compare: no nodes, or no pods to schedule; or the extra compare isn't installed
  2    bad usage or bad input; nothing was done
  70   a bug in kschedfw
  130  interrupted; what is shown was done so far
"""


def compare(
    cluster: ClusterArgument,
    profile: Annotated[
        list[str] | None,
        typer.Option(metavar="WHAT", help=f"What to compare: {WHAT_THERE_IS}. Give it two times or more."),
    ] = None,
    pods: PodsOption = None,
    format: FormatOption = InputFormat.MANIFESTS,
    start_time: StartTimeOption = None,
    attempt_time: AttemptTimeOption = None,
    seed: SeedOption = 0,
    parallelism: ParallelismOption = 1,
    skip_invalid: SkipInvalidOption = False,
    show: Annotated[
        int, typer.Option(min=0, metavar="N", help="List so many of the pods that fared differently.")
    ] = 5,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print it as JSON, with every node and every pod that moved.")
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write a page with plots, too. Needs the extra compare."),
    ] = None,
    no_progress: NoProgressOption = False,
) -> None:
    try:
        write_page = None if html is None else page_writer(html)
    except MissingExtraError as error:
        raise typer.Exit(complain(str(error), ExitCode.NOTHING_TO_DO)) from None
    candidates = candidates_of(profile or [])
    loaded = read_input(format, cluster, pods or [], skip_invalid=skip_invalid)
    for problem in loaded.problems:
        print(problem, file=sys.stderr)
    check_pods(candidates, loaded.cluster)
    with labelled_progress_bar(enabled=not no_progress) as progress:
        comparison = compare_candidates(
            loaded.cluster,
            candidates,
            seed=seed,
            start_time=start_time,
            attempt_time=attempt_time or 0.0,
            parallelism=parallelism,
            clock=time.perf_counter,
            progress=progress,
            notes=loaded.notes,
        )
    if as_json:
        print(json.dumps(comparison.to_json(), indent=2, ensure_ascii=False))
    else:
        print_comparison(comparison, show=show)
    if write_page is not None:
        write_page(comparison)
    if comparison.interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)
    report = comparison.runs[0].report
    if not report.nodes or not report.pods:
        missing = "pods to schedule" if report.nodes else "nodes"
        raise typer.Exit(complain(f"nothing to compare: the input has no {missing}", ExitCode.NOTHING_TO_DO))
