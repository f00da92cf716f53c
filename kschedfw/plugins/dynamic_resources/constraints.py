"""Constraints on the devices of one claim, such as equal or distinct attributes (KEP-4381, KEP-5075)."""

from __future__ import annotations

from typing import Protocol

from kschedfw.api import DeviceAttribute, DeviceConstraint
from kschedfw.plugins.dynamic_resources.inventory import PublishedDevice


class Constraint(Protocol):
    """A constraint, which is told of each device that is taken, and of each that is given back, in reverse order."""

    def concerns(self, request: str, full: str) -> bool:
        """Tell whether the constraint applies to a request; an alternative is named `name/alternative`."""
        ...

    def allows(self, device: PublishedDevice) -> bool:
        """Tell whether the device may be added to the devices taken so far."""
        ...

    def add(self, request: str, device: PublishedDevice) -> None: ...

    def remove(self, request: str) -> None: ...


def constraint_of(constraint: DeviceConstraint) -> Constraint:
    """Return the constraint without any devices taken."""
    if constraint.match_attribute:
        return _Match(constraint)
    return _Distinct(constraint)


class _OfRequests:
    def __init__(self, constraint: DeviceConstraint) -> None:
        self._requests = constraint.requests

    def concerns(self, request: str, full: str) -> bool:
        return not self._requests or request in self._requests or full in self._requests


class _Match(_OfRequests):
    """The constraint that all devices have the attribute with the same value."""

    def __init__(self, constraint: DeviceConstraint) -> None:
        super().__init__(constraint)
        self._attribute = constraint.match_attribute
        self._value: DeviceAttribute | None = None
        self._count = 0

    def allows(self, device: PublishedDevice) -> bool:
        value = device.attribute(self._attribute)
        return value is not None and (not self._count or value == self._value)

    def add(self, request: str, device: PublishedDevice) -> None:  # noqa: ARG002  # see Constraint
        self._value = device.attribute(self._attribute)
        self._count += 1

    def remove(self, request: str) -> None:  # noqa: ARG002  # see Constraint
        self._count -= 1


class _Distinct(_OfRequests):
    """The constraint that all devices have the attribute with different values.

    Only the last value of each request is remembered, as in v1.36, whose decisions depend on that.
    """

    def __init__(self, constraint: DeviceConstraint) -> None:
        super().__init__(constraint)
        self._attribute = constraint.distinct_attribute
        self._values: dict[str, DeviceAttribute] = {}

    def allows(self, device: PublishedDevice) -> bool:
        value = device.attribute(self._attribute)
        return value is not None and value not in self._values.values()

    def add(self, request: str, device: PublishedDevice) -> None:
        if (value := device.attribute(self._attribute)) is not None:
            self._values[request] = value

    def remove(self, request: str) -> None:
        self._values.pop(request, None)
