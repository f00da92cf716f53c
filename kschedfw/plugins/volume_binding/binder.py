"""Reservation of volumes for a pod, and their binding (kube-scheduler `volumeBinder`)."""

from __future__ import annotations

import threading

import attrs

from kschedfw import Clock, ClusterClient, KschedfwError, Node, Pod
from kschedfw.api import Named, PersistentVolume, PersistentVolumeClaim
from kschedfw.api.records import define
from kschedfw.api.volume_matching import SELECTED_NODE, annotated, bound_to_claim, is_fully_bound
from kschedfw.framework.waiting_pods import PodInPreBind
from kschedfw.plugins.volume_binding.claims import VolumeClaims
from kschedfw.plugins.volume_binding.pod_volumes import ClaimBinding, NodeVolumes
from kschedfw.plugins.volume_binding.reach import BoundReach

# kube-scheduler's interval.
_POLL_INTERVAL = 1.0
"""The seconds between two looks at the claims."""


class VolumeBindingError(KschedfwError):
    """The error of a pod's volumes that couldn't be bound; the pod has to be scheduled again."""


@define(eq=False)
class VolumeReservation:
    """A pod's volumes and claims with the changes that bind them on its node.

    `bindings` have volumes that name the claim, `claims` name the node for which their volume is to be
    provisioned. Another pod with the same claim may have assumed some of these already; `own_volumes` and
    `own_claims` are those assumed for this pod.
    """

    bindings: list[ClaimBinding] = attrs.field(factory=list)
    claims: list[PersistentVolumeClaim] = attrs.field(factory=list)
    own_volumes: list[PersistentVolume] = attrs.field(factory=list)
    own_claims: list[PersistentVolumeClaim] = attrs.field(factory=list)


class VolumeBinder:
    """The binder of volumes: assumes a pod's bindings in memory, then writes them to the cluster."""

    def __init__(self, claims: VolumeClaims, clock: Clock, timeout: float) -> None:
        self._claims = claims
        self._cluster: ClusterClient = claims.cluster
        self._clock = clock
        self._timeout = timeout

    def reserve(self, decided: NodeVolumes, node_name: str) -> VolumeReservation:
        """Assume the bindings, so that no other pod gets the volumes.

        Raises:
            VolumeBindingError: a volume or claim has changed since the decision; nothing is assumed then.
        """
        reservation = VolumeReservation()
        try:
            for volume, claim in decided.bindings:
                if self._claims.claims.get(claim.key) != claim:
                    raise _out_of_sync(claim)
                bound = bound_to_claim(volume, claim)
                if bound is not volume:
                    if not self._claims.volumes.assume(bound):
                        raise _out_of_sync(volume)
                    reservation.own_volumes.append(bound)
                reservation.bindings.append((bound, claim))
            for provisioning in decided.provisionings:
                claim = provisioning.claim
                selected = annotated(claim, SELECTED_NODE, node_name)
                if selected is not claim:
                    if not self._claims.claims.assume(selected):
                        raise _out_of_sync(claim)
                    reservation.own_claims.append(selected)
                reservation.claims.append(selected)
        except VolumeBindingError:
            self.give_up(reservation)
            raise
        return reservation

    def give_up(self, reservation: VolumeReservation) -> None:
        """Drop the assumed state of the pod's volumes; bindings that are written to the cluster stay."""
        for volume in reservation.own_volumes:
            self._claims.volumes.restore(volume)
        for claim in reservation.own_claims:
            self._claims.claims.restore(claim)

    def bind(
        self,
        reservation: VolumeReservation,
        pod: Pod,
        node_name: str,
        in_pre_bind: PodInPreBind | None = None,
    ) -> None:
        """Write the reservation to the cluster, and wait until all claims are bound, or the pod is cancelled.

        Raises:
            VolumeBindingError: the claims weren't bound in time, another client undid a binding, or the pod
                won't be bound.
            Exception: whatever the cluster raises.
        """
        written = self._write(reservation, node_name)
        try:
            self._wait(reservation, written, pod, node_name, in_pre_bind)
        except VolumeBindingError as error:
            raise VolumeBindingError(f"binding volumes: {error}") from error

    def _write(self, reservation: VolumeReservation, node_name: str) -> dict[str, Named]:
        """Write the changes that the cluster doesn't have yet. Return the written objects, by kind and key."""
        written: dict[str, Named] = {}
        for volume, claim in reservation.bindings:
            if self._cluster.get(PersistentVolumeClaim, claim.key) is None:
                # kube-scheduler would write all the same, and bind the volume to a claim that is gone.
                raise VolumeBindingError(f'could not find v1.PersistentVolumeClaim "{claim.key}"')
            there = self._cluster.get(PersistentVolume, volume.key)
            # Another pod with the same claim may have written it already.
            if there is None or there.spec.claim_ref is None or there.spec.claim_ref.uid != claim.uid:
                written[f"volume {volume.key}"] = self._cluster.update(volume)
        for claim in reservation.claims:
            present = self._cluster.get(PersistentVolumeClaim, claim.key)
            if present is None or present.annotations.get(SELECTED_NODE) != node_name:
                written[f"claim {claim.key}"] = self._cluster.update(claim)
        return written

    def _wait(
        self,
        reservation: VolumeReservation,
        written: dict[str, Named],
        pod: Pod,
        node_name: str,
        in_pre_bind: PodInPreBind | None,
    ) -> None:
        # Nobody notifies it: a clock waits on a condition, real or virtual.
        condition = threading.Condition()
        deadline = self._clock.now() + self._timeout
        while not self._is_done(reservation, written, pod, node_name):
            if in_pre_bind is not None and in_pre_bind.cancelled is not None:
                raise VolumeBindingError(in_pre_bind.cancelled)
            now = self._clock.now()
            if now >= deadline:
                raise VolumeBindingError("context deadline exceeded")
            with condition:
                self._clock.wait_until(condition, min(deadline, now + _POLL_INTERVAL))

    def _is_done(
        self, reservation: VolumeReservation, written: dict[str, Named], pod: Pod, node_name: str
    ) -> bool:
        """Return whether all claims are bound.

        Raises:
            VolumeBindingError: a claim won't be bound, or is bound to a volume that the pod can't use on the node.
        """
        node = self._cluster.get(Node, node_name)
        if node is None:
            raise VolumeBindingError(f'failed to get node "{node_name}": node "{node_name}" not found')
        present = self._cluster.get(Pod, pod.key)
        if present is None or present.uid != pod.uid:
            raise VolumeBindingError(f'pod does not exist any more: pod "{pod.name}" not found')
        return all(
            self._is_bound(volume, claim, written, node) for volume, claim in reservation.bindings
        ) and all(self._is_made(claim, written, node) for claim in reservation.claims)

    def _is_bound(
        self, volume: PersistentVolume, claim: PersistentVolumeClaim, written: dict[str, Named], node: Node
    ) -> bool:
        there = self._cluster.get(PersistentVolume, volume.key)
        its_claim = self._cluster.get(PersistentVolumeClaim, claim.key)
        if there is None or its_claim is None:
            raise VolumeBindingError(
                f"failed to check binding: could not find {_lacking(volume, there, claim)}"
            )
        if _is_older(there, written.get(f"volume {volume.key}")):
            return False
        self._check_reach(there, node)
        if there.spec.claim_ref is None or not there.spec.claim_ref.uid:
            # The volume controller, or a user, has undone the binding.
            raise VolumeBindingError(f'ClaimRef got reset for pv "{volume.name}"')
        return is_fully_bound(its_claim)

    def _is_made(self, claim: PersistentVolumeClaim, written: dict[str, Named], node: Node) -> bool:
        there = self._cluster.get(PersistentVolumeClaim, claim.key)
        if there is None:
            raise VolumeBindingError(
                f'failed to check provisioning pvc: could not find v1.PersistentVolumeClaim "{claim.key}"'
            )
        if _is_older(there, written.get(f"claim {claim.key}")):
            return False
        if there.annotations.get(SELECTED_NODE, "") != node.name:
            # A provisioner removes the annotation to say that it couldn't make the volume.
            raise VolumeBindingError(f'provisioning failed for PVC "{claim.name}"')
        if there.spec.volume_name:
            volume = self._cluster.get(PersistentVolume, there.spec.volume_name)
            # the volume isn't visible yet; if it was deleted, its controller unbinds the claim
            if volume is None:
                return False
            self._check_reach(volume, node)
        return is_fully_bound(there)

    def _check_reach(self, volume: PersistentVolume, node: Node) -> None:
        if not BoundReach.of(volume).has(node.labels, node.name, self._cluster):
            raise VolumeBindingError(
                f'pv "{volume.name}" node affinity doesn\'t match node "{node.name}": no matching NodeSelectorTerms'
            )


def _out_of_sync(obj: Named) -> VolumeBindingError:
    return VolumeBindingError(f'{type(obj).__name__} "{obj.key}" is out of sync: it has changed meanwhile')


def _lacking(volume: PersistentVolume, there: PersistentVolume | None, claim: PersistentVolumeClaim) -> str:
    if there is None:
        return f'v1.PersistentVolume "{volume.name}"'
    return f'v1.PersistentVolumeClaim "{claim.key}"'


def _is_older(there: Named, written: Named | None) -> bool:
    """Tell whether the cluster's copy is older than the written object, since reads may lag."""
    if written is None:
        return False
    old, new = there.metadata.resource_version, written.metadata.resource_version
    return old.isdecimal() and new.isdecimal() and int(old) < int(new)
