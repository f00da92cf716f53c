"""The handlers of a cluster's events, which update cache and queue (kube-scheduler `eventhandlers.go`)."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress

from kschedfw.api import (
    CustomObject,
    CustomResource,
    DeviceTaintRule,
    Named,
    Node,
    Pod,
    PodCondition,
    ResourceSlice,
    with_taint_rules,
)
from kschedfw.cluster import Cluster, EventType, WatchEvent
from kschedfw.cluster.protocol import Handler
from kschedfw.framework.clock import Clock
from kschedfw.framework.errors import IncompleteClusterError
from kschedfw.framework.events import EVENT_RESOURCES, ActionType, ClusterEvent, EventResource
from kschedfw.framework.gate_table import DEVICE_TAINT_RULES, GENERIC_WORKLOAD
from kschedfw.framework.metrics import MetricsRecorder, listens
from kschedfw.framework.parts import Parts
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.versions.v1_37 import EVENT_NAMES
from kschedfw.scheduler.cache import Cache
from kschedfw.scheduler.errors import CacheError
from kschedfw.scheduler.failure import REASON_SCHEDULING_GATED, patch_condition
from kschedfw.scheduler.queue import SchedulingQueue
from kschedfw.scheduler.queue.cluster_events import (
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_DELETE,
    UNSCHEDULED_POD_ADD,
    EventName,
    label_of,
    name_since_v1_37,
    node_change_events,
    pod_change_events,
)

_GATED = PodCondition(
    "PodScheduled",
    "False",
    REASON_SCHEDULING_GATED,
    "Scheduling is blocked due to non-empty scheduling gates",
)

_SLICE_UPDATE = ClusterEvent(EventResource.RESOURCE_SLICE, ActionType.UPDATE_OTHER)


class EventHandlers:
    """The handlers of a cluster's events, which update cache and queue until `close`.

    Events may come late, twice, in the wrong order, or not at all. So a change is computed from the last state
    that was seen here, not from the old object in the event; older states are ignored, unless the event says
    that it follows the last state (a cluster that went back); and `resync` makes up for missed events.
    """

    def __init__(
        self,
        cluster: Cluster,
        parts: Parts,
        cache: Cache,
        queue: SchedulingQueue,
        frameworks: Mapping[str, Framework],
    ) -> None:
        """Start handling events. With groups, each pending pod is announced to the others of its group."""
        self._cluster, self._parts = cluster, parts
        self._cache = cache
        self._queue = queue
        self._frameworks = frameworks
        self._has_groups = parts.feature_gates.enabled(GENERIC_WORKLOAD)
        self._nodes: dict[str, Node] = {}
        self._pods: dict[str, Pod] = {}
        self._others: dict[type[Named], dict[str, Named]] = {
            cls: {} for cls in (*EVENT_RESOURCES, CustomObject) if cls not in (Pod, Node)
        }
        if parts.feature_gates.enabled(DEVICE_TAINT_RULES):
            self._others[DeviceTaintRule] = {}
        # Reentrant: `resync` writes to the cluster, and one in memory delivers the event of that at once, on
        # this thread.
        self._lock = threading.RLock()
        self.close: Callable[[], None] = cluster.watch(
            measured(
                self.handle,
                parts.metrics,
                parts.clock,
                frameworks,
                name_since_v1_37 if parts.feature_gates.follows(EVENT_NAMES) else label_of,
            )
        )
        if not callable(self.close):
            raise IncompleteClusterError(
                f"{type(cluster).__name__}.watch must return a function that ends it, not {self.close!r}"
            )

    def handle(self, event: WatchEvent) -> None:
        """Handle one event."""
        obj, deleted = event.object, event.type is EventType.DELETED
        with self._lock:
            if isinstance(obj, Node):
                self._node_event(obj, event.old, deleted=deleted)
            elif isinstance(obj, Pod):
                self._pod_event(obj, event.old, deleted=deleted or obj.is_terminal)
            elif type(obj) in self._others:
                self._other_event(obj, event.old, deleted=deleted)

    def resync(self) -> None:
        """Compare with the whole cluster, and handle the differences as missed events."""
        with self._lock:
            nodes = {node.name: node for node in self._cluster.list(Node)}
            pods = {pod.key: pod for pod in self._cluster.list(Pod)}
            for name in self._nodes.keys() - nodes.keys():
                self._node_event(self._nodes[name], deleted=True)
            for key in self._pods.keys() - pods.keys():
                self._pod_event(self._pods[key], deleted=True)
            for node in nodes.values():
                if self._nodes.get(node.name) != node:
                    self._node_event(node, deleted=False)
            for pod in pods.values():
                if self._pods.get(pod.key) != pod:
                    self._pod_event(pod, deleted=pod.is_terminal)
                elif self._is_ours(pod):
                    # It may be missing in the queue: an assumed pod that expired without being bound.
                    self._queue.add_if_not_present(pod)
            for kind, known in self._others.items():
                present = {obj.key: obj for obj in self._cluster.list(kind)}
                for key in known.keys() - present.keys():
                    self._other_event(known[key], deleted=True)
                for obj in present.values():
                    if known.get(obj.key) != obj:
                        self._other_event(obj, deleted=False)

    def _node_event(self, node: Node, before: Named | None = None, *, deleted: bool) -> None:
        last = self._nodes.get(node.name)
        if deleted:
            # A late event may be about an earlier node of that name.
            if last is not None and last.uid == node.uid:
                del self._nodes[node.name]
                # The cache first, here and below: a pod that the queue wakes may be popped at once, on
                # another thread.
                self._cache.remove_node(last)
                self._queue.move_all_to_active_or_backoff(NODE_DELETE, last, None)
            return
        if last is not None and before is not last and _is_older(node, last):
            return
        self._nodes[node.name] = node
        self._cache.add_node(node)
        for change in (NODE_ADD,) if last is None else node_change_events(last, node):
            self._queue.move_all_to_active_or_backoff(change, last, node)

    def _other_event(self, obj: Named, before: Named | None = None, *, deleted: bool) -> None:
        """Handle an event of an object that only plugins read: it may make rejected pods schedulable."""
        known = self._others[type(obj)]
        last, rules = known.get(obj.key), self._taint_rules()
        if deleted:
            if last is None or last.uid != obj.uid:
                return
            del known[obj.key]
            action, new = ActionType.DELETE, None
        else:
            if last is not None and before is not last and _is_older(obj, last):
                return
            if last is not None and last.uid != obj.uid:
                # The known object was an earlier one of this name.
                last = None
            known[obj.key] = new = obj
            action = ActionType.ADD if last is None else ActionType.UPDATE_OTHER
        if isinstance(obj, DeviceTaintRule):
            self._taint_rules_changed(rules)
            return
        resource = obj.kind if isinstance(obj, CustomObject) else EVENT_RESOURCES[type(obj)]
        self._queue.move_all_to_active_or_backoff(
            ClusterEvent(resource, action), _tainted(last, rules), _tainted(new, rules)
        )

    def _taint_rules(self) -> Sequence[DeviceTaintRule]:
        rules = self._others.get(DeviceTaintRule, {}).values()
        return [each for each in rules if isinstance(each, DeviceTaintRule)]

    def _taint_rules_changed(self, before: Sequence[DeviceTaintRule]) -> None:
        """Announce each slice whose devices got or lost taints as updated, as kube-scheduler's tracker does."""
        rules = self._taint_rules()
        for each in self._others[ResourceSlice].values():
            old, new = _tainted(each, before), _tainted(each, rules)
            if old != new:
                self._queue.move_all_to_active_or_backoff(_SLICE_UPDATE, old, new)

    def _pod_event(self, pod: Pod, before: Named | None = None, *, deleted: bool) -> None:
        key, uid = pod.key, pod.uid
        last = self._pods.get(key)
        if last is not None and last.uid != uid:
            if deleted or _is_older(pod, last):
                # The event is about an earlier pod of that name.
                return
            self._forget(last)
            last = None
        if deleted:
            self._forget(pod)
        elif last is None or before is last or not _is_older(pod, last):
            self._pods[key] = pod
            # An assumed pod keeps others out by its requests, wherever it is nominated.
            was_assumed = self._cache.is_assumed(pod)
            self._present(pod, last)
            # As in kube-scheduler (`hasNominatedNodeNameChanged`), a binding doesn't end a nomination, even one to
            # another node: pods that were kept out of the nominated node wait for another event
            # (kubernetes/kubernetes#134859).
            if (
                last is not None
                and not (was_assumed or pod.node_name)
                and _nominated(last) != _nominated(pod)
            ):
                self._nomination_ended(last)

    def _present(self, pod: Pod, last: Pod | None) -> None:
        known = self._cache.get_pod(pod)
        if not pod.node_name:
            if self._is_ours(pod):
                if self._has_groups:
                    # Before the queue asks pre_enqueue: GangScheduling counts the members that are known.
                    self._parts.groups.put(pod)
                self._queue.update(last, pod)
                if self._has_groups and last is None:
                    self._queue.move_all_to_active_or_backoff(UNSCHEDULED_POD_ADD, None, pod)
                if pod.spec.scheduling_gates:
                    patch_condition(self._cluster, pod, _GATED)
            elif pod.is_terminating and not (last is not None and last.is_terminating):
                self._release_assumed(pod)
        elif known is None or self._cache.is_assumed(pod):
            # Out of the queue first, whoever has bound it: it must not be popped once it is on a node.
            self._queue.delete(pod)
            self._cache.add_pod(pod)
            self._queue.assigned_pod_added(pod)
        elif known != pod:
            self._cache.update_pod(pod)
            for change in pod_change_events(known, pod):
                self._queue.assigned_pod_updated(known, pod, change)

    def _is_ours(self, pod: Pod) -> bool:
        """Tell whether the pod belongs in the queue: pending, of one of our profiles, and not in its binding cycle."""
        if pod.node_name or pod.spec.scheduler_name not in self._frameworks:
            return False
        return self._cache.get_pod(pod) is None and self._parts.pods_in_pre_bind.get(pod.uid) is None

    def _release_assumed(self, pod: Pod) -> None:
        """Release an assumed pod that is being deleted: it won't be bound any more.

        A pod that waits for permission is rejected, and its attempt fails as usual. One in pre_bind or bind can't be
        stopped; it is forgotten, and its binding will fail.
        """
        known = self._cache.get_pod(pod)
        if known is None or not self._cache.is_assumed(pod):
            return
        if not self._parts.waiting_pods.reject(pod.uid):
            # The binding may have just failed, which forgets the pod.
            with suppress(CacheError):
                self._cache.forget_pod(known)
        self._queue.move_all_to_active_or_backoff(ASSIGNED_POD_DELETE, known, None)

    def _forget(self, pod: Pod) -> None:
        """Remove a pod that is gone or has ended; its resources are free at once, even if it was only assumed."""
        self._pods.pop(pod.key, None)
        if self._has_groups:
            self._parts.groups.remove(pod)
        self._queue.delete(pod)
        self._parts.waiting_pods.reject(pod.uid)
        known = self._cache.get_pod(pod)
        if known is not None:
            self._cache.remove_pod(pod)
            self._queue.move_all_to_active_or_backoff(ASSIGNED_POD_DELETE, known, None)
        else:
            self._nomination_ended(pod)

    def _nomination_ended(self, last: Pod) -> None:
        """Announce to the queue that a pod's nomination no longer keeps other pods out."""
        # Pods of other schedulers keep nobody out. Ours keep pods of lower or equal priority out, and no others
        # (kube-scheduler `getLEPriorityPreCheck`).
        if _nominated(last) and last.spec.scheduler_name in self._frameworks:
            self._queue.move_all_to_active_or_backoff(
                ASSIGNED_POD_DELETE, last, None, lambda pod: pod.priority <= last.priority
            )


def _tainted(obj: Named | None, rules: Sequence[DeviceTaintRule]) -> Named | None:
    """Return a slice with the taints of the rules, and any other object as it is."""
    return with_taint_rules(obj, rules) if rules and isinstance(obj, ResourceSlice) else obj


def _nominated(pod: Pod) -> str:
    """Return the node that a pending pod is nominated to; empty for other pods."""
    return "" if pod.node_name else pod.status.nominated_node_name


def _is_older(state: Named, last: Named) -> bool:
    """Return whether the state is older than the last one; False if the resource versions aren't numbers."""
    old, new = last.metadata.resource_version, state.metadata.resource_version
    return old.isdecimal() and new.isdecimal() and int(new) < int(old)


def events_between(old: Named | None, new: Named | None) -> Sequence[ClusterEvent]:
    """Return the cluster events of an object that was added (no `old`), changed, or deleted (no `new`).

    Raises:
        ValueError: both are None, or plugins can't subscribe to changes of the kind.
    """
    present = new if new is not None else old
    action = ActionType.ADD if old is None else ActionType.DELETE if new is None else ActionType.UPDATE_OTHER
    match present:
        case Pod():
            if isinstance(old, Pod) and isinstance(new, Pod):
                return pod_change_events(old, new)
            bound = EventResource.ASSIGNED_POD if present.node_name else EventResource.UNSCHEDULED_POD
            return [_known_event(bound, action)]
        case Node():
            if isinstance(old, Node) and isinstance(new, Node):
                return node_change_events(old, new)
            return [ClusterEvent(EventResource.NODE, action)]
        case CustomObject() | CustomResource():
            return [ClusterEvent(present.kind, action)]
    if present is None or type(present) not in EVENT_RESOURCES:
        raise ValueError(f"nobody can subscribe to changes of {type(present).__name__}")
    return [ClusterEvent(EVENT_RESOURCES[type(present)], action)]


# Events of pods are told to metrics by their labels, which are computed once for an event.
_known_event = functools.cache(ClusterEvent)


def measured(
    handler: Handler,
    metrics: MetricsRecorder,
    clock: Clock,
    scheduler_names: Container[str],
    name_of: EventName,
) -> Handler:
    """Return a handler that also records its duration; the handler itself if metrics are disabled."""
    if not listens(metrics):
        return handler

    def handle(event: WatchEvent) -> None:
        began = clock.monotonic()
        handler(event)
        seconds = clock.monotonic() - began
        for each in happened(event, scheduler_names):
            metrics.event_handled(name_of(each), seconds)

    return handle


def happened(event: WatchEvent, scheduler_names: Container[str]) -> Sequence[ClusterEvent]:
    """Return the cluster events for a change of an object; none if neither queue nor cache use it."""
    obj, old, gone = event.object, event.old, event.type is EventType.DELETED
    if isinstance(obj, Pod):
        if not obj.node_name and obj.spec.scheduler_name not in scheduler_names:
            return ()
        gone = gone or obj.is_terminal
        if isinstance(old, Pod) and (old.uid != obj.uid or bool(old.node_name) is not bool(obj.node_name)):
            old = None
    elif not (isinstance(obj, Node | CustomObject) or type(obj) in EVENT_RESOURCES):
        return ()
    return events_between(obj, None) if gone else events_between(old, obj)
