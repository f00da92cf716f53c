"""The devices that a request may get on a node, and which pools of them a search can pass over as a whole.

Where all nodes reach thousands of cards, nearly all are used up. A search that looked at each of their devices took 32
ms for a pod on 100 nodes. What is known of a pool holds until its usage changes, so it is kept from pod to pod.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress, count, groupby
from operator import is_not
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from kschedfw import FrozenDict, IntArray, Quantity
from kschedfw.api import DeviceAttribute
from kschedfw_devices.dynamic_resources.capacity import has_amounts
from kschedfw_devices.dynamic_resources.counters import PoolCounters
from kschedfw_devices.dynamic_resources.inventory import (
    Expressions,
    PoolId,
    PublishedDevice,
    PublishedSlice,
    ReachablePools,
    SelectorFailure,
    Selectors,
)
from kschedfw_devices.dynamic_resources.usage import NOTHING_USED, PoolUsage, Usage

if TYPE_CHECKING:
    from kschedfw_devices.cel import Budget

Candidate: TypeAlias = tuple[PublishedSlice, int, bool, bool]
"""A slice, the position of a device in it, whether a selector can't be evaluated for that, and whether the device has
the wanted capacity while nobody uses it."""

STEPS_OF_CAPACITY: Final = 3
"""Steps for rounding a requested capacity, and comparing it with the free capacity."""

_MOST_KEPT: Final = 32
"""The number of pairs of lists of selectors for which a reach's candidates are kept."""
_FEWEST_POOLS: Final = 16
"""The number of pools from which on it pays to look at them as wholes: that takes some 20 µs."""
_SEVERAL: Final = -1
"""The number of an attribute's value in a pool whose devices have several, or need a look one by one."""


def candidates_of(
    reach: ReachablePools, selectors: Selectors, capacity: FrozenDict[str, Quantity], budget: Budget
) -> Candidates:
    """Return the usable devices that match the selectors of class and request, in the order of the search.

    `capacity` is the wanted one, which a device may lack.

    Raises:
        OutOfStepsError: the budget is spent.
    """
    kept = reach.candidates
    known = kept.get((selectors, capacity))
    if known is None:
        if len(kept) >= _MOST_KEPT:
            kept.clear()
        found = list(_find(reach, *selectors, capacity, budget))
        known = kept[selectors, capacity] = Candidates(found, reach)
    return known


def _find(
    reach: ReachablePools,
    of_class: Expressions,
    own: Expressions,
    capacity: FrozenDict[str, Quantity],
    budget: Budget,
) -> Iterator[Candidate]:
    for pool in reach.pools:
        if not pool.can_be_used:
            continue
        for slice_ in pool.slices:
            for position, device in enumerate(slice_.devices):
                budget.spend(1)
                try:
                    if not slice_.matches(position, of_class, budget) or not slice_.matches(
                        position, own, budget
                    ):
                        continue
                except SelectorFailure:
                    # Selectors come before the nodes of a device, as in v1.36: a failure counts even for
                    # a device that this node doesn't reach.
                    yield slice_, position, True, True
                else:
                    if device.is_reached_by(reach.node):
                        yield slice_, position, False, has_amounts(device.device.capacity, capacity)


@attrs.frozen(eq=False)
class PoolStates:
    """The state of each pool of `Candidates`, given the `usage` of devices, which `used` has by pool.

    Of a pool that `is_spent` a search can take no device, whatever it has taken before. Passing over all devices of a
    pool takes so many `steps`.
    """

    usage: Usage
    used: Sequence[PoolUsage]
    is_spent: npt.NDArray[np.bool_]
    steps: IntArray


class Candidates:
    """The devices in the order of the search. Those of one pool follow each other."""

    def __init__(self, devices: Sequence[Candidate], reach: ReachablePools) -> None:
        self.devices = devices
        self.pools: Sequence[PoolId] = []
        self.starts: list[int] = []
        """The index of each pool's first device; the last item is the number of all devices."""
        for pool, members in groupby(range(len(devices)), lambda index: devices[index][0].pool):
            self.pools.append(pool)
            self.starts.append(next(members))
        self.starts.append(len(devices))
        self._reach = reach
        self._states = PoolStates(
            Usage(),
            [_UNSEEN] * len(self.pools),
            np.zeros(len(self.pools), dtype=np.bool_),
            np.zeros(len(self.pools), dtype=np.int64),
        )
        self._values: dict[str, tuple[dict[DeviceAttribute | None, int], IntArray]] = {}

    @cached_property
    def matching(self) -> frozenset[PublishedDevice]:
        """The devices for which all selectors are true."""
        return frozenset(each.devices[position] for each, position, fails, _ in self.devices if not fails)

    @cached_property
    def failing(self) -> frozenset[PublishedDevice]:
        """The devices for which a selector can't be evaluated."""
        return frozenset(each.devices[position] for each, position, fails, _ in self.devices if fails)

    @cached_property
    def taking_counters(self) -> Sequence[PublishedDevice]:
        """The devices of `matching` that take counters of their pool."""
        return [each for each in self.matching if each.device.consumes_counters]

    @cached_property
    def number_of(self) -> Mapping[PoolId, int]:
        """The place of each pool in `pools`."""
        return {pool: number for number, pool in enumerate(self.pools)}

    def number_at(self, index: int) -> int:
        """Return the pool, by its place in `pools`, whose devices begin at this index."""
        return bisect_left(self.starts, index)

    def end_of_pool(self, index: int) -> int:
        """Return the index itself if a pool begins there, else where its pool ends.

        Where there are few pools, none is worth a look as a whole, so this is the number of all devices.
        """
        few = len(self.pools) < _FEWEST_POOLS
        return len(self.devices) if few else self.starts[bisect_left(self.starts, index)]

    def members(self, number: int) -> Sequence[Candidate]:
        """Return the devices of a pool, by its place in `pools`."""
        return self.devices[self.starts[number] : self.starts[number + 1]]

    def states(self, usage: Usage) -> PoolStates:
        """Return the state of the pools with this usage; only those whose usage has changed are looked at anew."""
        known = self._states
        if known.usage is usage:
            return known
        of = usage.by_pool.get
        used = [of(pool, NOTHING_USED) for pool in self.pools]
        changed = list(compress(count(), map(is_not, used, known.used)))
        # New arrays: another thread may read the old ones.
        new = PoolStates(usage, used, known.is_spent.copy(), known.steps.copy())
        for number in changed:
            new.is_spent[number], new.steps[number] = self._seen(number, used[number])
        self._states = new
        return new

    def _seen(self, number: int, used: PoolUsage) -> tuple[bool, int]:
        counters: PoolCounters | None = None
        is_spent, steps = True, 0
        for slice_, position, fails, has_amounts_ in self.members(number):
            device = slice_.devices[position].device
            if device.name in used.taken:
                steps += 1
                continue
            steps += 1 + STEPS_OF_CAPACITY * len(device.capacity)
            if fails or device.allow_multiple_allocations:
                is_spent = False
            elif is_spent and has_amounts_:
                if device.consumes_counters:
                    counters = counters or PoolCounters(self._reach.pool_of[slice_.pool], used)
                is_spent = (
                    counters is not None
                    and bool(device.consumes_counters)
                    and counters.never_suffice_for(device)
                )
        return is_spent, steps

    def by_value(self, attribute: str, value: DeviceAttribute | None) -> npt.NDArray[np.bool_]:
        """Return, for each pool, whether any of its devices may have this value of an attribute."""
        known = self._values.get(attribute)
        if known is None:
            numbers: dict[DeviceAttribute | None, int] = {}
            own = [self._number_in(number, attribute, numbers) for number in range(len(self.pools))]
            known = self._values[attribute] = numbers, np.array(own, dtype=np.int64)
        numbers, of_pools = known
        result: npt.NDArray[np.bool_] = (of_pools == _SEVERAL) | (of_pools == numbers.get(value, _SEVERAL))
        return result

    def _number_in(self, number: int, attribute: str, numbers: dict[DeviceAttribute | None, int]) -> int:
        members = self.members(number)
        published = [each.devices[position] for each, position, _, _ in members]
        values = {each.attribute(attribute) for each in published}
        # Devices aren't refused for their value alone where they differ in it, where a selector fails, or where one may
        # be shared.
        if (
            len(values) > 1
            or any(fails for *_, fails, _ in members)
            or any(each.device.allow_multiple_allocations for each in published)
        ):
            return _SEVERAL
        return numbers.setdefault(values.pop(), len(numbers))


_UNSEEN: Final = PoolUsage()
"""Another object than any usage that is compared with it."""
