"""Random nodes and pods, small enough to get in each other's way."""

from __future__ import annotations

from random import Random

from kschedfw.api.meta import Named
from kschedfw.api.node import Node
from kschedfw.api.objects import object_from_manifest
from kschedfw.api.pod import Pod
from kschedfw.testing import make_node, make_pod

NODE_NAMES = tuple(f"n{index}" for index in range(6))
POD_NAMES = tuple(f"p{index}" for index in range(24))
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
    return pod.build()


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
