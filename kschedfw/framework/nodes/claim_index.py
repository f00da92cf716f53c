"""The persistent volume claims that the pods on the nodes use (kube-scheduler `StorageInfoLister`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.table import NodeTable


class ClaimIndex:
    """Counts of the uses of each claim, kept in step with the table. Omits claims of generic ephemeral volumes."""

    def __init__(self, table: NodeTable) -> None:
        self._uses = Counter(claim for info in table.node_infos for claim in _claims(info))
        table.listen(self)

    def is_used(self, key: str) -> bool:
        """Whether a pod on some node uses the claim `namespace/name`."""
        return self._uses[key] > 0

    def row_changed(self, row: int, old: NodeInfo, new: NodeInfo) -> None:  # noqa: ARG002  # see TableListener
        if old.pods_with_volumes or new.pods_with_volumes:
            self._uses.subtract(_claims(old))
            self._uses.update(_claims(new))

    def rows_moved(
        self,
        moved_from: IntArray,  # noqa: ARG002  # see TableListener
        gone: Sequence[NodeInfo],
        added: Sequence[NodeInfo],
    ) -> None:
        for info in gone:
            self._uses.subtract(_claims(info))
        for info in added:
            self._uses.update(_claims(info))
        self._uses += Counter()  # drops the counts of 0


def _claims(info: NodeInfo) -> Iterator[str]:
    for each in info.pods_with_volumes:
        for volume in each.pod.storage:
            if volume.persistent_volume_claim is not None:
                yield f"{each.pod.namespace}/{volume.persistent_volume_claim.claim_name}"
