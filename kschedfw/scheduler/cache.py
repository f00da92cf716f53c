"""The scheduler's view of nodes and pods, which is the cluster's plus assumed pods (kube-scheduler `cacheImpl`)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from kschedfw.api.meta import ObjectMeta
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.records import define, frozen
from kschedfw.framework.clock import Clock
from kschedfw.framework.groups import GroupStates
from kschedfw.framework.metrics import CachedObject
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.scheduler.errors import CacheError, ConcurrentCycleError
from kschedfw.scheduler.node_tree import NodeTree
from kschedfw.scheduler.restore_points import RestorePoint, RestorePoints

_MOST_CYCLES = 1024
"""The number of kept starts of cycles. The starts of pods that fit nowhere are only dropped by this limit. It is more
than there are threads that could begin a cycle at the same time.
"""


@frozen
class CacheDump:
    """The contents of the cache at one moment."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    """Pods on a node are in the order of its NodeInfo."""
    assumed: frozenset[str]
    """The uids of assumed pods."""


@define
class _Seen:
    """The change counters up to which a snapshot has followed a cache. The snapshot keeps it."""

    cache: Cache
    generation: int = 0
    order_version: int = -1
    images_version: int = 0


class Cache:
    """Nodes and the pods on them. Thread-safe; later changes don't affect a snapshot.

    The states of a pod: assumed → (binding finished) → added, when the cluster confirms it → updated → removed. An
    assumed pod is forgotten if its binding fails, and expires if the cluster doesn't confirm it within
    `assumed_pod_ttl` seconds after its binding finished (never with 0, as in kube-scheduler). Pods whose node isn't
    known are kept until it is added; pods of a removed node stay until they are removed themselves.
    """

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        assumed_pod_ttl: float = 0.0,
        groups: GroupStates | None = None,
        largest_sum: bool = False,
    ) -> None:
        """`groups` is kept up to date with the pods that are assumed or bound.

        With `largest_sum` pods that are resized take what they do since v1.37 (see `pod_requests`).
        """
        if assumed_pod_ttl and clock is None:
            raise CacheError("assumed_pod_ttl needs a clock")
        self._clock = clock
        self._ttl = assumed_pod_ttl
        self._groups = groups
        self._largest_sum = largest_sum
        self._lock = threading.RLock()
        self._pods: dict[str, PodInfo] = {}
        self._assumed: dict[str, float | None] = {}
        """The time at which each assumed pod expires, by uid; None if it doesn't."""
        self._infos: dict[str, NodeInfo] = {}
        """The NodeInfos by node name, the most recently changed last, so that a snapshot finds changes at the end."""
        self._homeless: dict[str, NodeInfo] = {}
        """NodeInfos with pods whose node isn't in the cache, by node name. The node in them is of no account."""
        self._tree = NodeTree()
        self._order_version = 0
        self._images_version = 0
        self._assumptions = 0
        """The number of pods that have been assumed so far."""
        self._cycles: dict[str, int] = {}
        """By the uid of the pod, the number of assumptions when its latest cycle began."""
        self._points = RestorePoints()

    # Nodes

    def add_node(self, node: Node) -> None:
        """Add the node, with the pods on it that were added before it. An existing node is updated."""
        self.update_node(node)

    def update_node(self, node: Node) -> None:
        """Set the node's new state. A missing node is added, since the event of its addition may be lost."""
        with self._lock:
            known = self._infos.get(node.name)
            if self._points.are_open:
                self._keep(node.name, moves=self._tree.would_move(node))
            self._images_version += node.status.images != (known.node.status.images if known else ())
            # The NodeInfo is kept even if the node went and comes again: it has the pods in kube-scheduler's
            # order.
            info = known or self._homeless.pop(node.name, None)
            if info is None:
                info = NodeInfo.of(node)
            else:
                info.set_node(node)
            self._infos[node.name] = info
            self._order_version += self._tree.add(node)
            self._touch(info)

    def remove_node(self, node: Node) -> None:
        """Remove the node; its pods are kept until they are removed, or the node is added again.

        Raises:
            CacheError: the cache doesn't have it.
        """
        with self._lock:
            if node.name not in self._infos:
                raise CacheError(f"node {node.name!r} is not in the cache")
            self._keep(node.name, moves=True)
            info = self._infos.pop(node.name)
            self._images_version += bool(info.node.status.images)
            self._order_version += 1
            self._tree.remove(node.name)
            # Pods' events come from another watch, so their deletions may arrive later than the node's.
            if info.pods:
                self._homeless[node.name] = info

    # Pods

    def assume_pod(self, pod: Pod) -> None:
        """Count a pod on the node it is about to be bound to.

        Raises:
            CacheError: the pod is in the cache already.
            ConcurrentCycleError: another pod was assumed since this one's cycle began (`update_snapshot`), which
                therefore didn't see it; the pod has to be scheduled again.
        """
        uid = pod.metadata.uid
        with self._lock:
            if uid in self._pods:
                raise CacheError(f"pod {pod.key} ({uid}) is in the cache, so can't be assumed")
            # A pod whose cycle wasn't announced to `update_snapshot` isn't checked. Only assumptions count:
            # what the cluster reports while a cycle runs, that cycle doesn't see in kube-scheduler, either.
            begun = self._cycles.get(uid, self._assumptions)
            if begun != self._assumptions:
                raise ConcurrentCycleError(
                    f"pod {pod.key} was given node {pod.node_name} before another pod was assumed, and so without "
                    "regard to it: cycles are one after another, schedule and then assume_pod"
                )
            # Not before: a second attempt without a new cycle is refused, too.
            self._cycles.pop(uid, None)
            self._put(pod)
            self._assumed[uid] = None
            self._assumptions += 1
            if self._groups is not None:
                self._groups.assume(pod)

    def finish_binding(self, pod: Pod) -> None:
        """Start the time to live of an assumed pod, if there is one; do nothing if the pod isn't assumed any more."""
        if not self._ttl or self._clock is None:
            return
        with self._lock:
            # The cluster may have confirmed or removed the pod before the binding's own answer arrived.
            if pod.uid in self._assumed:
                self._assumed[pod.uid] = self._clock.now() + self._ttl

    def forget_pod(self, pod: Pod) -> None:
        """Undo assume_pod.

        Raises:
            CacheError: the pod isn't assumed, or on another node.
        """
        with self._lock:
            if pod.uid not in self._assumed:
                raise CacheError(f"pod {pod.key} ({pod.uid}) wasn't assumed so cannot be forgotten")
            assumed = self._pods[pod.uid].pod
            if assumed.node_name != pod.node_name:
                raise CacheError(
                    f"pod {pod.key} ({pod.uid}) was assumed on {pod.node_name} but assigned to {assumed.node_name}"
                )
            self._take(pod.uid)
            if self._groups is not None:
                self._groups.forget(pod)

    def add_pod(self, pod: Pod) -> None:
        """Add a pod that the cluster has on a node; confirm an assumed pod, even if it was assumed on another node.

        Raises:
            CacheError: the pod was added already.
        """
        with self._lock:
            known = self._pods.get(pod.uid)
            if known is not None and pod.uid not in self._assumed:
                raise CacheError(f"pod {pod.key} ({pod.uid}) was already in added state")
            if self._groups is not None:
                self._groups.put(pod)
            if known is None:
                self._put(pod)
            elif known.pod.node_name == pod.node_name:
                del self._assumed[pod.uid]
                self._replace(known, pod)
            else:
                self._take(pod.uid)
                self._put(pod)

    def update_pod(self, pod: Pod) -> None:
        """Set a bound pod's new state.

        Raises:
            CacheError: the pod was never added, or has moved to another node, which pods don't do.
        """
        with self._lock:
            known = self._pods.get(pod.uid)
            if known is None or pod.uid in self._assumed:
                raise CacheError(f"pod {pod.key} ({pod.uid}) is not added to the cache, so cannot be updated")
            # kube-scheduler ends its process here, since its cache is corrupted. A library leaves that to its
            # caller.
            if known.pod.node_name != pod.node_name:
                raise CacheError(
                    f"pod {pod.key} ({pod.uid}) updated on a different node than previously added to: "
                    f"{pod.node_name}, was {known.pod.node_name}"
                )
            self._replace(known, pod)
            if self._groups is not None:
                self._groups.put(pod)

    def remove_pod(self, pod: Pod) -> None:
        """Remove the pod from its node, even if it is only assumed there.

        Raises:
            CacheError: the pod isn't in the cache.
        """
        with self._lock:
            # By uid alone: of a pod whose deletion was missed the caller may have an old state, without its
            # node.
            if pod.uid not in self._pods:
                raise CacheError(f"pod {pod.key} ({pod.uid}) is not found in the cache, so cannot be removed")
            self._take(pod.uid)

    def get_pod(self, pod: Pod) -> Pod | None:
        """Return the cache's state of the pod; None if the pod is unknown."""
        with self._lock:
            info = self._pods.get(pod.uid)
            return None if info is None else info.pod

    def is_assumed(self, pod: Pod) -> bool:
        with self._lock:
            return pod.uid in self._assumed

    def expire_assumed_pods(self) -> list[Pod]:
        """Remove the assumed pods that have expired. Return them."""
        if not self._ttl or self._clock is None:
            return []
        now = self._clock.now()
        with self._lock:
            overdue = [
                uid for uid, deadline in self._assumed.items() if deadline is not None and deadline <= now
            ]
            expired = [self._take(uid) for uid in overdue]
            if self._groups is not None:
                for pod in expired:
                    self._groups.forget(pod)
            return expired

    def next_expiry(self) -> float | None:
        """Return the time at which the first assumed pod expires, in the clock's seconds; None if none will."""
        if not self._ttl:
            return None
        with self._lock:
            return min(
                (deadline for deadline in self._assumed.values() if deadline is not None), default=None
            )

    # Going back

    def restore_point(self) -> RestorePoint:
        """Begin to keep each node's state before its first change. Restore points are nested."""
        with self._lock:
            return self._points.begin()

    def drop(self, point: RestorePoint) -> None:
        """End the innermost restore point. The enclosing one takes over the kept states."""
        with self._lock:
            self._points.drop(point)

    def restore(self, point: RestorePoint) -> None:
        """Restore the orders of nodes and pods as at the innermost point, and end it.

        All later changes must be undone already.

        Raises:
            CacheError: a node isn't there again, or has other pods than before.
        """
        with self._lock:
            for info, before in self._points.end(point, self._infos):
                self._pods.update((each.pod.uid, each) for each in before.pods)
                info.take_over(before)
                self._touch(info)
            if point.tree is not None:
                self._tree = point.tree
                self._order_version += 1

    def _keep(self, node_name: str, *, moves: bool = False) -> None:
        """Keep a node's state before a change, for the innermost restore point."""
        if self._points.are_open:
            self._points.keep(node_name, self._infos.get(node_name), self._tree if moves else None)

    # Reading

    def update_snapshot(
        self, snapshot: Snapshot, pod: Pod | None = None, members: Iterable[Pod] = ()
    ) -> None:
        """Bring the snapshot up to date; the cost is that of what has changed since its last update.

        `pod` is the pod whose cycle begins; no other pod may be assumed before it. `members` begin a cycle of their
        group: each was tried with those before it, so they are assumed one after another.
        """
        with self._lock:
            if pod is not None:
                uid, cycles = pod.metadata.uid, self._cycles
                # Removed first: the oldest key is dropped, and an overwritten key keeps its age.
                cycles.pop(uid, None)
                cycles[uid] = self._assumptions
                if len(cycles) > _MOST_CYCLES:
                    del cycles[next(iter(cycles))]
            for member in members:
                self._cycles.pop(member.uid, None)
            seen = snapshot.followed
            if not (isinstance(seen, _Seen) and seen.cache is self):
                seen = _Seen(self)
            # Until all is written: an update that raises half-way has the next one look at every node.
            snapshot.followed = None
            changed: dict[str, NodeInfo] = {}
            # The last changed node is at the end, so the first unchanged one ends the search.
            followed = seen.generation
            for name, info in reversed(self._infos.items()):
                if info.generation <= followed:
                    break
                copy = changed[name] = info.clone()
                # The first one has the highest generation of all: `_touch` follows every change, so the
                # dictionary is in the order of generations.
                if len(changed) == 1:
                    seen.generation = info.generation
                # The cache doesn't keep image states: they depend on all nodes, and only snapshots need them.
                if (known := snapshot.find(name)) is not None:
                    copy.image_states = known.image_states
            if seen.order_version != self._order_version:
                seen.order_version = self._order_version
                snapshot.rearrange(self._tree.names(), changed)
            elif changed:
                snapshot.update(changed.values())
            if seen.images_version != self._images_version:
                # the state of an image has the number of nodes with it, so it changes on all of them
                seen.images_version = self._images_version
                snapshot.update_image_states()
            snapshot.followed = seen

    def sizes(self) -> Mapping[CachedObject, int]:
        """Return the number of objects of each kind in the cache; assumed pods also count as pods."""
        with self._lock:
            return {
                CachedObject.NODES: len(self._infos),
                CachedObject.PODS: len(self._pods),
                CachedObject.ASSUMED_PODS: len(self._assumed),
            }

    def dump(self) -> CacheDump:
        with self._lock:
            infos = (*self._infos.values(), *self._homeless.values())
            return CacheDump(
                nodes=tuple(self._infos[name].node for name in self._tree.names()),
                pods=tuple(each.pod for info in infos for each in info.pods),
                assumed=frozenset(self._assumed),
            )

    def _put(self, pod: Pod) -> None:
        uid, node_name = pod.metadata.uid, pod.spec.node_name
        if self._points.are_open:
            self._keep(node_name)
        new = self._pods[uid] = PodInfo.of(pod, largest_sum=self._largest_sum)
        info = self._infos.get(node_name) or self._homeless_on(node_name)
        info.add_pod(new)
        self._touch(info)

    def _replace(self, old: PodInfo, pod: Pod) -> None:
        """Replace the state of a pod that stays on its node."""
        self._keep(pod.node_name)
        new = self._pods[pod.uid] = PodInfo.of(pod, largest_sum=self._largest_sum)
        info = self._infos.get(pod.node_name) or self._homeless_on(pod.node_name)
        info.replace_pod(old, new)
        self._touch(info)

    def _take(self, uid: str) -> Pod:
        pod = self._pods.pop(uid).pod
        self._keep(pod.node_name)
        self._assumed.pop(uid, None)
        info = self._infos.get(pod.node_name) or self._homeless_on(pod.node_name)
        info.remove_pod(pod)
        self._touch(info)
        return pod

    def _homeless_on(self, node_name: str) -> NodeInfo:
        """Return what there is of a node that isn't in the cache: its pods, or nothing yet."""
        if node_name not in self._homeless:
            self._homeless[node_name] = NodeInfo.of(Node(ObjectMeta(node_name)))
        return self._homeless[node_name]

    def _touch(self, info: NodeInfo) -> None:
        """Move a changed node to the end, where `update_snapshot` looks for it. Drop an unknown one without pods."""
        name = info.node.metadata.name
        # A key that is set again keeps its place in a dictionary; one that was removed first goes to the end.
        if self._infos.pop(name, None) is not None:
            self._infos[name] = info
        elif not info.pods:
            del self._homeless[name]
