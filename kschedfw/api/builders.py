"""Fluent builders: `make_pod("web").requests(cpu="1").build()`.

A builder writes a manifest and loads it. So the object is the same as from that manifest in a file, with the
API's defaults.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Generic, Self, TypeVar

from kschedfw.api.affinity import PREFERRED, REQUIRED
from kschedfw.api.meta import Named
from kschedfw.api.node import Node
from kschedfw.api.objects import object_of_class
from kschedfw.api.pod import Pod
from kschedfw.api.pod_groups import PodGroup
from kschedfw.api.resource_names import may_overcommit
from kschedfw.api.storage import PersistentVolume, PersistentVolumeClaim

T = TypeVar("T", bound=Named)

Manifest = dict[str, object]


def _at(manifest: Manifest, *path: str) -> Manifest:
    for key in path:
        manifest = manifest.setdefault(key, {})  # type: ignore[assignment]  # the builder only nests mappings
    return manifest


def _list(manifest: Manifest, key: str) -> list[Manifest]:
    return manifest.setdefault(key, [])  # type: ignore[return-value]  # the builder only stores lists of mappings


class _Builder(Generic[T]):
    _cls: type[T]
    """The class of the objects; set by the builder of a kind."""

    def __init__(self, name: str) -> None:
        self._manifest: Manifest = {"metadata": {"name": name}, "spec": {}}

    def __repr__(self) -> str:
        # Errors show it where an object was expected: `.build()` is easily forgotten.
        return f"<{type(self).__name__} {_at(self._manifest, 'metadata')['name']} that isn't built: call .build()>"

    def labels(self, labels: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Add labels; keywords are for keys that are identifiers."""
        _at(self._manifest, "metadata", "labels").update({**(labels or {}), **more})
        return self

    def annotations(self, annotations: Mapping[str, str]) -> Self:
        _at(self._manifest, "metadata", "annotations").update(annotations)
        return self

    def uid(self, uid: str) -> Self:
        _at(self._manifest, "metadata")["uid"] = uid
        return self

    def creation_timestamp(self, when: datetime | str) -> Self:
        """Set when the object was created, by a datetime with a time zone or a text: `2026-01-31T12:00:00Z`."""
        text = when if isinstance(when, str) else when.isoformat()
        _at(self._manifest, "metadata")["creationTimestamp"] = text
        return self

    def manifest(self) -> Manifest:
        """Return a copy of the manifest so far."""
        return copy.deepcopy(self._manifest)

    def build(self, *, check: bool = True) -> T:
        """Return the object; without `check`, also one that the API server would refuse.

        Raises:
            ManifestError: the manifest isn't valid.
        """
        return object_of_class(self.manifest(), self._cls, check=check)

    def _spec(self, field: str, value: object) -> Self:
        _at(self._manifest, "spec")[field] = value
        return self

    def _add(self, field: str, *entries: Mapping[str, object]) -> Self:
        _list(_at(self._manifest, "spec"), field).extend(map(dict, entries))
        return self


class PodBuilder(_Builder[Pod]):
    """Builds a Pod; every method returns the builder. Without `container` the pod has one, named `main`."""

    _cls = Pod

    def namespace(self, namespace: str) -> Self:
        _at(self._manifest, "metadata")["namespace"] = namespace
        return self

    def requests(self, requests: Mapping[str, str | int] | None = None, /, **more: str | int) -> Self:
        """Set requests of the container added last: `requests(cpu="500m", memory="1Gi")`.

        Resources that can't be overcommitted, such as GPUs, get an equal limit, which the API requires.
        """
        wanted = {**(requests or {}), **more}
        _at(self._container(), "resources", "requests").update(wanted)
        exact = {name: amount for name, amount in wanted.items() if not may_overcommit(name)}
        if exact:
            _at(self._container(), "resources", "limits").update(exact)
        return self

    def limits(self, limits: Mapping[str, str | int] | None = None, /, **more: str | int) -> Self:
        _at(self._container(), "resources", "limits").update({**(limits or {}), **more})
        return self

    def container(self, name: str, *, image: str = "registry.example/app:1") -> Self:
        """Add a container; `requests`, `limits`, `image` and `host_port` go to the last one added."""
        return self._add("containers", {"name": name, "image": image})

    def init_container(
        self, name: str, *, requests: Mapping[str, str | int] | None = None, sidecar: bool = False
    ) -> Self:
        container: Manifest = {
            "name": name,
            "image": "registry.example/init:1",
            "resources": {"requests": dict(requests or {})},
        }
        if sidecar:
            container["restartPolicy"] = "Always"
        return self._add("initContainers", container)

    def overhead(self, **overhead: str | int) -> Self:
        _at(self._manifest, "spec", "overhead").update(overhead)
        return self

    def image(self, image: str) -> Self:
        self._container()["image"] = image
        return self

    def host_port(self, port: int, *, protocol: str = "TCP", host_ip: str = "") -> Self:
        entry: Manifest = {"containerPort": port, "hostPort": port, "protocol": protocol}
        if host_ip:
            entry["hostIP"] = host_ip
        _list(self._container(), "ports").append(entry)
        return self

    def node(self, name: str) -> Self:
        """Bind the pod to the node."""
        return self._spec("nodeName", name)

    def nominated_node(self, name: str) -> Self:
        _at(self._manifest, "status")["nominatedNodeName"] = name
        return self

    def priority(self, priority: int) -> Self:
        return self._spec("priority", priority)

    def scheduler_name(self, name: str) -> Self:
        return self._spec("schedulerName", name)

    def group(self, name: str) -> Self:
        """Make the pod a member of the PodGroup of this name in its namespace."""
        return self._spec("schedulingGroup", {"podGroupName": name})

    def scheduling_gate(self, *names: str) -> Self:
        return self._add("schedulingGates", *({"name": name} for name in names))

    def node_selector(self, labels: Mapping[str, str] | None = None, /, **more: str) -> Self:
        _at(self._manifest, "spec", "nodeSelector").update({**(labels or {}), **more})
        return self

    def node_affinity_in(self, key: str, *values: str) -> Self:
        """Require the node label to have one of the values; several calls are alternatives."""
        term = _at(self._manifest, "spec", "affinity", "nodeAffinity", REQUIRED)
        _list(term, "nodeSelectorTerms").append(_expression(key, values))
        return self

    def prefer_node(self, weight: int, key: str, *values: str) -> Self:
        preferred = _list(_at(self._manifest, "spec", "affinity", "nodeAffinity"), PREFERRED)
        preferred.append({"weight": weight, "preference": _expression(key, values)})
        return self

    def pod_affinity(
        self, topology_key: str, labels: Mapping[str, str], *, weight: int | None = None
    ) -> Self:
        """Require to be near pods with these labels; with a weight prefer it."""
        return self._pod_term("podAffinity", topology_key, labels, weight)

    def pod_anti_affinity(
        self, topology_key: str, labels: Mapping[str, str], *, weight: int | None = None
    ) -> Self:
        """Require to be away from pods with these labels; with a weight prefer it."""
        return self._pod_term("podAntiAffinity", topology_key, labels, weight)

    def spread(
        self,
        topology_key: str,
        labels: Mapping[str, str],
        *,
        max_skew: int = 1,
        hard: bool = True,
        min_domains: int | None = None,
    ) -> Self:
        constraint: Manifest = {
            "maxSkew": max_skew,
            "topologyKey": topology_key,
            "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
            "labelSelector": {"matchLabels": dict(labels)},
        }
        if min_domains is not None:
            constraint["minDomains"] = min_domains
        return self._add("topologySpreadConstraints", constraint)

    def volume(self, name: str, source: Mapping[str, object]) -> Self:
        """Add a volume: `volume("disk", {"gcePersistentDisk": {"pdName": "d"}})`."""
        return self._add("volumes", {"name": name, **copy.deepcopy(dict(source))})

    def claim(self, name: str, *, read_only: bool = False) -> Self:
        """Use the persistent volume claim."""
        source: Manifest = {"claimName": name}
        if read_only:
            source["readOnly"] = True
        return self.volume(name, {"persistentVolumeClaim": source})

    def ephemeral_volume(self, name: str, *, storage: str = "1Gi", storage_class: str | None = None) -> Self:
        """Add a generic ephemeral volume; its claim is called `<pod>-<name>`."""
        spec: Manifest = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
        if storage_class is not None:
            spec["storageClassName"] = storage_class
        return self.volume(name, {"ephemeral": {"volumeClaimTemplate": {"spec": spec}}})

    def toleration(self, key: str = "", *, operator: str = "", value: str = "", effect: str = "") -> Self:
        """Tolerate a taint; without a value any value of the key (`Exists`)."""
        entry: Manifest = {"operator": operator or ("Equal" if value else "Exists")}
        entry.update(
            {name: text for name, text in (("key", key), ("value", value), ("effect", effect)) if text}
        )
        return self._add("tolerations", entry)

    def build(self, *, check: bool = True) -> Pod:
        self._container()
        return super().build(check=check)

    def _container(self) -> Manifest:
        containers = _list(_at(self._manifest, "spec"), "containers")
        if not containers:
            self.container("main")
        return containers[-1]

    def _pod_term(self, kind: str, topology_key: str, labels: Mapping[str, str], weight: int | None) -> Self:
        term: Manifest = {"topologyKey": topology_key, "labelSelector": {"matchLabels": dict(labels)}}
        affinity = _at(self._manifest, "spec", "affinity", kind)
        if weight is None:
            _list(affinity, REQUIRED).append(term)
        else:
            _list(affinity, PREFERRED).append({"weight": weight, "podAffinityTerm": term})
        return self


class NodeBuilder(_Builder[Node]):
    """Builds a Node; every method returns the builder. It has room for 110 pods unless `capacity` says otherwise."""

    _cls = Node

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.labels({"kubernetes.io/hostname": name})
        self.capacity(pods=110)

    def capacity(self, capacity: Mapping[str, str | int] | None = None, /, **more: str | int) -> Self:
        """Set allocatable (and capacity): `capacity({"nvidia.com/gpu": 8}, cpu=32, memory="128Gi")`."""
        for field in ("capacity", "allocatable"):
            _at(self._manifest, "status", field).update({**(capacity or {}), **more})
        return self

    def zone(self, zone: str) -> Self:
        return self.labels({"topology.kubernetes.io/zone": zone})

    def taint(self, key: str, *, value: str = "", effect: str = "NoSchedule") -> Self:
        entry: Manifest = {"key": key, "effect": effect}
        if value:
            entry["value"] = value
        return self._add("taints", entry)

    def declared_features(self, *names: str) -> Self:
        """Declare features that pods may need, e.g. `RestartAllContainersOnContainerExits`."""
        _list(_at(self._manifest, "status"), "declaredFeatures").extend(names)  # type: ignore[arg-type]  # this list holds strings
        return self

    def unschedulable(self) -> Self:
        return self._spec("unschedulable", True)

    def image(self, *names: str, size: int) -> Self:
        """Add an image of `size` bytes with these names."""
        _list(_at(self._manifest, "status"), "images").append({"names": list(names), "sizeBytes": size})
        return self


class VolumeBuilder(_Builder[PersistentVolume]):
    """Builds a PersistentVolume; every method returns the builder. It is available until something claims it."""

    _cls = PersistentVolume

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._manifest["status"] = {"phase": "Available"}

    def capacity(self, storage: str) -> Self:
        _at(self._manifest, "spec", "capacity")["storage"] = storage
        return self

    def access_modes(self, *modes: str) -> Self:
        return self._spec("accessModes", list(modes))

    def storage_class(self, name: str) -> Self:
        return self._spec("storageClassName", name)

    def zone(self, zone: str) -> Self:
        """Label the volume with its zone; `a__b` stands for two zones, a and b."""
        return self.labels({"topology.kubernetes.io/zone": zone})

    def node_affinity_in(self, key: str, *values: str) -> Self:
        """Require the node label to have one of the values; several calls are alternatives."""
        term = _at(self._manifest, "spec", "nodeAffinity", "required")
        _list(term, "nodeSelectorTerms").append(_expression(key, values))
        return self

    def source(self, source: Mapping[str, object]) -> Self:
        """Set the source: `source({"awsElasticBlockStore": {"volumeID": "vol-1"}})`."""
        _at(self._manifest, "spec").update(copy.deepcopy(dict(source)))
        return self

    def csi(self, driver: str, handle: str) -> Self:
        return self.source({"csi": {"driver": driver, "volumeHandle": handle}})

    def claimed_by(self, key: str, *, uid: str = "") -> Self:
        """Bind the volume to the claim `namespace/name`."""
        namespace, _, name = key.rpartition("/")
        reference = {"kind": "PersistentVolumeClaim", "namespace": namespace or "default", "name": name}
        _at(self._manifest, "status")["phase"] = "Bound"
        return self._spec("claimRef", {**reference, "uid": uid} if uid else reference)


class ClaimBuilder(_Builder[PersistentVolumeClaim]):
    """Builds a PersistentVolumeClaim; every method returns the builder. It is not bound unless `bound_to` says so."""

    _cls = PersistentVolumeClaim

    def namespace(self, namespace: str) -> Self:
        _at(self._manifest, "metadata")["namespace"] = namespace
        return self

    def requests(self, storage: str) -> Self:
        _at(self._manifest, "spec", "resources", "requests")["storage"] = storage
        return self

    def access_modes(self, *modes: str) -> Self:
        return self._spec("accessModes", list(modes))

    def storage_class(self, name: str) -> Self:
        return self._spec("storageClassName", name)

    def bound_to(self, volume: str) -> Self:
        """Bind the claim to the volume, as the volume controller does."""
        self.annotations({"pv.kubernetes.io/bind-completed": "yes"})
        _at(self._manifest, "status")["phase"] = "Bound"
        return self._spec("volumeName", volume)

    def made_for(self, pod: Pod) -> Self:
        """Make the pod the owner, as of a generic ephemeral volume's claim."""
        owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
        _at(self._manifest, "metadata").update(namespace=pod.namespace, ownerReferences=[owner])
        return self


def _expression(key: str, values: Sequence[str]) -> Manifest:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


class PodGroupBuilder(_Builder[PodGroup]):
    """Builds a PodGroup; every method returns the builder. The group is a basic one unless `gang` is called."""

    _cls = PodGroup

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._spec("schedulingPolicy", {"basic": {}})

    def namespace(self, namespace: str) -> Self:
        _at(self._manifest, "metadata")["namespace"] = namespace
        return self

    def gang(self, min_count: int) -> Self:
        """Let members run only if at least this number of them can."""
        return self._spec("schedulingPolicy", {"gang": {"minCount": min_count}})

    def topology(self, key: str) -> Self:
        """Place all members on nodes with the same value of this label."""
        return self._spec("schedulingConstraints", {"topology": [{"key": key}]})

    def priority(self, priority: int) -> Self:
        return self._spec("priority", priority)

    def disrupted_as_a_whole(self) -> Self:
        """Evict all members or none in a preemption by a group (disruptionMode PodGroup)."""
        return self._spec("disruptionMode", "PodGroup")


def make_pod(name: str = "pod") -> PodBuilder:
    """Begin a pod in the namespace `default`: `make_pod("web").requests(cpu=1).build()`."""
    return PodBuilder(name)


def make_node(name: str = "node") -> NodeBuilder:
    """Begin a node: `make_node("n1").capacity(cpu=4, memory="16Gi").build()`."""
    return NodeBuilder(name)


def make_volume(name: str = "volume") -> VolumeBuilder:
    """Begin a PersistentVolume."""
    return VolumeBuilder(name)


def make_claim(name: str = "claim") -> ClaimBuilder:
    """Begin a PersistentVolumeClaim in the namespace `default`."""
    return ClaimBuilder(name)


def make_pod_group(name: str = "group") -> PodGroupBuilder:
    """Begin a PodGroup in the namespace `default`: `make_pod_group("train").gang(min_count=8).build()`."""
    return PodGroupBuilder(name)
