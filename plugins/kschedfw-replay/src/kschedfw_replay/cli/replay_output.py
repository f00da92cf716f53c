"""The results of replays as text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kschedfw.cli import block, counted, plain_table, print_parts, stdout_console
from kschedfw_replay.replaying.comparing import ReplayComparison
from kschedfw_replay.replaying.fidelity import FidelityReport
from kschedfw_replay.replaying.measures import Measures, Waits
from kschedfw_replay.replaying.replay import Replayed
from kschedfw_replay.replaying.upgrading import Upgrade
from kschedfw_replay.shadow.output import agreements, line

REASONS = 10
"""The number of reasons for moves that are listed; the JSON has all."""

_UNITS: Final = (
    ("seconds", 1, 120),
    ("minutes", 60, 7_200),
    ("hours", 3_600, 172_800),
    ("days", 86_400, math.inf),
)
"""Units of time, with their seconds and the number of seconds below which they are used."""


def print_replays(comparison: ReplayComparison) -> None:
    """Print them to stdout."""
    print_parts(stdout_console(), _parts(comparison))


def _parts(comparison: ReplayComparison) -> Iterator[RenderableType]:
    begin = datetime.fromtimestamp(comparison.begins, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    yield Text(
        f"{counted(comparison.pods, 'pod')} in {_span(comparison.ends - comparison.begins)} from {begin}"
    )
    yield block(_table(comparison))
    for run in comparison.runs:
        if run.why:
            yield _moves(run)
    for upgrade in comparison.upgrades:
        yield _upgrade(upgrade)
    if comparison.fidelity is not None:
        yield _fidelity(comparison.fidelity, comparison.runs[0].label)
    notes = []
    if comparison.gaps:
        notes.append(f"{counted(comparison.gaps, 'gap')}: what happened meanwhile happens at the end of it")
    notes += [f"{count:,} of {kind} couldn't be read" for kind, count in comparison.left_out.items()]
    if notes:
        yield block(*(f"note: {note}" for note in notes))


def _span(seconds: float) -> str:
    """Return a duration as text: `65 seconds`, `2.24 hours`, `7 days`."""
    unit, size = next((unit, size) for unit, size, most in _UNITS if seconds < most)
    return f"{seconds / size:.3g} {unit}"


def _table(comparison: ReplayComparison) -> Table:
    table = plain_table("", "", "recorded", *(run.label for run in comparison.runs))
    for name, *cells in _measured([comparison.recorded, *(run.measures for run in comparison.runs)]):
        table.add_row(Text(name), *cells)
    runs = comparison.runs
    for name, counts in {
        "on the recorded node": [run.same for run in runs],
        "moved": [run.moved for run in runs],
        "bound only here": [run.gained for run in runs],
        "bound only in the recording": [run.lost for run in runs],
    }.items():
        table.add_row(Text(name), "", *(f"{count:,}" for count in counts))
    return table


def _measured(every: Sequence[Measures]) -> Iterator[Sequence[str]]:
    """Yield rows: a name, and a cell for each of the measures."""
    yield "bound", *(f"{each.bound:,}" for each in every)
    yield "pending at the end", *(f"{each.pending:,}" for each in every)
    yield from _waits("wait", [each.waits for each in every])
    classes = dict.fromkeys(name for each in every for name in each.waits_by_class)
    if len(classes) > 1:
        for name in classes:
            of_class = [each.waits_by_class.get(name, Waits()) for each in every]
            yield from _waits(f"wait, {name or 'no class'}", of_class)
    for resource in dict.fromkeys(name for each in every for name in each.utilisation):
        shares = [each.utilisation.get(resource, 0.0) for each in every]
        yield f"mean utilisation, {resource}", *(f"{share:.1%}" for share in shares)
    for resource in dict.fromkeys(name for each in every for name in each.fragmentation):
        shares = [each.fragmentation.get(resource, 0.0) for each in every]
        yield f"fragmentation, {resource}", *(f"{share:.1%}" for share in shares)
    yield "hours of nodes in use", *(f"{each.node_hours:,.2f}" for each in every)
    if any(each.cost is not None for each in every):
        yield "cost of nodes in use", *(_price(each.cost) for each in every)
        yield "cost of all nodes", *(_price(each.cost_of_all) for each in every)
    yield "preemptions", *(f"{each.preemptions:,}" for each in every)
    yield "victims", *(f"{each.victims:,}" for each in every)
    yield "evictions", *(f"{each.evictions:,}" for each in every)


def _price(price: float | None) -> str:
    return "" if price is None else f"{price:,.2f}"


def _waits(name: str, every: Sequence[Waits]) -> Iterator[Sequence[str]]:
    yield f"{name}, p50", *(f"{each.p50:,.3f} s" for each in every)
    yield f"{name}, p95", *(f"{each.p95:,.3f} s" for each in every)
    yield f"{name}, p99", *(f"{each.p99:,.3f} s" for each in every)
    yield f"{name}, max", *(f"{each.max:,.3f} s" for each in every)


def _upgrade(upgrade: Upgrade) -> Padding:
    if not upgrade.moves:
        return block(f"{upgrade.label}: every pod has the node that it has under {upgrade.baseline}")
    table = plain_table("", f"{upgrade.label}: by which change not the node of {upgrade.baseline}", "pods")
    for reason, count in upgrade.reasons.items():
        table.add_row(Text(reason), f"{count:,}")
    return block(table)


def _moves(run: Replayed) -> Padding:
    explained = run.why.total()
    table = plain_table("", f"{run.label}: why not the recorded node", "pods")
    for reason, count in run.why.most_common(REASONS):
        table.add_row(Text(reason), f"{count:,}")
    parts: list[RenderableType] = [table]
    parts += [Text(f"{each.pod}: {each.why}") for each in run.examples]
    if explained < run.moved:
        parts.append(Text(f"of the first {explained:,} moves; --explain N explains more"))
    return Padding(Group(*parts), (1, 0, 0, 0))


def _fidelity(report: FidelityReport, label: str) -> Padding:
    title = f"{counted(report.decisions, 'recorded decision')} beside {label}"
    table = agreements(report.counts, title)
    table.add_row("same or tied", "", f"{report.agreeing:.2%}", "")
    examples = (Text(line(each, cluster="recorded", shadow="here")) for each in report.examples)
    return Padding(Group(table, *examples), (1, 0, 0, 0))
