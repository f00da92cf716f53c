"""Conversion of a manifest to an object, with defaults and validation, and back."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import attrs

from kschedfw.api.convert import structure, unstructure
from kschedfw.api.custom import CustomObject, CustomResource, custom_manifest, read_custom_object
from kschedfw.api.defaults import default_metadata, default_selector
from kschedfw.api.field_errors import FieldError, FieldErrors, shown
from kschedfw.api.kinds import BUILT_IN_GROUPS, KIND_OF, KINDS, Kind, group_of, validate
from kschedfw.api.manifest_error import ManifestError, subject_of
from kschedfw.api.meta import Named, ObjectMeta
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod, PodStatus
from kschedfw.api.removed_versions import removal_of
from kschedfw.api.sharing import shared_pod, with_shared_parts
from kschedfw.api.validation import is_valid_with_spec

T = TypeVar("T", bound=Named)


def pod_from_manifest(manifest: Mapping[str, Any], *, check: bool = True) -> Pod:
    """Read a Pod; `kind` and `apiVersion` may be missing.

    Without `check` only types matter, so that tests can make pods that the API server would refuse.

    Raises:
        ManifestError: the API server would refuse the pod; names all errors.
    """
    return object_of_class(manifest, Pod, check=check)


def node_from_manifest(manifest: Mapping[str, Any], *, check: bool = True) -> Node:
    """Read a Node; `kind` and `apiVersion` may be missing. For `check` see `pod_from_manifest`.

    Raises:
        ManifestError: the API server would refuse the node; names all errors.
    """
    return object_of_class(manifest, Node, check=check)


def object_from_manifest(
    manifest: Mapping[str, Any], kind: str | None = None, *, check: bool = True
) -> Named:
    """Read an object of any supported or custom kind; `kind` is the kind if the manifest has none.

    For `check` see `pod_from_manifest`.

    Raises:
        ManifestError: the API server would refuse the object (names all errors), or the kind isn't supported.
    """
    found = supported_kind(manifest, kind)
    if found is None and is_custom(manifest):
        return read_custom_object(manifest)
    if found is None:
        raise _refused("kind", f"{shown(manifest['kind'])} is not a kind that scheduling reads")
    return read_object(manifest, found, check=check)


def object_of_class(manifest: Mapping[str, Any], cls: type[T], *, check: bool) -> T:
    """Read an object of the kind that this class stands for. Raises as `pod_from_manifest`."""
    result = object_from_manifest(manifest, KIND_OF[cls].name, check=check)
    if not isinstance(result, cls):
        raise _refused("kind", f"must be {cls.__name__}, not {type(result).__name__}")
    return result


def to_manifest(obj: Named) -> dict[str, Any]:
    """Return the manifest of an object without default values; `object_from_manifest` restores the object."""
    if isinstance(obj, CustomObject | CustomResource):
        return custom_manifest(obj)
    kind = KIND_OF[type(obj)]
    return {"apiVersion": kind.api_version, "kind": kind.name, **unstructure(obj)}


def _refused(path: str, why: str) -> ManifestError:
    return ManifestError((FieldError(path, why),))


def supported_kind(manifest: object, kind: str | None = None) -> Kind | None:
    """Return the kind of a manifest; None if scheduling doesn't read it.

    Raises:
        ManifestError: kind or apiVersion is missing or isn't a string, or the API group has no such kind.
    """
    if not isinstance(manifest, Mapping):
        raise _refused("", f"must be an object with kind and apiVersion, not {shown(manifest)}")
    name = manifest.get("kind")
    if name is None and kind is not None:
        return KINDS.get(kind)
    version = manifest.get("apiVersion")
    if version is None and name == kind and kind is not None:
        return KINDS.get(kind)
    for field, value in (("kind", name), ("apiVersion", version)):
        if value is None or value == "":
            raise _refused(field, "Required value: every object has to say its kind and apiVersion")
        if not isinstance(value, str):
            raise _refused(field, f"Invalid value: {shown(value)}: must be a string")
    return _kind_of(str(name), str(version))


@functools.lru_cache
def _kind_of(name: str, version: str) -> Kind | None:
    known, group = KINDS.get(name), group_of(version)
    if known is None or known.reads(version):
        return known
    if group not in BUILT_IN_GROUPS:
        return None
    expected = f'"{name}" is in "{known.api_version}"'
    if known.differences and group in known.groups:
        expected += f"; {known.differences}"
    expected += removal_of(version, name)
    raise _refused("apiVersion", f'no kind "{name}" is registered for version "{version}": {expected}')


def is_custom(manifest: Mapping[str, Any]) -> bool:
    """Tell whether a manifest of no supported kind is an object of a custom kind.

    A manifest without a name is none: configuration files have kind and apiVersion, too.
    """
    metadata = manifest.get("metadata")
    is_named = isinstance(metadata, Mapping) and bool(metadata.get("name") or metadata.get("generateName"))
    return is_named and group_of(manifest["apiVersion"]) not in BUILT_IN_GROUPS


def read_object(
    manifest: Mapping[str, Any],
    kind: Kind,
    ordinal: int = 0,
    *,
    check: bool = True,
    unknown: Sequence[FieldError] = (),
) -> Named:
    """Read an object of a known kind; `ordinal` completes a `generateName`.

    `unknown` are errors about unknown fields, which are raised together with all others.

    Raises:
        ManifestError: the API server would refuse the object; names all errors.
    """
    errors = list(unknown)
    if (
        not errors
        and kind.cls is Pod
        and (pod := _common_pod(manifest, kind, ordinal, check=check)) is not None
    ):
        return pod
    try:
        raw = structure(kind.current(manifest), kind.cls)
        if manifest.get("apiVersion") in _WITH_DEFAULT_SELECTOR:
            raw = default_selector(raw)
        result = with_defaults(raw, kind, ordinal)
        if check:
            errors += validate(result)
    except FieldErrors as error:
        errors += error.errors
    if errors:
        raise ManifestError(tuple(errors), subject_of(manifest, kind.name))
    return with_shared_parts(result) if isinstance(result, Pod) else result


def _common_pod(manifest: Mapping[str, Any], kind: Kind, ordinal: int, *, check: bool) -> Pod | None:
    """Return a valid pod, most of whose spec is shared with earlier pods; None if all of it has to be read."""
    try:
        metadata = structure(manifest.get("metadata") or {}, ObjectMeta)
        status = structure(given, PodStatus) if (given := manifest.get("status")) else _NO_STATUS
    # `read_object` finds these errors again, together with those of the spec.
    except FieldErrors:
        return None
    pod = shared_pod(_with_default_metadata(metadata, kind, ordinal), manifest.get("spec"), status)
    return pod if pod is None or not check or is_valid_with_spec(pod) else None


def with_defaults(raw: Named, kind: Kind, ordinal: int = 0) -> Named:
    """Return the object with the defaults that the API server fills in before it validates."""
    metadata = _with_default_metadata(raw.metadata, kind, ordinal)
    if metadata is not raw.metadata:
        raw = attrs.evolve(raw, metadata=metadata)
    return kind.with_defaults(raw)


def _with_default_metadata(metadata: ObjectMeta, kind: Kind, ordinal: int) -> ObjectMeta:
    if metadata.generate_name and not metadata.name:
        metadata = attrs.evolve(metadata, name=f"{metadata.generate_name}{ordinal}")
    return default_metadata(metadata, kind.name, namespaced=kind.namespaced)


_NO_STATUS: Final = PodStatus()

# In these versions the selector of a workload defaults to its template's labels.
_WITH_DEFAULT_SELECTOR: Final = ("extensions/v1beta1", "apps/v1beta1")
