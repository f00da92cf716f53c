"""What a pod's claims need, and what each node has for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from kschedfw import Node, NodeInfo, Pod, Resource
from kschedfw.api import AllocatedDeviceStatus, DeviceClaim, DeviceClass, ResourceClaim, ResourceClaimSpec
from kschedfw.plugins._node_terms import any_matches, usable_terms
from kschedfw.plugins.dynamic_resources.allocator import AllocationTimeoutError, InvalidPoolsError, Search
from kschedfw.plugins.dynamic_resources.extended import (
    NO_REQUESTS,
    ExtendedRequests,
    extended_requests,
    may_come_from_devices,
)
from kschedfw.plugins.dynamic_resources.inventory import Inventory
from kschedfw.plugins.dynamic_resources.requests import WantedClaim, wanted
from kschedfw.plugins.dynamic_resources.results import Found
from kschedfw.plugins.dynamic_resources.usage import Usage

CANNOT_ALLOCATE = "cannot allocate all claims"
NOT_AVAILABLE = "resourceclaim not available on the node"
LEFT_OVER = "cannot schedule extended resource claim"
CANNOT_FIT = "cannot fit resource"

_MOST_SCORE = 8
"""What the first of a request's alternatives earns."""


@attrs.frozen(eq=False)
class NodeDevices:
    """What one node has for a pod.

    With a `problem` the pod can't run there. `unavailable` are allocated claims that can't be used there. `found` has
    the devices for each claim that is to be allocated; that for extended resources comes last, with `extended`.
    """

    problem: str = ""
    unavailable: Sequence[ResourceClaim] = ()
    found: Sequence[tuple[WantedClaim, Sequence[Found]]] = ()
    extended: ExtendedRequests = NO_REQUESTS


@attrs.define(eq=False)
class PodDevices:
    """A pod's claims and extended resources, with what there is in this cycle.

    `claims` are all that it names; `wanted` those of them without an allocation. `special` is the claim for the
    extended resources that classes stand behind, `left_over` that of an earlier attempt. `classes` has the class behind
    each extended resource. `deadline` starts the time for a node, and gives what tells when it is over.
    """

    pod: Pod
    claims: Sequence[ResourceClaim]
    wanted: Sequence[WantedClaim]
    special: ResourceClaim | None
    left_over: ResourceClaim | None
    classes: Mapping[str, DeviceClass]
    inventory: Inventory
    usage: Usage
    now: float
    binding_timeout: float
    deadline: Callable[[], Callable[[], bool]]
    _on_node: dict[str, NodeDevices] = attrs.field(factory=dict)

    def on(self, info: NodeInfo) -> NodeDevices:
        """What the node has for the pod; found out once.

        Raises:
            AllocationError: the attempt has to end.
        """
        known = self._on_node.get(info.name)
        if known is None:
            known = self._on_node[info.name] = self._find(info.node, info.allocatable)
        return known

    def _find(self, node: Node, allocatable: Resource) -> NodeDevices:
        unavailable = [claim for claim in self.claims if not self._is_usable(claim, node)]
        extended, problem = self._extended_on(allocatable)
        if problem:
            return NodeDevices(problem)
        everything = list(self.wanted)
        # Beside other claims it is there even on nodes on which it asks for nothing, as in v1.36.
        if self.special is not None and (extended.requests or self.claims):
            everything.append(self._special_claim(self.special, extended))
        found: Sequence[Sequence[Found]] = ()
        if everything:
            pools = self.inventory.on(node)
            try:
                solution = Search(everything, node, pools, self.usage, self.deadline()).run()
            except (InvalidPoolsError, AllocationTimeoutError) as reason:
                return NodeDevices(str(reason))
            if solution is None:
                return NodeDevices(CANNOT_ALLOCATE)
            found = solution
        if unavailable:
            return NodeDevices(NOT_AVAILABLE, unavailable)
        return NodeDevices(found=tuple(zip(everything, found, strict=True)), extended=extended)

    def _is_usable(self, claim: ResourceClaim, node: Node) -> bool:
        """Whether an allocated claim can be used on the node; one that isn't allocated doesn't stand in the way."""
        allocation = claim.status.allocation
        if allocation is None:
            return True
        selector = allocation.node_selector
        if selector is not None and not any_matches(usable_terms(selector), node):
            return False
        readiness = binding_readiness(claim)
        if readiness is None:
            return False
        return readiness or not is_overdue(claim, self.now, self.binding_timeout)

    def _extended_on(self, allocatable: Resource) -> tuple[ExtendedRequests, str]:
        """What of the pod's extended resources has to come from devices on the node, or why it can't run there."""
        if self.special is None and self.left_over is None:
            return NO_REQUESTS, ""
        if self.left_over is not None:
            return NO_REQUESTS, LEFT_OVER
        resources = []
        for name, amount in self.pod.requests.amounts.scalar_resources.items():
            if not amount or not may_come_from_devices(name):
                continue
            there = allocatable.scalar_resources.get(name)
            if name in self.classes:
                if not there:
                    resources.append(name)
            elif there is None:
                return NO_REQUESTS, CANNOT_FIT
        return extended_requests(self.pod, resources, self.classes), ""

    def _special_claim(self, special: ResourceClaim, extended: ExtendedRequests) -> WantedClaim:
        spec = ResourceClaimSpec(DeviceClaim(extended.requests))
        by_name = {each.name: each for each in self.classes.values()}
        return wanted(attrs.evolve(special, spec=spec), by_name.get)

    def score(self, info: NodeInfo) -> int:
        """By the alternatives that are taken: the earlier, the better. Without anything to allocate it is 0."""
        found = self.on(info).found
        if not found:
            return 0
        taken = {
            (each.claim.uid, one.option.full_name)
            for each, devices in found
            for one in devices
            if one.option.full_name != one.option.request
        }
        for claim in self.claims:
            if claim.status.allocation is not None:
                taken |= {(claim.uid, each.request) for each in claim.status.allocation.devices.results}
        return sum(_score(claim, {name for uid, name in taken if uid == claim.uid}) for claim in self.claims)


def _score(claim: ResourceClaim, taken: set[str]) -> int:
    return sum(
        _MOST_SCORE - index
        for request in claim.spec.devices.requests
        for index, alternative in enumerate(request.first_available)
        if f"{request.name}/{alternative.name}" in taken
    )


def binding_readiness(claim: ResourceClaim) -> bool | None:
    """Whether the claim's devices are ready for a pod to be bound; None if one can't be made ready."""
    allocation = claim.status.allocation
    ready = True
    for result in () if allocation is None else allocation.devices.results:
        if not result.binding_conditions:
            continue
        status = next(
            (
                each
                for each in claim.status.devices
                if (each.driver, each.pool, each.device, each.share_id)
                == (result.driver, result.pool, result.device, result.share_id)
            ),
            AllocatedDeviceStatus(),
        )
        if any(status.is_true(each) for each in result.binding_failure_conditions):
            return None
        ready = ready and all(status.is_true(each) for each in result.binding_conditions)
    return ready


def is_overdue(claim: ResourceClaim, now: float, timeout: float) -> bool:
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None:
        return False
    return now > allocation.allocation_timestamp.timestamp() + timeout
