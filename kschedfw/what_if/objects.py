"""The objects that a transaction's operations are about: looked up by name, refused in words if they don't fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count as numbers
from typing import Final, TypeVar

from kschedfw.api.meta import Named
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.cluster import ClusterError
from kschedfw.cluster.freeing import freed
from kschedfw.what_if.checks import WhatIfError, title
from kschedfw.what_if.engine import Engine
from kschedfw.what_if.eviction import template_pod

NamedT = TypeVar("NamedT", bound=Named)

_MOST_NAMES: Final = 10


class TransactionObjects:
    """The objects of an engine's cluster, for operations of transactions.

    All methods raise WhatIfError, which says what there is instead.
    """

    def __init__(self, engine: Engine) -> None:
        self._cluster = engine.cluster
        self._history = engine.history

    def write(self, write: Callable[[NamedT], NamedT], obj: NamedT) -> NamedT:
        try:
            return write(obj)
        except ClusterError as error:
            raise WhatIfError(str(error)) from error

    def present(self, obj: NamedT) -> NamedT:
        found = self._cluster.get(type(obj), obj.key)
        if found is None:
            known = some_names(each.key for each in self._cluster.list(type(obj)))
            raise WhatIfError(f"there is no {title(obj)}; there is {known or 'none of that kind'}")
        return found

    def node(self, name: str) -> Node:
        node = self._cluster.get(Node, name)
        if node is None:
            known = some_names(each.name for each in self._cluster.list(Node))
            raise WhatIfError(f"there is no node {name!r}; there is {known or 'none'}")
        return node

    def pending(self, pod: Pod) -> Pod:
        """Return the pod as it is in the cluster, added if need be."""
        present = self._cluster.get(Pod, pod.key)
        if present is None:
            if pod.node_name:
                raise WhatIfError(f"{title(pod)} is on node {pod.node_name} already")
            return self.write(self._cluster.add, pod)
        self.check_unplaced(present)
        return present

    def check_unplaced(self, pod: Pod) -> None:
        placement = self._history.held.get(pod.uid)
        if node_name := pod.node_name if placement is None else placement.node_name:
            raise WhatIfError(f"{title(pod)} is on node {node_name} already")

    def on_node(self, pod: Pod) -> Pod:
        """Return the present state of a pod that is on a node, or has a place on it."""
        present = self.present(pod)
        if not present.node_name and present.uid not in self._history.held:
            raise WhatIfError(f"{title(pod)} isn't on a node")
        return present

    def give_up(self, obj: Named) -> None:
        """Give up the place of a pod, if it has one in the transaction."""
        if isinstance(obj, Pod) and (placement := self._history.held.get(obj.uid)) is not None:
            self._history.give_up(placement)

    def evict(self, pod: Pod) -> Pod:
        cluster = self._cluster
        cluster.delete(pod)
        return cluster.add(template_pod(freed(pod, cluster.get(Node, pod.node_name)), pod.name))

    def free_names(self, kind: type[Named], template: Named) -> Iterator[str]:
        cluster, prefix = self._cluster, f"{template.namespace}/" if template.namespace else ""
        candidates = (f"{template.name}-{number}" for number in numbers(1))
        return (name for name in candidates if cluster.get(kind, prefix + name) is None)


def some_names(names: Iterable[str]) -> str:
    """Return the first few names, joined by commas."""
    shown: list[str] = []
    for name in names:
        if len(shown) == _MOST_NAMES:
            return ", ".join((*shown, "…"))
        shown.append(name)
    return ", ".join(shown)
