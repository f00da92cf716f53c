"""Which pending pods wait for room on which node (kube-scheduler `nominator`)."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from kschedfw.api.pod import Pod
from kschedfw.framework.pod_info import PodInfo


class Nominator:
    """Nominated pods by node, in the order of their nomination. Thread-safe."""

    def __init__(self) -> None:
        self._by_node: dict[str, list[PodInfo]] = {}
        self._node_of: dict[str, str] = {}
        self._lock = threading.Lock()

    def add(self, pod_info: PodInfo, node_name: str = "") -> None:
        """Nominate the pod to the node, or to the one its status names; forgets an earlier nomination."""
        node_name = node_name or pod_info.pod.status.nominated_node_name
        with self._lock:
            self._delete(pod_info.pod)
            if node_name:
                self._by_node.setdefault(node_name, []).append(pod_info)
                self._node_of[pod_info.pod.uid] = node_name

    def delete(self, pod: Pod) -> None:
        """Forget the pod's nomination, if it has one."""
        with self._lock:
            self._delete(pod)

    def update(self, pod_info: PodInfo) -> None:
        """Take the pod's new state; it keeps its nomination unless its status names another node."""
        with self._lock:
            kept = self._node_of.get(pod_info.pod.uid, "")
        self.add(pod_info, pod_info.pod.status.nominated_node_name or kept)

    def nominated_pods_for_node(self, node_name: str) -> Sequence[PodInfo]:
        if not self._by_node:
            return ()
        with self._lock:
            return tuple(self._by_node.get(node_name, ()))

    def _delete(self, pod: Pod) -> None:
        node_name = self._node_of.pop(pod.uid, None)
        if node_name is None:
            return
        left = [info for info in self._by_node[node_name] if info.pod.uid != pod.uid]
        if left:
            self._by_node[node_name] = left
        else:
            del self._by_node[node_name]
