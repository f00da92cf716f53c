"""The controller that binds claims and provisions volumes, for a cluster in memory, and the volumes it makes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final, TypeAlias

import attrs

from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.meta import ObjectMeta, OwnerReference
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.selectors import NodeSelector, NodeSelectorTerm, Operator, Requirement
from kschedfw.api.storage import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    StorageClass,
    TopologySelectorTerm,
    VolumeBindingMode,
    VolumeNodeAffinity,
    VolumePhase,
)
from kschedfw.api.volume_matching import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    NO_PROVISIONER,
    SELECTED_NODE,
    VolumeCandidates,
    annotated,
    bound_to_claim,
    class_of_claim,
    class_of_volume,
    is_bound_to,
    is_fully_bound,
    requested_storage,
    without_annotation,
)
from kschedfw.api.volumes import CSISource, claim_name, is_claim_of
from kschedfw.cluster.errors import ClusterError
from kschedfw.cluster.memory import InMemoryCluster
from kschedfw.cluster.protocol import EventType, WatchEvent

_Due: TypeAlias = tuple[type[PersistentVolume] | type[PersistentVolumeClaim] | type[Pod], str]


class VolumeController:
    """Kubernetes' volume controllers and provisioners, as far as scheduling depends on them.

    * Claims without a class get the default one.
    * A claim is bound to the volume that names it, or that it names. Otherwise, unless its class waits for the
      first consumer, it is bound to the smallest volume that fits.
    * If there is none, or a node was selected for the claim, a volume is provisioned, if the class has a
      provisioner. If that fails, the selected node is removed from the claim.
    * A volume whose claim is gone is released, or deleted if it was provisioned for the claim.
    * Pods get the claims of their generic ephemeral volumes, which are deleted with them.

    It reacts to a change before the write that made it returns; or, if `on_demand`, not before `sync` is
    called.

    An API server gives the objects that it stores a creation timestamp. A claim that has one, and neither a
    volume nor a consumer to wait for, was left pending by its real provisioner: with `provision_observed=False`
    it stays so. Neither is a volume released then that is Bound at the start to a claim that isn't there: its claim
    wasn't exported.
    """

    def __init__(
        self, cluster: InMemoryCluster, *, on_demand: bool = False, provision_observed: bool = True
    ) -> None:
        self._cluster = cluster
        self._provision_observed = provision_observed
        # Existing objects are only noted at first: a claim that is looked at before all volumes are known would miss
        # the one that names it.
        self._on_demand = True
        self._due: dict[_Due, None] = {}
        self._naming: defaultdict[str, dict[str, None]] = defaultdict(dict)
        """The volumes whose claimRef is a claim, by the claim's key."""
        self._waiting: dict[str, None] = {}
        """Claims that wait for any volume that fits."""
        self._unseen = frozenset() if provision_observed else _claims_not_exported(cluster)
        self.close = cluster.watch(self._handle)
        self._on_demand = on_demand
        if not on_demand:
            self.sync()

    def sync(self) -> None:
        """Do all work that is due."""
        while self._due:
            kind, key = next(iter(self._due))
            del self._due[kind, key]
            try:
                if kind is PersistentVolume:
                    self._sync_volume(key)
                elif kind is PersistentVolumeClaim:
                    self._sync_claim(key)
                else:
                    self._sync_pod(key)
            except ClusterError:
                # Another thread has changed the object; the event of that change leads here again.
                continue

    def _handle(self, event: WatchEvent) -> None:
        obj = event.object
        if isinstance(obj, PersistentVolume):
            self._note(obj, event.old, gone=event.type is EventType.DELETED)
        elif isinstance(obj, PersistentVolumeClaim):
            self._due[PersistentVolumeClaim, obj.key] = None
        elif isinstance(obj, StorageClass):
            self._due.update(dict.fromkeys((PersistentVolumeClaim, key) for key in self._waiting))
        elif isinstance(obj, Pod) and obj.spec.volumes and any(each.ephemeral for each in obj.spec.volumes):
            if event.type is EventType.DELETED:
                self._remove_claims_of(obj)
            else:
                self._due[Pod, obj.key] = None
        if not self._on_demand:
            self.sync()

    def _note(self, volume: PersistentVolume, old: object | None, *, gone: bool) -> None:
        for state in (old, volume):
            if isinstance(state, PersistentVolume) and (key := _claim_key(state)) is not None:
                self._naming[key].pop(volume.name, None)
                self._due[PersistentVolumeClaim, key] = None
        if not gone:
            self._due[PersistentVolume, volume.key] = None
            if (key := _claim_key(volume)) is not None:
                self._naming[key][volume.name] = None

    # Volumes

    def _sync_volume(self, key: str) -> None:
        volume = self._cluster.get(PersistentVolume, key)
        if volume is None:
            return
        reference = volume.spec.claim_ref
        claim_key = _claim_key(volume)
        # A claimRef without uid was written by hand: the volume is Available until that claim takes it, as in
        # Kubernetes' syncVolume.
        if reference is None or claim_key is None or not reference.uid:
            self._set_phase(volume, "Available")
            if claim_key is not None:
                if self._cluster.get(PersistentVolumeClaim, claim_key) is not None:
                    self._due[PersistentVolumeClaim, claim_key] = None
            elif volume.status.phase == "Available":
                self._due.update(dict.fromkeys((PersistentVolumeClaim, key) for key in self._waiting))
            return
        claim = self._cluster.get(PersistentVolumeClaim, claim_key)
        if claim is None and claim_key in self._unseen and volume.status.phase == "Bound":
            return
        if claim is None or claim.uid != reference.uid:
            if is_provisioned(volume):
                self._cluster.delete(volume)
            else:
                self._set_phase(volume, "Released")
        elif claim.spec.volume_name not in ("", volume.name):
            self._unbind(volume)
        else:
            self._due[PersistentVolumeClaim, claim_key] = None

    def _unbind(self, volume: PersistentVolume) -> None:
        """Release a volume whose claim has been bound to another one."""
        if is_provisioned(volume):
            self._cluster.delete(volume)
        elif BOUND_BY_CONTROLLER in volume.annotations:
            free = attrs.evolve(
                without_annotation(volume, BOUND_BY_CONTROLLER),
                spec=attrs.evolve(volume.spec, claim_ref=None),
                status=VolumePhase("Available"),
            )
            self._cluster.update(free)

    def _set_phase(self, volume: PersistentVolume, phase: str) -> None:
        self._cluster.update(attrs.evolve(volume, status=VolumePhase(phase)))

    # Claims

    def _sync_claim(self, key: str) -> None:
        self._waiting.pop(key, None)
        claim = self._cluster.get(PersistentVolumeClaim, key)
        if claim is None:
            # The claim was deleted: check the volumes that name it.
            self._due.update(dict.fromkeys((PersistentVolume, name) for name in self._naming.get(key, ())))
        elif claim.metadata.deletion_timestamp is not None:
            return
        elif is_fully_bound(claim):
            self._keep_bound(claim)
        elif claim.spec.volume_name:
            self._bind_as_wished(claim)
        else:
            self._find_volume(claim)

    def _keep_bound(self, claim: PersistentVolumeClaim) -> None:
        volume = self._cluster.get(PersistentVolume, claim.spec.volume_name)
        if volume is None or not (volume.spec.claim_ref is None or is_bound_to(volume, claim)):
            # A volume of that name may come: Kubernetes' controller finds it in its periodic resync.
            self._waiting[claim.key] = None
            self._cluster.update(attrs.evolve(claim, status=VolumePhase("Lost")))
        else:
            self._bind(claim, volume)

    def _bind_as_wished(self, claim: PersistentVolumeClaim) -> None:
        volume = self._cluster.get(PersistentVolume, claim.spec.volume_name)
        if volume is None:
            self._waiting[claim.key] = None
        elif volume.spec.claim_ref is None or is_bound_to(volume, claim):
            self._bind(claim, volume)

    def _find_volume(self, claim: PersistentVolumeClaim) -> None:
        claim = self._with_default_class(claim)
        naming = (self._cluster.get(PersistentVolume, name) for name in self._naming.get(claim.key, ()))
        # Before the class is looked at: a volume that names the claim is taken even if the class waits for a
        # consumer.
        prebound = VolumeCandidates.of(claim, (volume for volume in naming if volume is not None)).prebound
        if prebound:
            self._bind(claim, prebound[0])
            return
        name = class_of_claim(claim)
        storage_class = self._cluster.get(StorageClass, name) if name else None
        if (
            storage_class is None
            or storage_class.volume_binding_mode != VolumeBindingMode.WAIT_FOR_FIRST_CONSUMER
        ):
            of_class = (
                each for each in self._cluster.list(PersistentVolume) if class_of_volume(each) == name
            )
            if available := VolumeCandidates.of(claim, of_class).available:
                self._bind(claim, available[0])
                return
        elif SELECTED_NODE not in claim.annotations:
            # A pod that needs the claim has it bound later.
            return
        self._waiting[claim.key] = None
        if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
            return
        observed = claim.metadata.creation_timestamp is not None and SELECTED_NODE not in claim.annotations
        if self._provision_observed or not observed:
            self._provision(claim, storage_class)

    def _with_default_class(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        if claim.spec.storage_class_name is not None:
            return claim
        defaults = [each for each in self._cluster.list(StorageClass) if each.is_default]
        if not defaults:
            return claim
        # Of several default classes the newest, as in Kubernetes; a cluster lists the oldest first.
        spec = attrs.evolve(claim.spec, storage_class_name=defaults[-1].name)
        return self._cluster.update(attrs.evolve(claim, spec=spec))

    def _provision(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> None:
        node_name = claim.annotations.get(SELECTED_NODE)
        node = self._cluster.get(Node, node_name) if node_name is not None else None
        volume = None
        if node is not None or node_name is None:
            csi_node = None if node is None else self._cluster.get(CSINode, node.name)
            volume = provisioned(claim, storage_class, node, csi_node)
        if volume is not None:
            self._bind(claim, self._cluster.add(volume))
        elif node_name is not None:
            self._cluster.update(without_annotation(claim, SELECTED_NODE))

    def _bind(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        bound = attrs.evolve(bound_to_claim(volume, claim), status=VolumePhase("Bound"))
        if not claim.spec.volume_name:
            claim = annotated(claim, BOUND_BY_CONTROLLER, "yes")
        claim = annotated(claim, BIND_COMPLETED, "yes")
        spec = attrs.evolve(claim.spec, volume_name=volume.name)
        # The volume first, as in Kubernetes: if the claim has changed meanwhile, the volume's claimRef leads to the
        # same binding. Objects that are bound already don't change, so no event follows and the controller comes to
        # rest.
        self._cluster.update(bound)
        self._cluster.update(attrs.evolve(claim, spec=spec, status=VolumePhase("Bound")))

    # Generic ephemeral volumes

    def _sync_pod(self, key: str) -> None:
        pod = self._cluster.get(Pod, key)
        if pod is None or pod.is_terminating or pod.is_terminal:
            return
        for volume in pod.spec.volumes:
            template = None if volume.ephemeral is None else volume.ephemeral.volume_claim_template
            name = claim_name(pod, volume)
            if template is None or name is None:
                continue
            if self._cluster.get(PersistentVolumeClaim, f"{pod.namespace}/{name}") is not None:
                # If the claim of that name belongs to another pod, this pod can't run, as in Kubernetes.
                continue
            metadata = ObjectMeta(
                name=name,
                namespace=pod.namespace,
                labels=template.metadata.labels,
                annotations=template.metadata.annotations,
                owner_references=(OwnerReference("Pod", pod.name, pod.uid, "v1", controller=True),),
            )
            self._cluster.add(PersistentVolumeClaim(metadata, template.spec))

    def _remove_claims_of(self, pod: Pod) -> None:
        for volume in pod.spec.volumes:
            if volume.ephemeral is not None:
                claim = self._cluster.get(PersistentVolumeClaim, f"{pod.namespace}/{claim_name(pod, volume)}")
                if claim is not None and is_claim_of(pod, claim):
                    self._cluster.delete(claim)


def _claims_not_exported(cluster: InMemoryCluster) -> frozenset[str]:
    """Return the claims that Bound volumes name and that aren't in the cluster."""
    bound = (each for each in cluster.list(PersistentVolume) if each.status.phase == "Bound")
    keys = (key for each in bound if (key := _claim_key(each)) is not None)
    return frozenset(key for key in keys if cluster.get(PersistentVolumeClaim, key) is None)


def _claim_key(volume: PersistentVolume) -> str | None:
    """Return the key of the claim that the volume names; None if it names none."""
    reference = volume.spec.claim_ref
    return None if reference is None else f"{reference.namespace}/{reference.name}"


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
        # A term without expressions matches no node, as in Kubernetes.
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
    """Tell whether the volume was provisioned for a claim, so that it is deleted with the claim."""
    return PROVISIONED_BY in volume.annotations
