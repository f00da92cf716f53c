"""The decision on a group of pods for the page: placements × reasons as columns, and the text of `kschedfw explain`."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kschedfw.explain import GroupStep, MemberStep, PlacementStep, headline, members_section, overview
from kschedfw_lab.pages.decision_matrix import TOP, DecisionMatrix, Table, decision_matrix

_MOST_KINDS = 20
"""The most kinds of members that a placement lists."""


class MemberReason(msgspec.Struct, frozen=True):
    """A reason why members have no node. The plugin is empty if several refused them together, or one failed."""

    plugin: str
    message: str


class PlacementRow(msgspec.Struct, frozen=True):
    """A placement of `nodes` nodes, with nodes for `placed` of the group's `members`.

    `refused` is how many members have no node for each reason, by its place in the matrix' `reasons`; a member may
    have several. `total` is the score, None without one. `fates` are the members by what becomes of them there.
    """

    name: str
    nodes: int
    members: int
    placed: int
    is_taken: bool
    suffices: bool
    total: int | None
    refused: dict[int, int]
    why: str
    fates: Table


class GroupMatrix(msgspec.Struct, frozen=True):
    """A decision on a group: `placements`, the one that was taken first, then the nearest ones.

    `pods` are the members that had no node, `scheduled` is how many others had one, and `least` how many must run; None
    if each may run without the others. `member` is the decision on a member without a node on the nearest placement,
    if all filters were asked about it.
    """

    group: str
    attempt: int
    result: str
    headline: str
    text: list[Table]
    pods: list[str]
    scheduled: int
    least: int | None
    placements: list[PlacementRow]
    reasons: list[MemberReason]
    member: DecisionMatrix | None


def group_matrix(step: GroupStep) -> GroupMatrix:
    """Return the matrix of the decision on a group."""
    reasons: dict[MemberReason, int] = {}
    member = step.obstructed
    known = None if member is None else member.decision
    return GroupMatrix(
        group=step.group,
        attempt=step.attempt,
        result=step.result.value,
        headline=headline(step),
        text=[Table.of(section) for section in overview(step, TOP)],
        pods=list(step.members),
        scheduled=step.scheduled,
        least=step.min_count,
        placements=[_row(step, each, reasons) for each in step.by_distance],
        reasons=list(reasons),
        member=None if known is None else decision_matrix(known),
    )


def _row(step: GroupStep, placement: PlacementStep, reasons: dict[MemberReason, int]) -> PlacementRow:
    name, is_taken = placement.title, placement.name == step.taken
    return PlacementRow(
        name=name,
        nodes=len(placement.nodes),
        members=len(placement.members),
        placed=placement.placed,
        is_taken=is_taken,
        suffices=placement.suffices,
        total=placement.total,
        refused=_refused(placement, reasons),
        why=placement.in_the_way,
        fates=Table.of(members_section(placement, f"Members on {name}", _MOST_KINDS, taken=is_taken)),
    )


def _refused(placement: PlacementStep, reasons: dict[MemberReason, int]) -> dict[int, int]:
    """Return how many members have no node, by the place of the reason; a new reason gets the next place."""
    alike: dict[str, list[MemberStep]] = {}
    for member in placement.refused:
        # A message lists the reasons, so members with the same one have the same reasons.
        alike.setdefault(member.message, []).append(member)
    counts: dict[int, int] = {}
    for members in alike.values():
        for reason in dict.fromkeys(_reasons(members[0])):
            place = reasons.setdefault(reason, len(reasons))
            counts[place] = counts.get(place, 0) + len(members)
    return counts


def _reasons(member: MemberStep) -> Iterator[MemberReason]:
    decision = member.decision
    refusal = None if decision is None else decision.pre_filter.refusal
    if decision is not None and decision.filter is not None:
        for status in decision.filter.refusals.by_status():
            yield from (MemberReason(status.plugin, reason) for reason in status.reasons)
    elif refusal is not None:
        yield from (MemberReason(refusal.plugin, reason) for reason in refusal.reasons)
    else:
        yield MemberReason("", member.message)
