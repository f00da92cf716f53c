"""VolumeRestrictions: refuses disks that can't be mounted twice, and claims that only one pod may use."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import attrs

from kschedfw import (
    IDLE,
    ActionType,
    ClusterEvent,
    CycleState,
    EventResource,
    NodeInfo,
    Pod,
    PodInfo,
    QueueingHint,
    Reads,
    StateKey,
    Status,
    hookimpl,
)
from kschedfw.api import (
    AWSElasticBlockStoreSource,
    GCEPersistentDiskSource,
    ISCSISource,
    RBDSource,
)
from kschedfw.api.records import frozen
from kschedfw.plugins._hints import queue_if
from kschedfw.plugins._storage import StoragePlugin, claim_not_found, find_claim, queue_if_named

_DISK_TAKEN: Final = Status.unschedulable("node(s) had no available disk")
_CLAIM_TAKEN: Final = Status.unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
_READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"

Disk: TypeAlias = GCEPersistentDiskSource | AWSElasticBlockStoreSource | ISCSISource | RBDSource


@frozen
class ExclusiveClaims:
    """The pod's ReadWriteOncePod claims, and the number of their uses by other pods."""

    names: frozenset[str] = frozenset()
    uses: int = 0

    def uses_by(self, pod: Pod) -> int:
        """Return the number of uses of these claims by the pod, by name alone as in kube-scheduler."""
        return sum(
            volume.persistent_volume_claim is not None
            and volume.persistent_volume_claim.claim_name in self.names
            for volume in pod.storage
        )


Found: TypeAlias = tuple[tuple[Disk, ...], ExclusiveClaims]
"""The pod's disks, and its ReadWriteOncePod claims."""

_EXCLUSIVE = StateKey[ExclusiveClaims]("VolumeRestrictions.exclusive")


class VolumeRestrictions(StoragePlugin[None, Found]):
    """Refuses nodes where a disk that the pod mounts is mounted already, unless both only read and that is allowed.

    A pod whose claim is for a single pod (ReadWriteOncePod), and in use, is refused everywhere.
    """

    name = "VolumeRestrictions"
    pure = ("filter",)
    reads = Reads.PODS

    @hookimpl
    def pre_filter(self, state: CycleState, pod: Pod) -> Status | None:
        if not pod.spec.volumes or not pod.storage:
            return Status.skip()
        found = self.found(pod)
        if isinstance(found, Status):
            return found
        disks, exclusive = found
        if not disks and not exclusive.uses:
            return Status.skip()
        state.write(_EXCLUSIVE, exclusive)
        return None

    def signature(self, found: Found) -> Hashable:
        disks, exclusive = found
        if not disks and not exclusive.uses:
            return IDLE
        # Uses on all nodes count, and changes of single nodes don't tell of them: hence they are in the
        # signature.
        return disks, exclusive.uses > 0

    def find(self, pod: Pod) -> Found | Status:
        names = []
        for volume in pod.storage:
            source = volume.persistent_volume_claim
            if source is None:
                continue
            claim = find_claim(self.handle.cluster, pod, source.claim_name)
            if claim is None:
                return Status.unresolvable(claim_not_found(source.claim_name))
            if _READ_WRITE_ONCE_POD in claim.spec.access_modes:
                names.append(claim.name)
        exclusive = frozenset(names)
        in_use = self.handle.snapshot.claims
        uses = sum(in_use.is_used(f"{pod.namespace}/{name}") for name in exclusive)
        return tuple(_disks(pod)), ExclusiveClaims(exclusive, uses)

    @hookimpl
    def pre_filter_add_pod(self, state: CycleState, pod_info_to_add: PodInfo) -> None:
        exclusive = state.read(_EXCLUSIVE)
        uses = exclusive.uses + exclusive.uses_by(pod_info_to_add.pod)
        state.write(_EXCLUSIVE, attrs.evolve(exclusive, uses=uses))

    @hookimpl
    def pre_filter_remove_pod(self, state: CycleState, pod_info_to_remove: PodInfo) -> None:
        exclusive = state.read(_EXCLUSIVE)
        uses = exclusive.uses - exclusive.uses_by(pod_info_to_remove.pod)
        state.write(_EXCLUSIVE, attrs.evolve(exclusive, uses=uses))

    @hookimpl
    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status | None:
        disks = tuple(_disks(pod))
        # The pods on the node aren't looked at for a pod with claims alone, which most are.
        if disks and _conflict(disks, tuple(_disks_on(node_info))):
            return _DISK_TAKEN
        exclusive = state.find(_EXCLUSIVE)  # None where this plugin isn't enabled at pre_filter
        return _CLAIM_TAKEN if exclusive is not None and exclusive.uses > 0 else None

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        return [
            ClusterEvent(EventResource.POD, ActionType.DELETE, _after_pod_deletion),
            ClusterEvent(EventResource.NODE, ActionType.ADD),
            ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, queue_if_named),
        ]


def _disks(pod: Pod) -> Iterator[Disk]:
    for volume in pod.storage:
        if volume.persistent_volume_claim is not None:
            continue
        for disk in (
            volume.gce_persistent_disk,
            volume.aws_elastic_block_store,
            volume.iscsi,
            volume.rbd,
        ):
            if disk is not None:
                yield disk


def _disks_on(node_info: NodeInfo) -> Iterator[Disk]:
    for each in node_info.pods_with_volumes:
        yield from _disks(each.pod)


def _conflict(disks: Iterable[Disk], others: Iterable[Disk]) -> bool:
    return any(_exclude(disk, other) for disk in disks for other in others)


def _exclude(disk: Disk, other: Disk) -> bool:
    """Tell whether two pods can't mount both volumes on one node: the same disk, and one of them writes."""
    match disk, other:
        case GCEPersistentDiskSource(), GCEPersistentDiskSource():
            same = disk.pd_name == other.pd_name
        case AWSElasticBlockStoreSource(), AWSElasticBlockStoreSource():
            # The disk can't be shared, even by readers.
            return disk.volume_id == other.volume_id
        case ISCSISource(), ISCSISource():
            same = disk.iqn == other.iqn
        case RBDSource(), RBDSource():
            same = (disk.pool, disk.image) == (other.pool, other.image) and not set(disk.monitors).isdisjoint(
                other.monitors
            )
        case _:
            return False
    return same and not (disk.read_only and other.read_only)


def _after_pod_deletion(pod: Pod, old: object | None, _new: object | None) -> QueueingHint:
    if not isinstance(old, Pod) or old.namespace != pod.namespace:
        return QueueingHint.SKIP
    # Queue without checking that the claim is exclusive: an unneeded attempt costs less than the look-up.
    common = ExclusiveClaims(_claim_names(pod)).uses_by(old) > 0
    return queue_if(common or _conflict(_disks(pod), tuple(_disks(old))))


def _claim_names(pod: Pod) -> frozenset[str]:
    sources = (volume.persistent_volume_claim for volume in pod.storage)
    return frozenset(source.claim_name for source in sources if source is not None)
