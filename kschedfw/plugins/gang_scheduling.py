"""GangScheduling: members of a gang run only if enough of them can.

Semantics: kube-scheduler v1.36 `gangscheduling`; KEP-4671.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kschedfw import (
    MEMBER_STATES,
    ActionType,
    ClusterEvent,
    CycleState,
    EventResource,
    Plugin,
    Pod,
    QueueingHint,
    Status,
    hookimpl,
)
from kschedfw.api import PodGroup, group_key
from kschedfw.framework.gate_table import GANG_SCHEDULING
from kschedfw.framework.groups import CALL_IN, NO_MEMBERS, CallIn
from kschedfw.plugins._hints import queue_if

_TIMEOUT: Final = 5 * 60.0
"""Seconds that a member waits at permit for the others."""


class GangScheduling(Plugin):
    """Holds members back until `minCount` of them are known, and at permit until as many have a node."""

    name = "GangScheduling"

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        key = self._group_of(pod)
        if not key:
            return None
        group = self.handle.cluster.get(PodGroup, key)
        if group is None:
            name = key.partition("/")[2]
            return Status.unresolvable(
                f"waiting for pods's pod group {_quoted(name)} to appear in scheduling queue"
            )
        if group.min_count is not None and self.handle.groups.count(key) < group.min_count:
            return Status.unresolvable("waiting for minCount pods from a gang to appear in scheduling queue")
        return None

    @hookimpl
    def permit(self, state: CycleState, pod: Pod) -> Status | None:
        key = self._group_of(pod)
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

    def takes_members_alike(self, pod: Pod) -> bool:
        # Permit fails while the group's object is missing.
        key = self._group_of(pod)
        return not key or self.handle.cluster.get(PodGroup, key) is not None

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        return [
            ClusterEvent(EventResource.POD, ActionType.ADD, self._after_member),
            ClusterEvent(EventResource.POD_GROUP, ActionType.ADD, _after_group),
        ]

    def _after_member(self, pod: Pod, _old: object | None, new: object | None) -> QueueingHint:
        key = group_key(pod)
        if not key or not isinstance(new, Pod) or group_key(new) != key:
            return QueueingHint.SKIP
        # Where members are still missing `pre_enqueue` would only refuse again: kube-scheduler asks it, which takes
        # half a million calls until a gang of 1,000 is complete.
        group = self.handle.cluster.get(PodGroup, key)
        return queue_if(group is not None and self.handle.groups.count(key) >= (group.min_count or 0))

    def _group_of(self, pod: Pod) -> str:
        return group_key(pod) if self.handle.feature_gates.enabled(GANG_SCHEDULING) else ""


def _after_group(pod: Pod, _old: object | None, new: object | None) -> QueueingHint:
    return queue_if(isinstance(new, PodGroup) and new.key == group_key(pod))


def _quoted(name: str) -> str:
    return f'"{name}"'
