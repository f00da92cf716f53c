"""The metadata of API objects: name, namespace, uid, labels, annotations, owners, times."""

from __future__ import annotations

from datetime import datetime
from typing import Self

import attrs

from kschedfw.api.frozendict import EMPTY, FrozenDict, string_map
from kschedfw.api.records import define, frozen

DEFAULT_NAMESPACE = "default"


@frozen
class OwnerReference:
    """The object that made this one (meta/v1 OwnerReference)."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool = False


@frozen
class ObjectMeta:
    """meta/v1 ObjectMeta, as far as scheduling reads it.

    `namespace` is empty for cluster-scoped objects; the loader puts namespaced objects that name none into
    `default`, as the API server does.
    """

    name: str = ""
    generate_name: str = attrs.field(default="", kw_only=True)
    namespace: str = ""
    uid: str = ""
    labels: FrozenDict[str, str] = attrs.field(default=EMPTY, converter=string_map)
    annotations: FrozenDict[str, str] = attrs.field(default=EMPTY, converter=string_map)
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    resource_version: str = ""
    finalizers: tuple[str, ...] = ()
    generation: int = 0
    """Count of the changes of the object's spec, kept by the API server; 0 where there is none."""

    @property
    def controller(self) -> OwnerReference | None:
        """The owner marked as managing controller, if there is one."""
        owners = self.owner_references
        return next((owner for owner in owners if owner.controller), None) if owners else None

    @property
    def key(self) -> str:
        """`namespace/name`, or only the name without a namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@frozen
class Condition:
    """A condition in an object's status, with its reason: what all kinds of them have in common."""

    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""


@define(eq=False, repr=False)
class Named:
    """The base of all API objects: their metadata, and shortcuts into it."""

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def labels(self) -> FrozenDict[str, str]:
        return self.metadata.labels

    @property
    def annotations(self) -> FrozenDict[str, str]:
        return self.metadata.annotations

    @property
    def key(self) -> str:
        """`namespace/name`, or only the name for a cluster-scoped object."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name

    def __repr__(self) -> str:
        """Return the kind and the key; `to_manifest` has the contents."""
        return f"<{type(self).__name__} {self.key}>"

    def with_metadata(self, metadata: ObjectMeta) -> Self:
        """Return a copy of the object with this metadata."""
        return attrs.evolve(self, metadata=metadata)
