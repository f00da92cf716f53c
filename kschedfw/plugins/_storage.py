"""Parts that the volume plugins share: looking up claims, kube-scheduler's texts for missing objects, a base class."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from typing import Generic, TypeVar

import attrs

from kschedfw import IDLE, ClusterClient, Handle, KschedfwError, Plugin, Pod, QueueingHint, Status
from kschedfw.api import PersistentVolumeClaim, Volume
from kschedfw.api.volumes import claim_name, is_claim_of
from kschedfw.plugins._hints import queue_if


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
    # Without the call of `Pod.namespace`: three plugins look up each claim.
    return cluster.get(PersistentVolumeClaim, f"{pod.metadata.namespace}/{name}")


def queue_if_named(pod: Pod, _old: object | None, new: object | None) -> QueueingHint:
    """Return the hint for a claim that was added or changed: QUEUE if the pod names it in its volumes."""
    return queue_if(
        isinstance(new, PersistentVolumeClaim)
        and new.namespace == pod.namespace
        and any(
            source.claim_name == new.name
            for volume in pod.storage
            if (source := volume.persistent_volume_claim) is not None
        )
    )


def queue_if_used(pod: Pod, _old: object | None, new: object | None) -> QueueingHint:
    """Return the hint for a claim that was added or changed: QUEUE if it is of one of the pod's volumes.

    Unlike `queue_if_named` it knows the claims of generic ephemeral volumes.
    """
    return queue_if(
        isinstance(new, PersistentVolumeClaim)
        and new.namespace == pod.namespace
        and any(claim_name(pod, volume) == new.name for volume in pod.storage)
    )


def claim_not_found(name: str) -> str:
    return f'persistentvolumeclaim "{name}" not found'


def volume_not_found(name: str) -> str:
    return f'persistentvolume "{name}" not found'


def storage_class_not_found(name: str) -> str:
    return f'storageclass.storage.k8s.io "{name}" not found'


ArgsT = TypeVar("ArgsT")
FoundT = TypeVar("FoundT")


def volumes_of(pod: Pod) -> Hashable:
    """Return the sources of the pod's volumes, in any order and without names: a signature for batching.

    As kube-scheduler's, it contains the names of claims, but not their state in the cluster.
    """
    sources = [
        attrs.evolve(volume, name="")
        for volume in pod.spec.volumes or ()
        if volume.is_storage or volume.image
    ]
    # By their texts, since sources of different types have no order.
    return tuple(sorted(sources, key=repr))


class StoragePlugin(Plugin[ArgsT], Generic[ArgsT, FoundT]):
    """A plugin that signs a pod by the state of its volumes, since claims and volumes may change at any time.

    Pods without storage are passed over. What `sign` finds is reused by the pre_filter of the same
    cycle.
    """

    concerns = "volumes"

    def __init__(self, args: ArgsT, handle: Handle) -> None:
        super().__init__(args, handle)
        self._latest: tuple[Pod, FoundT | Status] | None = None

    @abstractmethod
    def find(self, pod: Pod) -> FoundT | Status:
        """Return the state of the pod's volumes in the cluster; a refusal if something is missing."""

    @abstractmethod
    def signature(self, found: FoundT) -> Hashable | None:
        """Return the signature of a pod with storage: all inputs of filter and score; see `sign`."""

    def sign(self, pod: Pod) -> Hashable | None:
        if not pod.spec.volumes or not pod.storage:
            return IDLE
        found = self.find(pod)
        self._latest = pod, found
        return None if isinstance(found, Status) else self.signature(found)

    def sign_for_batch(self, pod: Pod) -> Hashable | None:
        return volumes_of(pod)

    def found(self, pod: Pod) -> FoundT | Status:
        """Return the result of `find` that `sign` has kept for this pod, once; otherwise call `find`."""
        # Once, since the cluster may have changed by the pod's next cycle.
        latest, self._latest = self._latest, None
        return latest[1] if latest is not None and latest[0] is pod else self.find(pod)
