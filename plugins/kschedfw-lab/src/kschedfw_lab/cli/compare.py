"""`kschedfw compare`: schedules the same cluster under several configurations."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

import click

from kschedfw import Node, Pod
from kschedfw.cli import (
    FILE,
    ComparedConfigurations,
    ExitCode,
    Input,
    InputOptions,
    IntRange,
    SimulationOptions,
    UsageError,
    cluster_argument,
    complain,
    failure_summary,
    input_options,
    json_option,
    kube_versions_option,
    labelled_progress_bar,
    lack_of_work,
    no_progress_option,
    parallelism_option,
    print_json,
    reading_bar,
    refusal_notes,
    simulation_options,
    tell,
    tell_failures,
    version_notes,
)
from kschedfw.cluster import Cluster
from kschedfw.config import WHAT_THERE_IS
from kschedfw.simulator import Failures
from kschedfw_lab.cli.compare_output import page_writer, print_comparison
from kschedfw_lab.compare import Comparison, Condition, ConditionError, Setup
from kschedfw_lab.compare import compare as compare_candidates
from kschedfw_lab.compare import failures as failed_conditions
from kschedfw_lab.results.keeping import keep_option, kept
from kschedfw_lab.sweep.measures import metrics_by_label

FACTORS = ("policy", "seed")
"""The factors of a comparison's results."""

COMPARE_HELP = """Schedule the pending pods of a cluster under several configurations, and show how they differ.

CLUSTER is as for simulate. Each configuration starts with the same cluster and the same seed. The first one is the
baseline: pods that fare differently under another one are counted and listed, with the reason of the difference.
With --kube-version, the configurations are versions of Kubernetes, and the reason is a feature gate or a rule.

\b
Exit codes:
  0    done, whether or not all pods fit
  1    a plugin failed under one of them (see standard error); or there is
       nothing to compare: no nodes, or no pods to schedule
  2    bad usage or bad input; nothing was done
  3    a condition of --fail-on holds
  70   a bug in kschedfw
  130  interrupted; the results so far are shown
  141  the reader of the output has gone
"""


@click.command("compare", help=COMPARE_HELP)
@cluster_argument
@click.option(
    "--profile",
    "--config",
    multiple=True,
    metavar="WHAT",
    help=f"What to compare: {WHAT_THERE_IS}. Give it two times or more.",
)
@kube_versions_option
@input_options
@simulation_options
@parallelism_option
@click.option(
    "--fail-on",
    multiple=True,
    metavar="CONDITION",
    help="Exit with 3 if this holds for any configuration except the first: moved, unplaced, 'moved > "
    "5%', 'placed < baseline.placed' … Repeatable.",
)
@click.option(
    "--show",
    type=IntRange(0),
    default=5,
    metavar="N",
    help="How many of the pods that fared differently to list.",
)
@json_option
@click.option("--html", type=FILE, metavar="FILE", help="Also write an HTML page with plots.")
@keep_option
@no_progress_option
def compare(
    cluster: Sequence[Path],
    profile: Sequence[str],
    kube_versions: Sequence[str],
    given: InputOptions,
    simulated: SimulationOptions,
    parallelism: int,
    fail_on: Sequence[str],
    show: int,
    as_json: bool,
    html: Path | None,
    results: Path | None,
    no_progress: bool,
) -> None:
    write_page = None if html is None else page_writer(html)
    conditions = _conditions_of(fail_on)
    compared = ComparedConfigurations.of(profile, kube_versions)
    with reading_bar(enabled=not no_progress and not given.live.is_wanted) as bar:
        loaded = given.read(cluster, progress=bar)
    tell(loaded.problems)
    loaded, _ = simulated.free_bound_pods(loaded)
    _check_pods(compared.setups, loaded.cluster)
    _check_resources(conditions, loaded.cluster)
    with (
        kept(results, FACTORS) as keeper,
        Failures() as failures,
        labelled_progress_bar(enabled=not no_progress) as progress,
    ):
        comparison = compare_candidates(
            loaded.cluster,
            compared.setups,
            seed=simulated.seed,
            selector=simulated.select_host.selector,
            start_time=simulated.start_time,
            attempt_time=simulated.attempt_time,
            parallelism=parallelism,
            clock=time.perf_counter,
            progress=progress,
            notes=(*loaded.notes, *_version_notes(loaded, compared.setups), *refusal_notes(loaded.refused)),
            refused=loaded.refused,
            remake=compared.remake,
            causes=as_json,
        )
        for label, metrics in metrics_by_label(comparison).items():
            keeper.add({"policy": label, "seed": simulated.seed}, metrics)
    tell_failures(failures)
    lacking = lack_of_work(comparison.runs[0].report)
    if lacking:
        complain(f"nothing to compare: {lacking}", ExitCode.NOTHING_TO_DO)
    failed = [] if comparison.interrupted else failed_conditions(comparison, conditions)
    if as_json:
        document = {**comparison.to_json(), "failed": [each.to_json() for each in failed]}
        print_json(document)
    else:
        print_comparison(comparison, show=show)
    if write_page is not None:
        write_page(comparison)
    if comparison.interrupted:
        raise click.exceptions.Exit(ExitCode.INTERRUPTED)
    if lacking:
        raise click.exceptions.Exit(ExitCode.NOTHING_TO_DO)
    for failure in failed:
        complain(f"--fail-on {failure.condition}: {failure.label}: {failure.told}", ExitCode.CONDITION_HOLDS)
    # If a plugin fails, the figures prove nothing, whatever the conditions say.
    if failures.count:
        raise click.exceptions.Exit(complain(failure_summary(failures), ExitCode.FAILED))
    if failed:
        raise click.exceptions.Exit(ExitCode.CONDITION_HOLDS)


def _version_notes(loaded: Input, candidates: Sequence[Setup]) -> Iterator[str]:
    """Yield notes on what a version no longer serves, or leaves without effect; with the labels unless all do."""
    labels: dict[str, list[str]] = {}
    for candidate in candidates:
        for note in version_notes(loaded, candidate.configuration.gates):
            labels.setdefault(note, []).append(candidate.label)
    for note, its in labels.items():
        yield note if len(its) == len(candidates) else f"{', '.join(its)}: {note}"


def _check_pods(candidates: Iterable[Setup], cluster: Cluster) -> None:
    """Check that some pending pod names a scheduler of each candidate. Otherwise the candidate would have no pods.

    Raises:
        UsageError: no pod names a scheduler of a candidate. The message says what would be right.
    """
    pending = {
        pod.spec.scheduler_name for pod in cluster.list(Pod) if not pod.node_name and not pod.is_terminal
    }
    for candidate in candidates:
        own = {profile.scheduler_name for profile in candidate.profiles}
        if pending and not candidate.takes_every_pod and not pending & own:
            raise UsageError(
                f"--profile {candidate.label}: no pending pod names a scheduler of it ({', '.join(sorted(own))}); "
                f"they name {', '.join(sorted(pending))}. FILE#PROFILE schedules all of them with one profile"
            )


def _conditions_of(values: Iterable[str]) -> list[Condition[Comparison]]:
    """Parse the conditions.

    Raises:
        UsageError: a text isn't a condition. The message says why.
    """
    try:
        return [Condition.parse(value) for value in values]
    except ConditionError as error:
        raise UsageError(f"--fail-on: {error}") from None


def _check_resources(conditions: Sequence[Condition[Comparison]], cluster: Cluster) -> None:
    """Check that the resources in the conditions exist on some node.

    Raises:
        UsageError: a resource exists on no node. The message names a similar one.
    """
    known = {name for node in cluster.list(Node) for name in node.status.allocatable}
    for condition in conditions:
        for name in sorted(condition.resources - known):
            similar = get_close_matches(name, known, n=1)
            hint = f"; did you mean {similar[0]}?" if similar else ""
            raise UsageError(f"--fail-on {condition.text}: no node has the resource {name}{hint}")
