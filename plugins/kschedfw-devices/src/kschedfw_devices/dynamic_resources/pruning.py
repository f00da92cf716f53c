"""Proofs that branches of a device search have no solution, so that the search can skip them.

kube-scheduler tries alike devices one after the other, and so works for an exponential time on a claim for 32
devices where there are 31. Only branches that are proven to fail are skipped: the first solution stays the
first, and an error that the search would meet is still met.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import attrs

from kschedfw.api import DeviceConstraint
from kschedfw_devices.cel import Budget
from kschedfw_devices.dynamic_resources.candidates import Candidates, candidates_of
from kschedfw_devices.dynamic_resources.capacity import consumed, is_left
from kschedfw_devices.dynamic_resources.inventory import PublishedDevice, ReachablePools
from kschedfw_devices.dynamic_resources.requests import Option, WantedClaim, WantedRequest
from kschedfw_devices.dynamic_resources.usage import Usage


@attrs.frozen(eq=False)
class _Choice:
    """An option of a claim's request, and its devices: `candidates`, or `all_devices` for an option that wants all."""

    option: Option
    is_constrained: bool
    candidates: Candidates | None
    all_devices: frozenset[PublishedDevice] = frozenset()

    @property
    def devices(self) -> frozenset[PublishedDevice]:
        """The devices that match."""
        return self.all_devices if self.candidates is None else self.candidates.matching

    @property
    def failing(self) -> frozenset[PublishedDevice]:
        """The devices for which a selector can't be evaluated."""
        return frozenset() if self.candidates is None else self.candidates.failing

    @property
    def taking_counters(self) -> Iterable[PublishedDevice]:
        """The devices that match and take counters."""
        if self.candidates is not None:
            return self.candidates.taking_counters
        return (each for each in self.all_devices if each.device.consumes_counters)


@attrs.define(eq=False)
class Pruning:
    """Facts about the devices of one search, each computed on first use."""

    _claims: Sequence[WantedClaim]
    _reach: ReachablePools
    _usage: Usage
    _all: Mapping[Option, Sequence[PublishedDevice]]
    _budget: Budget
    _likeness: dict[PublishedDevice, Hashable] = attrs.field(factory=dict, init=False)

    @cached_property
    def _choices(self) -> Mapping[tuple[int, Option], _Choice]:
        """The choices by claim and option: claims with equal requests share options, but not constraints."""
        return {
            (number, option): self._choice(wanted, option)
            for number, wanted in enumerate(self._claims)
            for request in wanted.requests
            for option in request.options
        }

    def _choice(self, wanted: WantedClaim, option: Option) -> _Choice:
        is_constrained = any(option.is_among(each.requests) for each in wanted.claim.spec.devices.constraints)
        if option.wants_all:
            return _Choice(option, is_constrained, None, frozenset(self._all[option]))
        candidates = candidates_of(self._reach, option.selectors, option.capacity, self._budget)
        self._budget.spend(len(candidates.devices))
        return _Choice(option, is_constrained, candidates)

    @property
    def _constraints(self) -> Iterator[DeviceConstraint]:
        return (each for wanted in self._claims for each in wanted.claim.spec.devices.constraints)

    # --- Alike devices

    @cached_property
    def knows_likeness(self) -> bool:
        """True if devices of equal likeness fail alike at a place of the search.

        This needs a search that restores everything when it goes back. kube-scheduler's doesn't restore the
        values of `distinctAttribute`, nor counters. Nor may the search end with an error at one device and not
        at another.
        """
        if any(each.distinct_attribute for each in self._constraints):
            return False
        for choice in self._choices.values():
            if choice.option.wants_all and choice.is_constrained:
                return False
            if any(
                choice.is_constrained
                or each.device.allow_multiple_allocations
                or not choice.option.tolerates(each.device.taints)
                for each in choice.taking_counters
            ):
                return False
        return True

    def likeness(self, published: PublishedDevice) -> Hashable:
        """Return the equivalence class of a device at the start of a search: its members suit all requests alike."""
        known = self._likeness.get(published)
        if known is None:
            self._budget.spend(len(self._choices))
            known = self._likeness[published] = self._found_likeness(published)
        return known

    def _found_likeness(self, published: PublishedDevice) -> Hashable:
        device = published.device
        return (
            tuple(
                (
                    published in choice.devices,
                    published in choice.failing,
                    choice.option.tolerates(device.taints),
                    self._has_capacity(choice.option, published),
                )
                for choice in self._choices.values()
            ),
            tuple(published.attribute(name) for name in self._matched_attributes),
            published.id[2] in self._usage.of(published.id[:2]).taken,
            # For a shared device the free capacity matters, too.
            device.capacity if device.allow_multiple_allocations else None,
            (published.id[:2], device.consumes_counters) if device.consumes_counters else None,
        )

    @cached_property
    def _matched_attributes(self) -> Sequence[str]:
        return list(dict.fromkeys(each.match_attribute for each in self._constraints if each.match_attribute))

    # --- Too few devices

    @cached_property
    def proves_too_few(self) -> bool:
        """True if requests ask for more devices than all of them together can have."""
        if any(
            each.failing or (each.option.wants_all and each.is_constrained) for each in self._choices.values()
        ):
            return False  # no proof: the search may end with an error instead
        exclusive: list[tuple[int, frozenset[PublishedDevice]]] = []
        for number, wanted in enumerate(self._claims):
            for request in wanted.requests:
                count, devices = self._least(request), frozenset(self._usable(number, request))
                if count > len(devices):
                    return True
                if not _may_overlap(request, devices):
                    exclusive.append((count, devices))
        # Hall's condition, for some sets of devices: where requests ask for more than a set holds there is no
        # solution. Where they don't there may be one, and the search goes on.
        together: frozenset[PublishedDevice] = frozenset().union(*(devices for _, devices in exclusive))
        for devices in {together, *(each for _, each in exclusive)}:
            self._budget.spend(len(exclusive) + len(together))
            if sum(count for count, own in exclusive if own <= devices) > len(devices):
                return True
        return False

    def _least(self, request: WantedRequest) -> int:
        counts = (len(self._all[each]) if each.wants_all else each.count for each in request.options)
        return min(counts, default=0)

    def _usable(self, number: int, request: WantedRequest) -> Iterator[PublishedDevice]:
        """Yield the devices that a request of a claim could have if nothing else was asked for."""
        for option in request.options:
            for published in self._choices[number, option].devices:
                self._budget.spend(1)
                taken = self._usage.of(published.id[:2]).taken
                if (
                    (option.admin_access or published.id[2] not in taken)
                    and option.tolerates(published.device.taints)
                    and self._has_capacity(option, published)
                ):
                    yield published

    def _has_capacity(self, option: Option, published: PublishedDevice) -> bool:
        """Tell whether the device has the capacities that the option asks for, beside the allocated amounts."""
        device = published.device
        amounts = consumed(device.capacity, option.capacity)
        used = self._usage.of(published.id[:2]).consumed(device)
        return amounts is not None and is_left(device.capacity, amounts, used)


def _may_overlap(request: WantedRequest, devices: frozenset[PublishedDevice]) -> bool:
    """Tell whether another request may get the same devices."""
    return any(each.admin_access for each in request.options) or any(
        each.device.allow_multiple_allocations for each in devices
    )
