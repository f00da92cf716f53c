"""Changes of a cluster that are undone, which caches have to follow in both directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import attrs

from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.node import Node
from kschedfw.api.pod import HostPort, Pod
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.scheduler.cache import Cache

Undo = Callable[[], None]


class PassingChanges:
    """Makes random changes in a cache, and undoes them.

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
        return lambda: self._cache.update_node(node)

    def _remove_node(self, node: Node) -> Undo:
        self._cache.remove_node(node)
        self._absent.add(node.name)

        def undo() -> None:
            self._cache.add_node(node)
            self._absent.remove(node.name)

        return undo
