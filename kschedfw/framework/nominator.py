"""The pending pods that are nominated to nodes (kube-scheduler `nominator`)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence

from kschedfw.api.pod import Pod
from kschedfw.framework.nodes.pod_info import PodInfo

_MOST_CHANGES = 16_384


class Nominator:
    """Nominated pods by node, in the order of their nomination. Thread-safe.

    A new nominator is empty.

    Preemption nominates here before it writes to the cluster, so this may be ahead of the pods' status. Pass
    `live_pod`, which returns the pod as the cluster has it now or None, to have nominations refused for pods that are
    deleted or bound. It is called outside of this object's lock.
    """

    def __init__(self, live_pod: Callable[[Pod], Pod | None] | None = None) -> None:
        self._live_pod = live_pod
        self._by_node: dict[str, list[PodInfo]] = {}
        self.is_empty = True
        """True if no pod is nominated."""
        self._node_of: dict[str, str] = {}
        self._lock = threading.Lock()
        self._changed: list[str] = []
        self._dropped = 0

    def add(self, pod_info: PodInfo, node_name: str | None = None) -> None:
        """Nominate the pod to a node, in place of its earlier nomination.

        None stands for the node that the pod's status names. With an empty name the pod loses its nomination.
        """
        if node_name is None:
            node_name = pod_info.pod.status.nominated_node_name
        # Ask before taking the lock, as the docstring promises: `live_pod` may take locks of its own.
        if node_name and not self._may_be_nominated(pod_info.pod):
            node_name = ""
        with self._lock:
            self._set(pod_info, node_name)

    def delete(self, pod: Pod) -> None:
        """Forget the pod's nomination, if it has one."""
        with self._lock:
            self._delete(pod.uid)

    def update(self, old: Pod, pod_info: PodInfo) -> None:
        """Replace the old state of a pod. The node that its new status names becomes its nomination.

        If neither status names a node, the pod keeps its nomination: the update was sent before the nomination
        reached the cluster.
        """
        node_name = pod_info.pod.status.nominated_node_name
        if not node_name and not old.status.nominated_node_name:
            node_name = self.node_of(old.uid)
        if old.uid != pod_info.pod.uid:
            self.delete(old)
        self.add(pod_info, node_name)

    def node_of(self, uid: str) -> str:
        """Return the name of the node that the pod is nominated to; empty if there is none."""
        with self._lock:
            return self._node_of.get(uid, "")

    def nominated_pods_for_node(self, node_name: str) -> Sequence[PodInfo]:
        """Return the pods that are nominated to the node, the one nominated first in front."""
        # No lock for the usual case, that nobody is nominated: the filters ask this once for each node.
        if not self._by_node:
            return ()
        with self._lock:
            return tuple(self._by_node.get(node_name, ()))

    def nominated_nodes(self) -> Collection[str]:
        """Return the names of all nodes that pods are nominated to."""
        if not self._by_node:
            return ()
        with self._lock:
            return tuple(self._by_node)

    @property
    def version(self) -> int:
        """The number of changes of nominations so far."""
        with self._lock:
            return self._dropped + len(self._changed)

    def changed_since(self, version: int) -> Collection[str] | None:
        """Return the names of nodes whose nominations changed since `version`; None if the log begins later."""
        with self._lock:
            start = version - self._dropped
            return None if start < 0 else self._changed[start:]

    def nominated_pods(self) -> Sequence[PodInfo]:
        """Return all nominated pods."""
        with self._lock:
            return tuple(info for infos in self._by_node.values() for info in infos)

    def _may_be_nominated(self, pod: Pod) -> bool:
        if self._live_pod is None:
            return True
        live = self._live_pod(pod)
        return live is not None and live.uid == pod.uid and not live.node_name

    def _set(self, pod_info: PodInfo, node_name: str) -> None:
        uid = pod_info.pod.uid
        infos = self._by_node.get(node_name, ())
        if self._node_of.get(uid) == node_name and node_name:
            # The pod keeps its turn among the node's nominated pods.
            self._by_node[node_name] = [pod_info if info.pod.uid == uid else info for info in infos]
            self._log(node_name)
            return
        self._delete(uid)
        if node_name:
            self._by_node.setdefault(node_name, []).append(pod_info)
            self._node_of[uid] = node_name
            self._log(node_name)

    def _delete(self, uid: str) -> None:
        node_name = self._node_of.pop(uid, None)
        if node_name is None:
            return
        left = [info for info in self._by_node[node_name] if info.pod.uid != uid]
        if left:
            self._by_node[node_name] = left
        else:
            del self._by_node[node_name]
        self._log(node_name)

    def _log(self, node_name: str) -> None:
        """Log the node's change for `changed_since`; of a full log the older half is dropped."""
        self.is_empty = not self._by_node
        self._changed.append(node_name)
        if len(self._changed) > _MOST_CHANGES:
            surplus = len(self._changed) // 2
            del self._changed[:surplus]
            self._dropped += surplus
