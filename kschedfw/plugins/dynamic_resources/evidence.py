"""Evidence of refusals by DynamicResources: devices of the node, and why the pod can't have them.

Devices are looked at one by one, as if nothing else was taken for the pod; devices with the same reason are
counted together. The constraints on usable devices come last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from kschedfw import FrozenDict, NodeInfo
from kschedfw.api import DeviceAttribute, DeviceConstraint
from kschedfw.cel import OutOfStepsError
from kschedfw.framework.evidence import Evidence, EvidenceValue
from kschedfw.plugins.dynamic_resources.answers import budget_of
from kschedfw.plugins.dynamic_resources.decision import CANNOT_FIT, LEFT_OVER, PodDevices
from kschedfw.plugins.dynamic_resources.device_reasons import WOULD_DO, DeviceReason, Viewer
from kschedfw.plugins.dynamic_resources.extended import SPECIAL_CLAIM, ExtendedRequests
from kschedfw.plugins.dynamic_resources.inventory import DeviceId, PublishedDevice
from kschedfw.plugins.dynamic_resources.requests import Option, WantedClaim

MOST_NAMED: Final = 3
"""How many devices with the same reason are named."""
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
            yield Evidence("what else the pod asks for", f"{more} more reasons", gap=0.0)
    except OutOfStepsError:
        yield Evidence("more about the devices", "looking at them takes too long", gap=0.0)


def _evidence(
    devices: PodDevices, info: NodeInfo, holder_of: Callable[[DeviceId], str]
) -> Iterator[Evidence]:
    resources, problem = devices.resources_on(info.allocatable)
    if problem == LEFT_OVER and devices.left_over is not None:
        yield Evidence("no claim left over from an earlier attempt", f"there is {devices.left_over.key}")
    elif problem == CANNOT_FIT:
        for name in devices.extended_resources:
            if name not in devices.classes and name not in info.allocatable.scalar_resources:
                yield Evidence(
                    f"extended resource {name}", "neither the node nor a class of devices offers it"
                )
    if problem:
        return
    for claim in devices.unavailable_on(info.node):
        ready = devices.may_be_ready(claim)
        found = "its devices can't be used on this node" if ready else "its devices aren't ready to be used"
        yield Evidence(f"claim {claim.name}, which is allocated", found, values=FrozenDict(claim=claim.key))
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
            yield Evidence("all devices at the same time", "only some of them fit together")
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
            if not constraint.requests or {option.request, option.full_name} & {*constraint.requests}
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
    what = "all devices" if option.wants_all else f"{count} device{'' if count == 1 else 's'}"
    yield Evidence(
        f"{name}: {what} of class {option.device_class.name}",
        f"{would_do} of {total} devices would do" if total else "the node has no device",
        gap=max(0, count - would_do) / count if count else 1.0,
        values=FrozenDict(
            {
                "request": name,
                "class": option.device_class.name,
                "count": count,
                "devices": total,
                "wouldDo": would_do,
            }
        ),
    )
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    for reason, devices in ordered[:_MOST_REASONS]:
        values: dict[str, EvidenceValue] = {
            "request": name,
            "devices": len(devices),
            "examples": ", ".join(each.id[2] for each in devices[:MOST_NAMED]),
        }
        yield Evidence(
            f"{name}: {reason.asked}",
            f"{reason.found} {len(devices)} of {total} devices: {_examples(reason, devices)}",
            gap=0.0,
            values=FrozenDict({**values, **reason.values}),
        )
    if len(ordered) > _MOST_REASONS:
        others = sum(len(devices) for _, devices in ordered[_MOST_REASONS:])
        yield Evidence(f"{name}: other reasons", f"{others} of {total} devices", gap=0.0)


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
    listed = ", ".join(f"{number} × {value}" for value, number in most[:MOST_NAMED])
    more = len(most) - MOST_NAMED
    of = f" of {', '.join(constraint.requests)}" if constraint.requests else ""
    return Evidence(
        f"{claim}: {kind} {name}{of}",
        f"among the devices that would do: {listed or 'none'}"
        + (f" and {more} more values" if more > 0 else ""),
        gap=0.0,
        values=FrozenDict({"constraint": kind, "attribute": name, "values": len(most)}),
    )


def _value_text(attribute: DeviceAttribute | None) -> str:
    return "without it" if attribute is None else next(map(str, attribute.values.values()), "")
