"""Reading of pods from the API server's JSON, or an export's, of which equal bytes are read once.

A pod comes by a list, by its binding, by each change of its status and by its deletion, and the pods of a workload
hardly differ. So most of the JSON is never turned into dicts: its fields are cut out as bytes, those of the spec and
of the status are looked up among earlier ones, and only metadata, node name and volumes' names are read each time.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Final, Literal, NamedTuple

import attrs
import msgspec

from kschedfw.api.bounded_dict import BoundedDict
from kschedfw.api.containers import Container, ResourceRequirements
from kschedfw.api.convert import json_name, structure
from kschedfw.api.defaults import default_uid
from kschedfw.api.evolver import evolver
from kschedfw.api.field_errors import FieldErrors
from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.kinds import KIND_OF
from kschedfw.api.manifest_error import ManifestError
from kschedfw.api.meta import DEFAULT_NAMESPACE, ObjectMeta, OwnerReference
from kschedfw.api.objects import read_object
from kschedfw.api.pod import Pod, PodSpec, PodStatus
from kschedfw.api.scalars import read_time
from kschedfw.api.sharing import read_requirements, shared_labels, shared_pod, with_resources
from kschedfw.api.validation import is_valid_with_spec
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
    return msgspec.defstruct(name, [*given, *rest], rename=names.get, gc=False, omit_defaults=True)


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


class _Owner(msgspec.Struct, rename="camel", gc=False):
    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool = False


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    """The metadata of an object with a name."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    namespace: str = ""
    uid: str = ""
    generate_name: str = ""
    labels: msgspec.Raw = _ABSENT
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: msgspec.Raw = _ABSENT
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    resource_version: str = ""
    finalizers: tuple[str, ...] = ()
    generation: _Integer = 0


class _PodJson(msgspec.Struct, gc=False):
    metadata: _Metadata
    spec: _SpecJson  # type: ignore[valid-type]
    status: msgspec.Raw = _ABSENT


class _ExportedJson(_PodJson, rename="camel", kw_only=True, gc=False):
    """A pod that says what it is."""

    kind: Literal["Pod"]
    api_version: Literal["v1"]


class _SpecAlone(msgspec.Struct, gc=False):
    spec: dict[str, Any]


_cut_pod: Final = msgspec.json.Decoder(_PodJson).decode
_cut_exported: Final = msgspec.json.Decoder(_ExportedJson).decode
_cut_spec: Final = msgspec.json.Decoder(_SpecAlone).decode
_decode_labels: Final = msgspec.json.Decoder(dict[str, str]).decode
_decode_owners: Final = msgspec.json.Decoder(tuple[_Owner, ...]).decode
_written: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode

_placed: Final = evolver(PodSpec, "node_name", "volumes")
_BLANK: Final = ObjectMeta()
_filled: Final = evolver(ObjectMeta, *(field.name for field in attrs.fields(ObjectMeta)))
_with_name: Final = evolver(Volume, "name", computed=("is_storage",))
_Text = bytes | memoryview | msgspec.Raw | str
_UNKNOWN: Final = (None, False)
_NO_STATUS: Final = (b"", b"null", b"{}")
_Common = tuple[bytes, FrozenDict[str, str] | None]
"""The parts that specs of alike pods share, but for their containers' resources."""

_pods: Final = BoundedDict[tuple[_Common, tuple[bytes, ...]], tuple[Pod, bool]](_MOST_KEPT)
"""Pods with nothing but a spec, by what others have in common with them and by their resources, to make those others;
and whether the spec is known to be valid."""
_specs: Final = BoundedDict[_Common, PodSpec](_MOST_KEPT)
"""Valid specs whose pods differ in their containers' resources alone, as in many a trace and workload."""


def pod_from_json(text: bytes | memoryview | msgspec.Raw) -> Pod:
    """Read a pod that the API server has stored, from its JSON; `kind` and `apiVersion` may be missing.

    It is what `pod_from_manifest` reads with `check=False`: only types matter. As there, unknown fields are ignored.

    Raises:
        ManifestError: a field has the wrong type.
        msgspec.DecodeError, UnicodeDecodeError: the text isn't the JSON of an object.
    """
    try:
        return _pod(_cut_pod(text), text)[0]
    # Something is missing, null or of a wrong type. The thorough reader tells errors with their paths.
    except (msgspec.ValidationError, FieldErrors):
        return _read(text)


def exported_pod(text: str) -> tuple[Pod, bool] | None:
    """Read a pod from its JSON in an export, and tell whether an API server has stored it: it has a uid or a status.

    It is what `pod_from_manifest` reads; None if the thorough reader has to look at it. Unknown fields and duplicate
    keys are ignored.
    """
    try:
        cut = _cut_exported(text)
        pod, is_valid = _pod(cut, text)
        if is_valid and is_valid_with_spec(pod):
            return pod, bool(cut.metadata.uid) or bytes(cut.status) not in _NO_STATUS
    except (msgspec.DecodeError, UnicodeError, FieldErrors, ManifestError):
        pass
    return None


def _pod(cut: Any, text: _Text) -> tuple[Pod, bool]:
    """Return the pod, and whether its spec is known to be valid."""
    metadata = _metadata(cut.metadata)
    status = _status(bytes(cut.status))
    own = _take_own(cut.spec)
    given = _written(cut.spec)
    # Labels count where `matchLabelKeys` and `mismatchLabelKeys` refer to them.
    common = (given, metadata.labels if b"atchLabelKeys" in given else None)
    first, is_valid = _pods.get((common, own.resources), _UNKNOWN)
    if first is None:
        spec = _specs.get(common)
        if spec is None:
            return _first(
                text, metadata, status, (common, own.resources), has_resources=bool(cut.spec.resources)
            )
        first = Pod(spec=with_resources(spec, [_requirements(each) for each in own.resources]))
        is_valid = True
        _pods[common, own.resources] = first, is_valid
    return first.alike(metadata, _with_own(first.spec, own), status), is_valid


def _first(
    text: _Text,
    metadata: ObjectMeta,
    status: PodStatus,
    key: tuple[_Common, tuple[bytes, ...]],
    *,
    has_resources: bool,
) -> tuple[Pod, bool]:
    """Read a pod whose spec isn't known, and keep the spec for others."""
    valid = shared_pod(metadata, _cut_spec(text).spec, status)
    # The pod's own resources depend on those of its containers, and an invalid spec may depend on anything.
    if valid is not None and not has_resources:
        _specs[key[0]] = valid.spec
    pod = valid or _read(text)
    # Without metadata, which may be large, and without status, since a resize changes the requests of one pod alone.
    _pods[key] = Pod(spec=pod.spec), valid is not None
    return pod, valid is not None


@functools.lru_cache(maxsize=_MOST_KEPT)
def _requirements(text: bytes) -> ResourceRequirements:
    """Read the resources of a container. Raises FieldErrors if they are invalid."""
    return read_requirements(msgspec.json.decode(text) if text else None)


def _read(text: _Text) -> Pod:
    pod = read_object(_decode(text), KIND_OF[Pod], check=False)
    assert isinstance(pod, Pod)
    return pod


class _Own(NamedTuple):
    """The parts of a spec in which alike pods differ."""

    node_name: str
    volumes: Sequence[str]
    """The names of the volumes."""
    resources: tuple[bytes, ...]
    """The JSON of the resources of each container, then of each init container."""


def _take_own(spec: Any) -> _Own:
    """Take out of the spec that was cut what alike pods don't have in common."""
    names, resources = [], []
    for volume in spec.volumes:
        names.append(volume.name)
        volume.name = ""
    for container in (*spec.containers, *spec.init_containers):
        resources.append(bytes(container.resources))
        container.resources = _ABSENT
    own = _Own(spec.node_name, names, tuple(resources))
    spec.node_name = ""
    return own


def _with_own(first: PodSpec, own: _Own) -> PodSpec:
    volumes = first.volumes
    if not (volumes or own.node_name or first.node_name):
        return first
    if volumes:
        # Each pod of a service account has a volume with a name of its own.
        volumes = tuple([_with_name(each, name) for each, name in zip(volumes, own.volumes, strict=True)])
    return _placed(first, own.node_name, volumes)


def _metadata(cut: _Metadata) -> ObjectMeta:
    namespace = cut.namespace or DEFAULT_NAMESPACE
    return _filled(
        _BLANK,
        cut.name,
        cut.generate_name,
        namespace,
        cut.uid or default_uid("Pod", namespace, cut.name),
        _labels(bytes(cut.labels)),
        FrozenDict(cut.annotations) if cut.annotations else EMPTY,
        _owners(bytes(cut.owner_references)),
        _time(cut.creation_timestamp),
        _time(cut.deletion_timestamp),
        cut.resource_version,
        cut.finalizers,
        cut.generation,
    )


@functools.lru_cache(maxsize=_MOST_KEPT)
def _labels(text: bytes) -> FrozenDict[str, str]:
    """Read labels, which the pods of a workload share. Raises ValidationError if they are invalid."""
    return shared_labels(FrozenDict(_decode_labels(text))) if text else EMPTY


@functools.lru_cache(maxsize=_MOST_KEPT)
def _owners(text: bytes) -> tuple[OwnerReference, ...]:
    """Read owner references, which the pods of a workload share. Raises ValidationError if they are invalid."""
    owners = _decode_owners(text) if text else ()
    return tuple([OwnerReference(*msgspec.structs.astuple(each)) for each in owners])


def _time(text: str | None) -> Any:
    return None if text is None else read_time(text, None)


@functools.lru_cache(maxsize=_MOST_STATUSES)
def _status(text: bytes) -> PodStatus:
    return structure(msgspec.json.decode(text), PodStatus) if text else PodStatus()
