"""The nodes and pods that one scheduling cycle sees (kube-scheduler `Snapshot`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from kschedfw.api.errors import KschedfwError
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.framework.node_info import ImageStateSummary, NodeInfo
from kschedfw.framework.node_table import NodeTable
from kschedfw.framework.pod_info import PodInfo


class NodeNotFoundError(KschedfwError, KeyError):
    """The snapshot has no node of this name."""

    def __str__(self) -> str:
        return str(self.args[0])


class Snapshot:
    """NodeInfos in the order in which they are visited, and by name.

    One snapshot lives as long as its scheduler; the cache brings it up to date at the start of each cycle,
    and nothing changes it during one.
    """

    def __init__(self, node_infos: Iterable[NodeInfo] = ()) -> None:
        self.replace(node_infos)

    @classmethod
    def of(cls, nodes: Iterable[Node], pods: Iterable[Pod] = ()) -> Snapshot:
        """A snapshot of these nodes with the bound ones among these pods; pods on unknown nodes are left out."""
        node_infos = {node.name: NodeInfo.of(node) for node in nodes}
        for pod in pods:
            if (info := node_infos.get(pod.node_name)) is not None:
                info.add_pod(PodInfo.of(pod))
        set_image_states(node_infos.values())
        return cls(node_infos.values())

    def replace(self, node_infos: Iterable[NodeInfo]) -> None:
        """Take these NodeInfos, in this order, for the next cycle."""
        self._node_infos = list(node_infos)
        self._rows = {info.name: row for row, info in enumerate(self._node_infos)}
        self._find_affinity()
        self._table: NodeTable | None = None

    def update(self, changed: Iterable[NodeInfo]) -> None:
        """Take the new state of some of the nodes, each in its old place.

        Raises:
            NodeNotFoundError: one of them isn't there.
        """
        affinity = False
        for info in changed:
            row = self._row(info.name)
            affinity |= bool(info.pods_with_affinity or self._node_infos[row].pods_with_affinity)
            self._node_infos[row] = info
        if affinity:
            self._find_affinity()
        self._table = None

    @property
    def node_infos(self) -> Sequence[NodeInfo]:
        """All nodes, in visiting order."""
        return self._node_infos

    @property
    def with_affinity(self) -> Sequence[NodeInfo]:
        """Nodes with at least one pod that has a pod (anti-)affinity term."""
        return self._with_affinity

    @property
    def with_required_anti_affinity(self) -> Sequence[NodeInfo]:
        """Nodes with at least one pod that has a required pod anti-affinity term."""
        return self._with_required_anti_affinity

    def __len__(self) -> int:
        return len(self.node_infos)

    def __contains__(self, node_name: str) -> bool:
        return node_name in self._rows

    def get(self, node_name: str) -> NodeInfo:
        """The node's NodeInfo.

        Raises:
            NodeNotFoundError: there is none.
        """
        return self._node_infos[self._row(node_name)]

    @property
    def table(self) -> NodeTable:
        """The same nodes in columns, row i being `node_infos[i]`; made when a batch hook first asks."""
        if self._table is None:
            self._table = NodeTable.of(self.node_infos)
        return self._table

    def _row(self, node_name: str) -> int:
        try:
            return self._rows[node_name]
        except KeyError:
            raise NodeNotFoundError(f"node {node_name!r} not found in the snapshot") from None

    def _find_affinity(self) -> None:
        self._with_affinity = [info for info in self._node_infos if info.pods_with_affinity]
        self._with_required_anti_affinity = [
            info for info in self._with_affinity if info.pods_with_required_anti_affinity
        ]


def set_image_states(node_infos: Iterable[NodeInfo]) -> None:
    """Tell every node, for each of its images, on how many of these nodes the image is."""
    node_infos = list(node_infos)
    spread: Counter[str] = Counter()
    for info in node_infos:
        spread.update({name for image in info.node.status.images for name in image.names})
    for info in node_infos:
        info.image_states = {
            name: ImageStateSummary(image.size_bytes, spread[name])
            for image in info.node.status.images
            for name in image.names
        }
