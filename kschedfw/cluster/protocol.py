"""The interface of a cluster: reading and watching objects, binding pods, recording events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Protocol, TypeVar, runtime_checkable

from kschedfw.api.meta import Named
from kschedfw.api.pod import Pod, PodCondition
from kschedfw.api.records import frozen

T = TypeVar("T", bound=Named)


class EventType(StrEnum):
    """The kind of a watched object's change."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@frozen
class WatchEvent:
    """A change of an object.

    `object` is the state after the change; for DELETED the last state. `old` is the state before, for MODIFIED; else
    None.
    """

    type: EventType
    object: Named
    old: Named | None = None


Handler = Callable[[WatchEvent], None]


class Cluster(Protocol):
    """The place where objects live: the API server, or a stand-in for it.

    Objects are immutable: a change makes a new object. A `key` is `namespace/name`, or only the name for
    cluster-scoped kinds. All methods may be called from any thread.
    """

    def get(self, kind: type[T], key: str) -> T | None:
        """Return the object of that kind and key, or None."""
        ...

    def list(self, kind: type[T], namespace: str | None = None) -> Sequence[T]:
        """Return all objects of the kind (in the namespace, if given), always in the same order: oldest first."""
        ...

    def watch(self, handler: Handler) -> Callable[[], None]:
        """Call the handler for every existing object (as ADDED), then for every change.

        Return a function that ends it.

        No change is lost or delivered twice, and the changes of an object are delivered in order. The handler
        is never called by two threads at the same time.
        """
        ...

    def add(self, obj: T) -> T:
        """Create the object and return it as stored. Raises AlreadyExistsError."""
        ...

    def update(self, obj: T) -> T:
        """Replace the object and return it as stored.

        Raises NotFoundError, and ConflictError if the object carries a uid or a resource version that isn't the
        present one.
        """
        ...

    def bind(self, pod: Pod, node_name: str) -> None:
        """Assign the pod to the node, once and for all.

        One write, which nobody sees half done (kube-apiserver's subresource `binding`):

        * `spec.nodeName` becomes the node's name; it is only set where it was empty, in the same step as the test, so
          that of several schedulers one succeeds;
        * `status.nominatedNodeName` becomes empty, and the condition PodScheduled True;
        * the labels `topology.kubernetes.io/zone` and `region` are those of the node, where the cluster has the node
          and it has them (PodTopologyLabels); a node that the cluster doesn't have is no error;
        * the pod's uid stays, its resource version changes, and watches tell MODIFIED.

        The call may return before reads and watches show the binding, and before anything runs on the node.

        Raises NotFoundError if the pod is gone, and ConflictError if another pod has its name (the uid differs), or
        if the pod is bound to another node, gated or being deleted. For a pod that is bound to this node already, a
        cluster may raise ConflictError or do nothing: the latter if it can't tell a repeated request from an earlier
        binding. Any other error fails the attempt; the scheduler then looks the pod up, since it may be bound.
        """
        ...

    def delete(self, obj: Named) -> None:
        """Delete the object. Raises NotFoundError, and ConflictError if there is another object of that name."""
        ...

    def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> None:
        """Set a condition (in place of the one of its type) and the nominated node of a pod.

        None leaves each as it is; an empty `nominated_node_name` clears the nomination. Raises NotFoundError, and
        ConflictError if there is another pod of that name.
        """
        ...

    def record_event(
        self, regarding: Named, type: str, reason: str, message: str, related: Named | None = None
    ) -> None:
        """Record an event about the object for its user. `type` is Normal or Warning. Never raises.

        `related` is another object that the event is about: for a victim of preemption, the pod that preempted it.
        """
        ...


@runtime_checkable
class BindsTogether(Protocol):
    """A cluster that binds several pods with less effort than one by one."""

    def binding_together(self, pods: Sequence[Pod]) -> AbstractContextManager[object]:
        """Announce that this thread calls `bind` for each of these pods, with the node in its `node_name`, in a block.

        The first call may bind them all. The others then only return, or raise, what became of their pods.
        """
        ...


class FitCheck(Protocol):
    """A check whether a pod still fits a node of the truth. It is called with the truth's lock held."""

    def reserve(self, pod: Pod, node_name: str) -> str:
        """Count the pod on the node, and return an empty text; or return why it doesn't fit."""
        ...

    def release(self, pod: Pod, node_name: str) -> None:
        """Undo `reserve`, since the transaction was refused."""
        ...
