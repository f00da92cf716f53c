"""The tally of a shadow as tables, and single decisions as lines."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from kschedfw.cli import block, counted, plain_table
from kschedfw_replay.shadow.decision import Agreement, Cause, Comparison
from kschedfw_replay.shadow.tally import QUANTILES, Tally

_MOST_REASONS = 8


def line(comparison: Comparison) -> str:
    """One decision that doesn't agree, in one line."""
    recorded = comparison.recorded
    theirs = recorded.node or (
        f"refused, nominated to {recorded.nominated}" if recorded.nominated else "refused"
    )
    ours = comparison.ours or (
        f"refused, nominated to {comparison.nominated}" if comparison.nominated else "refused"
    )
    if comparison.agreement is Agreement.FAILED:
        ours = "failed"
    elif comparison.agreement is Agreement.BETTER:
        ours += f" by {comparison.margin} points"
    cause = f" ({comparison.cause})" if comparison.cause else ""
    reason = f": {comparison.reason}" if comparison.reason else ""
    return f"{comparison.agreement}{cause}  {recorded.pod.key}: cluster {theirs}, shadow {ours}{reason}"


def summary(tally: Tally, backlog: float = 0.0) -> RenderableType:
    """All that is counted, as tables; `backlog` is by how many seconds the shadow is late."""
    return Group(*_parts(tally, backlog))


def _parts(tally: Tally, backlog: float) -> Iterator[RenderableType]:
    total = tally.decisions
    share = f", {tally.agreeing / total:.2%} agree" if total else ""
    late = f"; {backlog:.0f} s behind" if backlog >= 1 else ""
    yield Text(f"{counted(total, 'decision')} beside the cluster's scheduler{share}{late}")
    yield _agreements(tally)
    if tally.failures:
        yield _failures(tally)
    if tally.refusals:
        yield _refusals(tally)
    if total:
        shown = ", ".join(f"{name} {tally.latency(share) * 1000:.1f} ms" for name, share in QUANTILES.items())
        yield block(f"time for a decision, with its explanation: {shown}")
    if tally.differing:
        yield block("the latest that differ:", *(f"  {line(each)}" for each in tally.differing))


def _agreements(tally: Tally) -> RenderableType:
    table = plain_table("", "", "decisions", "share")
    table.columns[0].no_wrap = True
    table.add_column("why", overflow="fold", header_style="dim")
    for agreement in Agreement:
        count = tally.of(agreement)
        if not count and not agreement.agrees:
            continue
        causes = ((tally.counts.get((agreement, cause), 0), cause) for cause in Cause)
        why = ", ".join(f"{number:,} {cause}" for number, cause in causes if number)
        share = f"{count / tally.decisions:.2%}" if tally.decisions else ""
        table.add_row(str(agreement), f"{count:,}", share, why)
    return block(table)


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
