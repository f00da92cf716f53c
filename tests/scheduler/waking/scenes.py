"""Random scenes: pods of all kinds, and the nodes, pods, volumes and devices that let them in or keep them out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeAlias

import attrs
from device_world import allocation, devices, gpu_class, made, template
from device_world import claim as device_claim
from kschedfw_devices import ClaimController

from kschedfw import make_node, make_pod
from kschedfw.api.builders import PodBuilder
from kschedfw.api.containers import Container
from kschedfw.api.meta import Named
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.cluster import VolumeController
from kschedfw.config import default_profile
from kschedfw.framework.profile import Profile
from kschedfw.testing.waking import Scene, Thing
from tests.plugins.storage import DRIVER, ZONE, claim, driver, room, storage_class, volume
from tests.plugins.volume_objects import attachment, csi_node

Wish: TypeAlias = Callable[[Random, PodBuilder], None]
"""Adds to a pod something that it wants."""

NODES = ("n0", "n1")
ZONES = ("a", "b")
APPS = ("web", "db")
HOSTNAME = "kubernetes.io/hostname"
GPU = "example.com/gpu"


def profile(*, complete_hints: bool) -> Profile:
    """The default profile, of which two plugins may look closer than kube-scheduler's."""
    args = {name: {"completeHints": complete_hints} for name in ("InterPodAffinity", "PodTopologySpread")}
    return attrs.evolve(default_profile(), args=args)


def random_scene(random: Random, wishes: Sequence[Wish] = ()) -> Scene:
    """Few things, so that one change often decides whether a pod fits.

    A pod has one or two of the wishes, by default of all.
    """
    topics = random.sample(wishes or _TOPICS, random.randint(1, 2))
    things: list[Thing] = [_node_states(random, name) for name in NODES[: random.randint(1, 2)]]
    things += [_neighbour_states(random, f"b{index}") for index in range(random.randint(0, 3))]
    pods = [_pod(random, topics) for _ in range(3)]
    if _of_volumes in topics:
        things += _storage(random)
    if _of_devices in topics:
        things += _devices(random)
    objects = (template("t"), storage_class("wait"), storage_class("now", delayed=False))
    return Scene(things, pods, objects, (VolumeController, ClaimController))


def _node_states(random: Random, name: str) -> Thing:
    """A node with room and without taints is what half of the states are."""
    return [_node(random, name, good=random.random() < 0.5) for _ in range(4)]


def _node(random: Random, name: str, *, good: bool) -> Node:
    node = make_node(name)
    if random.random() < 0.9:
        node.zone(random.choice(ZONES))
    amounts: dict[str, str | int] = {"cpu": 4, "memory": "8Gi", "pods": 9}
    if not good:
        amounts |= {"cpu": random.choice([1, 2, 4]), "pods": random.choice([1, 2, 9])}
        if random.random() < 0.3:
            node.taint("dedicated", value=random.choice(["x", "y"]))
        if random.random() < 0.2:
            node.unschedulable()
    if random.random() < 0.2:
        amounts[GPU] = random.randint(0, 2)
    node.labels(disk=random.choice(["ssd", "hdd"]), size=random.choice(["1", "5"]))
    return node.capacity(amounts).build()


def _neighbour_states(random: Random, name: str) -> Thing:
    """A pod on a node; of its states only labels and requests differ, as updates can't change more."""
    pod = make_pod(name).uid(name).node(random.choice(NODES))
    match random.randint(0, 5):
        case 0:
            pod.pod_anti_affinity(random.choice([ZONE, HOSTNAME]), {"app": random.choice(APPS)})
        case 1:
            pod.host_port(random.choice([80, 8080]))
        case 2:
            pod.volume("disk", _disk(random))
        case 3:
            pod.claim(random.choice(_CLAIMS))
    base = pod.requests(cpu=random.choice(["500m", "2"])).build()
    less = make_pod(name).requests(cpu="100m").build().spec.containers
    states = [
        base.with_metadata(attrs.evolve(base.metadata, labels=make_pod().labels(app=app).build().labels))
        for app in APPS
    ]
    smaller = attrs.evolve(states[0], spec=attrs.evolve(base.spec, containers=_with_ports(less, base)))
    return [*states, smaller]


def _with_ports(containers: Sequence[Container], of: Pod) -> tuple[Container, ...]:
    """The containers with the other pod's ports."""
    return tuple(
        attrs.evolve(new, ports=old.ports) for new, old in zip(containers, of.spec.containers, strict=True)
    )


# Wishes of pods.


def of_room(random: Random, pod: PodBuilder) -> None:
    pod.requests(cpu=random.choice([1, 2, 3]), memory=random.choice(["1Gi", "4Gi"]))


def of_nodes(random: Random, pod: PodBuilder) -> None:
    match random.randint(0, 4):
        case 0:
            pod.node_selector(disk=random.choice(["ssd", "hdd"]))
        case 1:
            pod.node_affinity_in(ZONE, random.choice(ZONES))
        case 2:
            pod.toleration("dedicated", value="x")
        case 3:
            pod.host_port(random.choice([80, 8080]))
        case _:
            pod.toleration("node.kubernetes.io/unschedulable", operator="Exists")


def _of_neighbours(random: Random, pod: PodBuilder) -> None:
    key, app = random.choice([ZONE, HOSTNAME]), random.choice(APPS)
    match random.randint(0, 3):
        case 0:
            pod.pod_affinity(key, {"app": app})
        case 1:
            pod.pod_anti_affinity(key, {"app": app})
        case _:
            pod.spread(key, {"app": app}, hard=True)
            if random.random() < 0.3:
                pod.node_affinity_in(ZONE, random.choice(ZONES))


_CLAIMS = ("waits", "made", "now")


def _of_volumes(random: Random, pod: PodBuilder) -> None:
    match random.randint(0, 5):
        case 0:
            pod.volume("disk", _disk(random))
        case 1:
            pod.ephemeral_volume("scratch", storage_class=random.choice(["wait", "make"]))
        case _:
            pod.claim(random.choice(_CLAIMS))


def _of_devices(random: Random, pod: PodBuilder) -> None:
    match random.randint(0, 2):
        case 0:
            pod.limits({GPU: 1})
        case 1:
            pod.limits({"deviceclass.resource.kubernetes.io/gpu": 1})
        case _:
            pod.requests(cpu="100m")


_TOPICS: Sequence[Wish] = (
    of_room,
    of_nodes,
    _of_neighbours,
    _of_volumes,
    _of_devices,
)


def _pod(random: Random, topics: Sequence[Wish]) -> Pod:
    pod = make_pod("waiting").labels(app=random.choice(APPS))
    if random.random() < 0.2:
        pod.scheduling_gate("example.com/quota")
    for topic in topics:
        topic(random, pod)
    built = pod.build()
    if _of_devices not in topics or built.requests.amounts.scalar_resources:
        return built
    references = made(
        "Pod",
        "p",
        spec={
            "containers": [{"name": "c", "image": "x"}],
            "resourceClaims": [
                {
                    "name": "r",
                    **random.choice([{"resourceClaimName": "own"}, {"resourceClaimTemplateName": "t"}]),
                }
            ],
        },
    )
    assert isinstance(references, Pod)
    return attrs.evolve(built, spec=attrs.evolve(built.spec, resource_claims=references.spec.resource_claims))


def _disk(random: Random) -> dict[str, object]:
    return {"gcePersistentDisk": {"pdName": random.choice("xy"), "readOnly": random.random() < 0.3}}


def _storage(random: Random) -> list[Thing]:
    made_in = [storage_class("make", provisioner=DRIVER, zones=zones) for zones in ((), ("a",), ("b",))]
    things: list[Thing] = [
        random.sample(made_in, 2),
        [claim("waits").build()],
        [claim("made", storage_class="make").build()],
        [claim("now", storage_class="now").access_modes("ReadWriteOncePod").build()],
        [driver(tells_capacity=tells) for tells in (True, False)],
        [room("room", random.choice(ZONES), size) for size in ("10Gi", "100Mi")],
    ]
    for name, of in (("v0", "wait"), ("v1", "now")):
        pv = volume(name, storage_class=of)
        if random.random() < 0.7:
            pv.node_affinity_in(ZONE, random.choice(ZONES))
        elif random.random() < 0.5:
            pv.zone(random.choice(ZONES))
        things.append([pv.build()])
    for node in NODES:
        things.append([csi_node(node, {DRIVER: limit}) for limit in random.sample([0, 1, 5, None], 2)])
    things.append([attachment("attached", random.choice(NODES), "v0")])
    return things


def _devices(random: Random) -> list[Thing]:
    things: list[Thing] = [
        [
            gpu_class(extendedResourceName=GPU),
            gpu_class(),
            gpu_class("false", extendedResourceName=GPU),
        ],
        [device_claim("own", random.choice([1, 1, 2]))],
    ]
    for name in NODES:
        tainted = {"taints": [{"key": "broken", "effect": "NoSchedule"}]}
        more: Sequence[Named] = [
            devices(name, "g0"),
            devices(name, "g0", "g1"),
            devices(name, "g0", more=tainted),
        ]
        things.append(random.sample(more, 2))
        things.append(
            [device_claim(f"taken-{name}", status=allocation("g0", name)), device_claim(f"taken-{name}")]
        )
    return things
