"""Nodes and pods in a few words, for these tests."""

from __future__ import annotations

from typing import Any

from kschedfw.api.containers import Container, ResourceRequirements
from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.meta import ObjectMeta
from kschedfw.api.node import Node, NodeStatus
from kschedfw.api.pod import Pod, PodSpec, PodStatus
from kschedfw.api.quantity import Quantity


def quantities(amounts: dict[str, str]) -> FrozenDict[str, Quantity]:
    return FrozenDict({name: Quantity.parse(amount) for name, amount in amounts.items()})


def node(name: str, labels: dict[str, str] | None = None, **allocatable: str) -> Node:
    amounts = quantities(allocatable)
    return Node(
        metadata=ObjectMeta(name=name, labels=FrozenDict(labels or {})),
        status=NodeStatus(capacity=amounts, allocatable=amounts),
    )


def pod(
    name: str,
    spec: dict[str, Any] | None = None,
    meta: dict[str, Any] | None = None,
    status: PodStatus | None = None,
    **requests: str,
) -> Pod:
    resources = ResourceRequirements(requests=quantities(requests) if requests else EMPTY)
    return Pod(
        metadata=ObjectMeta(**{"name": name, "namespace": "default", "uid": f"uid-{name}", **(meta or {})}),
        spec=PodSpec(containers=(Container(name="main", resources=resources),), **(spec or {})),
        status=PodStatus() if status is None else status,
    )
