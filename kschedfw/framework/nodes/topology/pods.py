"""Counts of pods that match a query, by node and by domain."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cached_property
from itertools import chain
from typing import Protocol

import attrs
import numpy as np

from kschedfw.api.bounded_dict import BoundedDict
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.pod import Pod
from kschedfw.api.records import define
from kschedfw.api.selectors import Selector
from kschedfw.framework.nodes.arrays import IntArray, moved
from kschedfw.framework.nodes.topology.domains import DomainsOf, DomainSums, as_columns
from kschedfw.framework.nodes.topology.matching import AskedLabels, LabelIndex, SelectorIndex

_MOST_COUNTERS = 1024
_MOST_ASKED_ONCE = 4096
_MOST_FOR_NOW = 64
_MOST_ADDED_SINGLY = 16

PodsOnNodes = Callable[[], Iterable[tuple[Pod, int, str]]]
"""A function that returns all pods on nodes, each with the node's row and name."""


class PodQuery(Protocol):
    """A question about pods: a value that can be compared and hashed, cheaply if possible (`cache_hash`).

    The answer may depend on a pod's namespace, on its labels, and on whether it is being deleted; on nothing else.
    """

    @property
    def selector(self) -> Selector:
        """A selector that matches the labels of every pod that the query matches, and perhaps of others."""
        ...

    @property
    def label_keys(self) -> frozenset[str]:
        """The labels that the answer depends on."""
        ...

    def matches(self, pod: Pod) -> bool: ...

    def __hash__(self) -> int: ...


class PodCounter:
    """The number of pods that match a query, by node and domain.

    Read-only, and valid only in the cycle of the question. `per_node` has one count for each row of the table.
    """

    __slots__ = ("_by_key", "_domains_of", "last_use", "per_node")

    def __init__(self, nodes: int, domains_of: DomainsOf) -> None:
        self.per_node: IntArray = np.zeros(nodes, dtype=np.int64)
        self.last_use = 0
        self._domains_of = domains_of
        self._by_key: dict[str, DomainSums] = {}

    def by_domain(self, key: str) -> IntArray:
        """Return the counts by code of `table.label(key)`; pods on nodes without the label are omitted."""
        return self.in_domains(key).sums

    def in_domains(self, key: str) -> DomainSums:
        """Return the counts by domain, and the total over all nodes that have the label."""
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
        for sums in self._by_key.values():
            sums.add(row, pods)

    def add_each(self, rows: IntArray, pods: IntArray) -> None:
        """Add pods on many nodes. Must be called before the first question."""
        self.per_node[rows] += pods

    def add_counter(self, other: PodCounter) -> None:
        """Add the counts of another counter. Must be called before the first question."""
        self.per_node += other.per_node

    def move_rows(self, moved_from: IntArray) -> None:
        self.per_node = moved(self.per_node, moved_from)


class TransientCounter:
    """The sum of other counters, and of pods in single rows, for a query that hasn't come before.

    The sums are computed on demand. Adding a few counters over three zones costs much less than adding the
    counts of all nodes.
    """

    def __init__(self, nodes: int, domains_of: DomainsOf) -> None:
        self._nodes = nodes
        self._domains_of = domains_of
        self._parts: list[PodCounter] = []
        self._rows: list[int] = []
        self._pods: list[int] = []
        self._by_key: dict[str, DomainSums] = {}

    def add_places(self, rows: Iterable[int], pods: Iterable[int]) -> None:
        """Add pods on nodes, which may come several times. Must be called before the first question."""
        self._rows.extend(rows)
        self._pods.extend(pods)

    def add_counter(self, other: PodCounter) -> None:
        """Add the counts of another counter. Must be called before the first question."""
        self._parts.append(other)

    @cached_property
    def per_node(self) -> IntArray:
        """One count for each row of the table."""
        counts: IntArray = np.zeros(self._nodes, dtype=np.int64)
        for part in self._parts:
            counts += part.per_node
        np.add.at(counts, np.array(self._rows, dtype=np.int64), np.array(self._pods, dtype=np.int64))
        return counts

    def by_domain(self, key: str) -> IntArray:
        """Return what `PodCounter.by_domain` returns."""
        return self.in_domains(key).sums

    def in_domains(self, key: str) -> DomainSums:
        """Return what `PodCounter.in_domains` returns."""
        sums = self._by_key.get(key)
        if sums is None or not sums.fresh:
            parts = [part.in_domains(key) for part in self._parts]
            sums = self._by_key[key] = DomainSums.of(parts) if parts else DomainSums(self._domains_of(key))
            if len(self._rows) > _MOST_ADDED_SINGLY:
                sums.add_each(np.array(self._rows, dtype=np.int64), np.array(self._pods, dtype=np.int64))
            elif self._rows:
                for row, pods in zip(self._rows, self._pods, strict=True):
                    sums.add(row, pods)
        return sums


@define(eq=False)
class LabelClass:
    """Equivalence class of pods on nodes that no query tells apart, with the counters to update.

    `by_node` has the pod counts by node name. `labels` are the pods' labels that any query asks for. `own`
    counts just these pods, if they are many.
    """

    example: Pod
    labels: FrozenDict[str, str]
    by_node: dict[str, int] = attrs.field(factory=dict)
    counters: list[PodCounter] = attrs.field(factory=list)
    own: PodCounter | None = None


_ClassKey = tuple[str, Hashable, bool]
_ForNow = list[PodCounter | TransientCounter]
"""The counter of a query that has come once, empty once it is dropped."""


class PodCounters:
    """All counters, and the classes of pods that they count.

    A query gets a kept counter when it comes for the second time. In a stream of pods that all differ, no query
    comes again, and each kept counter adds to the cost of every later pod.
    """

    def __init__(self, domains_of: DomainsOf, places: PodsOnNodes) -> None:
        self._domains_of = domains_of
        self._places = places
        self._asked = AskedLabels()
        self.are_asked = False
        """True once a counter was asked for. Until then nothing is to be counted."""
        self._classes: dict[_ClassKey, LabelClass] = {}
        self._classes_by_label = LabelIndex[LabelClass]()
        self._with_own_counter: dict[LabelClass, None] = {}
        self._counters: dict[PodQuery, PodCounter] = {}
        self._queries_by_selector = SelectorIndex[PodQuery]()
        self._asked_once: BoundedDict[PodQuery, _ForNow] = BoundedDict(_MOST_ASKED_ONCE)
        self._for_now: list[_ForNow] = []
        """Counters that are dropped when the next pod comes or goes, since a plugin may ask twice in a cycle."""
        self._uses = 0

    def counter(self, query: PodQuery, rows: Mapping[str, int]) -> PodCounter | TransientCounter:
        """Return the counter of a query; `rows` are the nodes' rows by name."""
        counter = self._counters.get(query)
        if counter is None:
            for_now = self._asked_once.get(query)
            return for_now[0] if for_now else self._new_counter(query, rows, is_first=for_now is None)
        self._uses += 1
        counter.last_use = self._uses
        return counter

    def add(self, pod: Pod, row: int, node_name: str) -> None:
        """Count a pod that is now on the node."""
        self._drop_counters_for_now()
        label_class = self._class_of(pod)
        label_class.by_node[node_name] = label_class.by_node.get(node_name, 0) + 1
        for counter in label_class.counters:
            counter.add(row, 1)

    def remove(self, pod: Pod, row: int, node_name: str) -> None:
        """Remove a pod that left the node from the counts; `row` is -1 if the node itself is gone."""
        self._drop_counters_for_now()
        key = self._key_of(pod)
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
            self._classes_by_label.discard(label_class.labels, label_class)
            self._with_own_counter.pop(label_class, None)

    def move_rows(self, moved_from: IntArray) -> None:
        self._drop_counters_for_now()
        for counter in self._counters.values():
            counter.move_rows(moved_from)
        for label_class in self._with_own_counter:
            if label_class.own is not None:
                label_class.own.move_rows(moved_from)

    def _key_of(self, pod: Pod) -> _ClassKey:
        meta = pod.metadata
        return meta.namespace, self._asked.key_of(meta.labels), meta.deletion_timestamp is not None

    def _class_of(self, pod: Pod) -> LabelClass:
        key = self._key_of(pod)
        known = self._classes.get(key)
        if known is None:
            labels = self._asked.of(pod.metadata.labels)
            queries = self._queries_by_selector.candidates(labels)
            known = LabelClass(pod, labels)
            known.counters += [self._counters[query] for query in queries if query.matches(pod)]
            self._classes[key] = known
            self._classes_by_label.add(labels, known)
        return known

    def _new_counter(
        self, query: PodQuery, rows: Mapping[str, int], *, is_first: bool
    ) -> PodCounter | TransientCounter:
        if self._asked.ask_for(query.label_keys) or not self.are_asked:
            self.are_asked = True
            self._sort_pods_anew()
        candidates = self._classes_by_label.candidates(query.selector)
        matching = [each for each in candidates if query.matches(each.example)]
        if is_first:
            for_now = self._asked_once[query] = [self._count(matching, rows)]
            if len(self._for_now) >= _MOST_FOR_NOW:
                self._drop_counters_for_now()
            self._for_now.append(for_now)
            return for_now[0]
        del self._asked_once[query]
        if len(self._counters) >= _MOST_COUNTERS:
            self._forget_older_half()
        counter = PodCounter(len(rows), self._domains_of)
        self._uses += 1
        counter.last_use = self._uses
        for label_class in matching:
            if len(label_class.by_node) > _MOST_ADDED_SINGLY:
                counter.add_counter(self._own_counter(label_class, rows))
            else:
                counter.add_each(*as_columns(label_class.by_node, rows))
            label_class.counters.append(counter)
        self._counters[query] = counter
        self._queries_by_selector.add(query.selector, query)
        return counter

    def _count(self, classes: list[LabelClass], rows: Mapping[str, int]) -> PodCounter | TransientCounter:
        """Return a counter of all pods of these classes that isn't kept up to date."""
        if len(classes) == 1 and len(classes[0].by_node) > _MOST_ADDED_SINGLY:
            return self._own_counter(classes[0], rows)
        counter = TransientCounter(len(rows), self._domains_of)
        few: list[dict[str, int]] = []
        for label_class in classes:
            if len(label_class.by_node) > _MOST_ADDED_SINGLY:
                counter.add_counter(self._own_counter(label_class, rows))
            else:
                few.append(label_class.by_node)
        # All at once, since there may be a class in each of a hundred namespaces.
        pods = chain.from_iterable(map(dict.values, few))
        counter.add_places(map(rows.__getitem__, chain.from_iterable(few)), pods)
        return counter

    def _own_counter(self, label_class: LabelClass, rows: Mapping[str, int]) -> PodCounter:
        if label_class.own is None:
            own = label_class.own = PodCounter(len(rows), self._domains_of)
            own.add_each(*as_columns(label_class.by_node, rows))
            label_class.counters.append(own)
            self._with_own_counter[label_class] = None
        return label_class.own

    def _sort_pods_anew(self) -> None:
        """Divide the pods into classes again, after a label key was added."""
        self._drop_counters_for_now()
        self._classes = {}
        self._classes_by_label = LabelIndex()
        self._with_own_counter = {}
        for pod, _, node_name in self._places():
            by_node = self._class_of(pod).by_node
            by_node[node_name] = by_node.get(node_name, 0) + 1

    def _drop_counters_for_now(self) -> None:
        for each in self._for_now:
            each.clear()
        self._for_now.clear()

    def _forget_older_half(self) -> None:
        by_use = sorted(self._counters, key=lambda query: self._counters[query].last_use)
        forgotten = set()
        for query in by_use[: len(by_use) // 2]:
            forgotten.add(self._counters.pop(query))
            self._queries_by_selector.discard(query.selector, query)
        for label_class in self._classes.values():
            label_class.counters = [each for each in label_class.counters if each not in forgotten]
