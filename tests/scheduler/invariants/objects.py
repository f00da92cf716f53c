"""Random nodes and pods, small enough to get in each other's way."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from kschedfw import make_node, make_pod
from kschedfw.api.meta import Named
from kschedfw.api.node import Node
from kschedfw.api.objects import object_from_manifest
from kschedfw.api.pod import Pod
from tests.plugins.storage import DRIVER, claim, storage_class, volume

NODE_NAMES = tuple(f"n{index}" for index in range(6))
POD_NAMES = tuple(f"p{index}" for index in range(24))
CLAIM_NAMES = tuple(f"c{index}" for index in range(6))
VOLUME_NAMES = tuple(f"v{index}" for index in range(5))
CLASS_NAMES = ("now", "wait", "wait", "make")
SIZES = ("1Gi", "2Gi")
APPS = ("web", "db", "batch")
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def random_node(random: Random, name: str, uid: str) -> Node:
    node = make_node(name).uid(uid).zone(random.choice("ab"))
    node.capacity(
        cpu=random.choice([1, 2, 4]), memory=f"{random.choice([2, 4, 8])}Gi", pods=random.choice([4, 110])
    )
    if random.random() < 0.15:
        node.taint("dedicated", value="x")
    if random.random() < 0.05:
        node.unschedulable()
    if random.random() < 0.3:
        node.image("registry.example/app:1", size=300_000_000)
    return node.build()


def random_pod(random: Random, name: str, uid: str, scheduler_name: str) -> Pod:
    app = random.choice(APPS)
    pod = make_pod(name).uid(uid).labels(app=app).scheduler_name(scheduler_name)
    pod.requests(
        cpu=f"{random.choice([200, 500, 1000, 2000])}m", memory=f"{random.choice([128, 1024, 3000])}Mi"
    )
    pod.priority(random.choice([0, 0, 0, 10, 10, 100]))
    if random.random() < 0.15:
        pod.scheduling_gate("example.com/quota")
    if random.random() < 0.1:
        pod.toleration("dedicated")
    if random.random() < 0.1:
        pod.host_port(random.choice([80, 8080]))
    fate = random.random()
    if fate < 0.1:
        pod.pod_anti_affinity(HOSTNAME, {"app": app})
    elif fate < 0.2:
        pod.pod_affinity(ZONE, {"app": random.choice(APPS)})
    elif fate < 0.3:
        pod.spread(ZONE, {"app": app}, hard=random.random() < 0.7)
    elif fate < 0.35:
        pod.node_affinity_in(ZONE, random.choice("abc"))
    for _ in range(random.choice([0, 0, 0, 0, 1, 1, 2])):
        pod.claim(random.choice(CLAIM_NAMES))
    if random.random() < 0.05:
        pod.ephemeral_volume("scratch", storage_class=random.choice(CLASS_NAMES))
    return pod.build()


def storage_classes() -> Sequence[Named]:
    """One whose claims are bound at once, one whose claims wait for pods, and one for which volumes are made, too."""
    return (
        storage_class("now", delayed=False),
        storage_class("wait"),
        storage_class("make", provisioner=DRIVER, zones=("a",)),
    )


def random_volume(random: Random, name: str, uid: str) -> Named:
    made = volume(name, random.choice(SIZES), storage_class=random.choice(CLASS_NAMES)).uid(uid)
    if random.random() < 0.6:
        made.node_affinity_in(ZONE, random.choice("ab"))
    return made.build()


def random_claim(random: Random, name: str, uid: str) -> Named:
    return claim(name, random.choice(SIZES), storage_class=random.choice(CLASS_NAMES)).uid(uid).build()


def random_budget(random: Random) -> Named:
    return object_from_manifest(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": random.choice(APPS), "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": random.choice(APPS)}}},
            "status": {"disruptionsAllowed": random.choice([0, 1, 5])},
        }
    )
