"""Scores of nodes by the utilization of their storage, with a function of utilization (KEP-1845, KEP-4049)."""

from __future__ import annotations

from collections.abc import Sequence

from kschedfw import Node
from kschedfw.api.volume_matching import requested_storage, storage_capacity
from kschedfw.plugins.node_resources_fit.args import MAX_UTILIZATION, UtilizationShapePoint
from kschedfw.plugins.node_resources_fit.scoring import value_at
from kschedfw.plugins.volume_binding.pod_volumes import NodeVolumes

Shape = Sequence[UtilizationShapePoint]


def score(shape: Shape, volumes: NodeVolumes, node: Node) -> int:
    """Return the average over the storage classes of the volumes to bind or provision, rounded to nearest.

    Volumes to provision count only if no volume is to be bound.
    """
    usage = _bound(volumes) if volumes.bindings else _made(volumes, node)
    if not usage:
        return 0
    total = sum(_value(shape, requested, capacity) for requested, capacity in usage.values())
    return (2 * total + len(usage)) // (2 * len(usage))


def _bound(volumes: NodeVolumes) -> dict[str, tuple[int, int]]:
    """Return the requested bytes and the volumes' bytes, by storage class."""
    usage: dict[str, tuple[int, int]] = {}
    for volume, claim in volumes.bindings:
        requested, capacity = usage.get(volume.spec.storage_class_name, (0, 0))
        usage[volume.spec.storage_class_name] = (
            requested + requested_storage(claim).value(),
            capacity + storage_capacity(volume).value(),
        )
    return usage


def _made(volumes: NodeVolumes, node: Node) -> dict[str, tuple[int, int]]:
    """Return requested and free bytes of volumes to provision, by storage class with published capacity."""
    usage: dict[str, tuple[int, int]] = {}
    for provisioning in volumes.provisionings:
        room = provisioning.room(node)
        if room is not None:
            name = provisioning.claim.spec.storage_class_name or ""
            requested, _ = usage.get(name, (0, 0))
            free = 0 if room.capacity is None else room.capacity.value()
            usage[name] = requested + requested_storage(provisioning.claim).value(), free
    return usage


def _value(shape: Shape, requested: int, capacity: int) -> int:
    full = capacity == 0 or requested > capacity
    return value_at(shape, MAX_UTILIZATION if full else requested * MAX_UTILIZATION // capacity)
