"""A benchmark's report as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from kschedfw import Evaluation, default_profile
from kschedfw.cli import block, counted, plain_table, print_parts, stdout_console
from kschedfw_lab.bench.forms import FormRuns, FormsComparison, FormVerdict
from kschedfw_lab.bench.growth import LIMIT_BYTES, Axis, GrowthRow
from kschedfw_lab.bench.memo import PluginUse
from kschedfw_lab.bench.report import BenchReport
from kschedfw_lab.bench.results import Measurement, Part
from kschedfw_lab.bench.stage import ADAPTIVE, ALL_NODES
from kschedfw_lab.bench.yardstick import (
    RESIDENT_MIB,
    SIDE_BY_SIDE_SOURCE,
    SOURCE,
    kube_scheduler_pods_per_second,
    side_by_side_pods_per_second,
)

KIB, MIB = 1024, 1024 * 1024
_HELD = {Axis.NODES: "KiB/node", Axis.PODS: "KiB/placed pod", Axis.DEVICES: "KiB/device"}
_DEFAULT_PROFILE = "default profile"
_TITLES = {
    Part.ALGORITHM: "The algorithm alone",
    Part.END_TO_END: "End to end, from the queue to the binding",
}


def print_bench_report(report: BenchReport) -> None:
    """Print the report to stdout."""
    print_parts(stdout_console(), _parts(report), keep_tables=True)


def _parts(report: BenchReport) -> Iterator[RenderableType]:
    yield _headline(report)
    for part, title in _TITLES.items():
        measured = [measurement for measurement in report.measurements if measurement.part is part]
        if measured:
            yield _measurements(title, measured, report)
    if report.measurements:
        yield _notes(report.measurements)
    if report.axis is not None:
        for part in Part:
            if rows := [row for row in report.growth if row.measurement.part is part]:
                yield _growth(report.axis, rows)
    if report.forms is not None:
        yield _forms(report.forms)
    if report.plugins:
        yield _plugins(report.plugins)


def _headline(report: BenchReport) -> Text:
    machine = report.machine
    text = Text()
    if report.interrupted:
        text.append("Interrupted. This is what was measured so far.\n", style="bold yellow")
    text.append(
        f"kschedfw {machine.kschedfw} on {machine.python}, NumPy {machine.numpy}, {machine.system}, "
        f"{machine.cpus} CPUs; {_changes(report)}"
    )
    if report.evaluation is not Evaluation.MEMO:
        text.append(f"; evaluation: {report.evaluation.value}")
    return text


def _changes(report: BenchReport) -> str:
    """Return the profile's differences from the default one, or its file."""
    if report.source:
        return f"profile of {report.source}"
    default = {plugin.name: plugin for plugin in default_profile().multi_point}
    plugins = {plugin.name: plugin for plugin in report.profile.multi_point}
    changes = [f"without {name}" for name in default if name not in plugins]
    changes += [
        f"with {plugin.name}" + (f" (weight {plugin.weight})" if plugin.weight else "")
        for plugin in plugins.values()
        if plugin != default.get(plugin.name)
    ]
    changes += [f"with arguments for {name}" for name in report.profile.args]
    return ", ".join((_DEFAULT_PROFILE, *changes))


def _measurements(title: str, measured: Sequence[Measurement], report: BenchReport) -> Padding:
    reference = any(kube_scheduler_pods_per_second(each) is not None for each in measured)
    headers = [
        "workload",
        "nodes",
        "placed\nbefore",
        "sampling",
        "pods/s",
        "CPU/pod",
        "calls",
        "p50",
        "p99",
        "memory",
    ]
    if report.baseline:
        headers.append("cost")
    table = plain_table(
        title, *headers, *(("kube-\nscheduler", "ratio", "side\nby side") if reference else ())
    )

    def add(name: RenderableType, each: Measurement, cost: str) -> None:
        yardstick = kube_scheduler_pods_per_second(each)
        other = side_by_side_pods_per_second(each)
        beside = (
            ("", "")
            if yardstick is None
            else (f"{yardstick:,.0f}", f"{each.pods_per_second / yardstick:,.2f}")
        ) + ("" if other is None else f"{other:,.0f}",)
        table.add_row(
            name,
            f"{each.nodes:,}",
            f"{each.initial_pods:,}",
            _sampling(each.percentage),
            _rate(each.pods_per_second),
            _milliseconds(each.cpu_seconds_per_pod),
            "" if each.calls_per_pod is None else f"{each.calls_per_pod:,}",
            _milliseconds(each.latency.p50),
            _milliseconds(each.latency.p99),
            _mib(each.peak_resident_bytes),
            *((cost,) if report.baseline else ()),
            *(beside if reference else ()),
        )

    for each in measured:
        default = report.baseline_of(each)
        add(Text(each.workload), each, "" if default is None else _cost(each, default))
        if default is not None:
            add(Padding(_DEFAULT_PROFILE, (0, 0, 0, 2)), default, "")
    lines = [
        "CPU/pod: the processor's time, which other programs on the machine change less; p50, p99: of single attempts",
        "calls: of Python functions per pod, counted in the algorithm with further pods; the same on every machine",
        "memory: the most that the process had resident, with Python and all objects",
    ]
    if report.baseline:
        lines.append(
            f"cost: what a pod takes more than with the {_DEFAULT_PROFILE}, of the time per pod (1 / pods/s); "
            "of one run each: --forms tells it from noise"
        )
    if reference:
        least, most = RESIDENT_MIB
        lines.append(f"kube-scheduler: pods/s of {SOURCE}; it had {least}–{most} MiB resident")
        lines.append(f"side by side: {SIDE_BY_SIDE_SOURCE}")
    return block(table, *lines)


def _notes(measured: Sequence[Measurement]) -> Padding:
    lines = []
    for each in measured:
        where = f"{each.workload}, {each.part}, {_sampling(each.percentage)}"
        if each.finished < each.wanted:
            lines.append(
                f"note: {where}: ended after {each.finished:,} of {each.wanted:,} pods ({each.seconds:.1f} s)"
            )
        if each.placed < each.finished:
            lines.append(
                f"note: {where}: {each.finished - each.placed:,} of {each.finished:,} pods fit nowhere"
            )
    collecting = sum(each.garbage_collection.seconds for each in measured)
    total = sum(each.seconds for each in measured)
    lines.append(f"garbage collection took {collecting / total if total else 0.0:.1%} of the time")
    return block(*lines)


def _growth(axis: Axis, rows: Sequence[GrowthRow]) -> Padding:
    """Return the growth of one part as a table."""
    first = rows[0].measurement
    fixed, grown = {
        Axis.NODES: (f"{first.initial_pods:,} pods placed before", "nodes"),
        Axis.PODS: (f"{first.nodes:,} nodes", "placed before"),
        Axis.DEVICES: (f"{first.nodes:,} nodes", "devices of each"),
        Axis.MEMBERS: (f"{first.nodes:,} nodes in {counted(first.racks, 'rack')}", "pods of a group"),
        Axis.RACKS: (f"{first.nodes:,} nodes, groups of {counted(first.members, 'pod')}", "racks"),
    }[axis]
    part = "the algorithm alone" if first.part is Part.ALGORITHM else "end to end"
    title = f"{first.workload}, {part}, {_sampling(first.percentage)}, {fixed}"
    held = _HELD.get(axis)
    headers = [grown, "per pod", "CPU/pod", "× the first", "p50", "p99", "memory"]
    headers[-1:-1] = [] if held is None else [held]
    headers[1:1] = ["pods/s", "CPU/group"] if axis.is_about_groups else []
    table = plain_table(title, *headers, first="right")
    for row in rows:
        measured = row.measurement
        ratio = measured.cpu_seconds_per_pod / first.cpu_seconds_per_pod if first.cpu_seconds_per_pod else 0.0
        cells = [
            f"{row.size:,}",
            _milliseconds(measured.seconds_per_pod),
            _milliseconds(measured.cpu_seconds_per_pod),
            f"{ratio:,.1f}",
            _milliseconds(measured.latency.p50),
            _milliseconds(measured.latency.p99),
            _mib(measured.peak_resident_bytes),
        ]
        cells[-1:-1] = [] if row.bytes_each is None else [f"{row.bytes_each / KIB:,.1f}"]
        if axis.is_about_groups:
            cells[1:1] = [_rate(measured.pods_per_second), _milliseconds(measured.cpu_seconds_per_attempt)]
        table.add_row(*cells)
    lines = ["× the first: of the processor's time for a pod"]
    if axis.is_about_groups:
        lines.append("p50, p99: of groups")
    else:
        limit = f"{LIMIT_BYTES[axis] / KIB:.0f} KiB"
        lines.append(f"{held}: what is held beyond the objects from manifests; the limit is {limit}")
    return block(table, *lines)


def _plugins(uses: Sequence[PluginUse]) -> Padding:
    table = plain_table("Asked about nodes, per pod", "plugin", "reads", "batch", "asked", "spared")
    table.add_column("why answers weren't used again", overflow="fold", header_style="dim")
    for use in uses:
        table.add_row(
            Text(use.plugin),
            "" if use.reads is None else use.reads.value,
            "yes" if use.batch else "no",
            f"{use.rows_per_attempt:,.1f}",
            f"{use.spared:.1%}",
            Text(use.why_not if use.rows_asked else ""),
        )
    return block(
        table,
        "asked: nodes that the plugin's filter and score were really called for, in either form, per attempt",
        "spared: the share of all nodes that it wasn't asked about, since answers were known or it had nothing to say",
        *(f"note: {use.plugin}: {use.suggestion}" for use in uses if use.suggestion),
    )


def _cost(measured: Measurement, default: Measurement) -> str:
    more = measured.seconds_per_pod - default.seconds_per_pod
    return f"+{more * 1000:,.2f} ms" if more > 0 else "none seen"


def _forms(forms: FormsComparison) -> Padding:
    title = (
        f"{forms.plugin} on {forms.workload}, the algorithm alone, {_sampling(forms.percentage)}, "
        f"{forms.nodes:,} nodes, {forms.initial_pods:,} pods placed before"
    )
    table = plain_table(
        title, "form", "asked", "per pod", "fastest–slowest", "cost", "against the form above"
    )
    without, before = forms.runs[0], None
    for each in forms.runs:
        cost = forms.cost(each)
        is_judged = forms.was_asked and each is not without
        table.add_row(
            "without it" if each.form is None else each.form.value,
            "" if each is without else f"{each.asked:,.1f}",
            _milliseconds(each.median),
            f"{_milliseconds(each.fastest)}–{_milliseconds(each.slowest)}",
            ""
            if not is_judged
            else f"+{_milliseconds(cost)}"
            if cost is not None
            else _no_cost(each.against(without)),
            "" if before is None or not is_judged else _against(each, before),
        )
        before = None if each is without else each
    judged = [
        "cost: what a pod takes more than without the plugin",
        "no difference above noise: some run of the one is faster than some run of the other, and the other way round",
    ]
    return block(
        table,
        "asked: nodes that the plugin's filter and score were really called for, in either form, per attempt",
        f"per pod: the median of {forms.repeats} runs, in turns, each in a process of its own",
        *(judged if forms.was_asked else [f"no verdict: {forms.plugin} wasn't asked about any node"]),
    )


def _no_cost(verdict: FormVerdict) -> str:
    return "none, it is faster" if verdict is FormVerdict.FASTER else verdict.value


def _against(each: FormRuns, before: FormRuns) -> str:
    match each.against(before):
        case FormVerdict.FASTER:
            return f"{before.median / each.median:,.2f} × as fast"
        case FormVerdict.SLOWER:
            return f"{each.median / before.median:,.2f} × as slow"
        case FormVerdict.NO_DIFFERENCE:
            return FormVerdict.NO_DIFFERENCE.value


def _sampling(percentage: int) -> str:
    return {ADAPTIVE: "default", ALL_NODES: "all nodes"}.get(percentage, f"{percentage} %")


def _rate(pods_per_second: float) -> str:
    return f"{pods_per_second:,.0f}" if pods_per_second >= 10 else f"{pods_per_second:.1f}"


def _milliseconds(seconds: float) -> str:
    milliseconds = seconds * 1000
    return f"{milliseconds:,.2f} ms" if milliseconds < 10 else f"{milliseconds:,.0f} ms"


def _mib(size: int | None) -> str:
    return "?" if size is None else f"{size / MIB:,.0f} MiB"
