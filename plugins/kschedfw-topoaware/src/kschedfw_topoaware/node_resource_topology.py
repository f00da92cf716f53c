"""The kind NodeResourceTopology: what each NUMA zone of a node has, as an agent on the node reports it."""

from __future__ import annotations

import attrs

from kschedfw import CustomKind, CustomResource, ObjectMeta, Quantity


@attrs.frozen
class ResourceInfo:
    """How much a zone has of a resource; `available` is what no pod has been given yet."""

    name: str
    available: Quantity
    allocatable: Quantity | None = None
    capacity: Quantity | None = None


@attrs.frozen
class Cost:
    """How far it is to the memory of the zone of that name."""

    name: str
    value: int


@attrs.frozen
class Zone:
    """A part of a node; NUMA zones have the type `Node` and a name such as `node-0`."""

    name: str
    type: str
    resources: tuple[ResourceInfo, ...] = ()
    costs: tuple[Cost, ...] = ()


@attrs.frozen
class Attribute:
    """Something about the node's kubelet, such as its topology manager's policy."""

    name: str
    value: str


@attrs.frozen
class NodeResourceTopology(CustomResource):
    """The zones of the node of the same name (topology.node.k8s.io/v1alpha2)."""

    kind = CustomKind("topology.node.k8s.io/v1alpha2", "NodeResourceTopology", namespaced=False)

    metadata: ObjectMeta
    zones: tuple[Zone, ...] = ()
    topology_policies: tuple[str, ...] = ()
    attributes: tuple[Attribute, ...] = ()
