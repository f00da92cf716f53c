"""The kind NodeResourceTopology, in which an agent on each node reports the node's NUMA zones."""

from __future__ import annotations

import attrs

from kschedfw import CustomKind, CustomResource, ObjectMeta, Quantity


@attrs.frozen
class ResourceInfo:
    """The amounts of a resource in a zone. `available` isn't assigned to any pod yet."""

    name: str
    available: Quantity
    allocatable: Quantity | None = None
    capacity: Quantity | None = None


@attrs.frozen
class Cost:
    """The distance to the memory of the zone called `name`."""

    name: str
    value: int


@attrs.frozen
class Zone:
    """A part of a node. NUMA zones have the type `Node` and a name such as `node-0`."""

    name: str
    type: str
    resources: tuple[ResourceInfo, ...] = ()
    costs: tuple[Cost, ...] = ()


@attrs.frozen
class Attribute:
    """A setting of the node's kubelet, such as its topology manager's policy."""

    name: str
    value: str


@attrs.frozen
class NodeResourceTopology(CustomResource):
    """The zones of the node with the same name (topology.node.k8s.io/v1alpha2)."""

    kind = CustomKind("topology.node.k8s.io/v1alpha2", "NodeResourceTopology", namespaced=False)

    metadata: ObjectMeta
    zones: tuple[Zone, ...] = ()
    topology_policies: tuple[str, ...] = ()
    attributes: tuple[Attribute, ...] = ()
