"""A search for devices that tries everything in kube-scheduler's order, by plain recursion, for comparisons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from kschedfw_devices.cel import Budget
from kschedfw_devices.dynamic_resources.capacity import added, consumed, is_left
from kschedfw_devices.dynamic_resources.constraints import Constraint, constraint_of
from kschedfw_devices.dynamic_resources.counters import consumption_of
from kschedfw_devices.dynamic_resources.inventory import (
    DeviceId,
    PublishedDevice,
    ReachablePools,
    SelectorFailure,
)
from kschedfw_devices.dynamic_resources.requests import Option, WantedClaim
from kschedfw_devices.dynamic_resources.usage import Usage

from kschedfw.api import Quantity
from kschedfw.api.frozendict import EMPTY

MOST = 32
"""Devices of a claim."""


class Aborted(Exception):
    """The attempt ends: a selector can't be evaluated, or all devices break a constraint."""


class TooMany(Exception):
    """No choice of devices makes up for the number that the claim gets by the alternatives that were chosen."""


def counters_of(published: PublishedDevice) -> dict[tuple[object, ...], int]:
    return {(published.id[:2], *name): value.value() for name, value in consumption_of(published.device)}


class Exhaustive:
    """`place` is called with each way to go on and says whether that led to a solution."""

    def __init__(self, claims: Sequence[WantedClaim], reach: ReachablePools, usage: Usage) -> None:
        self.claims, self.reach, self.usage = claims, reach, usage
        self.devices = [
            (slice_, position, device)
            for pool in reach.pools
            if pool.can_be_used
            for slice_ in pool.slices
            for position, device in enumerate(slice_.devices)
        ]
        self.constraints: list[list[Constraint]] = [
            [constraint_of(each) for each in wanted.claim.spec.devices.constraints] for wanted in claims
        ]
        self.taken: set[tuple[int, DeviceId]] = set()
        self.shares: dict[DeviceId, dict[str, Quantity]] = {}
        self.counters: Counter[tuple[object, ...]] = Counter()
        self.there: dict[tuple[object, ...], int] = {
            (pool.pool.id, each.name, name): counter.value.value()
            for pool in reach.pools
            for slice_ in pool.pool.slices
            for each in slice_.counter_sets
            for name, counter in each.counters.items()
        }
        for _, _, device in self.devices:
            if device.id[2] in usage.of(device.id[:2]).taken:
                self.counters.update(counters_of(device))
        self.found: list[list[tuple[str, DeviceId]]] = [[] for _ in claims]
        self.visited = 0

    def run(self) -> list[list[tuple[str, DeviceId]]] | None:
        self.all: dict[tuple[int, Option], list[PublishedDevice]] = {}
        for number, wanted in enumerate(self.claims):
            least = 0
            for request in wanted.requests:
                for option in request.options:
                    if option.wants_all:
                        matching = self.selected(option)
                        self.all[number, option] = [
                            each for each in matching if self.has_capacity(option, each)
                        ]
                least += min(self.count(number, option) for option in request.options)
            if least > MOST:
                raise Aborted("exceeds the claim limit")
        return self.found if self.claim(0) else None

    def selected(self, option: Option) -> Sequence[PublishedDevice]:
        return [device for slice_, position, device in self.devices if self.matches(option, slice_, position)]

    def matches(self, option: Option, slice_: object, position: int) -> bool:
        try:
            return all(slice_.matches(position, each, Budget()) for each in option.selectors)  # type: ignore[attr-defined]
        except SelectorFailure as refusal:
            raise Aborted(refusal.why) from None

    def count(self, number: int, option: Option) -> int:
        return len(self.all[number, option]) if option.wants_all else option.count

    def claim(self, number: int) -> bool:
        if number == len(self.claims):
            return True
        try:
            return self.request(number, 0)
        except TooMany:
            return False

    def request(self, number: int, index: int) -> bool:
        requests = self.claims[number].requests
        if index == len(requests):
            return self.claim(number + 1)
        too_many = 0
        for option in requests[index].options:
            try:
                if self.one(number, index, option, 0, 0):
                    return True
            except TooMany:
                too_many += 1
        if too_many == len(requests[index].options):
            raise TooMany
        return False

    def one(self, number: int, index: int, option: Option, had: int, start: int) -> bool:
        self.visited += 1
        count = self.count(number, option)
        if option.wants_all and not count:
            return False
        if had == count:
            return self.request(number, index + 1)
        if len(self.found[number]) - had + count > MOST:
            raise TooMany
        if option.wants_all:
            device = self.all[number, option][had]
            if self.in_use(number, option, device):
                return False
            return self.taking(number, option, device, lambda: self.one(number, index, option, had + 1, 0))
        for place in range(start, len(self.devices)):
            slice_, position, device = self.devices[place]
            if self.in_use(number, option, device) or not self.matches(option, slice_, position):
                continue
            if self.has_capacity(option, device):
                go_on = self.going_on(number, index, option, had + 1, place + 1)
                if self.taking(number, option, device, go_on):
                    return True
        return False

    def going_on(self, number: int, index: int, option: Option, had: int, start: int) -> Callable[[], bool]:
        return lambda: self.one(number, index, option, had, start)

    def in_use(self, number: int, option: Option, device: PublishedDevice) -> bool:
        if option.admin_access:
            return (number, device.id) in self.taken
        allocated = device.id[2] in self.usage.of(device.id[:2]).taken
        return allocated or any(each == device.id for _, each in self.taken)

    def has_capacity(self, option: Option, device: PublishedDevice) -> bool:
        amounts = consumed(device.device.capacity, option.capacity)
        return amounts is not None and is_left(
            device.device.capacity, amounts, self.shares.get(device.id, {})
        )

    def taking(
        self, number: int, option: Option, published: PublishedDevice, go_on: Callable[[], bool]
    ) -> bool:
        """Take a device, go on, and give it back if that didn't help, but for what kube-scheduler forgets."""
        device, shared = published.device, published.device.allow_multiple_allocations
        if not (shared and published.id in self.shares):
            amounts = counters_of(published)
            if any(self.counters[name] + value > self.there[name] for name, value in amounts.items()):
                return False
            self.counters.update(amounts)
        if not option.tolerates(device.taints):
            return False
        concerning = [each for each in self.constraints[number] if each.concerns(option)]
        for index, constraint in enumerate(concerning):
            if not constraint.allows(published):
                if option.wants_all:
                    raise Aborted(f"cannot add device {'/'.join(published.id)}")
                for earlier in concerning[:index]:
                    earlier.remove(option.request)
                return False
            constraint.add(option.request, published)
        if not self.has_capacity(option, published):
            return False
        before = self.shares.get(published.id)
        if shared:
            share = consumed(device.capacity, option.capacity) or EMPTY
            self.shares[published.id] = dict(added(before or {}, share))
        else:
            self.taken.add((number, published.id))
        self.found[number].append((option.full_name, published.id))
        try:
            if go_on():
                return True
        except TooMany:
            self.undo(number, option, published, concerning, before)
            raise
        self.undo(number, option, published, concerning, before)
        return False

    def undo(
        self,
        number: int,
        option: Option,
        published: PublishedDevice,
        concerning: Sequence[Constraint],
        before: dict[str, Quantity] | None,
    ) -> None:
        self.found[number].pop()
        for constraint in concerning:
            constraint.remove(option.request)
        if not published.device.allow_multiple_allocations:
            self.taken.discard((number, published.id))
            self.counters.subtract(counters_of(published))
        elif before is not None:
            self.shares[published.id] = before
        else:
            del self.shares[published.id]
