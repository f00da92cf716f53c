"""Trials of groups: changes of the snapshot that are undone, and the results for members, placements and groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import attrs

from kschedfw.api.pod import Pod
from kschedfw.api.records import define, frozen
from kschedfw.framework.groups import GroupPlacement, MemberStates, PlacedGroup
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.nominator import Nominator
from kschedfw.framework.results import PostFilterResult
from kschedfw.framework.runtime.placement_hooks import PlacementScore
from kschedfw.framework.status import Status
from kschedfw.scheduler.attempt import CLEAR_NOMINATION, Attempt
from kschedfw.scheduler.generic_scheduler import ScheduleResult

UNSCHEDULABLE: Final = "pod group is unschedulable"


@define(eq=False)
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


@frozen(eq=False)
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


Feasible: TypeAlias = Callable[[PlacedGroup, int, int], Status]
"""Tells whether a placement suffices for the group; gets the placed members, the number untried and that scheduled."""


def outcome(said: Status) -> tuple[Status, bool]:
    """Return the group's status if the trial ended after what plugins said of it, and whether it does."""
    if said.is_success:
        return said, False
    if said.is_wait or said.is_rejected:
        return Status.unschedulable(UNSCHEDULABLE, *said.reasons), not said.is_wait
    return Status.from_error(f"failed to evaluate placement feasibility: {said.message}"), True


@frozen(eq=False)
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
        """True if the chosen placement suffices for the group."""
        return self.status.is_success or self.is_waiting


@frozen
class AffinityLists:
    """The names of the nodes with pods that have affinity, and required anti-affinity, when a cycle began."""

    with_affinity: frozenset[str]
    with_anti_affinity: frozenset[str]

    @classmethod
    def of(cls, snapshot: Snapshot) -> AffinityLists:
        return cls(
            frozenset(info.name for info in snapshot.with_affinity),
            frozenset(info.name for info in snapshot.with_required_anti_affinity),
        )

    def on_trial(self, info: PodInfo, node_name: str) -> PodInfo:
        """The pod as other members see it while it is assumed in a trial."""
        return info.on_trial(
            listed=node_name in self.with_affinity,
            listed_anti_affinity=node_name in self.with_anti_affinity,
        )


class SnapshotTrial:
    """Puts pods on nodes of the snapshot and takes them away, until `undo`."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._before: dict[str, NodeInfo] = {}

    def add(self, pods: Iterable[tuple[PodInfo, str]]) -> None:
        """Put pods on the nodes of these names."""
        changed: dict[str, NodeInfo] = {}
        for info, name in pods:
            if name not in changed:
                changed[name] = self._changing(name)
            changed[name].add_pod(info)
        self._snapshot.update(changed.values())

    def remove(self, pods: Iterable[Pod]) -> None:
        """Take pods off the nodes that they are on."""
        changed: dict[str, NodeInfo] = {}
        for pod in pods:
            name = pod.node_name
            if name not in changed:
                changed[name] = self._changing(name)
            changed[name].remove_pod(pod)
        self._snapshot.update(changed.values())

    def put_back(self, pods: Iterable[Pod]) -> None:
        """Undo `remove` of these pods."""
        self.add((PodInfo.of(pod), pod.node_name) for pod in pods)

    def undo(self) -> None:
        """Bring back the nodes as they were."""
        self._snapshot.update(self._before.values())
        self._before = {}

    def _changing(self, node_name: str) -> NodeInfo:
        present = self._snapshot.get(node_name)
        # A node may change several times; the state before the first change comes back.
        self._before.setdefault(node_name, present)
        # The snapshot's own is sealed.
        return present.clone()


class MemberTrial:
    """Members that are assumed one after the other, on the snapshot and in the state of their group, until `undo`."""

    def __init__(
        self, snapshot: Snapshot, nominator: Nominator, states: MemberStates, lists: AffinityLists
    ) -> None:
        self._lists = lists
        self.states = states.copy()
        """The group's state with the assumed members."""
        self._nodes = SnapshotTrial(snapshot)
        self._nominator = nominator
        self._nominations: list[tuple[PodInfo, str]] = []

    def assume(self, members: Sequence[tuple[PodInfo, str]]) -> Sequence[Pod]:
        """Put members on nodes, where they need no nomination any more; gives the pods with their nodes."""
        found = [(info, info.pod.bound_to(node_name)) for info, node_name in members]
        on_trial = [self._lists.on_trial(PodInfo.of(pod), pod.node_name) for _, pod in found]
        self._nodes.add((info, info.pod.node_name) for info in on_trial)
        for info, assumed in found:
            if nominated := self._nominator.node_of(assumed.uid):
                self._nominations.append((info, nominated))
                self._nominator.delete(assumed)
            self.states.assume(assumed)
        return [assumed for _, assumed in found]

    def forget(self, info: PodInfo, assumed: Pod) -> None:
        """Undo `assume` of one member."""
        self._nodes.remove([assumed])
        self.states.forget(info.pod)
        for known in [each for each in self._nominations if each[0] is info]:
            self._nominations.remove(known)
            self._nominator.add(*known)

    def undo(self) -> None:
        """Undo everything."""
        self._nodes.undo()
        for info, node_name in self._nominations:
            self._nominator.add(info, node_name)
