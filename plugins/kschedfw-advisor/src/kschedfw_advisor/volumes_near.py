"""The volume, capacity or zone that comes closest to a claim without a volume, and what it lacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs

from kschedfw import Node, Pod
from kschedfw.api import (
    CSIStorageCapacity,
    Finding,
    PersistentVolume,
    PersistentVolumeClaim,
    Quantity,
    Requirement,
    StorageClass,
    TopologyRequirement,
    class_of_claim,
    class_of_volume,
    is_bound_to,
    requested_storage,
    storage_capacity,
)
from kschedfw.cluster import Cluster

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
"""The provisioner of StorageClasses whose volumes are made by hand."""

_MOST_COMPARED: Final = 100
"""The most volumes that are compared with a claim, free ones first."""


@attrs.frozen
class Lack:
    """A property that a volume lacks for a claim, as a code and as text."""

    code: str
    text: str


def near_claims(pod: Pod, cluster: Cluster) -> Iterator[Finding]:
    """Yield, for each claim of the pod that has no volume, what comes closest to being one, and what that lacks."""
    for volume in pod.spec.volumes:
        if (source := volume.persistent_volume_claim) is None:
            continue
        claim = cluster.get(PersistentVolumeClaim, f"{pod.namespace}/{source.claim_name}")
        if claim is None or claim.spec.volume_name:
            continue
        storage_class = cluster.get(StorageClass, class_of_claim(claim))
        if storage_class is None or storage_class.provisioner == NO_PROVISIONER:
            # A class that isn't there may be misspelt, and then volumes of other classes say nothing.
            yield from _closest_volume(claim, cluster, of_class=storage_class is None)
        else:
            yield from _zones(claim, storage_class)
            yield from _largest_capacity(claim, storage_class, cluster)


def _closest_volume(claim: PersistentVolumeClaim, cluster: Cluster, *, of_class: bool) -> Iterator[Finding]:
    wanted = class_of_claim(claim)
    volumes = [
        each
        for each in cluster.list(PersistentVolume)
        if not (of_class and wanted) or class_of_volume(each) == wanted
    ]
    if not volumes:
        # Where there is no class either, that is told already.
        if cluster.get(StorageClass, class_of_claim(claim)) is not None:
            text = "there is no PersistentVolume that claim {claim} could get"
            yield Finding.of("no-volume", text, claim=claim.key)
        return
    nodes = tuple(cluster.list(Node))
    (closest, *_) = by_lacks(claim, volumes, nodes)
    found = lacks(closest, claim, nodes)
    if found:
        yield Finding.of(
            "closest-volume",
            "closest to claim {claim} is volume {volume}: {problems}",
            claim=claim.key,
            volume=closest.name,
            lacks=tuple(each.code for each in found),
            problems=tuple(each.text for each in found),
        )


def by_lacks(
    claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume], nodes: Sequence[Node]
) -> Sequence[PersistentVolume]:
    """Return the volumes, those first that lack the least for the claim, at most `_MOST_COMPARED`.

    Of those that lack equally much, the larger one: a volume of another class or size is further away by both.
    """
    # Each is compared with every node, and most volumes of a large cluster are bound, which makes them useless.
    free_first = sorted(
        volumes, key=lambda each: each.spec.claim_ref is not None and each.status.phase == "Bound"
    )
    missing = {each.name: len(lacks(each, claim, nodes)) for each in free_first[:_MOST_COMPARED]}
    return sorted(
        free_first[:_MOST_COMPARED],
        key=lambda each: (missing[each.name], -storage_capacity(each).value(), each.name),
    )


def lacks(volume: PersistentVolume, claim: PersistentVolumeClaim, nodes: Sequence[Node]) -> tuple[Lack, ...]:
    """Return what the volume lacks for the claim to get it."""
    return tuple(_all_lacks(volume, claim, nodes))


def _all_lacks(
    volume: PersistentVolume, claim: PersistentVolumeClaim, nodes: Sequence[Node]
) -> Iterator[Lack]:
    own, spec = is_bound_to(volume, claim), volume.spec
    has, wanted = storage_capacity(volume), requested_storage(claim)
    if has < wanted:
        yield Lack("size", f"it has {has}, {wanted} are asked for")
    if spec.volume_mode != claim.spec.volume_mode:
        yield Lack("mode", f"its volumeMode is {spec.volume_mode}, not {claim.spec.volume_mode}")
    if volume.metadata.deletion_timestamp is not None:
        yield Lack("deleted", "it is being deleted")
    required = None if spec.node_affinity is None else spec.node_affinity.required
    if required is not None and not any(required.matches(node.labels, node.name) for node in nodes):
        keys = ", ".join(
            _keys(each for term in required.node_selector_terms for each in term.match_expressions)
        )
        yield Lack("node", f"no node has {keys}, which it requires")
    if own:
        return
    other = spec.claim_ref
    if volume.status.phase == "Released":
        former = "" if other is None else f", still bound to {other.namespace}/{other.name}"
        yield Lack("released", f"it is Released{former}: its claimRef has to be removed")
    elif other is not None:
        yield Lack("bound", f"it is bound to {other.namespace}/{other.name}")
    has_class, wanted_class = class_of_volume(volume), class_of_claim(claim)
    if has_class != wanted_class:
        yield Lack("class", f"its class is {has_class or 'none'}, not {wanted_class or 'none'}")
    missing = [mode for mode in claim.spec.access_modes if mode not in spec.access_modes]
    if missing:
        yield Lack("access-mode", f"it isn't {', '.join(missing)}, only {', '.join(spec.access_modes)}")
    if claim.spec.selector is not None and not claim.spec.selector.compile().matches(volume.labels):
        yield Lack("selector", "its labels don't match the claim's selector")


def _keys(required: Iterable[Requirement | TopologyRequirement]) -> tuple[str, ...]:
    return tuple(f"{each.key}={','.join(each.values)}" for each in required)


def _zones(claim: PersistentVolumeClaim, storage_class: StorageClass) -> Iterator[Finding]:
    zones = _keys(each for term in storage_class.allowed_topologies for each in term.match_label_expressions)
    if zones:
        yield Finding.of(
            "storage-class-zones",
            "StorageClass {storageClass} makes volumes for claim {claim} only in {zones}",
            storageClass=storage_class.name,
            claim=claim.key,
            zones=zones,
        )


@attrs.frozen
class Capacity:
    """The largest volume that a driver can make for a StorageClass, and the CSIStorageCapacity that says so."""

    size: Quantity
    name: str


def capacity_of(storage_class: StorageClass, cluster: Cluster) -> Capacity | None:
    """Return the largest capacity that the class's driver tells of; None if it tells of none."""
    sizes = (
        Capacity(size, each.name)
        for each in cluster.list(CSIStorageCapacity)
        if each.storage_class_name == storage_class.name
        and (size := each.maximum_volume_size or each.capacity) is not None
    )
    return max(sizes, key=lambda each: (each.size, each.name), default=None)


def _largest_capacity(
    claim: PersistentVolumeClaim, storage_class: StorageClass, cluster: Cluster
) -> Iterator[Finding]:
    """Yield the largest capacity that the class's driver tells of, if the claim is larger."""
    largest, wanted = capacity_of(storage_class, cluster), requested_storage(claim)
    if largest is not None and largest.size < wanted:
        yield Finding.of(
            "largest-capacity",
            "the largest volume that StorageClass {storageClass} can make is {largest} ({capacity}), and {wanted} are "
            "asked for",
            claim=claim.key,
            storageClass=storage_class.name,
            capacity=largest.name,
            largest=str(largest.size),
            wanted=str(wanted),
        )
