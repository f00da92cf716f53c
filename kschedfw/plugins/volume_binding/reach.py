"""The nodes from which a volume can be used, or could be after provisioning.

Semantics: component-helpers `CheckNodeAffinity`, core/v1 `MatchTopologySelectorTerms`, and
csi-translation-lib's translation of the topology of volumes whose in-tree plugin was migrated (kube-scheduler
v1.36).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final

import attrs
import numpy as np

from kschedfw import ClusterClient, IntArray, NodeTable
from kschedfw.api import (
    CSINode,
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Operator,
    PersistentVolume,
    Requirement,
    StorageClass,
    VolumeNodeAffinity,
)
from kschedfw.api.records import frozen
from kschedfw.framework.nodes.arrays import Mask
from kschedfw.plugins._migration import AZURE_DISK, CINDER, EBS, GCE_PD, InTreePlugin, plugin_of
from kschedfw.plugins._node_terms import any_mask, is_empty, selector_errors

_TOPOLOGY_KEYS: Final = {
    EBS: "topology.ebs.csi.aws.com/zone",
    GCE_PD: "topology.gke.io/zone",
    AZURE_DISK: "topology.disk.csi.azure.com/zone",
    CINDER: "topology.cinder.csi.openstack.org/zone",
}
"""The node label by which the CSI drivers that replaced in-tree plugins know zones."""
_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_OLD_ZONE, _OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"


@frozen(cache_hash=True)
class Reach:
    """Node selector terms, one of which must match a node's labels; None for all nodes."""

    terms: tuple[NodeSelectorTerm, ...] | None = None

    def has(self, labels: Mapping[str, str]) -> bool:
        return self.terms is None or any(term.matches(labels, "") for term in self.terms)

    def mask(self, nodes: NodeTable, rows: IntArray) -> Mask:
        """Return `has` for many nodes, shape (k,) for `rows` of shape (k,)."""
        return np.ones(len(rows), dtype=np.bool_) if self.terms is None else any_mask(self.terms, nodes, rows)


EVERYWHERE: Final = Reach()


@frozen
class BoundReach:
    """The nodes from which a bound volume can be used.

    On nodes where its in-tree `plugin` was migrated to a CSI driver, `migrated` counts. `plugin` is None where
    migration makes no difference.
    """

    reach: Reach
    plugin: InTreePlugin | None = None
    migrated: Reach = EVERYWHERE

    @classmethod
    def of(cls, volume: PersistentVolume) -> BoundReach:
        if volume.spec.node_affinity is None and not volume.metadata.labels:
            return _BOUND_EVERYWHERE
        reach = reach_of(volume)
        plugin = plugin_of(volume)
        if plugin is not None and plugin in _TOPOLOGY_KEYS:
            migrated = reach_of(_translated(volume, _TOPOLOGY_KEYS[plugin]))
            if migrated != reach:
                return cls(reach, plugin, migrated)
        return cls(reach)

    def has(self, labels: Mapping[str, str], node_name: str, cluster: ClusterClient) -> bool:
        return self.on(node_name, cluster).has(labels)

    def on(self, node_name: str, cluster: ClusterClient) -> Reach:
        """Return the nodes, given the CSINode of the one that is asked about."""
        if self.plugin is not None and self.plugin.is_migrated(cluster.get(CSINode, node_name)):
            return self.migrated
        return self.reach

    def mask(self, nodes: NodeTable, rows: IntArray, cluster: ClusterClient) -> Mask:
        """Return `has` for many nodes."""
        mask = self.reach.mask(nodes, rows)
        if self.plugin is not None:
            migrated = np.zeros(len(nodes), dtype=np.bool_)
            for node in cluster.list(CSINode):
                if node.name in nodes.rows and self.plugin.is_migrated(node):
                    migrated[nodes.rows[node.name]] = True
            mask = np.where(migrated[rows], self.migrated.mask(nodes, rows), mask)
        return mask


_BOUND_EVERYWHERE: Final = BoundReach(EVERYWHERE)


def reach_of(volume: PersistentVolume) -> Reach:
    """Return the nodes that the volume's node affinity allows."""
    affinity = volume.spec.node_affinity
    return EVERYWHERE if affinity is None or affinity.required is None else _compiled(affinity.required)


@functools.lru_cache(maxsize=8192)
def _compiled(selector: NodeSelector) -> Reach:
    """Return compiled terms; cached, since volumes are looked at again with every pod."""
    if any(selector_errors(selector, "")):
        # a term that doesn't compile makes the whole selector match nothing, as in kube-scheduler
        return Reach(())
    terms = []
    for term in selector.node_selector_terms:
        # Only labels are looked at, so fields are those of a node without a name.
        if is_empty(term) or not all(field.matches({"metadata.name": ""}) for field in term.match_fields):
            continue
        if not term.match_expressions:
            return EVERYWHERE
        terms.append(NodeSelectorTerm(term.match_expressions))
    return Reach(tuple(terms))


@functools.lru_cache(maxsize=1024)
def allowed_topologies(storage_class: StorageClass) -> Reach:
    """Return the nodes for which volumes of the class may be provisioned."""
    if not storage_class.allowed_topologies:
        return EVERYWHERE
    return Reach(
        tuple(
            NodeSelectorTerm(
                tuple(
                    Requirement(expression.key, Operator.IN, expression.values)
                    for expression in term.match_label_expressions
                )
            )
            for term in storage_class.allowed_topologies
            if term.match_label_expressions and all(each.values for each in term.match_label_expressions)
        )
    )


@functools.lru_cache(maxsize=8192)
def selected_by(selector: LabelSelector) -> Reach:
    """Return the nodes whose labels the selector matches."""
    requirements = selector.compile().requirements
    return Reach((NodeSelectorTerm(requirements),)) if requirements else EVERYWHERE


# In-tree volumes whose driver is a CSI driver by now


def _translated(volume: PersistentVolume, topology_key: str) -> PersistentVolume:
    """Return the volume with its zones under the CSI driver's label, from node affinity or else from labels."""
    affinity = volume.spec.node_affinity
    terms = () if affinity is None or affinity.required is None else affinity.required.node_selector_terms
    keys = {expression.key for term in terms for expression in term.match_expressions}
    old_style = _ZONE not in keys and (
        _OLD_ZONE in keys or (_ZONE not in volume.labels and _OLD_ZONE in volume.labels)
    )
    zone = _OLD_ZONE if old_style else _ZONE
    renamed = {_OLD_REGION: _REGION} if old_style else {}
    if any(
        expression.key == zone and expression.values
        for term in terms
        for expression in term.match_expressions
    ):
        renamed[zone] = topology_key
    # The label of a volume in several zones has their names, joined by "__".
    elif zones := {name.strip() for name in volume.labels.get(zone, "").split("__")} - {""}:
        added = Requirement(topology_key, Operator.IN, tuple(sorted(zones)))
        terms = tuple(
            attrs.evolve(term, match_expressions=(*term.match_expressions, added))
            for term in terms or (NodeSelectorTerm(),)
        )
    terms = tuple(
        attrs.evolve(
            term,
            match_expressions=tuple(
                attrs.evolve(each, key=renamed.get(each.key, each.key)) for each in term.match_expressions
            ),
        )
        for term in terms
    )
    if not terms:
        return volume
    return attrs.evolve(
        volume, spec=attrs.evolve(volume.spec, node_affinity=VolumeNodeAffinity(NodeSelector(terms)))
    )
