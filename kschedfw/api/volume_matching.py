"""The volumes that a claim may be bound to, and the state in which the two are bound.

The scheduler and the controller that binds volumes have to agree on this. Semantics: component-helpers
`storage/volume` (kube-scheduler v1.36).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

import attrs

from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.meta import Named, ObjectMeta
from kschedfw.api.quantity import Quantity, parse_quantity
from kschedfw.api.records import frozen
from kschedfw.api.storage import ObjectReference, PersistentVolume, PersistentVolumeClaim

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
"""Annotation of a claim: both directions of its binding are written."""
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
"""Annotation of a volume or claim: the controller made the binding, not the user, so it may be undone."""
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""Annotation of a claim: the node for which a volume is to be provisioned."""
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
"""The provisioner of storage classes whose volumes are made by hand."""

CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_STORAGE: Final = "storage"
_ZERO: Final = parse_quantity(0)

AnnotatedT = TypeVar("AnnotatedT", bound=Named)


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    """Return the name of the claim's storage class; empty if it has none."""
    # First, since a claim may have both; an empty annotation means no class.
    if (old_style := claim.annotations.get(CLASS_ANNOTATION)) is not None:
        return old_style
    return claim.spec.storage_class_name or ""


def class_of_volume(volume: PersistentVolume) -> str:
    """Return the name of the volume's storage class; empty if it has none."""
    if (old_style := volume.annotations.get(CLASS_ANNOTATION)) is not None:
        return old_style
    return volume.spec.storage_class_name


def requested_storage(claim: PersistentVolumeClaim) -> Quantity:
    return claim.spec.resources.requests.get(_STORAGE, _ZERO)


def storage_capacity(volume: PersistentVolume) -> Quantity:
    return volume.spec.capacity.get(_STORAGE, _ZERO)


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Tell whether the claim names its volume, and its binding is complete."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.annotations


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Tell whether the volume's claimRef is the claim; without a uid in it, any claim of that name."""
    reference = volume.spec.claim_ref
    if reference is None or reference.name != claim.name or reference.namespace != claim.namespace:
        return False
    return not reference.uid or reference.uid == claim.uid


def bound_to_claim(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """Return the volume with the claim as its claimRef; the same object if it has that already."""
    reference = ObjectReference(
        kind="PersistentVolumeClaim", namespace=claim.namespace, name=claim.name, uid=claim.uid
    )
    # What its user has bound to the claim isn't marked as the controller's, which could then be undone.
    wished = is_bound_to(volume, claim)
    present = volume.spec.claim_ref
    if present is None or (present.namespace, present.name, present.uid) != (
        reference.namespace,
        reference.name,
        reference.uid,
    ):
        volume = attrs.evolve(volume, spec=attrs.evolve(volume.spec, claim_ref=reference))
    return volume if wished else annotated(volume, BOUND_BY_CONTROLLER, "yes")


@frozen
class VolumeCandidates:
    """The volumes that a claim may be bound to, on any node, best first.

    `prebound` volumes have the claim as their claimRef. The claim may get an `available` one only if there are
    none.
    """

    prebound: tuple[PersistentVolume, ...]
    available: tuple[PersistentVolume, ...]

    @classmethod
    def of(cls, claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume]) -> VolumeCandidates:
        """Return the candidates among the volumes; available ones by size, equally large ones in the given order."""
        spec, request, its_class = claim.spec, requested_storage(claim), class_of_claim(claim)
        selector = None if spec.selector is None else spec.selector.compile()
        prebound, available = [], []
        for volume in volumes:
            bound = is_bound_to(volume, claim)
            if (not bound and volume.spec.claim_ref is not None) or not _is_usable(volume, claim, request):
                continue
            # Neither class nor labels nor access modes matter then: the user has chosen the volume.
            if bound:
                prebound.append(volume)
            elif (
                volume.status.phase == "Available"
                and class_of_volume(volume) == its_class
                and (selector is None or selector.matches(volume.labels))
                and set(spec.access_modes) <= set(volume.spec.access_modes)
            ):
                available.append(volume)
        return cls(tuple(prebound), tuple(sorted(available, key=storage_capacity)))


def _is_usable(volume: PersistentVolume, claim: PersistentVolumeClaim, request: Quantity) -> bool:
    return (
        storage_capacity(volume) >= request
        and volume.spec.volume_mode == claim.spec.volume_mode
        and volume.spec.volume_attributes_class_name == claim.spec.volume_attributes_class_name
        and volume.metadata.deletion_timestamp is None
    )


def annotated(obj: AnnotatedT, key: str, value: str) -> AnnotatedT:
    """Return the object with the annotation; itself if it has that already."""
    if obj.annotations.get(key) == value:
        return obj
    return obj.with_metadata(_with_annotations(obj.metadata, {**obj.annotations, key: value}))


def without_annotation(obj: AnnotatedT, key: str) -> AnnotatedT:
    """Return the object without the annotation; itself if it has none."""
    if key not in obj.annotations:
        return obj
    rest = {name: value for name, value in obj.annotations.items() if name != key}
    return obj.with_metadata(_with_annotations(obj.metadata, rest))


def _with_annotations(metadata: ObjectMeta, annotations: dict[str, str]) -> ObjectMeta:
    return attrs.evolve(metadata, annotations=FrozenDict(annotations))
