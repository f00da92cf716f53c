"""The tally of a shadow as tables, and single decisions as lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kschedfw.cli import block, counted, plain_table
from kschedfw_replay.shadow.decision import Agreement, Cause, Comparison
from kschedfw_replay.shadow.tally import QUANTILES, Tally

_MOST_REASONS = 8


def line(comparison: Comparison, *, cluster: str = "cluster", shadow: str = "shadow") -> str:
    """Return a decision that doesn't agree as one line, with the names of the two sides."""
    recorded = comparison.recorded
    theirs = _decided(recorded.node, recorded.nominated)
    ours = _decided(comparison.ours, comparison.nominated)
    reason = comparison.reason
    if comparison.agreement is Agreement.FAILED:
        ours = "failed"
    elif comparison.agreement is Agreement.BETTER:
        ours += f" by {counted(comparison.margin, 'point')}"
        reason = _largest_lead(comparison)
    cause = f" ({comparison.cause})" if comparison.cause else ""
    because = f": {reason}" if reason else ""
    return f"{comparison.agreement}{cause}  {recorded.pod.key}: {cluster} {theirs}, {shadow} {ours}{because}"


def _decided(node: str, nominated: str) -> str:
    return node or (f"refused, nominated to {nominated}" if nominated else "refused")


def _largest_lead(comparison: Comparison) -> str:
    """Return the plugin by whose score the better node has the largest lead; empty if by none."""
    leads = {plugin: ours - theirs for plugin, (theirs, ours) in comparison.points.items()}
    plugin = max(leads, key=leads.__getitem__, default="")
    return f"most by {plugin}" if plugin and leads[plugin] > 0 else ""


def summary(tally: Tally, backlog: float = 0.0) -> RenderableType:
    """Return all counts as tables; `backlog` is the delay of the shadow in seconds."""
    return Group(*_parts(tally, backlog))


def _parts(tally: Tally, backlog: float) -> Iterator[RenderableType]:
    total = tally.decisions
    share = f", {tally.agreeing / total:.2%} agree" if total else ""
    late = f"; {backlog:.0f} s behind" if backlog >= 1 else ""
    yield Text(f"{counted(total, 'decision')} beside the cluster's scheduler{share}{late}")
    yield block(agreements(tally.counts))
    if tally.failures:
        yield _failures(tally)
    if tally.refusals:
        yield _refusals(tally)
    if total:
        shown = ", ".join(f"{name} {tally.latency(share) * 1000:.1f} ms" for name, share in QUANTILES.items())
        yield block(f"time for a decision, with its explanation: {shown}")
    if tally.differing:
        yield block("the latest that differ:", *(f"  {line(each)}" for each in tally.differing))


def agreements(counts: Mapping[tuple[Agreement, Cause | None], int], title: str = "") -> Table:
    """Return a table of the decisions by agreement, and by the cause where they don't agree."""
    total = sum(counts.values())
    table = plain_table("", title, "decisions", "share")
    table.columns[0].no_wrap = True
    table.add_column("why", overflow="fold", header_style="dim")
    for agreement in Agreement:
        count = sum(number for (which, _), number in counts.items() if which is agreement)
        if not count and not agreement.agrees:
            continue
        causes = ((counts.get((agreement, cause), 0), cause) for cause in Cause)
        why = ", ".join(f"{number:,} {cause}" for number, cause in causes if number)
        table.add_row(str(agreement), f"{count:,}", f"{count / total:.2%}" if total else "", why)
    return table


def _failures(tally: Tally) -> RenderableType:
    table = plain_table("Failures of plugins", "decisions", "plugin", first="right")
    table.add_column("first message", overflow="fold", header_style="dim")
    for plugin, count in tally.failures.most_common():
        table.add_row(f"{count:,}", plugin or "(an extender)", Text(tally.messages[plugin]))
    return block(table)


def _refusals(tally: Tally) -> RenderableType:
    table = plain_table("Why the cluster's node isn't feasible here", "decisions", "plugin", first="right")
    table.add_column("reason", overflow="fold", header_style="dim")
    for (plugin, reason), count in tally.refusals.most_common(_MOST_REASONS):
        table.add_row(f"{count:,}", plugin, Text(reason))
    return block(table)
