"""The snapshot that plugins see during a request: the cluster's nodes and pods, and the nodes in the request."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

import attrs

from kschedfw import FrozenDict, ImageStateSummary, Node, NodeInfo, Pod, PodInfo, Snapshot
from kschedfw.api import ManifestError, node_from_manifest
from kschedfw.cluster import Cluster, EventType, WatchEvent
from kschedfw_kubernetes.extender_server.errors import RequestError
from kschedfw_kubernetes.http_extender.go_json import Json, decode, manifest
from kschedfw_kubernetes.http_extender.wire import node_identity


class ClusterState:
    """A view of a cluster's nodes and their pods, until it is closed. Without a cluster it stays empty.

    The cluster may call it from any thread. `show` must not be called concurrently.
    """

    def __init__(self, cluster: Cluster | None, snapshot: Snapshot) -> None:
        self._lock = threading.Lock()
        self._nodes: dict[str, Node] = {}
        self._pods: dict[str, dict[str, Pod]] = {}
        self._node_of: dict[str, str] = {}
        self._infos: dict[str, NodeInfo] = {}
        """The nodes with their pods at the last call of `show`. New nodes come last."""
        self._stale: set[str] = set()
        """Nodes whose entry in `_infos` is missing or outdated."""
        self._sent_with_pods: dict[str, NodeInfo] = {}
        self._writer = _SnapshotWriter(snapshot)
        self._is_shown = False
        """True if the snapshot equals the cluster's current state."""
        self._end_watch = None if cluster is None else cluster.watch(self._on_event)

    def show(self, sent: Iterable[NodeInfo] = ()) -> None:
        """Update the snapshot with all nodes and their pods. The cost depends on the number of changes.

        Nodes in a request replace the cluster's nodes until the next call.
        """
        with self._lock:
            sent_infos = {info.name: self._with_pods(info) for info in sent}
            if self._is_shown and not sent_infos:
                return
            self._refresh()
            infos = dict(self._infos)
            self._is_shown = not sent_infos
        # Without the lock, so that the cluster's events don't wait for it. `show` isn't called concurrently.
        self._writer.write(infos | sent_infos)

    def close(self) -> None:
        """Stop following the cluster."""
        if self._end_watch is not None:
            self._end_watch()

    def _refresh(self) -> None:
        for name in self._stale & self._infos.keys():
            if (node := self._nodes.get(name)) is None:
                del self._infos[name]
            else:
                self._infos[name] = NodeInfo.of(node, self._pods_on(name))
        if len(self._infos) != len(self._nodes):
            # Some nodes are new. They come last.
            for name, node in self._nodes.items():
                if name not in self._infos:
                    self._infos[name] = NodeInfo.of(node, self._pods_on(name))
        self._stale.clear()

    def _with_pods(self, sent: NodeInfo) -> NodeInfo:
        pods = self._pods_on(sent.name)
        if not pods:
            return sent
        info = self._sent_with_pods.get(sent.name)
        # `SentNodes` returns the same node as long as its JSON is equal, so its identity is enough.
        if info is None or info.node is not sent.node:
            info = self._sent_with_pods[sent.name] = sent.clone()
            for pod in pods:
                info.add_pod(PodInfo.of(pod))
        return info

    def _pods_on(self, node_name: str) -> Sequence[Pod]:
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
        self._changed(node.name)

    def _set_pod(self, pod: Pod, gone: bool) -> None:
        before = self._node_of.pop(pod.uid, "")
        if before:
            on_node = self._pods[before]
            del on_node[pod.uid]
            if not on_node:
                del self._pods[before]
            self._changed(before)
        if pod.node_name and not gone:
            self._node_of[pod.uid] = pod.node_name
            self._pods.setdefault(pod.node_name, {})[pod.uid] = pod
            self._changed(pod.node_name)

    def _changed(self, node_name: str) -> None:
        self._stale.add(node_name)
        self._sent_with_pods.pop(node_name, None)
        self._is_shown = False


class _SnapshotWriter:
    """Updates a snapshot from one set of nodes to the next, including their image states.

    An image state contains the number of nodes with the image. These counts are kept, so that only nodes with an image
    whose count has changed are updated.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._written: Mapping[str, NodeInfo] = {}
        """The nodes by name, as they were passed, in the snapshot's order."""
        self._spread: Counter[str] = Counter()

    def write(self, infos: Mapping[str, NodeInfo]) -> None:
        """Put these nodes into the snapshot, in this order."""
        try:
            self._write(infos)
        except BaseException:
            # Some nodes may have been written. The next call has to start from scratch.
            self._written, self._spread = {}, Counter()
            self._snapshot.replace(())
            raise

    def _write(self, infos: Mapping[str, NodeInfo]) -> None:
        before = self._written
        # A changed node has another NodeInfo: those in `infos` are never changed in place.
        changed = {name: info for name, info in infos.items() if before.get(name) is not info}
        recounted = self._recount(changed, before.keys() - infos.keys())
        if recounted:
            changed |= {
                name: info
                for name, info in infos.items()
                if name not in changed and not recounted.isdisjoint(_image_names(info))
            }
        fresh = {name: self._with_images(info) for name, info in changed.items()}
        if list(infos) == list(before):
            self._snapshot.update(fresh.values())
        else:
            self._snapshot.replace(
                fresh[name] if name in fresh else self._snapshot.get(name) for name in infos
            )
        self._written = infos

    def _recount(self, changed: Mapping[str, NodeInfo], gone: Iterable[str]) -> set[str]:
        """Recount these nodes' images. Return the images whose counts have changed."""
        difference: Counter[str] = Counter()
        for name, info in changed.items():
            old = self._written.get(name)
            if old is None or old.node.status.images != info.node.status.images:
                difference.update(_image_names(info))
                if old is not None:
                    difference.subtract(_image_names(old))
        for name in gone:
            difference.subtract(_image_names(self._written[name]))
        recounted = {image for image, count in difference.items() if count}
        for image in recounted:
            self._spread[image] += difference[image]
            if not self._spread[image]:
                del self._spread[image]
        return recounted

    def _with_images(self, info: NodeInfo) -> NodeInfo:
        states = FrozenDict(
            {
                name: _summary(image.size_bytes, self._spread[name])
                for image in info.node.status.images
                for name in image.names
            }
        )
        present = self._snapshot.find(info.name)
        if present is not None and present.image_states == states:
            states = present.image_states  # Its identity shows that nothing has changed.
        elif not states:
            return info
        copy = info.clone()
        copy.image_states = states
        return copy


def _image_names(info: NodeInfo) -> set[str]:
    return {name for image in info.node.status.images for name in image.names}


@lru_cache(maxsize=1 << 16)
def _summary(size: int, num_nodes: int) -> ImageStateSummary:
    """Return one shared object for equal values, since many nodes have the same images."""
    return ImageStateSummary(size, num_nodes)


MAX_KEPT_BYTES: Final = 64 << 20
"""The most bytes of nodes' JSON that are kept: as many as one request may have.

Decoded nodes take about twice as much.
"""


@attrs.frozen
class _Kept:
    text: bytes
    info: NodeInfo


class SentNodes:
    """Makes NodeInfos from nodes' JSON, and caches the latest one of each node, by uid.

    A cached one is reused if the JSON is equal byte by byte. Comparing `resourceVersion` alone would miss changes made
    by hand. The least recently sent nodes are dropped first. Must not be used concurrently.
    """

    def __init__(self, max_bytes: int = MAX_KEPT_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def info(self, json: Json, index: int) -> NodeInfo:
        """Return the node with this index in a request, without pods. The caller must not change it.

        Raises:
            RequestError: the node is invalid.
            WireError: the node's name or uid isn't a string.
        """
        path = f"Nodes.items[{index}]"
        identity = node_identity(json, path)
        key, text = identity.uid or identity.name, bytes(json)
        known = self._kept.get(key)
        if known is not None and known.text == text:
            self._kept.move_to_end(key)
            return known.info
        try:
            node = node_from_manifest(manifest(decode(json), path))
        except ManifestError as error:
            raise RequestError(f"{path}: {error}") from error
        info = NodeInfo.of(node)
        self._keep(key, _Kept(text, info))
        return info

    def _keep(self, key: str, kept: _Kept) -> None:
        if (old := self._kept.pop(key, None)) is not None:
            self._bytes -= len(old.text)
        self._kept[key] = kept
        self._bytes += len(kept.text)
        while self._bytes > self._max_bytes:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= len(oldest.text)
