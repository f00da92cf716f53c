"""Loads manifests: files, directories or texts, of a whole cluster or of one pod.

Everything that is wrong is collected as a problem, and everything that is right is loaded all the same. Whoever takes
the objects is told of the problems, unless he says that he can do without what is invalid.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self, TypeAlias, TypeVar

import attrs

from kschedfw.api.custom import CustomObject, read_custom_object
from kschedfw.api.defaults import default_priorities
from kschedfw.api.devices import DeviceClass, ResourceSlice
from kschedfw.api.documents import Document, documents
from kschedfw.api.expand import expand
from kschedfw.api.field_errors import FieldError
from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.kinds import BUILT_IN_GROUPS, KIND_OF, KINDS, Kind, group_of
from kschedfw.api.known_fields import FieldValidation, as_warning, unknown_fields
from kschedfw.api.limits import DEFAULT_LIMITS, Limits
from kschedfw.api.manifest_error import InvalidManifestsError, ManifestError, subject_of
from kschedfw.api.meta import DEFAULT_NAMESPACE, Named
from kschedfw.api.node import Node
from kschedfw.api.objects import (
    is_custom,
    node_from_manifest,
    object_from_manifest,
    pod_from_manifest,
    read_object,
    supported_kind,
    to_manifest,
)
from kschedfw.api.pod import Pod
from kschedfw.api.resource_claims import ResourceClaim, ResourceClaimTemplate
from kschedfw.api.sources import Source, UnreadableError, sources
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
    Namespace,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from kschedfw.api.yaml_loader import TAKEN

__all__ = [
    "FieldValidation",
    "InvalidManifestsError",
    "Limits",
    "ManifestError",
    "Manifests",
    "node_from_manifest",
    "object_from_manifest",
    "parse_manifests",
    "pod_from_manifest",
    "read_manifests",
    "to_manifest",
]

N = TypeVar("N", bound=Named)

Progress: TypeAlias = Callable[[int, int], None]
"""Told while reading how many bytes of how many are read, roughly."""

_LIST: Final = "List"
_SNAPSHOT: Final = {
    "pods": "Pod",
    "nodes": "Node",
    "pvs": "PersistentVolume",
    "pvcs": "PersistentVolumeClaim",
    "storageClasses": "StorageClass",
    "priorityClasses": "PriorityClass",
    "namespaces": "Namespace",
}
_SNAPSHOT_CONFIGURATION: Final = "schedulerConfig"
_SIMKUBE: Final = (
    "is a SimKube trace, which records the changes of a cluster over time, and isn't read here; "
    "read the objects themselves, such as `kubectl get -o json` writes them"
)
_STEP: Final = 1 << 16
"""How much is read, in characters, before progress is told again."""


@attrs.frozen
class Manifests:
    """What was loaded, each kind in the order of the input; the pods of a workload come in its place.

    Attributes:
        pods: bound and pending ones.
        custom_objects: those of someone else's API group, which plugins may read.
        ignored: how many objects of which kind scheduling has no use for; a kind of someone else's API group is
            named with it (`Kustomization.kustomize.config.k8s.io`).
        problems: one error for each thing that is wrong.
        warnings: one for each unknown field that was passed over.
    """

    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    services: tuple[Service, ...] = ()
    replication_controllers: tuple[ReplicationController, ...] = ()
    replica_sets: tuple[ReplicaSet, ...] = ()
    stateful_sets: tuple[StatefulSet, ...] = ()
    pod_disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()
    persistent_volumes: tuple[PersistentVolume, ...] = ()
    persistent_volume_claims: tuple[PersistentVolumeClaim, ...] = ()
    storage_classes: tuple[StorageClass, ...] = ()
    csi_nodes: tuple[CSINode, ...] = ()
    csi_drivers: tuple[CSIDriver, ...] = ()
    csi_storage_capacities: tuple[CSIStorageCapacity, ...] = ()
    volume_attachments: tuple[VolumeAttachment, ...] = ()
    device_classes: tuple[DeviceClass, ...] = ()
    resource_slices: tuple[ResourceSlice, ...] = ()
    resource_claim_templates: tuple[ResourceClaimTemplate, ...] = ()
    resource_claims: tuple[ResourceClaim, ...] = ()
    custom_objects: tuple[CustomObject, ...] = ()
    ignored: FrozenDict[str, int] = EMPTY
    problems: tuple[ManifestError, ...] = ()
    warnings: tuple[ManifestError, ...] = ()

    @classmethod
    def of(
        cls,
        objects: Iterable[Named],
        ignored: FrozenDict[str, int] = EMPTY,
        problems: Iterable[ManifestError] = (),
        warnings: Iterable[ManifestError] = (),
    ) -> Self:
        """Objects by kind, in their order; pods get the priorities of their classes."""
        by_class: dict[type[Named], list[Any]] = {}
        for obj in objects:
            by_class.setdefault(type(obj), []).append(obj)

        def these(kind: type[N]) -> tuple[N, ...]:
            return tuple(by_class.get(kind, ()))

        priority_classes = these(PriorityClass)
        return cls(
            nodes=these(Node),
            pods=default_priorities(these(Pod), priority_classes),
            namespaces=these(Namespace),
            services=these(Service),
            replication_controllers=these(ReplicationController),
            replica_sets=these(ReplicaSet),
            stateful_sets=these(StatefulSet),
            pod_disruption_budgets=these(PodDisruptionBudget),
            priority_classes=priority_classes,
            persistent_volumes=these(PersistentVolume),
            persistent_volume_claims=these(PersistentVolumeClaim),
            storage_classes=these(StorageClass),
            csi_nodes=these(CSINode),
            csi_drivers=these(CSIDriver),
            csi_storage_capacities=these(CSIStorageCapacity),
            volume_attachments=these(VolumeAttachment),
            device_classes=these(DeviceClass),
            resource_slices=these(ResourceSlice),
            resource_claim_templates=these(ResourceClaimTemplate),
            resource_claims=these(ResourceClaim),
            custom_objects=these(CustomObject),
            ignored=ignored,
            problems=tuple(problems),
            warnings=tuple(warnings),
        )

    def objects(self, *, skip_invalid: bool = False) -> Iterator[Named]:
        """All objects: what others refer to comes first, pods come last.

        Raises:
            InvalidManifestsError: there are problems, all of which it names; unless `skip_invalid` says to do without
                what is invalid.
        """
        if self.problems and not skip_invalid:
            raise InvalidManifestsError(self.problems)
        return self._objects()

    def _objects(self) -> Iterator[Named]:
        yield from self.namespaces
        yield from self.priority_classes
        yield from self.storage_classes
        yield from self.csi_drivers
        yield from self.csi_storage_capacities
        yield from self.nodes
        yield from self.csi_nodes
        yield from self.persistent_volumes
        yield from self.persistent_volume_claims
        yield from self.volume_attachments
        yield from self.device_classes
        yield from self.resource_slices
        yield from self.resource_claim_templates
        yield from self.resource_claims
        yield from self.services
        yield from self.replication_controllers
        yield from self.replica_sets
        yield from self.stateful_sets
        yield from self.pod_disruption_budgets
        yield from self.custom_objects
        yield from self.pods


def read_manifests(
    *paths: Path | str,
    field_validation: FieldValidation = FieldValidation.STRICT,
    limits: Limits = DEFAULT_LIMITS,
    progress: Progress | None = None,
) -> Manifests:
    """Load files, directories (with all in them, in the order of their names) and `-`, the standard input.

    Files end in `.yaml`, `.yml` or `.json`, perhaps with `.gz` behind; those that are named themselves may be called
    anything. They are read piece by piece; `progress` is told how far.

    A field that Kubernetes doesn't know is a problem, and its object isn't loaded, unless `field_validation` says
    otherwise.
    """
    return _load(list(sources(paths)), field_validation, limits, progress)


def parse_manifests(
    text: str,
    source: str = "",
    *,
    field_validation: FieldValidation = FieldValidation.STRICT,
    limits: Limits = DEFAULT_LIMITS,
) -> Manifests:
    """Load a YAML or JSON text with any number of documents; `source` is what problems call it.

    For `field_validation` see `read_manifests`.
    """
    return _load([Source(source, text)], field_validation, limits, None)


def _load(
    texts: Sequence[Source], field_validation: FieldValidation, limits: Limits, progress: Progress | None
) -> Manifests:
    loader = _Loader(field_validation, limits, progress, sum(source.size for source in texts))
    with _without_collections():
        for source in texts:
            loader.load(source)
        return loader.result()


@contextmanager
def _without_collections() -> Iterator[None]:
    """Nothing that is read here refers to itself; to look for that again and again takes a sixth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _Loader:
    """Collects objects, problems and what is ignored, one source after the other."""

    def __init__(
        self,
        field_validation: FieldValidation,
        limits: Limits,
        progress: Progress | None,
        total: int,
    ) -> None:
        self._field_validation = field_validation
        self._limits = limits
        self._progress, self._total = progress, total
        self._before = self._told = 0
        """How far reading had come before this source, and where progress was told the last time."""
        self._objects: dict[tuple[type[Named], str], Named] = {}
        self._places: dict[tuple[type[Named], str], tuple[Source, int]] = {}
        self._ignored: Counter[str] = Counter()
        self._problems: list[ManifestError] = []
        self._warnings: list[ManifestError] = []
        self._generated: Counter[tuple[str, str, str]] = Counter()
        self._source = Source("")
        self._document = 0

    def load(self, source: Source) -> None:
        self._source, self._document = source, 0
        try:
            for document in documents(source.pieces(self._limits), self._limits):
                self._load_document(document)
                self._tell(document.end)
        except UnreadableError as error:
            self._document = 0
            self._report([FieldError("", str(error))])
        self._before += source.size
        self._tell(0, always=True)

    def _tell(self, end: int, *, always: bool = False) -> None:
        position = max(self._told, self._before + end)
        if self._progress is not None and (always or position - self._told >= _STEP):
            self._told = position
            self._progress(position, max(position, self._total))

    def result(self) -> Manifests:
        everything = list(expand(self._objects.values(), self._limits, self._refuse))
        ignored = FrozenDict(sorted(self._ignored.items()))
        return Manifests.of(everything, ignored, self._problems, self._warnings)

    def _load_document(self, document: Document) -> None:
        self._document = document.number
        if document.problem:
            self._report([FieldError("", document.problem)], subject_of(document.content) or document.item)
        else:
            self._load_manifest(document.content, document.item)

    def _load_manifest(self, manifest: Any, item: str) -> None:
        """Load an object or a list; `item` says which item of a list it is."""
        try:
            if _is_list(manifest):
                self._load_items(manifest, item)
                return
            if _is_snapshot(manifest):
                self._load_snapshot(manifest)
                return
            if _is_simkube_trace(manifest):
                raise ManifestError((FieldError("", _SIMKUBE),))
            kind = supported_kind(manifest)
            if kind is not None:
                unknown = self._unknown_fields(manifest, kind)
                obj = read_object(manifest, kind, self._ordinal(manifest, kind.name), unknown=unknown)
            elif is_custom(manifest):
                obj = read_custom_object(manifest, self._ordinal(manifest, _name_of_kind(manifest)))
            else:
                self._ignored[_name_of_kind(manifest)] += 1
                return
        except ManifestError as error:
            self._report(error.errors, error.subject or subject_of(manifest) or item)
        else:
            self._add(obj)

    def _load_items(self, manifest: Mapping[str, Any], item: str) -> None:
        items = manifest["items"]
        if not isinstance(items, list):
            self._report([FieldError("items", "must be a list")], str(manifest["kind"]))
            return
        # Items of typed lists needn't repeat what they are.
        kind, version = str(manifest["kind"]).removesuffix(_LIST), manifest.get("apiVersion")
        for index, content in enumerate(items):
            if content is TAKEN:
                continue
            if kind and isinstance(content, Mapping) and "kind" not in content:
                content = {"apiVersion": version, **content, "kind": kind}
            self._load_manifest(content, f"{item}items[{index}]")

    def _load_snapshot(self, manifest: Mapping[str, Any]) -> None:
        """Load what kube-scheduler-simulator exports: lists without kinds, by what is in them."""
        for key, content in manifest.items():
            name = _SNAPSHOT.get(key)
            if name is None:
                self._ignored["KubeSchedulerConfiguration"] += content is not None
            elif isinstance(content, list):
                typed = {"apiVersion": KINDS[name].api_version, "kind": name}
                for index, item in enumerate(content):
                    if isinstance(item, Mapping):
                        item = {**item, **typed}
                    self._load_manifest(item, f"{key}[{index}]")
            elif content is not None:
                self._report([FieldError(key, "must be a list")])

    def _unknown_fields(self, manifest: Mapping[str, Any], kind: Kind) -> Sequence[FieldError]:
        """Those that are to be refused; they may be told as warnings instead."""
        if self._field_validation is FieldValidation.IGNORE:
            return ()
        unknown = unknown_fields(manifest, kind.name)
        if self._field_validation is FieldValidation.STRICT:
            return unknown
        self._warnings += self._located(map(as_warning, unknown), subject_of(manifest, kind.name))
        return ()

    def _ordinal(self, manifest: Mapping[str, Any], kind: str) -> int:
        """How many objects with the same `generateName` came before."""
        metadata = manifest.get("metadata")
        if not isinstance(metadata, Mapping) or metadata.get("name") or not metadata.get("generateName"):
            return 0
        key = (kind, str(metadata.get("namespace") or DEFAULT_NAMESPACE), str(metadata["generateName"]))
        self._generated[key] += 1
        return self._generated[key] - 1

    def _add(self, obj: Named) -> None:
        kind = obj.kind.name if isinstance(obj, CustomObject) else KIND_OF[type(obj)].name
        key = (type(obj), obj.key)
        if key in self._objects:
            source, number = self._places[key]
            place = f"document {number}" + (f" of {source.name}" if source.name else "")
            why = f'Duplicate value: "{obj.name}": there is one in {place}, which is kept'
            self._report([FieldError("metadata.name", why)], f"{kind} {obj.metadata.key}")
            return
        self._objects[key] = obj
        self._places[key] = (self._source, self._document)

    def _refuse(self, obj: Named, error: FieldError) -> None:
        """Report what is wrong with an object that was loaded."""
        self._source, self._document = self._places[type(obj), obj.key]
        self._report([error], f"{KIND_OF[type(obj)].name} {obj.metadata.key}")

    def _report(self, errors: Iterable[FieldError], subject: str = "") -> None:
        self._problems += self._located(errors, subject)

    def _located(self, errors: Iterable[FieldError], subject: str) -> Iterator[ManifestError]:
        for error in errors:
            yield ManifestError((error,), subject, self._source.name, self._document)


def _is_list(manifest: Any) -> bool:
    if not isinstance(manifest, Mapping) or "items" not in manifest:
        return False
    kind = manifest.get("kind")
    return isinstance(kind, str) and kind.endswith(_LIST)


def _is_snapshot(manifest: Any) -> bool:
    """Whether it is what kube-scheduler-simulator exports and imports."""
    if not isinstance(manifest, Mapping) or "kind" in manifest:
        return False
    return manifest.keys() >= {"pods", "nodes"} and manifest.keys() <= {*_SNAPSHOT, _SNAPSHOT_CONFIGURATION}


def _is_simkube_trace(manifest: Any) -> bool:
    return isinstance(manifest, Mapping) and manifest.keys() >= {"version", "config", "events", "index"}


def _name_of_kind(manifest: Mapping[str, Any]) -> str:
    kind, group = str(manifest["kind"]), group_of(str(manifest["apiVersion"]))
    return kind if group in BUILT_IN_GROUPS else f"{kind}.{group}"
