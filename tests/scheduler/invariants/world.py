"""A whole scheduler in one thread: its cluster, its binding cycles, its clock and its luck are the test's.

A world does one thing at a time (`do`), and checks the properties of `properties.py` after each. What it does is
determined by its seed and the names of the steps, so both together replay a run exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from threading import Condition
from typing import Any, TypeVar

import attrs

from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.storage import PersistentVolume, PersistentVolumeClaim
from kschedfw.api.volumes import claim_name
from kschedfw.api.workloads import PodDisruptionBudget
from kschedfw.cluster import ClusterError, VolumeController, WatchEvent
from kschedfw.config import default_profile
from kschedfw.framework.events import ClusterEvent
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.profile import EnabledPlugin, Profile
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.runtime.registry import Registry
from kschedfw.framework.waiting_pods import WaitingPod
from kschedfw.scheduler.queue.protocol import Place
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.testing import FakeClock
from tests.scheduler.invariants import inside, properties
from tests.scheduler.invariants.flaky import FlakyCluster
from tests.scheduler.invariants.gauges import Gauges
from tests.scheduler.invariants.objects import (
    CLAIM_NAMES,
    NODE_NAMES,
    POD_NAMES,
    VOLUME_NAMES,
    random_budget,
    random_claim,
    random_node,
    random_pod,
    random_volume,
    storage_classes,
)
from tests.scheduler.invariants.plugins import WATCHED, Journal, WatchedArgs, WatchedPreemption

T = TypeVar("T")
SCHEDULER_NAMES = ("default-scheduler", "batch")
UNSCHEDULABLE_TIMEOUT, MAX_BACKOFF = 300.0, 10.0
BIND_TIMEOUT = 3
RETRY_BOUND = UNSCHEDULABLE_TIMEOUT + MAX_BACKOFF + 2.0
"""Seconds within which every pod that isn't gated is tried again; 2 for backoff's windows of full seconds."""
REGISTRY = Registry()
for _plugin in (*WATCHED, WatchedPreemption):
    REGISTRY.register(_plugin)


class BusyClock(FakeClock):
    """Whoever waits on it lets the time pass, and others do their work meanwhile."""

    def __init__(self, now: float) -> None:
        super().__init__(now)
        self.meanwhile: Callable[[], None] = lambda: None

    def wait_until(self, condition: Condition, deadline: float) -> None:
        self.advance(max(0.0, deadline - self.now()))
        self.meanwhile()


class DeferringExecutor:
    """Keeps binding cycles until it is told to run one; at once when `inline`."""

    def __init__(self) -> None:
        self.tasks: list[Callable[[], None]] = []
        self.inline = False

    def submit(self, task: Callable[[], None], /) -> None:
        if self.inline:
            task()
        else:
            self.tasks.append(task)


def profile_with(name: str, journal: Journal, *, complete_hints: bool) -> Profile:
    inner = (
        EnabledPlugin("WatchedPreemption") if plugin.name == "DefaultPreemption" else plugin
        for plugin in default_profile().multi_point
    )
    watched: dict[str, object] = {plugin.name: journal for plugin in WATCHED}
    return Profile(
        multi_point=(
            EnabledPlugin("First"),
            *inner,
            EnabledPlugin("Troublemaker"),
            EnabledPlugin("Doorkeeper"),
            EnabledPlugin("Last"),
        ),
        args=watched
        | {
            "WatchedPreemption": WatchedArgs(journal=journal),
            "VolumeBinding": {"bindTimeoutSeconds": BIND_TIMEOUT},
            "InterPodAffinity": {"completeHints": complete_hints},
            "PodTopologySpread": {"completeHints": complete_hints},
        },
        scheduler_name=name,
    )


def _completes_hints(seed: int) -> bool:
    return seed % 2 == 1


class World:
    """Everything that a run consists of. The same seed makes the same world.

    In every other world hints are complete, in the rest they are kube-scheduler's own.
    """

    unschedulable_timeout = UNSCHEDULABLE_TIMEOUT
    registry = REGISTRY
    always = properties.ALWAYS

    def __init__(self, seed: int, *, complete_hints: bool | None = None) -> None:
        self.seed = seed
        self.complete_hints = _completes_hints(seed) if complete_hints is None else complete_hints
        self.steps: list[str] = []
        self.random = Random(seed)
        self.clock = BusyClock(1000.0)
        self.cluster = self._make_cluster()
        self.journal = Journal(Random(seed + 2), meddle=self._meddle)
        self.executor = DeferringExecutor()
        self.ttl = self._choose_ttl()
        self.gauges = Gauges()
        self.scheduler = self._make_scheduler()
        self.shadow = Snapshot()
        """A second snapshot, brought up to date at other times than the scheduler's own."""
        self.excused: set[str] = set()
        """Nodes that may hold too much through no fault of the scheduler's."""
        self.kept_out: set[str] = set()
        """The uids of pods that may have been kept out by a nomination, whose pod then took another node."""
        self.cluster.truth.watch(self._note_kept_out)
        self._uids = 0
        self._populate()

    # What differs between worlds

    def _make_cluster(self) -> FlakyCluster:
        return FlakyCluster(Random(self.seed + 1))

    def _choose_ttl(self) -> float:
        return self.random.choice([0.0, 0.0, 0.0, 30.0])

    def _profiles(self) -> Sequence[Profile]:
        return [
            profile_with(name, self.journal, complete_hints=self.complete_hints) for name in SCHEDULER_NAMES
        ]

    def _make_scheduler(self, **options: Any) -> Scheduler:
        return Scheduler(
            self.cluster,
            self._profiles(),
            registry=self.registry,
            clock=self.clock,
            random=Random(self.seed + 3),
            executor=self.executor,
            unschedulable_timeout=self.unschedulable_timeout,
            max_backoff=MAX_BACKOFF,
            assumed_pod_ttl=self.ttl,
            metrics=self.gauges,
            **options,
        )

    def _populate(self) -> None:
        self.volumes = VolumeController(self.cluster.truth, on_demand=True)
        self.clock.meanwhile = self._while_somebody_waits
        inside.observe(self)
        for storage_class in storage_classes():
            self.cluster.truth.add(storage_class)
        for _ in range(4):
            self.add_volume()
            self.add_claim()
        for name in NODE_NAMES[:4]:
            self.cluster.truth.add(random_node(self.random, name, self._uid(name)))

    # What there is

    @property
    def frameworks(self) -> Sequence[Framework]:
        return tuple(self.scheduler.frameworks.values())

    @property
    def waiting(self) -> Sequence[WaitingPod]:
        return list(self.scheduler.waiting_pods)

    def pods(self, wanted: Callable[[Pod], bool] = lambda pod: True) -> list[Pod]:
        return [pod for pod in self.cluster.truth.list(Pod) if wanted(pod)]

    def name_of(self, event: ClusterEvent) -> str:
        """The name of an event in the queue's metrics."""
        return event.label

    def sizes_of_places(self, sizes: Mapping[str, int]) -> Mapping[str, int]:
        """The sizes of the queue's places by their names in metrics."""
        return sizes

    def pending(self) -> list[Pod]:
        """The pods that the scheduler ought to be busy with, as the cluster has them."""
        return self.pods(
            lambda pod: (
                not pod.node_name
                and not pod.is_terminating
                and not pod.is_terminal
                and pod.spec.scheduler_name in SCHEDULER_NAMES
            )
        )

    # Steps

    def do(self, step: str) -> None:
        """Take the step and check what must hold then.

        Raises:
            AssertionError: a property doesn't hold; the message says how to replay the run.
        """
        self.steps.append(step)
        try:
            getattr(self, step)()
            properties.check(self, self.always)
        except Exception as error:
            raise AssertionError(
                f"seed {self.seed}, step {len(self.steps)} ({step}): {type(error).__name__}: {error}\n"
                f"{self._how_to_replay()}"
            ) from error

    def _how_to_replay(self) -> str:
        as_usual = self.complete_hints is _completes_hints(self.seed)
        hints = "" if as_usual else f", complete_hints={self.complete_hints}"
        return f"replay({self.seed}, {' '.join(self.steps)!r}{hints})"

    def add_pod(self) -> None:
        free = set(POD_NAMES) - {pod.name for pod in self.pods()}
        if free:
            name = self.random.choice(sorted(free))
            scheduler_name = self.random.choice((*SCHEDULER_NAMES, SCHEDULER_NAMES[0], "somebody-else"))
            self.cluster.truth.add(random_pod(self.random, name, self._uid(name), scheduler_name))

    def delete_pod(self) -> None:
        if pod := self._any(self.pods()):
            self.cluster.delete_gracefully(pod)

    def finish_termination(self) -> None:
        if pod := self._any(self.pods(lambda pod: pod.is_terminating)):
            self.cluster.finish_termination(pod)

    def relabel_pod(self) -> None:
        if pod := self._any(self.pods()):
            labels = FrozenDict({**pod.labels, "rev": str(self.random.randrange(3))})
            self.cluster.truth.update(attrs.evolve(pod, metadata=attrs.evolve(pod.metadata, labels=labels)))

    def ungate(self) -> None:
        if pod := self._any(self.pods(lambda pod: bool(pod.spec.scheduling_gates))):
            self.cluster.truth.update(attrs.evolve(pod, spec=attrs.evolve(pod.spec, scheduling_gates=())))

    def bind_elsewhere(self) -> None:
        """Another scheduler binds a pod, perhaps one that this one is about to bind."""
        node = self._any(self.cluster.truth.list(Node))
        pod = self._any(self.pods(lambda pod: not pod.node_name and not pod.spec.scheduling_gates))
        if node and pod and not pod.is_terminating:
            self.excused.add(node.name)
            self.cluster.truth.bind(pod, node.name)

    def add_node(self) -> None:
        free = set(NODE_NAMES) - {node.name for node in self.cluster.truth.list(Node)}
        if free:
            name = self.random.choice(sorted(free))
            node = random_node(self.random, name, self._uid(name))
            # Pods of an earlier node of this name may still be there.
            self.excused.add(node.name)
            self.cluster.truth.add(node)

    def change_node(self) -> None:
        if node := self._any(self.cluster.truth.list(Node)):
            self.excused.add(node.name)  # it may have shrunk
            self.cluster.truth.update(random_node(self.random, node.name, node.uid))

    def delete_node(self) -> None:
        nodes = self.cluster.truth.list(Node)
        if len(nodes) > 1 and (node := self._any(nodes)):
            self.cluster.truth.delete(node)

    def change_budget(self) -> None:
        budgets = self.cluster.truth.list(PodDisruptionBudget)
        if budgets and self.random.random() < 0.5:
            self.cluster.truth.delete(self.random.choice(budgets))
        else:
            try:
                self.cluster.truth.add(random_budget(self.random))
            except ClusterError:
                return  # it exists

    def add_volume(self) -> None:
        free = set(VOLUME_NAMES) - {volume.name for volume in self.cluster.truth.list(PersistentVolume)}
        if free:
            name = self.random.choice(sorted(free))
            self.cluster.truth.add(random_volume(self.random, name, self._uid(name)))

    def delete_volume(self) -> None:
        """Nobody takes a volume away that is in use, or about to be."""
        volumes = self.cluster.truth.list(PersistentVolume)
        if volume := self._any([volume for volume in volumes if volume.spec.claim_ref is None]):
            self.cluster.truth.delete(volume)

    def add_claim(self) -> None:
        free = set(CLAIM_NAMES) - {claim.name for claim in self.cluster.truth.list(PersistentVolumeClaim)}
        if free:
            name = self.random.choice(sorted(free))
            self.cluster.truth.add(random_claim(self.random, name, self._uid(name)))

    def delete_claim(self) -> None:
        """Claims are protected while pods on nodes use them; those that only wait for theirs have to cope.

        A pod that is being bound counts as on its node: nobody, kube-scheduler included, looks at claims again that
        were bound when its node was chosen.
        """
        bound = self.pods(lambda pod: bool(pod.node_name) or self.scheduler.cache.is_assumed(pod))
        in_use = {claim_name(pod, volume) for pod in bound for volume in pod.spec.volumes}
        claims = self.cluster.truth.list(PersistentVolumeClaim)
        if claim := self._any([claim for claim in claims if claim.name not in in_use]):
            self.cluster.truth.delete(claim)

    def bind_volumes(self) -> None:
        self.volumes.sync()

    def deliver(self) -> None:
        for _ in range(self.random.randint(1, 6)):
            self.cluster.deliver()

    def schedule(self) -> None:
        for _ in range(self.random.randint(1, 3)):
            self.scheduler.schedule_one()

    def bind(self) -> None:
        if tasks := self.executor.tasks:
            tasks.pop(self.random.randrange(len(tasks)))()

    def decide_permit(self) -> None:
        if waiting := self._any(self.waiting):
            if self.random.random() < 0.7:
                waiting.allow("Doorkeeper")
            else:
                waiting.reject("Doorkeeper", "not today")

    def activate(self) -> None:
        self.scheduler.queue.activate(self.pending()[:3])

    def advance(self) -> None:
        self.clock.advance(self.random.choice([0.5, 1.0, 3.0, 11.0, 60.0]))
        self.scheduler.tick()
        properties.check(self, properties.AFTER_TICK)

    def advance_long(self) -> None:
        self.clock.advance(RETRY_BOUND)
        self.drain()
        properties.check(self, properties.DRAINED)

    def relist(self) -> None:
        self.cluster.relist(self.scheduler.events.resync)
        properties.check(self, properties.AFTER_RELIST)

    def drain(self) -> None:
        """Schedule until no pod is active, and run all binding cycles."""
        for _ in range(500):
            self.scheduler.tick()
            attempted = self.scheduler.schedule_one()
            if self.executor.tasks:
                self.executor.tasks.pop(0)()
            elif not attempted:
                return
        raise AssertionError("the scheduler doesn't come to rest")

    def settle(self) -> None:
        """Nothing goes wrong any more and nobody interferes: the scheduler has to come to rest, and rightly so."""
        cluster, journal = self.cluster, self.journal
        cluster.calm, journal.trouble = True, False
        for _ in range(20):
            before = cluster.truth.resource_version, dict(self.cluster.bound)
            for pod in self.pods(lambda pod: pod.is_terminating):
                cluster.finish_termination(pod)
            self.volumes.sync()
            cluster.relist(self.scheduler.events.resync)
            for waiting in self.waiting:
                waiting.allow("Doorkeeper")
            self.drain()
            for turn in range(20):  # a pod that is bound, or has gone, may make another one welcome
                self.clock.advance(MAX_BACKOFF + 2.0)
                self.drain()
                cluster.deliver_all()
                # The last events may have woken pods: chains of preemption take more than three turns.
                if turn >= 2 and not any(map(self.scheduler.queue.pods_in, (Place.ACTIVE, Place.BACKOFF))):
                    break
            properties.check(
                self, (properties.reservations_end_once, properties.events_alone_bring_pods_back)
            )
            attempts = dict(journal.attempts)
            for seconds in (UNSCHEDULABLE_TIMEOUT + 1.0, MAX_BACKOFF + 1.0):
                self.clock.advance(seconds)
                self.drain()
                cluster.deliver_all()
            properties.tried_again_in_time(self, attempts)
            cluster.relist(self.scheduler.events.resync)
            if before == (cluster.truth.resource_version, dict(self.cluster.bound)):
                break
        else:
            raise AssertionError("decisions go on and on, though nothing happens")
        properties.check(
            self, (*properties.ALWAYS, *properties.AFTER_TICK, *properties.AFTER_RELIST, *properties.AT_REST)
        )
        cluster.calm, journal.trouble = False, True
        # All is known now, and confirmed.
        self.excused = properties.overfull(self.cluster.truth)
        self.cluster.lost_answers.clear()

    def close(self) -> None:
        """Shut down in good order; nothing may be left over."""
        self.executor.inline = True
        while self.executor.tasks:
            self.executor.tasks.pop(0)()
        self.scheduler.close()
        properties.check(self, properties.CLOSED)

    def _meddle(self) -> None:
        """What happens in the midst of a cycle, known to the scheduler at once."""
        step = self.random.choice(
            ["add_node", "change_node", "delete_node", "delete_pod", "finish_termination"]
        )
        STEPS[step](self)
        self.cluster.deliver_all()

    def _note_kept_out(self, event: WatchEvent) -> None:
        """Note who may have been kept out of a node by a pod that was nominated to it, and takes another node.

        A pod takes a node when it is bound to it, or when it is assumed there and its nomination follows.
        """
        pod, before = event.object, event.old
        if not (isinstance(pod, Pod) and isinstance(before, Pod)) or before.node_name:
            return
        followed = pod.status.nominated_node_name if self.scheduler.cache.is_assumed(pod) else ""
        if taken := pod.node_name or followed:
            # Preemption nominates before it tells the cluster.
            nominated = before.status.nominated_node_name or self.scheduler.nominator.node_of(pod.uid)
            if nominated not in ("", taken):
                self.kept_out |= {other.uid for other in self.pending() if other.priority <= pod.priority}

    def _while_somebody_waits(self) -> None:
        if self.cluster.calm or self.random.random() < 0.6:
            self.volumes.sync()

    def _uid(self, name: str) -> str:
        """Another one for every object, also where it has the name of an earlier one."""
        self._uids += 1
        return f"{name}-{self._uids}"

    def _any(self, things: Sequence[T]) -> T | None:
        return self.random.choice(things) if things else None


STEPS: dict[str, Callable[[World], None]] = {
    step.__name__: step
    for step in (
        World.add_pod,
        World.delete_pod,
        World.finish_termination,
        World.relabel_pod,
        World.ungate,
        World.bind_elsewhere,
        World.add_node,
        World.change_node,
        World.delete_node,
        World.change_budget,
        World.add_volume,
        World.delete_volume,
        World.add_claim,
        World.delete_claim,
        World.bind_volumes,
        World.deliver,
        World.schedule,
        World.bind,
        World.decide_permit,
        World.activate,
        World.advance,
        World.advance_long,
        World.relist,
        World.settle,
    )
}
_WEIGHTS = dict.fromkeys(STEPS, 2) | {
    "add_pod": 18,
    "deliver": 22,
    "schedule": 26,
    "bind": 12,
    "decide_permit": 3,
    "add_node": 3,
    "delete_node": 2,
    "delete_pod": 5,
    "finish_termination": 5,
    "bind_elsewhere": 1,
    "change_node": 3,
    "add_volume": 5,
    "add_claim": 5,
    "delete_volume": 0.5,
    "bind_volumes": 3,
    "advance": 12,
    "advance_long": 0.4,
    "relist": 1,
    "settle": 0.3,
}


def run_world(seed: int, steps: int, *, complete_hints: bool | None = None) -> World:
    """Take that many random steps in a new world, then settle and close it.

    Raises:
        AssertionError: a property doesn't hold; the message has the seed and the steps.
    """
    world = World(seed, complete_hints=complete_hints)
    choice = Random(seed + 4)
    names, weights = list(_WEIGHTS), list(_WEIGHTS.values())
    for step in choice.choices(names, weights, k=steps):
        world.do(step)
    world.do("settle")
    world.close()
    return world


def replay(seed: int, steps: str, *, complete_hints: bool | None = None) -> World:
    """Take exactly these steps, as a failure prints them."""
    world = World(seed, complete_hints=complete_hints)
    for step in steps.split():
        world.do(step)
    return world
