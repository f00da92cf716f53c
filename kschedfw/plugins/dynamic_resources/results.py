"""Construction of a claim's AllocationResult from the found devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import attrs

from kschedfw import FrozenDict, Node, Quantity
from kschedfw.api import (
    EMPTY,
    AllocationResult,
    ConfigSource,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    NodeSelector,
    NodeSelectorTerm,
    Operator,
    Requirement,
)
from kschedfw.plugins.dynamic_resources.inventory import PublishedDevice
from kschedfw.plugins.dynamic_resources.requests import Option, WantedClaim


@attrs.frozen(eq=False)
class Found:
    """A device found for a request, with the consumed capacity if the device is shared."""

    option: Option
    device: PublishedDevice
    consumed: FrozenDict[str, Quantity] = EMPTY


def allocation_result(
    wanted: WantedClaim, found: Sequence[Found], node: Node, share_id: Callable[[], str]
) -> AllocationResult:
    """Return the AllocationResult for the claim's status, without its timestamp."""
    options = list(dict.fromkeys(each.option for each in found))
    return AllocationResult(
        DeviceAllocationResult(
            tuple(_result(each, share_id) for each in found), tuple(_configuration(wanted, options))
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


def _configuration(wanted: WantedClaim, options: Sequence[Option]) -> Iterator[DeviceAllocationConfiguration]:
    """Yield the device configurations: first those of the classes, then the claim's own."""
    by_class: dict[str, list[Option]] = {}
    for option in options:
        by_class.setdefault(option.device_class.name, []).append(option)
    for members in by_class.values():
        requests = tuple(option.full_name for option in members)
        for of_class in members[0].device_class.spec.config:
            yield DeviceAllocationConfiguration(ConfigSource.FROM_CLASS, requests, of_class.opaque)
    names = {name for option in options for name in (option.request, option.full_name)}
    for of_claim in wanted.claim.spec.devices.config:
        if not of_claim.requests or not names.isdisjoint(of_claim.requests):
            yield DeviceAllocationConfiguration(ConfigSource.FROM_CLAIM, of_claim.requests, of_claim.opaque)


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
            for term in own.node_selector.node_selector_terms:
                expressions |= dict.fromkeys(term.match_expressions)
                fields |= dict.fromkeys(term.match_fields)
    if not expressions and not fields:
        return None
    return NodeSelector((NodeSelectorTerm(tuple(expressions), tuple(fields)),))


def _only(node_name: str) -> NodeSelector:
    name = Requirement("metadata.name", Operator.IN, (node_name,))
    return NodeSelector((NodeSelectorTerm(match_fields=(name,)),))
