"""Lookup of a pod's claims, and of the steps to bind each."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from kschedfw import ClusterClient, KschedfwError, Node, Pod
from kschedfw.api import (
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    Volume,
    VolumeBindingMode,
    class_of_claim,
    class_of_volume,
)
from kschedfw.api.records import frozen
from kschedfw.api.volume_matching import SELECTED_NODE, VolumeCandidates, is_fully_bound
from kschedfw.api.volumes import claim_name, is_claim_of
from kschedfw.framework.diagnosis import Evidence
from kschedfw.plugins._assume_cache import AssumeCache
from kschedfw.plugins._node_terms import unmatched_terms
from kschedfw.plugins.volume_binding.pod_volumes import PodVolumes, Unbound, by_size
from kschedfw.plugins.volume_binding.provisioning import FINE, STATUSES, Provisioning
from kschedfw.plugins.volume_binding.reach import BoundReach


class VolumeClaimProblem(KschedfwError):
    """The error of a claim that keeps the pod from being scheduled; the text says which and why."""


@frozen(eq=False)
class VolumeClaims:
    """The claims and volumes of the cluster, with the assumed bindings."""

    cluster: ClusterClient
    claims: AssumeCache[PersistentVolumeClaim]
    volumes: AssumeCache[PersistentVolume]

    @classmethod
    def of(cls, cluster: ClusterClient) -> VolumeClaims:
        return cls(
            cluster, AssumeCache(PersistentVolumeClaim, cluster), AssumeCache(PersistentVolume, cluster)
        )

    def needs(self, pod: Pod) -> PodVolumes:
        """Return the requirements of the pod's claims.

        Raises:
            VolumeClaimProblem: a claim doesn't exist, or is in no usable state.
        """
        # All claims are checked before any is looked at more closely, so that what is said of several is what
        # kube-scheduler says.
        claims = [self._checked(pod, name, volume) for name, volume in _claims_of(pod)]
        bound: list[BoundReach | None] = []
        delayed: list[tuple[PersistentVolumeClaim, StorageClass]] = []
        for present in claims:
            claim = self.claims.latest(present)
            if is_fully_bound(claim):
                its_volume = self.volumes.get(claim.spec.volume_name)
                bound.append(None if its_volume is None else BoundReach.of(its_volume))
                continue
            storage_class = self._delaying_class(claim)
            # A claim that names its volume waits for the volume controller, whatever its class says.
            if storage_class is None or claim.spec.volume_name:
                raise VolumeClaimProblem("pod has unbound immediate PersistentVolumeClaims")
            delayed.append((claim, storage_class))
        return self._with_delayed(bound, delayed) if delayed else PodVolumes(tuple(bound))

    def evidence(self, pod: Pod, node: Node) -> Iterator[Evidence]:
        """Yield what keeps each claim of the pod off the node: its volume's node affinity, or no room for a volume."""
        for name, _ in _claims_of(pod):
            claim = self.claims.get(f"{pod.namespace}/{name}")
            if claim is None:
                continue
            if is_fully_bound(claim):
                yield from self._out_of_reach(claim, node)
            elif (storage_class := self._delaying_class(claim)) is not None:
                yield from self._not_available(claim, storage_class, node)

    def _out_of_reach(self, claim: PersistentVolumeClaim, node: Node) -> Iterator[Evidence]:
        volume = self.volumes.get(claim.spec.volume_name)
        names = {"claim": claim.key, "volume": claim.spec.volume_name}
        where = f"claim {claim.key}, volume {claim.spec.volume_name}"
        if volume is None:
            yield Evidence(where, "the volume isn't there", values=names, code="volume-missing")
            return
        reach = BoundReach.of(volume).on(node.name, self.cluster)
        if reach.terms is not None and not reach.has(node.labels):
            for each in unmatched_terms(reach.terms, node, where):
                yield attrs.evolve(each, values={**each.values, **names}, code="volume-node-affinity")

    def _not_available(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass, node: Node
    ) -> Iterator[Evidence]:
        pod_volumes = self._with_delayed([], [(claim, storage_class)])
        if (problems := pod_volumes.on(node, self.cluster).problems) != FINE:
            where = f"claim {claim.key}, StorageClass {storage_class.name}"
            reasons = ", ".join(STATUSES[problems].reasons)
            names = {"claim": claim.key, "storageClass": storage_class.name, "reason": reasons}
            yield Evidence(where, reasons, values=names, code="volume-not-available")

    def _checked(self, pod: Pod, name: str, volume: Volume) -> PersistentVolumeClaim:
        """Return the claim of the pod, as the cluster has it."""
        claim = self.cluster.get(PersistentVolumeClaim, f"{pod.namespace}/{name}")
        if claim is None:
            if volume.ephemeral is not None:
                raise VolumeClaimProblem(
                    f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
                )
            raise VolumeClaimProblem(f'persistentvolumeclaim "{name}" not found')
        if claim.status.phase == "Lost":
            raise VolumeClaimProblem(
                f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
            )
        if claim.metadata.deletion_timestamp is not None:
            raise VolumeClaimProblem(f'persistentvolumeclaim "{name}" is being deleted')
        if volume.ephemeral is not None and not is_claim_of(pod, claim):
            raise VolumeClaimProblem(f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)")
        return claim

    def _delaying_class(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        """Return the claim's storage class if it has WaitForFirstConsumer binding; else None."""
        name = class_of_claim(claim)
        storage_class = self.cluster.get(StorageClass, name) if name else None
        if storage_class is None:
            return None
        waits = storage_class.volume_binding_mode == VolumeBindingMode.WAIT_FOR_FIRST_CONSUMER
        return storage_class if waits else None

    def _with_delayed(
        self,
        bound: list[BoundReach | None],
        delayed: list[tuple[PersistentVolumeClaim, StorageClass]],
    ) -> PodVolumes:
        selected, unbound = [], []
        for claim, storage_class in delayed:
            provisioning = Provisioning.of(claim, storage_class, self.cluster)
            node_name = claim.annotations.get(SELECTED_NODE)
            if node_name is not None:
                selected.append((node_name, provisioning))
                continue
            # kube-scheduler's cache lists volumes by class, so even a volume that names the claim must be of
            # its class.
            of_class = (
                volume for volume in self.volumes.list() if class_of_volume(volume) == storage_class.name
            )
            unbound.append(Unbound(claim, VolumeCandidates.of(claim, of_class), provisioning))
        return PodVolumes(tuple(bound), tuple(selected), by_size(unbound))


def _claims_of(pod: Pod) -> Iterator[tuple[str, Volume]]:
    for volume in pod.storage:
        if (name := claim_name(pod, volume)) is not None:
            yield name, volume
