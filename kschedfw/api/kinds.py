"""The table of kinds: everything that is specific to a kind of object.

Reading, defaulting, validating, loading and watching go by this table, so a new kind is a class and an entry here.
Two more places know kinds, and tests compare them with this one: `known_fields.txt` (which `.ci/known_fields.py`
writes) and, where plugins may subscribe to changes of the kind, `kschedfw.framework.events.EventResource`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedfw.api.custom import CustomKind, CustomObject, CustomResource, plural_of
from kschedfw.api.defaults import (
    default_claim,
    default_claim_template,
    default_namespace,
    default_node,
    default_pod,
    default_selector,
)
from kschedfw.api.device_versions import claim_as_v1, claim_template_as_v1, class_as_v1, slice_as_v1
from kschedfw.api.devices import DeviceClass, DeviceTaintRule, ResourceSlice
from kschedfw.api.field_errors import FieldError
from kschedfw.api.frozendict import EMPTY
from kschedfw.api.limit_ranges import default_limit_range
from kschedfw.api.meta import Named
from kschedfw.api.names import label_problems, subdomain_problems
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.pod_groups import PodGroup, pod_group_errors
from kschedfw.api.policies import LimitRange, ResourceQuota, RuntimeClass
from kschedfw.api.records import frozen
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
from kschedfw.api.validate_devices import (
    device_class_errors,
    device_taint_rule_errors,
    resource_claim_errors,
    resource_claim_template_errors,
    resource_slice_errors,
)
from kschedfw.api.validate_selectors import Errors
from kschedfw.api.validation import (
    cron_job_errors,
    disruption_budget_errors,
    job_errors,
    metadata_errors,
    node_errors,
    persistent_volume_errors,
    pod_errors,
    priority_class_errors,
    replication_controller_errors,
    service_errors,
    storage_capacity_errors,
    workload_errors,
)
from kschedfw.api.workloads import (
    CronJob,
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


@frozen
class Kind:
    """A kind of object that scheduling reads.

    Attributes:
        name: the value of `kind` in manifests.
        api_version: the version in which manifests are written, as in their `apiVersion`: `apps/v1`, or `v1` for a kind
            of the core group.
        cls: the class of its objects.
        namespaced: whether its objects live in namespaces.
        older_groups: the kind's earlier API groups.
        versions: the versions whose manifests the class can be read from; empty for all versions of its groups.
        converted: further versions that are read, each with the function that makes such a manifest one of `versions`.
        name_problems: finds the problems of a name, in Kubernetes' words.
        with_defaults: fills in what the API server fills in, except for metadata.
        errors: finds what the API server refuses in an object that has its defaults, except for metadata.
    """

    name: str
    api_version: str
    cls: type[Named]
    namespaced: bool = attrs.field(default=True, kw_only=True)
    older_groups: tuple[str, ...] = attrs.field(default=(), kw_only=True)
    versions: tuple[str, ...] = attrs.field(default=(), kw_only=True)
    """The only versions with the fields of the class; empty if all versions have them."""
    converted: Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = attrs.field(
        default=EMPTY, kw_only=True, hash=False
    )
    differences: str = attrs.field(default="", kw_only=True)
    """A sentence for errors: where this version has the fields that other versions have elsewhere."""
    name_problems: Callable[[str], Sequence[str]] = attrs.field(default=subdomain_problems, kw_only=True)
    with_defaults: Callable[[Any], Named] = attrs.field(default=lambda obj: obj, kw_only=True)
    errors: Callable[[Any], Errors] = attrs.field(default=lambda _obj: iter(()), kw_only=True)

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return group_of(self.api_version)

    @property
    def version(self) -> str:
        """The version within the group, such as `v1`."""
        return self.api_version.rpartition("/")[2]

    @property
    def groups(self) -> tuple[str, ...]:
        """The API groups in which manifests of the kind may be written, the present one first."""
        return (self.group, *self.older_groups)

    @property
    def plural(self) -> str:
        """The kind's name in the API's paths: `pods`, `storageclasses`."""
        return plural_of(self.name)

    @property
    def event_resource(self) -> str:
        """kube-scheduler's name for the kind in events: `Pod`, `storage.k8s.io/CSINode`."""
        return f"{self.group}/{self.name}" if self.group else self.name

    def reads(self, api_version: str) -> bool:
        """Tell whether objects can be read from manifests of this version."""
        is_its_own = not self.versions or api_version in self.versions or api_version in self.converted
        return is_its_own and group_of(api_version) in self.groups

    def current(self, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the manifest with the fields of the class, whatever version it is of."""
        convert = self.converted.get(str(manifest.get("apiVersion")))
        return manifest if convert is None else convert(manifest)


def group_of(api_version: str) -> str:
    """The group in `group/version`; empty for the core's plain `v1`."""
    return api_version.rpartition("/")[0]


_CORE: Final = "v1"
_APPS: Final = "apps/v1"
_STORAGE: Final = "storage.k8s.io/v1"
_GROUPS: Final = "scheduling.k8s.io/v1alpha2"
_GROUP_VERSIONS: Final = (_GROUPS, "scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3")
_DEVICES: Final = "resource.k8s.io/v1"
_DEVICE_VERSIONS: Final = (_DEVICES, "resource.k8s.io/v1beta2")
_OLD_DEVICES: Final = "resource.k8s.io/v1beta1"
_OF_REQUESTS: Final = (
    "write it so, with the fields of each of spec.devices.requests, but for name and firstAvailable, "
    "under exactly"
)
_OF_TEMPLATES: Final = _OF_REQUESTS.replace("spec.devices", "spec.spec.devices")
_EXTENSIONS: Final = ("extensions",)

_KINDS: Final = (
    Kind(
        "Namespace",
        _CORE,
        Namespace,
        namespaced=False,
        name_problems=label_problems,
        with_defaults=default_namespace,
    ),
    Kind(
        "PriorityClass", "scheduling.k8s.io/v1", PriorityClass, namespaced=False, errors=priority_class_errors
    ),
    # Admission applies the next three to pods while manifests are loaded.
    Kind(
        "RuntimeClass",
        "node.k8s.io/v1",
        RuntimeClass,
        namespaced=False,
        versions=("node.k8s.io/v1", "node.k8s.io/v1beta1"),
        differences="write it so, with what is under spec.runtimeHandler as handler",
    ),
    Kind("LimitRange", _CORE, LimitRange, with_defaults=default_limit_range),
    Kind("ResourceQuota", _CORE, ResourceQuota),
    Kind("StorageClass", _STORAGE, StorageClass, namespaced=False),
    Kind("CSIDriver", _STORAGE, CSIDriver, namespaced=False),
    Kind("CSIStorageCapacity", _STORAGE, CSIStorageCapacity, errors=storage_capacity_errors),
    Kind("Node", _CORE, Node, namespaced=False, with_defaults=default_node, errors=node_errors),
    Kind("CSINode", _STORAGE, CSINode, namespaced=False),
    Kind("PersistentVolume", _CORE, PersistentVolume, namespaced=False, errors=persistent_volume_errors),
    Kind("PersistentVolumeClaim", _CORE, PersistentVolumeClaim),
    Kind("VolumeAttachment", _STORAGE, VolumeAttachment, namespaced=False),
    Kind(
        "DeviceClass",
        _DEVICES,
        DeviceClass,
        namespaced=False,
        versions=_DEVICE_VERSIONS,
        converted={_OLD_DEVICES: class_as_v1},
        differences="write it so; the fields are the same",
        errors=device_class_errors,
    ),
    Kind(
        "ResourceSlice",
        _DEVICES,
        ResourceSlice,
        namespaced=False,
        versions=_DEVICE_VERSIONS,
        converted={_OLD_DEVICES: slice_as_v1},
        differences="write it so, with what is under basic of each of spec.devices beside its name",
        errors=resource_slice_errors,
    ),
    Kind(
        "DeviceTaintRule",
        _DEVICES,
        DeviceTaintRule,
        namespaced=False,
        # v1alpha3 is the only version that v1.35 has. Its selectors by class and by CEL, of v1.34, are no more.
        versions=(*_DEVICE_VERSIONS, "resource.k8s.io/v1alpha3"),
        errors=device_taint_rule_errors,
    ),
    Kind(
        "ResourceClaimTemplate",
        _DEVICES,
        ResourceClaimTemplate,
        versions=_DEVICE_VERSIONS,
        converted={_OLD_DEVICES: claim_template_as_v1},
        differences=_OF_TEMPLATES,
        with_defaults=default_claim_template,
        errors=resource_claim_template_errors,
    ),
    Kind(
        "ResourceClaim",
        _DEVICES,
        ResourceClaim,
        versions=_DEVICE_VERSIONS,
        converted={_OLD_DEVICES: claim_as_v1},
        differences=_OF_REQUESTS,
        with_defaults=default_claim,
        errors=resource_claim_errors,
    ),
    Kind("Service", _CORE, Service, name_problems=label_problems, errors=service_errors),
    Kind(
        "ReplicationController",
        _CORE,
        ReplicationController,
        with_defaults=default_selector,
        errors=replication_controller_errors,
    ),
    Kind("ReplicaSet", _APPS, ReplicaSet, older_groups=_EXTENSIONS, errors=workload_errors),
    Kind("StatefulSet", _APPS, StatefulSet, name_problems=label_problems, errors=workload_errors),
    # Loading replaces the next four by what their controllers make.
    Kind("Deployment", _APPS, Deployment, older_groups=_EXTENSIONS, errors=workload_errors),
    Kind("DaemonSet", _APPS, DaemonSet, older_groups=_EXTENSIONS, errors=workload_errors),
    Kind("Job", "batch/v1", Job, errors=job_errors),
    Kind("CronJob", "batch/v1", CronJob, errors=cron_job_errors),
    Kind(
        "PodGroup",
        _GROUPS,
        PodGroup,
        versions=_GROUP_VERSIONS,
        differences="write it so; disruptionMode is Pod or PodGroup",
        errors=pod_group_errors,
    ),
    Kind("PodDisruptionBudget", "policy/v1", PodDisruptionBudget, errors=disruption_budget_errors),
    Kind("Pod", _CORE, Pod, with_defaults=default_pod, errors=pod_errors),
)

KINDS: Final = {kind.name: kind for kind in _KINDS}
"""The kinds by name. What others refer to comes before them, and pods come last: the order to create objects in."""

KIND_OF: Final = {kind.cls: kind for kind in _KINDS}
"""The kinds by the class of their objects."""


def kind_of(obj: Named) -> Kind | CustomKind:
    """Return the kind of an object, custom objects included: its name and its API version."""
    return obj.kind if isinstance(obj, CustomObject | CustomResource) else KIND_OF[type(obj)]


def name_of_kind(obj: Named) -> str:
    """Return the value of `kind` in the object's manifest, custom objects included."""
    return obj.kind.name if isinstance(obj, CustomObject | CustomResource) else type(obj).__name__


def validate(obj: Named) -> list[FieldError]:
    """Return everything that the API server would refuse in an object that has its defaults; empty if it is valid."""
    kind = KIND_OF[type(obj)]
    return [*metadata_errors(obj.metadata, kind.name_problems), *kind.errors(obj)]


BUILT_IN_GROUPS: Final = frozenset(
    {
        *("", "apps", "autoscaling", "batch", "extensions", "policy"),
        *(
            "admissionregistration.k8s.io",
            "apiextensions.k8s.io",
            "apiregistration.k8s.io",
            "authentication.k8s.io",
        ),
        *(
            "authorization.k8s.io",
            "certificates.k8s.io",
            "coordination.k8s.io",
            "discovery.k8s.io",
            "events.k8s.io",
        ),
        *("flowcontrol.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io", "rbac.authorization.k8s.io"),
        *("resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io"),
    }
)
"""The API server's own groups.

A `Job` of any other group is someone else's kind; a known kind in the wrong one of these is a mistake.
"""
