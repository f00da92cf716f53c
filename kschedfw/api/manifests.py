"""Loading of manifests: files, directories or texts, of a whole cluster or of one pod.

Valid objects are loaded even if others are invalid; errors are kept as problems. `Manifests.objects` raises if
there are problems, unless the caller skips invalid objects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import attrs
import msgspec

from kschedfw.api.custom import read_custom_object
from kschedfw.api.custom_owners import owners_without_pods
from kschedfw.api.documents import Document, documents
from kschedfw.api.expand import expand
from kschedfw.api.expand_custom import CustomExpansion, expand_custom
from kschedfw.api.field_errors import FieldError, shown
from kschedfw.api.files import UnreadableError
from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.garbage import without_collections
from kschedfw.api.json_shapes import JsonShapes
from kschedfw.api.kinds import BUILT_IN_GROUPS, KINDS, Kind, group_of, name_of_kind
from kschedfw.api.known_fields import FieldValidation, as_warning, unknown_fields
from kschedfw.api.limits import DEFAULT_LIMITS, Limits, how_to_raise
from kschedfw.api.loaded_manifests import Manifests
from kschedfw.api.manifest_error import InvalidManifestsError, ManifestError, subject_of
from kschedfw.api.meta import DEFAULT_NAMESPACE, Named
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
from kschedfw.api.pod_json import exported_pod
from kschedfw.api.removed_versions import removed_in
from kschedfw.api.sources import ManifestSource, sources
from kschedfw.api.warning_events import WarningEvents, is_event
from kschedfw.api.words import with_article
from kschedfw.api.yaml_loader import TAKEN, says_what_it_is

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

Progress: TypeAlias = Callable[[int, int], None]
"""Called while reading, with the number of bytes read and the number of all bytes; both are approximate."""

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
"""Characters that are read between two calls of `Progress`."""


class Expand(Enum):
    """The workloads that get the pods which they lack."""

    NOTHING = "nothing"
    WORKLOADS = "workloads"
    """Deployments, Jobs and the like."""
    ALL = "all"
    """Well-known custom kinds, too, such as JobSets."""


def read_manifests(
    *paths: Path | str,
    field_validation: FieldValidation = FieldValidation.STRICT,
    limits: Limits = DEFAULT_LIMITS,
    progress: Progress | None = None,
    expand_workloads: Expand = Expand.WORKLOADS,
    existing: Iterable[Named] = (),
) -> Manifests:
    """Load files, directories (with all in them, in the order of their names) and `-`, the standard input.

    In directories, files ending in `.yaml`, `.yml` or `.json` are read, optionally followed by `.gz`; a file given
    by its own path may have any name. Files are read in pieces; `progress` is called after each.

    A field that Kubernetes doesn't know is a problem, and its object isn't loaded, unless `field_validation` says
    otherwise. Deployments, Jobs and the like get the pods that they lack, unless `expand_workloads` says otherwise.

    `existing` are the objects of the cluster that the manifests come on top of: new pods are admitted under its
    policies, too, and its pods count for quotas. They aren't in the result, and to load one of them again is a problem.
    """
    return _load(list(sources(paths)), field_validation, limits, progress, expand_workloads, existing)


def parse_manifests(
    text: str,
    source: str = "",
    *,
    field_validation: FieldValidation = FieldValidation.STRICT,
    limits: Limits = DEFAULT_LIMITS,
    expand_workloads: Expand = Expand.WORKLOADS,
    existing: Iterable[Named] = (),
) -> Manifests:
    """Load a YAML or JSON text with any number of documents; `source` is its name in problems.

    For `field_validation`, `expand_workloads` and `existing` see `read_manifests`.
    """
    return _load([ManifestSource(source, text)], field_validation, limits, None, expand_workloads, existing)


def _load(
    texts: Sequence[ManifestSource],
    field_validation: FieldValidation,
    limits: Limits,
    progress: Progress | None,
    expand_workloads: Expand,
    existing: Iterable[Named] = (),
) -> Manifests:
    loader = _Loader(field_validation, limits, progress, sum(source.size for source in texts))
    with without_collections():
        for source in texts:
            loader.load(source)
        return loader.result(expand_workloads, existing)


class _ReadPod(NamedTuple):
    """A valid pod, and whether an API server has stored it."""

    pod: Pod
    stored: bool


class _WithKnownFields(NamedTuple):
    """A manifest with the fields of one that was loaded without a problem."""

    manifest: Mapping[str, Any]


class _Loader:
    """A collector of objects, problems and ignored kinds, one source after the other."""

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
        """The bytes of all sources before this one, and the position that was last passed to `progress`."""
        self._objects: dict[tuple[type[Named], str], Named] = {}
        self._places: dict[tuple[type[Named], str], tuple[ManifestSource, int]] = {}
        self._stored: set[str] = set()
        """The keys of pods that an API server has stored: they have a uid or a status."""
        self._ignored: Counter[str] = Counter()
        self._outdated: Counter[tuple[str, str]] = Counter()
        self._events = WarningEvents()
        self._problems: list[ManifestError] = []
        self._warnings: list[ManifestError] = []
        self._generated: Counter[tuple[str, str, str]] = Counter()
        self._shapes = JsonShapes()
        """The shapes of the objects that were loaded without a problem."""
        self._source = ManifestSource("")
        self._document = 0

    def load(self, source: ManifestSource) -> None:
        self._source, self._document = source, 0
        try:
            for document in documents(source.pieces(self._limits), self._limits, self._read_item):
                self._load_document(document)
                if len(self._problems) > self._limits.problems:
                    # First, since of many problems only the first are shown.
                    self._problems[:0] = self._located([FieldError("", self._too_many_problems())], "")
                    break
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

    def result(self, expand_workloads: Expand, existing: Iterable[Named]) -> Manifests:
        before = tuple(existing)
        self._refuse_existing(before)
        owners = [] if expand_workloads is Expand.NOTHING else owners_without_pods(self._objects.values())
        custom = CustomExpansion(self._objects.values())
        if expand_workloads is Expand.ALL:
            custom = expand_custom(self._objects.values(), owners, self._limits, self._made, self._refuse)
            owners = []
        expansion = expand(
            custom.objects,
            self._limits,
            self._refuse,
            make_pods=expand_workloads is not Expand.NOTHING,
            existing=before,
            made=sum(custom.made.values()),
        )
        ignored = FrozenDict(sorted(self._ignored.items()))
        collected = Manifests.collect(
            expansion.objects,
            ignored,
            self._problems,
            self._warnings,
            self._stored,
            before,
            self._events.all(),
        )
        return attrs.evolve(
            collected,
            workloads=expansion.workloads,
            made=FrozenDict({**custom.made, **expansion.made}),
            without_pods=FrozenDict({**custom.without_pods, **expansion.without_pods}),
            custom_owners=FrozenDict(Counter(str(obj.kind) for obj in owners)),
            outdated=FrozenDict(sorted(self._outdated.items())),
        )

    def _made(self, manifest: Mapping[str, Any], owner: Named) -> Named | None:
        """Read an object that the controller of a custom object makes; None if one of its name is in the input.

        Raises:
            ManifestError: it is invalid.
        """
        kind = KINDS[manifest["kind"]]
        obj = read_object(manifest, kind, unknown=self._unknown_fields(manifest, kind))
        key = (type(obj), obj.key)
        if key in self._objects:
            return None
        self._objects[key] = obj
        self._places[key] = self._places[type(owner), owner.key]
        return obj

    def _load_document(self, document: Document) -> None:
        self._document = document.number
        if document.problem:
            self._report([FieldError("", document.problem)], subject_of(document.content) or document.item)
        elif isinstance(document.content, _ReadPod):
            self._add(document.content.pod, stored=document.content.stored)
        elif isinstance(document.content, _WithKnownFields):
            self._load_manifest(document.content.manifest, document.item, known_fields=True)
        else:
            told = len(self._problems), len(self._warnings)
            self._load_manifest(document.content, document.item)
            # All there is to say of an object's fields was said of the first one that has them.
            if document.text and told == (len(self._problems), len(self._warnings)):
                self._shapes.learn(document.text)

    def _read_item(self, text: str) -> _ReadPod | _WithKnownFields | None:
        """Read an item whose fields are those of an earlier one; None if it has to be read thoroughly."""
        if not self._shapes.has(text):
            return None
        if (found := exported_pod(text)) is not None:
            return _ReadPod(*found)
        try:
            manifest = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeError):
            return None
        return _WithKnownFields(manifest) if says_what_it_is(manifest) else None

    def _load_manifest(self, manifest: Any, item: str, *, known_fields: bool = False) -> None:
        """Load an object or a list; `item` names the item of a list."""
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
                self._warn_of_namespace(manifest, kind)
                unknown = () if known_fields else self._unknown_fields(manifest, kind)
                ordinal = self._ordinal(manifest, kind.name, namespaced=kind.namespaced)
                obj = read_object(manifest, kind, ordinal, unknown=unknown)
                if removed_in(api_version := manifest["apiVersion"], kind.name):
                    self._outdated[api_version, kind.name] += 1
            elif is_custom(manifest):
                obj = read_custom_object(manifest, self._ordinal(manifest, _qualified_kind(manifest)))
            else:
                if not (is_event(manifest) and self._events.take(manifest)):
                    self._ignored[_qualified_kind(manifest)] += 1
                return
        except ManifestError as error:
            self._report(error.errors, error.subject or subject_of(manifest) or item)
        else:
            self._add(obj, stored=bool(_metadata(manifest).get("uid") or manifest.get("status")))

    def _load_items(self, manifest: Mapping[str, Any], item: str) -> None:
        items = manifest["items"]
        if not isinstance(items, list):
            self._report([FieldError("items", "must be a list")], str(manifest["kind"]))
            return
        # Items of typed lists may leave out kind and apiVersion.
        kind, version = str(manifest["kind"]).removesuffix(_LIST), manifest.get("apiVersion")
        for index, content in enumerate(items):
            # It was loaded when the reader came to it; only its place is left.
            if content is TAKEN:
                continue
            if kind and isinstance(content, Mapping) and "kind" not in content:
                content = {"apiVersion": version, **content, "kind": kind}
            self._load_manifest(content, f"{item}items[{index}]")

    def _load_snapshot(self, manifest: Mapping[str, Any]) -> None:
        """Load an export of kube-scheduler-simulator: lists whose keys tell the kinds."""
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

    def _warn_of_namespace(self, manifest: Mapping[str, Any], kind: Kind) -> None:
        """Warn of a namespace that reading clears, since an object of the kind has none."""
        namespace = _metadata(manifest).get("namespace")
        if not kind.namespaced and isinstance(namespace, str) and namespace:
            why = f"{shown(namespace)} is ignored, since {with_article(kind.name)} is in no namespace"
            self._warn([FieldError("metadata.namespace", why)], manifest, kind)

    def _unknown_fields(self, manifest: Mapping[str, Any], kind: Kind) -> Sequence[FieldError]:
        """Return the unknown fields to refuse; with WARN they become warnings instead.

        Unknown fields in a status that an API server has written become warnings, too: it is newer than the
        known versions.
        """
        if self._field_validation is FieldValidation.IGNORE:
            return ()
        refused = unknown_fields(manifest, kind.name)
        warned: Sequence[FieldError] = ()
        if self._field_validation is FieldValidation.WARN:
            refused, warned = (), refused
        elif refused and _metadata(manifest).get("uid"):
            rest = {field: content for field, content in manifest.items() if field != "status"}
            refused = unknown_fields(rest, kind.name)
            warned = unknown_fields({"status": manifest.get("status")}, kind.name)
        if warned:
            self._warn(map(as_warning, warned), manifest, kind)
        return refused

    def _warn(self, warnings: Iterable[FieldError], manifest: Mapping[str, Any], kind: Kind) -> None:
        self._warnings += self._located(warnings, subject_of(manifest, kind.name))

    def _ordinal(self, manifest: Mapping[str, Any], kind: str, *, namespaced: bool = True) -> int:
        """Return the number of earlier objects with the same `generateName`."""
        metadata = _metadata(manifest)
        if metadata.get("name") or not metadata.get("generateName"):
            return 0
        namespace = str(metadata.get("namespace") or DEFAULT_NAMESPACE) if namespaced else ""
        key = (kind, namespace, str(metadata["generateName"]))
        self._generated[key] += 1
        return self._generated[key] - 1

    def _add(self, obj: Named, *, stored: bool) -> None:
        name = obj.key
        key = (type(obj), name)
        if key in self._objects:
            source, number = self._places[key]
            place = f"document {number}" + (f" of {source.name}" if source.name else "")
            why = f'Duplicate value: "{obj.name}": there is one in {place}, which is kept'
            self._report([FieldError("metadata.name", why)], f"{name_of_kind(obj)} {obj.metadata.key}")
            return
        if stored and isinstance(obj, Pod):
            self._stored.add(name)
        self._objects[key] = obj
        self._places[key] = (self._source, self._document)

    def _too_many_problems(self) -> str:
        most = self._limits.problems
        return f"isn't read on after more than {most} problems: {how_to_raise('problems', most)}"

    def _refuse_existing(self, existing: Iterable[Named]) -> None:
        for obj in existing:
            if (own := self._objects.pop((type(obj), obj.key), None)) is not None:
                why = f'Duplicate value: "{own.name}": there is one in the cluster, which is kept'
                self._refuse(own, FieldError("metadata.name", why))

    def _refuse(self, obj: Named, error: FieldError) -> None:
        """Report an error of an object that was loaded."""
        self._source, self._document = self._places[type(obj), obj.key]
        self._report([error], f"{name_of_kind(obj)} {obj.metadata.key}")

    def _report(self, errors: Iterable[FieldError], subject: str = "") -> None:
        self._problems += self._located(errors, subject)

    def _located(self, errors: Iterable[FieldError], subject: str) -> Iterator[ManifestError]:
        for error in errors:
            yield ManifestError((error,), subject, self._source.name, self._document)


def _metadata(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata of a manifest that may be malformed."""
    metadata = manifest.get("metadata")
    return metadata if isinstance(metadata, Mapping) else EMPTY


def _is_list(manifest: Any) -> bool:
    if not isinstance(manifest, Mapping) or "items" not in manifest:
        return False
    kind = manifest.get("kind")
    return isinstance(kind, str) and kind.endswith(_LIST)


def _is_snapshot(manifest: Any) -> bool:
    """Tell whether the manifest is an export of kube-scheduler-simulator."""
    if not isinstance(manifest, Mapping) or "kind" in manifest:
        return False
    return manifest.keys() >= {"pods", "nodes"} and manifest.keys() <= {*_SNAPSHOT, _SNAPSHOT_CONFIGURATION}


def _is_simkube_trace(manifest: Any) -> bool:
    return isinstance(manifest, Mapping) and manifest.keys() >= {"version", "config", "events", "index"}


def _qualified_kind(manifest: Mapping[str, Any]) -> str:
    kind, group = str(manifest["kind"]), group_of(str(manifest["apiVersion"]))
    return kind if group in BUILT_IN_GROUPS else f"{kind}.{group}"
