"""The results of the algorithm for groups: for a member, for a placement, and for the group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from kschedfw.api.pod import Pod
from kschedfw.framework.groups import GroupPlacement
from kschedfw.framework.results import PostFilterResult
from kschedfw.framework.runtime.placement_hooks import PlacementScore
from kschedfw.framework.status import Status
from kschedfw.scheduler.attempt import CLEAR_NOMINATION, Attempt
from kschedfw.scheduler.generic_scheduler import ScheduleResult

UNSCHEDULABLE: Final = "pod group is unschedulable"


@attrs.define(eq=False)
class MemberResult:
    """The outcome for a member in a trial: a node (`result`), or the `status` that says why there is none.

    `permit` is what permit plugins said. `nomination` is what becomes of its nomination if it isn't placed. A member
    that `preempts` goes on as if it were on the node that it is nominated to. `like` is the equal member that was
    refused just before, if this one was refused for the same reasons without a decision of its own.
    """

    attempt: Attempt
    status: Status = attrs.field(factory=Status.success)
    result: ScheduleResult | None = None
    permit: Status | None = None
    nomination: PostFilterResult | None = CLEAR_NOMINATION
    preempts: bool = False
    assumed: Pod | None = None
    like: MemberResult | None = None

    @property
    def node_name(self) -> str:
        """The node that the member would get; empty if it gets none."""
        return "" if self.result is None else self.result.suggested_host


@attrs.frozen(eq=False)
class PlacementResult:
    """The outcome for a group on a placement. `is_waiting`: enough fit, some once their victims are gone.

    `members` may be read until the cycle submits what was found: they may be made when first read.
    """

    placement: GroupPlacement
    status: Status
    members: Sequence[MemberResult]
    is_waiting: bool = False
    _node_names: Mapping[str, str] | None = None

    @property
    def node_names(self) -> Mapping[str, str]:
        """The nodes of the members that have one, by uid."""
        if self._node_names is not None:
            return self._node_names
        return {each.attempt.pod.uid: each.node_name for each in self.members if each.node_name}


@attrs.frozen(eq=False)
class GroupResult:
    """The outcome for a group. `taken` is the best placement, or the first tried if none suffices."""

    status: Status
    placements: Sequence[PlacementResult] = ()
    scores: Sequence[PlacementScore] = ()
    taken: PlacementResult | None = None
    is_waiting: bool = False

    @property
    def members(self) -> Sequence[MemberResult]:
        return () if self.taken is None else self.taken.members

    @property
    def is_chosen(self) -> bool:
        """True if the placement taken is one that will do."""
        return self.status.is_success or self.is_waiting
