"""Provisioning of the volume for a claim, as the provisioner of its storage class would do it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.meta import ObjectMeta
from kschedfw.api.node import Node
from kschedfw.api.selectors import NodeSelector, NodeSelectorTerm, Operator, Requirement
from kschedfw.api.storage import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    StorageClass,
    TopologySelectorTerm,
    VolumeNodeAffinity,
    VolumePhase,
)
from kschedfw.api.volume_matching import bound_to_claim, class_of_claim, requested_storage
from kschedfw.api.volumes import CSISource

PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"


def provisioned(
    claim: PersistentVolumeClaim,
    storage_class: StorageClass,
    node: Node | None = None,
    csi_node: CSINode | None = None,
) -> PersistentVolume | None:
    """Return a new volume for the claim that can be used from the node; None if the class doesn't allow one there.

    Without a node it is in the first topology that the class allows. The class's allowed topologies decide
    which nodes can use it, or else the topology keys of the driver on the node; without either, every node can.
    """
    driver = storage_class.provisioner
    if storage_class.allowed_topologies:
        topology = _allowed(storage_class.allowed_topologies, node)
        if topology is None:
            return None
    else:
        topology = _of_driver(driver, node, csi_node)
    name = f"pvc-{claim.uid}"
    spec = PersistentVolumeSpec(
        capacity=FrozenDict({"storage": requested_storage(claim)}),
        access_modes=claim.spec.access_modes,
        storage_class_name=class_of_claim(claim),
        volume_attributes_class_name=claim.spec.volume_attributes_class_name,
        volume_mode=claim.spec.volume_mode,
        node_affinity=_affinity(topology),
        csi=CSISource(driver=driver, volume_handle=name),
    )
    metadata = ObjectMeta(name=name, annotations=FrozenDict({PROVISIONED_BY: driver}))
    return bound_to_claim(PersistentVolume(metadata, spec, VolumePhase("Bound")), claim)


def _allowed(terms: tuple[TopologySelectorTerm, ...], node: Node | None) -> Mapping[str, str] | None:
    for term in terms:
        wanted = {each.key: each.values for each in term.match_label_expressions}
        if not wanted or not all(wanted.values()):
            continue
        if node is None:
            return {key: values[0] for key, values in wanted.items()}
        if all(node.labels.get(key) in values for key, values in wanted.items()):
            return {key: node.labels[key] for key in wanted}
    return None


def _of_driver(driver: str, node: Node | None, csi_node: CSINode | None) -> Mapping[str, str]:
    if node is None or csi_node is None:
        return {}
    keys = next((each.topology_keys for each in csi_node.spec.drivers if each.name == driver), ())
    return {key: node.labels[key] for key in keys if key in node.labels}


def _affinity(topology: Mapping[str, str]) -> VolumeNodeAffinity | None:
    if not topology:
        return None
    expressions = tuple(Requirement(key, Operator.IN, (value,)) for key, value in topology.items())
    return VolumeNodeAffinity(NodeSelector((NodeSelectorTerm(expressions),)))


def is_provisioned(volume: PersistentVolume) -> bool:
    """Whether the volume was provisioned for a claim, so that it is deleted with the claim."""
    return PROVISIONED_BY in volume.annotations
