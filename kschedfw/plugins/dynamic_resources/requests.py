"""The requests of a pod's claims, made ready for the allocator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import attrs

from kschedfw.api import (
    DeviceAllocationMode,
    DeviceClass,
    DeviceRequest,
    DeviceSubRequest,
    DeviceTaint,
    DeviceTaintEffect,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from kschedfw.api.frozendict import EMPTY
from kschedfw.plugins.dynamic_resources.capacity import Amounts

ClassLookup: TypeAlias = Callable[[str], DeviceClass | None]


class MissingClass(Exception):
    """A request names a class that doesn't exist."""


@attrs.frozen(eq=False)
class Option:
    """One way to satisfy a request: the only one, or one of several alternatives.

    `full_name` is how results name it. `class_selectors` come before `own_selectors`, each a tuple of expressions.
    """

    request: str
    name: str
    full_name: str
    device_class: DeviceClass
    class_selectors: tuple[str, ...]
    own_selectors: tuple[str, ...]
    wants_all: bool
    count: int
    admin_access: bool
    tolerations: tuple[DeviceToleration, ...]
    capacity: Amounts

    def tolerates(self, taints: Sequence[DeviceTaint]) -> bool:
        return all(
            taint.effect is DeviceTaintEffect.NONE or any(each.tolerates(taint) for each in self.tolerations)
            for taint in taints
        )


@attrs.frozen(eq=False)
class WantedRequest:
    """A request with its options, of which one is taken; only where `has_alternatives` may there be several."""

    name: str
    options: tuple[Option, ...]
    has_alternatives: bool


@attrs.frozen(eq=False)
class WantedClaim:
    """A claim that is to be allocated."""

    claim: ResourceClaim
    requests: tuple[WantedRequest, ...]


def wanted(claim: ResourceClaim, class_of: ClassLookup) -> WantedClaim:
    """What a claim asks for.

    Raises:
        MissingClass: a class isn't there.
    """
    return WantedClaim(claim, tuple(_request(each, class_of) for each in claim.spec.devices.requests))


def _request(request: DeviceRequest, class_of: ClassLookup) -> WantedRequest:
    if request.exactly is not None:
        only = _option(request.name, request.name, request.name, request.exactly, class_of)
        return WantedRequest(request.name, (only,), has_alternatives=False)
    options = tuple(
        _option(request.name, each.name, f"{request.name}/{each.name}", each, class_of)
        for each in request.first_available
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
        class_selectors=tuple(each.expression for each in device_class.spec.selectors),
        own_selectors=tuple(each.expression for each in asked.selectors),
        wants_all=asked.allocation_mode is DeviceAllocationMode.ALL,
        count=asked.count,
        admin_access=asked.admin_access,
        tolerations=asked.tolerations,
        capacity=EMPTY if asked.capacity is None else asked.capacity.requests,
    )
