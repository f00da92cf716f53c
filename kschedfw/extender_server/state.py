"""The nodes and pods that requests only name."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.cluster import Cluster, EventType, WatchEvent
from kschedfw.framework.node_info import NodeInfo
from kschedfw.framework.snapshot import with_image_states


class ClusterState:
    """Follows a cluster's nodes and the pods on them until it is closed; without a cluster it stays empty.

    The cluster may call from any thread; `node_infos` is for one caller at a time, who must not change what it
    gets.
    """

    def __init__(self, cluster: Cluster | None) -> None:
        self._lock = threading.Lock()
        self._nodes: dict[str, Node] = {}
        self._pods: dict[str, dict[str, Pod]] = {}
        self._node_of: dict[str, str] = {}
        self._infos: dict[str, NodeInfo] = {}
        self._images_fit = True
        self._end_watch = None if cluster is None else cluster.watch(self._on_event)

    def node_infos(self, sent: Sequence[Node] = ()) -> list[NodeInfo]:
        """All nodes with their pods; what was sent with a request takes the place of the cluster's node."""
        with self._lock:
            infos = {name: self._info(node) for name, node in self._nodes.items()}
            if sent:
                infos |= {node.name: NodeInfo.of(node, self._pods_on(node.name)) for node in sent}
            if sent or not self._images_fit:
                infos |= {info.name: info for info in with_image_states(list(infos.values()))}
            # What was sent counts for one request only.
            self._images_fit = not sent
            if not sent:
                self._infos |= infos
            return list(infos.values())

    def close(self) -> None:
        """Stop following the cluster."""
        if self._end_watch is not None:
            self._end_watch()

    def _info(self, node: Node) -> NodeInfo:
        info = self._infos.get(node.name)
        if info is None:
            info = self._infos[node.name] = NodeInfo.of(node, self._pods_on(node.name))
            self._images_fit = False
        return info

    def _pods_on(self, node_name: str) -> list[Pod]:
        return list(self._pods.get(node_name, {}).values())

    def _on_event(self, event: WatchEvent) -> None:
        obj, deleted = event.object, event.type is EventType.DELETED
        with self._lock:
            if isinstance(obj, Node):
                self._set_node(obj, deleted)
            elif isinstance(obj, Pod):
                self._set_pod(obj, deleted or obj.is_terminal)

    def _set_node(self, node: Node, gone: bool) -> None:
        if gone:
            self._nodes.pop(node.name, None)
        else:
            self._nodes[node.name] = node
        self._infos.pop(node.name, None)
        self._images_fit = False

    def _set_pod(self, pod: Pod, gone: bool) -> None:
        before = self._node_of.pop(pod.uid, "")
        if before:
            del self._pods[before][pod.uid]
            self._infos.pop(before, None)
        if pod.node_name and not gone:
            self._node_of[pod.uid] = pod.node_name
            self._pods.setdefault(pod.node_name, {})[pod.uid] = pod
            self._infos.pop(pod.node_name, None)
