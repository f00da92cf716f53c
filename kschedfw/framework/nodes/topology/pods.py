"""Counts of pods that match a query, by node and by domain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import attrs
import numpy as np

from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.pod import Pod
from kschedfw.api.selectors import Selector
from kschedfw.framework.nodes.arrays import IntArray, moved
from kschedfw.framework.nodes.topology.domains import Domains, DomainSums
from kschedfw.framework.nodes.topology.matching import LabelIndex, SelectorIndex

_MOST_COUNTERS = 1024

DomainsOf = Callable[[str], Domains]


class PodQuery(Protocol):
    """A question about pods: a value that can be compared and hashed, cheaply if possible (`cache_hash`).

    The answer may depend on a pod's namespace, on its labels, and on whether it is being deleted; on nothing else.
    """

    @property
    def selector(self) -> Selector:
        """Matches the labels of every pod that the query matches, and perhaps of others."""
        ...

    def matches(self, pod: Pod) -> bool: ...

    def __hash__(self) -> int: ...


class PodCounter:
    """How many pods match a query. Only to be read; the arrays are the counter's own and change with the snapshot.

    `per_node` has one count for each row of the table, `total` is their sum.
    """

    __slots__ = ("_by_key", "_domains_of", "last_use", "per_node", "query", "total")

    def __init__(self, query: PodQuery, nodes: int, domains_of: DomainsOf) -> None:
        self.query = query
        self.per_node: IntArray = np.zeros(nodes, dtype=np.int64)
        self.total = 0
        self.last_use = 0
        self._domains_of = domains_of
        self._by_key: dict[str, DomainSums] = {}

    def by_domain(self, key: str) -> IntArray:
        """The counts by code of `table.label(key)`; pods on nodes without the label are left out."""
        return self.in_domains(key).sums

    def in_domains(self, key: str) -> DomainSums:
        """The same with the number of all pods on nodes that have the label."""
        sums = self._by_key.get(key)
        if sums is None:
            sums = self._by_key[key] = DomainSums(self._domains_of(key))
        elif sums.fresh:
            return sums
        else:
            sums.clear()
        rows = np.flatnonzero(self.per_node)
        sums.add_each(rows, self.per_node[rows])
        return sums

    def add(self, row: int, pods: int) -> None:
        self.per_node[row] += pods
        self.total += pods
        for sums in self._by_key.values():
            sums.add(row, pods)

    def move_rows(self, moved_from: IntArray) -> None:
        self.per_node = moved(self.per_node, moved_from)
        self.total = int(self.per_node.sum())


@attrs.define(eq=False)
class LabelClass:
    """Pods on nodes that no query tells apart: how many there are by node name, and who counts them."""

    example: Pod
    by_node: dict[str, int] = attrs.field(factory=dict)
    counters: list[PodCounter] = attrs.field(factory=list)


_ClassKey = tuple[str, FrozenDict[str, str], bool]


class PodCounters:
    """All counters, and the classes of pods that they count."""

    def __init__(self, domains_of: DomainsOf) -> None:
        self._domains_of = domains_of
        self._classes: dict[_ClassKey, LabelClass] = {}
        self._classes_by_label = LabelIndex[LabelClass]()
        self._counters: dict[PodQuery, PodCounter] = {}
        self._counters_by_selector = SelectorIndex[PodCounter]()
        self._uses = 0

    def counter(self, query: PodQuery, rows: Mapping[str, int]) -> PodCounter:
        """The counter of a query; `rows` are those of the nodes."""
        counter = self._counters.get(query)
        if counter is None:
            counter = self._add_counter(query, rows)
        self._uses += 1
        counter.last_use = self._uses
        return counter

    def add(self, pod: Pod, row: int, node_name: str) -> None:
        """Count a pod that is on the node now."""
        label_class = self._class_of(pod)
        label_class.by_node[node_name] = label_class.by_node.get(node_name, 0) + 1
        for counter in label_class.counters:
            counter.add(row, 1)

    def remove(self, pod: Pod, row: int, node_name: str) -> None:
        """Count a pod out that isn't on the node any more; `row` is -1 if the node itself is gone."""
        key = _class_key(pod)
        label_class = self._classes[key]
        if row >= 0:
            for counter in label_class.counters:
                counter.add(row, -1)
        by_node = label_class.by_node
        if by_node[node_name] > 1:
            by_node[node_name] -= 1
            return
        del by_node[node_name]
        if not by_node:
            del self._classes[key]
            self._classes_by_label.discard(pod.metadata.labels, label_class)

    def move_rows(self, moved_from: IntArray) -> None:
        for counter in self._counters.values():
            counter.move_rows(moved_from)

    def _class_of(self, pod: Pod) -> LabelClass:
        key = _class_key(pod)
        known = self._classes.get(key)
        if known is None:
            candidates = self._counters_by_selector.candidates(pod.metadata.labels)
            known = LabelClass(pod, counters=[each for each in candidates if each.query.matches(pod)])
            self._classes[key] = known
            self._classes_by_label.add(pod.metadata.labels, known)
        return known

    def _add_counter(self, query: PodQuery, rows: Mapping[str, int]) -> PodCounter:
        if len(self._counters) >= _MOST_COUNTERS:
            self._forget_older_half()
        counter = PodCounter(query, len(rows), self._domains_of)
        for label_class in self._classes_by_label.candidates(query.selector):
            if query.matches(label_class.example):
                label_class.counters.append(counter)
                for name, pods in label_class.by_node.items():
                    counter.add(rows[name], pods)
        self._counters[query] = counter
        self._counters_by_selector.add(query.selector, counter)
        return counter

    def _forget_older_half(self) -> None:
        by_use = sorted(self._counters.values(), key=lambda counter: counter.last_use)
        forgotten = set(by_use[: len(by_use) // 2])
        for counter in forgotten:
            del self._counters[counter.query]
            self._counters_by_selector.discard(counter.query.selector, counter)
        for label_class in self._classes.values():
            label_class.counters = [counter for counter in label_class.counters if counter not in forgotten]


def _class_key(pod: Pod) -> _ClassKey:
    meta = pod.metadata
    return meta.namespace, meta.labels, meta.deletion_timestamp is not None
