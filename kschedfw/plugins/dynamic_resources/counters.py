"""The counters that devices of a pool share, such as the memory of a card that is cut into partitions (KEP-4815)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TypeAlias

from kschedfw import Quantity
from kschedfw.api import Device, QuantityFormat
from kschedfw.plugins.dynamic_resources.inventory import Pool
from kschedfw.plugins.dynamic_resources.usage import PoolUsage

CounterName: TypeAlias = tuple[str, str]
"""The names of a counter set and of a counter in it."""


def consumption_of(device: Device) -> Iterator[tuple[CounterName, Quantity]]:
    """Yield the amounts that a device takes of its pool's counters."""
    for consumed in device.consumes_counters:
        for name, counter in consumed.counters.items():
            yield (consumed.counter_set, name), counter.value


Counted: TypeAlias = Mapping[CounterName, Quantity]


class PoolCounters:
    """A pool's counters, and the amounts taken of them: by allocated devices, and by others in a search."""

    def __init__(self, pool: Pool, usage: PoolUsage) -> None:
        self._there, self._allocated = _counted(pool, usage)
        # After a change of a slice, more may be allocated than exists. Then no device is free, as in v1.36.
        self._is_overdrawn = any(
            amount > self._there[name] for name, amount in self._allocated.items() if name in self._there
        )
        self._taken: dict[CounterName, list[Quantity]] = {}

    def suffice_for(self, device: Device) -> bool:
        return not self._is_overdrawn and all(
            name in self._there and self._with_others(name, amount) <= self._there[name]
            for name, amount in dict(consumption_of(device)).items()
        )

    def shortages(self, device: Device) -> Iterator[tuple[CounterName, Quantity, Quantity]]:
        """Yield the counters that don't suffice, with the amount that the device needs and the amount left."""
        nothing = Quantity.of(0, QuantityFormat.DECIMAL_SI)
        for name, amount in dict(consumption_of(device)).items():
            there = self._there.get(name, nothing)
            if self._with_others(name, amount) > there:
                yield name, amount, there + -self._with_others(name, nothing)

    def _with_others(self, name: CounterName, amount: Quantity) -> Quantity:
        if name in self._allocated:
            amount += self._allocated[name]
        for other in self._taken.get(name, ()):
            amount += other
        return amount

    def take(self, device: Device) -> bool:
        """Take the device's counters if they suffice. Return whether they do."""
        if not self.suffice_for(device):
            return False
        for name, amount in consumption_of(device):
            self._taken.setdefault(name, []).append(amount)
        return True

    def give_back(self, device: Device) -> None:
        for name, amount in consumption_of(device):
            self._taken[name].remove(amount)


# Cached, since the usage of most pools doesn't change from one pod to the next.
@lru_cache(maxsize=4096)
def _counted(pool: Pool, usage: PoolUsage) -> tuple[Counted, Counted]:
    """Return the total amount of each counter, and the amount that allocated devices take."""
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
    return there, taken
