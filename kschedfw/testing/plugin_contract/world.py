"""A generated cluster that changes at random."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import attrs

from kschedfw import FrozenDict, Node, NodeInfo, Pod, PodInfo, Snapshot
from kschedfw.framework.nodes.snapshot import with_image_states


class World:
    """A cluster of up to eight nodes, with copies of a few nodes and pods, that changes at random."""

    def __init__(self, random: Random, nodes: Sequence[Node], pods: Sequence[Pod]) -> None:
        self.random = random
        self._nodes, self._pods = nodes, pods
        self._made = 0
        self._infos: dict[str, NodeInfo] = {}
        for number in range(random.randint(1, 8)):
            self._put(f"node-{number}")
        self.snapshot = Snapshot()
        self._bring_along()

    def objects(self) -> Iterator[Node | Pod]:
        """Yield the nodes, and the pods on them."""
        for info in self._infos.values():
            yield info.node
        for info in self._infos.values():
            yield from (each.pod for each in info.pods)

    def pending(self) -> Iterator[Pod]:
        """Yield pending pods, of which some have equal signatures.

        Each is a copy of one of a few pods, or a mixture of two.
        """
        for _ in range(3):
            pod, other = (self.random.choice(self._pods) for _ in range(2))
            if self.random.randint(0, 1):
                field = self.random.choice(attrs.fields(type(pod.spec))).name
                pod = attrs.evolve(pod, spec=attrs.evolve(pod.spec, **{field: getattr(other.spec, field)}))
            if not self.random.randint(0, 3):
                pod = attrs.evolve(pod, metadata=other.metadata)
            yield self._new(pod, "")

    def states(self) -> Iterator[Sequence[Node | Pod]]:
        """Yield two nodes, each in the states of a few, and pods on them, each with the labels of a few."""
        hosts = ("node-0", "node-1")
        for name in hosts:
            yield [self._node(name) for _ in self._nodes]
        for _ in range(3):
            pod = self._new(self.random.choice(self._pods), self.random.choice(hosts))
            yield [pod.with_metadata(attrs.evolve(pod.metadata, labels=each.labels)) for each in self._pods]

    def rows(self) -> Sequence[int]:
        """Return all rows in order, or some of them in any order; int64 of shape (k,)."""
        rows = list(range(len(self.snapshot)))
        if self.random.randint(0, 2):
            return rows
        return self.random.sample(rows, self.random.randint(1, len(rows)))

    def change(self) -> None:
        for _ in range(self.random.randint(1, 3)):
            name = self.random.choice(sorted(self._infos))
            match self.random.randint(0, 7):
                case 0:
                    self._put(f"node-{self.random.randint(0, 9)}")
                case 1 if len(self._infos) > 1:
                    del self._infos[name]
                case 2:
                    changed = self._infos[name] = self._infos[name].clone()
                    changed.set_node(self._node(name))
                case 3 | 4 if self._infos[name].pods:
                    changed = self._infos[name] = self._infos[name].clone()
                    changed.remove_pod(self.random.choice(changed.pods).pod)
                case _:
                    changed = self._infos[name] = self._infos[name].clone()
                    changed.add_pod(PodInfo.of(self._new(self.random.choice(self._pods), name)))
        self._bring_along()

    def _bring_along(self) -> None:
        """Update the image states of nodes, as a cache does."""
        self._infos |= {info.name: info for info in with_image_states(list(self._infos.values()))}
        # Either way as a cache does it: as long as no node comes or goes, only rows change, which kept
        # answers follow.
        if list(self._infos) == [info.name for info in self.snapshot.node_infos]:
            self.snapshot.update(
                [info for info in self._infos.values() if info is not self.snapshot.get(info.name)]
            )
        else:
            self.snapshot.replace(self._infos.values())

    def _put(self, name: str) -> None:
        """Add a node, or replace it by another one."""
        self._infos[name] = NodeInfo.of(self._node(name))

    def _node(self, name: str) -> Node:
        node = self.random.choice(self._nodes)
        # Labels that repeat the node's name, such as the hostname, follow it.
        labels = {key: name if value == node.name else value for key, value in node.labels.items()}
        return attrs.evolve(node, metadata=attrs.evolve(node.metadata, name=name, labels=FrozenDict(labels)))

    def _new(self, pod: Pod, node_name: str) -> Pod:
        self._made += 1
        metadata = attrs.evolve(pod.metadata, name=f"pod-{self._made}", uid=f"uid-{self._made}")
        return pod.with_metadata(metadata).bound_to(node_name)
