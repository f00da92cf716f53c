"""Cache of cluster objects with decided but not yet written changes applied (kube-scheduler `AssumeCache`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import attrs

from kschedfw import ClusterClient
from kschedfw.api import Named
from kschedfw.api.records import define

T = TypeVar("T", bound=Named)


@define(eq=False)
class AssumeCache(Generic[T]):
    """Objects of one kind: the state in the cluster, or the later state that is assumed.

    An assumed state was made from a state in the cluster, whose version it still has. It is valid until the
    cluster has a newer version (the confirmation or another client's change), or until it is given up.
    Thread-safe.
    """

    _kind: type[T]
    _cluster: ClusterClient
    _assumed: dict[str, T] = attrs.field(factory=dict, init=False)

    def get(self, key: str) -> T | None:
        """Return the object as it is or is assumed to be; None if the cluster has none."""
        present = self._cluster.get(self._kind, key)
        if present is None:
            self._assumed.pop(key, None)
            return None
        return self.latest(present)

    def list(self) -> Sequence[T]:
        """Return all objects that the cluster has, in its order."""
        present = self._cluster.list(self._kind)
        # Mostly nothing is assumed, and the cluster's own sequence needs no copy.
        return [self.latest(obj) for obj in present] if self._assumed else present

    def assume(self, obj: T) -> bool:
        """Record this state as the present one until the cluster delivers it.

        Return False if the cluster's object has changed since, so that the decision is out of date.
        """
        present = self.get(obj.key)
        if present is None or present.uid != obj.uid or _version(present) > _version(obj):
            return False
        self._assumed[obj.key] = obj
        return True

    def restore(self, obj: T) -> None:
        """Drop the assumed state, unless another state was assumed since."""
        if self._assumed.get(obj.key) is obj:
            self._assumed.pop(obj.key, None)

    @property
    def assumed(self) -> Sequence[T]:
        """The assumed states that the cluster doesn't have yet."""
        # Over a copy: `get` takes confirmed states out.
        return [obj for key, obj in tuple(self._assumed.items()) if self.get(key) is obj]

    def latest(self, present: T) -> T:
        """Return the object that the cluster has, or the state that is assumed of it."""
        assumed = self._assumed.get(present.key) if self._assumed else None
        if assumed is None:
            return present
        if _version(present) > _version(assumed) or present.uid != assumed.uid:
            self.restore(assumed)
            return present
        return assumed


def _version(obj: Named) -> int:
    """Return the resource version as a number; 0 for a text that is no number, as tests may have."""
    text = obj.metadata.resource_version
    return int(text) if text.isdecimal() else 0
