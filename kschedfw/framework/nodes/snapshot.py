"""The nodes and pods that one scheduling cycle sees (kube-scheduler `Snapshot`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from kschedfw.api.errors import KschedfwError
from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.words import counted
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.node_info import ImageStateSummary, NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.nodes.read_only import ReadOnlyList
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.nodes.topology import TopologyIndex


class ClaimIndex:
    """Counts of the uses of each claim, kept in step with the table. Omits claims of generic ephemeral volumes."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self.table_rebuilt()
        table.listen(self)

    def is_used(self, key: str) -> bool:
        """Return whether a pod on some node uses the claim `namespace/name`."""
        return self._uses[key] > 0

    def row_changed(self, row: int, old: NodeInfo, new: NodeInfo) -> None:  # noqa: ARG002  # see TableListener
        before, after = old.pods_with_volumes, new.pods_with_volumes
        if before is after:
            return
        stayed = len(before)
        if after[:stayed] == before:  # as ever when a pod has been placed
            self._uses.update(_claims(after[stayed:]))
        else:
            self._uses.subtract(_claims(before))
            self._uses.update(_claims(after))

    def rows_moved(
        self,
        moved_from: IntArray,  # noqa: ARG002  # see TableListener
        gone: Sequence[NodeInfo],
        added: Sequence[NodeInfo],
    ) -> None:
        for info in gone:
            self._uses.subtract(_claims(info.pods_with_volumes))
        for info in added:
            self._uses.update(_claims(info.pods_with_volumes))
        self._uses += Counter()  # drops the counts of 0

    def table_rebuilt(self) -> None:
        self._uses = Counter(
            claim for info in self._table.node_infos for claim in _claims(info.pods_with_volumes)
        )


def _claims(pods: Iterable[PodInfo]) -> Iterator[str]:
    # kube-scheduler's NodeInfo.PVCRefCounts counts the volumes of source persistentVolumeClaim alone, too.
    for each in pods:
        for volume in each.pod.storage:
            if volume.persistent_volume_claim is not None:
                yield f"{each.pod.metadata.namespace}/{volume.persistent_volume_claim.claim_name}"


class NodeNotFoundError(KschedfwError, KeyError):
    """The error of asking a snapshot for a node that it doesn't have."""

    def __str__(self) -> str:
        return str(self.args[0])


class Snapshot:
    """NodeInfos in the order in which they are visited, and by name.

    One snapshot lives as long as its scheduler; the cache brings it up to date at the start of each cycle,
    and nothing changes it during one. NodeInfos that it is given become read-only.
    """

    def __init__(self, node_infos: Iterable[NodeInfo] = ()) -> None:
        self._torn: NodeTable | None = None
        """The table, if a change of it has raised; it is written anew before anybody reads it."""
        self._topology: TopologyIndex | None = None
        self._claims: ClaimIndex | None = None
        self._with_affinity: tuple[NodeInfo, ...] | None = None
        self._with_required_anti_affinity: tuple[NodeInfo, ...] | None = None
        self.node_infos: ReadOnlyList[NodeInfo] = ReadOnlyList()
        """All nodes, in visiting order."""
        self._names: Sequence[str] = []
        self._rows: FrozenDict[str, int] = EMPTY
        self.followed: object = None
        """The source's note of how far the snapshot has followed it."""
        self.replace(node_infos)

    @classmethod
    def of(cls, nodes: Iterable[Node], pods: Iterable[Pod] = ()) -> Snapshot:
        """Return a snapshot of these nodes and the pods bound to them; pods on unknown nodes are omitted."""
        node_infos = {node.name: NodeInfo.of(node) for node in nodes}
        for pod in pods:
            if (info := node_infos.get(pod.node_name)) is not None:
                info.add_pod(PodInfo.of(pod))
        snapshot = cls(node_infos.values())
        snapshot.update_image_states()
        return snapshot

    def replace(self, node_infos: Iterable[NodeInfo]) -> None:
        """Set the NodeInfos, in this order, for the next cycle."""
        infos = {info.name: info for info in node_infos}
        self.rearrange(
            list(infos), {name: info for name, info in infos.items() if self.find(name) is not info}
        )

    def rearrange(self, names: Sequence[str], changed: Mapping[str, NodeInfo]) -> None:
        """Set this order of nodes. Nodes named in `changed` are new or have a new state; all others keep theirs.

        The cost is a comparison of the names, plus the rows that have moved.
        """
        # New nodes get their state in `_move`. Of the others `_move` moves the old state, so that each change
        # of state goes through `update` and into the table's logs.
        old_rows = self._rows
        if self._names != names:
            self._move(names, changed)
        self.update(info for name, info in changed.items() if name in old_rows)

    def _move(self, names: Sequence[str], changed: Mapping[str, NodeInfo]) -> None:
        """Move nodes to other rows. A common prefix and suffix of the old and the new order are left as they are."""
        old, old_names = self.node_infos, self._names
        first = _common(old_names, names)
        last = _common(old_names[first:][::-1], names[first:][::-1])
        old_end, end = len(old_names) - last, len(names) - last
        sources = [self._rows.get(name, -1) for name in names[first:end]]
        moved = [
            changed[name] if row < 0 else old[row]
            for name, row in zip(names[first:end], sources, strict=True)
        ]
        for info in moved:
            info.seal()
        rows = FrozenDict(self._rows)  # a new one, since readers may still hold the old one
        for name in old_names[first:old_end]:
            dict.__delitem__(rows, name)
        # If their number is the same, the nodes of the common suffix keep their rows, and need no new
        # entries.
        beyond = len(names) if old_end != end else end
        dict.update(rows, zip(names[first:beyond], range(first, beyond), strict=True))
        infos = [*old[:first], *moved, *old[old_end:]]
        self._forget_affinity()
        self.__dict__.pop("selection", None)
        before = np.arange(len(old), dtype=np.int64)
        moved_from = np.concatenate((before[:first], np.array(sources, dtype=np.int64), before[old_end:]))
        try:
            self.node_infos, self._rows, self._names = ReadOnlyList(infos), rows, names
            if (table := self.__dict__.get("table")) is not None:
                table.move(infos, rows, moved_from)
        except BaseException:
            self._tear()
            raise

    def update(self, changed: Iterable[NodeInfo]) -> None:
        """Set the new state of some of the nodes, without changing the order.

        Raises:
            NodeNotFoundError: a node isn't in the snapshot.
        """
        infos, rows, table = self.node_infos, self._rows, self.__dict__.get("table")
        try:
            for info in changed:
                name = info.node.metadata.name
                # The error is made in `_row`; a call of it for each node that a pod was placed on is spared.
                row = rows[name] if name in rows else self._row(name)
                # Nodes with required anti-affinity are among these, so one look tells about both lists. Both hold
                # NodeInfos, so even a node that stays on them must be replaced there.
                if info.pods_with_affinity or infos[row].pods_with_affinity:
                    self._with_affinity = self._with_required_anti_affinity = None
                info.seal()
                list.__setitem__(infos, row, info)
                if table is not None:
                    table.update(row, info)
        except BaseException:
            self._tear()
            raise

    @property
    def with_affinity(self) -> Sequence[NodeInfo]:
        """Nodes with at least one pod that has a pod (anti-)affinity term."""
        if self._with_affinity is None:
            self._with_affinity = tuple([info for info in self.node_infos if info.pods_with_affinity])
        return self._with_affinity

    @property
    def with_required_anti_affinity(self) -> Sequence[NodeInfo]:
        """Nodes with at least one pod that has a required pod anti-affinity term."""
        if self._with_required_anti_affinity is None:
            self._with_required_anti_affinity = tuple(
                [info for info in self.with_affinity if info.pods_with_required_anti_affinity]
            )
        return self._with_required_anti_affinity

    def __repr__(self) -> str:
        return f"<Snapshot of {counted(len(self), 'node')}>"

    def __len__(self) -> int:
        return len(self.node_infos)

    def __contains__(self, node_name: str) -> bool:
        return node_name in self._rows

    def get(self, node_name: str) -> NodeInfo:
        """Return the node's NodeInfo.

        Raises:
            NodeNotFoundError: there is none.
        """
        return self.node_infos[self._row(node_name)]

    def find(self, node_name: str) -> NodeInfo | None:
        """Return the node's NodeInfo; None if there is none."""
        row = self._rows.get(node_name)
        return None if row is None else self.node_infos[row]

    # Parts that are read several times for each pod are attributes once they are made. `_tear` drops them.

    @cached_property
    def table(self) -> NodeTable:
        """The nodes in columns, row i being `node_infos[i]`; made on first use, and kept in step from then on."""
        if self._torn is None:
            return NodeTable.of(self.node_infos)
        # The same table, since plugins listen to it.
        table = self._torn
        table.rebuild(self.node_infos, self._rows)
        self._torn = None
        return table

    @cached_property
    def topology(self) -> TopologyIndex:
        """Counts of the pods and their terms by domain; made on first use, and kept in step from then on."""
        table = self.table  # a torn table is written anew, and its listeners with it
        if self._topology is None:
            self._topology = TopologyIndex(table)
        return self._topology

    @cached_property
    def claims(self) -> ClaimIndex:
        """The uses of persistent volume claims; made on first use, and kept in step from then on."""
        table = self.table
        if self._claims is None:
            self._claims = ClaimIndex(table)
        return self._claims

    def update_image_states(self) -> None:
        """Update the nodes' image states: the number of nodes of the snapshot that have each image."""
        self.update(list(with_image_states(self.node_infos)))

    @cached_property
    def selection(self) -> NodeSelection:
        """All nodes, in visiting order."""
        return NodeSelection.whole(self.table)

    def _tear(self) -> None:
        """Have the table written anew before anybody reads it: some row may be half written, or a listener behind."""
        if (table := self.__dict__.get("table")) is not None:
            self._torn = table
        for name in ("table", "topology", "claims", "selection"):
            self.__dict__.pop(name, None)

    def _row(self, node_name: str) -> int:
        try:
            return self._rows[node_name]
        except KeyError:
            raise NodeNotFoundError(f"node {node_name!r} not found in the snapshot") from None

    def _forget_affinity(self) -> None:
        self._with_affinity = None
        self._with_required_anti_affinity = None


def with_image_states(node_infos: Sequence[NodeInfo]) -> Iterator[NodeInfo]:
    """Yield copies of the nodes whose image states are out of date, with the number of nodes that have each image."""
    spread: Counter[str] = Counter()
    for info in node_infos:
        # A set: a node that lists an image twice is one node.
        spread.update({name for image in info.node.status.images for name in image.names})
    for info in node_infos:
        states = FrozenDict(
            (name, ImageStateSummary(image.size_bytes, spread[name]))
            for image in info.node.status.images
            for name in image.names
        )
        if states != info.image_states:
            copy = info.clone()
            copy.image_states = states
            yield copy


def _common(before: Sequence[str], after: Sequence[str]) -> int:
    """Return the length of the longest common prefix of two lists of names."""
    # Slices are compared in C, where the same string object is equal at once. All slices together have no
    # more names than the lists.
    same, different = 0, min(len(before), len(after))  # bounds of the result
    while same < different:
        middle = (same + different + 1) // 2
        if before[same:middle] == after[same:middle]:
            same = middle
        else:
            different = middle - 1
    return same
