"""Dynamic provisioning: the nodes for which a volume could be created, and what speaks against other nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

import numpy as np

from kschedfw import ClusterClient, IntArray, Node, NodeTable, Quantity, Status
from kschedfw.api import CSIDriver, CSIStorageCapacity, PersistentVolumeClaim, StorageClass, requested_storage
from kschedfw.api.records import frozen
from kschedfw.api.volume_matching import NO_PROVISIONER
from kschedfw.framework.nodes.arrays import Mask
from kschedfw.plugins.volume_binding.reach import Reach, allowed_topologies, selected_by

Problems: TypeAlias = int
"""A sum of the problems below: a node can have several."""

FINE: Final = 0
OUT_OF_REACH: Final = 1
"""A volume of the pod can't be used from the node."""
NO_VOLUME: Final = 2
"""There is no volume for a claim of the pod, and none can be made."""
NO_SPACE: Final = 4
"""A volume could be made, but there is too little room for it."""
LOST: Final = 8
"""A claim is bound to a volume that isn't there."""

_REASONS: Final = (
    "node(s) didn't match PersistentVolume's node affinity",
    "node(s) didn't find available persistent volumes to bind",
    "node(s) did not have enough free storage",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
)

STATUSES: Final = (
    Status.success(),
    *(
        Status.unresolvable(*(reason for bit, reason in enumerate(_REASONS) if problems >> bit & 1))
        for problems in range(1, 1 << len(_REASONS))
    ),
)
"""The verdict on a node, by its problems."""


_NOWHERE: Final = Reach(())


@frozen(eq=False)
class Provisioning:
    """A claim to provision a volume for, the nodes that its class allows, and the published storage capacities.

    `rooms` are the capacities that are large enough; None if the driver doesn't publish capacities.
    """

    claim: PersistentVolumeClaim
    topologies: Reach
    rooms: tuple[SharedCapacity, ...] | None

    @classmethod
    def of(
        cls, claim: PersistentVolumeClaim, storage_class: StorageClass, cluster: ClusterClient
    ) -> Provisioning:
        if storage_class.provisioner in ("", NO_PROVISIONER):
            return cls(claim, _NOWHERE, None)
        rooms = None
        # As in kube-scheduler: a claim that requests no storage fits everywhere.
        if "storage" in claim.spec.resources.requests:
            driver = cluster.get(CSIDriver, storage_class.provisioner)
            if driver is not None and driver.spec.storage_capacity:
                size = requested_storage(claim).value()
                rooms = tuple(_rooms(size, storage_class, cluster.list(CSIStorageCapacity)))
        return cls(claim, allowed_topologies(storage_class), rooms)

    def problem(self, node: Node) -> Problems:
        """Return the reason why the volume can't be provisioned for the node; FINE if it can."""
        if not self.topologies.has(node.labels):
            return NO_VOLUME
        return FINE if self.rooms is None or self.room(node) is not None else NO_SPACE

    def room(self, node: Node) -> SharedCapacity | None:
        """Return the storage capacity from which the volume would probably be provisioned for the node."""
        return next((room for room in self.rooms or () if room.reach.has(node.labels)), None)

    def problems(self, nodes: NodeTable, rows: IntArray) -> IntArray:
        """Return `problem` for many nodes, shape (k,) for `rows` of shape (k,)."""
        found = np.full(len(rows), NO_SPACE, dtype=np.int64)
        found[self._has_room(nodes, rows)] = FINE
        # Last, since `problem` looks at the topologies first.
        found[~self.topologies.mask(nodes, rows)] = NO_VOLUME
        return found

    def _has_room(self, nodes: NodeTable, rows: IntArray) -> Mask:
        if self.rooms is None:
            return np.ones(len(rows), dtype=np.bool_)
        mask = np.zeros(len(rows), dtype=np.bool_)
        for room in self.rooms:
            mask |= room.reach.mask(nodes, rows)
        return mask


@frozen(eq=False)
class SharedCapacity:
    """A storage capacity that several nodes share, in bytes."""

    reach: Reach
    capacity: Quantity | None


def _rooms(
    size: int, storage_class: StorageClass, capacities: Iterable[CSIStorageCapacity]
) -> Iterable[SharedCapacity]:
    for capacity in capacities:
        limit = largest_volume(capacity)
        if (
            capacity.storage_class_name == storage_class.name
            and capacity.node_topology is not None
            and limit is not None
            and limit.value() >= size
        ):
            yield SharedCapacity(selected_by(capacity.node_topology), capacity.capacity)


def largest_volume(capacity: CSIStorageCapacity) -> Quantity | None:
    """Return the size of the largest volume that can be created there; None if unknown."""
    # The largest volume is more precise than the capacity, where the driver tells it (KEP-1472).
    return capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
