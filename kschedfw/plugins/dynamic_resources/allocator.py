"""Finds devices for a pod's claims on one node (KEP-4381, KEP-4816).

The first solution counts: claims in the pod's order, requests in the claim's, alternatives in theirs, devices in the
order of pools, slices and lists; the devices of one request in increasing order only.

Semantics: kube-scheduler v1.36 `structured` allocator ("incubating").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from kschedfw import KschedfwError
from kschedfw.api import EMPTY
from kschedfw.api.resource_claims import MAX_RESULTS
from kschedfw.plugins.dynamic_resources.capacity import Amounts, added, consumed, is_left
from kschedfw.plugins.dynamic_resources.constraints import Constraint, constraint_of
from kschedfw.plugins.dynamic_resources.counters import PoolCounters
from kschedfw.plugins.dynamic_resources.inventory import (
    DeviceId,
    PoolId,
    PublishedDevice,
    PublishedSlice,
    Reach,
    Refusal,
)
from kschedfw.plugins.dynamic_resources.requests import Option, WantedClaim
from kschedfw.plugins.dynamic_resources.results import Found
from kschedfw.plugins.dynamic_resources.usage import Usage

_STEPS_BETWEEN_CHECKS: Final = 256


class AllocationError(KschedfwError):
    """A claim can't be allocated, whatever the node: the attempt to schedule the pod ends."""


class InvalidPoolsError(KschedfwError):
    """There is no solution on this node, but some of its pools are invalid."""

    def __str__(self) -> str:
        return "invalid resource pools were encountered"


class AllocationTimeoutError(KschedfwError):
    """The search has taken too long."""

    def __str__(self) -> str:
        return "timed out trying to allocate devices"


class _Place(NamedTuple):
    """How far the search has come: so many devices of this option of this request of this claim are found.

    `option` is None while no alternative is chosen. The next device comes behind `after` in the node's order.
    """

    claim: int = 0
    request: int = 0
    option: int | None = None
    found: int = 0
    after: int = 0


_DONE: Final = _Place(claim=-1)


class Search:
    """One search among what a node can use."""

    def __init__(
        self,
        claims: Sequence[WantedClaim],
        reach: Reach,
        usage: Usage,
        is_late: Callable[[], bool],
    ) -> None:
        self._claims = claims
        self._reach = reach
        self._usage = usage
        self._is_late = is_late
        self._all: dict[Option, Sequence[PublishedDevice]] = {}
        self._constraints: list[list[Constraint]] = []
        self._found: list[list[Found]] = [[] for _ in claims]
        self._taken: set[DeviceId] = set()
        self._shared: dict[DeviceId, list[Amounts]] = {}
        self._counters: dict[PoolId, PoolCounters] = {}

    def run(self) -> Sequence[Sequence[Found]] | None:
        """The devices for each claim; None where there is no solution.

        Raises:
            AllocationError: as its class has it.
            InvalidPoolsError: there is none, and pools of the node are invalid.
            AllocationTimeoutError: it took too long.
        """
        for wanted in self._claims:
            self._prepare(wanted)
        if not self._search():
            if self._reach.is_invalid:
                raise InvalidPoolsError
            return None
        return self._found

    def _prepare(self, wanted: WantedClaim) -> None:
        """Find out how many devices a claim needs at least."""
        least = 0
        for request in wanted.requests:
            counts = []
            for option in request.options:
                if option.wants_all:
                    self._all[option] = self._all_devices(wanted, option)
                counts.append(self._count(option))
            least += min(counts, default=0)
        if least > MAX_RESULTS:
            raise AllocationError(
                f"claim {wanted.claim.key}: number of requested devices {least} exceeds the claim limit of"
                f" {MAX_RESULTS}"
            )
        self._constraints.append([constraint_of(each) for each in wanted.claim.spec.devices.constraints])

    def _count(self, option: Option) -> int:
        return len(self._all[option]) if option.wants_all else option.count

    def _all_devices(self, wanted: WantedClaim, option: Option) -> Sequence[PublishedDevice]:
        found = []
        for pool in self._reach.pools:
            problem = ""
            if pool.pool.is_incomplete:
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
                    if self._is_selected(wanted, option, slice_, position):
                        found.append(device)
        return found

    def _is_selected(
        self, wanted: WantedClaim, option: Option, slice_: PublishedSlice, position: int
    ) -> bool:
        try:
            if not slice_.matches(position, option.selectors[0]):
                return False
        except Refusal as refusal:
            raise _selector_error(f"class {option.device_class.name}", refusal) from None
        try:
            if not slice_.matches(position, option.selectors[1]):
                return False
        except Refusal as refusal:
            raise _selector_error(f"claim {wanted.claim.key}", refusal) from None
        return slice_.devices[position].is_reached_by(self._reach.node)

    def _search(self) -> bool:
        """Backtracking without recursion: each level of the stack takes something, and gives it back when resumed."""
        stack = [self._moves(_Place())]
        steps = 0
        while stack:
            steps += 1
            if steps % _STEPS_BETWEEN_CHECKS == 0 and self._is_late():
                raise AllocationTimeoutError
            place = next(stack[-1], None)
            if place is None:
                stack.pop()
            elif place is _DONE:
                return True
            else:
                stack.append(self._moves(place))
        return False

    def _moves(self, place: _Place) -> Iterator[_Place]:
        """The places that the search can come to from here, each with what was taken on the way."""
        if place.claim == len(self._claims):
            yield _DONE
            return
        wanted = self._claims[place.claim]
        if place.request == len(wanted.requests):
            yield _Place(place.claim + 1)
            return
        request = wanted.requests[place.request]
        if place.option is None:
            for number in range(len(request.options)):
                yield place._replace(option=number)
            return
        option = request.options[place.option]
        count = self._count(option)
        if place.found == count and not (option.wants_all and count == 0):
            yield _Place(place.claim, place.request + 1)
        elif len(self._found[place.claim]) - place.found + count <= MAX_RESULTS:
            yield from self._next_device(wanted, option, place)

    def _next_device(self, wanted: WantedClaim, option: Option, place: _Place) -> Iterator[_Place]:
        if option.wants_all:
            if place.found < len(self._all[option]):
                device = self._all[option][place.found]
                if give_back := self._take(place.claim, wanted, option, device):
                    yield place._replace(found=place.found + 1)
                    give_back()
            return
        concerning = self._concerning(place.claim, option)
        candidates = self._reach.candidates(option.selectors)
        for index in range(place.after, len(candidates)):
            slice_, position, fails = candidates[index]
            device = slice_.devices[position]
            if not option.admin_access and self._is_in_use(device):
                continue
            if fails:
                self._is_selected(wanted, option, slice_, position)  # says which selector it is
            if concerning and not concerning[0].allows(device):
                continue  # at less expense than below
            if give_back := self._take(place.claim, wanted, option, device):
                yield place._replace(found=place.found + 1, after=index + 1)
                give_back()

    def _is_in_use(self, device: PublishedDevice) -> bool:
        usage = self._usage.of(device.id[:2])
        return device.id[2] in usage.taken or device.id in self._taken

    def _take(
        self, number: int, wanted: WantedClaim, option: Option, published: PublishedDevice
    ) -> Callable[[], None] | None:
        """Take a device for a request, if it is to be had; gives what gives it back."""
        device = published.device
        if not option.admin_access and self._is_in_use(published):
            return None
        concerning = self._concerning(number, option)
        amounts = consumed(device.capacity, option.capacity)
        if amounts is None or not is_left(device.capacity, amounts, self._consumed(published)):
            return None
        counters = self._counters_of(published) if device.consumes_counters else None
        if counters is not None and not counters.suffice_for(device):
            return None
        if not option.tolerates(device.taints):
            return None
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
        is_shared = device.allow_multiple_allocations
        if is_shared:
            self._shared.setdefault(published.id, []).append(amounts)
        elif not option.admin_access:
            self._taken.add(published.id)
        if counters is not None:
            counters.take(device)
        self._found[number].append(Found(option, published, amounts if is_shared else EMPTY))

        def give_back() -> None:
            self._found[number].pop()
            for constraint in concerning:
                constraint.remove(option.request)
            if is_shared:
                # It keeps its counters, as in v1.36.
                self._shared[published.id].pop()
                return
            if not option.admin_access:
                self._taken.discard(published.id)
            if counters is not None:
                counters.give_back(device)

        return give_back

    def _concerning(self, number: int, option: Option) -> Sequence[Constraint]:
        """The claim's constraints that are about the option."""
        return [each for each in self._constraints[number] if each.concerns(option.request, option.full_name)]

    def _consumed(self, published: PublishedDevice) -> Amounts:
        if not published.device.allow_multiple_allocations:
            return {}
        total = self._usage.of(published.id[:2]).consumed(published.id[2])
        for share in self._shared.get(published.id, ()):
            total = added(total, share)
        return total

    def _counters_of(self, published: PublishedDevice) -> PoolCounters:
        id_ = published.id[:2]
        counters = self._counters.get(id_)
        if counters is None:
            counters = self._counters[id_] = PoolCounters(self._reach.pool_of[id_], self._usage.of(id_))
        return counters


def _selector_error(whose: str, refusal: Refusal) -> AllocationError:
    return AllocationError(f"{whose}: selector #{refusal.index}: {refusal.why}")
