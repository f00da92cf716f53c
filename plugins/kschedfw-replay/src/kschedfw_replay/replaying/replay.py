"""Replays a history under a configuration, in virtual time."""

from __future__ import annotations

import heapq
import itertools
import math
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping
from random import Random
from typing import Final, cast

import attrs

from kschedfw import (
    GenericScheduler,
    InMemoryCluster,
    Node,
    Pod,
    Registry,
    Scheduler,
    VirtualClock,
)
from kschedfw.api import (
    POD_CLAIM_ANNOTATION,
    Named,
    PersistentVolume,
    PersistentVolumeClaim,
    PodCondition,
    ResourceClaim,
)
from kschedfw.cluster import EventType, WatchEvent, start_controllers
from kschedfw.scheduler import Setup, make_extenders
from kschedfw_replay.replaying.fates import Fate, Fates
from kschedfw_replay.replaying.history import Happening, History, follow
from kschedfw_replay.replaying.looking_back import EXPLAINED, LookingBack, Moved
from kschedfw_replay.replaying.measures import Account, Measures
from kschedfw_replay.replaying.room import Room
from kschedfw_replay.replaying.undecided import as_decided, differ_by_decisions, undecided

_REST: Final = 1.0
"""Seconds of its lifetime that an evicted pod must have left to come back, since evicting takes time itself."""
_LOST: Final = PodCondition("DisruptionTarget", "True", reason="DeletionByPodGC")
"""The condition of pods whose node is gone."""


@attrs.frozen
class Replayed:
    """A configuration's replay.

    Attributes:
        label: that of the configuration.
        measures: what came of the pods.
        same: pods that were bound first to the node of the recording.
        moved: pods that were bound first to another one.
        gained: pods that were bound only here.
        lost: pods that were bound only in the recording.
        why: reasons for moves, of the first ones, with their numbers.
        examples: the first pods that moved, without those of ties.
        nodes: each pod's `namespace/name` and the node that it was bound to first, by its number in the recording;
            empty unless asked for.
    """

    label: str
    measures: Measures
    same: int
    moved: int
    gained: int
    lost: int
    why: Counter[str]
    examples: tuple[Moved, ...]
    nodes: Mapping[int, tuple[str, str]] = attrs.field(factory=dict)


@attrs.define(eq=False)
class _Stay:
    """A pod's presence in the replay.

    Attributes:
        pod: as recorded last.
        number: the pod's number in the recording, by which it is the same one in every replay.
        fate: what became of it really.
        left: the seconds that it still has to run once it is bound.
        is_given: whether its place isn't for the configuration to decide.
        bound_at: when it was bound in the replay; None while it waits.
        was_bound: whether the configuration has ever bound it.
        has_ended: whether the recording has deleted it.
    """

    pod: Pod
    number: int
    fate: Fate
    left: float
    is_given: bool
    bound_at: float | None = None
    was_bound: bool = False
    has_ended: bool = False

    @property
    def ends_at(self) -> float:
        """Return the time at which the pod leaves unless it is evicted before."""
        return math.inf if self.bound_at is None else self.bound_at + self.left


class Replay:
    """One run over a history; `run` is called once.

    Pods arrive as recorded, and stay where the configuration puts them for as long as they stayed on their node in the
    recording. A pod that was never bound there leaves when it was deleted. A pod that loses its place (it is preempted,
    or its node goes) comes back at once, to run for the rest of its time; so each pod runs as long as it really ran. A
    pod whose name is still in use waits for it, as that of a StatefulSet does.

    Pods that appear bound, and pods of other schedulers, are where they were. Nodes and other objects change as
    recorded; only claims and volumes, whose changes are consequences of decisions, are left to the controllers of the
    cluster in memory.
    """

    def __init__(
        self,
        setup: Setup,
        history: History,
        fates: Fates,
        *,
        seed: int = 0,
        explained: int = EXPLAINED,
        registry: Registry | None = None,
        make_room: Callable[[float], Room] | None = None,
        observe: Callable[[Happening], object] = lambda _happening: None,
        keeps_nodes: bool = False,
    ) -> None:
        """Prepare the run.

        Args:
            setup: the configuration.
            history: what is replayed.
            fates: what really became of its pods.
            seed: of all random numbers.
            explained: how many of the pods that moved are explained.
            registry: of plugins.
            make_room: makes what follows the room on nodes, given the time at which the history begins.
            observe: called with each happening, before it is replayed.
            keeps_nodes: whether the result has the node of each pod, which takes memory for all pods of the recording.
        """
        self._nodes: dict[int, tuple[str, str]] | None = {} if keeps_nodes else None
        self._make_room, self._observe = make_room, observe
        self._room: Room | None = None
        self._setup, self._history, self._fates = setup, history, fates
        self._scheduler_name = setup.profiles[0].scheduler_name if setup.takes_every_pod else None
        """The scheduler that all pods are for; None if each is for the one that it names."""
        self._seed, self._registry = seed, registry
        self._explained = explained
        self._clock = VirtualClock()
        # Nobody reads the Events of a replay.
        self._cluster = InMemoryCluster(events_limit=1)
        self._stays: dict[str, _Stay] = {}
        """Pods that are in the cluster, by key."""
        self._recorded: dict[str, _Stay] = {}
        """Pods that are in the recording at this time, by key."""
        self._queued: defaultdict[str, deque[_Stay]] = defaultdict(deque)
        """Pods that wait for their name."""
        self._ends: list[tuple[float, bool, int, _Stay]] = []
        """The ends of stays, as a heap: time, whether it is after others were scheduled, a distinct number, stay."""
        self._order = itertools.count()
        self._numbers = itertools.count()
        self._displaced: list[_Stay] = []
        """Pods that come as soon as the scheduler is idle: they have lost their places, or their name is free."""
        self._counts: Counter[str] = Counter()

    def run(self) -> Replayed:
        """Replay the history.

        Raises:
            RecordingError: the recording is damaged.
            StandstillError: pods were tried without end in one moment.
            ProfileError, PluginError, ExtensionError: the configuration can't run.
        """
        happenings = iter(self._history)
        first = next(happenings)
        self._clock.advance_to(first.at)
        self._account = Account(first.at)
        self._room = None if self._make_room is None else self._make_room(first.at)
        self._scheduler = self._make_scheduler()
        controllers = start_controllers(self._cluster)
        stop = self._cluster.watch(self._see)
        try:
            groups = itertools.groupby(itertools.chain((first,), happenings), key=lambda each: each.at)
            for at, together in groups:
                self._pass_time(at)
                for happening in together:
                    self._observe(happening)
                    self._apply(happening)
                self._settle()
            self._pass_time(self._history.ends)
        finally:
            stop()
            for controller in controllers:
                controller.close()
            self._scheduler.close()
        for stay in itertools.chain(self._stays.values(), *self._queued.values()):
            self._count_lost(stay)
        measures = self._account.measures(self._history.ends)
        return Replayed(
            label=self._setup.label,
            measures=measures if self._room is None else measures.with_room(self._room, self._history.ends),
            same=self._counts["same"],
            moved=self._counts["moved"],
            gained=self._counts["gained"],
            lost=self._counts["lost"],
            why=self._looking_back.why,
            examples=tuple(self._looking_back.examples),
            nodes=self._nodes or {},
        )

    def _make_scheduler(self) -> Scheduler:
        settings = self._setup.configuration
        scheduler = Scheduler(
            self._cluster,
            self._setup.profiles,
            registry=self._registry,
            clock=self._clock,
            random=Random(self._seed),
            extenders=make_extenders(settings.extenders, clock=self._clock),
            percentage_of_nodes_to_score=settings.percentage_of_nodes_to_score,
            initial_backoff=float(settings.pod_initial_backoff_seconds),
            max_backoff=float(settings.pod_max_backoff_seconds),
            # A pod may wait for months of a recording.
            retry_unchanged=False,
            feature_gates=settings.gates,
        )
        generic = scheduler.algorithm
        assert isinstance(generic, GenericScheduler)
        scheduler.algorithm = self._looking_back = LookingBack(generic, self._recorded_node, self._explained)
        return scheduler

    # --- time ---

    def _pass_time(self, until: float) -> None:
        """Let pods leave, and retry others, as time passes."""
        while (due := self._next_time()) is not None and due < until:
            self._clock.advance_to(due)
            self._let_leave()
            self._settle()
        self._clock.advance_to(until)
        self._let_leave()

    def _next_time(self) -> float | None:
        """Return the next time at which a pod leaves or is retried; everything due now has been done."""
        times = [each.deadline for each in self._scheduler.waiting_pods if each.deadline is not None]
        times += [end for end, *_ in self._ends[:1]]
        if (retry := self._scheduler.queue.next_deadline()) is not None:
            times.append(retry)
        return min((time for time in times if time > self._clock.now()), default=None)

    def _let_leave(self, *, is_settled: bool = False) -> bool:
        """Let pods leave whose time is over; victims only when others were scheduled. Return whether any did."""
        has_left = False
        while self._ends and self._ends[0][0] <= self._clock.now() and is_settled >= self._ends[0][1]:
            due, _, _, stay = heapq.heappop(self._ends)
            # An eviction may have put its end off.
            if self._stays.get(stay.pod.key) is stay and stay.ends_at == due:
                self._leave(stay)
                has_left = True
        return has_left

    def _settle(self) -> None:
        """Schedule until nothing more can be done at this time."""
        while True:
            self._scheduler.run_until_idle()
            displaced, self._displaced = self._displaced, []
            for stay in displaced:
                self._come(stay)
            # The recording's victims leave last, so that here, too, somebody is there to be preempted.
            if not displaced and not self._let_leave(is_settled=True):
                return

    # --- what the recording tells ---

    def _apply(self, happening: Happening) -> None:
        old, new = happening.old, happening.new
        match happening.object:
            case Pod() as pod:
                if old is None:
                    self._arrive(pod)
                elif new is None:
                    self._end_recorded(self._recorded.pop(pod.key))
                else:
                    self._change(cast("Pod", old), pod, self._recorded[pod.key])
            case Node() as node if new is None:
                follow(self._cluster, old, new)
                self._lose(node.name)
            case PersistentVolume() | PersistentVolumeClaim() | ResourceClaim():
                self._apply_claim(happening)
            case _:
                follow(self._cluster, old, new)

    def _arrive(self, pod: Pod) -> None:
        is_given = bool(pod.node_name) or not self._is_ours(pod)
        # The survey has numbered the pods in the same order.
        number = next(self._numbers)
        fate = self._fates[number]
        stay = _Stay(
            pod if is_given else undecided(pod, self._scheduler_name), number, fate, fate.run_time, is_given
        )
        self._recorded[pod.key] = stay
        self._come(stay)

    def _change(self, before: Pod, recorded: Pod, stay: _Stay) -> None:
        if not stay.is_given and differ_by_decisions(before, recorded):
            return
        pod = recorded if stay.is_given else undecided(recorded, self._scheduler_name)
        if pod == stay.pod:
            return
        stay.pod = pod
        if self._stays.get(pod.key) is stay:
            present = self._cluster.get(Pod, pod.key)
            assert present is not None
            self._cluster.update(pod if stay.is_given else as_decided(pod, present))

    def _end_recorded(self, stay: _Stay) -> None:
        """Take over the end of a pod that was never bound; others leave when their time is over."""
        stay.has_ended = True
        if stay.fate.node is not None:
            return
        key = stay.pod.key
        if self._stays.get(key) is stay:
            self._leave(stay)
        elif stay in self._displaced:
            self._displaced.remove(stay)
        else:
            self._queued[key].remove(stay)

    def _lose(self, node_name: str) -> None:
        """Evict the pods of a node that is gone. Those that ran on it in the recording, too, have ended with it."""
        for pod in [each for each in self._cluster.list(Pod) if each.node_name == node_name]:
            stay = self._stays.get(pod.key)
            if stay is None:
                continue
            if stay.has_ended or stay.fate.node == node_name:
                self._leave(stay)
            else:
                self._cluster.patch_pod_status(pod, condition=_LOST)
                self._cluster.delete(pod)

    def _apply_claim(self, happening: Happening) -> None:
        """Take over that a claim or a volume appears or goes; what else happens to it follows from decisions."""
        obj = happening.object
        known = self._cluster.get(type(obj), obj.key)
        if happening.at > self._history.begins and _is_consequence(obj):
            return
        if happening.new is None and known is not None:
            self._cluster.delete(known)
        elif happening.old is None and known is None:
            self._cluster.add(obj)

    def _is_ours(self, pod: Pod) -> bool:
        """Return whether the configuration decides on the pod."""
        return self._setup.takes_every_pod or pod.spec.scheduler_name in self._scheduler.frameworks

    # --- what becomes of pods here ---

    def _come(self, stay: _Stay) -> None:
        key = stay.pod.key
        if key in self._stays:
            self._queued[key].append(stay)
        else:
            self._stays[key] = stay
            self._cluster.add(stay.pod)

    def _leave(self, stay: _Stay) -> None:
        key = stay.pod.key
        del self._stays[key]
        pod = self._cluster.get(Pod, key)
        assert pod is not None
        self._cluster.delete(pod)
        self._count_lost(stay)
        self._free(key)

    def _free(self, key: str) -> None:
        """Let a pod that waits for this name arrive."""
        if queued := self._queued.get(key):
            self._displaced.append(queued.popleft())
            if not queued:
                del self._queued[key]

    def _see(self, event: WatchEvent) -> None:
        obj, now = event.object, self._clock.now()
        is_gone = event.type is EventType.DELETED
        old, new = (obj, None) if is_gone else (event.old, obj)
        self._account.take(now, old, new)
        if self._room is not None:
            self._room.take(now, old, new)
        if not isinstance(obj, Pod) or (stay := self._stays.get(obj.key)) is None:
            return
        if is_gone:
            self._displace(stay)
        elif obj.node_name and stay.bound_at is None:
            self._bind(obj, stay)

    def _bind(self, pod: Pod, stay: _Stay) -> None:
        stay.bound_at = self._clock.now()
        if not math.isinf(stay.ends_at):
            heapq.heappush(self._ends, (stay.ends_at, stay.fate.was_preempted, next(self._order), stay))
        if stay.was_bound or stay.is_given:
            return
        stay.was_bound = True
        if self._nodes is not None:
            self._nodes[stay.number] = pod.key, pod.node_name
        recorded = stay.fate.node
        self._counts["gained" if recorded is None else "same" if recorded == pod.node_name else "moved"] += 1

    def _displace(self, stay: _Stay) -> None:
        """Let a pod that was evicted come back for the rest of its time, if the configuration decides on it."""
        key = stay.pod.key
        del self._stays[key]
        if stay.bound_at is not None:
            stay.left -= self._clock.now() - stay.bound_at
        if stay.left < _REST or not self._is_ours(stay.pod):
            self._free(key)
            return
        fresh = undecided(stay.pod, self._scheduler_name)
        # Another pod of this name.
        stay.pod = fresh.with_metadata(attrs.evolve(fresh.metadata, uid=""))
        stay.bound_at, stay.was_bound, stay.is_given = None, True, False
        self._displaced.append(stay)

    def _recorded_node(self, pod: Pod) -> str | None:
        """Return the node of the recording for a pod that is bound for the first time; None for any other."""
        stay = self._stays.get(pod.key)
        return None if stay is None or stay.was_bound else stay.fate.node

    def _count_lost(self, stay: _Stay) -> None:
        self._counts["lost"] += stay.fate.node is not None and not stay.was_bound and not stay.is_given


def _is_consequence(obj: Named) -> bool:
    """Return whether a controller has made a claim or volume because of a pod, as those of the replay do."""
    if isinstance(obj, PersistentVolume):
        return obj.spec.claim_ref is not None
    return isinstance(obj, ResourceClaim) and POD_CLAIM_ANNOTATION in obj.annotations
