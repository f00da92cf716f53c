"""The device requirements of a pod, and the devices that each node has for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import attrs

from kschedfw import Node, NodeInfo, NodeToStatus, Pod, Resource
from kschedfw.api import (
    AllocatedDeviceStatus,
    DeviceClaim,
    DeviceClass,
    DeviceCondition,
    NodeSelectorTerm,
    ResourceClaim,
    ResourceClaimSpec,
)
from kschedfw.plugins import any_matches, usable_terms
from kschedfw_devices.dynamic_resources.answers import AllocationAnswers, AllocationTimeoutError, Question
from kschedfw_devices.dynamic_resources.extended import (
    NO_REQUESTS,
    ExtendedRequests,
    extended_requests,
    may_come_from_devices,
)
from kschedfw_devices.dynamic_resources.inventory import Inventory
from kschedfw_devices.dynamic_resources.requests import MOST_SCORE, Found, RequestBook, WantedClaim
from kschedfw_devices.dynamic_resources.usage import Usage

NOT_AVAILABLE = "resourceclaim not available on the node"
LEFT_OVER = "cannot schedule extended resource claim"
CANNOT_FIT = "cannot fit resource"


@attrs.frozen(eq=False)
class NodeDevices:
    """The devices of one node for a pod.

    With a `problem` the pod can't run there. `unavailable` are allocated claims that can't be used there.
    `found` has the devices for each claim to be allocated; the claim for extended resources comes last, with
    `extended`.
    """

    problem: str = ""
    unavailable: Sequence[ResourceClaim] = ()
    found: Sequence[tuple[WantedClaim, Sequence[Found]]] = ()
    extended: ExtendedRequests = NO_REQUESTS


@attrs.frozen(eq=False)
class Freeing:
    """The claims that can be freed.

    `unavailable` are the pod's allocated claims that couldn't be used on some node, `eligible` those that no
    other pod has reserved. `left_over` is a claim for extended resources that an earlier attempt made.
    """

    message: str
    unavailable: Sequence[ResourceClaim] = ()
    eligible: Sequence[ResourceClaim] = ()
    left_over: ResourceClaim | None = None


@attrs.frozen(eq=False)
class Demand:
    """The needs of a pod on a node: the extended resources that must come from devices, and the question for them.

    Without a `question` nothing has to be allocated.
    """

    extended: ExtendedRequests
    question: Question | None


@attrs.define(eq=False, slots=False)
class PodDevices:
    """A pod's claims and extended resources, and the devices available in this cycle.

    `claims` are all claims that it names; `wanted` are those without an allocation. `special` is the claim for
    the extended resources that classes back, `left_over` such a claim of an earlier attempt. `classes` has the
    class behind each extended resource. `filter_timeout` is for the search on one node, in seconds.
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
    filter_timeout: float
    answers: AllocationAnswers
    requests: RequestBook
    _demands: dict[tuple[str, ...], Demand] = attrs.field(factory=dict)

    def problem_on(self, info: NodeInfo) -> str:
        """Return the reason why the pod can't run on the node; empty if it can.

        Raises:
            AllocationError: the attempt has to end.
        """
        resources, problem = self.resources_on(info.allocatable)
        if problem:
            return problem
        question = self.demand(resources).question
        if question is not None:
            answer = question.answer(self.inventory.on(info.node))
            if answer.is_late:
                raise AllocationTimeoutError(info.name)
            if answer.problem:
                return answer.problem
        # As in kube-scheduler, a node without devices for the pod says that first.
        return NOT_AVAILABLE if self.unavailable_on(info.node) else ""

    def on(self, info: NodeInfo) -> NodeDevices:
        """Return the node's devices for the pod. Raises as `problem_on`."""
        resources, problem = self.resources_on(info.allocatable)
        if problem:
            return NodeDevices(problem)
        demand = self.demand(resources)
        found: Sequence[tuple[WantedClaim, Sequence[Found]]] = ()
        if demand.question is not None:
            answer, solution = demand.question.solve(self.inventory.on(info.node))
            if answer.is_late:
                raise AllocationTimeoutError(info.name)
            if answer.problem:
                return NodeDevices(answer.problem)
            found = tuple(zip(demand.question.wanted, solution, strict=True))
        if unavailable := self.unavailable_on(info.node):
            return NodeDevices(NOT_AVAILABLE, unavailable)
        return NodeDevices(found=found, extended=demand.extended)

    def score(self, info: NodeInfo) -> int:
        """Return the score of a node's devices: higher for earlier alternatives; 0 if nothing is to be allocated."""
        resources, problem = self.resources_on(info.allocatable)
        question = None if problem else self.demand(resources).question
        if question is None:
            return 0
        answer = question.answer(self.inventory.on(info.node))
        return 0 if answer.problem else answer.score + self.score_of_allocated

    @cached_property
    def has_alternatives(self) -> bool:
        """True if a claim has alternatives, so that nodes may differ in score."""
        return any(each.first_available for claim in self.claims for each in claim.spec.devices.requests)

    @cached_property
    def score_of_allocated(self) -> int:
        """The part of the score from claims that are allocated already; equal on every node."""
        return sum(map(_score_of_allocation, self.claims))

    def demand(self, resources: tuple[str, ...]) -> Demand:
        """Return the demand on nodes where these of the pod's extended resources must come from devices."""
        known = self._demands.get(resources)
        if known is None:
            known = self._demands[resources] = self._demand(resources)
        return known

    def _demand(self, resources: tuple[str, ...]) -> Demand:
        everything = list(self.wanted)
        extended = NO_REQUESTS
        if self.special is not None:
            extended = extended_requests(self.pod, resources, self.classes)
            # Beside other claims it is there even on nodes on which it asks for nothing, as in v1.36.
            if extended.requests or self.claims:
                everything.append(self._special_claim(self.special, extended))
        question = self.answers.about(everything, self.usage, self.filter_timeout) if everything else None
        return Demand(extended, question)

    def unavailable_on(self, node: Node) -> Sequence[ResourceClaim]:
        """Return the allocated claims that can't be used on the node."""
        return [claim for claim in self.claims if not self._is_usable(claim, node)]

    def _is_usable(self, claim: ResourceClaim, node: Node) -> bool:
        """Tell whether an allocated claim can be used on the node; True for a claim without allocation."""
        terms = terms_of(claim)
        return (terms is None or any_matches(terms, node)) and self.may_be_ready(claim)

    def may_be_ready(self, claim: ResourceClaim) -> bool:
        """Tell whether the claim's devices are or may become ready in time; True for a claim without devices."""
        readiness = binding_readiness(claim)
        if isinstance(readiness, DeviceCondition):
            return False
        return readiness or not is_overdue(claim, self.now, self.binding_timeout)

    def resources_on(self, allocatable: Resource) -> tuple[tuple[str, ...], str]:
        """Return the extended resources that must come from the node's devices, or why the pod can't run there."""
        if self.left_over is not None:
            return (), LEFT_OVER
        if self.special is None:
            return (), ""
        resources = []
        for name in self.extended_resources:
            there = allocatable.scalar_resources.get(name)
            if name in self.classes:
                if not there:
                    resources.append(name)
            elif there is None:
                return (), CANNOT_FIT
        return tuple(resources), ""

    @cached_property
    def extended_resources(self) -> Sequence[str]:
        """The extended resources that the pod requests."""
        requested = self.pod.requests.amounts.scalar_resources
        return [name for name, amount in requested.items() if amount and may_come_from_devices(name)]

    def freeing(self, plugin: str, node_to_status: NodeToStatus, nodes: Iterable[NodeInfo]) -> Freeing:
        """Return the claims that can be freed, so that they can be allocated on another node (post_filter).

        `node_to_status` has the refusal of each node, with its plugin.
        """
        met: set[str] = set()
        for info in nodes:
            status = node_to_status.get(info.name)
            if status.plugin == plugin and NOT_AVAILABLE in status.reasons:
                met |= {claim.uid for claim in self.unavailable_on(info.node)}
        unavailable = [claim for claim in self.claims if claim.uid in met]
        eligible = [claim for claim in unavailable if not _is_reserved_for_others(claim, self.pod)]
        if self.left_over is not None:
            return Freeing("deletion of ResourceClaim completed", unavailable, eligible, self.left_over)
        message = "deallocation of ResourceClaim completed" if eligible else "still not schedulable"
        return Freeing(message, unavailable, eligible)

    def _special_claim(self, special: ResourceClaim, extended: ExtendedRequests) -> WantedClaim:
        spec = ResourceClaimSpec(DeviceClaim(extended.requests))
        return self.requests.wanted(attrs.evolve(special, spec=spec))


def _is_reserved_for_others(claim: ResourceClaim, pod: Pod) -> bool:
    return any(each.uid != pod.uid for each in claim.status.reserved_for)


def terms_of(claim: ResourceClaim) -> Sequence[NodeSelectorTerm] | None:
    """Return the terms of the nodes where an allocated claim can be used; None for all nodes."""
    allocation = claim.status.allocation
    if allocation is None or allocation.node_selector is None:
        return None
    return usable_terms(allocation.node_selector)


def _score_of_allocation(claim: ResourceClaim) -> int:
    allocation = claim.status.allocation
    taken = set() if allocation is None else {each.request for each in allocation.devices.results}
    return sum(
        MOST_SCORE - index
        for request in claim.spec.devices.requests
        for index, alternative in enumerate(request.first_available)
        if f"{request.name}/{alternative.name}" in taken
    )


def binding_readiness(claim: ResourceClaim) -> bool | DeviceCondition:
    """Return whether the claim's devices are ready for a pod to be bound, or the condition by which one can't be."""
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
        for name in result.binding_failure_conditions:
            if (failed := status.condition(name)) is not None and failed.status == "True":
                return failed
        ready = ready and all(status.is_true(each) for each in result.binding_conditions)
    return ready


def is_overdue(claim: ResourceClaim, now: float, timeout: float) -> bool:
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None:
        return False
    return now > allocation.allocation_timestamp.timestamp() + timeout
