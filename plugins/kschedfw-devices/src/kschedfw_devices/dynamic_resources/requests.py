"""The requests of a pod's claims, resolved to device classes and selectors, for the allocator."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final, TypeAlias

import attrs

from kschedfw import FrozenDict, Node, Quantity
from kschedfw.api import (
    EMPTY,
    AllocationResult,
    ConfigSource,
    DeviceAllocationConfiguration,
    DeviceAllocationMode,
    DeviceAllocationResult,
    DeviceClass,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSubRequest,
    DeviceTaint,
    DeviceTaintEffect,
    DeviceToleration,
    ExactDeviceRequest,
    NodeSelector,
    NodeSelectorTerm,
    Operator,
    Requirement,
    ResourceClaim,
)
from kschedfw_devices.dynamic_resources.inventory import PublishedDevice, Selectors

ClassLookup: TypeAlias = Callable[[str], DeviceClass | None]

MOST_SCORE: Final = 8
"""The score of the first alternative of a request."""
_MOST_KNOWN: Final = 1024


class MissingClass(Exception):
    """The error of a request for a class that doesn't exist."""


@attrs.frozen(eq=False)
class Option:
    """One way to satisfy a request: the only one, or one of several alternatives.

    `full_name` is its name in results. `selectors` are the expressions of the class and then the request's own.
    `score` is what it adds to a node's score: the earlier the alternative, the more.
    """

    request: str
    name: str
    full_name: str
    device_class: DeviceClass
    selectors: Selectors
    wants_all: bool
    count: int
    admin_access: bool
    tolerations: tuple[DeviceToleration, ...]
    capacity: FrozenDict[str, Quantity]
    score: int = 0

    def tolerates(self, taints: Sequence[DeviceTaint]) -> bool:
        return all(
            taint.effect is DeviceTaintEffect.NONE or any(each.tolerates(taint) for each in self.tolerations)
            for taint in taints
        )

    def is_among(self, requests: Sequence[str]) -> bool:
        """Tell whether these names of requests or options include the option; no names stand for all."""
        return not requests or self.request in requests or self.full_name in requests


@attrs.frozen(eq=False)
class WantedRequest:
    """A request with its options, of which one is taken. Only with `has_alternatives` there may be several."""

    name: str
    options: tuple[Option, ...]
    has_alternatives: bool


@attrs.frozen(eq=False)
class WantedClaim:
    """A claim that is to be allocated."""

    claim: ResourceClaim
    requests: tuple[WantedRequest, ...]


class RequestBook:
    """The resolved requests, shared by all claims with equal requests."""

    def __init__(self, class_of: ClassLookup) -> None:
        self._class_of = class_of
        self._known: dict[Hashable, tuple[WantedRequest, ...]] = {}

    def wanted(self, claim: ResourceClaim) -> WantedClaim:
        """Return the resolved requests of a claim; the same object until device classes change.

        Raises:
            MissingClass: a class doesn't exist.
        """
        asked = claim.spec.devices.requests
        # Amounts are equal that are written in different units, in which results give them back.
        key = asked, tuple(_amounts(asked))
        requests = self._known.get(key)
        if requests is None or not self._are_current(requests):
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            requests = self._known[key] = tuple(_request(each, self._class_of) for each in asked)
        return WantedClaim(claim, requests)

    def _are_current(self, requests: tuple[WantedRequest, ...]) -> bool:
        return all(
            self._class_of(option.device_class.name) is option.device_class
            for each in requests
            for option in each.options
        )


def _amounts(requests: tuple[DeviceRequest, ...]) -> Iterator[str]:
    for each in requests:
        for asked in (each.exactly, *each.first_available):
            if asked is not None and asked.capacity is not None:
                yield from map(str, asked.capacity.requests.values())


def _request(request: DeviceRequest, class_of: ClassLookup) -> WantedRequest:
    if request.exactly is not None:
        only = _option(request.name, request.name, request.name, request.exactly, class_of)
        return WantedRequest(request.name, (only,), has_alternatives=False)
    options = tuple(
        attrs.evolve(
            _option(request.name, each.name, f"{request.name}/{each.name}", each, class_of),
            score=MOST_SCORE - index,
        )
        for index, each in enumerate(request.first_available)
    )
    return WantedRequest(request.name, options, has_alternatives=True)


def _option(
    request: str,
    name: str,
    full_name: str,
    asked: ExactDeviceRequest | DeviceSubRequest,
    class_of: ClassLookup,
) -> Option:
    device_class = class_of(asked.device_class_name)
    if device_class is None:
        raise MissingClass(f"request {full_name}: device class {asked.device_class_name} does not exist")
    return Option(
        request=request,
        name=name,
        full_name=full_name,
        device_class=device_class,
        selectors=(
            tuple(each.expression for each in device_class.spec.selectors),
            tuple(each.expression for each in asked.selectors),
        ),
        wants_all=asked.allocation_mode is DeviceAllocationMode.ALL,
        count=asked.count,
        admin_access=asked.admin_access,
        tolerations=asked.tolerations,
        capacity=EMPTY if asked.capacity is None else asked.capacity.requests,
    )


@attrs.frozen(eq=False)
class Found:
    """A device found for a request, with the consumed capacity if the device is shared."""

    option: Option
    device: PublishedDevice
    consumed: FrozenDict[str, Quantity] = EMPTY


def allocation_result(
    wanted: WantedClaim,
    found: Sequence[Found],
    node: Node,
    share_id: Callable[[], str],
    *,
    joins_configurations: bool = False,
) -> AllocationResult:
    """Return the AllocationResult for the claim's status, without its timestamp.

    With `joins_configurations` (v1.37) a configuration is there once, and names no requests where it concerns all.
    """
    options = list(dict.fromkeys(each.option for each in found))
    return AllocationResult(
        DeviceAllocationResult(
            tuple(_result(each, share_id) for each in found),
            tuple(_configuration(wanted, options, joins=joins_configurations)),
        ),
        _node_selector(found, node),
    )


def _result(found: Found, share_id: Callable[[], str]) -> DeviceRequestAllocationResult:
    option, (driver, pool, name), device = found.option, found.device.id, found.device.device
    return DeviceRequestAllocationResult(
        option.full_name,
        driver,
        pool,
        name,
        option.admin_access,
        option.tolerations,
        device.binding_conditions,
        device.binding_failure_conditions,
        share_id() if device.allow_multiple_allocations else "",
        found.consumed,
    )


def _configuration(
    wanted: WantedClaim, options: Sequence[Option], *, joins: bool
) -> Iterator[DeviceAllocationConfiguration]:
    """Yield the device configurations: first those of the classes, then the claim's own."""

    def named(requests: tuple[str, ...]) -> tuple[str, ...]:
        # No names stand for all requests.
        return () if joins and all(option.is_among(requests) for option in options) else requests

    by_class: dict[str, list[Option]] = {}
    for option in options:
        by_class.setdefault(option.device_class.name, []).append(option)
    for members in by_class.values():
        requests = tuple(option.full_name for option in members)
        for of_class in members[0].device_class.spec.config:
            yield DeviceAllocationConfiguration(ConfigSource.FROM_CLASS, named(requests), of_class.opaque)
    for of_claim in wanted.claim.spec.devices.config:
        number = sum(option.is_among(of_claim.requests) for option in options) if of_claim.requests else 1
        # v1.36 repeats it for each request.
        for _ in range(min(number, 1) if joins else number):
            yield DeviceAllocationConfiguration(
                ConfigSource.FROM_CLAIM, named(of_claim.requests), of_claim.opaque
            )


def _node_selector(found: Sequence[Found], node: Node) -> NodeSelector | None:
    """Return the nodes on which all of the devices can be used; None for all nodes."""
    expressions: dict[Requirement, None] = {}
    fields: dict[Requirement, None] = {}
    for each in found:
        spec, device = each.device.slice.spec, each.device.device
        if device.binds_to_node:
            return _only(node.name)
        own = device if spec.per_device_node_selection else spec
        if own.node_name:
            return _only(own.node_name)
        if own.node_selector is not None:
            # The API allows one term here, so the requirements of all devices can be joined in one.
            for term in own.node_selector.node_selector_terms:
                expressions |= dict.fromkeys(term.match_expressions)
                fields |= dict.fromkeys(term.match_fields)
    if not expressions and not fields:
        return None
    return NodeSelector((NodeSelectorTerm(tuple(expressions), tuple(fields)),))


def _only(node_name: str) -> NodeSelector:
    name = Requirement("metadata.name", Operator.IN, (node_name,))
    return NodeSelector((NodeSelectorTerm(match_fields=(name,)),))
