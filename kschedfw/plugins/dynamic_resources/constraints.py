"""What the devices of a claim must have in common, or must not (KEP-4381, KEP-5075)."""

from __future__ import annotations

from typing import Protocol

from kschedfw.api import DeviceAttribute, DeviceConstraint
from kschedfw.plugins.dynamic_resources.inventory import PublishedDevice


class Constraint(Protocol):
    """Is told of each device that is taken, and of each that is given back, in reverse order.

    `request` and `full` name the request; they differ where it is an alternative (`name` and `name/alternative`).
    """

    def add(self, request: str, full: str, device: PublishedDevice) -> bool:
        """Take note of a device, if the constraint allows it beside those that it knows of."""
        ...

    def remove(self, request: str, full: str) -> None: ...


def constraint_of(constraint: DeviceConstraint) -> Constraint:
    """A fresh one that knows of no device yet."""
    if constraint.match_attribute:
        return _Match(constraint)
    return _Distinct(constraint)


class _Match:
    """All devices have the attribute, with the same value."""

    def __init__(self, constraint: DeviceConstraint) -> None:
        self._requests = constraint.requests
        self._attribute = constraint.match_attribute
        self._value: DeviceAttribute | None = None
        self._count = 0

    def add(self, request: str, full: str, device: PublishedDevice) -> bool:
        if not _concerns(self._requests, request, full):
            return True
        value = device.attribute(self._attribute)
        if value is None or (self._count and value != self._value):
            return False
        self._value = value
        self._count += 1
        return True

    def remove(self, request: str, full: str) -> None:
        if _concerns(self._requests, request, full):
            self._count -= 1


class _Distinct:
    """All devices have the attribute, each with another value; but of a request only the last value is known.

    That is how v1.36 does it, and so its decisions are these.
    """

    def __init__(self, constraint: DeviceConstraint) -> None:
        self._requests = constraint.requests
        self._attribute = constraint.distinct_attribute
        self._values: dict[str, DeviceAttribute] = {}

    def add(self, request: str, full: str, device: PublishedDevice) -> bool:
        if not _concerns(self._requests, request, full):
            return True
        value = device.attribute(self._attribute)
        if value is None or value in self._values.values():
            return False
        self._values[request] = value
        return True

    def remove(self, request: str, full: str) -> None:
        if _concerns(self._requests, request, full):
            self._values.pop(request, None)


def _concerns(requests: tuple[str, ...], request: str, full: str) -> bool:
    return not requests or request in requests or full in requests
