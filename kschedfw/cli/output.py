"""The report of a simulation as text, for terminals of any width and for pipes, or as a page; and the progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import click
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from kschedfw.api.custom import plural_of
from kschedfw.api.extensions import ExtensionError, Extensions
from kschedfw.api.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY
from kschedfw.cli.exits import ExitCode, complain
from kschedfw.cli.tables import block, counted, plain_table, print_parts, stdout_console
from kschedfw.cluster import MissingObject

if TYPE_CHECKING:
    from kschedfw.api import Node
    from kschedfw.explain import Explanation, GroupStep
    from kschedfw.simulator import Replay, Report, Timeline


class Page(Protocol):
    """A page for people that is written to a file. Making one raises a KschedfwError if the file can't be written."""

    def __init__(self, file: Path) -> None: ...

    def write_simulation(self, nodes: Sequence[Node], timeline: Timeline, report: Report) -> None:
        """Write what became of the pods over time."""

    def write_explanation(self, attempts: Sequence[Explanation], shown: Explanation) -> None:
        """Write the decisions of a pod's attempts, the one that is shown first."""

    def write_group(self, cycles: Sequence[GroupStep], shown: GroupStep) -> None:
        """Write the decisions of a group's cycles, the one that is shown first."""


PAGES: Final[Extensions[type[Page]]] = Extensions("kschedfw.pages", "page", type, {"static": "kschedfw-lab"})


WIDE = 90
"""From this width on, in columns, the table of utilisation isn't split in two."""


@contextmanager
def progress_bar(
    label: str = "scheduling", *, enabled: bool = True
) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a callback (done, total) that draws a bar on stderr; None if stderr isn't a terminal."""
    with labelled_progress_bar(enabled=enabled) as update:
        yield None if update is None else partial(update, label)


@contextmanager
def labelled_progress_bar(*, enabled: bool = True) -> Iterator[Callable[[str, int, int], None] | None]:
    """Yield a callback (label, done, total) for several steps, as `progress_bar`."""
    with _bar("", in_bytes=False, enabled=enabled) as update:
        yield update


@contextmanager
def reading_bar(*, enabled: bool = True) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a callback (bytes read, all bytes) for reading, as `progress_bar`."""
    with _bar("reading", in_bytes=True, enabled=enabled) as update:
        yield None if update is None else partial(update, "reading")


@contextmanager
def _bar(label: str, *, in_bytes: bool, enabled: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    console = Console(stderr=True)
    if not enabled or not console.is_terminal:
        yield None
        return
    # Here, since a command in a pipe draws nothing: a tenth of its start would go into this.
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    numbers = DownloadColumn() if in_bytes else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), numbers, TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=None)

        def update(label: str, done: int, total: int) -> None:
            bar.update(task, description=label, completed=done, total=total)

        yield update


def print_report(report: Report) -> None:
    """Print the report to stdout."""
    console = stdout_console()
    print_parts(console, _parts(report, wide=console.width >= WIDE))


def _parts(report: Report, *, wide: bool) -> Iterator[RenderableType]:
    yield _headline(report)
    yield _pods(report)
    if report.reasons:
        yield _reasons(report)
    if report.missing:
        yield block(*missing_lines(report.missing))
    if report.replay is not None:
        yield _times(report.replay)
        if report.replay.peaks:
            yield _peaks(report.replay)
    elif report.utilisation:
        yield _utilisation(report, wide=wide)
        yield _pods_per_node(report)
    if report.plugin_seconds:
        yield _plugin_seconds(report)
    if report.notes:
        yield block(*(f"note: {note}" for note in report.notes))


def _headline(report: Report) -> Text:
    text = Text()
    if report.interrupted:
        text.append("Interrupted. This is what was done so far.\n", style="bold yellow")
    speed = (
        f" in {report.elapsed:.1f} s ({report.decisions_per_second:,.0f} decisions/s)" if report.tried else ""
    )
    text.append(f"{counted(report.tried, 'pod')} tried on {counted(report.nodes, 'node')}{speed}; ")
    text.append(f"profile {report.profile}, seed {report.seed}")
    return text


def _pods(report: Report) -> Padding:
    table = plain_table("Pods", "", "pods", "share")
    rows = [
        ("placed", report.placed, True),
        ("preempted", report.preempted, True),
        ("deleted", report.deleted, True),
        ("unschedulable", report.unschedulable, True),
        ("gated", report.gated, True),
        ("failed", report.failed, True),
        ("not tried", report.left, True),
        ("bound before", report.bound_before, False),
        ("for another scheduler", report.other_scheduler, False),
        ("finished", report.terminal, False),
        ("being deleted", report.terminating, False),
    ]
    for name, count, has_share in rows:
        if count or name in ("placed", "unschedulable"):
            share = _percent(count / report.pods) if has_share and report.pods else ""
            table.add_row(name, f"{count:,}", share)
    return block(table, _effort(report))


def _plugin_seconds(report: Report) -> Padding:
    table = plain_table("Time of plugins", "", "seconds", "share")
    whole = sum(report.plugin_seconds.values())
    for plugin, seconds in report.plugin_seconds.items():
        table.add_row(plugin, f"{seconds:,.3f}", _percent(seconds / whole) if whole else "")
    return block(table)


def _effort(report: Report) -> str:
    attempts = counted(report.attempts, "attempt")
    if not report.preemptions:
        return f"{attempts}, no preemption"
    return f"{attempts}, {counted(report.preemptions, 'preemption')} with {counted(report.victims, 'victim')}"


def _reasons(report: Report) -> Padding:
    table = plain_table("Why pods were not placed", "pods", "nodes", first="right")
    table.add_column("reason", overflow="fold", header_style="dim")
    for reason in report.reasons:
        table.add_row(f"{reason.pods:,}", f"{reason.nodes:,}" if reason.nodes else "", Text(reason.text))
    return block(table, "nodes: how often the reason ruled out a node, all pods together")


def _utilisation(report: Report, *, wide: bool) -> Padding:
    """Return the utilisation as one table, or as two if the terminal is too narrow."""
    amounts, spreads = ("requested", "of", "total"), ("mean", "p95", "max")
    groups = [amounts + spreads] if wide else [amounts, spreads]
    tables = [
        plain_table("Requested share of what nodes offer" if group[0] in amounts else "", "resource", *group)
        for group in groups
    ]
    for usage in report.utilisation:
        cells = {
            "requested": _amount(usage.resource, usage.requested),
            "of": _amount(usage.resource, usage.allocatable),
            "total": _percent(usage.share),
            "mean": _percent(usage.per_node.mean),
            "p95": _percent(usage.per_node.p95),
            "max": _percent(usage.per_node.max),
        }
        for table, group in zip(tables, groups, strict=True):
            table.add_row(Text(usage.resource), *(cells[name] for name in group))
    return block(*tables, "mean, p95, max: over the nodes that have the resource")


def _pods_per_node(report: Report) -> Padding:
    table = plain_table("Pods per node", "min", "mean", "p95", "max", "stddev", first="right")
    spread = report.pods_per_node
    table.add_row(
        f"{spread.min:.0f}",
        f"{spread.mean:.1f}",
        f"{spread.p95:.0f}",
        f"{spread.max:.0f}",
        f"{spread.stddev:.1f}",
    )
    return block(table)


def _times(replay: Replay) -> Padding:
    table = plain_table("Virtual time", "", "mean", "p95", "max")
    waiting = replay.waiting
    row = (f"{seconds:,.1f} s" for seconds in (waiting.mean, waiting.p95, waiting.max))
    table.add_row("from arrival to binding", *row)
    return block(table, f"makespan: {replay.makespan:,.1f} s; {counted(replay.departed, 'pod')} left again")


def _peaks(replay: Replay) -> Padding:
    table = plain_table("Peak of what was requested", "resource", "requested", "of", "share")
    for peak in replay.peaks:
        table.add_row(
            Text(peak.resource),
            _amount(peak.resource, peak.requested),
            _amount(peak.resource, peak.allocatable),
            _percent(peak.share),
        )
    return block(table)


def _percent(share: float) -> str:
    return f"{share * 100:.1f}%"


def _amount(resource: str, amount: int) -> str:
    if resource == CPU:
        return f"{amount / 1000:,.1f}"
    if resource not in (MEMORY, EPHEMERAL_STORAGE) and not resource.startswith("hugepages-"):
        return f"{amount:,}"
    size = float(amount)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:,.1f} {unit}"
        size /= 1024
    return f"{size:,.1f} TiB"


def page_of(file: Path | None) -> Page | None:
    """Return the page to write; None without `--html`. If nothing that is installed writes any, the command ends.

    Raises:
        KschedfwError: the file can't be written.
    """
    if file is None:
        return None
    try:
        page = PAGES.load("static")
    except ExtensionError as error:
        raise click.exceptions.Exit(complain(f"--html: {error}", ExitCode.NOTHING_TO_DO)) from None
    return page(file)


MOST_NAMED = 3
"""The most objects of a kind, and pods of an object, that are named; the others are counted."""

EXPORT = (
    "kubectl get -A -o json "
    "nodes,pods,namespaces,services,replicationcontrollers,replicasets,statefulsets,poddisruptionbudgets,"
    "priorityclasses,runtimeclasses,limitranges,resourcequotas,persistentvolumeclaims,persistentvolumes,"
    "storageclasses,csinodes,csidrivers,csistoragecapacities,volumeattachments,deviceclasses,"
    "resourceclaims,resourceclaimtemplates,resourceslices"
    " > cluster.json"
)
"""The command that exports all that scheduling reads, as on the documentation's pages."""

NO_NODES = f"the input has no nodes; this exports what scheduling reads: {EXPORT}"
NO_OBJECTS = f"the input has no nodes and no pods; this exports what scheduling reads: {EXPORT}"


def missing_lines(missing: Sequence[MissingObject]) -> Iterator[str]:
    """Yield a line for each missing object, and how to get them; nothing if none is missing."""
    if not missing:
        return
    yield "Missing from the input, though pods refer to it:"
    # They come by kind (`missing_objects`).
    for kind, group in groupby(missing, key=lambda each: each.kind):
        objects = list(group)
        for each in objects[:MOST_NAMED]:
            yield f"{kind} {each.name}: {_pod_names(each.pods)}"
        if rest := objects[MOST_NAMED:]:
            yield f"{kind}: {len(rest):,} more"
    kinds = ",".join(dict.fromkeys(plural_of(each.kind) for each in missing))
    yield f"kubectl get {kinds} -A -o yaml dumps it; without it, decisions may be others"


def lack_of_work(report: Report) -> str:
    """Return why there was nothing to schedule; empty if there were pods and nodes."""
    if not report.nodes:
        return NO_NODES
    if report.pods:
        return ""
    others = [
        (report.bound_before, "on a node already (--reschedule frees such pods)"),
        (report.other_scheduler, "for another scheduler"),
        (report.terminal, "finished"),
        (report.terminating, "being deleted"),
        (len(report.refused), "refused by admission"),
    ]
    told = ", ".join(f"{count:,} {what}" for count, what in others if count)
    return f"the input has no pods to schedule{f': {told}' if told else ''}"


def missing_of(missing: Iterable[MissingObject], pod: str) -> list[MissingObject]:
    """Return the missing objects that one pod refers to, by the pod's key."""
    return [MissingObject(each.kind, each.name, (pod,)) for each in missing if pod in each.pods]


def _pod_names(pods: Sequence[str]) -> str:
    rest = len(pods) - MOST_NAMED
    return ", ".join([*pods[:MOST_NAMED], *([f"{rest:,} more"] if rest > 0 else [])])
