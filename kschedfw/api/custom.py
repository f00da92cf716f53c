"""Objects of kinds that aren't Kubernetes' own, such as those of a CustomResourceDefinition.

The loader and the cluster store them unparsed, since they don't know which plugins will read them. A plugin that reads
a kind has a class for it, and asks the cluster for objects of that class as it does for pods and nodes.

Functions import what converts manifests, and with it cattrs: a scheduler of other objects starts without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final, Self, cast

import attrs

from kschedfw.api.errors import InvalidObjectError, KschedfwError
from kschedfw.api.field_errors import FieldError, FieldErrors, shown
from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.manifest_error import ManifestError, subject_of
from kschedfw.api.meta import DEFAULT_NAMESPACE, Named, ObjectMeta
from kschedfw.api.records import frozen

_HEAD: Final = ("apiVersion", "kind", "metadata")


@frozen
class CustomKind:
    """A kind that isn't Kubernetes' own, such as PodGroup of `scheduling.x-k8s.io/v1alpha1`.

    Each version counts as a kind of its own, since objects aren't converted. `str` returns kube-scheduler's
    name for it in events: `podgroups.v1alpha1.scheduling.x-k8s.io`.
    """

    api_version: str
    name: str
    # An object doesn't tell whether its kind is namespaced, so kinds are equal without it.
    namespaced: bool = attrs.field(default=True, eq=False)

    def __str__(self) -> str:
        group, _, version = self.api_version.rpartition("/")
        return f"{plural_of(self.name)}.{version}.{group}"


def plural_of(kind: str) -> str:
    """Return a kind's plural, as Kubernetes guesses it (`UnsafeGuessKindToResource`): `podgroups` for PodGroup."""
    name = kind.lower()
    if name.endswith("s"):
        return f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"


@frozen
class CustomObject(Named):
    """An object of a custom kind, unparsed: `content` is the manifest without apiVersion, kind and metadata.

    It isn't known whether the kind is namespaced, so no namespace and `default` count as the same.
    """

    kind: CustomKind
    metadata: ObjectMeta
    content: FrozenDict[str, object] = EMPTY
    _read: dict[type[CustomResource], CustomResource] = attrs.field(
        factory=dict, init=False, eq=False, repr=False
    )
    """The object as it was parsed, by class; plugins ask for the same few objects with every pod."""

    @property
    def key(self) -> str:
        return custom_key(self.kind, self.metadata.key)


def custom_key(kind: CustomKind, key: str) -> str:
    """The key of a CustomObject, which includes the kind: objects of all custom kinds share that class."""
    return f"{kind}/{key.removeprefix(f'{DEFAULT_NAMESPACE}/')}"


class MissingKindError(KschedfwError, AttributeError):
    """The error of a CustomResource class without `kind`."""


class _NoKind:
    """The `kind` of a class that sets none. Reading it raises MissingKindError."""

    def __get__(self, obj: object, owner: type) -> CustomKind:
        raise MissingKindError(
            f"{owner.__module__}.{owner.__qualname__} is a CustomResource without a kind; "
            f'give it one, such as kind = CustomKind("example.com/v1", "{owner.__name__}")'
        )


class CustomResource(Named):
    """The base of a plugin's own class for a custom kind: an attrs class with `metadata` and the manifest's fields::

        @frozen
        class PodGroup(CustomResource):
            kind = CustomKind("scheduling.x-k8s.io/v1alpha1", "PodGroup")

            metadata: ObjectMeta
            spec: PodGroupSpec = PodGroupSpec()

    Manifests are read as those of pods are: `min_member` is `minMember`, fields that the class doesn't have are
    ignored. `validate` yields further errors. Asking for objects of a class without `kind` raises MissingKindError.
    """

    __slots__ = ()
    kind: ClassVar[CustomKind] = cast("CustomKind", _NoKind())

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        kind = vars(cls).get("kind")
        if kind is not None and not isinstance(kind, CustomKind):
            raise InvalidObjectError(
                f"{cls.__module__}.{cls.__qualname__}.kind is {shown(kind)}; it has to be a CustomKind, such as "
                f'CustomKind("example.com/v1", "{cls.__name__}")'
            )

    def validate(self) -> Iterator[FieldError]:
        """Yield errors of an object whose fields all have the right types."""
        yield from ()

    @classmethod
    def of(cls, obj: object) -> Self | None:
        """Read an object as this class, as in a queueing hint; None for objects of other kinds.

        Raises:
            ManifestError: a field has the wrong type, or `validate` yields errors.
        """
        if isinstance(obj, cls):
            return obj
        if not isinstance(obj, CustomObject) or obj.kind != cls.kind:
            return None
        # Valid for good, since a CustomObject never changes; threads that parse it at a time get equal results.
        read = obj._read.get(cls)
        if read is None:
            read = obj._read[cls] = cls._structured(obj)
        return cast("Self", read)

    @classmethod
    def _structured(cls, obj: CustomObject) -> Self:
        from kschedfw.api.convert import structure, unstructure

        namespace = obj.namespace or DEFAULT_NAMESPACE if cls.kind.namespaced else ""
        metadata = attrs.evolve(obj.metadata, namespace=namespace)
        try:
            read = structure({**obj.content, "metadata": unstructure(metadata)}, cls)
        except FieldErrors as error:
            errors = error.errors
        else:
            errors = tuple(read.validate())
            if not errors:
                return read
        raise ManifestError(errors, f"{cls.kind.name} {metadata.key}")

    def as_custom_object(self) -> CustomObject:
        """Return the object in the form in which a cluster stores it."""
        from kschedfw.api.convert import unstructure

        manifest = unstructure(self)
        manifest.pop("metadata", None)
        return CustomObject(self.kind, self.metadata, _frozen_map(manifest))


def read_custom_object(manifest: Mapping[str, Any], ordinal: int = 0) -> CustomObject:
    """Read a manifest with kind and apiVersion; `ordinal` completes a `generateName`.

    Raises:
        ManifestError: the metadata has wrong types; nothing else is checked.
    """
    from kschedfw.api.convert import structure

    kind = CustomKind(manifest["apiVersion"], manifest["kind"])
    try:
        metadata = structure(manifest, _Head).metadata
    except FieldErrors as error:
        raise ManifestError(error.errors, subject_of(manifest)) from None
    if metadata.generate_name and not metadata.name:
        metadata = attrs.evolve(metadata, name=f"{metadata.generate_name}{ordinal}")
    content = {key: value for key, value in manifest.items() if key not in _HEAD}
    return CustomObject(kind, metadata, _frozen_map(content))


def custom_manifest(obj: CustomObject | CustomResource) -> dict[str, Any]:
    """The manifest of an object of a custom kind."""
    from kschedfw.api.convert import unstructure

    if isinstance(obj, CustomResource):
        obj = obj.as_custom_object()
    head = {"apiVersion": obj.kind.api_version, "kind": obj.kind.name, "metadata": unstructure(obj.metadata)}
    return {**head, **{key: _thawed(value) for key, value in obj.content.items()}}


@frozen
class _Head:
    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)


def _frozen_map(value: Mapping[Any, object]) -> FrozenDict[str, object]:
    return FrozenDict({str(key): _frozen(content) for key, content in value.items()})


def _frozen(value: object) -> object:
    if isinstance(value, Mapping):
        return _frozen_map(value)
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    return value


def _thawed(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _thawed(content) for key, content in value.items()}
    if isinstance(value, tuple):
        return [_thawed(item) for item in value]
    return value
