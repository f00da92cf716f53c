"""The plugin Coscheduling."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Mapping, Sequence

import attrs

from kschedfw import (
    ActionType,
    ClusterEvent,
    CycleState,
    EventResource,
    Handle,
    Plugin,
    Pod,
    PostFilterResult,
    PreBindPreFlightResult,
    QueuedPodInfo,
    QueueingHint,
    StateKey,
    Status,
    activate_pods,
    hookimpl,
)
from kschedfw_coscheduling.args import CoschedulingArgs
from kschedfw_coscheduling.gang import Gang, Rejection
from kschedfw_coscheduling.pod_group import PodGroup, gang_of
from kschedfw_coscheduling.resources import resource_gap
from kschedfw_coscheduling.turns import Failures, Turns

_LEFT_ALONE = StateKey[bool]("Coscheduling.left_alone")
"""True in the cycle of a pod that is refused during its gang's backoff.

`post_filter` then does nothing: the refusal doesn't show whether the pod fits.
"""

_SIBLING_FAILED = "rejection in Unreserve"

_ROOM_ON_NODES = (
    ActionType.ADD
    | ActionType.UPDATE_NODE_ALLOCATABLE
    | ActionType.UPDATE_NODE_LABEL
    | ActionType.UPDATE_NODE_TAINT
)
_STORAGE = (
    EventResource.PERSISTENT_VOLUME,
    EventResource.PERSISTENT_VOLUME_CLAIM,
    EventResource.STORAGE_CLASS,
    EventResource.CSI_NODE,
    EventResource.CSI_DRIVER,
    EventResource.CSI_STORAGE_CAPACITY,
    EventResource.VOLUME_ATTACHMENT,
)


@attrs.frozen
class _State:
    """The state that `restore_state` brings back.

    Reserve and unreserve restore a gang's places, but not its rejection and its failed pods.
    """

    gangs: Mapping[str, Gang]
    failures: Failures


class Coscheduling(Plugin[CoschedulingArgs]):
    """Places enough pods of a PodGroup together, or none of them.

    A pod that finds a place waits at permit until `minMember` pods of its group have one. The group is rejected, and
    all its places are given back, as soon as too few pods are left that could still get a place, or when the first wait
    times out. pre_filter asks the cluster for the group and its other pods, so it isn't pure.
    """

    name = "Coscheduling"
    args_type = CoschedulingArgs

    def __init__(self, args: CoschedulingArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._turns = Turns()
        self._gangs: dict[str, Gang] = {}
        self._numbers = itertools.count(1)
        # Scheduling and binding cycles both change the gangs. The lock isn't held while pods are allowed or rejected,
        # since their whole binding cycles may run meanwhile.
        self._lock = threading.Lock()

    @hookimpl
    def queue_sort(self, first: QueuedPodInfo, second: QueuedPodInfo) -> bool:
        return self._turns.of(first) < self._turns.of(second)

    @hookimpl
    def pre_filter(self, state: CycleState, pod: Pod) -> Status | None:
        key = gang_of(pod)
        if key is None:
            return None
        group = self._group(key)
        if group is None:
            return Status.unresolvable(f"PodGroup {key} not found")
        members = self._members(key, pod)
        if len(members) < group.spec.min_member:
            return Status.unresolvable(
                f"pre-filter pod {pod.name} cannot find enough sibling pods, "
                f"current pods number: {len(members)}, minMember of group: {group.spec.min_member}"
            )
        if self._is_left_alone(key, pod):
            state.write(_LEFT_ALONE, True)
            return Status.unresolvable(f"podGroup {key} failed recently")
        return self._check_resources(key, group, members)

    @hookimpl
    def post_filter(self, state: CycleState, pod: Pod) -> tuple[PostFilterResult | None, Status | None]:
        key = gang_of(pod)
        group = None if key is None else self._group(key)
        if key is None or group is None:
            return None, Status.unschedulable("can not find pod group")
        if _LEFT_ALONE in state:
            return None, Status.unschedulable(f"podGroup {key} is left alone for a while")
        members = self._members(key, pod)
        with self._lock:
            gang = self._gangs.setdefault(key, Gang())
            # First noted as failed, so that it isn't among those that are left.
            gang.failed.add(pod.uid)
            placed = self._placed(gang, members)
            left = {each.uid for each in members} - placed - gang.failed
        if (reason := self._reason_to_go_on(group, len(placed), len(left))) is not None:
            return None, Status.unschedulable(f"podGroup {key} {reason}")
        self._give_up(key, "optimistic rejection in PostFilter", members)
        return None, Status.unschedulable(
            f"PodGroup {key} gets rejected due to Pod {pod.name} is unschedulable even after PostFilter"
        )

    @hookimpl
    def permit(self, state: CycleState, pod: Pod) -> Status | None:
        key = gang_of(pod)
        if key is None:
            return None
        group = self._group(key)
        if group is None:
            return Status.unschedulable("PodGroup not found")
        members = self._members(key, pod)
        released: Iterable[str] = ()
        with self._lock:
            gang = self._gangs.setdefault(key, Gang())
            placed = self._placed(gang, members)
            # This pod waits only after its permit plugins have returned, so it isn't in `placed`.
            is_last = len(placed | {pod.uid}) >= group.spec.min_member
            if is_last:
                released = gang.let_all_go(pod.uid)
            else:
                if not gang.held:
                    gang.begin(next(self._numbers))
                    # The other pods may be in backoff, and this pod's wait is limited: schedule them at once.
                    activate_pods(state, *(each for each in members if each.uid not in placed | {pod.uid}))
                gang.held[pod.uid] = None
        # A wait may have timed out meanwhile. Then the pod isn't found, or `allow` changes nothing.
        for uid in released:
            if (waiting := self.handle.waiting_pods.get(uid)) is not None:
                waiting.allow(self.name)
        if is_last:
            self._turns.clear_failure(key)
            return None
        return Status.wait(
            group.spec.schedule_timeout_seconds or self.args.permit_waiting_time_seconds,
            f"PodGroup {key} waits until {group.spec.min_member} of its pods have a place",
        )

    @hookimpl
    def unreserve(self, pod: Pod) -> None:
        key = gang_of(pod)
        if key is None:
            return
        with self._lock:
            gang = self._gangs.get(key)
            # Only a pod that is unreserved for a reason of its own ends the gang's try. `_give_up` rejects the others,
            # and each of them comes here, too.
            is_news = gang is not None and gang.forget(pod.uid) and bool(gang.held)
            # Room was given back. It helps gangs that were rejected while this one held it.
            for other in self._gangs.values():
                if gang is not None and other is not gang:
                    other.hear_of_room(gang.began)
        if is_news:
            self._give_up(key, _SIBLING_FAILED, self._members(key, pod))
        self._clean_up(key)

    @hookimpl
    def pre_bind_pre_flight(self, pod: Pod) -> PreBindPreFlightResult:
        """End the pod's wait if its gang was given up before the wait began; `pre_bind` has nothing to do.

        A pod waits only after its last permit plugin has returned. Until then, another thread that gives up the gang
        finds no wait to end. This hook is the first one after the wait begins.
        """
        with self._lock:
            gang = self._gangs.get(gang_of(pod) or "")
            is_dropped = gang is not None and pod.uid in gang.dropped
        self._end_waits([pod.uid] if is_dropped else [], _SIBLING_FAILED)
        # Neighbours in the profile may still run side by side.
        return PreBindPreFlightResult(allow_parallel=True, skip=True)

    @hookimpl
    def pre_bind(self) -> None:
        """Do nothing. A plugin needs this hook to have `pre_bind_pre_flight`."""

    @hookimpl
    def post_bind(self, pod: Pod) -> None:
        key = gang_of(pod)
        if key is None:
            return
        with self._lock:
            gang = self._gangs.get(key)
            if gang is not None:
                gang.forget(pod.uid)
        self._clean_up(key)

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        siblings = (
            ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        )
        room = ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN
        return [
            ClusterEvent(PodGroup.kind, ActionType.ADD | ActionType.UPDATE, self._after_group_change),
            ClusterEvent(EventResource.POD, siblings, self._after_sibling),
            ClusterEvent(EventResource.ASSIGNED_POD, room, self._after_room_from_pod),
            ClusterEvent(EventResource.NODE, _ROOM_ON_NODES, self._after_node_change),
            *(ClusterEvent(each, ActionType.ALL, self._after_storage_change) for each in _STORAGE),
        ]

    def save_state(self) -> _State:
        with self._lock:
            gangs = {key: gang.copy() for key, gang in self._gangs.items()}
        return _State(gangs, self._turns.failures())

    def restore_state(self, token: _State) -> None:
        with self._lock:
            self._gangs = {key: gang.copy() for key, gang in token.gangs.items()}
        self._turns.set_failures(token.failures)

    def forget_attempts(self) -> None:
        with self._lock:
            for gang in self._gangs.values():
                gang.failed.clear()
                gang.rejection = None
            self._gangs = {key: gang for key, gang in self._gangs.items() if not gang.is_idle}
        self._turns.set_failures({})

    # Gangs and their pods

    def _group(self, key: str) -> PodGroup | None:
        return self.handle.cluster.get(PodGroup, key)

    def _members(self, key: str, pod: Pod) -> Sequence[Pod]:
        """Return the gang's pods that are on nodes or can be scheduled now.

        Gated, terminating and finished pods don't count.
        """
        return [
            each
            for each in self.handle.cluster.list(Pod, pod.namespace)
            if gang_of(each) == key and self._counts(each)
        ]

    def _counts(self, pod: Pod) -> bool:
        if pod.is_terminal or pod.is_terminating:
            return False
        waits = not pod.spec.scheduling_gates and pod.spec.scheduler_name == self.handle.profile_name
        return bool(pod.node_name) or waits

    def _placed(self, gang: Gang, members: Iterable[Pod]) -> set[str]:
        """Return the uids of pods that are bound, are being bound or wait at permit. The caller holds the lock."""
        held = {
            uid
            for uid in gang.held
            # A wait without a deadline is over, although the pod is listed until its binding cycle goes on.
            if (waiting := self.handle.waiting_pods.get(uid)) is not None and waiting.deadline is not None
        }
        return {each.uid for each in members if each.node_name} | gang.let_go | held

    def _check_resources(self, key: str, group: PodGroup, members: Sequence[Pod]) -> Status | None:
        if not group.spec.min_resources:
            return None
        with self._lock:
            gang = self._gangs.get(key, Gang())
            if gang.held:
                # The gang was checked when its first pod came.
                return None
            placed = self._placed(gang, members)
        gap = resource_gap(
            group.spec.min_resources,
            group.spec.min_member,
            self.handle.snapshot.node_infos,
            [each for each in members if each.uid in placed],
        )
        if not gap:
            return None
        missing = ", ".join(f"{name}: {amount}{'m' * (name == 'cpu')}" for name, amount in gap.items())
        return Status.unresolvable(f"resource gap of PodGroup {key}: {missing}")

    # Rejection and retries

    def _reason_to_go_on(self, group: PodGroup, placed: int, left: int) -> str | None:
        """Return why the gang goes on although one of its pods fits nowhere; None if it has to be rejected."""
        wanted, percentage = group.spec.min_member, self.args.pod_group_reject_percentage
        if placed >= wanted:
            return "has reached its minMember"
        if placed + left >= wanted:
            return "can still reach its minMember"
        # Multiplied out, so that nothing is rounded.
        if 100 * (wanted - placed) <= percentage * wanted:
            return f"misses no more than {percentage}% of its minMember"
        return None

    def _give_up(self, key: str, why: str, members: Iterable[Pod]) -> None:
        self._turns.mark_failure(key, self.handle.clock.now())
        rejection = Rejection(
            until=self.handle.clock.now() + self.args.pod_group_backoff_seconds,
            members=frozenset(each.uid for each in members),
            number=next(self._numbers),
        )
        with self._lock:
            dropped = self._gangs.setdefault(key, Gang()).drop_all(rejection)
            for other in [key for key, gang in self._gangs.items() if gang.is_idle]:
                # The PodGroup is gone, so no pod asks for this gang any more.
                if self._group(other) is None:
                    del self._gangs[other]
        self._end_waits(dropped, why)

    def _end_waits(self, uids: Iterable[str], why: str) -> None:
        for uid in uids:
            if (waiting := self.handle.waiting_pods.get(uid)) is not None:
                waiting.reject(self.name, why)

    def _is_left_alone(self, key: str, pod: Pod) -> bool:
        with self._lock:
            rejection = self._gangs.get(key, Gang()).rejection
        # A pod that is new since the rejection may complete the gang.
        if rejection is None or pod.uid not in rejection.members:
            return False
        return self.handle.clock.now() < rejection.until

    def _try_again(self, pod: Pod) -> QueueingHint:
        """Lift the rejection of the pod's gang, since an event may help it."""
        key = gang_of(pod)
        with self._lock:
            gang = None if key is None else self._gangs.get(key)
            if gang is not None:
                gang.rejection = None
        return QueueingHint.QUEUE

    def _clean_up(self, key: str) -> None:
        with self._lock:
            gang = self._gangs.get(key)
            # A rejection is kept, since it is what leaves the gang alone for its backoff.
            if gang is not None and gang.is_idle and gang.rejection is None:
                del self._gangs[key]

    def _after_group_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        before, after = PodGroup.of(old), PodGroup.of(new)
        if after is None or after.key != gang_of(pod) or (before is not None and before.spec == after.spec):
            return QueueingHint.SKIP
        return self._try_again(pod)

    def _after_sibling(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        if not isinstance(new, Pod) or gang_of(new) != gang_of(pod):
            return QueueingHint.SKIP
        # It counted before, so it can't complete the gang.
        if isinstance(old, Pod) and gang_of(old) == gang_of(new) and not old.spec.scheduling_gates:
            return QueueingHint.SKIP
        return self._try_again(pod)

    def _after_room_from_pod(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        """React to a pod that was deleted, was scaled down or gave back its reserved place.

        Places that the pod's own gang gives back don't help it. Places that another gang gives back help only if that
        gang held them when this one was rejected; `unreserve` checks this. Otherwise two gangs of which neither fits
        would wake each other for ever.
        """
        if not isinstance(old, Pod) or gang_of(old) == gang_of(pod):
            return QueueingHint.SKIP
        if new is None and self._is_pending(old):
            with self._lock:
                gang = self._gangs.get(gang_of(pod) or "")
                is_rejected = gang is not None and gang.rejection is not None
            return QueueingHint.SKIP if is_rejected else QueueingHint.QUEUE
        return self._try_again(pod)

    def _is_pending(self, pod: Pod) -> bool:
        if gang_of(pod) is None:
            return False
        present = self.handle.cluster.get(Pod, pod.key)
        return present is not None and present.uid == pod.uid and not present.node_name

    def _after_node_change(self, pod: Pod, _old: object | None, _new: object | None) -> QueueingHint:
        return self._try_again(pod)

    def _after_storage_change(self, pod: Pod, _old: object | None, _new: object | None) -> QueueingHint:
        # What the filters of volumes check concerns only pods with volumes.
        return self._try_again(pod) if pod.spec.volumes else QueueingHint.SKIP
