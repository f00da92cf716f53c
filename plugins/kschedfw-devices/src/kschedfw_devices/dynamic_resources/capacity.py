"""The consumption of a device's capacities by a request (KEP-5075).

Semantics: kube-scheduler v1.36 `consumable capacity`; v1.37's DRAFractionalCapacityRange
(`staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/consumable_capacity.go`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, TypeAlias

import attrs

from kschedfw import FrozenDict, Quantity
from kschedfw.api import EMPTY, CapacityPolicy, CapacityRange, Device, DeviceCapacity, QuantityFormat

Amounts: TypeAlias = Mapping[str, Quantity]
"""Amounts by the name of the capacity."""

_MOST_IN_THOUSANDTHS: Final = (2**63 - 1) // 1000
"""The largest amount whose thousandths fit 64 bits, Kubernetes' `MaxMilliValue`."""


@attrs.frozen
class FractionalRange(CapacityRange):
    """A range whose steps are counted in thousandths, and not in whole numbers (DRAFractionalCapacityRange)."""


def with_fractions(device: Device) -> Device:
    """Return the device with a `FractionalRange` wherever a bound or the step of a range is no whole number."""
    changed = {
        name: attrs.evolve(capacity, request_policy=attrs.evolve(policy, valid_range=fractional))
        for name, capacity in device.capacity.items()
        if (policy := capacity.request_policy) is not None
        and (fractional := _fractional(policy.valid_range)) is not None
    }
    return attrs.evolve(device, capacity=FrozenDict({**device.capacity, **changed})) if changed else device


def _fractional(valid: CapacityRange | None) -> FractionalRange | None:
    if valid is None:
        return None
    amounts = [each for each in (valid.min, valid.max, valid.step) if each is not None]
    if any(each.value() > _MOST_IN_THOUSANDTHS for each in amounts) or not any(
        each.milli_value() % 1000 for each in amounts
    ):
        return None
    # A step below a thousandth would be none.
    if valid.step is not None and valid.step.milli_value() < 1:
        return None
    return FractionalRange(valid.min, valid.max, valid.step)


def consumed(capacities: Mapping[str, DeviceCapacity], wanted: Amounts) -> FrozenDict[str, Quantity] | None:
    """Return the capacities that a request consumes of a device; None if the device lacks one or a policy forbids it.

    A capacity that isn't requested is consumed by the policy's default amount, or else as a whole.
    """
    if any(name not in capacities for name in wanted):
        return None
    taken = {name: _amount(capacity, wanted.get(name)) for name, capacity in capacities.items()}
    if any(_is_forbidden(taken[name], capacity.request_policy) for name, capacity in capacities.items()):
        return None
    return FrozenDict(taken)


def is_left(capacities: Mapping[str, DeviceCapacity], taken: Amounts, used: Amounts) -> bool:
    """Tell whether the device has these amounts left beside the used ones."""
    return all(
        (taken[name] + used[name] if name in used else taken[name]) <= capacity.value
        for name, capacity in capacities.items()
    )


@lru_cache(maxsize=4096)  # most devices are like others
def has_amounts(capacities: FrozenDict[str, DeviceCapacity], wanted: FrozenDict[str, Quantity]) -> bool:
    """Tell whether an unused device has the amounts that a request consumes of it."""
    taken = consumed(capacities, wanted)
    return taken is not None and is_left(capacities, taken, EMPTY)


def added(amounts: Amounts, more: Amounts) -> FrozenDict[str, Quantity]:
    total = dict(amounts)
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount
    return FrozenDict(total)


def _amount(capacity: DeviceCapacity, wanted: Quantity | None) -> Quantity:
    policy = capacity.request_policy
    if wanted is None:
        return capacity.value if policy is None or policy.default is None else policy.default
    if policy is None:
        return wanted
    if policy.valid_range is not None:
        return _in_range(wanted, policy.valid_range)
    # The API has them in ascending order, so the first is the smallest that suffices.
    return next((value for value in policy.valid_values if value >= wanted), wanted)


def _in_range(wanted: Quantity, valid: CapacityRange) -> Quantity:
    if valid.min is None:
        return wanted
    if wanted < valid.min:
        return valid.min
    if valid.step is None:
        return wanted
    amount, least, step = _counted(valid, wanted), _counted(valid, valid.min), _counted(valid, valid.step)
    # Rounded up, by a division of the negative number, which Python rounds down.
    steps = -((least - amount) // step)
    rounded = least + steps * step
    if not isinstance(valid, FractionalRange):
        return Quantity.of(rounded, QuantityFormat.BINARY_SI)
    return (
        Quantity.of(rounded // 1000, QuantityFormat.DECIMAL_SI)
        if rounded % 1000 == 0
        else _thousandths(rounded)
    )


def _counted(valid: CapacityRange, amount: Quantity) -> int:
    return amount.milli_value() if isinstance(valid, FractionalRange) else amount.value()


def _thousandths(number: int) -> Quantity:
    return Quantity.parse(f"{number}m")


def _is_forbidden(amount: Quantity, policy: CapacityPolicy | None) -> bool:
    if policy is None or amount == policy.default:
        return False
    if policy.valid_range is not None:
        return _is_outside(amount, policy.valid_range)
    return bool(policy.valid_values) and amount not in policy.valid_values


def _is_outside(amount: Quantity, valid: CapacityRange) -> bool:
    if valid.max is not None and amount > valid.max:
        return True
    if valid.min is None:
        return False
    if valid.step is None:
        return amount < valid.min
    above = _counted(valid, amount) - _counted(valid, valid.min)
    return above % _counted(valid, valid.step) != 0
