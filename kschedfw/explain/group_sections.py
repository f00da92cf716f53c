"""The explanation of a group as tables and sentences, for output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from kschedfw.api.words import counted
from kschedfw.explain.explanation import Result
from kschedfw.explain.groups import ANYWHERE, GroupStage, GroupStep, MemberStep, PlacementStep
from kschedfw.explain.section import Section, listed

_WHY: Final = {
    GroupStage.GATE: "the members are kept out of the queue",
    GroupStage.UNLIKE_MEMBERS: "the members differ in what must be the same for all of them",
    GroupStage.FAILURE: "the cycle failed",
    GroupStage.PLACEMENT_GENERATION: "there is no placement to try",
    GroupStage.PRE_FILTER: "pre_filter refuses the members that have no node",
    GroupStage.MEMBERS: "on no placement do enough members fit",
    GroupStage.PERMIT: "every member has a node, and permit lets none of them pass",
    GroupStage.PLACEMENT_SCORE: "several placements would do, and scoring them failed",
}


def group_headline(step: GroupStep) -> str:
    """The result for the group, in one line."""
    match step.result:
        case Result.PLACED:
            what = f"placed on {step.taken or ANYWHERE}"
        case Result.NOMINATED:
            what = "waits for its victims to go"
        case Result.GATED:
            return f"podgroup {step.group}: gated, so not tried (profile {step.profile})"
        case other:
            what = other.value
    return f"podgroup {step.group}: {what} (attempt {step.attempt}, profile {step.profile})"


def of_group(step: GroupStep) -> str:
    """Return the result for a member's group in one line, for the member's explanation."""
    return f"member of {group_headline(step)}; nodes are those of {_counted(step)}"


def _counted(step: GroupStep) -> str:
    if not step.placements:
        return "no placement"
    counted = "the placement taken" if step.taken is not None else "the first placement tried"
    return counted if len(step.placements) > 1 else "its placement"


def group_overview(step: GroupStep, top: int = 5) -> Iterator[Section]:
    """The whole decision: the step that ended it, the placements, and the members on the nearest one."""
    yield Section(lines=tuple(_what_happened(step)))
    if step.placements:
        yield _placements(step, top)
    nearest = step.nearest
    if nearest is not None:
        taken = nearest.name == step.taken
        title = f"Members on {nearest.title}, {'taken' if taken else 'the nearest'}"
        yield members_section(nearest, title, top, taken=taken)
    if step.preemption is not None:
        yield _preemption(step)


def _what_happened(step: GroupStep) -> Iterator[str]:
    if step.message:
        yield step.message
    if step.ended_by is GroupStage.PREEMPTION:
        is_success = step.preemption is not None and step.preemption.is_success
        yield f"ended at preemption: {'victims are being evicted' if is_success else 'it failed'}"
    elif step.ended_by is not None:
        yield f"ended at {step.ended_by.value}: {_WHY[step.ended_by]}"
    members = f"{counted(len(step.members), 'member')} without a node"
    before = f", {step.scheduled} on nodes already" if step.scheduled else ""
    if step.min_count is None:
        yield f"{members}{before}; each may run without the others"
    else:
        yield f"{members}{before}; at least {step.min_count} run, or none"


def _placements(step: GroupStep, top: int) -> Section:
    shown = step.by_distance[:top]
    headers = ["placement", "nodes", "members", "total", "what is in the way"]
    rows = [
        [
            each.title + (" (taken)" if each.name == step.taken else ""),
            str(len(each.nodes)),
            f"{each.placed} of {len(each.members)}",
            "" if each.total is None else str(each.total),
            each.in_the_way,
        ]
        for each in shown
    ]
    # Empty columns go, from the right so that the other index stays valid.
    for column in (4, 3):
        if not any(row[column] for row in rows):
            for line in (headers, *rows):
                del line[column]
    rest = len(step.placements) - len(shown)
    lines = [counted(rest, "more placement")] if rest else []
    lines += [
        f"{each.title}: {', '.join(f'{plugin} {score}' for plugin, score in each.scores.items())}"
        for each in shown
        if each.scores
    ]
    title = f"Placements by {step.topology_key}" if step.topology_key else "Placements"
    return Section(title, tuple(headers), tuple(map(tuple, rows)), tuple(lines))


def members_section(placement: PlacementStep, title: str, top: int, *, taken: bool) -> Section:
    """The members with the same fate together: first those without a node, then those that have one."""
    alike: dict[str, list[MemberStep]] = {}
    for each in placement.refused:
        alike.setdefault(each.message, []).append(each)
    rows = [
        (str(len(found)), "none", message, listed([each.pod for each in found]))
        for message, found in alike.items()
    ]
    by_permit: dict[str, list[MemberStep]] = {}
    for each in placement.members:
        if each.node:
            # Members of a placed group don't wait any more.
            by_permit.setdefault("" if taken else each.waits_for, []).append(each)
    for permit, members in by_permit.items():
        on = Counter(each.node for each in members)
        nodes = listed([f"{node} ({count})" if count > 1 else node for node, count in on.most_common()])
        rows.append((str(len(members)), nodes, permit, listed([each.pod for each in members])))
    lines = (f"{counted(len(rows) - top, 'more kind')} of refusals",) if len(rows) > top else ()
    return Section(title, ("members", "node", "reason", "e.g."), tuple(rows[:top]), lines)


def _preemption(step: GroupStep) -> Section:
    preemption = step.preemption
    assert preemption is not None
    if not preemption.is_success:
        return Section("Preemption", lines=(preemption.message,))
    rows = tuple((listed(pods), str(len(pods))) for pods in preemption.victims)
    lines = [f"pods and groups of a lower priority that were considered: {preemption.considered:,}"]
    if preemption.budget_violations:
        lines.append(f"PodDisruptionBudgets violated: {preemption.budget_violations}")
    return Section("Preemption", ("victims", "pods"), rows, tuple(lines))
