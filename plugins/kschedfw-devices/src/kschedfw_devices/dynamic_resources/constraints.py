"""Constraints on the devices of one claim, such as equal or distinct attributes (KEP-4381, KEP-5075)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from kschedfw.api import DeviceAttribute, DeviceConstraint
from kschedfw_devices.dynamic_resources.inventory import PublishedDevice
from kschedfw_devices.dynamic_resources.requests import Option


def constraint_of(constraint: DeviceConstraint) -> Constraint:
    """Return the constraint without any devices taken."""
    if constraint.match_attribute:
        return _Match(constraint.requests, constraint.match_attribute)
    return _Distinct(constraint.requests, constraint.distinct_attribute)


class Constraint(ABC):
    """A constraint on an attribute, told of each device that is taken, and of each that is given back, in reverse."""

    def __init__(self, requests: Sequence[str], attribute: str) -> None:
        self._requests = requests
        self._attribute = attribute

    def concerns(self, option: Option) -> bool:
        """Tell whether the constraint applies to an option of a request."""
        return option.is_among(self._requests)

    def allows(self, device: PublishedDevice) -> bool:
        """Tell whether the device may be added to the devices taken so far."""
        value = device.attribute(self._attribute)
        return value is not None and self._admits(value)

    @property
    def required(self) -> tuple[str, DeviceAttribute] | None:
        """The attribute and the value that each further device must have; None if several values are allowed."""
        return None

    @abstractmethod
    def _admits(self, value: DeviceAttribute) -> bool: ...

    @abstractmethod
    def add(self, request: str, device: PublishedDevice) -> None: ...

    @abstractmethod
    def remove(self, request: str) -> None: ...


class _Match(Constraint):
    """The constraint that all devices have the attribute with the same value."""

    _value: DeviceAttribute | None = None
    _count = 0

    @property
    def required(self) -> tuple[str, DeviceAttribute] | None:
        return None if self._value is None or not self._count else (self._attribute, self._value)

    def _admits(self, value: DeviceAttribute) -> bool:
        return not self._count or value == self._value

    def add(self, request: str, device: PublishedDevice) -> None:  # noqa: ARG002  # see Constraint
        self._value = device.attribute(self._attribute)
        self._count += 1

    def remove(self, request: str) -> None:  # noqa: ARG002  # see Constraint
        self._count -= 1


class _Distinct(Constraint):
    """The constraint that all devices have the attribute with different values.

    Only the last value of each request is remembered, as in v1.36, whose decisions depend on that.
    """

    def __init__(self, requests: Sequence[str], attribute: str) -> None:
        super().__init__(requests, attribute)
        self._values: dict[str, DeviceAttribute] = {}

    def _admits(self, value: DeviceAttribute) -> bool:
        return value not in self._values.values()

    def add(self, request: str, device: PublishedDevice) -> None:
        if (value := device.attribute(self._attribute)) is not None:
            self._values[request] = value

    def remove(self, request: str) -> None:
        self._values.pop(request, None)
