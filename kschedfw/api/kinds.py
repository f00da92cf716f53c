"""The kinds that can be loaded: their API groups, their classes, whether they live in a namespace."""

from __future__ import annotations

from typing import Final

import attrs

from kschedfw.api.devices import DeviceClass, ResourceSlice
from kschedfw.api.meta import Named
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.resource_claims import ResourceClaim, ResourceClaimTemplate
from kschedfw.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from kschedfw.api.workloads import (
    DaemonSet,
    Deployment,
    Job,
    Namespace,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)


@attrs.frozen
class Kind:
    """A kind of the Kubernetes API, and in which other groups it has been."""

    name: str
    api_version: str
    cls: type[Named]
    namespaced: bool = True
    older_groups: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    """The only versions of which objects look as they do here; all versions, if none is named."""
    differences: str = ""
    """How to write in this version what other versions have elsewhere."""

    @property
    def groups(self) -> tuple[str, ...]:
        return (group_of(self.api_version), *self.older_groups)


def group_of(api_version: str) -> str:
    """The group in `group/version`; empty for the core's plain `v1`."""
    return api_version.rpartition("/")[0]


_DEVICE_VERSIONS: Final = ("resource.k8s.io/v1", "resource.k8s.io/v1beta2")
_OF_REQUESTS: Final = (
    "write it so, with the fields of each of spec.devices.requests, but for name and firstAvailable, "
    "under exactly"
)
_OF_TEMPLATES: Final = _OF_REQUESTS.replace("spec.devices", "spec.spec.devices")

_KINDS: Final = (
    Kind("Node", "v1", Node, namespaced=False),
    Kind("Pod", "v1", Pod),
    Kind("Namespace", "v1", Namespace, namespaced=False),
    Kind("Service", "v1", Service),
    Kind("ReplicationController", "v1", ReplicationController),
    Kind("PersistentVolume", "v1", PersistentVolume, namespaced=False),
    Kind("PersistentVolumeClaim", "v1", PersistentVolumeClaim),
    Kind("ReplicaSet", "apps/v1", ReplicaSet, older_groups=("extensions",)),
    Kind("StatefulSet", "apps/v1", StatefulSet),
    Kind("Deployment", "apps/v1", Deployment, older_groups=("extensions",)),
    Kind("DaemonSet", "apps/v1", DaemonSet, older_groups=("extensions",)),
    Kind("Job", "batch/v1", Job),
    Kind("PodDisruptionBudget", "policy/v1", PodDisruptionBudget),
    Kind("PriorityClass", "scheduling.k8s.io/v1", PriorityClass, namespaced=False),
    Kind("StorageClass", "storage.k8s.io/v1", StorageClass, namespaced=False),
    Kind("CSINode", "storage.k8s.io/v1", CSINode, namespaced=False),
    Kind("CSIDriver", "storage.k8s.io/v1", CSIDriver, namespaced=False),
    Kind("CSIStorageCapacity", "storage.k8s.io/v1", CSIStorageCapacity),
    Kind(
        "DeviceClass",
        "resource.k8s.io/v1",
        DeviceClass,
        namespaced=False,
        versions=_DEVICE_VERSIONS,
        differences="write it so; the fields are the same as in v1beta1",
    ),
    Kind(
        "ResourceSlice",
        "resource.k8s.io/v1",
        ResourceSlice,
        namespaced=False,
        versions=_DEVICE_VERSIONS,
        differences="write it so, with what is under basic of each of spec.devices beside its name",
    ),
    Kind(
        "ResourceClaim",
        "resource.k8s.io/v1",
        ResourceClaim,
        versions=_DEVICE_VERSIONS,
        differences=_OF_REQUESTS,
    ),
    Kind(
        "ResourceClaimTemplate",
        "resource.k8s.io/v1",
        ResourceClaimTemplate,
        versions=_DEVICE_VERSIONS,
        differences=_OF_TEMPLATES,
    ),
    Kind("VolumeAttachment", "storage.k8s.io/v1", VolumeAttachment, namespaced=False),
)

KINDS: Final = {kind.name: kind for kind in _KINDS}
KIND_OF: Final = {kind.cls: kind for kind in _KINDS}

# Groups of the API server itself. A kind named `Job` in any other group is someone else's Job; a known kind in the
# wrong one of these is a mistake.
BUILT_IN_GROUPS: Final = frozenset(
    {
        "",
        "apps",
        "autoscaling",
        "batch",
        "extensions",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "storagemigration.k8s.io",
    }
)
