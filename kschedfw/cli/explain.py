"""`kschedfw explain`: why a pod goes to a node, or to none."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import attrs
import click

from kschedfw.api.pod import Pod
from kschedfw.api.pod_groups import group_key
from kschedfw.cli.configurations import ConfigurationChoice
from kschedfw.cli.enabled import UsageError, check_name
from kschedfw.cli.exits import ExitCode, complain, failure_summary, print_json, tell, tell_failures
from kschedfw.cli.explain_output import (
    Context,
    chosen_cycle,
    cycles_of,
    group_name,
    is_grouped,
    no_attempt,
    pending_members,
    print_explanation,
    print_group,
)
from kschedfw.cli.inputs import Input, InputOptions, gated_toleration_notes, tell_notes
from kschedfw.cli.option_groups import (
    SimulationOptions,
    configuration_options,
    input_options,
    simulation_options,
)
from kschedfw.cli.options import (
    FILE,
    IntRange,
    html_option,
    json_option,
)
from kschedfw.cli.output import missing_of, page_of, reading_bar
from kschedfw.cli.reschedule import ALL, NODE
from kschedfw.cluster import InMemoryCluster, Workload, claim_problems, missing_objects, workload_of
from kschedfw.cluster.workload_names import WorkloadName
from kschedfw.config import SchedulerConfiguration
from kschedfw.explain import Explaining, Explanation, Result, explain_pod, read_explanations
from kschedfw.explain.as_json import as_json as to_json
from kschedfw.simulator import Decision, Failures, Outcome, Simulation
from kschedfw.simulator.state import starting_clock

EXPLAIN_HELP = """Explain why a pod goes to a node, or a group of pods to its nodes, or to none.

The arguments are CLUSTER... POD. CLUSTER are manifests, as for `kschedfw simulate`; POD is the NAME or
NAMESPACE/NAME of a pending pod among them, a unique beginning of it, or a workload as deployment/NAME or
deployment/NAMESPACE/NAME, whose first pending pod is explained. The simulation runs until the pod is placed, or to its
end: pods before it in the queue are scheduled first, pods may be preempted, and so on. With --now the pod is scheduled
first, with the cluster as it is in the files. With --context or --kubeconfig a live cluster is read once; objects in
CLUSTER are added to it. With --from the only argument is POD, and the explanation is read from a file of `kschedfw
simulate --explain`. For a PodGroup, POD is podgroup/NAME or podgroup/NAMESPACE/NAME, and --feature-gates has
GenericWorkload=true.

There may be several attempts to schedule a pod. The last one is explained, or that of --attempt; the others are listed.
Answers that the decision didn't need are computed, too (all filters for all nodes, scores of a single feasible node),
and marked as such.

\b
Exit codes:
  0    the pod or group was placed (with --attempt: in that attempt)
  1    it wasn't; or a plugin failed (see standard error); or the extra html
       isn't installed, which --html needs
  2    bad usage or bad input
  70   a bug in kschedfw
  130  interrupted
  141  the reader of the output has gone
"""

_NAMED = 5
"""The most pods that are named where a name fits several."""

_PLACED = frozenset((Result.PLACED, Result.WAITING))


@click.command("explain", help=EXPLAIN_HELP)
@click.argument(
    "arguments", nargs=-1, required=True, metavar="CLUSTER... POD", help="Manifests, and the pod to explain."
)
@input_options
@configuration_options
@simulation_options
@click.option("--percentage", type=IntRange(0, 100), metavar="X", help="percentageOfNodesToScore.")
@click.option("--now", is_flag=True, help="Schedule the pod first, with the cluster as it is in the files.")
@click.option(
    "--from",
    "recorded",
    type=FILE,
    metavar="FILE",
    help="A file written by `kschedfw simulate --explain FILE`.",
)
@click.option("--attempt", type=IntRange(1), metavar="N", help="Which attempt. Default: the last one.")
@click.option("--node", metavar="NAME", help="Print all details of one node.")
@click.option("--plugin", metavar="NAME", help="Print all answers of one plugin.")
@click.option("--top", type=IntRange(1), default=5, metavar="N", help="How many nodes to show.")
@json_option
@html_option
def explain(
    arguments: Sequence[str],
    given: InputOptions,
    chosen: ConfigurationChoice,
    simulated: SimulationOptions,
    percentage: int | None,
    now: bool,
    recorded: Path | None,
    attempt: int | None,
    node: str | None,
    plugin: str | None,
    top: int,
    as_json: bool,
    html: Path | None,
) -> None:
    # First: a page that can't be written is refused before anything takes time.
    page = page_of(html)
    # No iterator can be cut at a higher number.
    top = min(top, sys.maxsize)
    end: Decision | None = None
    background = Context()
    failures = Failures()
    if recorded is not None:
        attempts = _recorded(recorded, arguments)
    else:
        *files, name = arguments
        if not files and not given.live.is_wanted:
            raise UsageError(
                f"{name}: a cluster and a pod are needed: CLUSTER... POD, --context NAME POD, or --from FILE POD"
            )
        _check_order(files, name)
        paths = [Path(path) for path in files]
        # First, since a live cluster is asked for the kinds of objects that the enabled plugins know.
        configuration = chosen.load()
        with reading_bar(enabled=not given.live.is_wanted) as bar:
            loaded = given.read(paths, progress=bar, namespaces=True)
        tell(loaded.problems)
        loaded, freed = simulated.free_bound_pods(loaded)
        group = group_name(name)
        if group is not None:
            _refuse_options_for_pods(name, now=now, node=node, plugin=plugin)
            members = pending_members(loaded, group, configuration)
            pod = members[0]
        else:
            pod = _pending(loaded, name)
        tell([f"note: {note}" for note in gated_toleration_notes([pod], configuration.gates)])
        background = Context(missing_of(missing_objects(loaded.cluster), pod.key), freed.get(pod.key))
        if percentage is not None:
            configuration = attrs.evolve(configuration, percentage_of_nodes_to_score=percentage)
        try:
            with failures:
                attempts, end = _attempts(
                    loaded.cluster,
                    pod,
                    configuration,
                    simulated,
                    now=now,
                    as_group=group is not None,
                )
        finally:
            tell_failures(failures)
        if group is not None:
            cycles = cycles_of(attempts)
            cycle = chosen_cycle(cycles, attempt)
            print_group(cycle, cycles, top=top, as_json=as_json)
            if page is not None:
                page.write_group(cycles, cycle)
            if failures.count:
                raise click.exceptions.Exit(complain(failure_summary(failures), ExitCode.FAILED))
            raise click.exceptions.Exit(0 if cycle.result is Result.PLACED else 1)
        if attempts[-1].result not in _PLACED:
            # After the simulation, in which volumes were made for the claims that manifests bring along.
            background = background.with_claims(claim_problems(pod, loaded.cluster))
    explanation = _chosen(attempts, attempt)
    if node is not None:
        check_name("node", node, explanation.nodes)
    if plugin is not None:
        check_name("plugin", plugin, explanation.plugins)
    if as_json:
        print_json({**to_json(explanation), **background.to_json()})
    else:
        print_explanation(explanation, attempts, background, node=node, plugin=plugin, top=top, end=end)
    if page is not None:
        page.write_explanation(attempts, explanation)
    if failures.count:
        raise click.exceptions.Exit(complain(failure_summary(failures), ExitCode.FAILED))
    if end is not None and attempt is None:
        raise click.exceptions.Exit(0 if end.outcome is Outcome.PLACED else 1)
    raise click.exceptions.Exit(0 if explanation.result in _PLACED else 1)


def _attempts(
    cluster: InMemoryCluster,
    pod: Pod,
    configuration: SchedulerConfiguration,
    simulated: SimulationOptions,
    *,
    now: bool,
    as_group: bool,
) -> tuple[Sequence[Explanation], Decision | None]:
    """Return the attempts of the pod (with `as_group`, of its group), and its outcome if the last left it waiting."""
    found: list[Explanation] = []

    def take(explanation: Explanation) -> None:
        if as_group or explanation.pod == pod.key:
            found.append(explanation)

    def is_wanted(other: Pod) -> bool:
        # Explain every member of the pod's group: the explanation of the group needs all of them.
        return other.uid == pod.uid or (is_grouped(configuration, pod) and group_key(other) == group_key(pod))

    def is_placed() -> bool:
        if as_group:
            return any(each.group is not None and each.group.result is Result.PLACED for each in found)
        return bool(found) and found[-1].result is Result.PLACED

    names = [profile.scheduler_name for profile in configuration.profiles]
    if pod.spec.scheduler_name not in names:
        known = ", ".join(names)
        raise UsageError(
            f"pod {pod.key}: spec.schedulerName: no profile is named {pod.spec.scheduler_name}; there is {known}"
        )
    if now:
        explanation = explain_pod(
            cluster,
            pod,
            configuration,
            selector=simulated.select_host.selector(),
            seed=simulated.seed,
            clock=starting_clock(cluster, [pod], simulated.start_time),
        )
        return [explanation], None
    report = Simulation(
        cluster,
        configuration,
        seed=simulated.seed,
        selector=simulated.select_host.selector(),
        start_time=simulated.start_time,
        attempt_time=simulated.attempt_time,
        parallelism=1,
        explaining=Explaining(take, is_wanted, beyond=True),
        # The cluster's own words about the pod count no volumes that a provisioner could still make.
        provision_observed=False,
    ).run(until=is_placed)
    if report.interrupted and not is_placed():
        # A later attempt could have explained the pod.
        raise click.exceptions.Exit(ExitCode.INTERRUPTED)
    if not found:
        raise UsageError(f"pod {pod.key}: the simulation ended before it was tried")
    if found[-1].result is not Result.WAITING:
        return found, None
    return found, next(decision for decision in report.decisions if decision.pod == found[-1].pod)


def _check_order(files: Sequence[str], name: str) -> None:
    """Check that the pod comes last, not first as for `kubectl describe`.

    Raises:
        UsageError: the last argument is a file, and one of those before it isn't.
    """
    misplaced = [each for each in files if not Path(each).exists()]
    if len(misplaced) == 1 and Path(name).exists():
        right = " ".join([*(each for each in files if each != misplaced[0]), name, misplaced[0]])
        raise UsageError(
            f"{misplaced[0]}: there is no such file; if it is the pod, it comes last: explain {right}"
        )


def _refuse_options_for_pods(name: str, *, now: bool, node: str | None, plugin: str | None) -> None:
    options = {"--now": now, "--node": node, "--plugin": plugin}
    for option, given in options.items():
        if given:
            raise UsageError(f"{option}: is for a pod, not for {name}; explain one of its members")


def _pending(loaded: Input, name: str) -> Pod:
    """Return the pod of this name; in the input's namespace, if there is one and the name has none.

    The name may be a unique prefix of the names of pending pods, or of those of one workload. KIND/NAME of a workload
    stands for its first pending pod.

    Raises:
        UsageError: there is none, it is bound, or there are several.
    """
    pods = loaded.cluster.list(Pod, None if "/" in name else loaded.namespace)
    matching = [pod for pod in pods if name in (pod.key, pod.name)]
    if len(matching) > 1:
        keys = ", ".join(sorted(pod.key for pod in matching))
        raise UsageError(f"pod {name!r}: there are several: {keys}; say which as NAMESPACE/NAME")
    if not matching and (workload := WorkloadName.parse(name, loaded.namespace)) is not None:
        return _first_pending(loaded, workload)
    pod = matching[0] if matching else _by_prefix(loaded, pods, name)
    if pod.node_name:
        raise UsageError(
            f"pod {pod.key}: spec.nodeName: it is on {pod.node_name} already, nothing is decided on it; "
            f"--reschedule takes it off first ({ALL}, {NODE}{pod.node_name} or a label selector)"
        )
    return pod


def _by_prefix(loaded: Input, pods: Sequence[Pod], name: str) -> Pod:
    """Return the pending pod whose name begins so; the first one, if all of them are of one workload.

    Raises:
        UsageError: there is none, or there are several.
    """
    found = [
        pod for pod in pods if not pod.node_name and (pod.key if "/" in name else pod.name).startswith(name)
    ]
    if not found or not name:
        # A workload of this name may have no pods, and a note says why.
        tell([f"note: {note}" for note in loaded.notes if name and f"/{name}" in note])
        check_name("pod", name, [pod.key if "/" in name else pod.name for pod in pods])
    owners = {workload_of(pod, loaded.cluster) for pod in found}
    if len(found) > 1 and (len(owners) > 1 or None in owners):
        keys = sorted(pod.key for pod in found)
        more = f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
        raise UsageError(f"pod {name!r}: several begin so: {', '.join(keys[:_NAMED])}{more}; say which")
    return min(found, key=lambda pod: pod.key)


def _first_pending(loaded: Input, name: WorkloadName) -> Pod:
    """Return the first pending pod of the workload, by name.

    Raises:
        UsageError: there is no such workload, there are several, or all of its pods have a node.
    """
    by_workload: dict[Workload, list[Pod]] = {}
    for pod in loaded.cluster.list(Pod):
        if (workload := workload_of(pod, loaded.cluster)) is not None:
            by_workload.setdefault(workload, []).append(pod)
    meant = [workload for workload in by_workload if name.means(workload)]
    if len(meant) > 1:
        raise UsageError(
            f"{name}: there are several: {', '.join(map(str, meant))}; say which as {name.kind}/NAMESPACE/NAME"
        )
    if not meant:
        # A workload may have no pods, and the notes say why.
        tell_notes(loaded)
        alike = {each.name for each in by_workload if each.kind.lower() == name.kind}
        check_name(name.kind, name.name, alike)
        raise UsageError(f"{name}: there is none with pods in this namespace")
    pending = [pod for pod in by_workload[meant[0]] if not pod.node_name]
    if not pending:
        raise UsageError(
            f"{meant[0]}: all of its pods have a node already, nothing is decided on them; "
            f"--reschedule takes pods off first ({ALL}, {NODE}NAME or a label selector)"
        )
    return min(pending, key=lambda pod: pod.key)


def _recorded(path: Path, arguments: Sequence[str]) -> Sequence[Explanation]:
    if len(arguments) != 1:
        raise UsageError(f"--from {path}: the only argument is the pod, not {' '.join(arguments)}")
    name = arguments[0]
    found: list[Explanation] = []
    others: set[str] = set()
    for explanation in read_explanations(path):
        if name in (explanation.pod, explanation.pod.rpartition("/")[2]):
            found.append(explanation)
        else:
            others.add(explanation.pod)
    keys = sorted({explanation.pod for explanation in found})
    if len(keys) > 1:
        raise UsageError(f"pod {name!r}: there are several: {', '.join(keys)}; say which as NAMESPACE/NAME")
    if not found:
        check_name("pod", name, [key if "/" in name else key.rpartition("/")[2] for key in others])
    return found


def _chosen(attempts: Sequence[Explanation], number: int | None) -> Explanation:
    if number is None:
        return attempts[-1]
    for explanation in attempts:
        if explanation.attempt == number:
            return explanation
    raise no_attempt(number, [each.attempt for each in attempts], "pod")
