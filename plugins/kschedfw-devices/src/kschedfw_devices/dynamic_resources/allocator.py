"""The search for devices for a pod's claims on one node (KEP-4381, KEP-4816).

The first solution counts: claims in the pod's order, requests in the claim's, alternatives in theirs, devices
in the order of pools, slices and lists; the devices of one request in increasing order only. Branches that
can't lead to a solution are skipped (see `pruning`).

Semantics: kube-scheduler v1.36.2 `structured` allocator ("incubating"), including its faults: it doesn't give
back the counters of a device that is refused after they were taken, or that is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from kschedfw import FrozenDict, KschedfwError, Quantity
from kschedfw.api import EMPTY, MAX_CLAIM_DEVICES, Device
from kschedfw_devices.cel import Budget
from kschedfw_devices.dynamic_resources.candidates import STEPS_OF_CAPACITY, Candidates, candidates_of
from kschedfw_devices.dynamic_resources.capacity import added, consumed, has_amounts, is_left
from kschedfw_devices.dynamic_resources.constraints import Constraint, constraint_of
from kschedfw_devices.dynamic_resources.counters import PoolCounters
from kschedfw_devices.dynamic_resources.inventory import (
    DeviceId,
    PoolId,
    PublishedDevice,
    PublishedSlice,
    ReachablePools,
    SelectorFailure,
)
from kschedfw_devices.dynamic_resources.pruning import Pruning
from kschedfw_devices.dynamic_resources.requests import Found, Option, WantedClaim
from kschedfw_devices.dynamic_resources.usage import NOTHING_USED, Usage

_LONG_SEARCH: Final = 1000
"""Steps after which it pays to look for a proof that there is no solution. Most searches take fewer than 100."""


class AllocationError(KschedfwError):
    """The error of a claim that can't be allocated on any node: the attempt to schedule the pod ends."""


class InvalidPoolsError(KschedfwError):
    """The error of a search without a solution where some pools of the node are invalid."""

    def __str__(self) -> str:
        return "invalid resource pools were encountered"


class _Place(NamedTuple):
    """A place in the search: the next device to find, by claim, request and option.

    `option` is None while no alternative is chosen. `found` counts the request's devices so far. The search for the
    next one begins at position `after` in the node's order of devices.
    """

    claim: int = 0
    request: int = 0
    option: int | None = None
    found: int = 0
    after: int = 0


_DONE: Final = _Place(claim=-1)
_Moves: TypeAlias = Generator[_Place, bool, bool]
"""The places behind a place. Each is answered with whether the claim gets too many devices there, as is the whole."""


@attrs.define(eq=False)
class _Passed:
    """The pools that a search has passed over from `first` to `end`, of which a constraint `refused` all devices."""

    candidates: Candidates
    refused: npt.NDArray[np.bool_]
    first: int
    end: int

    def devices_of(self, pool: PoolId) -> Iterator[Device]:
        """Yield the pool's devices that would have taken counters, had they been looked at."""
        number = self.candidates.number_of.get(pool, -1)
        if self.first <= number < self.end and self.refused[number]:
            for slice_, position, _, has_amounts in self.candidates.members(number):
                device = slice_.devices[position].device
                if has_amounts and device.consumes_counters:
                    yield device


class DeviceSearch:
    """One search among the devices that a node can use."""

    def __init__(
        self, claims: Sequence[WantedClaim], reach: ReachablePools, usage: Usage, budget: Budget
    ) -> None:
        self._claims = claims
        self._reach = reach
        self._usage = usage
        self._budget = budget
        self._all: dict[Option, Sequence[PublishedDevice]] = {}
        self._constraints: list[list[Constraint]] = []
        self._found: list[list[Found]] = [[] for _ in claims]
        self._taken: dict[DeviceId, set[int]] = {}
        """The claims, by number, that have a device as a whole; several only with admin access."""
        self._shared: dict[DeviceId, list[FrozenDict[str, Quantity]]] = {}
        """The consumed capacity of a device after each share: summing shares up at every look took most of the time."""
        self._counters: dict[PoolId, PoolCounters] = {}
        self._passed: list[_Passed] = []

    def run(self) -> Sequence[Sequence[Found]] | None:
        """Return the devices for each claim; None if there is no solution.

        Raises:
            AllocationError: a claim can't be allocated on any node.
            InvalidPoolsError: there is no solution, and pools of the node are invalid.
            OutOfStepsError: the budget is spent.
        """
        for wanted in self._claims:
            self._prepare(wanted)
        if not self._search():
            if self._reach.is_invalid:
                raise InvalidPoolsError
            return None
        return self._found

    def _prepare(self, wanted: WantedClaim) -> None:
        """Compute the least number of devices that a claim needs."""
        least = 0
        for request in wanted.requests:
            counts = []
            for option in request.options:
                if option.wants_all:
                    self._all[option] = self._all_devices(wanted, option)
                counts.append(self._count(option))
            least += min(counts, default=0)
        if least > MAX_CLAIM_DEVICES:
            raise AllocationError(
                f"claim {wanted.claim.key}: number of requested devices {least} exceeds the claim limit of"
                f" {MAX_CLAIM_DEVICES}"
            )
        self._constraints.append([constraint_of(each) for each in wanted.claim.spec.devices.constraints])

    def _count(self, option: Option) -> int:
        return len(self._all[option]) if option.wants_all else option.count

    def _all_devices(self, wanted: WantedClaim, option: Option) -> Sequence[PublishedDevice]:
        found = []
        for pool in self._reach.pools:
            problem = ""
            if pool.is_incomplete:
                problem = "being updated"
            elif pool.is_invalid:
                problem = "invalid"
            if problem:
                raise AllocationError(
                    f"claim {wanted.claim.key}, request {option.name}: asks for all devices, but resource pool"
                    f" {pool.pool} is currently {problem}"
                )
            for slice_ in pool.slices:
                for position, device in enumerate(slice_.devices):
                    self._budget.spend(1)
                    # As in v1.36, "all" means the devices with enough capacity now, without those used up.
                    if self._is_selected(wanted, option, slice_, position) and self._has_capacity(
                        option, device
                    ):
                        found.append(device)
        return found

    def _is_selected(
        self, wanted: WantedClaim, option: Option, slice_: PublishedSlice, position: int
    ) -> bool:
        owners = f"class {option.device_class.name}", f"claim {wanted.claim.key}"
        for owner, expressions in zip(owners, option.selectors, strict=True):
            try:
                if not slice_.matches(position, expressions, self._budget):
                    return False
            except SelectorFailure as refusal:
                raise AllocationError(f"{owner}: {refusal.selector}: {refusal.why}") from None
        return slice_.devices[position].is_reached_by(self._reach.node)

    def _search(self) -> bool:
        """Backtrack without recursion: each level of the stack takes something, and gives it back when resumed."""
        stack = [self._moves(_Place())]
        has_too_many: bool | None = None
        steps = 0
        while stack:
            steps += 1
            self._budget.spend(1)
            if steps == _LONG_SEARCH and self._pruning.proves_too_few:
                return False
            try:
                # The first thing that is sent to a generator has to be None.
                place = next(stack[-1]) if has_too_many is None else stack[-1].send(has_too_many)
            except StopIteration as end:
                has_too_many = end.value
                stack.pop()
            else:
                if place is _DONE:
                    return True
                stack.append(self._moves(place))
                has_too_many = None
        return False

    def _moves(self, place: _Place) -> _Moves:
        """Yield the next places of the search, each with the devices taken on the way."""
        if place.claim == len(self._claims):
            yield _DONE
            return False
        wanted = self._claims[place.claim]
        if place.request == len(wanted.requests):
            yield _Place(place.claim + 1)
            return False  # the answer was about the next claim, not about this one
        request = wanted.requests[place.request]
        if place.option is None:
            all_have = True
            for number in range(len(request.options)):
                all_have &= yield place._replace(option=number)
            return all_have
        option = request.options[place.option]
        count = self._count(option)
        # At least one device must exist, as the API says of the mode All.
        if option.wants_all and count == 0:
            return False
        if place.found == count:
            return (yield _Place(place.claim, place.request + 1))
        if len(self._found[place.claim]) - place.found + count > MAX_CLAIM_DEVICES:
            return True
        if option.wants_all:
            return (yield from self._next_of_all(wanted, option, place))
        return (yield from self._next_device(wanted, option, place))

    def _next_of_all(self, wanted: WantedClaim, option: Option, place: _Place) -> _Moves:
        device = self._all[option][place.found]
        if self._is_in_use(place.claim, option, device):
            return False
        give_back = self._take(place.claim, wanted, option, device)
        if give_back is None:
            return False
        has_too_many = yield place._replace(found=place.found + 1)
        give_back()
        return has_too_many

    def _next_device(self, wanted: WantedClaim, option: Option, place: _Place) -> _Moves:
        concerning, budget = self._concerning(place.claim, option), self._budget
        candidates = candidates_of(self._reach, option.selectors, option.capacity, budget)
        devices = candidates.devices
        # Devices are looked at one by one up to here. If it is their end, all are.
        until = len(devices) if option.admin_access else candidates.end_of_pool(place.after)
        pools: Iterator[tuple[int, int]] | None = None
        failed: set[Hashable] = set()
        """The likenesses of the devices that led to no solution at this place of the search."""
        seen, used, counters = None, NOTHING_USED.taken, None
        # There may be thousands of candidates, of which nearly all are refused: these take as few calls as can be.
        index = place.after - 1
        while (index := index + 1) < len(devices):
            if index == until:
                if failed:
                    until = len(devices)
                else:
                    pools = pools or self._pools_to_look_at(candidates, index, concerning)
                    index, until = next(pools, (len(devices), 0))
                    if not until:
                        return False
            slice_, position, fails, has_amounts = devices[index]
            device = slice_.devices[position]
            if slice_ is not seen:
                seen, used, counters = slice_, self._usage.of(slice_.pool).taken, None
            if (device.id[2] in used and not option.admin_access) or (
                device.id in self._taken and self._is_in_use(place.claim, option, device)
            ):
                budget.spend(1)
                continue
            is_shared = device.device.allow_multiple_allocations
            if fails or is_shared:
                budget.spend(1)
                if fails:
                    # evaluated again, for the error that names the selector
                    self._is_selected(wanted, option, slice_, position)
                has_amounts = self._has_capacity(option, device)
            else:
                budget.spend(1 + STEPS_OF_CAPACITY * len(device.device.capacity))
            if not has_amounts or (failed and self._likeness(device) in failed):
                continue
            takes_counters = bool(device.device.consumes_counters)
            if concerning and not (is_shared and takes_counters) and not concerning[0].allows(device):
                # Checked here, where it costs less than in `_take`.
                if takes_counters:
                    counters = counters or self._counters_of(device)
                    counters.take_later(device.device)
                continue
            if give_back := self._take(place.claim, wanted, option, device):
                has_too_many = yield place._replace(found=place.found + 1, after=index + 1)
                give_back()
                if has_too_many:
                    return True  # every device would give too many
                if self._pruning.knows_likeness:
                    failed.add(self._likeness(device))
                pools = None
        return False

    def _pools_to_look_at(
        self, candidates: Candidates, start: int, concerning: Sequence[Constraint]
    ) -> Iterator[tuple[int, int]]:
        """Yield where each pool's devices begin and end, from `start` on, that must be looked at one by one.

        Pass over the others, which is what they would come to: steps, and counters that are taken for nothing.
        """
        first = candidates.number_at(start)
        states = candidates.states(self._usage)
        look = ~states.is_spent
        refused = np.zeros_like(look)
        if concerning and (required := concerning[0].required) is not None:
            may_have = candidates.by_value(*required)
            refused, look = look & ~may_have, look & may_have
        # Pools in which this search has taken something aren't as the usage says.
        for pool in (*self._counters, *{device[:2] for device in self._taken}):
            number = candidates.number_of.get(pool)
            if number is not None:
                look[number], refused[number] = True, False
        passed = _Passed(candidates, refused, first, first)
        self._passed.append(passed)
        for number in (*(look[first:].nonzero()[0] + first).tolist(), len(candidates.pools)):
            self._budget.spend(int(states.steps[passed.end : number].sum()))
            passed.end = number
            if number < len(candidates.pools):
                yield candidates.starts[number], candidates.starts[number + 1]
                passed.end = number + 1

    @cached_property
    def _pruning(self) -> Pruning:
        return Pruning(self._claims, self._reach, self._usage, self._all, self._budget)

    def _likeness(self, device: PublishedDevice) -> Hashable:
        """Return the equivalence class of a device: its members succeed or fail alike at this place of the search."""
        taken = frozenset(self._taken.get(device.id, ()))
        return self._pruning.likeness(device), self._consumed(device), taken

    def _is_in_use(self, number: int, option: Option, published: PublishedDevice) -> bool:
        """Tell whether a device is taken as a whole. For admin access, only devices of the same claim count."""
        taken = self._taken.get(published.id, ())
        if option.admin_access:
            return number in taken
        return bool(taken) or published.id[2] in self._usage.of(published.id[:2]).taken

    def _has_capacity(self, option: Option, published: PublishedDevice) -> bool:
        capacities = published.device.capacity
        self._budget.spend(STEPS_OF_CAPACITY * len(capacities))
        if not published.device.allow_multiple_allocations:
            return has_amounts(capacities, option.capacity)
        amounts = consumed(capacities, option.capacity)
        return amounts is not None and is_left(capacities, amounts, self._consumed(published))

    def _take(
        self, number: int, wanted: WantedClaim, option: Option, published: PublishedDevice
    ) -> Callable[[], None] | None:
        """Take a free device for a request, if its capacities and the claim's constraints allow.

        Return the function that undoes it; None if the device can't be taken.
        """
        device = published.device
        is_shared = device.allow_multiple_allocations
        counters = self._counters_of(published) if device.consumes_counters else None
        # A shared device takes its counters with the first share.
        takes_counters = counters is not None and not (is_shared and self._has_shares(published))
        if counters is not None and takes_counters and not counters.take(device):
            return None
        # What fails from here on leaves the counters taken, as in v1.36.
        if not option.tolerates(device.taints):
            return None
        concerning = self._concerning(number, option)
        for number_before, constraint in enumerate(concerning):
            if not constraint.allows(published):
                if option.wants_all:
                    raise AllocationError(
                        f"claim {wanted.claim.key}, request {option.name}: cannot add device"
                        f" {'/'.join(published.id)} because a claim constraint would not be satisfied"
                    )
                for earlier in concerning[:number_before]:
                    earlier.remove(option.request)
                return None
            constraint.add(option.request, published)
        # An earlier request may have used up one of "all" devices. As in v1.36, constraints keep the device.
        if option.wants_all and not self._has_capacity(option, published):
            return None
        amounts = consumed(device.capacity, option.capacity) if is_shared else None
        if amounts is None:
            self._taken.setdefault(published.id, set()).add(number)
        else:
            self._shared.setdefault(published.id, []).append(added(self._consumed(published), amounts))
        self._found[number].append(Found(option, published, amounts or EMPTY))

        def give_back() -> None:
            self._found[number].pop()
            for constraint in concerning:
                constraint.remove(option.request)
            if amounts is None:
                self._taken[published.id].discard(number)
                if counters is not None:
                    counters.give_back(device)
            elif amounts:
                # The device keeps its counters, as in v1.36; without capacities it counts as shared ever after.
                self._shared[published.id].pop()

        return give_back

    def _concerning(self, number: int, option: Option) -> Sequence[Constraint]:
        """Return the claim's constraints that apply to the option."""
        return [each for each in self._constraints[number] if each.concerns(option)]

    def _has_shares(self, published: PublishedDevice) -> bool:
        used = self._usage.of(published.id[:2])
        return published.id[2] in used.shares or bool(self._shared.get(published.id))

    def _consumed(self, published: PublishedDevice) -> FrozenDict[str, Quantity]:
        if after_shares := self._shared.get(published.id):
            return after_shares[-1]
        return self._usage.of(published.id[:2]).consumed(published.device)

    def _counters_of(self, published: PublishedDevice) -> PoolCounters:
        id_ = published.id[:2]
        counters = self._counters.get(id_)
        if counters is None:
            used = self._usage.of(id_)
            counters = self._counters[id_] = PoolCounters(self._reach.pool_of[id_], used)
            for device in (device for passed in self._passed for device in passed.devices_of(id_)):
                if device.name not in used.taken:
                    counters.take_later(device)
        return counters
