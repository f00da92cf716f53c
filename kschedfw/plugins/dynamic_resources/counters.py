"""Counters that the devices of a pool share, such as the memory of a card that is cut into partitions (KEP-4815)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from kschedfw import Quantity
from kschedfw.api import Device
from kschedfw.plugins.dynamic_resources.inventory import Pool
from kschedfw.plugins.dynamic_resources.usage import PoolUsage

CounterName: TypeAlias = tuple[str, str]
"""Counter set and counter."""


def consumption_of(device: Device) -> Iterator[tuple[CounterName, Quantity]]:
    """What a device takes of its pool's counters."""
    for consumed in device.consumes_counters:
        for name, counter in consumed.counters.items():
            yield (consumed.counter_set, name), counter.value


class PoolCounters:
    """What a pool's counters hold, and what is taken of it: by allocated devices, and by others in a search."""

    def __init__(self, pool: Pool, usage: PoolUsage) -> None:
        self._there: Mapping[CounterName, Quantity] = {
            (counters.name, name): counter.value
            for each in pool.slices
            for counters in each.slice.spec.shared_counters
            for name, counter in counters.counters.items()
        }
        self._takers: list[Device] = [
            published.device
            for each in pool.slices
            for published in each.devices
            if published.device.name in usage.taken or published.device.name in usage.shares
        ]

    def suffice_for(self, device: Device) -> bool:
        taken = dict(consumption_of(device))
        for taker in self._takers:
            for name, amount in consumption_of(taker):
                if name in taken:
                    taken[name] += amount
        return all(name in self._there and amount <= self._there[name] for name, amount in taken.items())

    def take(self, device: Device) -> None:
        self._takers.append(device)

    def give_back(self, device: Device) -> None:
        self._takers.remove(device)
