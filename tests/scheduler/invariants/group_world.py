"""A random world with groups of pods: gangs and basic groups, in zones or anywhere, that preempt and are preempted.

Its cluster loses events and answers, its plugins fail, its bindings come late (as in `world.py`). The properties of any
scheduler hold after every step, those of groups are in `group_properties.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

import attrs

from kschedfw import FeatureGates, hookimpl, make_pod_group
from kschedfw.api.meta import Named
from kschedfw.api.pod import Pod, PodSchedulingGroup
from kschedfw.api.pod_groups import PodGroup, group_key
from kschedfw.config import default_profile
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.events import ClusterEvent
from kschedfw.framework.groups import GroupPlacement
from kschedfw.framework.profile import EnabledPlugin, Profile
from kschedfw.framework.runtime.registry import Registry
from kschedfw.framework.status import Status
from kschedfw.scheduler.attempt import Attempt
from kschedfw.scheduler.groups.cycle import GroupDecision
from kschedfw.scheduler.queue.cluster_events import queue_name_since_v1_37
from kschedfw.scheduler.queue.protocol import Place
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.scheduler.select import FirstByNameSelector
from tests.scheduler.invariants import group_properties, properties
from tests.scheduler.invariants.flaky import FlakyCluster
from tests.scheduler.invariants.objects import NODE_NAMES, POD_NAMES, ZONE, random_node, random_pod
from tests.scheduler.invariants.plugins import Doorkeeper, First, Journal, Last, Troublemaker
from tests.scheduler.invariants.world import (
    MAX_BACKOFF,
    RETRY_BOUND,
    UNSCHEDULABLE_TIMEOUT,
    World,
)

GATES = FeatureGates.of(
    "GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption"
)
WITHOUT_PREEMPTION_OF_GROUPS = FeatureGates.of(
    "GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling"
)
GROUP_NAMES = ("g0", "g1", "g2", "g3")
_ROUNDS = 30
"""So often the cluster may still change while everything calms down."""


class Entrance(First):
    """As `First`, but that members of a group change the snapshot for each other while a cycle lasts."""

    @hookimpl
    def pre_filter(self, pod: Pod) -> None:
        self.args.attempts[pod.uid] = self.args.attempts.get(pod.uid, 0) + 1
        self.args.meddled = False

    @hookimpl
    def post_filter(self) -> tuple[None, Status]:
        return None, Status.unschedulable()

    @hookimpl
    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        # What a trial reserved and gave back is done with: a member that is placed is reserved for again.
        if self.args.reservations.get(id(state), (state, "", [""]))[2][-1] == "unreserve First":
            del self.args.reservations[id(state)]
        self.args.called(state, pod, "reserve First")
        self.args.on_reserve(self.handle.snapshot, pod, node_name)


REGISTRY = Registry()
for _plugin in (Entrance, Last, Troublemaker, Doorkeeper):
    REGISTRY.register(_plugin)


def _profile(journal: Journal, gates: FeatureGates, *, complete_hints: bool) -> Profile:
    watching = ("First", "Troublemaker", "Doorkeeper", "Last")
    inner = default_profile(feature_gates=gates).multi_point
    first, *others = (EnabledPlugin(name) for name in watching)
    hints = {"completeHints": complete_hints}
    args: dict[str, object] = {"InterPodAffinity": hints, "PodTopologySpread": hints}
    return Profile(multi_point=(first, *inner, *others), args=dict.fromkeys(watching, journal) | args)


class WatchedCluster(FlakyCluster):
    """Tells which gangs a binding that failed, or a pod that goes, leaves in part.

    `hold_back` is told of pods that lost their place before they were bound: to a preemption, or since their wait for
    the doorkeeper was in vain, or since the doorkeeper failed or refused them, or since a `pre_bind` failed. As in
    kube-scheduler, GangScheduling lets waiting members go with the first permit that makes the gang complete, also in
    a trial of the group, and the doorkeeper is asked after it. Whoever has lost a place can come back too late: another
    pod has it then, or a node of the gang has come into another zone.
    """

    def __init__(
        self, random: Random, disturb: Callable[[Pod], None], hold_back: Callable[[Pod], None]
    ) -> None:
        super().__init__(random)
        self.victims: defaultdict[str, list[Pod]] = defaultdict(list)
        """Those that were evicted for a pod or a group, by its uid."""
        self._disturb = disturb
        self._hold_back = hold_back

    def bind(self, pod: Pod, node_name: str) -> None:
        try:
            super().bind(pod, node_name)
        except Exception:
            self._disturb(pod)
            raise

    def record_event(
        self, regarding: Named, type: str, reason: str, message: str, related: Named | None = None
    ) -> None:
        if isinstance(regarding, Pod) and (
            reason == "Preempted" or "Doorkeeper" in message or "PreBind" in message
        ):
            self._hold_back(regarding)
        if isinstance(regarding, Pod) and reason == "Preempted" and related is not None:
            self.victims[related.uid].append(regarding)
        super().record_event(regarding, type, reason, message, related)

    def delete_gracefully(self, obj: object) -> None:
        if isinstance(obj, Pod):
            self._disturb(obj)
        super().delete_gracefully(obj)  # type: ignore[arg-type]  # it is one of the cluster's


class LeaversInDecisions:
    """Observes the cycles of groups: excuses gangs that were completed by a member that had lost its place already.

    As in kube-scheduler, a member that is preempted at permit counts until its binding cycle has given its place up.
    """

    follows_placed = False

    def __init__(self, disturb: Callable[[Pod], None]) -> None:
        self._disturb = disturb
        self._leavers: dict[str, Pod] = {}

    def note(self, pod: Pod) -> None:
        """Take notice of a pod that has lost its place."""
        self._leavers[pod.uid] = pod

    def member(self, placement: GroupPlacement, attempt: Attempt) -> None:
        """Follow no decision on a single member."""

    def decided(self, decision: GroupDecision) -> None:
        counted = {pod.uid for pod in decision.states.scheduled}
        tried = {pod.uid for pod in decision.group.pods}
        for uid, pod in tuple(self._leavers.items()):
            if uid in counted and decision.status.is_success:
                self._disturb(pod)
            if uid in tried:
                del self._leavers[uid]  # its next place is another one


class GroupWorld(World):
    """Everything that a run consists of. The same seed makes the same world; every fourth preempts pods one by one."""

    registry = REGISTRY
    always = group_properties.ALWAYS

    def __init__(self, seed: int, *, complete_hints: bool = False) -> None:
        self.gates = self._gates(seed)
        self.disturbed: set[str] = set()
        """Groups of which a member went, or wasn't bound, through no decision of the scheduler's on the group."""
        self.whole: set[str] = set()
        """The uids of gangs that were seen bound with at least as many members as they need."""
        self.leavers = LeaversInDecisions(self._disturb)
        super().__init__(seed, complete_hints=complete_hints)
        assert self.scheduler.group_cycle is not None
        self.scheduler.group_cycle.observer = self.leavers

    def _gates(self, seed: int) -> FeatureGates:
        return WITHOUT_PREEMPTION_OF_GROUPS if seed % 4 == 0 else GATES

    def _priority(self, group: str) -> int | None:  # for overriding
        """Return the priority of a group of this name and of its members; None if any will do."""
        return None

    def _make_cluster(self) -> FlakyCluster:
        return WatchedCluster(Random(self.seed + 1), self._disturb, self._hold_back)

    def _choose_ttl(self) -> float:
        return 0.0

    def _profiles(self) -> Sequence[Profile]:
        return [_profile(self.journal, self.gates, complete_hints=self.complete_hints)]

    def _make_scheduler(self, **options: Any) -> Scheduler:
        return super()._make_scheduler(
            selector=FirstByNameSelector(),  # a group that fits is found to fit each time
            feature_gates=self.gates,
            **options,
        )

    def _populate(self) -> None:
        for name in NODE_NAMES[:4]:
            self.cluster.truth.add(random_node(self.random, name, self._uid(name)))

    def _disturb(self, pod: Pod) -> None:
        if key := group_key(pod):
            self.disturbed.add(key)

    def _hold_back(self, pod: Pod) -> None:
        """Excuse the gang of a pod that lost its place if other members were permitted with it, and are too few alone.

        While they all wait for each other, a member that goes is no excuse: the gang has to stay out as a whole. Nor is
        one that the others don't need.
        """
        self.leavers.note(pod)
        key = group_key(pod)
        group = self.cluster.truth.get(PodGroup, key) if key else None
        waiting = self.scheduler.waiting_pods
        held = {each.pod.uid for each in waiting if "GangScheduling" in each.pending_plugins}
        permitted = sum(
            group_key(each) == key and each.uid not in held and each.uid != pod.uid
            for each in self.scheduler.cache.dump().pods
        )
        if group is not None and 0 < permitted < (group.min_count or 0):
            self._disturb(pod)

    def _how_to_replay(self) -> str:
        return f"replay_groups({self.seed}, {' '.join(self.steps)!r}, {type(self).__name__})"

    # Steps

    def add_pod(self) -> None:
        self._add(grouped=False)

    def add_member(self) -> None:
        self._add(grouped=True)

    def _add(self, *, grouped: bool) -> None:
        free = set(POD_NAMES) - {pod.name for pod in self.pods()}
        if not free:
            return
        name = self.random.choice(sorted(free))
        pod = random_pod(self.random, name, self._uid(name), "default-scheduler")
        spec = attrs.evolve(pod.spec, volumes=())  # volumes are the other world's
        if grouped:
            group = PodSchedulingGroup(self.random.choice(GROUP_NAMES))
            spec = attrs.evolve(spec, scheduling_group=group)
            if (priority := self._priority(group.pod_group_name)) is not None:
                spec = attrs.evolve(spec, priority=priority)
        self.cluster.truth.add(attrs.evolve(pod, spec=spec))

    def add_group(self) -> None:
        free = set(GROUP_NAMES) - {group.name for group in self.cluster.truth.list(PodGroup)}
        if not free:
            return
        name = self.random.choice(sorted(free))
        # Members of an earlier group of this name may run already.
        self.disturbed.add(f"default/{name}")
        chosen, given = self.random.choice([0, 0, 10, 50]), self._priority(name)
        made = make_pod_group(name).priority(chosen if given is None else given)
        if self.random.random() < 0.8:
            made.gang(min_count=self.random.randint(1, 4))
        if self.random.random() < 0.3:
            made.topology(ZONE)
        if self.random.random() < 0.3:
            made.disrupted_as_a_whole()
        built = made.build()
        self.cluster.truth.add(built.with_metadata(attrs.evolve(built.metadata, uid=self._uid(name))))

    def delete_group(self) -> None:
        if group := self._any(self.cluster.truth.list(PodGroup)):
            self.disturbed.add(group.key)
            self.cluster.truth.delete(group)

    def bind_elsewhere(self) -> None:
        for pod in self.pods(lambda pod: not pod.node_name):
            self._disturb(pod)
        super().bind_elsewhere()

    def delete_node(self) -> None:
        super().delete_node()
        for pod in self.pods():
            self._disturb(pod)  # where it was going there is nothing any more

    def advance_long(self) -> None:
        self.clock.advance(RETRY_BOUND)
        self.drain()

    def relist(self) -> None:
        self.cluster.relist(self.scheduler.events.resync)
        properties.check(self, properties.AFTER_RELIST)

    def settle(self) -> None:
        """Nothing goes wrong any more and nobody interferes: the scheduler has to come to rest, and rightly so."""
        cluster, journal = self.cluster, self.journal
        cluster.calm, journal.trouble = True, False
        self.drain()
        # Two groups can else chase each other out of their places for ever, each before its members are bound.
        self.executor.inline = True
        for _ in range(_ROUNDS):
            before = cluster.truth.list(Pod), dict(cluster.bound)
            for pod in self.pods(lambda pod: pod.is_terminating):
                cluster.finish_termination(pod)
            cluster.relist(self.scheduler.events.resync)
            for waiting in self.waiting:
                waiting.allow("Doorkeeper")
            for _ in range(3):
                self.rest()
                self.clock.advance(MAX_BACKOFF + 2.0)
            self.clock.advance(UNSCHEDULABLE_TIMEOUT + 1.0)
            self.rest()
            cluster.relist(self.scheduler.events.resync)
            now = [(pod.uid, pod.node_name, pod.is_terminating) for pod in cluster.truth.list(Pod)]
            if now == [(pod.uid, pod.node_name, pod.is_terminating) for pod in before[0]]:
                break
        else:
            raise AssertionError("decisions go on and on, though nothing happens")
        properties.check(self, (*group_properties.ALWAYS, *properties.AFTER_TICK, *properties.AFTER_RELIST))
        properties.check(self, group_properties.AT_REST)
        cluster.calm, journal.trouble, self.executor.inline = False, True, False
        self.excused = properties.overfull(cluster.truth)
        cluster.lost_answers.clear()
        self.disturbed = group_properties.in_part(self)

    def drain(self) -> None:
        """Schedule until no pod is active, and run all binding cycles. Who backs off isn't tried before its time."""
        for _ in range(500):
            self.scheduler.tick()
            if (attempt := self.scheduler.begin_attempt()) is not None:
                self.scheduler.make_attempt(attempt)
            if self.executor.tasks:
                self.executor.tasks.pop(0)()
            elif attempt is None:
                return
        raise AssertionError("the scheduler doesn't come to rest")

    def rest(self) -> None:
        """Let the scheduler do all that it can, and know of it."""
        self.drain()
        self.cluster.deliver_all()
        self.drain()

    def _meddle(self) -> None:
        step = self.random.choice(["change_node", "delete_pod", "finish_termination"])
        GROUP_STEPS[step](self)
        self.cluster.deliver_all()

    def close(self) -> None:
        """Shut down in good order; nothing may be left over."""
        self.executor.inline = True
        while self.executor.tasks:
            self.executor.tasks.pop(0)()
        self.scheduler.close()
        properties.check(self, properties.CLOSED)


class LaterGroupWorld(GroupWorld):
    """The same under v1.37, where members must have their group's priority, and groups preempt as a whole."""

    def _gates(self, seed: int) -> FeatureGates:
        gates = ("GenericWorkload", *(("TopologyAwareWorkloadScheduling",) if seed % 2 else ()))
        return FeatureGates(dict.fromkeys(gates, True), "1.37")

    def _priority(self, group: str) -> int | None:
        return dict(zip(GROUP_NAMES, (0, 10, 50, 0), strict=True))[group]

    def name_of(self, event: ClusterEvent) -> str:
        return queue_name_since_v1_37(event)

    def sizes_of_places(self, sizes: Mapping[str, int]) -> Mapping[str, int]:
        gated = [key for pod in self.scheduler.queue.pods_in(Place.GATED) if (key := group_key(pod))]
        without_group = sum(self.cluster.truth.get(PodGroup, key) is None for key in gated)
        return {**sizes, Place.GATED: sizes[Place.GATED] - without_group, "incomplete": without_group}


GROUP_STEPS: dict[str, Callable[[GroupWorld], None]] = {
    step.__name__: step
    for step in (
        GroupWorld.add_pod,
        GroupWorld.add_member,
        GroupWorld.add_group,
        GroupWorld.delete_group,
        GroupWorld.delete_pod,
        GroupWorld.finish_termination,
        GroupWorld.relabel_pod,
        GroupWorld.ungate,
        GroupWorld.bind_elsewhere,
        GroupWorld.add_node,
        GroupWorld.change_node,
        GroupWorld.delete_node,
        GroupWorld.change_budget,
        GroupWorld.deliver,
        GroupWorld.schedule,
        GroupWorld.bind,
        GroupWorld.decide_permit,
        GroupWorld.activate,
        GroupWorld.advance,
        GroupWorld.advance_long,
        GroupWorld.relist,
        GroupWorld.settle,
    )
}
_WEIGHTS = dict.fromkeys(GROUP_STEPS, 2.0) | {
    "add_pod": 6,
    "add_member": 18,
    "add_group": 5,
    "delete_group": 0.5,
    "deliver": 26,
    "schedule": 22,
    "bind": 16,
    "advance": 8,
    "delete_pod": 5,
    "finish_termination": 6,
    "bind_elsewhere": 0.3,
    "delete_node": 0.5,
    "advance_long": 0.4,
    "relist": 1,
    "settle": 1.5,
}


def run_group_world(seed: int, steps: int, kind: type[GroupWorld] = GroupWorld) -> GroupWorld:
    """Take that many random steps in a new world of this kind, then settle and close it.

    Raises:
        AssertionError: a property doesn't hold; the message has the seed and the steps.
    """
    world = kind(seed)
    chance = Random(seed + 4)
    for step in chance.choices(list(_WEIGHTS), list(_WEIGHTS.values()), k=steps):
        world.do(step)
    world.do("settle")
    world.close()
    return world


def replay_groups(seed: int, steps: str, kind: type[GroupWorld] = GroupWorld) -> GroupWorld:
    """Repeat a run from what its failure printed."""
    world = kind(seed)
    for step in steps.split():
        world.do(step)
    return world
