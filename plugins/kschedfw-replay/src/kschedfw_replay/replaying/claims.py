"""The claims of a recording as a simulation can have them: all from the beginning, each with the volume that it got.

In a simulation nothing but pods comes and goes. A volume that was made by hand while somebody recorded would be there
too early for other claims, or too late for its own. So each such claim is bound to its volume from the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from kschedfw import Pod
from kschedfw.api import (
    Named,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    ResourceClaim,
    ResourceClaimStatus,
    StorageClass,
    class_of_claim,
)

_NO_PROVISIONER: Final = ("", "kubernetes.io/no-provisioner")

# Why pods are left out: "12 pods left out for …".
UNKNOWN_CLAIM: Final = "a claim that isn't in the recording"
NO_VOLUME: Final = "a claim that got no volume in the recording, of a class that provisions none"
NO_EPHEMERAL: Final = "an ephemeral volume of a class that provisions none"


class Claims:
    """Follows the claims, volumes and storage classes of a recording.

    Where a class has a provisioner, a run's claims are provisioned when they were, for whichever node is decided on.
    Where it has none, the claim is bound to the volume that it got in the recording, and a pod that uses it is as
    confined to the nodes that reach this volume as it was in the end.
    """

    def __init__(self) -> None:
        self._claims: dict[str, PersistentVolumeClaim] = {}
        """The claims as they were first, by key; so are the volumes and classes, by name."""
        self._volumes: dict[str, PersistentVolume] = {}
        self._classes: dict[str, StorageClass] = {}
        self._device_claims: dict[str, ResourceClaim] = {}
        self._first_volumes: list[PersistentVolume] = []
        self._volume_of: dict[str, str] = {}
        """The name of the first volume that a claim was bound to, by the claim's key."""

    def take(self, new: Named, *, is_first: bool, has_appeared: bool) -> bool:
        """Follow the state of an object after a change. Return whether it is of a kind that `objects` has.

        Args:
            new: the object.
            is_first: whether it is one of those that are there from the beginning.
            has_appeared: whether it was absent before.
        """
        match new:
            case PersistentVolumeClaim():
                if has_appeared and (is_first or not _is_made_for_a_pod(new)):
                    self._claims.setdefault(new.key, new)
                if new.spec.volume_name:
                    self._volume_of.setdefault(new.key, new.spec.volume_name)
            case PersistentVolume():
                self._volumes.setdefault(new.name, new)
                if is_first:
                    self._first_volumes.append(new)
            case ResourceClaim():
                if has_appeared and is_first:
                    self._device_claims.setdefault(new.key, new)
                elif has_appeared and not _is_made_for_a_pod(new):
                    # Devices that it has already are those of a pod that a run decides on, or hasn't got.
                    self._device_claims.setdefault(new.key, attrs.evolve(new, status=ResourceClaimStatus()))
            case StorageClass():
                self._classes.setdefault(new.name, new)
                return False
            case _:
                return False
        return True

    def objects(self) -> Iterator[Named]:
        """Yield the claims, and the volumes that are bound to them or were there at the beginning."""
        yield from self._device_claims.values()
        taken: set[str] = set()
        for claim in self._claims.values():
            volume = self._volume_for(claim)
            if volume is None:
                yield claim
                continue
            # A volume may have served one claim after the other; each claim of a run has one of its own.
            name = volume.name if volume.name not in taken else f"{volume.name}.{claim.uid}"
            taken.add(name)
            reference = ObjectReference("PersistentVolumeClaim", claim.namespace, claim.name, claim.uid)
            yield attrs.evolve(
                volume,
                metadata=attrs.evolve(volume.metadata, name=name, deletion_timestamp=None),
                spec=attrs.evolve(volume.spec, claim_ref=reference),
            )
            yield attrs.evolve(claim, spec=attrs.evolve(claim.spec, volume_name=name))
        for volume in self._first_volumes:
            if volume.name not in taken:
                yield volume

    def lacking(self, pod: Pod) -> str | None:
        """Return why no run can give a pod what it claims; None if runs can."""
        for volume in pod.storage:
            if (source := volume.persistent_volume_claim) is not None:
                claim = self._claims.get(f"{pod.namespace}/{source.claim_name}")
                if claim is None:
                    return UNKNOWN_CLAIM
                if not self._is_provisioned(class_of_claim(claim)) and self._volume_for(claim) is None:
                    return NO_VOLUME
            template = None if volume.ephemeral is None else volume.ephemeral.volume_claim_template
            if template is not None and not self._is_provisioned(template.spec.storage_class_name):
                return NO_EPHEMERAL
        names = [each.resource_claim_name for each in pod.spec.resource_claims]
        if any(name is not None and f"{pod.namespace}/{name}" not in self._device_claims for name in names):
            return UNKNOWN_CLAIM
        return None

    def _is_provisioned(self, class_name: str | None) -> bool:
        """Return whether volumes of a class are provisioned; without a name, of the default class."""
        return any(
            each.provisioner not in _NO_PROVISIONER
            for each in self._classes.values()
            if (each.is_default if class_name is None else each.name == class_name)
        )

    def _volume_for(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        """Return the volume that a claim is bound to from the beginning; None if it is to find one in the run."""
        if not claim.spec.volume_name and self._is_provisioned(class_of_claim(claim)):
            return None
        return self._volumes.get(self._volume_of.get(claim.key, ""))


def _is_made_for_a_pod(claim: Named) -> bool:
    """Return whether a controller has made a claim for one pod. In a run it makes one for each pod that comes."""
    owner = claim.metadata.controller
    return owner is not None and owner.kind == "Pod"
