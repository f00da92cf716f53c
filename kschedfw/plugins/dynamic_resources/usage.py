"""The devices in use by allocated claims and by allocations in flight (kube-scheduler `AllocatedState`).

Kept by pool, in immutable values, so that a pod's cycle gets its own copy for the cost of copying a dict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from kschedfw import FrozenDict, Quantity
from kschedfw.api import EMPTY, AllocationResult, Device, DeviceRequestAllocationResult
from kschedfw.plugins.dynamic_resources.capacity import Amounts, added
from kschedfw.plugins.dynamic_resources.inventory import PoolId


@attrs.frozen(eq=False)
class PoolUsage:
    """The use of a pool by name: whole devices, and the consumed capacities of shared devices.

    `shares` has the consumed capacities of every share, by device.
    """

    taken: frozenset[str] = frozenset()
    shares: FrozenDict[str, tuple[Amounts, ...]] = EMPTY

    def consumed(self, device: Device) -> FrozenDict[str, Quantity]:
        """Return the sum of all shares of a device; nothing for one that can't be shared."""
        total: FrozenDict[str, Quantity] = EMPTY
        for share in self.shares.get(device.name, ()) if device.allow_multiple_allocations else ():
            total = added(total, share)
        return total

    def with_result(self, result: DeviceRequestAllocationResult) -> PoolUsage:
        if not result.share_id:
            return attrs.evolve(self, taken=self.taken | {result.device})
        shares = (*self.shares.get(result.device, ()), result.consumed_capacity)
        return attrs.evolve(self, shares=FrozenDict({**self.shares, result.device: shares}))


NOTHING_USED: Final = PoolUsage()

_NONE: Final[Mapping[PoolId, PoolUsage]] = {}


@attrs.frozen(eq=False)
class Usage:
    """The usage of devices at one moment, by pool. `version` counts the changes until then."""

    by_pool: Mapping[PoolId, PoolUsage] = _NONE
    version: int = 0

    def of(self, pool: PoolId) -> PoolUsage:
        return self.by_pool.get(pool, NOTHING_USED)


def counting_results(allocation: AllocationResult | None) -> Iterator[DeviceRequestAllocationResult]:
    """Yield the results of an allocation that take a device; results with admin access take none."""
    if allocation is not None:
        for result in allocation.devices.results:
            if not result.admin_access:
                yield result
