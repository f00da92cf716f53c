"""Reservation of allocated devices in memory, and its writing to the claims' status (kube-scheduler `bindClaim`)."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final

import attrs

from kschedfw import Handle, KschedfwError, MemberStates, Node, Pod, record_event, retry_on_conflict
from kschedfw.api import (
    CLAIM_FINALIZER,
    EMPTY,
    MAX_RESERVATIONS,
    AllocationResult,
    ConsumerReference,
    DeviceClaim,
    DeviceCondition,
    PodExtendedResourceClaimStatus,
    ResourceClaim,
    ResourceClaimSpec,
)
from kschedfw.api.reading import quoted
from kschedfw.metrics import DevicePreparation
from kschedfw_devices.dynamic_resources.decision import NodeDevices, PodDevices, binding_readiness, is_overdue
from kschedfw_devices.dynamic_resources.extended import NO_REQUESTS, ExtendedRequests, generated_name
from kschedfw_devices.dynamic_resources.manager import ResourceClaims, without_allocation
from kschedfw_devices.dynamic_resources.requests import allocation_result

_log = logging.getLogger(__name__)

_POLL_INTERVAL: Final = 5.0
"""Seconds between looks at devices that have to be prepared."""


class ClaimBindingError(KschedfwError):
    """The error of claims that couldn't be reserved for a pod; the pod has to be scheduled again."""

    preparation = DevicePreparation.ERROR
    """The end of a wait for devices that ended by this error, in metrics."""


class DeviceBindingTimeoutError(ClaimBindingError):
    """The error of devices that weren't ready in time."""

    preparation = DevicePreparation.TIMEOUT

    def __init__(self, cause: str) -> None:
        super().__init__(f"device binding timeout: {cause}")


class DeviceBindingFailedError(ClaimBindingError):
    """The error of a device that can't be made ready, as its driver says by a condition."""

    preparation = DevicePreparation.FAILURE

    def __init__(self, claim: ResourceClaim, failed: DeviceCondition) -> None:
        super().__init__(
            f"device binding failed: claim={claim.name}, reason={failed.reason}, message={quoted(failed.message)}"
        )


@attrs.define(eq=False)
class DeviceReservation:
    """The claims of a pod on its node, and by uid the new allocations among them.

    `special` is the claim for extended resources, which `extended` describes; `made` is that claim once it is
    in the cluster. `shared` are allocations of other members of the pod's group that aren't written yet: the
    member that is bound first writes them.
    """

    claims: tuple[ResourceClaim, ...]
    allocations: dict[str, AllocationResult]
    special: ResourceClaim | None = None
    extended: ExtendedRequests = NO_REQUESTS
    made: ResourceClaim | None = None
    shared: Mapping[str, AllocationResult] = EMPTY


@attrs.define(eq=False)
class ClaimBinder:
    """The binder of claims: reserves devices in memory, then writes the allocations to the cluster."""

    _claims: ResourceClaims
    _handle: Handle
    _timeout: float
    _joins_configurations: bool

    def reserve(
        self, devices: PodDevices, node: Node, decided: NodeDevices, trial: MemberStates | None = None
    ) -> DeviceReservation:
        """Reserve the devices in memory. Only members of the same group, while it is on trial, may share a claim."""
        allocations = {
            wanted.claim.uid: allocation_result(
                wanted, found, node, self._share_id, joins_configurations=self._joins_configurations
            )
            for wanted, found in decided.found
        }
        for uid, allocation in allocations.items():
            self._claims.put_in_flight(uid, allocation, trial)
        special = devices.special if decided.extended.requests else None
        shared = {
            claim.uid: given
            for claim in devices.claims
            if claim.uid not in allocations and (given := self._claims.book.in_flight(claim.uid)) is not None
        }
        return DeviceReservation(tuple(devices.claims), allocations, special, decided.extended, shared=shared)

    def _share_id(self) -> str:
        return str(uuid.UUID(int=self._handle.random.getrandbits(128), version=4))

    def give_up(self, reservation: DeviceReservation, pod: Pod) -> None:
        """Release the devices, and withdraw the pod's reservations of claims in the cluster."""
        for uid in reservation.allocations:
            self._claims.landed(uid)
        for claim in reservation.claims:
            present = self._claims.cache.get(claim.key)
            if present is not None and present.is_reserved_for(pod):
                try:
                    self._change(present, lambda each: _without_reservation(each, pod))
                # As in kube-scheduler, the pod's next attempt takes what is left: the other claims come first.
                except Exception as error:
                    _log.warning("can't withdraw the reservation of claim %s: %s", claim.key, error)
        if reservation.made is not None:
            self.remove(reservation.made)
            reservation.made = None

    def bind(
        self,
        reservation: DeviceReservation,
        pod: Pod,
        node_name: str,
    ) -> None:
        """Write the allocations, and wait until devices that need preparation are ready, or the pod is cancelled.

        Raises:
            ClaimBindingError: a claim is gone or another pod's by now, or its devices aren't ready in time.
            Exception: whatever the cluster raises.
        """
        self.write(reservation, pod)
        if reservation.special is not None:
            self._make(reservation, reservation.special, pod)
        if drivers := self._preparing(reservation):
            message = f"waiting for binding conditions for device on node {node_name}"
            record_event(self._handle.cluster, pod, "Normal", "BindingConditionsPending", message)
            self._wait(reservation, pod, drivers)

    def write(self, reservation: DeviceReservation, pod: Pod) -> None:
        """Write allocations and reservations into the pod's claims."""
        for claim in reservation.claims:
            shared = reservation.shared.get(claim.uid)
            allocation = reservation.allocations.get(claim.uid, shared)
            # Pods that share the claim write it one after the other: of writes at the same time one would succeed and
            # the others conflict, and with many pods some would conflict each time.
            with self._claims.alone(claim.uid):
                present = self._claims.cache.get(claim.key)
                if present is None or present.uid != claim.uid:
                    raise ClaimBindingError(f'claim "{claim.key}" got deleted in the meantime')
                self._change(present, partial(self._bound, allocation=allocation, pod=pod))
                # After the write: at each moment the devices are in use by the allocation in flight, by the written
                # one, or by both.
                self._claims.landed(claim.uid)

    def _bound(self, present: ResourceClaim, allocation: AllocationResult | None, pod: Pod) -> ResourceClaim:
        """Return the claim with the allocation, if it has none, and with the pod among its consumers."""
        if present.metadata.deletion_timestamp is not None:
            raise ClaimBindingError(f"claim {present.key} got deleted in the meantime")
        given = present.status.allocation
        if allocation is not None and given is not None and not _is_same(given, allocation):
            raise ClaimBindingError(f"claim {present.key} got allocated elsewhere in the meantime")
        if allocation is None and given is None:
            raise ClaimBindingError(f"claim {present.key} got deallocated elsewhere in the meantime")
        # A fellow member of the pod's group that shares the claim may have been bound before.
        allocated = (
            present if allocation is None or given is not None else self._allocated(present, allocation)
        )
        return self._reserved(allocated, pod)

    def _reserved(self, claim: ResourceClaim, pod: Pod) -> ResourceClaim:
        """Return the allocated claim with the pod among its consumers.

        The allocation gets a timestamp if it has none, even one made by another pod: without a timestamp its
        devices would never be overdue.
        """
        if claim.is_reserved_for(pod):
            return claim
        if len(claim.status.reserved_for) >= MAX_RESERVATIONS:
            raise ClaimBindingError(
                f"claim {claim.key} is reserved for {MAX_RESERVATIONS} pods already, no more are possible"
            )
        mine = ConsumerReference(resource="pods", name=pod.name, uid=pod.uid)
        allocation = claim.status.allocation
        if allocation is not None and allocation.allocation_timestamp is None:
            now = datetime.fromtimestamp(self._handle.clock.now(), UTC)
            allocation = attrs.evolve(allocation, allocation_timestamp=now)
        status = attrs.evolve(
            claim.status, allocation=allocation, reserved_for=(*claim.status.reserved_for, mine)
        )
        return attrs.evolve(claim, status=status)

    @staticmethod
    def _allocated(claim: ResourceClaim, allocation: AllocationResult) -> ResourceClaim:
        metadata = claim.metadata
        if CLAIM_FINALIZER not in metadata.finalizers:
            metadata = attrs.evolve(metadata, finalizers=(*metadata.finalizers, CLAIM_FINALIZER))
        status = attrs.evolve(claim.status, allocation=allocation)
        return attrs.evolve(claim, metadata=metadata, status=status)

    def _make(self, reservation: DeviceReservation, special: ResourceClaim, pod: Pod) -> None:
        """Create the claim for extended resources, and name it in the pod's status."""
        # With its own name beside the prefix: if the answer gets lost, the claim is found by it, and not made twice.
        name = generated_name(special.metadata.generate_name, self._handle.random)
        metadata = attrs.evolve(special.metadata, name=name, uid="", finalizers=(CLAIM_FINALIZER,))
        spec = ResourceClaimSpec(DeviceClaim(reservation.extended.requests))
        try:
            made = self._handle.cluster.add(attrs.evolve(special, metadata=metadata, spec=spec))
        except Exception:
            self._handle.metrics.claim_created(success=False)
            raise
        self._handle.metrics.claim_created(success=True)
        # Known from here on, so that it is removed if anything fails. Its status is a write of its own, as the server
        # wants it: a controller may change the claim before.
        reservation.made = made
        allocation = reservation.allocations[special.uid]
        reservation.made = self._change(made, partial(self._bound, allocation=allocation, pod=pod))
        self._claims.landed(special.uid)
        present = self._handle.cluster.get(Pod, pod.key)
        if present is not None and present.uid == pod.uid:
            told = PodExtendedResourceClaimStatus(reservation.extended.mappings, reservation.made.name)
            retry_on_conflict(
                self._handle.cluster,
                present,
                lambda each: each.with_status(attrs.evolve(each.status, extended_resource_claim_status=told)),
            )

    def _change(
        self, claim: ResourceClaim, change: Callable[[ResourceClaim], ResourceClaim]
    ) -> ResourceClaim:
        """Change the claim, and again what others have made of it meanwhile."""
        return self._assumed(retry_on_conflict(self._handle.cluster, claim, change))

    def _assumed(self, stored: ResourceClaim) -> ResourceClaim:
        """Assume a claim that was written, since reads lag behind writes."""
        if self._handle.cluster.get(ResourceClaim, stored.key) != stored:
            self._claims.cache.assume(stored)
        return stored

    def _wait(
        self,
        reservation: DeviceReservation,
        pod: Pod,
        drivers: Sequence[str],
    ) -> None:
        clock = self._handle.clock
        started = clock.now()
        result = DevicePreparation.ERROR
        try:
            self._wait_until_ready(reservation, pod, started + self._timeout)
            result = DevicePreparation.SUCCESS
        except ClaimBindingError as error:
            result = error.preparation
            raise
        finally:
            profile, seconds = self._handle.profile_name, clock.now() - started
            for driver in drivers:
                self._handle.metrics.devices_prepared(profile, driver, result, seconds)

    def _wait_until_ready(self, reservation: DeviceReservation, pod: Pod, deadline: float) -> None:
        in_pre_bind = self._handle.pods_in_pre_bind.get(pod.uid)
        # Nobody notifies it: a clock waits on a condition, real or virtual.
        condition = threading.Condition()
        clock = self._handle.clock
        while not self._are_ready(reservation, pod):
            if in_pre_bind is not None and in_pre_bind.cancelled is not None:
                raise ClaimBindingError(in_pre_bind.cancelled)
            now = clock.now()
            if now >= deadline:
                raise DeviceBindingTimeoutError("context deadline exceeded")
            with condition:
                clock.wait_until(condition, min(deadline, now + _POLL_INTERVAL))

    def _preparing(self, reservation: DeviceReservation) -> Sequence[str]:
        """Return the drivers that prepare devices of the pod before it is bound."""
        written = (claim.status.allocation for claim in reservation.claims)
        drivers = {
            result.driver
            for allocation in (*written, *reservation.allocations.values())
            if allocation is not None
            for result in allocation.devices.results
            if result.binding_conditions
        }
        return sorted(drivers)

    def _are_ready(self, reservation: DeviceReservation, pod: Pod) -> bool:
        claims = reservation.claims
        if (made := reservation.made) is not None:
            claims = (*claims, made)
            # Reads lag behind writes: the cluster's copy may have the claim without its allocation, or not yet.
            self._claims.cache.assume(made)
            if self._claims.cache.get(made.key) is None:
                return False
        for claim in claims:
            present = self._claims.cache.get(claim.key)
            if present is None or present.status.allocation is None or not present.is_reserved_for(pod):
                raise ClaimBindingError(f"claim {claim.key} is not the pod's any more")
            readiness = binding_readiness(present)
            if isinstance(readiness, DeviceCondition):
                # Freed, so that another attempt may get other devices.
                self._change(present, partial(_freed_of, allocation=present.status.allocation))
                raise DeviceBindingFailedError(present, readiness)
            if not readiness:
                # The allocation may be much older than this pod's wait, if other pods had the claim before.
                if is_overdue(present, self._handle.clock.now(), self._timeout):
                    raise DeviceBindingTimeoutError(f"claim={present.name}")
                return False
        return True

    def deallocate(self, claim: ResourceClaim) -> None:
        """Free a claim, so that it can be allocated again.

        Raises ConflictError if it has changed: then another pod may use it, as in kube-scheduler.
        """
        self._assumed(self._handle.cluster.update(without_allocation(claim)))

    def remove(self, claim: ResourceClaim) -> None:
        """Delete a claim that was made for extended resources, and free its devices."""
        # The finalizer first: with it the claim would stay after its deletion.
        self._handle.cluster.delete(self._change(claim, _released))


def _without_reservation(claim: ResourceClaim, pod: Pod) -> ResourceClaim:
    others = tuple(each for each in claim.status.reserved_for if each.uid != pod.uid)
    return attrs.evolve(claim, status=attrs.evolve(claim.status, reserved_for=others))


def _freed_of(claim: ResourceClaim, allocation: AllocationResult) -> ResourceClaim:
    """Return the claim without this allocation; as it is if it has another one by now, or none."""
    return without_allocation(claim) if claim.status.allocation == allocation else claim


def _released(claim: ResourceClaim) -> ResourceClaim:
    """Return the claim without its allocation, and without the finalizer that guards it."""
    finalizers = tuple(each for each in claim.metadata.finalizers if each != CLAIM_FINALIZER)
    return attrs.evolve(
        without_allocation(claim), metadata=attrs.evolve(claim.metadata, finalizers=finalizers)
    )


def _is_same(given: AllocationResult, allocation: AllocationResult) -> bool:
    """Tell whether two allocations are equal apart from the timestamp, which only written allocations have."""
    return attrs.evolve(given, allocation_timestamp=None) == attrs.evolve(
        allocation, allocation_timestamp=None
    )
