"""The sub-queues (active, backoff, unschedulable) and the moves of pods between them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

import attrs

from kschedfw.api.pod import Pod
from kschedfw.api.records import define
from kschedfw.framework.clock import Clock
from kschedfw.framework.metrics import EntityKind, MetricsRecorder, listens
from kschedfw.framework.nodes.pod_info import QueuedPodInfo
from kschedfw.scheduler.queue.backoff import WINDOW, BackoffPolicy, BackoffQueue
from kschedfw.scheduler.queue.cluster_events import POP_FROM_BACKOFF
from kschedfw.scheduler.queue.heap import KeyedLine
from kschedfw.scheduler.queue.hints import Requeue
from kschedfw.scheduler.queue.protocol import Place, QueueProfile
from kschedfw.scheduler.queue.unschedulable import UnschedulablePool

_log = logging.getLogger(__name__)


@define(eq=False)
class SubQueues:
    """The active pods, those that back off, and those that are unschedulable or gated. Not thread-safe.

    A pod becomes active only after its pre_enqueue plugins let it pass. Where pods are popped from backoff (the
    policy's `windows`), they run when the pod begins to back off; otherwise when its backoff is over.

    `profiles`, at least one, have the same order.
    """

    _profiles: Mapping[str, QueueProfile]
    _policy: BackoffPolicy
    _clock: Clock
    _metrics: MetricsRecorder
    unschedulable: UnschedulablePool
    before: Callable[[QueuedPodInfo, QueuedPodInfo], bool] = attrs.field(init=False)
    active: KeyedLine[QueuedPodInfo] = attrs.field(init=False)
    backoff: BackoffQueue = attrs.field(init=False)
    _rejections: Rejections = attrs.field(init=False)
    wakes: int = attrs.field(default=0, init=False)
    """The number of events and calls that made pods active; see `QueuedPodInfo.initial_attempt_sequence`."""

    def __attrs_post_init__(self) -> None:
        self.before = _order(next(iter(self._profiles.values())))
        self.active = KeyedLine(self.before)
        self.backoff = BackoffQueue(self._policy, self.before)
        self._rejections = Rejections(self._metrics)

    def find(self, uid: str) -> QueuedPodInfo | None:
        return self.active.get(uid) or self.backoff.get(uid) or self.unschedulable.get(uid)

    def place(self, uid: str) -> Place | None:
        if uid in self.active:
            return Place.ACTIVE
        if uid in self.backoff:
            return Place.BACKOFF
        info = self.unschedulable.get(uid)
        if info is None:
            return None
        return Place.GATED if info.gated else Place.UNSCHEDULABLE

    def pods_in(self, place: Place) -> Sequence[Pod]:
        """Return the pods in a place: active ones in the order of popping, others in the order of arrival."""
        match place:
            case Place.ACTIVE:
                infos: Sequence[QueuedPodInfo] = self.active.ordered()
            case Place.BACKOFF:
                infos = self.backoff.ordered()
            case _:
                waiting = self.unschedulable.ordered()
                infos = [info for info in waiting if info.gated is (place is Place.GATED)]
        return [info.pod for info in infos]

    def counts(self) -> dict[Place, int]:
        gated = self.unschedulable.gated_count
        return {
            Place.ACTIVE: len(self.active),
            Place.BACKOFF: len(self.backoff),
            Place.UNSCHEDULABLE: len(self.unschedulable) - gated,
            Place.GATED: gated,
        }

    def told_counts(self) -> Mapping[str, int]:
        """Return the number of pods by the names of places in metrics."""
        return {str(place): count for place, count in self.counts().items()}

    def entity_counts(self) -> Mapping[tuple[Place, EntityKind], int]:
        """Return the number of entities by place and kind; empty up to v1.36, where nobody counts them."""
        return {}

    def entity_of(self, info: QueuedPodInfo) -> str:
        """Return the name of what is moved when this pod is: its own uid, or its group's key."""
        return info.pod.uid

    # Cycles of groups: only since v1.37 members wait for their end

    def begin_group(self, info: QueuedPodInfo) -> None:
        """Note that the group of this pod, which was popped, is being scheduled."""

    def waits_for_cycle(self, info: QueuedPodInfo, *, keeps_turn: bool) -> bool:  # noqa: ARG002  # see above
        """Keep a member that comes back during its group's cycle until `end_group`. Return whether it is one."""
        return False

    def waiting_members(self, key: str) -> Sequence[QueuedPodInfo]:  # noqa: ARG002  # see above
        """Return the members that wait for the end of their group's cycle."""
        return ()

    def end_group(self, key: str, *, keeps_turn: bool, is_refused: bool) -> None:
        """Put the members that have waited back into the queue; see `SchedulingQueue.end_group`."""

    def peek(self) -> QueuedPodInfo | None:
        """Return the pod that `pop` would remove, without removing it."""
        info = self.active.peek()
        return self.backoff.peek_early() if info is None and self._policy.windows else info

    def pop(self) -> QueuedPodInfo | None:
        """Remove the first active pod, or if there is none, the first one that may be popped from backoff."""
        info = self.active.pop()
        if info is None and self._policy.windows:
            info = self.backoff.pop_early()
            if info is not None:
                self._arrived(info, Place.ACTIVE, POP_FROM_BACKOFF)
        if info is not None:
            self._rejections.forget(info.pod.uid)
        return info

    def discard(self, uid: str) -> None:
        self.active.remove(uid)
        self.backoff.remove(uid)
        self.unschedulable.remove(uid)
        self._rejections.forget(uid)

    def rearrange(self, info: QueuedPodInfo) -> None:
        """Reorder a pod in one of the sub-queues that was changed."""
        uid = info.pod.uid
        if uid in self.active:
            self.active.push(uid, info)
        elif uid in self.backoff:
            self.backoff.update(info)
        else:
            self.unschedulable.put(info)

    def requeue(self, info: QueuedPodInfo, verdict: Requeue, event: str) -> None:
        """Put a new or unschedulable pod into the sub-queue that the verdict demands."""
        if verdict is Requeue.SKIP:
            self._park(info, event)
        elif verdict is Requeue.AFTER_BACKOFF and self._policy.is_backing_off(info, self._clock.now()):
            self._to_backoff(info, event)
        else:
            self.to_active(info, event)

    def to_active(self, info: QueuedPodInfo, event: str, *, passed_gates: bool = False) -> None:
        """Make a pod active that isn't backing off, unless it is gated."""
        if not passed_gates and self._is_held_back(info):
            self._park(info, event)
        else:
            self._push_active(info, event)

    def _push_active(self, info: QueuedPodInfo, event: str) -> None:
        self.note_first_attempt(info)
        self.unschedulable.remove(info.pod.uid)
        self.active.push(info.pod.uid, info)
        self._rejections.count(info)
        self._arrived(info, Place.ACTIVE, event)

    def note_first_attempt(self, info: QueuedPodInfo) -> None:
        """Record the time at which the pod became active for the first time."""
        if info.initial_attempt_timestamp is None:
            info.initial_attempt_timestamp = self._clock.now()
            info.initial_attempt_sequence = self.wakes

    def take_member(self, uid: str) -> QueuedPodInfo | None:
        """Remove a pod whose fellow member was popped; return None if it isn't here, or is held back by a gate.

        Its backoff is ignored, as in kube-scheduler.
        """
        info = self.unschedulable.get(uid)
        if info is not None and self._is_held_back(info):
            # Indexed and counted anew: it may be another plugin that holds the pod back now.
            self.unschedulable.put(info)
            self._rejections.count(info)
            return None
        info = info or self.find(uid)
        if info is not None:
            self.note_first_attempt(info)
            self.discard(uid)
        return info

    def from_backoff_to_active(self, info: QueuedPodInfo, event: str) -> None:
        """Make a pod active that was just removed from backoff."""
        self.to_active(info, event, passed_gates=self._policy.windows)

    def _to_backoff(self, info: QueuedPodInfo, event: str) -> None:
        if self._policy.windows and self._is_held_back(info):
            self._park(info, event)
        else:
            self._push_backoff(info, event)

    def _push_backoff(self, info: QueuedPodInfo, event: str) -> None:
        self.unschedulable.remove(info.pod.uid)
        self.backoff.add(info)
        self._rejections.count(info)
        self._arrived(info, Place.BACKOFF, event)

    def _park(self, info: QueuedPodInfo, event: str) -> None:
        if info.pod.uid not in self.unschedulable:
            self._arrived(info, Place.UNSCHEDULABLE, event)
        self.unschedulable.put(info)
        self._rejections.count(info)

    def _arrived(self, info: QueuedPodInfo, place: Place, event: str) -> None:  # noqa: ARG002  # for groups
        """Tell metrics that a pod has come to a place."""
        self._metrics.pod_incoming(place, event)

    def _is_held_back(self, info: QueuedPodInfo) -> bool:
        """Run the pre_enqueue plugins of the pod's profile.

        Return whether one rejects the pod; store it in the info.
        """
        profile = self._profiles.get(info.pod.spec.scheduler_name)
        if profile is not None:
            status = profile.run_pre_enqueue_plugins(info.pod)
            if not status.is_success:
                info.retry_at = self._later(status.retry_at)
                info.gating_plugin = status.plugin
                info.unschedulable_plugins.add(status.plugin)
                # The flush leads to no attempt, so no attempt may be counted as due to it.
                info.was_flushed_from_unschedulable = False
                return True
        info.gating_plugin = ""
        return False

    def _later(self, time: float | None) -> float | None:
        """Return when to call a gate again: at `time`, but a window later if it isn't in the future."""
        # A gate that always names a past time would otherwise be called without end.
        now = self._clock.now()
        return now + WINDOW if time is not None and time <= now else time


def _order(profile: QueueProfile) -> Callable[[QueuedPodInfo, QueuedPodInfo], bool]:
    """Return the order in which the profile's plugin serves pods; those it ranks equally, as they have arrived."""
    less = profile.less

    def before(one: QueuedPodInfo, other: QueuedPodInfo) -> bool:
        try:
            if less(one, other):
                return True
            return one.sequence < other.sequence and not less(other, one)
        except Exception:
            # An exception in a comparison would leave a broken heap, and pods in no place.
            _log.exception("queue sort failed on pods %s and %s", one.pod.key, other.pod.key)
            return one.sequence < other.sequence

    return before


class Rejections:
    """The counts of rejected pods in the queue for the metric `unschedulable_pods`. Not thread-safe.

    A pod counts for each plugin that rejected it in its last attempt or keeps it gated, from its return to the
    queue until it is popped or deleted. kube-scheduler keeps counting pods that are deleted while they are
    active or back off; here only existing pods count.
    """

    def __init__(self, metrics: MetricsRecorder) -> None:
        self._metrics = metrics
        self._listens = listens(metrics)
        self._told: dict[str, tuple[str, frozenset[str]]] = {}

    def count(self, info: QueuedPodInfo) -> None:
        """Count the plugins that rejected a pod in the queue."""
        if not self._listens:
            return
        profile, plugins = info.pod.spec.scheduler_name, frozenset(info.rejector_plugins)
        _, known = self._told.get(info.pod.uid, (profile, frozenset[str]()))
        self._tell(profile, plugins - known, 1)
        self._tell(profile, known - plugins, -1)
        if plugins:
            self._told[info.pod.uid] = profile, plugins

    def forget(self, uid: str) -> None:
        """Stop counting a pod that has left the queue."""
        if (told := self._told.pop(uid, None)) is not None:
            self._tell(*told, -1)

    def _tell(self, profile: str, plugins: frozenset[str], change: int) -> None:
        for plugin in sorted(plugins):
            self._metrics.unschedulable_pods(plugin, profile, change)
