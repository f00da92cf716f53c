"""The spec of persistent volume claims, and the template of a generic ephemeral volume's claim."""

from __future__ import annotations

import attrs

from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.meta import ObjectMeta
from kschedfw.api.quantity import Quantity, quantities
from kschedfw.api.selectors import LabelSelector


@attrs.frozen
class VolumeResourceRequirements:
    """The size limits of a volume: at least `requests["storage"]`, at most the limit."""

    requests: FrozenDict[str, Quantity] = attrs.field(default=EMPTY, converter=quantities)
    limits: FrozenDict[str, Quantity] = attrs.field(default=EMPTY, converter=quantities)


@attrs.frozen
class PersistentVolumeClaimSpec:
    """A claim. No storage class (None) means the default one; an empty name means none at all."""

    access_modes: tuple[str, ...] = ()
    resources: VolumeResourceRequirements = attrs.field(factory=VolumeResourceRequirements)
    storage_class_name: str | None = None
    volume_attributes_class_name: str = ""
    volume_mode: str = "Filesystem"
    volume_name: str = ""
    selector: LabelSelector | None = None


@attrs.frozen
class PersistentVolumeClaimTemplate:
    """The claim of a generic ephemeral volume; only labels and annotations of the metadata are used."""

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    spec: PersistentVolumeClaimSpec = attrs.field(factory=PersistentVolumeClaimSpec)
