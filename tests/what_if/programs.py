"""Random programs of transactions: their operations, and what is left of them once reverted parts are gone."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

import attrs
import device_world as devices
from hypothesis import strategies as st

from kschedfw import Node, Pod, Transaction, WhatIf, make_node, make_pod
from kschedfw.api import Named
from kschedfw.testing import strategies
from kschedfw.what_if import Schedule
from tests.plugins import storage

_UID = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")

NamedT = TypeVar("NamedT", bound=Named)


@attrs.frozen
class Step:
    """An operation. `number` chooses among the objects that there are when it happens."""

    operation: str
    number: int = 0


@attrs.frozen
class Nested:
    """A nested transaction."""

    program: Program
    is_committed: bool


Program: TypeAlias = Sequence[Step | Nested]


@attrs.frozen
class World:
    """The objects of a cluster, and some that aren't in it yet."""

    objects: Sequence[Named]
    pods: tuple[Pod, ...]
    nodes: tuple[Node, ...]

    def absent(self, what_if: WhatIf) -> list[Pod]:
        """The pods whose names aren't taken."""
        return [pod for pod in self.pods if what_if.cluster.get(Pod, pod.key) is None]


def surviving(program: Program) -> list[Step]:
    """The operations that aren't reverted, in their order."""
    steps: list[Step] = []
    for each in program:
        if isinstance(each, Step):
            steps.append(each)
        elif each.is_committed:
            steps += surviving(each.program)
    return steps


def run(world: World, what_if: WhatIf, trial: Transaction, program: Program) -> None:
    """Do all of it in the transaction."""
    for each in program:
        if isinstance(each, Step):
            _OPERATIONS[each.operation](_Scene(world, what_if, trial, each.number))
            continue
        with trial.transaction() as nested:
            run(world, what_if, nested, each.program)
            if each.is_committed:
                nested.commit()


@attrs.frozen
class _Scene:
    """What an operation works with."""

    world: World
    what_if: WhatIf
    trial: Transaction
    number: int

    def one_of(self, objects: Sequence[NamedT]) -> Sequence[NamedT]:
        """The chosen one, if there is any."""
        return [objects[self.number % len(objects)]] if objects else []

    @property
    def node(self) -> Sequence[Node]:
        return self.one_of(self.what_if.nodes)

    @property
    def placed(self) -> list[Pod]:
        return [pod for pod in self.what_if.pods if pod.node_name]


def _add(scene: _Scene) -> None:
    taken = {node.name for node in scene.what_if.nodes}
    scene.trial.add(*[node for node in scene.one_of(scene.world.nodes) if node.name not in taken])
    scene.trial.add(*scene.one_of(scene.world.absent(scene.what_if)))


def _add_nodes(scene: _Scene) -> None:
    for node in scene.node:
        scene.trial.add_nodes(node, 1 + scene.number % 2)


def _cordon(scene: _Scene) -> None:
    for node in scene.node:
        (scene.trial.uncordon if node.spec.unschedulable else scene.trial.cordon)(node.name)


def _drain(scene: _Scene) -> None:
    for node in scene.node:
        scene.trial.drain(node.name)


def _delete_node(scene: _Scene) -> None:
    scene.trial.delete(*scene.node)


def _delete_pod(scene: _Scene) -> None:
    scene.trial.delete(*scene.one_of(scene.what_if.pods))


def _relabel_node(scene: _Scene) -> None:
    """Which also moves it to another zone, and so to another place in the order of visits."""
    zone = strategies.ZONES[scene.number % len(strategies.ZONES)]
    for node in scene.node:
        labels = {**node.labels, "topology.kubernetes.io/zone": zone}
        scene.trial.update(node.with_metadata(attrs.evolve(node.metadata, labels=labels)))


def _relabel_pod(scene: _Scene) -> None:
    app = strategies.LABELS["app"][scene.number % 3]
    present = [pod for pod in scene.what_if.pods if scene.what_if.cluster.get(Pod, pod.key) is pod]
    for pod in scene.one_of(present):
        labels = {**pod.labels, "app": app}
        scene.trial.update(pod.with_metadata(attrs.evolve(pod.metadata, labels=labels)))


def _preempt(scene: _Scene) -> None:
    scene.trial.preempt(*scene.one_of(scene.placed))


def _preempt_and_restore(scene: _Scene) -> None:
    pods = scene.placed[: 1 + scene.number % 3]
    scene.trial.preempt(*pods)
    scene.trial.restore(*pods)


def _schedule(scene: _Scene) -> None:
    scene.trial.schedule(
        [*scene.one_of(scene.world.absent(scene.what_if)), *scene.one_of(scene.what_if.pending)]
    )


def _schedule_all(scene: _Scene) -> None:
    scene.trial.schedule(scene.what_if.pending)


def _schedule_all_or_none(scene: _Scene) -> None:
    scene.trial.schedule(scene.what_if.pending, preempt=bool(scene.number % 2), all_or_none=True)


def _schedule_preempting(scene: _Scene) -> None:
    scene.trial.schedule(scene.what_if.pending, preempt=True)


def _schedule_as_many(scene: _Scene) -> None:
    for pod in scene.one_of(scene.what_if.pods):
        scene.trial.schedule_as_many(pod, at_most=3)


_OPERATIONS: dict[str, Callable[[_Scene], None]] = {
    "add": _add,
    "add nodes": _add_nodes,
    "cordon": _cordon,
    "drain": _drain,
    "delete node": _delete_node,
    "delete pod": _delete_pod,
    "relabel node": _relabel_node,
    "relabel pod": _relabel_pod,
    "preempt": _preempt,
    "preempt and restore": _preempt_and_restore,
    "schedule": _schedule,
    "schedule all": _schedule_all,
    "schedule all or none": _schedule_all_or_none,
    "schedule preempting": _schedule_preempting,
    "schedule as many": _schedule_as_many,
}


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Small clusters with everything that pods and nodes may have, but for volumes and claims."""
    cluster = draw(strategies.clusters(most_nodes=4, most_bound=4, most_pending=2))
    return World(
        [*cluster.nodes, *cluster.bound, *cluster.pending],
        (draw(strategies.pods("new-1")), draw(strategies.pods("new-2"))),
        (draw(strategies.nodes("new")),),
    )


_KINDS_OF_USE = ("gpu", "two gpus", "prebound", "either", "made", "ephemeral", "nothing")


def _user(name: str, use: str, priority: int) -> Pod:
    """A pod that uses devices or volumes."""
    if use.endswith(("gpu", "gpus")):
        made = devices.pod(name, template=use.replace(" ", "-"))
        return attrs.evolve(made, spec=attrs.evolve(made.spec, priority=priority))
    pod = make_pod(name).requests(cpu="100m").priority(priority)
    if use == "ephemeral":
        return pod.ephemeral_volume("data", storage_class="make").build()
    return (pod if use == "nothing" else pod.claim(use)).build()


def _node(name: str, zone: str) -> Node:
    return make_node(name).zone(zone).capacity(cpu="1", memory="4Gi", pods=4).build()


@st.composite
def worlds_with_volumes_and_devices(draw: st.DrawFn) -> World:
    """Pods that use claims for volumes and devices, of which there are too few."""
    uses, priorities = st.sampled_from(_KINDS_OF_USE), st.integers(0, 2)
    pods = [_user(f"pod-{number}", draw(uses), draw(priorities)) for number in range(draw(st.integers(1, 4)))]
    objects: list[Named] = [_node("n1", "a"), _node("n2", "b"), _node("n3", "a")]
    objects += [storage.storage_class("wait"), storage.storage_class("make", provisioner=storage.DRIVER)]
    objects += [
        storage.volume(f"pv-{number}", f"{number}Gi").zone("ab"[number % 2]).build() for number in (1, 2, 3)
    ]
    objects.append(storage.volume("pv-own").zone("b").claimed_by("default/prebound").build())
    objects += [storage.claim(name).build() for name in ("prebound", "either")]
    objects.append(storage.claim("made", storage_class="make").build())
    objects += [devices.gpu_class(), devices.devices("n1", "g1", "g2"), devices.devices("n2", "g3")]
    objects += [devices.template("gpu", 1), devices.template("two-gpus", 2)]
    new = tuple(_user(f"new-{number}", draw(uses), draw(priorities)) for number in (1, 2))
    return World([*objects, *pods], new, (_node("new", "c"),))


_STEPS = st.builds(Step, st.sampled_from(sorted(_OPERATIONS)), st.integers(0, 7))
_NESTED = st.builds(Nested, st.lists(_STEPS, min_size=1, max_size=3), st.booleans())
_DEEP = st.builds(Nested, st.lists(_STEPS | _NESTED, min_size=1, max_size=3), st.booleans())
PROGRAMS = st.lists(_STEPS | _DEEP, min_size=1, max_size=4)


@attrs.frozen
class Answers:
    """What a WhatIf says of its state."""

    state: tuple[tuple[str, str, str, str], ...]
    feasible: tuple[tuple[str, tuple[str, ...], str], ...]
    placed: tuple[tuple[str, str], ...]
    refused: tuple[tuple[str, str], ...]
    waiting: tuple[tuple[str, str, str], ...]
    """Who waits now, and who would."""

    @classmethod
    def of(cls, world: World, what_if: WhatIf, trial: Transaction, *, preempt: bool) -> Answers:
        """About its pending pods and those that aren't there yet; nothing is changed."""
        asked = [*what_if.pending, *world.absent(what_if)]
        found = [(pod.key, trial.can_schedule(pod)) for pod in asked]
        with trial.transaction() as nested:
            schedule = nested.schedule(asked, preempt=preempt)
        state = tuple(sorted(map(shown, what_if.objects())))
        feasible = tuple((key, each.nodes, each.message) for key, each in found)
        waiting = tuple(
            (each.pod.key, each.node_name, each.message) for each in (*trial.waiting, *schedule.waiting)
        )
        return cls(state, feasible, *outcome(schedule), waiting)


def shown(obj: Named) -> tuple[str, str, str, str]:
    """The object without what grows with each write: uids, also in names, and resource versions."""
    bare = obj.with_metadata(attrs.evolve(obj.metadata, resource_version=""))
    return (
        type(obj).__name__,
        _UID.sub("…", obj.key),
        getattr(obj, "node_name", ""),
        _UID.sub("…", repr(attrs.astuple(bare, recurse=False))),
    )


def outcome(schedule: Schedule) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """Who went where, and who was refused why."""
    placed = tuple((each.pod.key, each.node_name) for each in schedule.placed)
    return placed, tuple((each.pod.key, each.message) for each in schedule.refused)
