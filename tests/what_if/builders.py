"""Small clusters for the plans and remedies."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from kschedfw import Pod, Registry, make_node, make_pod
from kschedfw.api import OwnerReference, PodDisruptionBudget
from kschedfw.api.builders import NodeBuilder, PodBuilder
from kschedfw.api.manifests import object_from_manifest
from kschedfw.api.meta import Named
from kschedfw.what_if.what_if import WhatIf

REGISTRY = Registry()
"""Finds and checks the installed plugins once: that takes longer than most of what is tried on a small cluster."""


def node(name: str, cpu: str | int = 4) -> NodeBuilder:
    return make_node(name).labels({"kubernetes.io/hostname": name}).capacity(cpu=cpu, memory="8Gi", pods=10)


def owned(pod: PodBuilder | Pod, owner: str = "web", kind: str = "ReplicaSet") -> Pod:
    """The pod with a controller."""
    built = pod if isinstance(pod, Pod) else pod.build()
    reference = OwnerReference(kind, owner, f"uid-{owner}", "apps/v1", controller=True)
    return built.with_metadata(attrs.evolve(built.metadata, owner_references=(reference,)))


def running(name: str, on: str, cpu: str | int = 1, app: str = "web") -> Pod:
    return owned(make_pod(name).requests(cpu=cpu).labels(app=app).node(on), app)


def what_if(*objects: Named | Iterable[Named]) -> WhatIf:
    found: list[Named] = []
    for each in objects:
        found.extend([each] if isinstance(each, Named) else each)
    return WhatIf(found, registry=REGISTRY)


def budget(allowed: int, **labels: str) -> PodDisruptionBudget:
    made = object_from_manifest(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "budget", "namespace": "default"},
            "spec": {"selector": {"matchLabels": labels}},
            "status": {"disruptionsAllowed": allowed},
        }
    )
    assert isinstance(made, PodDisruptionBudget)
    return made
