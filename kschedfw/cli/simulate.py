"""`kschedfw simulate`: the pending pods of a cluster, scheduled in virtual time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import attrs
import click

from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.storage import PersistentVolumeClaim
from kschedfw.api.words import counted
from kschedfw.cli.configurations import ConfigurationChoice
from kschedfw.cli.enabled import UsageError
from kschedfw.cli.exits import ExitCode, complain, failure_summary, print_json, tell, tell_failures
from kschedfw.cli.inputs import (
    Input,
    InputOptions,
    refusal_notes,
    tell_notes,
    version_notes,
)
from kschedfw.cli.option_groups import (
    SimulationOptions,
    configuration_options,
    input_options,
    simulation_options,
)
from kschedfw.cli.options import (
    FILE,
    IntRange,
    cluster_argument,
    html_option,
    json_option,
    no_progress_option,
    parallelism_option,
)
from kschedfw.cli.output import NO_OBJECTS, lack_of_work, page_of, print_report, progress_bar, reading_bar
from kschedfw.explain import Explaining, ExplanationWriter
from kschedfw.simulator import Arrivals, Failures, Simulation, Timeline

SIMULATE_HELP = """Schedule the pending pods of a cluster in virtual time, and show how it went.

CLUSTER are manifests: files (YAML or JSON, plain or gzipped), directories of them, or - for the
standard input. Pending pods in them are scheduled, by priority and then in the order in which they were read. They may
preempt other pods, also bound ones, and are retried after events that may help them.

All pods exist from the start and never end, unless --arrivals, --arrival-rate or --mean-duration are given.

\b
Exit codes:
  0    done, whether or not all pods fit
  1    a plugin failed (see standard error); or there is nothing to
       simulate: no nodes, or no pods to schedule; or the extra html isn't
       installed, which --html needs
  2    bad usage or bad input, such as one without nodes and pods; nothing
       was done
  70   a bug in kschedfw
  130  interrupted; the report has the results so far
  141  the reader of the output has gone
"""


@click.command("simulate", help=SIMULATE_HELP)
@cluster_argument
@input_options
@configuration_options
@simulation_options
@click.option("--arrivals", is_flag=True, help="Pods arrive and end at their own times, if they have any.")
@click.option(
    "--arrival-rate",
    type=float,
    metavar="N",
    help="Pods without an arrival time arrive at random times, N per second.",
)
@click.option(
    "--mean-duration",
    type=float,
    metavar="SECONDS",
    help="Pods without a duration run this long, on average.",
)
@click.option(
    "--ignore-own-times",
    is_flag=True,
    help="Use --arrival-rate and --mean-duration for all pods, also for those with times of their own.",
)
@click.option(
    "--percentage",
    type=IntRange(0, 100),
    metavar="X",
    help="percentageOfNodesToScore; 0 is kube-scheduler's own rule. Replaces the configuration's value; a"
    " profile's own takes precedence.",
)
@parallelism_option
@click.option(
    "--explain",
    "explanations",
    type=FILE,
    metavar="FILE",
    help="Write the details of every attempt (JSON lines; see `kschedfw explain --from`).",
)
@json_option
@html_option
@no_progress_option
@click.option(
    "--fail-fast", is_flag=True, help="End when a plugin fails, and report what was done until then."
)
@click.option(
    "--plugin-times", is_flag=True, help="Measure how long the hooks of each plugin take, and print it."
)
def simulate(
    cluster: Sequence[Path],
    given: InputOptions,
    chosen: ConfigurationChoice,
    simulated: SimulationOptions,
    arrivals: bool,
    arrival_rate: float | None,
    mean_duration: float | None,
    ignore_own_times: bool,
    percentage: int | None,
    parallelism: int,
    explanations: Path | None,
    as_json: bool,
    html: Path | None,
    no_progress: bool,
    fail_fast: bool,
    plugin_times: bool,
) -> None:
    # First: a page that can't be written is refused before anything takes time.
    page = page_of(html)
    with reading_bar(enabled=not no_progress and not given.live.is_wanted) as bar:
        loaded = given.read(cluster, progress=bar)
    tell(loaded.problems)
    if not (any(loaded.cluster.list(kind) for kind in (Node, Pod)) or loaded.refused):
        tell_notes(loaded)
        raise UsageError(f"nothing to simulate: {NO_OBJECTS}")
    configuration = chosen.load()
    if percentage is not None:
        configuration = attrs.evolve(configuration, percentage_of_nodes_to_score=percentage)
    by_version = tuple(version_notes(loaded, configuration.gates))
    loaded, _ = simulated.free_bound_pods(_with_note_on_volumes(loaded))
    with ExitStack() as stack:
        explaining = None
        if explanations is not None:
            file = stack.enter_context(explanations.open("w", encoding="utf-8", buffering=1 << 20))
            explaining = Explaining(ExplanationWriter(file).write)
        timeline = None if page is None else Timeline()
        simulation = Simulation(
            loaded.cluster,
            configuration,
            arrivals=_arrivals(arrivals, arrival_rate, mean_duration, ignore_own_times=ignore_own_times),
            start_time=simulated.start_time,
            attempt_time=simulated.attempt_time,
            seed=simulated.seed,
            selector=simulated.select_host.selector(),
            parallelism=parallelism,
            clock=time.perf_counter,
            notes=(*loaded.notes, *by_version, *refusal_notes(loaded.refused)),
            refused=loaded.refused,
            explaining=explaining,
            timeline=timeline,
            plugin_times=plugin_times,
            causes=as_json,
        )
        failures = stack.enter_context(Failures())
        with progress_bar(enabled=not no_progress) as progress:
            report = simulation.run(progress, until=lambda: fail_fast and failures.count > 0)
    tell_failures(failures)
    lacking = lack_of_work(report)
    if lacking:
        complain(f"nothing to simulate: {lacking}", ExitCode.NOTHING_TO_DO)
    if as_json:
        print_json(report.to_json())
    else:
        print_report(report)
    if page is not None and timeline is not None:
        page.write_simulation(loaded.cluster.list(Node), timeline, report)
    ended_early = fail_fast and failures.count > 0
    if report.interrupted and not ended_early:
        raise click.exceptions.Exit(ExitCode.INTERRUPTED)
    if failures.count:
        text = f"{failure_summary(failures)}{'; the simulation ended with it' * ended_early}"
        raise click.exceptions.Exit(complain(text, ExitCode.FAILED))
    if lacking:
        raise click.exceptions.Exit(ExitCode.NOTHING_TO_DO)


def _with_note_on_volumes(loaded: Input) -> Input:
    """Return the input with a note on claims that an API server left unbound, which the simulation provisions."""
    pending = sum(
        claim.metadata.creation_timestamp is not None and not claim.spec.volume_name
        for claim in loaded.cluster.list(PersistentVolumeClaim)
    )
    if not pending:
        return loaded
    what = f"without a volume in the input: {counted(pending, 'claim')}"
    note = f"{what}; here, provisioners make volumes as soon as they can"
    return attrs.evolve(loaded, notes=[*loaded.notes, note])


def _arrivals(
    wanted: bool, rate: float | None, mean_duration: float | None, *, ignore_own_times: bool
) -> Arrivals | None:
    is_drawn = rate is not None or mean_duration is not None
    if ignore_own_times and not is_drawn:
        raise UsageError("--ignore-own-times goes with --arrival-rate, --mean-duration, or both")
    if not wanted and not is_drawn:
        return None
    return Arrivals(rate, mean_duration, own_times=not ignore_own_times)
