"""Pods that are on their nodes already, but not in the metrics yet."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping

import attrs

from kschedfw import NodeInfo

REPORTING_INTERVAL = 60
"""Seconds that a pod may run before its usage is measured, as in the original."""


@attrs.frozen
class _RecentPod:
    usage: int
    since: int


@attrs.frozen
class Recent:
    """Pods by node and uid, without those that metrics up to this time have."""

    pods: Mapping[str, Mapping[str, _RecentPod]]
    measured_up_to: float


class RecentPods:
    """What pods will presumably use, by node and uid, and since when they have been there. Thread-safe.

    A pod counts only while it is on the node that is asked about. So the answer for a node changes only with the pods
    on it and with the end of the metrics' window, never by itself.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pods: dict[str, dict[str, _RecentPod]] = {}
        self._measured_up_to = -math.inf

    def add(self, node_name: str, uid: str, usage: int, now: float) -> None:
        """Adding a pod again changes nothing."""
        with self._lock:
            self._pods.setdefault(node_name, {}).setdefault(uid, _RecentPod(usage, int(now)))

    def remove(self, node_name: str, uid: str) -> None:
        with self._lock:
            pods = self._pods.get(node_name)
            if pods is not None and pods.pop(uid, None) is not None and not pods:
                del self._pods[node_name]

    def forget_measured(self, window_end: float) -> None:
        """Drop those that metrics up to this time, and so all later ones, have."""
        with self._lock:
            if window_end <= self._measured_up_to:
                return
            self._measured_up_to = window_end
            self._pods = {
                node_name: still
                for node_name, pods in self._pods.items()
                if (still := {uid: pod for uid, pod in pods.items() if _is_missing(pod, window_end)})
            }

    def save(self) -> Recent:
        """All of them as they are now."""
        with self._lock:
            return Recent({name: dict(pods) for name, pods in self._pods.items()}, self._measured_up_to)

    def restore(self, recent: Recent) -> None:
        """Go back to what `save` gave."""
        with self._lock:
            self._pods = {name: dict(pods) for name, pods in recent.pods.items()}
            self._measured_up_to = recent.measured_up_to

    def missing_usage(self, node_info: NodeInfo, window_end: float) -> int:
        """What metrics up to this time don't have of the pods on the node."""
        if node_info.name not in self._pods:
            return 0
        with self._lock:
            pods = self._pods.get(node_info.name, {})
            found = [pods.get(info.pod.uid) for info in node_info.pods]
        return sum(pod.usage for pod in found if pod is not None and _is_missing(pod, window_end))


def _is_missing(pod: _RecentPod, window_end: float) -> bool:
    return pod.since > int(window_end) - REPORTING_INTERVAL
