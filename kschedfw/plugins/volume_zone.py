"""VolumeZone: refuses nodes outside of the zones and regions of the pod's volumes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

import attrs
import numpy as np

from kschedfw import (
    IDLE,
    ActionType,
    ClusterEvent,
    CycleState,
    EventResource,
    IntArray,
    NodeInfo,
    NodeTable,
    Pod,
    QueueingHint,
    Reads,
    StateKey,
    Status,
    Verdicts,
    hookimpl,
)
from kschedfw.api import (
    Operator,
    PersistentVolume,
    PersistentVolumeClaim,
    Requirement,
    StorageClass,
    VolumeBindingMode,
    class_of_claim,
)
from kschedfw.api.records import frozen
from kschedfw.framework.diagnosis import Evidence
from kschedfw.plugins._hints import queue_if
from kschedfw.plugins._node_terms import unmatched
from kschedfw.plugins._storage import (
    StoragePlugin,
    claim_not_found,
    find_claim,
    queue_if_named,
    storage_class_not_found,
    volume_not_found,
)

_WRONG_ZONE: Final = Status.unresolvable("node(s) had no available volume zone")
_NO_NAME: Final = Status.unresolvable("PersistentVolumeClaim had no name")
_NO_CLASS: Final = Status.unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
_UNBOUND: Final = Status.unresolvable("PersistentVolume had no name")

_ZONE: Final = "topology.kubernetes.io/zone"
_REGION: Final = "topology.kubernetes.io/region"
_NOW: Final = {
    "failure-domain.beta.kubernetes.io/zone": _ZONE,
    "failure-domain.beta.kubernetes.io/region": _REGION,
}
"""The present names of labels, by their names from beta."""
_LABELS: Final = (*_NOW, _ZONE, _REGION)
_DELIMITER: Final = "__"


@frozen(cache_hash=True)
class VolumeTopology:
    """A label that a node with any zone or region label must have, and the values allowed."""

    key: str
    values: frozenset[str]


Topologies = tuple[VolumeTopology, ...]
NodeLabels = tuple[str | None, ...]
"""The values of a node's or a volume's labels, in the order of `_LABELS`."""

_TOPOLOGIES = StateKey[Topologies]("VolumeZone.topologies")


class VolumeZone(StoragePlugin[None, Topologies]):
    """Refuses nodes that are in another zone or region than a bound volume of the pod.

    Nodes without any zone or region label pass: the cluster is assumed to have a single zone.
    """

    name = "VolumeZone"
    reads = Reads.NODE

    @hookimpl
    def pre_filter(self, state: CycleState, pod: Pod) -> Status | None:
        if not pod.spec.volumes or not pod.storage:
            return Status.skip()
        topologies = self.found(pod)
        if isinstance(topologies, Status):
            return topologies
        if not topologies:
            return Status.skip()
        state.write(_TOPOLOGIES, topologies)
        return None

    @hookimpl
    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status | None:
        if not pod.spec.volumes:
            return None
        topologies = self._prepared(state, pod)
        if isinstance(topologies, Status):
            return topologies
        return None if _allow(topologies, _labels_of(node_info)) else _WRONG_ZONE

    def evidence(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Iterable[Evidence]:  # noqa: ARG002  # see GivesEvidence
        labels = _labels_of(node_info)
        for claim, volume in self._bound(pod):
            for each in topologies_of(volume):
                if not _allow([each], labels):
                    where = f"claim {claim.key}, volume {volume.name}"
                    wanted = Requirement(each.key, Operator.IN, tuple(sorted(each.values)))
                    found = unmatched(where, wanted, node_info.node.labels)
                    names = {"claim": claim.key, "volume": volume.name}
                    yield attrs.evolve(found, values={**found.values, **names}, code="volume-zone")

    @hookimpl
    def filter_batch(self, state: CycleState, pod: Pod, nodes: NodeTable, rows: IntArray) -> Verdicts | None:
        topologies = self._prepared(state, pod)
        if isinstance(topologies, Status):
            return None
        places = nodes.encoded("zone and region labels", _labels_of)
        refused = [not _allow(topologies, labels) for labels in places.values]
        return Verdicts.refuse(np.array(refused, dtype=np.bool_)[places.codes.take(rows)], _WRONG_ZONE)

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        added_or_updated = ActionType.ADD | ActionType.UPDATE
        return [
            ClusterEvent(EventResource.STORAGE_CLASS, ActionType.ADD, _after_class_addition),
            ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
            ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, added_or_updated, queue_if_named),
            ClusterEvent(EventResource.PERSISTENT_VOLUME, added_or_updated, _after_volume_change),
        ]

    def _prepared(self, state: CycleState, pod: Pod) -> Topologies | Status:
        # None where this plugin isn't enabled at pre_filter. Then it looks the volumes up here, as kube-scheduler's
        # does, and so the filter isn't pure.
        topologies = state.find(_TOPOLOGIES)
        return self.find(pod) if topologies is None else topologies

    def signature(self, found: Topologies) -> Hashable:
        return found or IDLE

    def find(self, pod: Pod) -> Topologies | Status:
        """Return the topologies of the pod's bound volumes; a refusal if a volume can't be looked up."""
        found: list[VolumeTopology] = []
        for volume in pod.storage:
            source = volume.persistent_volume_claim
            if source is None:
                continue
            if not source.claim_name:
                return _NO_NAME
            claim = find_claim(self.handle.cluster, pod, source.claim_name)
            if claim is None:
                return Status.unresolvable(claim_not_found(source.claim_name))
            name = claim.spec.volume_name
            if not name:
                refusal = self._refuse_unbound(claim)
                if refusal is not None:
                    return refusal
                continue
            bound = self.handle.cluster.get(PersistentVolume, name)
            if bound is None:
                return Status.unresolvable(volume_not_found(name))
            found += topologies_of(bound)
        return tuple(found)

    def _bound(self, pod: Pod) -> Iterator[tuple[PersistentVolumeClaim, PersistentVolume]]:
        """Yield the pod's claims that have a volume, with the volume."""
        cluster = self.handle.cluster
        for each in pod.storage:
            source = each.persistent_volume_claim
            claim = None if source is None else find_claim(cluster, pod, source.claim_name)
            volume = None if claim is None else cluster.get(PersistentVolume, claim.spec.volume_name)
            if claim is not None and volume is not None:
                yield claim, volume

    def _refuse_unbound(self, claim: PersistentVolumeClaim) -> Status | None:
        """Return the refusal of an unbound claim; None for a claim that is bound only once the pod has a node."""
        name = class_of_claim(claim)
        if not name:
            return _NO_CLASS
        storage_class = self.handle.cluster.get(StorageClass, name)
        if storage_class is None:
            return Status.unresolvable(storage_class_not_found(name))
        waits = storage_class.volume_binding_mode is VolumeBindingMode.WAIT_FOR_FIRST_CONSUMER
        return None if waits else _UNBOUND


def topologies_of(volume: PersistentVolume) -> Topologies:
    """Return the topologies in a volume's labels.

    A value may be a list `a__b`; a list with an empty item is ignored.
    """
    labels = volume.labels
    return _topologies(tuple([labels.get(key) for key in _LABELS])) if labels else ()


# Kept, since volumes are looked at again with every pod, and most have one of a few zones.
@lru_cache(maxsize=1024)
def _topologies(labels: NodeLabels) -> Topologies:
    found = []
    for key, value in zip(_LABELS, labels, strict=True):
        if value is None:
            continue
        values = frozenset(each.strip() for each in value.split(_DELIMITER))
        if "" not in values:
            found.append(VolumeTopology(key, values))
    return tuple(found)


def _labels_of(node_info: NodeInfo) -> NodeLabels:
    labels = node_info.node.metadata.labels
    return tuple([labels.get(key) for key in _LABELS])


def _allow(topologies: Iterable[VolumeTopology], labels: NodeLabels) -> bool:
    by_key = {key: value for key, value in zip(_LABELS, labels, strict=True) if value is not None}
    if not by_key:
        return True
    # A volume's label from beta also allows nodes that have only the label's present name.
    return all(
        by_key.get(each.key, by_key.get(_NOW.get(each.key, each.key))) in each.values for each in topologies
    )


def _after_class_addition(_pod: Pod, _old: object | None, new: object | None) -> QueueingHint:
    return queue_if(
        isinstance(new, StorageClass) and new.volume_binding_mode is VolumeBindingMode.WAIT_FOR_FIRST_CONSUMER
    )


def _after_volume_change(_pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    if not isinstance(new, PersistentVolume):
        return QueueingHint.SKIP
    return queue_if(not isinstance(old, PersistentVolume) or topologies_of(old) != topologies_of(new))
