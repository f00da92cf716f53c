"""Groups of pods as the scheduler and plugins see them (kube-scheduler `podGroupState`, `fwk.Placement`)."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import attrs

from kschedfw.api import Pod, PodGroup, group_key
from kschedfw.api.records import define, frozen
from kschedfw.framework.cycle_state import StateKey
from kschedfw.framework.nodes.selection import NodeSelection


@define(eq=False)
class MemberStates:
    """The members of one group that the scheduler knows, whether or not the PodGroup exists.

    `pods` has them by uid; a scheduled member, assumed or bound, has a node name. Members held by scheduling gates and
    terminating ones count; those that have ended don't.
    """

    pods: dict[str, Pod] = attrs.field(factory=dict)
    assumed: set[str] = attrs.field(factory=set)
    """The uids of members that are assumed on their node, but not known to be bound."""
    number_scheduled: int = 0
    """Count of members on a node. Kept, since permit reads it once per member: counting was quadratic."""

    def __len__(self) -> int:
        return len(self.pods)

    @property
    def scheduled(self) -> Sequence[Pod]:
        """The members on a node, by name."""
        return sorted((pod for pod in self.pods.values() if pod.node_name), key=_key)

    @property
    def unscheduled(self) -> Sequence[Pod]:
        """The members without a node, by name."""
        return sorted((pod for pod in self.pods.values() if not pod.node_name), key=_key)

    def put(self, pod: Pod) -> None:
        """Add a member, or take its new state."""
        self.number_scheduled += bool(pod.node_name) - self._is_scheduled(pod.uid)
        self.pods[pod.uid] = pod

    def remove(self, uid: str) -> None:
        """Remove the pod with this uid from the members; ignore an unknown uid."""
        self.number_scheduled -= self._is_scheduled(uid)
        self.pods.pop(uid, None)
        self.assumed.discard(uid)

    def _is_scheduled(self, uid: str) -> bool:
        return uid in self.pods and bool(self.pods[uid].node_name)

    def assume(self, pod: Pod) -> None:
        """Count a member, with its node name, as scheduled."""
        self.put(pod)
        self.assumed.add(pod.uid)

    def forget(self, pod: Pod) -> None:
        """Undo `assume`; the pod given has no node name."""
        self.assumed.discard(pod.uid)
        # It may have been deleted meanwhile.
        if pod.uid in self.pods:
            self.put(pod)

    def copy(self) -> MemberStates:
        """A copy whose changes don't show here."""
        return MemberStates(dict(self.pods), set(self.assumed), self.number_scheduled)


NO_MEMBERS = MemberStates()
"""The state of a group without members; not to be changed."""


class GroupStates:
    """The members of all groups, by the key of the group (`namespace/name`). Thread-safe.

    A group is there from its first member to its last.
    """

    def __init__(self) -> None:
        self._groups: dict[str, MemberStates] = {}
        self._lock = threading.Lock()

    def get(self, key: str) -> MemberStates | None:
        """A copy of the group's state; None if it has no members."""
        with self._lock:
            state = self._groups.get(key)
            return None if state is None else state.copy()

    def count(self, key: str) -> int:
        """The number of the group's members. A copy of its state for each member would take quadratic time."""
        with self._lock:
            return len(self._groups.get(key) or ())

    def number_scheduled(self, key: str) -> int:
        """The number of the group's members that are on a node."""
        with self._lock:
            return 0 if (state := self._groups.get(key)) is None else state.number_scheduled

    def size_of(self, pod: Pod) -> int:
        """Return the number of members of the pod's group that have no node; 1 for a pod without a group."""
        with self._lock:
            state = self._groups.get(group_key(pod))
            return 1 if state is None else max(len(state) - state.number_scheduled, 1)

    def put(self, pod: Pod) -> None:
        """Add a member, or take its new state; pods without a group are ignored. An assumed member stays assumed."""
        if not (key := group_key(pod)):
            return
        with self._lock:
            state = self._groups.setdefault(key, MemberStates())
            if pod.node_name:
                state.assumed.discard(pod.uid)
            # A state without a node, told while the member is assumed, is from before its binding.
            if pod.node_name or pod.uid not in state.assumed:
                state.put(pod)

    def assume(self, pod: Pod) -> None:
        """Count a member as scheduled on the node that it names."""
        if key := group_key(pod):
            with self._lock:
                self._groups.setdefault(key, MemberStates()).assume(pod)

    def forget(self, pod: Pod) -> None:
        """Undo `assume` for a member whose binding failed."""
        if key := group_key(pod):
            with self._lock:
                if (state := self._groups.get(key)) is not None:
                    state.forget(pod.bound_to(""))

    def remove(self, pod: Pod) -> None:
        """Remove a member that is gone or has ended."""
        if not (key := group_key(pod)):
            return
        with self._lock:
            state = self._groups.get(key)
            if state is None:
                return
            state.remove(pod.uid)
            if not state.pods:
                del self._groups[key]


@frozen(eq=False)
class QueuedGroup:
    """The members of a group that are scheduled in one cycle, in the order in which they are tried.

    `object` is None if the PodGroup doesn't exist.
    """

    key: str
    object: PodGroup | None
    pods: tuple[Pod, ...]


@frozen(eq=False)
class GroupPlacement:
    """Nodes of the snapshot on which a whole group might be placed; `name` tells placements apart."""

    name: str
    nodes: NodeSelection


@frozen(eq=False)
class PlacedGroup:
    """A placement, and the nodes that members would get there, by the members' uids."""

    placement: GroupPlacement
    node_names: Mapping[str, str]


MEMBER_STATES: StateKey[MemberStates] = StateKey("kschedfw.member_states")
"""The state of the group during its cycle, with the members that are assumed in the trial; absent outside of it."""


@define(eq=False)
class CallIn:
    """A flag in a group's cycle: its unscheduled members were activated, in a trial or while members are submitted.

    Once is enough while all are in flight; activating them for each that waits made the cycle quadratic.
    """

    is_done: bool = False


CALL_IN: StateKey[CallIn] = StateKey("kschedfw.call_in")
"""Shared by the states of a group's members during its cycle; absent outside of it."""


def _key(pod: Pod) -> str:
    return pod.key
