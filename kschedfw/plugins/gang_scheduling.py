"""GangScheduling: members of a gang run only if enough of them can.

Semantics: kube-scheduler v1.36 `gangscheduling`, and v1.37 (`gangscheduling.go` @03789157, without composite groups)
where that differs; KEP-4671.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kschedfw import (
    MEMBER_STATES,
    ActionType,
    ClusterEvent,
    Code,
    CycleState,
    EventResource,
    Handle,
    Plugin,
    Pod,
    QueuedGroup,
    QueueingHint,
    Status,
    hookimpl,
)
from kschedfw.api import PodGroup, group_key
from kschedfw.framework.gate_table import GANG_SCHEDULING
from kschedfw.framework.groups import CALL_IN, NO_MEMBERS, CallIn
from kschedfw.framework.versions.v1_37 import PLACEMENT_FEASIBLE
from kschedfw.plugins._hints import queue_if

_TIMEOUT: Final = 5 * 60.0
"""Seconds that a member waits at permit for the others."""


class GangScheduling(Plugin):
    """Holds members back until `minCount` of them are known, and has them placed only if as many get a node.

    Up to v1.36 members wait at permit until enough have a node. Since v1.37 the cycle of the group asks whether enough
    have one, and none is taken to permit before.
    """

    name = "GangScheduling"

    def __init__(self, args: None, handle: Handle) -> None:
        super().__init__(args, handle)
        self._waits_at_permit = not handle.feature_gates.follows(PLACEMENT_FEASIBLE)

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        key = self._group_of(pod)
        if not key:
            return None
        group = self.handle.cluster.get(PodGroup, key)
        if group is None:
            name = key.partition("/")[2]
            # kube-scheduler v1.37 mends the word.
            waiting = (
                "waiting for pods's pod group" if self._waits_at_permit else "waiting for pod's pod group"
            )
            return Status.unresolvable(f"{waiting} {_quoted(name)} to appear in scheduling queue")
        if group.min_count is not None and self.handle.groups.count(key) < group.min_count:
            return Status.unresolvable("waiting for minCount pods from a gang to appear in scheduling queue")
        return None

    @hookimpl
    def permit(self, state: CycleState, pod: Pod) -> Status | None:
        key = self._group_of(pod) if self._waits_at_permit else ""
        if not key:
            return None
        group = self.handle.cluster.get(PodGroup, key)
        if group is None:
            missing = f"podgroup.scheduling.k8s.io {_quoted(key.partition('/')[2])} not found"
            return Status.from_error(f"failed to get podGroup {key}: {missing}")
        if group.min_count is None:
            return None
        trial = state.find(MEMBER_STATES)
        scheduled = self.handle.groups.number_scheduled(key) if trial is None else trial.number_scheduled
        if scheduled < group.min_count:
            call = state.find(CALL_IN) or CallIn()
            # The other members may be waiting for this one to get a node.
            if not call.is_done:
                self.handle.activate((trial or self.handle.groups.get(key) or NO_MEMBERS).unscheduled)
                call.is_done = True
            return Status.wait(_TIMEOUT, "waiting for minCount pods from a gang to be scheduled")
        members = trial or self.handle.groups.get(key) or NO_MEMBERS
        # In a fixed order, since each wait that ends begins a binding.
        for uid in sorted(members.assumed):
            if (waiting := self.handle.waiting_pods.get(uid)) is not None:
                waiting.allow(self.name)
        return None

    @hookimpl
    def placement_feasible(self, group: QueuedGroup, left: int, scheduled: int) -> Status | None:
        if group.object is None:
            return None
        # A basic group needs one member, as in kube-scheduler.
        least = 1 if group.object.min_count is None else group.object.min_count
        if scheduled >= least:
            return None
        if scheduled + left < least:
            return Status.unschedulable(
                f"minCount ({least}) cannot be satisfied: {scheduled} scheduled, {left} remaining"
            )
        waits = f"minCount ({least}) is not yet satisfied: {scheduled} scheduled, {left} remaining"
        return Status(Code.WAIT, (waits,))

    def takes_members_alike(self, pod: Pod) -> bool:
        # Permit fails while the group's object is missing.
        key = self._group_of(pod)
        return not key or self.handle.cluster.get(PodGroup, key) is not None

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        events = [
            ClusterEvent(
                EventResource.POD, ActionType.ADD, self._after_member, pre_hint=self._completes_gang
            ),
            ClusterEvent(EventResource.POD_GROUP, ActionType.ADD, _after_group),
        ]
        if not self._waits_at_permit:
            # Since v1.37 a group's minCount may change.
            events.append(ClusterEvent(EventResource.POD_GROUP, ActionType.UPDATE, _after_group_update))
        return events

    def _after_member(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        is_fellow = isinstance(new, Pod) and group_key(new) == group_key(pod)
        return queue_if(is_fellow and self._completes_gang(old, new))

    def _completes_gang(self, _old: object | None, new: object | None) -> bool:
        """Return whether the new pod's group has all members that it needs."""
        # `pre_enqueue` refuses again while members are missing: nobody is woken. kube-scheduler asks it all the same:
        # the members of a gang of 1,000 would be asked half a million times until the last one comes.
        key = group_key(new) if isinstance(new, Pod) else ""
        group = self.handle.cluster.get(PodGroup, key) if key else None
        return group is not None and self.handle.groups.count(key) >= (group.min_count or 0)

    def _group_of(self, pod: Pod) -> str:
        return group_key(pod) if self.handle.feature_gates.enabled(GANG_SCHEDULING) else ""


def _after_group(pod: Pod, _old: object | None, new: object | None) -> QueueingHint:
    return queue_if(isinstance(new, PodGroup) and new.key == group_key(pod))


def _after_group_update(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    """Queue when the pod's gang needs fewer members than before."""
    if not (isinstance(old, PodGroup) and isinstance(new, PodGroup)) or new.key != group_key(pod):
        return QueueingHint.SKIP
    before, after = old.min_count, new.min_count
    return queue_if(before is not None and after is not None and after < before)


def _quoted(name: str) -> str:
    return f'"{name}"'
