"""The state of devices and claims that all profiles of a scheduler share (kube-scheduler `SharedDRAManager`).

An allocation made in a pod's scheduling cycle is in flight until it is written into the claim's status: its devices are
taken, and no other pod can use the claim yet (kube-scheduler `DRAManager`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

import attrs

from kschedfw import ClusterClient, DeviceClasses, FeatureGates, MemberStates, Node, Pod
from kschedfw.api import (
    AllocationResult,
    DeviceClass,
    DeviceTaintRule,
    PodResourceClaim,
    ResourceClaim,
    ResourceSlice,
    with_taint_rules,
)
from kschedfw.plugins import AssumeCache
from kschedfw_devices.cel import STEPS_PER_SECOND, Budget, OutOfStepsError
from kschedfw_devices.dynamic_resources.inventory import Inventory, PublishedSlice, SelectorFailure
from kschedfw_devices.dynamic_resources.requests import RequestBook
from kschedfw_devices.dynamic_resources.usage import Usage, UsageBook

if TYPE_CHECKING:
    from kschedfw_devices.dynamic_resources.answers import AllocationAnswers


class ResourceClaimProblem(Exception):
    """The error of a claim that keeps the pod from being scheduled; the text says why."""


class ResourceClaims:
    """All claims of the cluster, with allocations in flight. As thread-safe as the cluster."""

    def __init__(self, cluster: ClusterClient) -> None:
        self.cache = AssumeCache(ResourceClaim, cluster)
        self.book = UsageBook()
        self._trials: dict[str, MemberStates] = {}
        """The trial of a group in which a claim was put in flight, by the claim's uid."""
        self._locks: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
        self._locking = threading.Lock()

    def of(self, pod: Pod) -> Iterator[ResourceClaim]:
        """Yield the pod's claims in its order. Claims that the pod turned out not to need are omitted.

        Raises:
            ResourceClaimProblem: a claim doesn't exist, isn't the pod's, or is being deleted.
        """
        for reference in pod.spec.resource_claims:
            name = claim_name(pod, reference)
            if name is None:
                continue
            key = f"{pod.namespace}/{name}"
            claim = self.cache.get(key)
            if claim is None:
                raise ResourceClaimProblem(f'could not find ResourceClaim "{key}"')
            if claim.metadata.deletion_timestamp is not None:
                raise ResourceClaimProblem(f'resourceclaim "{name}" is being deleted')
            if reference.resource_claim_name is None and not claim.is_owned_by(pod):
                raise ResourceClaimProblem(
                    f"ResourceClaim {key} was not created for Pod {pod.key} (Pod is not owner)"
                )
            yield claim

    def problem_of(self, pod: Pod) -> str:
        """Return what is wrong with the pod's claims; empty if each is there and the pod's."""
        try:
            for _ in self.of(pod):
                pass
        except ResourceClaimProblem as problem:
            return str(problem)
        return ""

    def extended_of(self, pod: Pod) -> ResourceClaim | None:
        """Return the claim for the pod's extended resources that an earlier attempt created; None if there is none."""
        self.book.follow(self.cache.list())
        return next((each for each in self.book.extended_of(pod.uid) if each.is_owned_by(pod)), None)

    def put_in_flight(
        self, uid: str, allocation: AllocationResult, trial: MemberStates | None = None
    ) -> None:
        """Record the allocation of a claim before it is written.

        While a group is on trial, its members may share the claim.
        """
        self.book.put_in_flight(uid, allocation)
        if trial is not None:
            self._trials[uid] = trial

    def alone(self, uid: str) -> threading.Lock:
        """Return the lock to hold while writing the claim; it lives as long as somebody has it."""
        # Under another lock: two threads that both miss the uid would get a lock each.
        with self._locking:
            return self._locks.setdefault(uid, threading.Lock())

    def as_shared(self, claim: ResourceClaim, trial: MemberStates | None) -> ResourceClaim:
        """Return the claim with the allocation that another group member got in this trial; unchanged if none."""
        given = self.book.in_flight(claim.uid)
        if given is None or trial is None or self._trials.get(claim.uid) is not trial:
            return claim
        return attrs.evolve(claim, status=attrs.evolve(claim.status, allocation=given))

    def landed(self, uid: str) -> None:
        """Drop the allocation in flight: it was written to the cluster, or given up."""
        self.book.landed(uid)
        self._trials.pop(uid, None)

    def usage(self) -> Usage:
        """Return the devices in use now; the result doesn't change afterwards."""
        self.book.follow(self.cache.list())
        return self.book.usage()


def claim_name(pod: Pod, reference: PodResourceClaim) -> str | None:
    """Return the name of the claim behind an entry of the pod; None if the entry needs none.

    Raises:
        ResourceClaimProblem: the claim has to be made from a template, and isn't yet.
    """
    if reference.resource_claim_name is not None:
        return reference.resource_claim_name
    for status in pod.status.resource_claim_statuses:
        if status.name == reference.name:
            return status.resource_claim_name
    raise ResourceClaimProblem(f'pod "{pod.key}": ResourceClaim not created yet')


def without_allocation(claim: ResourceClaim) -> ResourceClaim:
    """Return the claim without its allocation and reservations."""
    return attrs.evolve(claim, status=attrs.evolve(claim.status, allocation=None, reserved_for=()))


_STEPS_TO_COUNT: Final = 10 * STEPS_PER_SECOND
_STEPS_PER_DEVICE: Final = 100
"""Steps per device for counting the devices of classes. A common selector takes one step per device."""


@attrs.frozen
class DeviceRules:
    """The rules of a version and its gates about devices; by default v1.36's.

    With `fractions`, ranges of capacities may have fractions (DRAFractionalCapacityRange). With `taint_rules`,
    DeviceTaintRules taint devices (DRADeviceTaintRules). The others are rules of v1.37: DeviceSelectorErrors,
    DeviceConfigurations and SharedCountersByNode.
    """

    fractions: bool = False
    taint_rules: bool = False
    advises: bool = False
    joins_configurations: bool = False
    counters_by_node: bool = False

    @classmethod
    def of(cls, gates: FeatureGates) -> DeviceRules:
        """Return the rules under these gates."""
        return cls(
            gates.enabled("DRAFractionalCapacityRange"),
            gates.enabled("DRADeviceTaintRules"),
            gates.follows("DeviceSelectorErrors"),
            gates.follows("DeviceConfigurations"),
            gates.follows("SharedCountersByNode"),
        )


_V1_36: Final = DeviceRules()


class DeviceManager:
    """Classes, slices and claims of one cluster, by the rules. Allocations in flight are shared by all profiles."""

    def __init__(self, cluster: ClusterClient, rules: DeviceRules = _V1_36) -> None:
        self.rules = rules
        self.claims = ResourceClaims(cluster)
        self._cluster = cluster
        self._slices: dict[str, tuple[ResourceSlice, PublishedSlice]] = {}
        """Each slice as the driver made it, and with the taints of rules."""
        self._listed_slices: object = None
        self._listed_rules: object = None
        self._inventory = Inventory(())
        self._counting = Budget(0)
        self.classes = DeviceClasses(cluster)
        self.requests = RequestBook(self.device_class)
        self._answers: AllocationAnswers | None = None

    @classmethod
    def of(cls, cluster: ClusterClient, rules: DeviceRules = _V1_36) -> DeviceManager:
        """Return the manager of this cluster, made on first use."""
        known = _MANAGERS.get((id(cluster), rules))
        if known is None:
            known = _MANAGERS[id(cluster), rules] = cls(cluster, rules)
        return known

    def device_class(self, name: str) -> DeviceClass | None:
        return self._cluster.get(DeviceClass, name)

    @property
    def missing(self) -> str:
        """Empty: pods can use devices."""
        return ""

    def requested_by(self, pod: Pod) -> Sequence[str]:
        """Return the extended resources that the pod requests and that a class backs."""
        return self.classes.requested_by(pod)

    def inventory(self) -> Inventory:
        """Return all devices. Cached values of a slice are kept as long as neither it nor its taints change."""
        listed = self._cluster.list(ResourceSlice)
        rules: Sequence[DeviceTaintRule] = (
            self._cluster.list(DeviceTaintRule) if self.rules.taint_rules else ()
        )
        if listed is not self._listed_slices or rules is not self._listed_rules:
            slices: dict[str, tuple[ResourceSlice, PublishedSlice]] = {}
            for each in listed:
                known = self._slices.get(each.name)
                tainted = with_taint_rules(each, rules) if rules else each
                if known is None or known[0] is not each or known[1].slice != tainted:
                    known = (
                        each,
                        PublishedSlice(tainted, fractions=self.rules.fractions, advises=self.rules.advises),
                    )
                slices[each.name] = known
            self._slices, self._listed_slices, self._listed_rules = slices, listed, rules
            published = tuple(each for _, each in slices.values())
            self._inventory = Inventory(published, counters_by_node=self.rules.counters_by_node)
            self._answers = None
            count = sum(len(each.devices) for each in published)
            self._counting = Budget(_STEPS_TO_COUNT + count * _STEPS_PER_DEVICE)
        return self._inventory

    @property
    def answers(self) -> AllocationAnswers:
        """The allocator of the inventory that was returned last, with its answers so far."""
        if self._answers is None:
            # Here, since a scheduler without claims allocates nothing.
            from kschedfw_devices.dynamic_resources.answers import AllocationAnswers

            self._answers = AllocationAnswers(self._inventory, self.claims.book)
        return self._answers

    def amounts(self) -> Callable[[str, Node], tuple[int, int]]:
        """Return the function of the numbers of devices, with the devices that are in use now."""
        return partial(self._amounts_on, self.claims.usage())

    def _amounts_on(self, usage: Usage, resource: str, node: Node) -> tuple[int, int]:
        """Return the number of devices on the node that back the extended resource, and of those in use.

        As in v1.36, devices of stale slices and incomplete pools are counted, too. If a selector of the class
        can't be evaluated, or all of them together take too long, both are 0.
        """
        device_class = self.classes.by_resource().get(resource)
        if device_class is None:
            return 0, 0
        expressions = tuple(each.expression for each in device_class.spec.selectors)
        return _counted(self.inventory().slices_on(node), expressions, node, usage, self._counting)


def _counted(
    slices: Iterable[PublishedSlice], expressions: tuple[str, ...], node: Node, usage: Usage, budget: Budget
) -> tuple[int, int]:
    there = taken = 0
    for slice_ in slices:
        used = usage.of(slice_.pool)
        for position, device in enumerate(slice_.devices):
            try:
                if not device.is_reached_by(node) or not slice_.matches(position, expressions, budget):
                    continue
            except (SelectorFailure, OutOfStepsError):
                return 0, 0
            there += 1
            taken += device.device.name in used.taken or device.device.name in used.shares
    return there, taken


_MANAGERS: WeakValueDictionary[tuple[int, DeviceRules], DeviceManager] = WeakValueDictionary()
"""Managers by the `id` of their cluster, and by their rules.

A manager keeps its cluster alive, and plugins keep the manager.
"""
