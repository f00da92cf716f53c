"""The counters that devices of a pool share, such as the memory of a card that is cut into partitions (KEP-4815)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TypeAlias

import attrs

from kschedfw import Quantity
from kschedfw.api import EMPTY, Device, QuantityFormat
from kschedfw_devices.dynamic_resources.inventory import Pool
from kschedfw_devices.dynamic_resources.usage import PoolUsage

CounterName: TypeAlias = tuple[str, str]
"""The names of a counter set and of a counter in it."""
Taken: TypeAlias = Mapping[CounterName, Sequence[Quantity]]
"""The amounts that a search has taken of each counter."""

_NOTHING = Quantity.of(0, QuantityFormat.DECIMAL_SI)


def consumption_of(device: Device) -> Iterator[tuple[CounterName, Quantity]]:
    """Yield the amounts that a device takes of its pool's counters."""
    for consumed in device.consumes_counters:
        for name, counter in consumed.counters.items():
            yield (consumed.counter_set, name), counter.value


@attrs.frozen(eq=False, slots=False)
class _Counted:
    """A pool's counters in total, and the amounts that allocated devices take of them."""

    pool: Pool
    there: Mapping[CounterName, Quantity]
    allocated: Mapping[CounterName, Quantity]

    @staticmethod
    @lru_cache(maxsize=4096)  # the usage of most pools doesn't change from one pod to the next
    def of(pool: Pool, usage: PoolUsage) -> _Counted:
        there = {
            (counters.name, name): counter.value
            for each in pool.slices
            for counters in each.slice.spec.shared_counters
            for name, counter in counters.counters.items()
        }
        taken: dict[CounterName, Quantity] = {}
        for each in pool.slices:
            for published in each.devices:
                if published.device.name in usage.taken or published.device.name in usage.shares:
                    for name, amount in consumption_of(published.device):
                        taken[name] = taken[name] + amount if name in taken else amount
        return _Counted(pool, there, taken)

    @cached_property
    def suffice_alone(self) -> Mapping[int, bool]:
        """By `id()` of a device: true if the counters suffice for it where a search has taken nothing of the pool.

        By identity, since an invalid pool may have two devices of one name.
        """
        devices = (published.device for each in self.pool.slices for published in each.devices)
        return {id(device): self.suffice_for(device, EMPTY) for device in devices}

    @cached_property
    def only_falls(self) -> bool:
        """True if every device takes a counter's amount or leaves it: amounts left can only fall in a search."""
        devices = (published.device for each in self.pool.slices for published in each.devices)
        return all(amount.sign >= 0 for device in devices for _, amount in consumption_of(device))

    @cached_property
    def _is_overdrawn(self) -> bool:
        return any(amount > self.there[name] for name, amount in self.allocated.items() if name in self.there)

    def suffice_for(self, device: Device, taken: Taken) -> bool:
        # After a change of a slice, more may be allocated than exists. Then no device is free, as in v1.36.
        return not self._is_overdrawn and all(
            name in self.there and self.with_others(name, amount, taken) <= self.there[name]
            for name, amount in dict(consumption_of(device)).items()
        )

    def with_others(self, name: CounterName, amount: Quantity, taken: Taken) -> Quantity:
        if name in self.allocated:
            amount += self.allocated[name]
        for other in taken.get(name, ()):
            amount += other
        return amount


class PoolCounters:
    """A pool's counters, and the amounts taken of them: by allocated devices, and by others in a search."""

    def __init__(self, pool: Pool, usage: PoolUsage) -> None:
        self._counted = _Counted.of(pool, usage)
        self._taken: dict[CounterName, list[Quantity]] = {}
        self._to_take: list[Device] = []
        """The devices to take before anybody looks at the counters again."""

    def suffice_for(self, device: Device) -> bool:
        """Tell whether the counters suffice for one of the pool's devices."""
        self._settle()
        counted = self._counted
        alone = counted.suffice_alone[id(device)]
        # Most cards are used up, and what a search takes leaves no more of them.
        if not self._taken or (not alone and counted.only_falls):
            return alone
        return counted.suffice_for(device, self._taken)

    def never_suffice_for(self, device: Device) -> bool:
        """Tell whether the counters don't suffice for the device, whatever a search takes before."""
        counted = self._counted
        return counted.only_falls and not counted.suffice_alone[id(device)]

    def shortages(self, device: Device) -> Iterator[tuple[CounterName, Quantity, Quantity]]:
        """Yield the counters that don't suffice, with the amount that the device needs and the amount left."""
        self._settle()
        counted = self._counted
        for name, amount in dict(consumption_of(device)).items():
            there = counted.there.get(name, _NOTHING)
            if counted.with_others(name, amount, self._taken) > there:
                yield name, amount, there + -counted.with_others(name, _NOTHING, self._taken)

    def take(self, device: Device) -> bool:
        """Take the device's counters if they suffice. Return whether they do."""
        if not self.suffice_for(device):
            return False
        for name, amount in consumption_of(device):
            self._taken.setdefault(name, []).append(amount)
        return True

    def take_later(self, device: Device) -> None:
        """Do as `take` does, but not before the counters are looked at again: for most pools nobody does."""
        self._to_take.append(device)

    def _settle(self) -> None:
        while self._to_take:
            due, self._to_take = self._to_take, []
            for device in due:
                self.take(device)

    def give_back(self, device: Device) -> None:
        self._settle()
        for name, amount in consumption_of(device):
            self._taken[name].remove(amount)
            if not self._taken[name]:
                del self._taken[name]
