"""The plugins' access to the objects of a cluster, and what helps with writing them."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar

from kschedfw.api import Named, Pod, PodCondition
from kschedfw.framework.errors import ConflictError, IncompleteClusterError

_log = logging.getLogger(__name__)

_ATTEMPTS: Final = 5
"""The most attempts of an update that conflicts (client-go `retry.DefaultRetry`)."""

ObjectT = TypeVar("ObjectT", bound=Named)


class ClusterClient(Protocol):
    """The part of a cluster that plugins may read and write; `kschedfw.cluster.Cluster` is one."""

    def get(self, kind: type[ObjectT], key: str) -> ObjectT | None:
        """Return the object by `namespace/name` (or `name` where cluster-scoped), or None."""
        ...

    def list(self, kind: type[ObjectT], namespace: str | None = None) -> Sequence[ObjectT]:
        """Return all objects of a kind, of one namespace or of all."""
        ...

    def add(self, obj: ObjectT) -> ObjectT:
        """Create the object and return it as stored; refused if the name is taken."""
        ...

    def update(self, obj: ObjectT) -> ObjectT:
        """Replace the object and return it as stored.

        Raises ConflictError if the stored object has changed since `obj` was read; see `retry_on_conflict`.
        """
        ...

    def bind(self, pod: Pod, node_name: str) -> None: ...

    def delete(self, obj: Named) -> None: ...

    def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> None: ...

    def record_event(
        self, regarding: Named, type: str, reason: str, message: str, related: Named | None = None
    ) -> None: ...


def retry_on_conflict(cluster: ClusterClient, obj: ObjectT, change: Callable[[ObjectT], ObjectT]) -> ObjectT:
    """Write `change(obj)`, and return it as stored; nothing is written where `change` returns what it got.

    If others have changed the object since `obj` was read, `change` is applied to what they have made of it: as
    client-go's RetryOnConflict, five times in all.

    Raises:
        ConflictError: others were faster each time, or another object has the name by now.
        Exception: whatever `change` and the cluster raise.
    """
    for _ in range(_ATTEMPTS - 1):
        changed = change(obj)
        if changed is obj:
            return obj
        try:
            return cluster.update(changed)
        except ConflictError as conflict:
            obj = _present(cluster, obj, conflict)
    changed = change(obj)
    return obj if changed is obj else cluster.update(changed)


def _present(cluster: ClusterClient, obj: ObjectT, conflict: ConflictError) -> ObjectT:
    """Return the state that an update of this one has met. Raises the conflict if it can't be known."""
    if isinstance(told := conflict.present, type(obj)):
        return told
    present = cluster.get(type(obj), obj.key)
    if present is None or present.uid != obj.uid:
        raise conflict
    # A cluster that reads from a copy may not have the other's change yet: a repeated update would fail again.
    if present.metadata.resource_version == obj.metadata.resource_version:
        raise conflict
    return present


def record_event(
    cluster: ClusterClient,
    regarding: Named,
    type: str,
    reason: str,
    message: str,
    related: Named | None = None,
) -> None:
    """Record an event by `cluster.record_event`. Log failures and never raise: no attempt should fail for an event."""
    try:
        # Clusters whose `record_event` was written before there was `related` miss only the events of preemption.
        others = () if related is None else (related,)
        cluster.record_event(regarding, type, reason, message, *others)
    # A cluster may raise anything, and no attempt should fail for an event.
    except Exception as error:
        _log.warning("can't record event %s of %s: %s", reason, regarding.key, error)


def check_cluster(cluster: object, protocol: type, who: str) -> None:
    """Check that an object has the methods of `ClusterClient`, or of another protocol for clusters.

    Raises:
        IncompleteClusterError: it is a class, or lacks methods.
    """
    where = f"{protocol.__module__}.{protocol.__qualname__}"
    if isinstance(cluster, type):
        raise IncompleteClusterError(
            f"{who} needs a cluster, not the class {cluster.__name__}: make an instance of it"
        )
    methods = [
        name
        for base in reversed(protocol.__mro__)
        for name, member in vars(base).items()
        if callable(member) and not name.startswith("_")
    ]
    if coroutines := [name for name in methods if inspect.iscoroutinefunction(getattr(cluster, name, None))]:
        raise IncompleteClusterError(
            f"{who} needs a cluster whose methods are plain functions; of {type(cluster).__name__}, "
            f"{', '.join(coroutines)} {'is' if len(coroutines) == 1 else 'are'} async, and nobody would await that"
        )
    missing = [name for name in methods if not callable(getattr(cluster, name, None))]
    if missing:
        lacking = f"{', '.join(missing)} ({len(missing)} of {len(methods)} methods)"
        raise IncompleteClusterError(
            f"{who} needs a cluster; {type(cluster).__name__} lacks {lacking}. What they do: {where}"
        )
