"""Pods that have been placed since a node last told what its zones have."""

from __future__ import annotations

import threading
from collections.abc import Mapping

import attrs

from kschedfw import NodeInfo
from kschedfw_topoaware.amounts import Amounts, total


@attrs.frozen
class Reserved:
    """What pods take of a node since its topology got this version, by uid."""

    version: str
    by_uid: dict[str, Amounts] = attrs.field(factory=dict)


class Reservations:
    """What was reserved on each node since its topology got its version. Thread-safe.

    A newer version has the pods that were placed before it, so that they no longer count. Nor does a pod that isn't on
    the node that is asked about. So the answer for a node changes only with the pods on it and with its topology.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reserved: dict[str, Reserved] = {}

    def add(self, node_name: str, uid: str, amounts: Amounts, version: str) -> None:
        with self._lock:
            reserved = self._reserved.get(node_name)
            if reserved is None or reserved.version != version:
                reserved = self._reserved[node_name] = Reserved(version)
            reserved.by_uid[uid] = amounts

    def remove(self, node_name: str, uid: str) -> None:
        with self._lock:
            reserved = self._reserved.get(node_name)
            if reserved is not None:
                reserved.by_uid.pop(uid, None)

    def save(self) -> Mapping[str, Reserved]:
        """All of them as they are now, by node."""
        with self._lock:
            return _copy(self._reserved)

    def restore(self, reserved: Mapping[str, Reserved]) -> None:
        """Go back to what `save` gave."""
        with self._lock:
            self._reserved = _copy(reserved)

    def taken(self, node_info: NodeInfo, version: str) -> Amounts:
        """What the pods on the node take that its topology of this version doesn't know of."""
        with self._lock:
            reserved = self._reserved.get(node_info.name)
            if reserved is None or reserved.version != version:
                return Amounts()
            found = [reserved.by_uid.get(info.pod.uid) for info in node_info.pods]
        return total(amounts for amounts in found if amounts is not None)


def _copy(reserved: Mapping[str, Reserved]) -> dict[str, Reserved]:
    return {name: Reserved(each.version, dict(each.by_uid)) for name, each in reserved.items()}
