"""Requests of pods by namespace, updated with the snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from kschedfw import NodeInfo, NodeTable, PodInfo
from kschedfw_capacity.amounts import NOTHING, Amounts
from kschedfw_capacity.quota import Bounds, Quota, Quotas


class Usage:
    """Requests of all pods on nodes, summed by namespace. Assumed pods are included.

    Listens to the node table, and updates `quotas` with every change. A pod is in the table from its reservation until
    it is unreserved, deleted or finished. So the plugin needs no reserve hook, and pods that another profile or
    scheduler has placed count, too.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._by_namespace: dict[str, Amounts] = {}
        self.quotas = Quotas({})
        self.table_rebuilt()
        table.listen(self)

    def of(self, namespace: str) -> Amounts:
        return self._by_namespace.get(namespace, NOTHING)

    def measure_by(self, bounds: Mapping[str, Bounds]) -> None:
        """Replace the quotas with these bounds, and compute their usage."""
        self.quotas = Quotas({each: Quota(its_bounds, self.of(each)) for each, its_bounds in bounds.items()})

    def row_changed(self, row: int, old: NodeInfo, new: NodeInfo) -> None:  # noqa: ARG002  # the table's signature
        before, after = old.pods, new.pods
        stayed = len(before)
        # The usual case: pods were placed and none has gone.
        if after[:stayed] == before:
            self._add(after[stayed:])
            return
        # By identity: an updated pod has a new PodInfo, so its old requests go and its new ones come.
        were, are = set(before), set(after)
        self._remove(info for info in before if info not in are)
        self._add(info for info in after if info not in were)

    def rows_moved(
        self,
        moved_from: npt.NDArray[np.int64],  # noqa: ARG002  # the table's signature
        gone: Sequence[NodeInfo],
        added: Sequence[NodeInfo],
    ) -> None:
        for info in gone:
            self._remove(info.pods)
        for info in added:
            self._add(info.pods)

    def table_rebuilt(self) -> None:
        self._by_namespace.clear()
        self.measure_by({each: self.quotas[each].bounds for each in self.quotas})
        for info in self._table.node_infos:
            self._add(info.pods)

    def _add(self, infos: Iterable[PodInfo]) -> None:
        for info in infos:
            namespace, request = info.pod.namespace, Amounts.requested_by(info.pod)
            self._by_namespace[namespace] = self.of(namespace) + request
            self.quotas.add(namespace, request)

    def _remove(self, infos: Iterable[PodInfo]) -> None:
        for info in infos:
            namespace, request = info.pod.namespace, Amounts.requested_by(info.pod)
            self._by_namespace[namespace] = self.of(namespace) - request
            self.quotas.remove(namespace, request)
