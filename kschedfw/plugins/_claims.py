"""Lookup of a pod's claims, shared by the volume plugins, with kube-scheduler's texts for missing objects."""

from __future__ import annotations

from kschedfw import ClusterClient, KschedfwError, Pod
from kschedfw.api import PersistentVolumeClaim, Volume
from kschedfw.api.volumes import claim_name, is_claim_of


class VolumeError(KschedfwError):
    """The error of a pod's volumes that can't be determined."""


class ClaimNotFoundError(VolumeError):
    """The error of an unbound pod whose claim doesn't exist."""


def claim_of(
    cluster: ClusterClient, pod: Pod, volume: Volume, *, is_new: bool = False
) -> PersistentVolumeClaim | None:
    """Return the claim behind the pod's volume; None if the volume has none.

    Also return None for a running pod whose claim doesn't exist.

    Raises:
        ClaimNotFoundError: a new pod's claim doesn't exist.
        VolumeError: the volume names no claim, or the claim of that name was made for another pod.
    """
    name = claim_name(pod, volume)
    if name is None:
        return None
    if not name:
        raise VolumeError("PersistentVolumeClaim had no name")
    claim = find_claim(cluster, pod, name)
    if claim is None:
        if is_new:
            raise ClaimNotFoundError(f"looking up PVC {pod.namespace}/{name}: {claim_not_found(name)}")
        return None
    if volume.ephemeral is not None and not is_claim_of(pod, claim):
        raise VolumeError(f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)")
    return claim


def find_claim(cluster: ClusterClient, pod: Pod, name: str) -> PersistentVolumeClaim | None:
    """Return the claim of that name in the pod's namespace; None if there is none."""
    return cluster.get(PersistentVolumeClaim, f"{pod.namespace}/{name}")


def uses_claim(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Tell whether the pod names the claim in its volumes. Claims of generic ephemeral volumes aren't named there."""
    return pod.namespace == claim.namespace and any(
        volume.persistent_volume_claim is not None and volume.persistent_volume_claim.claim_name == claim.name
        for volume in pod.storage
    )


def claim_not_found(name: str) -> str:
    return f'persistentvolumeclaim "{name}" not found'


def volume_not_found(name: str) -> str:
    return f'persistentvolume "{name}" not found'


def storage_class_not_found(name: str) -> str:
    return f'storageclass.storage.k8s.io "{name}" not found'
