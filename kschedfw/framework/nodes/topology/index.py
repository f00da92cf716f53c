"""Index of the pods on nodes and of their affinity terms by topology domain, kept in step with a snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.pod import Pod
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.nodes.topology.domains import Domains
from kschedfw.framework.nodes.topology.pods import PodCounter, PodCounters, PodQuery, TransientCounter
from kschedfw.framework.nodes.topology.terms import TermGroups, TermTally


class TopologyIndex:
    """The index of domains with pods that match a query, and of affinity terms that select a pod.

    The first answer to a question costs a look at all *kinds* of pods or terms, which are told apart only by
    labels that were asked for. Then the answer is kept, at the cost of the pods that come and go. Only a cycle
    that asks for a label for the first time looks at all pods.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._domains: dict[str, Domains] = {}
        self._fill()
        table.listen(self)

    def _fill(self) -> None:
        self._pods = PodCounters(self.domains, self._places)
        self._terms = TermGroups(self.domains)
        self.has_terms = False
        """True if any pod on a node has a term of any kind."""
        for row, info in enumerate(self._table.node_infos):
            self._add(info.pods, row, info.name)

    # Questions

    def counter(self, query: PodQuery) -> PodCounter | TransientCounter:
        """Return the counter of the pods on nodes that match the query."""
        return self._pods.counter(query, self._table.rows)

    def terms_about(self, pod: Pod, namespace_labels: FrozenDict[str, str]) -> TermTally:
        """Return the terms of pods on nodes that select this pod, whose namespace has these labels."""
        return self._terms.about(pod, namespace_labels, self._table.rows)

    def domains(self, key: str) -> Domains:
        """Return the domains of a topology key."""
        known = self._domains.get(key)
        if known is None:
            known = self._domains[key] = Domains(self._table, key)
        return known

    # Keeping in step

    def row_changed(self, row: int, old: NodeInfo, new: NodeInfo) -> None:
        if old.node is not new.node:
            for domains in self._domains.values():
                domains.node_changed(old.node, new.node)
        before, after = old.pods, new.pods
        stayed = len(before)
        if after[:stayed] == before:  # as ever when a pod has been placed
            if self._pods.are_asked or new.pods_with_affinity:
                self._add(after[stayed:], row, new.node.metadata.name)
            return
        were, are = set(before), set(after)
        self._remove([info for info in before if info not in are], row, old.name)
        self._add([info for info in after if info not in were], row, new.name)

    def rows_moved(self, moved_from: IntArray, gone: Sequence[NodeInfo], added: Sequence[NodeInfo]) -> None:
        for domains in self._domains.values():
            domains.rows_moved()
        self._pods.move_rows(moved_from)
        for info in gone:
            self._remove(info.pods, -1, info.name)
        for info in added:
            self._add(info.pods, self._table.rows[info.name], info.name)

    def table_rebuilt(self) -> None:
        # Domains stay, since plugins keep them.
        for domains in self._domains.values():
            domains.rows_moved()
        self._fill()

    def _places(self) -> Iterator[tuple[Pod, int, str]]:
        """Yield all pods on nodes, each with the node's row and name."""
        for row, info in enumerate(self._table.node_infos):
            for its in info.pods:
                yield its.pod, row, info.name

    def _add(self, infos: Sequence[PodInfo], row: int, node_name: str) -> None:
        counts = self._pods.are_asked
        for info in infos:
            if counts:
                self._pods.add(info.pod, row, node_name)
            if info.has_affinity:
                self._terms.add(info, row, node_name)
                self.has_terms = bool(self._terms.groups)

    def _remove(self, infos: Sequence[PodInfo], row: int, node_name: str) -> None:
        counts = self._pods.are_asked
        for info in infos:
            if counts:
                self._pods.remove(info.pod, row, node_name)
            if info.has_affinity:
                self._terms.remove(info, row, node_name)
                self.has_terms = bool(self._terms.groups)
