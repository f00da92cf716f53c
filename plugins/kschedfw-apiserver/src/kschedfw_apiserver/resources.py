"""The groups, versions and resources of the API server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from kschedfw import CustomKind
from kschedfw.api import KINDS, Kind, Named

_STATUS: Final = ("status",)


@attrs.frozen(eq=False)
class Resource:
    """A kind of object under its plural name in a version of a group.

    `kept_as` is the resource whose objects this one shows: two groups show the same events. `subresources` are the
    names that a path may have after an object's name.
    """

    plural: str
    kind: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    in_all: bool = False
    """True if `kubectl get all` shows it."""
    custom: bool = False
    kept_as: Resource | None = None

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def title(self) -> str:
        """The name in messages, such as `pods` or `leases.coordination.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def known_kind(self) -> Kind | None:
        """The kind as which the cluster stores its objects.

        None for custom kinds, and for kinds that the cluster doesn't have.
        """
        known = KINDS.get(self.kind)
        return known if known is not None and known.api_version == self.api_version else None


EVENTS: Final = Resource("events", "Event", short_names=("ev",))
NAMESPACES: Final = Resource(
    "namespaces", "Namespace", namespaced=False, short_names=("ns",), subresources=_STATUS
)
NODES: Final = Resource("nodes", "Node", namespaced=False, short_names=("no",), subresources=_STATUS)
PODS: Final = Resource(
    "pods", "Pod", short_names=("po",), subresources=("binding", "eviction", "status"), in_all=True
)
DISRUPTION_BUDGETS: Final = Resource(
    "poddisruptionbudgets", "PodDisruptionBudget", "policy", short_names=("pdb",), subresources=_STATUS
)
PRIORITY_CLASSES: Final = Resource(
    "priorityclasses", "PriorityClass", "scheduling.k8s.io", namespaced=False, short_names=("pc",)
)
LEASES: Final = Resource("leases", "Lease", "coordination.k8s.io")
_RBAC: Final = "rbac.authorization.k8s.io"
ROLES: Final = Resource("roles", "Role", _RBAC)
ROLE_BINDINGS: Final = Resource("rolebindings", "RoleBinding", _RBAC)
CLUSTER_ROLES: Final = Resource("clusterroles", "ClusterRole", _RBAC, namespaced=False)
CLUSTER_ROLE_BINDINGS: Final = Resource("clusterrolebindings", "ClusterRoleBinding", _RBAC, namespaced=False)

_BUILT_IN: Final = (
    Resource("bindings", "Binding"),
    Resource("configmaps", "ConfigMap", short_names=("cm",)),
    Resource("endpoints", "Endpoints", short_names=("ep",)),
    EVENTS,
    Resource("limitranges", "LimitRange", short_names=("limits",)),
    NAMESPACES,
    NODES,
    Resource("persistentvolumeclaims", "PersistentVolumeClaim", short_names=("pvc",), subresources=_STATUS),
    Resource(
        "persistentvolumes", "PersistentVolume", namespaced=False, short_names=("pv",), subresources=_STATUS
    ),
    PODS,
    Resource(
        "replicationcontrollers",
        "ReplicationController",
        short_names=("rc",),
        subresources=_STATUS,
        in_all=True,
    ),
    Resource("resourcequotas", "ResourceQuota", short_names=("quota",), subresources=_STATUS),
    Resource("secrets", "Secret"),
    Resource("serviceaccounts", "ServiceAccount", short_names=("sa",)),
    Resource("services", "Service", short_names=("svc",), subresources=_STATUS, in_all=True),
    Resource("daemonsets", "DaemonSet", "apps", short_names=("ds",), subresources=_STATUS, in_all=True),
    Resource("deployments", "Deployment", "apps", short_names=("deploy",), subresources=_STATUS, in_all=True),
    Resource("replicasets", "ReplicaSet", "apps", short_names=("rs",), subresources=_STATUS, in_all=True),
    Resource("statefulsets", "StatefulSet", "apps", short_names=("sts",), subresources=_STATUS, in_all=True),
    Resource("jobs", "Job", "batch", subresources=_STATUS, in_all=True),
    DISRUPTION_BUDGETS,
    PRIORITY_CLASSES,
    Resource("runtimeclasses", "RuntimeClass", "node.k8s.io", namespaced=False),
    Resource("storageclasses", "StorageClass", "storage.k8s.io", namespaced=False, short_names=("sc",)),
    Resource("csinodes", "CSINode", "storage.k8s.io", namespaced=False),
    Resource("csidrivers", "CSIDriver", "storage.k8s.io", namespaced=False),
    Resource("csistoragecapacities", "CSIStorageCapacity", "storage.k8s.io"),
    Resource(
        "volumeattachments", "VolumeAttachment", "storage.k8s.io", namespaced=False, subresources=_STATUS
    ),
    Resource("deviceclasses", "DeviceClass", "resource.k8s.io", namespaced=False),
    Resource("resourceslices", "ResourceSlice", "resource.k8s.io", namespaced=False),
    Resource(
        "devicetaintrules", "DeviceTaintRule", "resource.k8s.io", namespaced=False, subresources=_STATUS
    ),
    Resource("resourceclaims", "ResourceClaim", "resource.k8s.io", subresources=_STATUS),
    Resource("resourceclaimtemplates", "ResourceClaimTemplate", "resource.k8s.io"),
    LEASES,
    Resource("events", "Event", "events.k8s.io", short_names=("ev",), kept_as=EVENTS),
    ROLES,
    ROLE_BINDINGS,
    CLUSTER_ROLES,
    CLUSTER_ROLE_BINDINGS,
    Resource("tokenreviews", "TokenReview", "authentication.k8s.io", namespaced=False),
    Resource("selfsubjectreviews", "SelfSubjectReview", "authentication.k8s.io", namespaced=False),
    Resource("subjectaccessreviews", "SubjectAccessReview", "authorization.k8s.io", namespaced=False),
    Resource("selfsubjectaccessreviews", "SelfSubjectAccessReview", "authorization.k8s.io", namespaced=False),
    Resource("localsubjectaccessreviews", "LocalSubjectAccessReview", "authorization.k8s.io"),
    Resource(
        "customresourcedefinitions",
        "CustomResourceDefinition",
        "apiextensions.k8s.io",
        namespaced=False,
        short_names=("crd", "crds"),
        subresources=_STATUS,
    ),
)

ONLY_CREATED: Final = frozenset(
    {
        "bindings",
        "tokenreviews",
        "selfsubjectreviews",
        "subjectaccessreviews",
        "selfsubjectaccessreviews",
        "localsubjectaccessreviews",
    }
)
"""Resources that are questions or commands, and so can't be listed."""


class Catalogue:
    """The known resources. Resources of custom kinds can be added and removed."""

    def __init__(self, custom: Iterable[CustomKind] = ()) -> None:
        self._resources = {(each.group, each.version, each.plural): each for each in _BUILT_IN}
        self._of_kind = {(each.api_version, each.kind): each for each in _BUILT_IN}
        for kind in custom:
            self.of_custom_kind(kind)

    def __iter__(self) -> Iterator[Resource]:
        return iter(tuple(self._resources.values()))

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        return self._resources.get((group, version, plural))

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        return self._of_kind.get((api_version, kind))

    def of_class(self, cls: type[Named]) -> Resource:
        """Return the resource of a class of objects. The cluster must have a kind for it."""
        kind = KINDS[cls.__name__]
        return self._of_kind[kind.api_version, kind.name]

    def of_custom_kind(self, kind: CustomKind) -> Resource:
        """Return the resource of a custom kind.

        If its plural isn't defined, it is the one that Kubernetes would guess.
        """
        known = self._of_kind.get((kind.api_version, kind.name))
        if known is None:
            group, _, version = kind.api_version.rpartition("/")
            plural = str(kind).partition(".")[0]
            known = Resource(
                plural, kind.name, group, version, kind.namespaced, subresources=_STATUS, custom=True
            )
            self.add(known)
        return known

    def add(self, resource: Resource) -> None:
        self._resources[resource.group, resource.version, resource.plural] = resource
        self._of_kind[resource.api_version, resource.kind] = resource

    def remove(self, resource: Resource) -> None:
        self._resources.pop((resource.group, resource.version, resource.plural), None)
        self._of_kind.pop((resource.api_version, resource.kind), None)

    def versions(self) -> dict[str, list[str]]:
        """Return the versions of every group, in the order of their first resources."""
        found: dict[str, list[str]] = {}
        for each in self:
            versions = found.setdefault(each.group, [])
            if each.version not in versions:
                versions.append(each.version)
        return found


def defined_resources(definition: dict[str, object]) -> Iterator[Resource]:
    """Yield the resources of a CustomResourceDefinition's served versions; none if it is malformed."""
    spec = definition.get("spec")
    names = spec.get("names") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(names, dict):
        return
    for version in spec.get("versions") or ():
        if version.get("served"):
            yield Resource(
                str(names.get("plural")),
                str(names.get("kind")),
                str(spec.get("group")),
                str(version.get("name")),
                spec.get("scope") == "Namespaced",
                tuple(names.get("shortNames") or ()),
                tuple(version.get("subresources") or ()),
                "all" in (names.get("categories") or ()),
                custom=True,
            )
