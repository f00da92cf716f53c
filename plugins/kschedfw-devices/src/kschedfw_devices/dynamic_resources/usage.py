"""The devices in use by allocated claims and by allocations in flight (kube-scheduler `AllocatedState`).

Kept by pool, in immutable values, so that a pod's cycle gets its own copy for the cost of copying a dict.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from operator import is_not
from typing import Final

import attrs

from kschedfw import FrozenDict, Quantity
from kschedfw.api import (
    EMPTY,
    EXTENDED_RESOURCE_ANNOTATION,
    AllocationResult,
    Device,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from kschedfw_devices.dynamic_resources.capacity import Amounts, added
from kschedfw_devices.dynamic_resources.inventory import DeviceId, PoolId


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


_FEWEST_CHANGES: Final = 4096
"""The least number of changes that are remembered."""


class UsageBook:
    """Device usage by pool, from the claims' statuses or, where there is one, the allocation in flight.

    Allocations in flight may be added from any thread; they count from the next `follow` on.
    """

    def __init__(self) -> None:
        self._listed: Sequence[ResourceClaim] = ()
        self._claims: dict[str, ResourceClaim] = {}
        self._extended: dict[str, dict[str, ResourceClaim]] = {}
        """Claims for extended resources, by the uid of the pod, then by the claim's own uid."""
        self._in_flight: dict[str, AllocationResult] = {}
        self._lock = threading.Lock()
        self._told: set[str] = set()
        """The claims whose allocations in flight have come or gone since the last update."""
        self._counted: dict[str, AllocationResult] = {}
        self._allocations: dict[PoolId, dict[str, AllocationResult]] = {}
        self._by_pool: dict[PoolId, PoolUsage] = {}
        self._changed: list[PoolId] = []
        self._dropped = 0

    def in_flight(self, uid: str) -> AllocationResult | None:
        """Return the allocation of a claim that isn't written yet; None if there is none."""
        return self._in_flight.get(uid)

    def put_in_flight(self, uid: str, allocation: AllocationResult) -> None:
        with self._lock:
            self._in_flight[uid] = allocation
            self._told.add(uid)

    def landed(self, uid: str) -> None:
        with self._lock:
            if self._in_flight.pop(uid, None) is not None:
                self._told.add(uid)

    def extended_of(self, pod_uid: str) -> Iterable[ResourceClaim]:
        """Return the claims for extended resources that a pod owns."""
        return self._extended.get(pod_uid, {}).values()

    def holder_of(self, device: DeviceId) -> str:
        """Return the key of a claim that has the device; empty if no claim in the cluster does."""
        for uid, allocation in self._allocations.get(device[:2], {}).items():
            if uid in self._claims and any(each.device == device[2] for each in counting_results(allocation)):
                return self._claims[uid].key
        return ""

    def usage(self) -> Usage:
        """Return the present usage; the result doesn't change afterwards."""
        return Usage(dict(self._by_pool), self._dropped + len(self._changed))

    def changed_since(self, version: int) -> Sequence[PoolId] | None:
        """Return the pools whose usage has changed since `version`; None if the log begins later."""
        start = version - self._dropped
        return None if start < 0 else self._changed[start:]

    def follow(self, claims: Sequence[ResourceClaim]) -> None:
        """Update to the present claims and the allocations in flight."""
        with self._lock:
            told, self._told = self._told, set()
        if claims is not self._listed:
            told |= self._follow_claims(claims)
            self._listed = claims
        for uid in told:
            claim = self._claims.get(uid)
            written = None if claim is None else claim.status.allocation
            self._count(uid, self._in_flight.get(uid) or written)
        if len(self._changed) > 2 * max(_FEWEST_CHANGES, len(self._by_pool)):
            surplus = len(self._changed) // 2
            del self._changed[:surplus]
            self._dropped += surplus

    def _follow_claims(self, claims: Sequence[ResourceClaim]) -> set[str]:
        """Return the uids of the claims that came, went or changed."""
        before = self._listed
        # The list of all claims is a new one after each change, in the same order but for what came last.
        changed = list(compress(claims, map(is_not, claims, before)))
        new = claims[len(before) :]
        touched = {claim.uid for claim in changed} | {claim.uid for claim in new}
        for claim in (*changed, *new):
            self._note(claim)
        if len(self._claims) > len(claims):
            present = {claim.uid for claim in claims}
            for uid in self._claims.keys() - present:
                self._forget(uid)
                touched.add(uid)
        return touched

    def _note(self, claim: ResourceClaim) -> None:
        if claim.uid in self._claims:
            self._forget(claim.uid)
        self._claims[claim.uid] = claim
        if claim.annotations.get(EXTENDED_RESOURCE_ANNOTATION) == "true":
            owner = claim.metadata.controller
            if owner is not None:
                self._extended.setdefault(owner.uid, {})[claim.uid] = claim

    def _forget(self, uid: str) -> None:
        owner = self._claims.pop(uid).metadata.controller
        if owner is not None and owner.uid in self._extended:
            self._extended[owner.uid].pop(uid, None)
            if not self._extended[owner.uid]:
                del self._extended[owner.uid]

    def _count(self, uid: str, new: AllocationResult | None) -> None:
        old = self._counted.get(uid)
        if old is new:
            return
        given = {(each.driver, each.pool) for each in counting_results(new)}
        for pool in given | {(each.driver, each.pool) for each in counting_results(old)}:
            self._changed.append(pool)
            allocations = self._allocations.setdefault(pool, {})
            usage = self._by_pool.get(pool, NOTHING_USED)
            # Summed up anew from the others: a set of names doesn't tell whether another claim has the same
            # device.
            if allocations.pop(uid, None) is not None:
                usage = NOTHING_USED
                for other in allocations.values():
                    usage = _with(usage, pool, other)
            if new is not None and pool in given:
                allocations[uid] = new
                usage = _with(usage, pool, new)
            if allocations:
                self._by_pool[pool] = usage
            else:
                del self._allocations[pool]
                self._by_pool.pop(pool, None)
        if new is None:
            del self._counted[uid]
        else:
            self._counted[uid] = new


def _with(usage: PoolUsage, pool: PoolId, allocation: AllocationResult) -> PoolUsage:
    for result in counting_results(allocation):
        if (result.driver, result.pool) == pool:
            usage = usage.with_result(result)
    return usage
