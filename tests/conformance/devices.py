"""The devices in a decision, in the form in which they are recorded."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

import attrs
from kschedfw_devices.dynamic_resources.binding import ClaimBindingError
from kschedfw_devices.dynamic_resources.decision import Freeing, PodDevices
from kschedfw_devices.dynamic_resources.plugin import DEVICES, RESERVATION, DynamicResources
from kschedfw_devices.dynamic_resources.requests import allocation_result

from kschedfw import CycleState, Framework, NodeInfo, NodeToStatus, Pod
from kschedfw.api.convert import unstructure
from kschedfw.api.resource_claims import AllocationResult
from tests.conformance.scenario import Json

_ANY_SHARE = "*"
"""Stands for the identifiers of shares, which are random."""


def plugin_of(framework: Framework) -> DynamicResources | None:
    plugin = framework.plugins.get(DynamicResources.name)
    return plugin if isinstance(plugin, DynamicResources) else None


def on_feasible(state: CycleState, feasible: Sequence[NodeInfo]) -> Json:
    """Return the devices on every feasible node, in short form; empty for a pod without claims."""
    devices = state.find(DEVICES)
    if devices is None:
        return {}
    return {"nodeAllocations": {info.name: _in_short(devices, info) for info in feasible}}


def on_chosen(state: CycleState, info: NodeInfo) -> Json:
    """Return the allocations on one node, in full."""
    devices = state.find(DEVICES)
    if devices is None:
        return {}
    here = devices.on(info)
    told: Json = {}
    if here.found:
        told["allocations"] = {
            wanted.claim.key: _manifest(allocation_result(wanted, found, info.node, lambda: _ANY_SHARE))
            for wanted, found in here.found
        }
    special = devices.special
    if special is not None and any(wanted.claim.uid == special.uid for wanted, _ in here.found):
        told["extendedResources"] = {
            "requests": [unstructure(each) for each in here.extended.requests] or None,
            "mappings": [unstructure(each) for each in here.extended.mappings] or None,
        }
    return told


def freeing(framework: Framework, state: CycleState, node_to_status: NodeToStatus) -> Freeing | None:
    """Return the claims that the plugin's post_filter would free; None if it fails because pre_filter didn't run."""
    plugin = plugin_of(framework)
    if plugin is None or DEVICES not in state:
        return None
    return plugin.plan_freeing(state, node_to_status)


def freed_claims(planned: Freeing) -> Json:
    """Return the claims to free, and the requests to the API server."""
    calls: list[Mapping[str, str]] = []
    if planned.left_over is not None:
        calls = [{"action": action, "claim": planned.left_over.key} for action in ("update", "delete")]
    elif planned.eligible:
        calls = [{"action": "deallocate", "claim": planned.eligible[0].key}]
    if not planned.unavailable and not calls:
        return {}
    return {
        "claims": {
            "unavailable": [claim.key for claim in planned.unavailable],
            "eligible": [claim.key for claim in planned.eligible],
            "calls": calls,
        }
    }


def write_claims(framework: Framework, state: CycleState, pod: Pod) -> None:
    """Write the reservations into the claims, as pre_bind does before it waits.

    A claim that can't be written stays as it is: a full list of 256 reservations, or a freed claim, is only
    found after the decision.
    """
    plugin = plugin_of(framework)
    if plugin is None or RESERVATION not in state:
        return
    reservation = state.read(RESERVATION)
    for claim in reservation.claims:
        with contextlib.suppress(ClaimBindingError):
            plugin.binder.write(attrs.evolve(reservation, claims=(claim,)), pod)


def _in_short(devices: PodDevices, info: NodeInfo) -> Json:
    return {
        wanted.claim.key: [f"{each.option.full_name}={'/'.join(each.device.id)}" for each in found]
        for wanted, found in devices.on(info).found
    }


def _manifest(allocation: AllocationResult) -> Json:
    manifest: Json = {"devices": {}, **unstructure(allocation)}
    for config in manifest.get("devices", {}).get("config", ()):  # type: ignore[attr-defined]  # it is an object
        parameters = config.get("opaque", {}).get("parameters")
        if parameters is not None:
            config["opaque"]["parameters"] = dict(parameters)
    return manifest
