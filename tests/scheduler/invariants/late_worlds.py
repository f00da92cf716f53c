"""Random worlds whose events come late and are never lost: by events alone, each pod gets what place there is for it.

Nothing fails here, and no pod is flushed from the unschedulable ones: a pod or group that an event passes over is
forgotten for good, and found. Hints are complete, as kube-scheduler's own pass over some events.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeAlias, TypeVar

from kschedfw.api.meta import Named
from kschedfw.api.storage import PersistentVolumeClaim
from kschedfw.api.workloads import PodDisruptionBudget
from kschedfw.framework.runtime.registry import Registry
from tests.scheduler.invariants import group_properties, properties
from tests.scheduler.invariants.flaky import FlakyCluster
from tests.scheduler.invariants.group_world import GROUP_STEPS, Entrance, GroupWorld, WatchedCluster
from tests.scheduler.invariants.late import LateCluster
from tests.scheduler.invariants.plugins import First, Last, Porter, Troublemaker, WatchedPreemption
from tests.scheduler.invariants.properties import Property
from tests.scheduler.invariants.world import MAX_BACKOFF, STEPS, World

T = TypeVar("T", bound=Named)
AnyLateWorld: TypeAlias = "LateWorld | LateGroupWorld"

_TURNS = 60
"""So often the cluster may still change while it comes to rest."""


class LateWorld(World):
    """Pods and volumes. The same seed makes the same world; in every other one, events of a kind keep their order."""

    unschedulable_timeout = 1e9
    registry = Registry()
    at_rest: tuple[Property, ...] = (
        *properties.ALWAYS,
        *properties.AFTER_TICK,
        *properties.AFTER_RELIST,
        *properties.AT_REST,
        properties.nobody_is_gated_in_vain,
        properties.nobody_could_make_room,
    )

    def __init__(self, seed: int) -> None:
        super().__init__(seed, complete_hints=True)
        self.journal.trouble = False

    def _make_cluster(self) -> FlakyCluster:
        cluster = LateCluster(Random(self.seed + 1))
        cluster.ordered = self.seed % 2 == 0
        return cluster

    def _choose_ttl(self) -> float:
        return 0.0

    def delete_claim(self) -> None:
        """Nobody looks at claims again that were bound as far as was known, so a bound one isn't deleted."""
        claims = self.cluster.truth.list(PersistentVolumeClaim)
        if claim := self._any([claim for claim in claims if not claim.spec.volume_name]):
            self.cluster.truth.delete(claim)

    def relist_one(self) -> None:
        self._late.relist_any()

    def settle(self) -> None:
        """Nobody interferes any more, and all events come: the scheduler has to come to rest, and rightly so."""
        self.journal.holds, self._late.prompt, self.executor.inline = False, True, True
        come_to_rest(self)
        properties.check(self, self.at_rest)
        self.journal.holds, self._late.prompt, self.executor.inline = True, False, False
        self.excused = properties.overfull(self.cluster.truth)

    def _how_to_replay(self) -> str:
        return f"replay_late({type(self).__name__}, {self.seed}, {' '.join(self.steps)!r})"

    @property
    def _late(self) -> LateCluster:
        assert isinstance(self.cluster, LateCluster)
        return self.cluster

    def _while_somebody_waits(self) -> None:
        super()._while_somebody_waits()
        self.cluster.deliver_all()


class _WatchedLateCluster(WatchedCluster, LateCluster):
    """Has events handled in the midst of a group's preemption, too, which reads the budgets between its trials."""

    def list(self, kind: type[T], namespace: str | None = None) -> Sequence[T]:
        if kind is PodDisruptionBudget and not self.prompt and self._random.random() < 0.5:
            self.deliver_all()
        return super().list(kind, namespace)


class LateGroupWorld(GroupWorld):
    """Pods and groups. The same seed makes the same world; in every other one, events of a kind keep their order."""

    unschedulable_timeout = 1e9
    registry = Registry()
    at_rest = (
        *group_properties.ALWAYS,
        *properties.AFTER_TICK,
        *properties.AFTER_RELIST,
        *group_properties.AT_REST,
        group_properties.no_member_is_gated_in_vain,
        group_properties.no_group_could_make_room,
    )

    def __init__(self, seed: int) -> None:
        super().__init__(seed, complete_hints=True)
        self.journal.trouble = False

    def _make_cluster(self) -> FlakyCluster:
        cluster = _WatchedLateCluster(Random(self.seed + 1), self._disturb, self._hold_back)
        cluster.ordered = self.seed % 2 == 0
        return cluster

    def catch_up(self) -> None:
        """All events come; those that ended a preemption have brought its members back."""
        self.cluster.deliver_all()
        properties.check(self, [group_properties.no_member_is_gated_in_vain])

    relist_one = LateWorld.relist_one
    _how_to_replay = LateWorld._how_to_replay
    _late = LateWorld._late

    def settle(self) -> None:
        """As `LateWorld.settle`."""
        LateWorld.settle(self)  # type: ignore[arg-type]
        self.disturbed = group_properties.in_part(self)


for _plugin in (First, Last, Troublemaker, Porter, WatchedPreemption):
    LateWorld.registry.register(_plugin)
for _plugin in (Entrance, Last, Troublemaker, Porter):
    LateGroupWorld.registry.register(_plugin)


def come_to_rest(world: World) -> None:
    """Let all that is under way come to its end, and the scheduler do all that follows.

    Raises:
        AssertionError: it never ends.
    """
    quiet = 0
    for _ in range(_TURNS):
        before = world.cluster.truth.resource_version
        for waiting in world.waiting:
            waiting.allow("Doorkeeper")
        for pod in world.pods(lambda pod: pod.is_terminating):
            world.cluster.finish_termination(pod)
        if not isinstance(world, GroupWorld):
            world.volumes.sync()
        world.cluster.deliver_all()
        world.drain()
        world.clock.advance(MAX_BACKOFF + 2.0)
        world.drain()
        world.cluster.deliver_all()
        quiet = quiet + 1 if before == world.cluster.truth.resource_version else 0
        # The last events may have woken pods that back off.
        if quiet == 2:
            return
    raise AssertionError("decisions go on and on, though nothing happens")


_ODDS = {
    "add_pod": 14,
    "add_member": 20,
    "add_group": 6,
    "deliver": 30,
    "schedule": 26,
    "bind": 16,
    "advance": 8,
    "delete_pod": 3,
    "finish_termination": 4,
    "decide_permit": 3,
    "settle": 1,
    "relist_one": 1,
    "catch_up": 3,
    "add_volume": 5,
    "add_claim": 5,
    "bind_volumes": 4,
    "bind_elsewhere": 0.5,
    "delete_node": 0.5,
    "delete_group": 0.5,
    # These would hide what was forgotten.
    "activate": 0,
    "advance_long": 0,
    "relist": 0,
}


def run_late_world(kind: type[AnyLateWorld], seed: int, steps: int) -> AnyLateWorld:
    """Take that many random steps in a new world, then settle and close it.

    Raises:
        AssertionError: a property doesn't hold; the message has the seed and the steps.
    """
    world = kind(seed)
    names = [*GROUP_STEPS, "catch_up"] if kind is LateGroupWorld else [*STEPS]
    names.append("relist_one")
    weights = [_ODDS.get(name, 1.5) for name in names]
    for step in Random(seed + 4).choices(names, weights, k=steps):
        world.do(step)
    world.do("settle")
    world.close()
    return world


def replay_late(kind: type[AnyLateWorld], seed: int, steps: str) -> AnyLateWorld:
    """Repeat a run from what its failure printed."""
    world = kind(seed)
    for step in steps.split():
        world.do(step)
    return world
