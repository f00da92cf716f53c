"""Claims that the cluster's scheduler bound for a pod before the pod itself: they belong to one decision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from kschedfw import Pod
from kschedfw.api import (
    Named,
    PersistentVolume,
    PersistentVolumeClaim,
    ResourceClaim,
    StorageClass,
    VolumeBindingMode,
)
from kschedfw.cluster import EventType, WatchEvent
from kschedfw_replay.shadow.mirror import Mirror

_SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"

_Key: TypeAlias = tuple[type[Named], str]


class Claims:
    """The states that claims and volumes had before they were bound for a pod that isn't bound yet.

    kube-scheduler allocates devices and binds volumes shortly before it binds the pod. With what it has written, only
    its own node would be left for the pod.
    """

    def __init__(self, mirror: Mirror) -> None:
        """Read the present states from `mirror`. Call `note` before an event is applied to it."""
        self._mirror = mirror
        self._before: dict[_Key, Named | None] = {}
        """The states before the binding; None for a volume that was provisioned for a claim."""

    def note(self, event: WatchEvent) -> None:
        """Keep the state before this event, if it binds a claim or a volume, until the pod is bound or gone."""
        obj, deleted = event.object, event.type is EventType.DELETED
        if isinstance(obj, Pod):
            if deleted or obj.node_name:
                for key in self._keys_of(obj):
                    del self._before[key]
        elif isinstance(obj, ResourceClaim | PersistentVolumeClaim | PersistentVolume):
            key, known = (type(obj), obj.key), self._mirror.get(type(obj), obj.key)
            if deleted or not self._is_bound(obj):
                self._before.pop(key, None)
            elif key in self._before:
                # The oldest state counts: binding may take several writes.
                return
            elif known is not None and not self._is_bound(known):
                self._before[key] = known
            elif known is None and isinstance(obj, PersistentVolume) and _claim_of(obj) in self._before:
                self._before[key] = None

    def taken_back(self, pod: Pod) -> Iterator[WatchEvent]:
        """Yield the changes that take back what was bound for this pod alone."""
        for key in self._keys_of(pod):
            before, now = self._before[key], self._mirror.get(*key)
            if now is not None:
                yield (
                    WatchEvent(EventType.DELETED, now)
                    if before is None
                    else WatchEvent(EventType.MODIFIED, before, now)
                )

    def _keys_of(self, pod: Pod) -> Sequence[_Key]:
        """The kept claims and volumes of the pod."""
        if not self._before:
            return ()
        claims: set[_Key] = {(PersistentVolumeClaim, key) for key in _volume_claims(pod)}
        found: list[_Key] = []
        for key in self._before:
            now = self._mirror.get(*key)
            if (
                key in claims
                or (isinstance(now, PersistentVolume) and _claim_of(now) in claims)
                or (
                    isinstance(now, ResourceClaim)
                    and [each.uid for each in now.status.reserved_for] == [pod.uid]
                )
            ):
                found.append(key)
        return found

    def _is_bound(self, obj: Named) -> bool:
        """Tell whether a scheduler has bound the claim. Volumes that don't wait for a pod are bound without one."""
        match obj:
            case ResourceClaim():
                return obj.status.allocation is not None
            case PersistentVolumeClaim():
                is_chosen = _SELECTED_NODE in obj.metadata.annotations or bool(obj.spec.volume_name)
                return is_chosen and self._waits_for_pod(obj)
            case PersistentVolume():
                kind, key = _claim_of(obj)
                claim = self._mirror.get(kind, key)
                return isinstance(claim, PersistentVolumeClaim) and self._waits_for_pod(claim)
        return False

    def _waits_for_pod(self, claim: PersistentVolumeClaim) -> bool:
        storage_class = self._mirror.get(StorageClass, claim.spec.storage_class_name or "")
        return (
            storage_class is not None
            and storage_class.volume_binding_mode is VolumeBindingMode.WAIT_FOR_FIRST_CONSUMER
        )


def _claim_of(volume: PersistentVolume) -> _Key:
    """Return the reference to the volume's claim; one with an empty name if it has none."""
    reference = volume.spec.claim_ref
    return PersistentVolumeClaim, "" if reference is None else f"{reference.namespace}/{reference.name}"


def _volume_claims(pod: Pod) -> Iterator[str]:
    """Yield the keys of the pod's volume claims; that of an ephemeral volume is named after pod and volume."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield f"{pod.namespace}/{volume.persistent_volume_claim.claim_name}"
        elif volume.ephemeral is not None:
            yield f"{pod.namespace}/{pod.name}-{volume.name}"
