"""What a site knows about its machines and tasks: a cluster of one's own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar, cast

from kschedfw import Node, Pod
from kschedfw.api import Named, PodCondition
from kschedfw.framework.handle import ClusterClient

T = TypeVar("T", bound=Named)


class Site(ClusterClient):
    """All that the framework and its plugins ask of a cluster."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._objects: dict[tuple[type[Named], str], Named] = {(Node, node.key): node for node in nodes}

    def get(self, kind: type[T], key: str) -> T | None:
        return cast("T | None", self._objects.get((kind, key)))

    def list(self, kind: type[T], namespace: str | None = None) -> Sequence[T]:
        found = (obj for obj in self._objects.values() if isinstance(obj, kind))
        return [obj for obj in found if namespace is None or obj.namespace == namespace]

    def update(self, obj: T) -> T:
        self._objects[type(obj), obj.key] = obj
        return obj

    def bind(self, pod: Pod, node_name: str) -> None:
        # Here a real site would start the task.
        self._objects[Pod, pod.key] = pod.bound_to(node_name)

    def delete(self, obj: Named) -> None:
        del self._objects[type(obj), obj.key]

    def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> None:
        """Jobs have a state here, tasks have none."""

    def record_event(self, regarding: Named, type: str, reason: str, message: str) -> None:
        """The site keeps no journal."""
