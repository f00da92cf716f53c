"""Reading of pods from the API server's JSON, of which equal bytes are read once.

A pod comes by a list, by its binding, by each change of its status and by its deletion, and the pods of a workload
hardly differ. So most of the JSON is never turned into dicts: its fields are cut out as bytes, those of the spec and
of the status are looked up among earlier ones, and only metadata, node name and volumes' names are read each time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Annotated, Any, Final

import attrs
import msgspec

from kschedfw.api.bounded_dict import BoundedDict
from kschedfw.api.containers import Container, ResourceRequirements
from kschedfw.api.convert import json_name, structure
from kschedfw.api.evolver import evolver
from kschedfw.api.field_errors import FieldErrors
from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.kinds import KIND_OF
from kschedfw.api.meta import ObjectMeta, OwnerReference
from kschedfw.api.objects import read_object
from kschedfw.api.pod import Pod, PodSpec, PodStatus
from kschedfw.api.scalars import read_time
from kschedfw.api.sharing import read_requirements, shared_labels, shared_pod, with_resources
from kschedfw.api.volumes import Volume

_MOST_KEPT: Final = 10_000
_MOST_STATUSES: Final = 1_000
"""Statuses of pods that wait, or were bound within the same second, are equal; those of running pods are not."""
_ABSENT: Final = msgspec.Raw()

_Integer = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


def _cut(name: str, cls: type[Any], own: Iterable[tuple[str, Any, Any]]) -> type[msgspec.Struct]:
    """Return a struct with the JSON of each field of the class; the fields `own` have other types and defaults."""
    given = tuple(own)
    rest = [
        (field.name, msgspec.Raw, _ABSENT)
        for field in attrs.fields(cls)
        if field.name not in {name for name, *_ in given}
    ]
    names = {field.name: json_name(field) for field in attrs.fields(cls)}
    return msgspec.defstruct(name, [*given, *rest], rename=names.get, gc=False)


def _joined(cls: type[Any], *without: str) -> Callable[[Any], bytes]:
    """Return a function that joins the JSON of a struct's fields but for some. Other JSON gives other bytes."""
    fields = attrgetter(*(field.name for field in attrs.fields(cls) if field.name not in without))
    # No JSON has a zero byte.
    return lambda struct: b"\0".join(fields(struct))


_VolumeJson: Final = _cut("_VolumeJson", Volume, [("name", str, "")])
_ContainerJson: Final = _cut("_ContainerJson", Container, [])
_SpecJson: Final = _cut(
    "_SpecJson",
    PodSpec,
    [
        ("containers", list[_ContainerJson], ()),  # type: ignore[valid-type]
        ("init_containers", list[_ContainerJson], ()),  # type: ignore[valid-type]
        ("node_name", str, ""),
        ("volumes", list[_VolumeJson], ()),  # type: ignore[valid-type]
    ],
)
_of_volume: Final = _joined(Volume, "name")
_of_container: Final = _joined(Container, "resources")
_of_spec: Final = _joined(PodSpec, "containers", "init_containers", "node_name", "volumes")


class _Owner(msgspec.Struct, rename="camel", gc=False):
    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool = False


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    """The metadata of an object that is stored: it has a name and a uid, and a pod has a namespace."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    namespace: Annotated[str, msgspec.Meta(min_length=1)]
    uid: Annotated[str, msgspec.Meta(min_length=1)]
    generate_name: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: tuple[_Owner, ...] = ()
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    resource_version: str = ""
    finalizers: tuple[str, ...] = ()
    generation: _Integer = 0


class _PodJson(msgspec.Struct, gc=False):
    metadata: _Metadata
    spec: _SpecJson  # type: ignore[valid-type]
    status: msgspec.Raw = _ABSENT


class _SpecAlone(msgspec.Struct, gc=False):
    spec: dict[str, Any]


_cut_pod: Final = msgspec.json.Decoder(_PodJson).decode
_cut_spec: Final = msgspec.json.Decoder(_SpecAlone).decode
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode

_with_own: Final = evolver(PodSpec, "node_name", "volumes")
_BLANK: Final = ObjectMeta()
_filled: Final = evolver(ObjectMeta, *(field.name for field in attrs.fields(ObjectMeta)))
_with_name: Final = evolver(Volume, "name", computed=("is_storage",))
_Common = tuple[bytes, FrozenDict[str, str]]
"""The parts that specs of alike pods share, but for their containers' resources."""

_pods: Final = BoundedDict[tuple[_Common, tuple[bytes, ...]], Pod](_MOST_KEPT)
"""Pods with nothing but a spec, by what others have in common with them and by their resources, to make those others.
"""
_specs: Final = BoundedDict[_Common, PodSpec](_MOST_KEPT)
"""Specs whose pods differ in their containers' resources alone, as in many a trace and workload."""


def pod_from_json(text: bytes | memoryview | msgspec.Raw) -> Pod:
    """Read a pod that the API server has stored, from its JSON; `kind` and `apiVersion` may be missing.

    It is what `pod_from_manifest` reads with `check=False`: only types matter. As there, unknown fields are ignored.

    Raises:
        ManifestError: a field has the wrong type.
        msgspec.DecodeError, UnicodeDecodeError: the text isn't the JSON of an object.
    """
    try:
        cut = _cut_pod(text)
        metadata = _metadata(cut.metadata)
        status = _status(bytes(cut.status))
        common, resources = _key(cut.spec, metadata)
        first = _pods.get((common, resources))
        if first is None:
            spec = _specs.get(common)
            if spec is None:
                return _first(text, metadata, status, common, resources, cut.spec)
            first = Pod(spec=with_resources(spec, [_requirements(each) for each in resources]))
            _pods[common, resources] = first
        return first.alike(metadata, _spec(first.spec, cut.spec), status)
    # Something is missing, null or of a wrong type. The thorough reader tells errors with their paths.
    except (msgspec.ValidationError, FieldErrors):
        return _read(text)


def _first(
    text: bytes | memoryview | msgspec.Raw,
    metadata: ObjectMeta,
    status: PodStatus,
    common: _Common,
    resources: tuple[bytes, ...],
    cut: Any,
) -> Pod:
    """Read a pod whose spec isn't known, and keep the spec for others."""
    pod = shared_pod(metadata, _cut_spec(text).spec, status)
    # The pod's own resources depend on those of its containers, and an invalid spec may depend on anything.
    if pod is not None and not cut.resources:
        _specs[common] = pod.spec
    pod = pod or _read(text)
    # Without metadata, which may be large, and without status, since a resize changes the requests of one pod alone.
    _pods[common, resources] = Pod(spec=pod.spec)
    return pod


@functools.lru_cache(maxsize=_MOST_KEPT)
def _requirements(text: bytes) -> ResourceRequirements:
    """Read the resources of a container. Raises FieldErrors if they are invalid."""
    return read_requirements(msgspec.json.decode(text) if text else None)


def _read(text: bytes | memoryview | msgspec.Raw) -> Pod:
    pod = read_object(_decode(text), KIND_OF[Pod], check=False)
    assert isinstance(pod, Pod)
    return pod


def _key(spec: Any, metadata: ObjectMeta) -> tuple[_Common, tuple[bytes, ...]]:
    """Return what the specs of alike pods have in common, and the JSON of their containers' resources."""
    containers = (*spec.containers, *spec.init_containers)
    parts = [
        _of_spec(spec),
        b"\1".join([_of_container(each) for each in spec.containers]),
        b"\1".join([_of_container(each) for each in spec.init_containers]),
        b"\1".join([_of_volume(each) for each in spec.volumes]),
    ]
    common = b"\2".join(parts)
    # Labels count where `matchLabelKeys` and `mismatchLabelKeys` refer to them.
    labels = metadata.labels if b"atchLabelKeys" in common else EMPTY
    return (common, labels), tuple([bytes(each.resources) for each in containers])


def _spec(first: PodSpec, spec: Any) -> PodSpec:
    volumes = first.volumes
    if volumes:
        names = [each.name for each in spec.volumes]
        # Each pod of a service account has a volume with a name of its own.
        volumes = tuple([_with_name(each, name) for each, name in zip(volumes, names, strict=True)])
    return _with_own(first, spec.node_name, volumes)


def _metadata(cut: _Metadata) -> ObjectMeta:
    return _filled(
        _BLANK,
        cut.name,
        cut.generate_name,
        cut.namespace,
        cut.uid,
        shared_labels(FrozenDict(cut.labels)) if cut.labels else EMPTY,
        FrozenDict(cut.annotations) if cut.annotations else EMPTY,
        tuple([OwnerReference(*msgspec.structs.astuple(each)) for each in cut.owner_references]),
        _time(cut.creation_timestamp),
        _time(cut.deletion_timestamp),
        cut.resource_version,
        cut.finalizers,
        cut.generation,
    )


def _time(text: str | None) -> Any:
    return None if text is None else read_time(text, None)


@functools.lru_cache(maxsize=_MOST_STATUSES)
def _status(text: bytes) -> PodStatus:
    return structure(msgspec.json.decode(text), PodStatus) if text else PodStatus()
