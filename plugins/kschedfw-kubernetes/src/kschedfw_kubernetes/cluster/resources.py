"""The groups, versions and plurals of kinds in the API, and the paths made from them."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

import attrs

from kschedfw import CustomKind, CustomResource, FeatureGates, Node, Pod
from kschedfw.api import (
    KIND_OF,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    DeviceClass,
    DeviceTaintRule,
    Named,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    PodGroup,
    ReplicaSet,
    ReplicationController,
    ResourceClaim,
    ResourceSlice,
    Service,
    StatefulSet,
    StorageClass,
    VolumeAttachment,
)
from kschedfw.api.reading import plural_of

FollowedKind = type[Named] | CustomKind
"""A class of `kschedfw.api`, another class for a custom kind, or the custom kind itself."""

SCHEDULER_KINDS: Final[tuple[type[Named], ...]] = (
    Node,
    Pod,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    CSINode,
    CSIDriver,
    CSIStorageCapacity,
    VolumeAttachment,
    Service,
    ReplicationController,
    ReplicaSet,
    StatefulSet,
    PodDisruptionBudget,
    ResourceClaim,
    ResourceSlice,
    DeviceClass,
)
"""The kinds that the plugins of kube-scheduler's default profile read."""


def scheduler_kinds(gates: FeatureGates) -> tuple[type[Named], ...]:
    """Return the kinds that a scheduler with these gates follows."""
    grouped = (PodGroup,) if gates.enabled("GenericWorkload") else ()
    tainted = (DeviceTaintRule,) if gates.enabled("DRADeviceTaintRules") else ()
    return (*SCHEDULER_KINDS, *grouped, *tainted)


UNFINISHED_PODS: Final = "status.phase!=Succeeded,status.phase!=Failed"
"""The field selector with which kube-scheduler follows pods."""


@attrs.frozen
class Resource:
    """A kind as it appears in paths of the API. `kind` is its name in manifests."""

    kind: str
    api_version: str
    plural: str
    namespaced: bool = True

    def collection(self, namespace: str = "") -> str:
        """Return the path of all objects, or of those in the namespace."""
        prefix = "/apis/" if "/" in self.api_version else "/api/"
        # Quote slashes, too: a name from a manifest must not become another path.
        scope = f"/namespaces/{quote(namespace, safe='')}" if namespace and self.namespaced else ""
        return f"{prefix}{self.api_version}{scope}/{self.plural}"

    def path(self, namespace: str, name: str, subresource: str = "") -> str:
        """Return the path of one object, or of its subresource."""
        tail = f"/{subresource}" if subresource else ""
        return f"{self.collection(namespace)}/{quote(name, safe='')}{tail}"

    def __str__(self) -> str:
        group = self.api_version.rpartition("/")[0]
        return f"{self.plural}.{group}" if group else self.plural


def resources_of(kind: FollowedKind) -> tuple[Resource, ...]:
    """Return the kind in each version that its class supports, the preferred one first."""
    if isinstance(kind, type) and issubclass(kind, CustomResource):
        kind = kind.kind
    if isinstance(kind, CustomKind):
        return (Resource(kind.name, kind.api_version, plural_of(kind.name), kind.namespaced),)
    known = KIND_OF[kind]
    versions = known.versions or (known.api_version,)
    return tuple(
        Resource(known.name, version, plural_of(known.name), known.namespaced) for version in versions
    )
