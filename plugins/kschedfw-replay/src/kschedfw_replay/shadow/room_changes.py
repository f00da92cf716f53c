"""The last times at which room became free: a decision for a node that was full came after that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kschedfw import Node, Pod
from kschedfw.api import DeviceTaintRule, Named, PersistentVolume, ResourceClaim, ResourceSlice
from kschedfw.cluster import EventType, WatchEvent
from kschedfw_replay.shadow.decision import Recorded, refusal

_VOLUMES: Final = "/volumes"
_DEVICES: Final = "/devices"
"""The place of free devices beside the nodes; no node has this name."""


class RoomChanges:
    """The times at which nodes changed last, pods left them, and volumes and devices became free."""

    def __init__(self) -> None:
        self._changed: dict[str, float] = {_VOLUMES: 0.0, _DEVICES: 0.0}

    def note(self, event: WatchEvent, at: float) -> None:
        """Note a change. `at` is in seconds, and not before that of the last change."""
        obj = event.object
        if isinstance(obj, Node) and event.type is EventType.DELETED:
            self._changed.pop(obj.name, None)
        elif isinstance(obj, Node):
            # A node that is taken out of service gives no pod its room.
            if not obj.spec.unschedulable:
                self._changed[obj.name] = at
        elif (place := _freed_by(event)) in self._changed:
            # Pods may outlive their node, whose entry must not come back.
            self._changed[place] = at

    def latest_for(self, recorded: Recorded) -> float:
        """Return the time of the last change of the room for a pod on its node; 0 if it is unknown."""
        return max((self._changed.get(place, 0.0) for place in _places_of(recorded)), default=0.0)


def _freed_by(event: WatchEvent) -> str:
    """Return the place where a change left room; empty if it left none."""
    obj, is_gone = event.object, event.type is EventType.DELETED
    before = obj if is_gone else event.old
    match obj:
        case Pod() if isinstance(before, Pod):
            left = _node_of(before)
            return left if is_gone or left != _node_of(obj) else ""
        case PersistentVolume() if obj.spec.claim_ref is None:
            return _VOLUMES
        case ResourceSlice() | DeviceTaintRule():
            return _DEVICES
        case ResourceClaim() if _is_allocated(before) and (is_gone or not _is_allocated(obj)):
            return _DEVICES
    return ""


def _places_of(recorded: Recorded) -> Iterator[str]:
    """Yield the places whose room a bound pod may have waited for: its node, and perhaps volumes and devices."""
    if not recorded.node:
        return
    yield recorded.node
    if refusal(recorded.pod) is None:
        return
    if any(each.persistent_volume_claim or each.ephemeral for each in recorded.pod.spec.volumes):
        yield _VOLUMES
    if recorded.pod.spec.resource_claims:
        yield _DEVICES


def _node_of(pod: Pod) -> str:
    """The node on which the pod takes room, or is to take it once it is bound."""
    return pod.node_name or pod.status.nominated_node_name


def _is_allocated(claim: Named | None) -> bool:
    return isinstance(claim, ResourceClaim) and claim.status.allocation is not None
