"""Changes of amounts: a pod that requests less, and a node that offers more."""

from __future__ import annotations

from typing import Final

import attrs
from typing_extensions import override

from kschedfw import FrozenDict, Node, Pod, Quantity
from kschedfw.api import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    Container,
    ResourceRequirements,
    counted,
)
from kschedfw_advisor.amounts import exact_text, quantity_of, step_of
from kschedfw_advisor.changes import Change, Effort, NodeChange, with_spec

_HALF: Final = 0.5


@attrs.frozen
class RequestLess(Change):
    """The pod with a lower request of a resource, all containers together; in the resource's unit.

    `where` are the init containers whose requests change, for the text.
    """

    usual_effort = Effort.POD_REQUEST
    resource: str
    request: int
    instead_of: int
    where: tuple[str, ...] = ()

    @classmethod
    def of(cls, pod: Pod, resource: str, request: int) -> RequestLess | None:
        """Return the change to this request; None if lower requests of containers don't lead to it."""
        change = cls(resource, request, pod.requests.demand.get(resource))
        changed = change.changed(pod)
        if changed.requests.demand.get(resource) > request:
            return None
        pairs = zip(pod.spec.init_containers, changed.spec.init_containers, strict=True)
        return attrs.evolve(change, where=tuple(old.name for old, new in pairs if old != new))

    def __str__(self) -> str:
        less, more = (exact_text(self.resource, amount) for amount in (self.request, self.instead_of))
        return f"request {less} of {self.resource} instead of {more}{self._where_text}"

    @property
    def _where_text(self) -> str:
        several = "s" * (len(self.where) > 1)
        return f" in init container{several} {' and '.join(self.where)}" if self.where else ""

    @property
    def effort(self) -> Effort:
        return Effort.TOO_MUCH if self.amount > _HALF else self.usual_effort

    @property
    def amount(self) -> float:
        return 1 - self.request / self.instead_of

    @property
    def steps(self) -> int:
        return (self.instead_of - self.request - 1) // step_of(self.resource)

    def smaller(self, steps: int) -> Change:
        return attrs.evolve(self, request=self.request + steps * step_of(self.resource))

    def changed(self, pod: Pod) -> Pod:
        spec, name = pod.spec, self.resource
        overhead = spec.overhead.get(name)
        taken = 0 if overhead is None else _amount(overhead, name)
        most = pod.requests.demand.get(name) - (self.instead_of - self.request) - taken
        if spec.resources is not None and name in spec.resources.requests:
            # Requests of the pod itself count in place of its containers'.
            of_pod = with_request(spec.resources, name, most)
            return with_spec(pod, attrs.evolve(spec, resources=of_pod))
        # Each init container runs beside the sidecars that come before it.
        beside, init_containers = 0, list(spec.init_containers)
        for index, each in enumerate(init_containers):
            if each.is_sidecar:
                beside += _request(each, name)
            elif _request(each, name) > most - beside:
                if most - beside <= 0:
                    return pod
                init_containers[index] = _with_request(each, name, most - beside)
        containers, sizes = list(spec.containers), [_request(each, name) for each in spec.containers]
        if (excess := sum(sizes) + beside - most) > 0:
            # One container alone, so that one number of the manifest changes.
            largest = sizes.index(max(sizes))
            if sizes[largest] <= excess:
                return pod
            containers[largest] = _with_request(containers[largest], name, sizes[largest] - excess)
        return with_spec(
            pod, attrs.evolve(spec, containers=tuple(containers), init_containers=tuple(init_containers))
        )


def _request(container: Container, resource: str) -> int:
    return requested(container.resources, resource)


def requested(given: ResourceRequirements, resource: str) -> int:
    """Return the request of the resource, in its unit; 0 without one."""
    amount = given.requests.get(resource)
    return 0 if amount is None else _amount(amount, resource)


def _amount(quantity: Quantity, resource: str) -> int:
    """Return the quantity in the resource's unit."""
    return quantity.milli_value() if resource == CPU else quantity.value()


def _with_request(container: Container, resource: str, amount: int) -> Container:
    return attrs.evolve(container, resources=with_request(container.resources, resource, amount))


def with_request(given: ResourceRequirements, resource: str, amount: int) -> ResourceRequirements:
    """Return the requirements with this request, in the resource's unit, and with a limit that is allowed with it."""
    quantity = quantity_of(resource, amount)
    requests = FrozenDict({**given.requests, resource: quantity})
    limits = given.limits
    if limits.get(resource) == given.requests.get(resource) and resource not in (
        CPU,
        MEMORY,
        EPHEMERAL_STORAGE,
    ):
        # Extended resources and huge pages can't be overcommitted: the API server demands a limit that equals the
        # request.
        limits = FrozenDict({**limits, resource: quantity})
    return ResourceRequirements(requests, limits)


@attrs.frozen
class EnlargeNode(NodeChange):
    """A node that offers more of a resource; `by` is in the resource's unit."""

    usual_effort = Effort.NODE_SIZE
    resource: str
    by: int
    share: float
    """Return `by` as a share of the pod's request, for comparing resources."""

    def __str__(self) -> str:
        if self.resource == PODS:
            return f"room for {counted(self.by, 'more pod')} on node {self.node} (its kubelet's maxPods)"
        return f"{exact_text(self.resource, self.by)} more {self.resource} on node {self.node}"

    @property
    def effort(self) -> Effort:
        return Effort.TOO_MUCH if self.amount > _HALF else self.usual_effort

    @property
    def amount(self) -> float:
        return self.share

    @property
    def steps(self) -> int:
        return (self.by - 1) // step_of(self.resource)

    def smaller(self, steps: int) -> Change:
        by = self.by - steps * step_of(self.resource)
        return attrs.evolve(self, by=by, share=self.share * by / self.by)

    @override
    def altered(self, node: Node) -> Node:
        offered = node.status.allocatable
        there = offered.get(self.resource)
        now = 0 if there is None else there.milli_value() if self.resource == CPU else there.value()
        # kube-scheduler reads allocatable alone, so capacity stays.
        more = FrozenDict({**offered, self.resource: quantity_of(self.resource, now + self.by)})
        return attrs.evolve(node, status=attrs.evolve(node.status, allocatable=more))
