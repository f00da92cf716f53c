"""Candidates that get pods' claims a volume: changes of claims, classes and volumes, not tried yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice, product
from typing import Final, TypeAlias

from kschedfw import Node, Pod
from kschedfw.api import (
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    class_of_claim,
    class_of_volume,
    close_to,
    requested_storage,
    storage_capacity,
)
from kschedfw.cluster import Cluster
from kschedfw_advisor.changes import Change
from kschedfw_advisor.claim_changes import (
    AddVolumes,
    FreeVolume,
    MakeDefaultClass,
    ReclassClaims,
    RemodeClaims,
    ResizeClaims,
    WidenClass,
)
from kschedfw_advisor.sizes import allowed_nodes
from kschedfw_advisor.volumes_near import NO_PROVISIONER, by_lacks, capacity_of, lacks

_Way: TypeAlias = tuple[Change, ...]
"""Changes that together may get one claim a volume."""

_MOST_CLASSES: Final = 3
"""The most StorageClasses that are tried in place of one that isn't there."""
_MOST_VOLUMES: Final = 3
"""The most volumes, those that lack least, that a claim is changed for."""
_MOST_ZONES: Final = 2
"""The most values that are tried for a topology key of a StorageClass, those of most nodes."""
_MOST_TOGETHER: Final = 12
"""The most combinations for the claims of one pod."""
_FIXED: Final = frozenset(("bound", "deleted", "node"))
"""The obstacles of a volume that no change of the claim removes."""


def claim_candidates(pods: Sequence[Pod], cluster: Cluster) -> Iterator[_Way]:
    """Yield the sets of changes that may get all the claims of the pods, which are alike, a volume."""
    ways = []
    for claim, keys in _unbound(pods, cluster):
        if of_claim := list(_ways(claim, keys, pods[0], cluster)):
            ways.append(of_claim)
    for chosen in islice(product(*ways), _MOST_TOGETHER) if ways else ():
        # Two claims may need the same change, such as a default class.
        yield tuple(dict.fromkeys(change for way in chosen for change in way))


def _unbound(
    pods: Sequence[Pod], cluster: Cluster
) -> Iterator[tuple[PersistentVolumeClaim, tuple[str, ...]]]:
    """Yield the claims without a volume, one for each volume of the pods, with the keys of those of all pods."""
    for volume in pods[0].spec.volumes:
        keys = tuple(dict.fromkeys(key for pod in pods if (key := _claim_of(pod, volume.name)) is not None))
        unbound = [
            claim
            for key in keys
            if (claim := cluster.get(PersistentVolumeClaim, key)) is not None and not claim.spec.volume_name
        ]
        if unbound:
            yield unbound[0], tuple(each.key for each in unbound)


def _claim_of(pod: Pod, volume: str) -> str | None:
    """Return the key of the claim that the pod names for its volume of this name."""
    found = (each.persistent_volume_claim for each in pod.spec.volumes if each.name == volume)
    source = next((each for each in found if each is not None), None)
    return None if source is None else f"{pod.namespace}/{source.claim_name}"


def _ways(claim: PersistentVolumeClaim, keys: tuple[str, ...], pod: Pod, cluster: Cluster) -> Iterator[_Way]:
    name = class_of_claim(claim)
    storage_class = cluster.get(StorageClass, name) if name else None
    if storage_class is None:
        yield from _of_another_class(claim, keys, cluster)
    if storage_class is None or storage_class.provisioner == NO_PROVISIONER:
        yield from _of_a_volume(claim, keys, cluster)
        modes = claim.spec.access_modes
        yield (AddVolumes(keys, requested_storage(claim), modes, name, claim.spec.volume_mode),)
        return
    largest = capacity_of(storage_class, cluster)
    if largest is not None and largest.size < requested_storage(claim) and largest.size.value():
        yield (ResizeClaims(keys, largest.size, requested_storage(claim)),)
    yield from _of_a_wider_class(storage_class, allowed_nodes(pod, cluster.list(Node)))


def _of_another_class(
    claim: PersistentVolumeClaim, keys: tuple[str, ...], cluster: Cluster
) -> Iterator[_Way]:
    """Yield the changes of the class for a claim whose class isn't there, or that has none."""
    name = class_of_claim(claim)
    classes = {each.name: each for each in cluster.list(StorageClass)}
    if name and (meant := close_to(name, classes)) is not None:
        yield (ReclassClaims(keys, meant, name, is_typo=True),)
        return
    # Default classes first, then those that make volumes by themselves.
    ordered = sorted(
        classes.values(),
        key=lambda each: (not each.is_default, each.provisioner == NO_PROVISIONER, each.name),
    )
    for each in ordered[:_MOST_CLASSES]:
        if claim.spec.storage_class_name is None and not each.is_default:
            yield (MakeDefaultClass(keys, each.name),)
        yield (ReclassClaims(keys, each.name, name),)


def _of_a_volume(claim: PersistentVolumeClaim, keys: tuple[str, ...], cluster: Cluster) -> Iterator[_Way]:
    """Yield for the volumes that come closest the changes of the claim that make up for what they lack."""
    nodes = tuple(cluster.list(Node))
    for volume in by_lacks(claim, cluster.list(PersistentVolume), nodes)[:_MOST_VOLUMES]:
        missing = {each.code for each in lacks(volume, claim, nodes)}
        if missing and _FIXED.isdisjoint(missing):
            yield tuple(_for_volume(claim, keys, volume, missing))


def _for_volume(
    claim: PersistentVolumeClaim, keys: tuple[str, ...], volume: PersistentVolume, missing: Collection[str]
) -> Iterator[Change]:
    if "size" in missing:
        yield ResizeClaims(keys, storage_capacity(volume), requested_storage(claim))
    if "class" in missing:
        yield ReclassClaims(keys, class_of_volume(volume), class_of_claim(claim))
    if not {"mode", "access-mode", "selector"}.isdisjoint(missing):
        yield RemodeClaims(
            keys,
            volume.spec.access_modes if "access-mode" in missing else None,
            volume.spec.volume_mode if "mode" in missing else None,
            "selector" in missing,
        )
    if "released" in missing:
        yield FreeVolume(volume.name)


def _of_a_wider_class(storage_class: StorageClass, nodes: Sequence[Node]) -> Iterator[_Way]:
    """Yield values of the class's topology keys that it doesn't allow, and that nodes have which the pod may use."""
    for key in dict.fromkeys(
        each.key for term in storage_class.allowed_topologies for each in term.match_label_expressions
    ):
        allowed = {
            value
            for term in storage_class.allowed_topologies
            for each in term.match_label_expressions
            if each.key == key
            for value in each.values
        }
        there = Counter(node.labels[key] for node in nodes if node.labels.get(key, "") not in {"", *allowed})
        for value, _ in there.most_common(_MOST_ZONES):
            yield (WidenClass(storage_class.name, key, value),)
