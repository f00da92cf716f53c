"""Finds devices for a pod's claims on one node (KEP-4381, KEP-4816).

The first solution counts: claims in the pod's order, requests in the claim's, alternatives in theirs, devices in the
order of pools, slices and lists; the devices of one request in increasing order only.

Semantics: kube-scheduler v1.36 `structured` allocator ("incubating").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs

from kschedfw import KschedfwError, Node
from kschedfw.api.frozendict import EMPTY
from kschedfw.api.resource_claims import MAX_RESULTS
from kschedfw.plugins.dynamic_resources.capacity import Amounts, added, consumed, is_left
from kschedfw.plugins.dynamic_resources.constraints import Constraint, constraint_of
from kschedfw.plugins.dynamic_resources.counters import PoolCounters
from kschedfw.plugins.dynamic_resources.inventory import (
    DeviceId,
    NodePool,
    PoolId,
    PublishedDevice,
    PublishedSlice,
    Refusal,
)
from kschedfw.plugins.dynamic_resources.requests import Option, WantedClaim
from kschedfw.plugins.dynamic_resources.results import Found
from kschedfw.plugins.dynamic_resources.usage import NOTHING_USED, Usage

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


@attrs.frozen
class _Place:
    """How far the search has come: so many devices of this option of this request of this claim are found.

    `option` is None while no alternative is chosen. The next device comes behind `after` in the node's order.
    """

    claim: int = 0
    request: int = 0
    option: int | None = None
    found: int = 0
    after: int = 0


_DONE: Final = _Place(claim=-1)

Candidate = tuple[PublishedSlice, int]
"""A slice, and the position of a device in it."""


class Search:
    """One search on one node."""

    def __init__(
        self,
        claims: Sequence[WantedClaim],
        node: Node,
        pools: Sequence[NodePool],
        usage: Usage,
        is_late: Callable[[], bool],
    ) -> None:
        self._claims = claims
        self._node = node
        self._pools = pools
        self._usage = usage
        self._is_late = is_late
        self._candidates: Sequence[Candidate] = [
            (each, position)
            for pool in pools
            if not pool.pool.is_incomplete and not pool.is_invalid
            for each in pool.slices
            for position in range(len(each.devices))
        ]
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
            if any(each.is_invalid for each in self._pools):
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
        for pool in self._pools:
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
            if not slice_.matches(position, option.class_selectors):
                return False
        except Refusal as refusal:
            raise _selector_error(f"class {option.device_class.name}", refusal) from None
        try:
            if not slice_.matches(position, option.own_selectors):
                return False
        except Refusal as refusal:
            raise _selector_error(f"claim {wanted.claim.key}", refusal) from None
        return slice_.devices[position].is_reached_by(self._node)

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
                yield attrs.evolve(place, option=number)
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
                    yield attrs.evolve(place, found=place.found + 1)
                    give_back()
            return
        for index in range(place.after, len(self._candidates)):
            slice_, position = self._candidates[index]
            device = slice_.devices[position]
            if not option.admin_access and self._is_in_use(device):
                continue
            if not self._is_selected(wanted, option, slice_, position):
                continue
            if give_back := self._take(place.claim, wanted, option, device):
                yield attrs.evolve(place, found=place.found + 1, after=index + 1)
                give_back()

    def _is_in_use(self, device: PublishedDevice) -> bool:
        usage = self._usage.get(device.id[:2], NOTHING_USED)
        return device.id[2] in usage.taken or device.id in self._taken

    def _take(
        self, number: int, wanted: WantedClaim, option: Option, published: PublishedDevice
    ) -> Callable[[], None] | None:
        """Take a device for a request, if it is to be had; gives what gives it back."""
        device = published.device
        if not option.admin_access and self._is_in_use(published):
            return None
        amounts = consumed(device.capacity, option.capacity)
        if amounts is None or not is_left(device.capacity, amounts, self._consumed(published)):
            return None
        counters = self._counters_of(published) if device.consumes_counters else None
        if counters is not None and not counters.suffice_for(device):
            return None
        if not option.tolerates(device.taints):
            return None
        for position, constraint in enumerate(self._constraints[number]):
            if not constraint.add(option.request, option.full_name, published):
                if option.wants_all:
                    raise AllocationError(
                        f"claim {wanted.claim.key}, request {option.name}: cannot add device"
                        f" {'/'.join(published.id)} because a claim constraint would not be satisfied"
                    )
                for earlier in self._constraints[number][:position]:
                    earlier.remove(option.request, option.full_name)
                return None
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
            for constraint in self._constraints[number]:
                constraint.remove(option.request, option.full_name)
            if is_shared:
                # It keeps its counters, as in v1.36.
                self._shared[published.id].pop()
                return
            if not option.admin_access:
                self._taken.discard(published.id)
            if counters is not None:
                counters.give_back(device)

        return give_back

    def _consumed(self, published: PublishedDevice) -> Amounts:
        if not published.device.allow_multiple_allocations:
            return {}
        total = self._usage.get(published.id[:2], NOTHING_USED).consumed(published.id[2])
        for share in self._shared.get(published.id, ()):
            total = added(total, share)
        return total

    def _counters_of(self, published: PublishedDevice) -> PoolCounters:
        id_ = published.id[:2]
        counters = self._counters.get(id_)
        if counters is None:
            pool = next(each.pool for each in self._pools if each.pool.id == id_)
            counters = self._counters[id_] = PoolCounters(pool, self._usage.get(id_, NOTHING_USED))
        return counters


def _selector_error(whose: str, refusal: Refusal) -> AllocationError:
    return AllocationError(f"{whose}: selector #{refusal.index}: {refusal.why}")
