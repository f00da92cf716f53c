"""The answer of `kschedfw pending` as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from kschedfw.cli import block, counted, plain_table, print_parts, stdout_console
from kschedfw.explain import SCHEMA_VERSION
from kschedfw_advisor.cli.what_if_output import Background, counts_text, pods_text
from kschedfw_advisor.idle import Idle
from kschedfw_advisor.lint import OddAmount
from kschedfw_advisor.observed import Disagreement, Stuck, recorded_message
from kschedfw_advisor.pending import KindOutcome, Pending, PodKind
from kschedfw_advisor.quotas import Uncreated
from kschedfw_advisor.remedies import Remedy

_MOST_ROWS: Final = 40
_MOST_CAUSES: Final = 3
"""The number of kinds of pods in the table, and of causes told of one kind; --json has all."""


def to_json(answer: Pending, background: Background) -> dict[str, object]:
    """The answer in types that `json.dumps` knows."""
    settled = answer.settled
    return {
        "schemaVersion": SCHEMA_VERSION,
        "pending": answer.pods,
        "placed": [{"pod": each.pod.key, "node": each.node_name} for each in settled.placed],
        "preempted": [pod.key for pod in settled.evicted],
        "elsewhere": [pod.key for pod in answer.elsewhere],
        "disagreements": [
            {
                "pod": each.pod.key,
                "recorded": each.recorded,
                "node": each.node_name,
                "likely": each.likely,
                "finding": each.why.to_json(),
            }
            for each in answer.disagreements
        ],
        "notCreated": [each.to_json() for each in answer.uncreated],
        "stuck": [
            {
                "workload": None if each.workload is None else str(each.workload),
                "pods": [pod.key for pod in each.pods],
                "finding": each.finding.to_json(),
            }
            for each in answer.stuck
        ],
        "idle": [{"workload": str(each.workload), "finding": each.finding.to_json()} for each in answer.idle],
        "groups": [
            {"reasons": list(why.reasons), "pods": why.pods, "kinds": [_kind(kind) for kind in why.kinds]}
            for why in answer.whys
        ],
        **background.to_json(),
    }


def _kind(kind: PodKind) -> dict[str, object]:
    return {
        "workload": None if kind.workload is None else str(kind.workload),
        "pods": [pod.key for pod in kind.pods],
        "message": kind.message,
        "recorded": recorded_message(kind.pods[0]),
        "notes": list(map(str, kind.notes)),
        "findings": [
            each.to_json()
            for each in (*([] if kind.reason is None else [kind.reason]), *kind.notes, *kind.culprits)
        ],
        "causes": [cause.to_json() for cause in kind.causes],
        "groupCause": kind.group_cause,
        "outcome": kind.outcome.value,
        "fits": kind.fits,
        "changesTried": kind.tried,
        "changesNotTried": kind.untried,
        "helps": [
            {
                "changes": [str(change) for change in remedy.changes],
                "actions": [change.to_json() for change in remedy.changes],
                "edits": [edit.to_json() for edit in remedy.edits],
                "placed": remedy.placed,
                "nodes": list(remedy.nodes),
                "displaced": list(remedy.displaced),
            }
            for remedy in kind.remedies
        ],
    }


def print_pending(answer: Pending, background: Background, *, top: int) -> None:
    """Print the answer to stdout; `top` is how many changes are shown for each kind of pod."""
    print_parts(stdout_console(), _parts(answer, background, top))


def print_odd_amounts(odd: Sequence[OddAmount]) -> None:
    """Print the amounts that are hardly meant as they are written, one a line."""
    print_parts(stdout_console(), _odd_amounts(odd))


def _odd_amounts(odd: Sequence[OddAmount]) -> Iterator[RenderableType]:
    yield Padding(Text(f"{counted(len(odd), 'amount')} hardly meant as written", "bold"), (1, 0, 0, 0))
    for each in odd:
        pods = f": {counted(len(each.pods), 'pod')}" if each.pods else ""
        yield Padding(Text(f"{each}{pods}"), (0, 0, 0, 3))


def _parts(answer: Pending, background: Background, top: int) -> Iterator[RenderableType]:
    yield Text(_headline(answer), "bold")
    evicted = {pod.key for pod in answer.settled.evicted}
    if placed := sum(each.pod.key not in evicted for each in answer.settled.placed):
        yield f"{counted(placed, 'other pending pod')} {'has' if placed == 1 else 'have'} a place, once scheduled"
    if evicted:
        yield f"{counted(len(evicted), 'pod')} would be preempted for them"
    kinds = _kinds_of(answer)
    if kinds:
        yield from _overview(kinds)
    for number, kind, reasons in kinds:
        if kind.outcome is not KindOutcome.NOT_LOOKED_AT:
            yield from _block(number, kind, reasons, top)
    if rest := [kind for _, kind, _ in kinds if kind.outcome is KindOutcome.NOT_LOOKED_AT]:
        yield _not_looked_at(rest)
    if answer.disagreements:
        yield from _disagreements(answer.disagreements)
    if answer.uncreated:
        yield from _uncreated(answer.uncreated)
    if answer.stuck:
        yield from _stuck(answer.stuck)
    if answer.idle:
        yield from _idle(answer.idle)
    if answer.elsewhere:
        yield block(f"for other schedulers: {pods_text(answer.elsewhere)}")
    yield from background.parts()


def _headline(answer: Pending) -> str:
    if not answer.whys:
        is_told = answer.settled.placed or answer.stuck or answer.uncreated or answer.idle
        return "No pod is pending without a place" if is_told else "No pod is pending"
    kinds = sum(len(why.kinds) for why in answer.whys)
    of = "" if kinds == 1 else f", of {kinds:,} kinds"
    return f"{counted(answer.pods, 'pod')} pending without a place{of}"


_Numbered: TypeAlias = tuple[int, PodKind, tuple[str, ...]]
"""A kind of pods, its number in the text, and kube-scheduler's reasons."""


def _kinds_of(answer: Pending) -> Sequence[_Numbered]:
    """The kinds of all reasons, those with the most pods first."""
    kinds = [(kind, why.reasons) for why in answer.whys for kind in why.kinds]
    kinds.sort(key=lambda each: -len(each[0].pods))
    return [(number, kind, reasons) for number, (kind, reasons) in enumerate(kinds, 1)]


def _overview(kinds: Sequence[_Numbered]) -> Iterator[RenderableType]:
    """A row for each kind: its workload, pods, decisive cause, first remedy, and how many pods that places."""
    table = plain_table("", "workload", "pods", "why", "what helps first", "places")
    for column in table.columns[2:4]:
        column.justify, column.no_wrap = "left", False
    for _, kind, reasons in kinds[:_MOST_ROWS]:
        first = next(iter(kind.remedies), None)
        helps = _WITHOUT_REMEDY[kind.outcome] if first is None else str(first)
        places = "" if first is None else f"{first.placed:,} of {first.pods:,}"
        row = (_name(kind), f"{len(kind.pods):,}", "; ".join(_causes(kind, reasons)), helps, places)
        table.add_row(*map(Text, row))
    yield Padding(table, (1, 0, 0, 0))
    if (rest := len(kinds) - _MOST_ROWS) > 0:
        yield Text(f"and {rest:,} more below", "dim")


_WITHOUT_REMEDY: Final = {
    KindOutcome.HELPED: "",
    KindOutcome.HELPED_IN_PART: "",
    KindOutcome.NOTHING_HELPS: "nothing found",
    KindOutcome.WAITS_FOR_OTHERS: "what helps those it waits for",
    KindOutcome.PREEMPTING: "its victims end",
    KindOutcome.NOT_LOOKED_AT: "not looked at",
}


def _name(kind: PodKind) -> str:
    return pods_text(kind.pods, most=1) if kind.workload is None else str(kind.workload)


def _causes(kind: PodKind, reasons: Sequence[str]) -> Sequence[str]:
    """Return the decisive causes in short; of pods that no scheduler tries, or without a claim, the findings.

    Of pods that weren't looked at, kube-scheduler's reasons are known.
    """
    if kind.reason is not None:
        return [str(kind.reason)]
    decisive = [cause for cause in kind.causes if cause.decisive]
    if all(cause.node for cause in decisive) and decisive:
        return [f"{cause.evidence.asked} ({cause.nodes:,} of {cause.of:,} nodes)" for cause in decisive]
    return (
        list(map(str, kind.notes))
        or [cause.evidence.asked for cause in decisive]
        or reasons
        or [kind.message]
    )


def _block(number: int, kind: PodKind, reasons: Sequence[str], top: int) -> Iterator[RenderableType]:
    pods = counted(len(kind.pods), "pod")
    title = pods if kind.workload is None else f"{kind.workload}, {pods}"
    yield Padding(Text(f"{number}. {title}: {pods_text(kind.pods)}", "bold"), (1, 0, 0, 0))
    yield Padding(_kind_text(kind, reasons), (0, 0, 0, 3))
    if kind.tried:
        yield Padding(_helps(kind, top), (0, 0, 0, 3))
    elif kind.outcome is KindOutcome.WAITS_FOR_OTHERS:
        yield Padding(Text("helped by what helps the pods that they wait for"), (0, 0, 0, 3))


def _not_looked_at(kinds: Sequence[PodKind]) -> RenderableType:
    pods = [pod for kind in kinds for pod in kind.pods]
    where = f"{counted(len(pods), 'pod')} of {counted(len(kinds), 'kind')}: {pods_text(pods)}"
    return Padding(Text(f"{where}; not looked at: a greater --kinds has it", "dim"), (1, 0, 0, 0))


def _kind_text(kind: PodKind, reasons: Sequence[str]) -> Text:
    causes = [str(cause) for cause in kind.causes if cause.decisive and cause.node][:_MOST_CAUSES]
    told = {cause.evidence.asked for cause in kind.causes if cause.decisive}
    notes = (str(each) for each in kind.notes if each.parameters.get("volume") not in told)
    lines = dict.fromkeys((*causes, "; ".join(reasons), *map(str, kind.culprits), *notes))
    recorded = recorded_message(kind.pods[0])
    if recorded and recorded != kind.message:
        lines[f"in the cluster: {recorded}"] = None
    return Text("\n".join(lines))


def _disagreements(disagreements: Sequence[Disagreement]) -> Iterator[RenderableType]:
    """The pods that the cluster calls unschedulable and that have a place here, by the likely cause."""
    by_cause: dict[tuple[str, str], list[Disagreement]] = {}
    for each in disagreements:
        by_cause.setdefault((each.likely, each.recorded), []).append(each)
    number = counted(len(disagreements), "pod")
    have = "has" if len(disagreements) == 1 else "have"
    headline = f"{number} that the cluster calls unschedulable {have} a place here"
    yield Padding(Text(headline, "bold"), (1, 0, 0, 0))
    for (likely, recorded), alike in by_cause.items():
        places = counts_text(each.node_name for each in alike)
        pods = f"{pods_text(each.pod for each in alike)}; placed on {places}"
        yield Padding(Text(f"{pods}\nin the cluster: {recorded}\nlikely: {likely}"), (0, 0, 0, 3))


def _uncreated(uncreated: Sequence[Uncreated]) -> Iterator[RenderableType]:
    headline = f"{counted(sum(each.pods for each in uncreated), 'pod')} can't be created, so no node helps"
    yield Padding(Text(headline, "bold"), (1, 0, 0, 0))
    for each in uncreated:
        line = f"{counted(each.pods, 'pod')} of {each.workload}: {each.reason}"
        yield Padding(Text(line), (0, 0, 0, 3))


def _stuck(stuck: Sequence[Stuck]) -> Iterator[RenderableType]:
    number = sum(len(each.pods) for each in stuck)
    verb = "has a node and doesn't start" if number == 1 else "have a node and don't start"
    yield Padding(Text(f"{counted(number, 'pod')} {verb}", "bold"), (1, 0, 0, 0))
    for each in stuck:
        of = "" if each.workload is None else f" of {each.workload}"
        line = f"{counted(len(each.pods), 'pod')}{of}: {pods_text(each.pods)}: {each.finding}"
        yield Padding(Text(line), (0, 0, 0, 3))


def _idle(idle: Sequence[Idle]) -> Iterator[RenderableType]:
    verb = "has no pods, and none is made" if len(idle) == 1 else "have no pods, and none are made"
    yield Padding(Text(f"{counted(len(idle), 'workload')} {verb}", "bold"), (1, 0, 0, 0))
    for each in idle[:_MOST_ROWS]:
        yield Padding(Text(f"{each.workload}: {each.finding}"), (0, 0, 0, 3))
    if (rest := len(idle) - _MOST_ROWS) > 0:
        yield Padding(Text(f"and {rest:,} more; --json has all", "dim"), (0, 0, 0, 3))


def _helps(kind: PodKind, top: int) -> RenderableType:
    left = f", {kind.untried:,} more not tried" if kind.untried else ""
    if not kind.remedies:
        return Text(f"nothing found that helps; {counted(kind.tried, 'change')} tried{left}")
    # No header of the columns: in narrow terminals it would be repeated with each remedy.
    heading = f"what helps ({counted(kind.tried, 'change')} tried{left}), and how many pods it places"
    table = plain_table("", "")
    table.show_header = False
    table.columns[0].no_wrap = False
    table.add_column(justify="right")
    for remedy in kind.remedies[:top]:
        table.add_row(Text(_remedy(remedy)), f"{remedy.placed:,} of {remedy.pods:,}")
    return Group(Text(heading, "dim"), table)


def _remedy(remedy: Remedy) -> str:
    text = f"{remedy}; placed on {counts_text(remedy.nodes)}"
    if remedy.displaced:
        text += f"; {', '.join(remedy.displaced)} would find no other place"
    return text
