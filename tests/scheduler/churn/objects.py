"""Nodes and pods of a cluster in which everything changes: few kinds of pods, of each many, and all compete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import attrs

from kschedfw import FrozenDict, Node, ObjectMeta, Pod, Profile, default_profile, make_node, make_pod
from kschedfw.api import pod_from_manifest
from kschedfw.api.affinity import REQUIRED
from kschedfw.api.builders import PodBuilder
from kschedfw.api.workloads import Namespace
from kschedfw.testing.strategies import NAMESPACES
from tests.scheduler.invariants.objects import APPS, HOSTNAME, ZONE

GPU = "example.com/gpu"
NOBODYS = tuple(f"example.com/nobody-has-{index}" for index in range(3))
"""Extended resources that seldom any node has, and that pods request all the same."""
FPGA = "example.com/fpga"
NIC = "example.com/nic"
IMAGES = {"registry.example/app:1": 300_000_000, "registry.example/big:1": 900_000_000}
TAINTS = (("dedicated", "NoSchedule"), ("old", "PreferNoSchedule"), ("broken", "NoExecute"))
PROFILES = ("default-scheduler", "packing")
TEAMS = ("red", "blue")


@attrs.frozen
class Terrain:
    """What a world's nodes are like."""

    is_scarce: bool
    """True if nodes hold few pods."""
    is_plain: bool
    """True if no node is tainted with PreferNoSchedule and no profile scores extended resources: then a scheduler may
    plan for all pods of a shape."""


def profiles(terrain: Terrain, percentage: int) -> Sequence[Profile]:
    """The default profile, and one that fills up nodes and has the adaptive percentage of nodes to score."""
    weights = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
    if not terrain.is_plain:
        weights = [{"name": "cpu", "weight": 3}, weights[1], {"name": GPU, "weight": 1}]
    packing = {
        "NodeResourcesFit": {"scoringStrategy": {"type": "MostAllocated", "resources": weights}},
        "InterPodAffinity": {"hardPodAffinityWeight": 5},
    }
    spreading = default_profile()
    return (
        attrs.evolve(spreading, percentage_of_nodes_to_score=percentage),
        attrs.evolve(spreading, scheduler_name=PROFILES[1], args=packing),
    )


def random_node(random: Random, name: str, uid: str, terrain: Terrain) -> Node:
    node = make_node(name).uid(uid)
    if random.random() < 0.9:
        node.zone(random.choice("abc"))
    node.labels(disk=random.choice(["ssd", "hdd"]), size=random.choice(["1", "5"]))
    node.capacity(_random_amounts(random, is_scarce=terrain.is_scarce))
    for key, effect in TAINTS:
        if random.random() < 0.08 and not (terrain.is_plain and effect == "PreferNoSchedule"):
            node.taint(key, effect=effect)
    if random.random() < 0.04:
        node.unschedulable()
    for image, size in IMAGES.items():
        if random.random() < 0.3:
            node.image(image, size=size)
    return node.build()


def _random_amounts(random: Random, *, is_scarce: bool) -> Mapping[str, str | int]:
    amounts: dict[str, str | int] = {
        "cpu": random.choice(["500m", "1", "2"] if is_scarce else ["2", "4", "8"]),
        "memory": f"{random.choice([1, 2, 4] if is_scarce else [4, 8])}Gi",
        "pods": random.choice([1, 2, 3] if is_scarce else [3, 110, 110, 110]),
    }
    for name in (GPU, FPGA):
        if random.random() < 0.25:
            amounts[name] = random.randint(0, 4)
    # Every node has some of this one, so that it is plentiful at times.
    amounts[NIC] = random.randint(1, 4)
    if random.random() < 0.02:
        amounts[random.choice(NOBODYS)] = 2
    return amounts


def changed_node(random: Random, node: Node, terrain: Terrain) -> Node:
    """Return the node as someone has changed it, in one or two of its parts."""
    other = random_node(random, node.name, node.uid, terrain)
    spec, status, labels = node.spec, node.status, node.labels
    for part in random.sample(
        ("labels", "zone", "taints", "cordon", "amounts", "images"), random.randint(1, 2)
    ):
        match part:
            case "labels":
                disk = "hdd" if labels.get("disk") == "ssd" else "ssd"
                labels = FrozenDict({**labels, "disk": disk, "size": other.labels["size"]})
            case "zone":
                kept = {key: value for key, value in labels.items() if key != ZONE}
                labels = FrozenDict(kept | {key: other.labels[key] for key in (ZONE,) if key in other.labels})
            case "taints":
                spec = attrs.evolve(spec, taints=other.spec.taints)
            case "cordon":
                spec = attrs.evolve(spec, unschedulable=not spec.unschedulable)
            case "amounts":
                status = attrs.evolve(
                    status, capacity=other.status.capacity, allocatable=other.status.allocatable
                )
            case _:
                status = attrs.evolve(status, images=other.status.images)
    metadata = attrs.evolve(node.metadata, labels=labels, resource_version="")
    return attrs.evolve(node, metadata=metadata, spec=spec, status=status)


def random_kinds(random: Random, claims: Sequence[str]) -> Sequence[Pod]:
    """Return some kinds of pods. All pods of a world are copies of these, so that answers are kept between them."""
    return [_random_kind(random, claims) for _ in range(random.randint(3, 7))]


def _random_kind(random: Random, claims: Sequence[str]) -> Pod:
    app = random.choice(APPS)
    pod = make_pod("kind").labels(app=app).scheduler_name(random.choice((PROFILES[0], *PROFILES)))
    pod.namespace(random.choice(NAMESPACES[:2])).image(random.choice(list(IMAGES)))
    pod.requests(cpu=f"{random.choice([100, 300, 700, 1500])}m")
    if random.random() < 0.8:
        pod.requests(memory=f"{random.choice([128, 500, 2000])}Mi")
    pod.priority(random.choice([0, 0, 10, 100]))
    for add, probability in _PARTS.items():
        if random.random() < probability:
            add(random, pod, app)
    if claims and random.random() < 0.3:
        pod.claim(random.choice(claims))
    manifest: dict[str, Any] = pod.manifest()
    if random.random() < 0.1:
        manifest["spec"]["preemptionPolicy"] = "Never"
    for terms in manifest["spec"].get("affinity", {}).values():
        # Those of node affinity aren't in a list.
        for term in [each for each in terms.get(REQUIRED, ()) if "topologyKey" in each]:
            if random.random() < 0.5:
                term["namespaceSelector"] = {"matchLabels": {"team": random.choice(TEAMS)}}
    return pod_from_manifest(manifest)


def _devices(random: Random, pod: PodBuilder, _app: str) -> None:
    pod.limits({random.choice([GPU, FPGA, NIC, NIC]): random.choice([0, 1, 2])})


def _nobodys(random: Random, pod: PodBuilder, _app: str) -> None:
    pod.limits({random.choice(NOBODYS): 1})


def _toleration(random: Random, pod: PodBuilder, _app: str) -> None:
    pod.toleration(random.choice([key for key, _ in TAINTS]), operator="Exists")


def _nodes(random: Random, pod: PodBuilder, _app: str) -> None:
    match random.randrange(4):
        case 0:
            pod.node_selector(disk="ssd")
        case 1:
            pod.node_affinity_in(ZONE, *random.sample("abc", 2))
        case 2:
            pod.node_affinity_in("size", "5")
        case _:
            pod.prefer_node(random.choice([1, 50]), "disk", "hdd")


def _port(random: Random, pod: PodBuilder, _app: str) -> None:
    pod.host_port(random.choice([80, 8080]))


def _others(random: Random, pod: PodBuilder, app: str) -> None:
    # A node that changes its zone also changes its place in the order of nodes; one that changes its disk doesn't.
    key, weight = random.choice([ZONE, HOSTNAME, "disk"]), random.choice([None, 10])
    match random.randrange(3):
        case 0:
            pod.pod_anti_affinity(key, {"app": app}, weight=weight)
        case 1:
            pod.pod_affinity(key, {"app": random.choice(APPS)}, weight=weight)
        case _:
            pod.spread(key, {"app": app}, hard=random.random() < 0.6)


_PARTS = {_devices: 0.25, _nobodys: 0.05, _toleration: 0.2, _nodes: 0.2, _port: 0.05, _others: 0.25}


def namespace(name: str, team: str) -> Namespace:
    return Namespace(ObjectMeta(name, labels=FrozenDict(team=team)))
