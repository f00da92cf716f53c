"""Clusters behind an API server for tests, and what happens in them."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import attrs
from kschedfw_apiserver import ApiServer
from kschedfw_replay.recording.lines import Key, key_of
from kschedfw_replay.recording.recorder import RECORDED_KINDS, Fields

from kschedfw import FrozenDict, InMemoryCluster, Pod, make_node, make_pod
from kschedfw.api import Named, PodPhase


def new_pod(name: str) -> Pod:
    return make_pod(name).build()


def change_something(cluster: InMemoryCluster, random: Random) -> None:
    """Add, label, bind, end or delete a pod."""
    name = f"p{random.randrange(6)}"
    pod = cluster.get(Pod, f"default/{name}")
    match random.randrange(4):
        case _ if pod is None:
            cluster.add(new_pod(name))
        case 0:
            cluster.delete(pod)
        case 1 if not pod.spec.node_name:
            cluster.bind(pod, "n")
        case 2:
            cluster.update(pod.with_status(attrs.evolve(pod.status, phase=PodPhase.SUCCEEDED)))
        case _:
            labels = FrozenDict({"step": str(random.random())})
            cluster.update(pod.with_metadata(attrs.evolve(pod.metadata, labels=labels)))


def served_state(server: ApiServer) -> Mapping[Key, Any]:
    """What a recorder of the cluster has to know of it: all but pods that have ended."""
    fields = Fields()
    kinds: tuple[type[Named], ...] = RECORDED_KINDS
    objects = [obj for kind in kinds for obj in server.cluster.list(kind)]
    manifests = [
        fields.manifest(fields.of(obj)) for obj in objects if not (isinstance(obj, Pod) and obj.is_terminal)
    ]
    return {key_of(manifest): as_added(manifest) for manifest in manifests}


def as_added(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest without what the server says of it that the cluster in memory doesn't know."""
    of_server = ("creationTimestamp", "generation")
    metadata = {field: value for field, value in manifest["metadata"].items() if field not in of_server}
    return {**manifest, "metadata": metadata}


def with_a_node() -> InMemoryCluster:
    return InMemoryCluster([make_node("n").build()])
