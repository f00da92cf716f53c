"""Reasons why a device of a node doesn't satisfy a request, for explanations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Final

import attrs

from kschedfw.api import EMPTY, DeviceTaint, DeviceTaintEffect
from kschedfw.api.field_errors import printable
from kschedfw.cel import Budget
from kschedfw.framework.evidence import EvidenceValue
from kschedfw.plugins.dynamic_resources.capacity import consumed, is_left
from kschedfw.plugins.dynamic_resources.counters import PoolCounters
from kschedfw.plugins.dynamic_resources.inventory import (
    DeviceId,
    Expressions,
    NodePool,
    PublishedDevice,
    ReachablePools,
    failing,
)
from kschedfw.plugins.dynamic_resources.requests import Option
from kschedfw.plugins.dynamic_resources.usage import Usage

_LONGEST: Final = 160
"""The number of characters of an expression that are shown."""


def _nothing(_: PublishedDevice) -> str:
    return ""


@attrs.frozen
class DeviceReason:
    """A requirement of a request, and the text about devices that fail it.

    `found` is the text after which their number follows. `of_device` describes a single one. `values` are for
    programs.
    """

    asked: str
    found: str
    values: Mapping[str, EvidenceValue] = attrs.field(default=EMPTY, eq=False)
    of_device: Callable[[PublishedDevice], str] = attrs.field(default=_nothing, eq=False)


WOULD_DO: Final = DeviceReason("", "")


@attrs.frozen(eq=False, slots=False)
class Viewer:
    """The devices that a node can use, examined under the present usage.

    `holder_of` returns the key of the claim with a device. All methods raise OutOfStepsError if selectors take
    more than the `budget`.
    """

    reach: ReachablePools
    usage: Usage
    holder_of: Callable[[DeviceId], str]
    budget: Budget

    def reasons(self, option: Option) -> dict[DeviceReason, list[PublishedDevice]]:
        """Return the devices by the reason why the request can't have them; usable ones are under `WOULD_DO`."""
        found: dict[DeviceReason, list[PublishedDevice]] = {}
        for pool in self.reach.pools:
            for slice_ in pool.slices:
                for device in slice_.devices:
                    reason = next(self._reasons(option, pool, device), WOULD_DO)
                    found.setdefault(reason, []).append(device)
        return found

    def _reasons(self, option: Option, pool: NodePool, published: PublishedDevice) -> Iterator[DeviceReason]:
        """Yield all reasons against a device: first its properties, then its present use."""
        device = published.device
        for whose, key, expressions in (
            (f"class {option.device_class.name}", "class", option.selectors[0]),
            ("the request", "request", option.selectors[1]),
        ):
            if reason := _selector_reason(whose, key, published, expressions, self.budget):
                yield reason
        if not published.is_reached_by(self.reach.node):
            yield DeviceReason("a device that the node reaches", "not so")
        if not pool.can_be_used:
            state = "being updated" if pool.is_incomplete else "invalid"
            yield DeviceReason(f"a pool that isn't {state}", f"{pool.pool} is, with")
        used = self.usage.of(pool.pool.id)
        if not option.admin_access and device.name in used.taken:
            yield DeviceReason("a device that is free", "already allocated:", of_device=self._held)
        amounts = consumed(device.capacity, option.capacity)
        if amounts is None:
            wanted = ", ".join(f"{name} {amount}" for name, amount in option.capacity.items())
            yield DeviceReason(f"capacity {wanted}", "not to be had of")
        elif not is_left(device.capacity, amounts, used.consumed(device)):
            yield DeviceReason("capacity that is free", "too little left of")
        if device.consumes_counters and not self._counters(pool).suffice_for(device):
            names = ", ".join(each.counter_set for each in device.consumes_counters)
            yield DeviceReason(
                f"counters of {names} that are free",
                "too little left for",
                {"counterSets": names},
                self._shortage,
            )
        for taint in device.taints:
            if not option.tolerates((taint,)):
                text = _taint_text(taint)
                yield DeviceReason(f"no taint {text}", "tainted so:", {"taint": text})

    @cached_property
    def _known_counters(self) -> dict[NodePool, PoolCounters]:
        return {}

    def _counters(self, pool: NodePool) -> PoolCounters:
        known = self._known_counters.get(pool)
        if known is None:
            known = self._known_counters[pool] = PoolCounters(pool.pool, self.usage.of(pool.pool.id))
        return known

    def _held(self, published: PublishedDevice) -> str:
        holder = self.holder_of(published.id)
        return f" to {holder}" if holder else ""

    def _shortage(self, published: PublishedDevice) -> str:
        pool = next(each for each in self.reach.pools if each.pool.id == published.id[:2])
        short = self._counters(pool).shortages(published.device)
        return f" ({', '.join(f'{name} {needed} needed, {left} left' for (_, name), needed, left in short)})"


def _selector_reason(
    whose: str, key: str, published: PublishedDevice, expressions: Expressions, budget: Budget
) -> DeviceReason | None:
    found = failing(published, expressions, budget)
    if found is None:
        return None
    index, problem = found
    text = printable(" ".join(expressions[index].split()), _LONGEST)
    return DeviceReason(
        f"selector #{index} of {whose}: {text}",
        f"fails ({problem}) for" if problem else "false for",
        {"selectorOf": key, "selector": index, "expression": text},
    )


def _taint_text(taint: DeviceTaint) -> str:
    effect = DeviceTaintEffect.NO_SCHEDULE if taint.effect is None else taint.effect
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{effect.value}"
