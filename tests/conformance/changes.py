"""Changes of a cluster that are undone again. Caches have to follow in both directions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Final

import attrs

from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.node import Node
from kschedfw.api.pod import HostPort, Pod
from kschedfw.api.pod_groups import group_key
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.scheduler.cache import Cache
from kschedfw.scheduler.errors import SchedulingError
from kschedfw.scheduler.generic_scheduler import GenericScheduler
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.scheduler.scheduling_cycle import Algorithm
from tests.conformance.decide import PodRun

_MOST_MEMBERS: Final = 3
"""The largest number of members of a group that are asked about, besides the one that is popped."""

Undo = Callable[[], None]


class PassingChanges:
    """Random changes of a cache, and their inverses.

    Added pods are copies of `pods`. Nodes get each other's labels and taints, and are removed and added.
    """

    def __init__(self, cache: Cache, nodes: Sequence[Node], pods: Sequence[Pod], random: Random) -> None:
        self._cache = cache
        self._nodes = nodes
        self._pods = pods
        self._random = random
        self._snapshot = Snapshot()
        self._made = 0
        self._absent: set[str] = set()
        self._undo: list[Undo] = []
        self._is_reordered = False

    def make(self, count: int) -> None:
        """Make this number of changes; at least one node stays."""
        kinds = [self._add_pod] * 3 + [self._change_node] * 2 + [self._remove_node]
        for _ in range(count):
            present = [node for node in self._nodes if node.name not in self._absent]
            kind = self._random.choice(kinds if len(present) > 1 else kinds[:-1])
            self._undo.append(kind(self._random.choice(present)))

    def take_back(self) -> None:
        """Undo all changes made, the last one first."""
        while self._undo:
            self._undo.pop()()
        # A node that came back, to the cluster or its zone, is visited last, and a group's victims depend on the order.
        if self._is_reordered:
            self._is_reordered = False
            for node in self._nodes:
                self._cache.remove_node(node)
            for node in self._nodes:
                self._cache.add_node(node)

    def _add_pod(self, node: Node) -> Undo:
        template = self._random.choice(self._pods)
        # Two pods with the same host port count once, so that the first to leave would free the other's, too.
        if not self._has_free(node, template.host_ports):
            return self._change_node(node)
        self._made += 1
        name = f"passing-{self._made}"
        metadata = attrs.evolve(template.metadata, name=name, uid=name)
        pod = template.with_metadata(metadata).bound_to(node.name)
        self._cache.add_pod(pod)
        return lambda: self._cache.remove_pod(pod)

    def _has_free(self, node: Node, ports: Sequence[HostPort]) -> bool:
        if not ports:
            return True
        self._cache.update_snapshot(self._snapshot)
        taken = self._snapshot.get(node.name).used_ports
        return not any(taken.conflicts(*port) for port in ports)

    def _change_node(self, node: Node) -> Undo:
        other = self._random.choice(self._nodes)
        labels = FrozenDict({**other.labels, "kubernetes.io/hostname": node.name})
        spec = attrs.evolve(node.spec, taints=other.spec.taints, unschedulable=not node.spec.unschedulable)
        changed = attrs.evolve(node, metadata=attrs.evolve(node.metadata, labels=labels), spec=spec)
        self._cache.update_node(changed)

        def undo() -> None:
            self._cache.update_node(node)
            self._is_reordered = True

        return undo

    def _remove_node(self, node: Node) -> Undo:
        self._cache.remove_node(node)
        self._absent.add(node.name)

        def undo() -> None:
            self._cache.add_node(node)
            self._absent.remove(node.name)
            self._is_reordered = True

        return undo


class RunsChanges:
    """Changes of a run's cache before its decisions, with the plugins being asked about the pod in between."""

    def __init__(self, run: PodRun, pods: Sequence[Pod], random: Random) -> None:
        self._run = run
        self._changes = PassingChanges(run.cache, run.nodes, pods, random)

    def go_through(self, pod: Pod) -> None:
        """Make changes, call the plugins for the pod, and undo the changes."""
        for count in (1, 4):
            self._changes.make(count)
            self._ask(pod)
            self._changes.take_back()
            self._ask(pod)

    def _ask(self, pod: Pod) -> None:
        run, state = self._run, CycleState()
        run.cache.update_snapshot(run.snapshot)
        try:
            feasible, _ = run.scheduler.find_nodes_that_fit_pod(run.framework, state, pod)
        except SchedulingError:
            return
        if len(feasible):
            run.scheduler.prioritize_nodes(run.framework, state, pod, feasible)


class SchedulersChanges:
    """Changes of a scheduler's cache before its cycles, with the pods of the cycle being asked about in between."""

    def __init__(
        self, scheduler: Scheduler, algorithm: Algorithm, created: Iterable[object], random: Random
    ) -> None:
        """`created` are objects besides those of the cluster, the pods among which are copied, too."""
        assert isinstance(algorithm, GenericScheduler)
        self._scheduler, self._algorithm = scheduler, algorithm
        nodes = sorted(scheduler.cluster.list(Node), key=lambda node: node.key)
        # Without their groups: it isn't the cache that takes members out of a group.
        pods = [
            attrs.evolve(pod, spec=attrs.evolve(pod.spec, scheduling_group=None))
            for pod in (*scheduler.cluster.list(Pod), *created)
            if isinstance(pod, Pod)
        ]
        self._changes = PassingChanges(scheduler.cache, nodes, pods, random) if nodes and pods else None

    def go_through(self, popped: Pod) -> None:
        """Make changes, call the plugins for pods of the cycle that begins, and undo the changes."""
        if self._changes is None:
            return
        key = group_key(popped)
        members = [pod for pod in self._scheduler.cluster.list(Pod) if key and group_key(pod) == key]
        pods = [popped, *members[:_MOST_MEMBERS]]
        for count in (1, 4):
            self._changes.make(count)
            self._ask(pods)
            self._changes.take_back()
            self._ask(pods)

    def _ask(self, pods: Iterable[Pod]) -> None:
        scheduler, algorithm = self._scheduler, self._algorithm
        scheduler.cache.update_snapshot(scheduler.snapshot)
        for pod in pods:
            framework, state = scheduler.frameworks.get(pod.spec.scheduler_name), CycleState()
            if pod.node_name or framework is None:
                continue
            try:
                with algorithm.trial():
                    feasible, _ = algorithm.find_nodes_that_fit_pod(framework, state, pod)
                    if len(feasible):
                        algorithm.prioritize_nodes(framework, state, pod, feasible)
            except SchedulingError:
                continue
