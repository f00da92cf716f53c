"""The report as text, for terminals of any width and for pipes, and the progress bar."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from kschedfw.api.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY
from kschedfw.simulator import Replay, Report

# A pipe has no width; what reads it (grep, less) does better with long lines than with broken ones.
PIPE_WIDTH = 1000
WIDE = 90
"""From this width on (in columns), tables show what can be had from the JSON, too."""


@contextmanager
def progress_bar(*, enabled: bool = True) -> Iterator[Callable[[int, int], None] | None]:
    """Gives a callback (done, total) that draws a bar on stderr, or None where stderr is no terminal."""
    console = Console(stderr=True)
    if not enabled or not console.is_terminal:
        yield None
        return
    columns = (TextColumn("scheduling"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def update(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield update


def print_report(report: Report) -> None:
    """Print the report to stdout."""
    unlimited = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    console = Console(highlight=False, width=PIPE_WIDTH if unlimited else None)
    with console.capture() as capture:
        console.print(_headline(report))
        console.print(_pods(report))
        if report.reasons:
            console.print(_reasons(report))
        if report.replay is not None:
            console.print(_times(report.replay))
            if report.replay.peaks:
                console.print(_peaks(report.replay))
        elif report.utilisation:
            console.print(_utilisation(report, wide=console.width >= WIDE))
            console.print(_pods_per_node(report))
        if report.notes:
            console.print(_block(*(f"note: {note}" for note in report.notes)))
    # rich fills every line with spaces up to the width
    print("\n".join(line.rstrip() for line in capture.get().splitlines()))


def _headline(report: Report) -> Text:
    text = Text()
    if report.interrupted:
        text.append("Interrupted. This is what was done so far.\n", style="bold yellow")
    speed = (
        f" in {report.elapsed:.1f} s ({report.decisions_per_second:,.0f} decisions/s)" if report.tried else ""
    )
    text.append(f"{_count(report.tried, 'pod')} tried on {_count(report.nodes, 'node')}{speed}; ")
    text.append(f"profile {report.profile}, seed {report.seed}")
    return text


def _table(title: str, *headers: str, first: str = "left") -> Table:
    """A table without lines, since those are what breaks first on paper and in pipes."""
    table = Table(
        title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0), pad_edge=False
    )
    for index, header in enumerate(headers):
        left = index == 0 and first == "left"
        table.add_column(
            header,
            justify="left" if left else "right",
            overflow="fold",
            no_wrap=not left,
            header_style="dim",
        )
    return table


def _block(*parts: Table | str) -> Padding:
    """Tables and lines under each other, with an empty line before them."""
    return Padding(Group(*(Text(part) if isinstance(part, str) else part for part in parts)), (1, 0, 0, 0))


def _pods(report: Report) -> Padding:
    table = _table("Pods", "", "pods", "share")
    rows = [
        ("placed", report.placed, True),
        ("preempted", report.preempted, True),
        ("unschedulable", report.unschedulable, True),
        ("gated", report.gated, True),
        ("failed", report.failed, True),
        ("not tried", report.left, True),
        ("bound before", report.bound_before, False),
        ("for another scheduler", report.other_scheduler, False),
        ("finished", report.terminal, False),
        ("being deleted", report.terminating, False),
    ]
    for name, count, counted in rows:
        if count or name in ("placed", "unschedulable"):
            share = _percent(count / report.pods) if counted and report.pods else ""
            table.add_row(name, f"{count:,}", share)
    return _block(table, _effort(report))


def _effort(report: Report) -> str:
    attempts = _count(report.attempts, "attempt")
    if not report.preemptions:
        return f"{attempts}, no preemption"
    return f"{attempts}, {_count(report.preemptions, 'preemption')} with {_count(report.victims, 'victim')}"


def _reasons(report: Report) -> Padding:
    table = _table("Why pods were not placed", "pods", "nodes", first="right")
    table.add_column("reason", overflow="fold", header_style="dim")
    for reason in report.reasons:
        table.add_row(f"{reason.pods:,}", f"{reason.nodes:,}" if reason.nodes else "", Text(reason.text))
    return _block(table, "nodes: how often the reason ruled out a node, all pods together")


def _utilisation(report: Report, *, wide: bool) -> Padding:
    amounts = ("requested", "of") if wide else ()
    table = _table("Requested share of what nodes offer", "resource", *amounts, "total", "mean", "p95", "max")
    for usage in report.utilisation:
        shares = (usage.share, usage.per_node.mean, usage.per_node.p95, usage.per_node.max)
        totals = (usage.requested, usage.allocatable) if wide else ()
        table.add_row(
            Text(usage.resource),
            *(_amount(usage.resource, total) for total in totals),
            *map(_percent, shares),
        )
    return _block(table, "mean, p95, max: over the nodes that have the resource")


def _pods_per_node(report: Report) -> Padding:
    table = _table("Pods per node", "min", "mean", "p95", "max", "stddev", first="right")
    spread = report.pods_per_node
    table.add_row(
        f"{spread.min:.0f}",
        f"{spread.mean:.1f}",
        f"{spread.p95:.0f}",
        f"{spread.max:.0f}",
        f"{spread.stddev:.1f}",
    )
    return _block(table)


def _times(replay: Replay) -> Padding:
    table = _table("Virtual time", "", "mean", "p95", "max")
    waiting = replay.waiting
    row = (f"{seconds:,.1f} s" for seconds in (waiting.mean, waiting.p95, waiting.max))
    table.add_row("from arrival to binding", *row)
    return _block(table, f"makespan: {replay.makespan:,.1f} s; {_count(replay.departed, 'pod')} left again")


def _peaks(replay: Replay) -> Padding:
    table = _table("Peak of what was requested", "resource", "requested", "of", "share")
    for peak in replay.peaks:
        table.add_row(
            Text(peak.resource),
            _amount(peak.resource, peak.requested),
            _amount(peak.resource, peak.allocatable),
            _percent(peak.share),
        )
    return _block(table)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


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
