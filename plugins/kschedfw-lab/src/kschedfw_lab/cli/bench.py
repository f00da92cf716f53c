"""`kschedfw bench`: measures how fast a profile schedules on this machine."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import attrs
import click

from kschedfw import (
    Evaluation,
    Framework,
    InMemoryCluster,
    Parts,
    Profile,
    Registry,
    SchedulerConfiguration,
    default_profile,
)
from kschedfw.api import DEFAULT_SCHEDULER_NAME
from kschedfw.cli import (
    FILE,
    ExitCode,
    FloatRange,
    IntRange,
    UsageError,
    Values,
    changed_default_profile,
    complain,
    enabled_plugin,
    json_option,
    no_progress_option,
    print_json,
    progress_bar,
    selected_configuration,
    selected_profile,
)
from kschedfw_lab.bench.child_process import BenchmarkError, footprint_in_child, measure_in_child
from kschedfw_lab.bench.forms import LEAST_REPEATS, REPEATS, FormsComparison, comparison, form_cases, in_form
from kschedfw_lab.bench.growth import GROUPS, INITIAL_PODS, NODES, PODS, Axis, GrowthRow, cases, measure_row
from kschedfw_lab.bench.laps import Progress
from kschedfw_lab.bench.openb import NAME as OPENB
from kschedfw_lab.bench.openb import NODES_FILE, PODS_FILE
from kschedfw_lab.bench.report import BenchReport, Machine
from kschedfw_lab.bench.results import Measurement, Part
from kschedfw_lab.bench.stage import ADAPTIVE, ALL_NODES, DEFAULT_TIME_LIMIT, Case, Form
from kschedfw_lab.bench.tidy import FACTORS, keep
from kschedfw_lab.bench.workloads import DISTINCT_WORKLOADS, WORKLOADS, find_workload
from kschedfw_lab.cli.bench_output import print_bench_report
from kschedfw_lab.results.keeping import keep_option, kept

ALL = {"all": WORKLOADS, "all-distinct": DISTINCT_WORKLOADS}
"""The names that select several workloads."""

Bar = Callable[[str], AbstractContextManager[Progress | None]]
"""Returns a progress bar with this label."""

_INDENT = " " * 6
_NAMES = "".join(
    f"  {workload.name}\n{textwrap.fill(workload.measures, 76, initial_indent=_INDENT, subsequent_indent=_INDENT)}\n"
    for workload in WORKLOADS.values()
)

BENCH_HELP = f"""Measure how fast a profile schedules on this machine, and how much memory that takes.

Each workload but those of gangs and openb is like one of Kubernetes' scheduler_perf. It is measured twice: the
algorithm alone, and end to end, from the queue to the binding. Both are measured with kube-scheduler's default sampling
of nodes and with all nodes, unless --percentage is given. Every measurement has a process of its own.

The profile is the default profile, changed by --enable, --disable and --args; plugins of all installed distributions
can be enabled. With --profile it is that of a configuration; its extenders aren't called. For a changed profile, every
measurement is also made with the default profile, to show the difference; --no-compare saves this time. Single runs
differ by chance: --enable NAME --forms scalar,batch,memo repeats them and says which differences are significant.

\b
Workloads:
{_NAMES}
Each but openb has a variant NAME-distinct in which no two of the measured pods are alike, as in most real clusters:
they have requests, and where the workload has any, labels and affinity values of their own. all-distinct is all of
these.

\b
Exit codes:
  0    done
  1    a measurement failed: a plugin failed, or there wasn't enough memory;
       earlier measurements are shown. With --forms also: the plugin wasn't
       called for any node, or its forms decide differently
  2    bad usage; nothing was done
  70   a bug in kschedfw
  130  interrupted; earlier measurements are shown
  141  the reader of the output has gone
"""


@click.command("bench", help=BENCH_HELP)
@click.option(
    "--workload", multiple=True, metavar="NAME|all|all-distinct", help="Default: basic. Repeatable."
)
@click.option(
    "--nodes",
    type=IntRange(1),
    metavar="N",
    help="Default: the workload's. The numbers of pods change in proportion, unless given.",
)
@click.option(
    "--init-pods", type=IntRange(0), metavar="M", help="Pods that are placed before the measurement."
)
@click.option("--pods", type=IntRange(1), metavar="P", help="Measured pods.")
@click.option(
    "--devices",
    type=IntRange(1),
    metavar="D",
    help="Devices of each node, in workloads about devices. Default: the workload's.",
)
@click.option(
    "--members",
    type=IntRange(1),
    metavar="G",
    help="Pods of each group, in workloads of groups. Default: the workload's.",
)
@click.option(
    "--racks",
    type=IntRange(1),
    metavar="R",
    help="Racks of the nodes, of which each group keeps to one, in workloads of groups. With 1 it may be "
    "anywhere. Default: the workload's.",
)
@click.option(
    "--openb",
    type=FILE,
    metavar="DIR",
    help=f"For the workload openb: where {NODES_FILE} and {PODS_FILE} of the OpenB trace are. "
    "Without it, nodes and pods like the trace's are made.",
)
@click.option(
    "--percentage",
    type=IntRange(0, 100),
    metavar="X",
    help="percentageOfNodesToScore; 0 is kube-scheduler's own rule. Default: that of --profile, or else "
    "both 0 and 100.",
)
@click.option(
    "--profile",
    type=FILE,
    metavar="FILE",
    help="Measure the profile of this configuration instead of the default profile.",
)
@click.option("--scheduler-name", metavar="NAME", help="Which profile of --profile, if there are several.")
@click.option(
    "--enable",
    multiple=True,
    metavar="NAME[=WEIGHT]",
    help="A plugin to add to the default profile. Repeatable.",
)
@click.option(
    "--disable",
    multiple=True,
    metavar="NAME",
    help="A plugin to remove from the default profile. Repeatable.",
)
@click.option(
    "--args",
    multiple=True,
    metavar="NAME=JSON",
    help="Arguments for a plugin, as in a configuration's pluginConfig. Repeatable.",
)
@click.option(
    "--compare/--no-compare",
    default=True,
    help="If the profile is changed, measure the default profile, too.",
)
@click.option(
    "--evaluation",
    type=Values(Evaluation),
    default=Evaluation.MEMO.value,
    help="How plugins are called: node by node, or by plans with kept answers. The decisions are the same.",
)
@click.option(
    "--forms",
    metavar="FORM,...",
    help="Compare forms of the plugin of --enable instead: scalar, batch and memo, with the other plugins"
    " unchanged. Measures the algorithm alone, in rounds.",
)
@click.option(
    "--repeats",
    type=IntRange(LEAST_REPEATS),
    metavar="N",
    help=f"For --forms: how often each form is measured. Default: {REPEATS}.",
)
@click.option(
    "--growth",
    type=Values(Axis),
    help="Measure instead how time and memory grow with the number of nodes, of pods on them, or of "
    "devices per node; or how time grows with the pods of a group, or with racks.",
)
@click.option("--sizes", metavar="N,N,...", help="For --growth: the numbers of what grows.")
@click.option(
    "--time-limit",
    type=FloatRange(0.0),
    default=DEFAULT_TIME_LIMIT,
    metavar="SECONDS",
    help="End a measurement after this time, even if pods are left.",
)
@json_option
@keep_option
@no_progress_option
def bench(
    workload: Sequence[str],
    nodes: int | None,
    init_pods: int | None,
    pods: int | None,
    devices: int | None,
    members: int | None,
    racks: int | None,
    openb: Path | None,
    percentage: int | None,
    profile: Path | None,
    scheduler_name: str | None,
    enable: Sequence[str],
    disable: Sequence[str],
    args: Sequence[str],
    compare: bool,
    evaluation: Evaluation,
    forms: str | None,
    repeats: int | None,
    growth: Axis | None,
    sizes: str | None,
    time_limit: float,
    as_json: bool,
    results: Path | None,
    no_progress: bool,
) -> None:
    if profile is None:
        if scheduler_name is not None:
            raise UsageError("--scheduler-name goes with --profile")
        measured = changed_default_profile(enable, disable, args)
    else:
        if enable or disable or args:
            raise UsageError(
                "--enable, --disable and --args change the default profile; --profile is instead of it"
            )
        measured, configured = _profile_of(selected_configuration(profile), scheduler_name)
        percentage = configured if percentage is None else percentage
    # Check the profile first, so that nothing is measured in vain if it can't run.
    Framework(Registry(), measured, Parts(InMemoryCluster()))
    compared = None if forms is None else _forms(forms, enable)
    if compared is not None and (growth is not None or evaluation is not Evaluation.MEMO):
        raise UsageError("--forms is measured by itself; --growth and --evaluation don't go with it")
    if compared is None and repeats is not None:
        raise UsageError("--repeats goes with --forms")
    names = list(dict.fromkeys(each for name in workload or ["basic"] for each in ALL.get(name, [name])))
    if openb is not None:
        if OPENB not in names:
            raise UsageError(f"--openb goes with --workload {OPENB}")
        if missing := [name for name in (NODES_FILE, PODS_FILE) if not (openb / name).is_file()]:
            raise UsageError(f"--openb {openb}: there is no {missing[0]}")
    planned = [
        attrs.evolve(
            Case.of(
                find_workload(name, openb),
                nodes=nodes,
                initial_pods=init_pods,
                pods=pods,
                devices=devices,
                members=members,
                racks=racks,
            ),
            profile=measured,
            time_limit=time_limit,
            evaluation=evaluation,
            trace=openb,
        )
        for name in names
    ]
    if (members or racks) and not any(each.workload.members for each in planned):
        raise UsageError("--members and --racks go with workloads of groups, such as --workload gang")
    if devices and not any(each.workload.devices for each in planned):
        raise UsageError("--devices goes with workloads about devices, such as --workload claim-template")
    bar = partial(progress_bar, enabled=not no_progress)
    measurements: list[Measurement] = []
    baseline: list[Measurement] | None = [] if compare and measured != default_profile() else None
    rows: list[GrowthRow] = []
    form_runs: FormsComparison | None = None
    problem, interrupted = "", False
    with kept(results, FACTORS) as keeper:
        try:
            if compared is not None:
                if len(planned) > 1:
                    raise UsageError("--forms takes one --workload")
                case = attrs.evolve(planned[0], percentage=ALL_NODES if percentage is None else percentage)
                for form_runs in _compare_forms(case, *compared, repeats or REPEATS, bar):  # noqa: B007  # the latest
                    pass
            elif growth is None:
                if sizes is not None:
                    raise UsageError("--sizes goes with --growth")
                _measure_all(planned, percentage, bar, measurements, baseline)
            else:
                given = {
                    "--nodes": nodes,
                    "--init-pods": init_pods,
                    "--pods": pods,
                    "--devices": devices,
                    "--members": members,
                    "--racks": racks,
                }
                case = _growing(growth, planned, given)
                case = attrs.evolve(case, percentage=ALL_NODES if percentage is None else percentage)
                _measure_rows(growth, cases(growth, case, _sizes(sizes)), bar, rows)
            if form_runs is not None:
                problem = _nothing_learnt(form_runs)
        except BenchmarkError as error:
            problem = str(error)
        except KeyboardInterrupt:
            interrupted = True
        report = BenchReport(
            Machine.this(),
            measured,
            evaluation,
            measurements,
            baseline or (),
            growth,
            rows,
            interrupted,
            source=str(profile or ""),
            forms=form_runs,
        )
        keep(report, {case.workload_name: case for case in planned}, keeper)
    if problem:
        complain(problem, ExitCode.FAILED)
    if as_json:
        print_json(report.to_json())
    else:
        print_bench_report(report)
    if problem:
        raise click.exceptions.Exit(ExitCode.FAILED)
    if interrupted:
        raise click.exceptions.Exit(ExitCode.INTERRUPTED)


def _profile_of(
    configuration: SchedulerConfiguration, scheduler_name: str | None
) -> tuple[Profile, int | None]:
    """Return the profile to measure, and its percentage of nodes to score if it has one.

    The profile is renamed to the default scheduler, which the workloads' pods name.
    """
    profile = selected_profile(configuration, scheduler_name)
    percentage = profile.percentage_of_nodes_to_score
    if percentage is None:
        percentage = configuration.percentage_of_nodes_to_score or None
    anonymous = attrs.evolve(
        profile, scheduler_name=DEFAULT_SCHEDULER_NAME, percentage_of_nodes_to_score=None
    )
    return anonymous, percentage


def _forms(text: str, enable: Sequence[str]) -> tuple[str, list[Form]]:
    """Return the plugin and its forms to compare. Raise an error unless it has all of them."""
    names = list(dict.fromkeys(text.split(",")))
    known = [each.value for each in Form]
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"--forms {text}: there is no form {unknown[0]!r}; there are {', '.join(known)}")
    if len(enable) != 1:
        raise UsageError("--forms goes with one --enable, which says whose forms")
    plugin, forms = enabled_plugin("--enable", enable[0]).name, [Form(name) for name in names]
    for form in forms:
        in_form(Registry().load(plugin), form)
    return plugin, forms


def _compare_forms(
    case: Case, plugin: str, forms: Sequence[Form], repeats: int, bar: Bar
) -> Iterator[FormsComparison | None]:
    """Yield the comparison so far after each measurement."""
    runs = list(form_cases(case, plugin, forms, repeats))
    done: list[tuple[Case, Measurement]] = []
    for number, each in enumerate(runs, 1):
        form = f"without {plugin}" if each.form is None else f"{plugin}, {each.form.form.value}"
        with bar(f"{number}/{len(runs)} {case.workload_name}, {form}") as progress:
            done.append((each, measure_in_child(each, time.perf_counter, progress)))
        yield comparison(case, plugin, done)


def _nothing_learnt(forms: FormsComparison) -> str:
    """Return why the comparison of forms isn't reliable; empty if it is."""
    if not forms.was_asked:
        return (
            f"{forms.plugin} wasn't asked about any node: the pods of {forms.workload} are none of its business, so "
            "its forms can't be compared; --workload NAME measures others"
        )
    if forms.difference:
        return f"the forms of {forms.plugin} don't decide alike, so their speed can't be compared: {forms.difference}"
    return ""


def _measure_all(
    planned: Sequence[Case],
    percentage: int | None,
    bar: Bar,
    done: list[Measurement],
    baseline: list[Measurement] | None,
) -> None:
    """Measure every part and percentage.

    Each result is added to `done` at once, so that an interruption doesn't lose it. Measurements with the default
    profile are added to `baseline`, if it is given.
    """
    percentages = (ADAPTIVE, ALL_NODES) if percentage is None else (percentage,)
    runs = [
        attrs.evolve(case, part=part, percentage=of_nodes)
        for case in planned
        for part in Part
        for of_nodes in percentages
    ]
    for number, case in enumerate(runs, 1):
        label = f"{number}/{len(runs)} {case.workload_name}, {case.part}"
        with bar(label) as progress:
            done.append(measure_in_child(case, time.perf_counter, progress))
        if baseline is not None:
            default = attrs.evolve(case, profile=default_profile())
            with bar(f"{label}, default profile") as progress:
                baseline.append(measure_in_child(default, time.perf_counter, progress))


def _growing(axis: Axis, planned: Sequence[Case], given: Mapping[str, int | None]) -> Case:
    """Return the case that grows. It has its default size, except for sizes that are given by option."""
    if len(planned) > 1:
        raise UsageError("--growth takes one --workload")
    case = planned[0]
    grown = {
        Axis.NODES: "--nodes",
        Axis.PODS: "--init-pods",
        Axis.DEVICES: "--devices",
        Axis.MEMBERS: "--members",
        Axis.RACKS: "--racks",
    }[axis]
    if given[grown] is not None:
        raise UsageError(f"--growth {axis} makes {grown} grow; --sizes says how far")
    if axis is Axis.DEVICES and not case.workload.devices:
        raise UsageError(
            f"--growth {axis} needs a --workload whose nodes have some, and {case.workload_name} has none"
        )
    if axis.is_about_groups and not case.members:
        raise UsageError(
            f"--growth {axis} needs a --workload of groups, and the pods of {case.workload_name} are in none"
        )
    if axis.is_about_groups and given["--pods"] is not None:
        raise UsageError(
            f"--growth {axis} measures {GROUPS} groups of each size, so --pods doesn't go with it"
        )
    nodes, initial_pods, pods = given["--nodes"], given["--init-pods"], given["--pods"]
    return attrs.evolve(
        case,
        nodes=NODES[axis] if nodes is None else nodes,
        initial_pods=INITIAL_PODS[axis] if initial_pods is None else initial_pods,
        pods=PODS if pods is None else pods,
    )


def _sizes(text: str | None) -> list[int] | None:
    if text is None:
        return None
    parts = text.split(",")
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise UsageError(f"--sizes {text}: must be whole numbers of at least 1, with commas between them")
    return [int(part) for part in parts]


def _measure_rows(axis: Axis, planned: Sequence[Case], bar: Bar, done: list[GrowthRow]) -> None:
    for number, case in enumerate(planned, 1):
        size = {
            Axis.NODES: case.nodes,
            Axis.PODS: case.initial_pods,
            Axis.DEVICES: case.devices,
            Axis.MEMBERS: case.members,
            Axis.RACKS: case.racks,
        }[axis]
        with bar(f"{number}/{len(planned)} {case.workload_name}, {size:,} {axis}") as progress:
            timed = partial(measure_in_child, timer=time.perf_counter, progress=progress)
            done.append(measure_row(axis, case, timed, footprint_in_child))
