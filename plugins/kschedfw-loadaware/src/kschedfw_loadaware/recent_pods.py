"""Pods that were placed so recently that the metrics don't include them yet."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping

import attrs

from kschedfw import NodeInfo

REPORTING_INTERVAL = 60
"""Seconds after a pod's placement from which on metrics include its usage, as in scheduler-plugins."""


@attrs.frozen
class _RecentPod:
    usage: int
    since: int


@attrs.frozen
class Recent:
    """Placed pods by node name and uid, without those that metrics up to `measured_up_to` include."""

    pods: Mapping[str, Mapping[str, _RecentPod]]
    measured_up_to: float


class RecentPods:
    """The predicted usage of recently placed pods, with the times of their placement. Thread-safe.

    A pod counts only if it is on the node in the given NodeInfo. So a node's answer changes only with its pods and with
    the end of the metrics' window, not with the time alone.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pods: dict[str, dict[str, _RecentPod]] = {}
        self._measured_up_to = -math.inf

    def add(self, node_name: str, uid: str, usage: int, now: float) -> None:
        """Add a placed pod: its predicted CPU usage in millicores, and the time in seconds.

        Do nothing if it is known.
        """
        with self._lock:
            self._pods.setdefault(node_name, {}).setdefault(uid, _RecentPod(usage, int(now)))

    def remove(self, node_name: str, uid: str) -> None:
        with self._lock:
            pods = self._pods.get(node_name)
            if pods is not None and pods.pop(uid, None) is not None and not pods:
                del self._pods[node_name]

    def forget_measured(self, window_end: float) -> None:
        """Delete the pods that metrics up to `window_end` include, since later metrics include them, too."""
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
        """Return a copy of all pods."""
        with self._lock:
            return Recent({name: dict(pods) for name, pods in self._pods.items()}, self._measured_up_to)

    def restore(self, recent: Recent) -> None:
        """Restore the pods that `save` returned."""
        with self._lock:
            self._pods = {name: dict(pods) for name, pods in recent.pods.items()}
            self._measured_up_to = recent.measured_up_to

    def missing_usage(self, node_info: NodeInfo, window_end: float) -> int:
        """Return the usage of the node's pods that metrics up to `window_end` don't include, in millicores."""
        # Without the lock: the usual case is a node without such pods, and looking up a key in a dict is atomic.
        if node_info.name not in self._pods:
            return 0
        with self._lock:
            pods = self._pods.get(node_info.name, {})
            found = [pods.get(info.pod.uid) for info in node_info.pods]
        return sum(pod.usage for pod in found if pod is not None and _is_missing(pod, window_end))


def _is_missing(pod: _RecentPod, window_end: float) -> bool:
    # In whole seconds, as in scheduler-plugins.
    return pod.since > int(window_end) - REPORTING_INTERVAL
