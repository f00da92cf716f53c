"""core/v1 Node, as far as scheduling reads it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import attrs

from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.meta import Condition, Named
from kschedfw.api.quantity import Quantity, quantities
from kschedfw.api.records import frozen

PRICE: Final = "kschedfw/price"
"""The annotation of a Node with what a node of its group costs."""


class TaintEffect(StrEnum):
    """The effect of a taint on pods that don't tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


@frozen
class Taint:
    """A mark on a node that repels pods without a matching toleration."""

    key: str
    effect: TaintEffect
    value: str = ""


@frozen
class ContainerImage:
    """An image that is present on a node: all its names, and its size in bytes."""

    names: tuple[str, ...] = ()
    size_bytes: int = 0


@frozen
class NodeCondition(Condition):
    """A condition that the kubelet reports, e.g. Ready."""


@frozen
class NodeSpec:
    """The node's taints, and whether it takes new pods."""

    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    provider_id: str = attrs.field(default="", metadata={"json": "providerID"})


@frozen
class NodeStatus:
    """The resources, images and conditions of a node (core/v1 NodeStatus).

    If a manifest has no `allocatable`, it is equal to `capacity`. `declared_features` are features of the kubelet
    (KEP-5328).
    """

    capacity: FrozenDict[str, Quantity] = attrs.field(default=EMPTY, converter=quantities)
    allocatable: FrozenDict[str, Quantity] = attrs.field(default=EMPTY, converter=quantities)
    images: tuple[ContainerImage, ...] = ()
    conditions: tuple[NodeCondition, ...] = ()
    declared_features: tuple[str, ...] = ()


@frozen(repr=False)
class Node(Named):
    """A machine that runs pods (core/v1 Node)."""

    spec: NodeSpec = attrs.field(factory=NodeSpec)
    status: NodeStatus = attrs.field(factory=NodeStatus)
