"""The sub-queues of kube-scheduler v1.37, where a group of pods is one entity of the queue (KEP-4671).

All members of a group are in the same sub-queue and have the same turn and backoff. So a gated member holds the others
back, a new member joins its group where that waits, and members that come during the group's cycle wait for its end.
Semantics: `addPodGroupMember` and `AddAttemptedPodGroupIfNeeded` of `pkg/scheduler/backend/queue/scheduling_queue.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from kschedfw.api import group_key
from kschedfw.api.records import define
from kschedfw.framework.metrics import EntityKind
from kschedfw.framework.nodes.pod_info import QueuedPodInfo
from kschedfw.scheduler.queue.cluster_events import SCHEDULE_ATTEMPT_FAILURE
from kschedfw.scheduler.queue.hints import Requeue
from kschedfw.scheduler.queue.protocol import Place
from kschedfw.scheduler.queue.sub_queues import SubQueues


@define(eq=False)
class _Turn:
    """The turn and the failures of a group, which all its members in the queue share."""

    timestamp: float
    unschedulable_count: int
    consecutive_errors_count: int
    backoff_expiration: float | None

    @classmethod
    def of(cls, info: QueuedPodInfo) -> _Turn:
        return cls(
            info.timestamp,
            info.unschedulable_count,
            info.consecutive_errors_count,
            info.backoff_expiration,
        )

    def give(self, info: QueuedPodInfo) -> None:
        """Make it the turn of a member, too."""
        info.timestamp = self.timestamp
        info.unschedulable_count = self.unschedulable_count
        info.consecutive_errors_count = self.consecutive_errors_count
        info.backoff_expiration = self.backoff_expiration


@define(eq=False)
class _GroupInCycle:
    """A group that is being scheduled: its turn until then, and the members that wait for the end of its cycle.

    `failed` has those that came back without keeping their turn.
    """

    turn: _Turn
    waiting: dict[str, QueuedPodInfo] = attrs.field(factory=dict)
    failed: set[str] = attrs.field(factory=set)


@define(eq=False)
class GroupSubQueues(SubQueues):
    """Sub-queues whose groups are entities. Without `grouped` every pod is one."""

    _grouped: bool
    _has_group: Callable[[str], bool]
    _members: dict[str, dict[str, QueuedPodInfo]] = attrs.field(factory=dict, init=False)
    """The members in the sub-queues by uid, by group."""
    _groups: dict[str, str] = attrs.field(factory=dict, init=False)
    """The groups of these members, by uid."""
    _in_cycle: dict[str, _GroupInCycle] = attrs.field(factory=dict, init=False)
    _told: dict[str, Place] = attrs.field(factory=dict, init=False)
    """The places in which groups were counted as incoming."""

    # The cycle of a group

    def begin_group(self, info: QueuedPodInfo) -> None:
        if key := self._key(info):
            self._in_cycle[key] = _GroupInCycle(_Turn.of(info))

    def waits_for_cycle(self, info: QueuedPodInfo, *, keeps_turn: bool) -> bool:
        cycle = self._in_cycle.get(self._key(info))
        if cycle is None:
            return False
        cycle.waiting[info.pod.uid] = info
        if not keeps_turn:
            cycle.failed.add(info.pod.uid)
        return True

    def end_group(self, key: str, *, keeps_turn: bool, is_refused: bool) -> None:
        cycle = self._in_cycle.pop(key, None)
        if cycle is None or not cycle.waiting:
            return
        turn, members = cycle.turn, list(cycle.waiting.values())
        verdict = Requeue.IMMEDIATELY
        # A member that failed after its group had succeeded, as when it is bound, has the group back off: otherwise a
        # binding that always fails would be tried without a pause.
        if not keeps_turn or cycle.failed:
            verdict = Requeue.AFTER_BACKOFF
            if is_refused:
                turn.unschedulable_count += 1
                turn.consecutive_errors_count = 0
            else:
                turn.consecutive_errors_count += 1
            turn.timestamp, turn.backoff_expiration = self._clock.now(), None
        for info in members:
            turn.give(info)
            info.was_flushed_from_unschedulable = False
            info.flush_timestamp = None
            self._note(key, info)
        self._place(key, verdict, SCHEDULE_ATTEMPT_FAILURE)

    # Moves

    def requeue(self, info: QueuedPodInfo, verdict: Requeue, event: str) -> None:
        key = self._key(info)
        if not key:
            super().requeue(info, verdict, event)
        elif not self._joins(key, info, event):
            if verdict is Requeue.SKIP:
                self._park(info, event)
            else:
                self._place(key, verdict, event)

    def to_active(self, info: QueuedPodInfo, event: str, *, passed_gates: bool = False) -> None:
        key = self._key(info)
        if not key:
            super().to_active(info, event, passed_gates=passed_gates)
        # Backoffs of members end together, and the first of them has taken the others along.
        elif info.pod.uid not in self.active and not self._joins(key, info, event):
            self._place(key, Requeue.IMMEDIATELY, event, passed_gates=passed_gates)

    def _joins(self, key: str, info: QueuedPodInfo, event: str) -> bool:
        """Have a new member wait where its group does. Return whether it is one, and the group is in the queue."""
        if info.pod.uid in self._groups:
            return False
        if key in self._in_cycle:
            self._in_cycle[key].waiting[info.pod.uid] = info
            return True
        fellow = next(iter(self._members.get(key, {}).values()), None)
        self._note(key, info)
        if fellow is None:
            return False
        _Turn.of(fellow).give(info)
        match self.place(fellow.pod.uid):
            # Members in this place have passed their gates, so only the new member's are asked.
            case Place.ACTIVE if not self._is_held_back(info):
                self._push_active(info, event)
            case Place.BACKOFF if self._policy.is_backing_off(fellow, self._clock.now()) and not (
                self._policy.windows and self._is_held_back(info)
            ):
                self._push_backoff(info, event)
            case Place.ACTIVE | Place.BACKOFF:
                self._place(key, Requeue.IMMEDIATELY, event)
            case _:
                info.gating_plugin = fellow.gating_plugin
                self._park(info, event)
        return True

    def _place(self, key: str, verdict: Requeue, event: str, *, passed_gates: bool = False) -> None:
        """Put all members into the sub-queue that the verdict demands, unless a gate holds one of them back."""
        members = list(self._members[key].values())
        backs_off = False
        if verdict is Requeue.AFTER_BACKOFF:
            backs_off = self._policy.is_backing_off(members[0], self._clock.now())
            # The end of a backoff is worked out when it is asked for. It depends on the number of members then, so the
            # others must not work it out later.
            turn = _Turn.of(members[0])
            for info in members:
                turn.give(info)
        asks_gates = self._policy.windows if backs_off else not passed_gates
        if asks_gates and (held := [each for each in members if self._is_held_back(each)]):
            for info in members:
                # One gate counts for the whole group: as in kube-scheduler that of its last gated member.
                info.gating_plugin = info.gating_plugin or held[-1].gating_plugin
                self._leave(info)
                self._park(info, event)
            return
        for info in members:
            self._leave(info)
            if backs_off:
                self._push_backoff(info, event)
            else:
                self._push_active(info, event)

    def _leave(self, info: QueuedPodInfo) -> None:
        self.active.remove(info.pod.uid)
        self.backoff.remove(info.pod.uid)

    # Contents

    def find(self, uid: str) -> QueuedPodInfo | None:
        return super().find(uid) or self._waiting(uid)

    def place(self, uid: str) -> Place | None:
        # Until the end of the cycle, which nothing but its end can follow.
        return super().place(uid) or (None if self._waiting(uid) is None else Place.ACTIVE)

    def counts(self) -> dict[Place, int]:
        counts = super().counts()
        counts[Place.ACTIVE] += self._number_waiting
        return counts

    def told_counts(self) -> Mapping[str, int]:
        counts = {str(place): count for place, count in super().counts().items()}
        counts |= {"incomplete": 0, "pending": self._number_waiting}
        for key, members in self._members.items():
            # GangScheduling holds back the members of a group that doesn't exist yet.
            place = self.place(next(iter(members)))
            if place is Place.GATED and not self._has_group(key):
                counts[place] -= len(members)
                counts["incomplete"] += len(members)
        return counts

    @property
    def _number_waiting(self) -> int:
        return sum(len(cycle.waiting) for cycle in self._in_cycle.values())

    def entity_counts(self) -> Mapping[tuple[Place, EntityKind], int]:
        pods = super().counts()
        groups = dict.fromkeys(pods, 0)
        for members in self._members.values():
            place = self.place(next(iter(members)))
            assert place is not None, members
            groups[place] += 1
            pods[place] -= len(members)
        counts = {(place, EntityKind.POD): count for place, count in pods.items()}
        return counts | {(place, EntityKind.GROUP): count for place, count in groups.items()}

    def entity_of(self, info: QueuedPodInfo) -> str:
        return self._key(info) or super().entity_of(info)

    def pop(self) -> QueuedPodInfo | None:
        info = super().pop()
        if info is not None:
            self._forget(info.pod.uid)
        return info

    def discard(self, uid: str) -> None:
        super().discard(uid)
        key = self._groups.get(uid, "")
        self._forget(uid)
        self._inherit_gate(key)
        for cycle in self._in_cycle.values():
            cycle.waiting.pop(uid, None)
            cycle.failed.discard(uid)

    def rearrange(self, info: QueuedPodInfo) -> None:
        if self._waiting(info.pod.uid) is None:
            super().rearrange(info)

    def _arrived(self, info: QueuedPodInfo, place: Place, event: str) -> None:
        super()._arrived(info, place, event)
        key = self._key(info)
        if not key:
            self._metrics.entity_incoming(place, event, EntityKind.POD)
        elif self._told.get(key) is not place:
            self._told[key] = place
            self._metrics.entity_incoming(place, event, EntityKind.GROUP)

    def _key(self, info: QueuedPodInfo) -> str:
        return group_key(info.pod) if self._grouped else ""

    def _note(self, key: str, info: QueuedPodInfo) -> None:
        self._members.setdefault(key, {})[info.pod.uid] = info
        self._groups[info.pod.uid] = key

    def _forget(self, uid: str) -> None:
        if key := self._groups.pop(uid, ""):
            members = self._members[key]
            del members[uid]
            if not members:
                del self._members[key]
                self._told.pop(key, None)

    def _inherit_gate(self, key: str) -> None:
        """Have a member be asked about its group's gate, if the one that was is gone."""
        members = self._members.get(key, {}).values()
        heir = next(iter(members), None)
        if heir is not None and all(each.gated_by_fellow for each in members):
            heir.unschedulable_plugins.add(heir.gating_plugin)
            self.unschedulable.put(heir)

    def _waiting(self, uid: str) -> QueuedPodInfo | None:
        found = (cycle.waiting.get(uid) for cycle in self._in_cycle.values())
        return next((info for info in found if info is not None), None)

    def waiting_members(self, key: str) -> Sequence[QueuedPodInfo]:
        cycle = self._in_cycle.get(key)
        return () if cycle is None else list(cycle.waiting.values())
