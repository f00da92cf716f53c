"""The requests of pods that were placed since their node's last report."""

from __future__ import annotations

import threading
from collections.abc import Mapping

import attrs

from kschedfw import NodeInfo
from kschedfw_topoaware.amounts import Amounts, total


@attrs.frozen
class Reserved:
    """Requests by pod uid on a node whose topology has this version."""

    version: str
    by_uid: dict[str, Amounts] = attrs.field(factory=dict)


class Reservations:
    """Requests of pods that were placed on each node since its topology's last version. Thread-safe.

    A newer version of a topology includes the pods placed before it, so their reservations are dropped. Only pods that
    are on the node in the given NodeInfo count. So a node's answer changes only with its pods and its topology, as
    `Reads.PODS` requires.
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
        """Return a copy of all reservations, by node name."""
        with self._lock:
            return _copy(self._reserved)

    def restore(self, reserved: Mapping[str, Reserved]) -> None:
        """Restore the reservations that `save` returned."""
        with self._lock:
            self._reserved = _copy(reserved)

    def taken(self, node_info: NodeInfo, version: str) -> Amounts:
        """Return the sum of the reservations for pods on the node that the topology of this version doesn't include."""
        with self._lock:
            reserved = self._reserved.get(node_info.name)
            if reserved is None or reserved.version != version:
                return Amounts()
            # By the pods on the node: a victim that a dry run removed gives back its reservation.
            found = [reserved.by_uid.get(info.pod.uid) for info in node_info.pods]
        return total(amounts for amounts in found if amounts is not None)


def _copy(reserved: Mapping[str, Reserved]) -> dict[str, Reserved]:
    return {name: Reserved(each.version, dict(each.by_uid)) for name, each in reserved.items()}
