"""The decision on a group of pods that are scheduled together: its placements, and its members on each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Final

from kschedfw.api.frozendict import EMPTY
from kschedfw.api.records import frozen
from kschedfw.explain.explanation import Explanation, Result
from kschedfw.framework.status import Status


class GroupStage(StrEnum):
    """The step that ended the cycle of a group without a place for it."""

    GATE = "gate"
    """There was no cycle: a pre_enqueue plugin keeps the members out of the queue."""
    UNLIKE_MEMBERS = "unlike members"
    """Members ask for different schedulers."""
    FAILURE = "failure"
    """A plugin or the cluster failed, in a way that belongs to no other stage."""
    PLACEMENT_GENERATION = "placement generation"
    """The placement_generate plugin gave no placement, or failed."""
    PRE_FILTER = "pre_filter"
    """On the nearest placement, pre_filter refused every member that has no node."""
    MEMBERS = "members"
    """On no placement do enough members fit."""
    PERMIT = "permit"
    """On the nearest placement every member has a node, and permit lets none of them pass."""
    PLACEMENT_SCORE = "placement score"
    """Several placements would do, and a plugin failed to score them."""
    PREEMPTION = "preemption"
    """Victims are being evicted, or looking for them failed."""


@frozen(eq=False)
class MemberStep:
    """The outcome for a member on a placement.

    `node` is the node that it would get, empty for none; `message` says why none, in kube-scheduler's words.
    `permit` is what permit plugins said, None if they weren't asked. `decision` has the filters' answers on the nodes
    of the placement, without scores; None for a member that nobody wanted explained. `preempts`: the node is one where
    victims have to go first.
    """

    pod: str
    node: str = ""
    message: str = ""
    permit: Status | None = None
    decision: Explanation | None = None
    preempts: bool = False

    @property
    def waits_for(self) -> str:
        """The obstacle between the member and its node: its victims, or permit's first reason; empty for none."""
        if self.preempts:
            return "once its victims are gone"
        return "" if self.permit is None or self.permit.is_success else self.permit.reasons[0]


ANYWHERE: Final = "all nodes"
"""The title of the one placement of a group without a topology constraint."""


@frozen(eq=False)
class PlacementStep:
    """The outcome for a group on a placement, with the members in the order in which they were tried.

    `suffices` says whether so many members fit that the group could go there, `message` why not. `scores` are weighted,
    by plugin; they are empty unless several placements suffice.
    """

    name: str
    nodes: Sequence[str]
    suffices: bool
    message: str
    members: Sequence[MemberStep]
    scores: Mapping[str, int] = EMPTY

    @property
    def title(self) -> str:
        """The name for people."""
        return self.name or ANYWHERE

    @property
    def placed(self) -> int:
        """The number of members that have a node on the placement."""
        return sum(1 for each in self.members if each.node)

    @property
    def total(self) -> int | None:
        """The sum of the scores; None without any."""
        return sum(self.scores.values()) if self.scores else None

    @property
    def refused(self) -> Sequence[MemberStep]:
        """The members without a node on the placement."""
        return [each for each in self.members if not each.node]

    @property
    def in_the_way(self) -> str:
        """The reason why the first member without a node has none; if all have one, what one of them waits for."""
        for each in self.refused:
            if each.decision is None or each.decision.filter is None:
                return each.message
            by_status = each.decision.filter.refusals.by_status()
            reasons = Counter({reason: 0 for status in by_status for reason in status.reasons})
            for status, nodes in by_status.items():
                reasons.update(dict.fromkeys(status.reasons, len(nodes)))
            return ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
        if self.suffices:
            return ""
        return next((each.waits_for for each in self.members if each.waits_for), "")

    @property
    def distance(self) -> tuple[float, ...]:
        """The sort key that puts the placement with room for most of the group first.

        That is the one with most members; among equal ones, that on which the first member without a node has the
        closest node (`NodeExplanation.obstacles`).
        """
        for each in self.refused:
            closest = None if each.decision is None else next(each.decision.closest(), None)
            if closest is not None:
                return (not self.suffices, -self.placed, *closest.obstacles)
        return (not self.suffices, -self.placed)


@frozen(eq=False)
class GroupPreemptionStep:
    """The result of the group's preemption.

    With success, the pods in `victims` are being evicted, each entry being pods that go together. `considered` is the
    number of such units of a lower priority than the group's.
    """

    is_success: bool
    message: str
    considered: int = 0
    victims: Sequence[Sequence[str]] = ()
    budget_violations: int = 0


@frozen(eq=False, slots=False)
class GroupStep:
    """Why a group got its places, or none, in one cycle.

    `ended_by` is None if the group is placed. `message` is that of its condition. `min_count` is None for a group
    whose members may run alone; `scheduled` members were on nodes before. `placements` are in the order of their
    trial, and `taken` is the name of the one that the group goes to, None for none.
    """

    group: str
    profile: str
    result: Result
    ended_by: GroupStage | None
    attempt: int = 1
    message: str = ""
    min_count: int | None = None
    scheduled: int = 0
    topology_key: str = ""
    members: Sequence[str] = ()
    placements: Sequence[PlacementStep] = ()
    taken: str | None = None
    preemption: GroupPreemptionStep | None = None

    @cached_property
    def by_distance(self) -> Sequence[PlacementStep]:
        """The placements, the one that was taken first, then those with the least `distance`."""
        return sorted(self.placements, key=lambda each: (each.name != self.taken, each.distance))

    @property
    def nearest(self) -> PlacementStep | None:
        """The first of `by_distance`; None without placements."""
        return next(iter(self.by_distance), None)

    @property
    def obstructed(self) -> MemberStep | None:
        """The first member without a node on the nearest placement whose obstacles are known; None if placed."""
        if self.nearest is None or self.taken is not None:
            return None
        refused = self.nearest.refused
        return next((each for each in refused if each.decision is not None and each.decision.beyond), None)

    @property
    def needed(self) -> int:
        """The number of further members that need a node before the group can be scheduled."""
        return 1 if self.min_count is None else max(self.min_count - self.scheduled, 1)
