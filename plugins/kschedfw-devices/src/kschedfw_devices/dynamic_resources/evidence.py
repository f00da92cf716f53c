"""Evidence of refusals by DynamicResources: devices of the node, and why the pod can't have them.

Devices are looked at one by one, as if nothing else was taken for the pod; devices with the same reason are
counted together. The constraints on usable devices come last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Final

import attrs

from kschedfw import NodeInfo
from kschedfw.api import EMPTY, DeviceAttribute, DeviceConstraint, DeviceTaint, DeviceTaintEffect, counted
from kschedfw.api.reading import printable
from kschedfw.explain import Evidence, EvidenceValue
from kschedfw_devices.cel import Budget, OutOfStepsError
from kschedfw_devices.dynamic_resources.answers import budget_of
from kschedfw_devices.dynamic_resources.capacity import consumed, is_left
from kschedfw_devices.dynamic_resources.counters import PoolCounters
from kschedfw_devices.dynamic_resources.decision import CANNOT_FIT, LEFT_OVER, PodDevices
from kschedfw_devices.dynamic_resources.extended import SPECIAL_CLAIM, ExtendedRequests
from kschedfw_devices.dynamic_resources.inventory import (
    DeviceId,
    Expressions,
    NodePool,
    PublishedDevice,
    ReachablePools,
    failing,
)
from kschedfw_devices.dynamic_resources.requests import Option, WantedClaim
from kschedfw_devices.dynamic_resources.usage import Usage

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


MOST_NAMED: Final = 3
"""The most devices with the same reason that are named."""
_MOST_REASONS: Final = 8
"""The number of reasons that are given for a request: those with the most devices."""
_MOST_PIECES: Final = 40
"""The number of pieces of evidence for one node."""


def evidence_of(
    devices: PodDevices, info: NodeInfo, holder_of: Callable[[DeviceId], str]
) -> Iterator[Evidence]:
    """Yield the evidence for the refusal of a node; `holder_of` returns the key of the claim that has a device."""
    pieces = _evidence(devices, info, holder_of)
    try:
        yield from islice(pieces, _MOST_PIECES)
        if more := sum(1 for _ in pieces):
            yield Evidence(
                "what else the pod asks for",
                counted(more, "more reason"),
                0.0,
                {"more": more},
                "devices-more",
            )
    except OutOfStepsError:
        yield Evidence(
            "more about the devices", "looking at them takes too long", 0.0, code="devices-too-slow"
        )


def _evidence(
    devices: PodDevices, info: NodeInfo, holder_of: Callable[[DeviceId], str]
) -> Iterator[Evidence]:
    resources, problem = devices.resources_on(info.allocatable)
    if problem == LEFT_OVER and devices.left_over is not None:
        key = devices.left_over.key
        yield Evidence(
            "no claim left over from an earlier attempt",
            f"there is {key}",
            values={"claim": key},
            code="device-claim-left-over",
        )
    elif problem == CANNOT_FIT:
        for name in devices.extended_resources:
            if name not in devices.classes and name not in info.allocatable.scalar_resources:
                yield Evidence(
                    f"extended resource {name}",
                    "neither the node nor a class of devices offers it",
                    values={"resource": name},
                    code="extended-resource-missing",
                )
    if problem:
        return
    for claim in devices.unavailable_on(info.node):
        ready = devices.may_be_ready(claim)
        found = "its devices can't be used on this node" if ready else "its devices aren't ready to be used"
        values: dict[str, EvidenceValue] = {"claim": claim.key, "ready": int(ready)}
        yield Evidence(
            f"claim {claim.name}, which is allocated", found, values=values, code="device-claim-elsewhere"
        )
    demand = devices.demand(resources)
    if demand.question is None:
        return
    reach = devices.inventory.on(info.node)
    answer = demand.question.answer(reach)
    if not answer.is_late and answer.problem:
        viewer = Viewer(reach, devices.usage, holder_of, budget_of(reach, devices.filter_timeout))
        pieces = [
            each for wanted in demand.question.wanted for each in _of_claim(wanted, demand.extended, viewer)
        ]
        if not any(each.gap for each in pieces):
            yield Evidence(
                "all devices at the same time", "only some of them fit together", code="devices-together"
            )
        yield from pieces


def _of_claim(wanted: WantedClaim, extended: ExtendedRequests, viewer: Viewer) -> Iterator[Evidence]:
    would_do: dict[Option, Sequence[PublishedDevice]] = {}
    for request in wanted.requests:
        for option in request.options:
            groups = viewer.reasons(option)
            would_do[option] = groups.pop(WOULD_DO, ())
            yield from _of_option(_name(wanted, option, extended), option, groups, len(would_do[option]))
    for constraint in wanted.claim.spec.devices.constraints:
        concerned = [
            device
            for option, found in would_do.items()
            if option.is_among(constraint.requests)
            for device in found
        ]
        yield _of_constraint(wanted.claim.name, constraint, concerned)


def _name(wanted: WantedClaim, option: Option, extended: ExtendedRequests) -> str:
    if wanted.claim.name != SPECIAL_CLAIM:
        return f"{wanted.claim.name}/{option.full_name}"
    served = (each for each in extended.mappings if each.request_name == option.request)
    return ", ".join(f"{each.resource_name} of container {each.container_name}" for each in served)


def _of_option(
    name: str, option: Option, groups: Mapping[DeviceReason, Sequence[PublishedDevice]], would_do: int
) -> Iterator[Evidence]:
    """Yield the number of usable devices for an option, and the reasons against the others."""
    total = would_do + sum(map(len, groups.values()))
    count = total if option.wants_all else option.count
    what = "all devices" if option.wants_all else counted(count, "device")
    yield Evidence(
        f"{name}: {what} of class {option.device_class.name}",
        f"{would_do} of {counted(total, 'device')} would do" if total else "the node has no device",
        gap=max(0, count - would_do) / count if count else 1.0,
        values={
            "request": name,
            "class": option.device_class.name,
            "count": count,
            "devices": total,
            "wouldDo": would_do,
            "all": int(option.wants_all),
        },
        code="device-request",
    )
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    for reason, devices in ordered[:_MOST_REASONS]:
        values: dict[str, EvidenceValue] = {
            "request": name,
            "devices": len(devices),
            "of": total,
            "wanted": reason.asked,
            "found": reason.found,
            "examples": ", ".join(each.id[2] for each in devices[:MOST_NAMED]),
            "listed": _examples(reason, devices),
        }
        yield Evidence(
            f"{name}: {reason.asked}",
            f"{reason.found} {len(devices)} of {counted(total, 'device')}: {_examples(reason, devices)}",
            gap=0.0,
            values={**values, **reason.values},
            code="device-reason",
        )
    if len(ordered) > _MOST_REASONS:
        others = sum(len(devices) for _, devices in ordered[_MOST_REASONS:])
        yield Evidence(
            f"{name}: other reasons",
            f"{others} of {counted(total, 'device')}",
            0.0,
            {"request": name, "devices": others, "of": total},
            "device-other-reasons",
        )


def _examples(reason: DeviceReason, devices: Sequence[PublishedDevice]) -> str:
    named = [f"{each.id[2]}{reason.of_device(each)}" for each in devices[:MOST_NAMED]]
    more = len(devices) - MOST_NAMED
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")


def _of_constraint(claim: str, constraint: DeviceConstraint, devices: Sequence[PublishedDevice]) -> Evidence:
    """Return the number of usable devices by the value of the constraint's attribute."""
    kind, name = "matchAttribute", constraint.match_attribute
    if not name:
        kind, name = "distinctAttribute", constraint.distinct_attribute
    distinct = {each.id: each for each in devices}.values()
    counts = Counter(_value_text(each.attribute(name)) for each in distinct)
    most = counts.most_common()
    listed = ", ".join(f"{number} × {value}" for value, number in most[:MOST_NAMED]) or "none"
    more = len(most) - MOST_NAMED
    requests = ", ".join(constraint.requests)
    of = f" of {requests}" if requests else ""
    return Evidence(
        f"{claim}: {kind} {name}{of}",
        f"among the devices that would do: {listed}" + (f" and {more} more values" if more > 0 else ""),
        gap=0.0,
        values={
            "claim": claim,
            "constraint": kind,
            "attribute": name,
            "requests": requests,
            "values": len(most),
            "examples": listed,
        },
        code="device-constraint",
    )


def _value_text(attribute: DeviceAttribute | None) -> str:
    return "without it" if attribute is None else next(map(str, attribute.values.values()), "")
