"""The record of a simulation's events, by pod."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.pod_groups import PodGroup
from kschedfw.api.records import define
from kschedfw.api.resource_names import PODS
from kschedfw.cluster import Cluster, EventType, WatchEvent
from kschedfw.framework.clock import VirtualClock
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import FitError
from kschedfw.framework.eviction import DISRUPTION_TARGET, PREEMPTION_BY_SCHEDULER
from kschedfw.framework.groups import GroupPlacement
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.status import Code
from kschedfw.scheduler import ScheduleResult
from kschedfw.scheduler.attempt import Attempt
from kschedfw.scheduler.decision_observer import DecisionObserver
from kschedfw.scheduler.errors import SchedulingError
from kschedfw.scheduler.scheduling_cycle import Algorithm

if TYPE_CHECKING:
    from kschedfw.scheduler.groups import GroupDecision, GroupObserver


FRUITLESS_ATTEMPTS = 5
"""After this many attempts of a pod without a change of the cluster, further ones are taken to be repetitions."""
UNMOVED_ATTEMPTS = 100
"""After this many attempts of a pod while no pod comes or goes, further ones are taken to be repetitions, too.

Failed attempts may change other objects each time: they reserve a claim and give it up again, for example.
"""


@define
class Entry:
    """The record of one pod. `turn` orders pods by their last attempt; times are in virtual seconds since the start.

    `error` is the error of the last attempt's scheduling cycle, if it found no node. `failure` is the last
    error of any attempt, except that the pod fits nowhere. `deleted` is true if neither the end of its stay nor a
    preemption took it away, but a plugin's hook or a user of the cluster. `last` is the pod as it was when it left
    without a place.
    """

    attempts: int = 0
    turn: int = 0
    result: ScheduleResult | None = None
    error: Exception | None = None
    failure: Exception | None = None
    node: str = ""
    bound: float | None = None
    gone: bool = False
    preempted: bool = False
    deleted: bool = False
    last: Pod | None = None

    @property
    def nodes(self) -> tuple[int, int]:
        """The numbers of nodes that the last attempt evaluated, and that were feasible."""
        if self.result is not None:
            return self.result.evaluated_nodes, self.result.feasible_nodes
        return (self.error.number_of_nodes, 0) if isinstance(self.error, FitError) else (0, 0)


class Ledger:
    """The pods' histories by uid, and totals, from its creation to `close`.

    * `attempts`: all scheduling cycles; `tried`: pods that had one.
    * `bound`: how often a pod was bound, without pods that were bound from the start.
    * `is_given_up`: pods that were attempted, or whose gates were checked, so often since the cluster last changed, or
      since a pod last came, went or changed, that further attempts are taken to be repetitions.
    * `preemptions`: how often a pod was nominated to a node; `victims`: pods that were evicted for that.
    * `last_change`: when a pod was last bound or left, in virtual seconds since the start.
    * `peak`: the most that was requested at a time on existing nodes, by resource.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: VirtualClock,
        on_bound: Callable[[Pod], None],
        has_ended: Callable[[Pod], bool],
    ) -> None:
        """Begin to record. `has_ended` says whether the deletion of a pod is the end of its stay."""
        self.entries: dict[str, Entry] = {}
        self.attempts = 0
        self.tried = 0
        self.bound = 0
        self._fruitless: Counter[str] = Counter()
        self._most_fruitless = 0
        self._unmoved: Counter[str] = Counter()
        self._most_unmoved = 0
        self.preemptions = 0
        self.victims = 0
        self.last_change = 0.0
        self.peak: Counter[str] = Counter()
        self._held: Counter[str] = Counter()
        self._cluster = cluster
        self._clock = clock
        self._on_bound = on_bound
        self._has_ended = has_ended
        self._started = False
        # This delivers the existing objects: pods that are bound by then take room, but aren't bound anew.
        self.close: Callable[[], None] = cluster.watch(self._take)
        self._started = True

    def entry(self, uid: str) -> Entry:
        return self.entries.setdefault(uid, Entry())

    @property
    def departed(self) -> int:
        """The number of pods that have left at the end of their stay."""
        ends = (
            each for each in self.entries.values() if each.gone and not each.preempted and not each.deleted
        )
        return sum(entry.bound is not None for entry in ends)

    def begin_attempt(self, pod: Pod) -> Entry:
        entry = self.entry(pod.uid)
        self.attempts += 1
        self.tried += not entry.attempts
        self.count_fruitless(pod.uid)
        entry.attempts += 1
        entry.turn = self.attempts
        entry.result = entry.error = None
        return entry

    def count_fruitless(self, uid: str) -> None:
        """Count an attempt of the pod, or a check of its gates; the count ends when the cluster changes."""
        self._fruitless[uid] += 1
        self._most_fruitless = max(self._most_fruitless, self._fruitless[uid])
        self._unmoved[uid] += 1
        self._most_unmoved = max(self._most_unmoved, self._unmoved[uid])

    def is_given_up(self, uid: str) -> bool:
        """Tell whether further attempts of the pod would be repetitions, until something changes."""
        return self._fruitless[uid] >= FRUITLESS_ATTEMPTS or self._unmoved[uid] >= UNMOVED_ATTEMPTS

    @property
    def has_given_up(self) -> bool:
        """True if a pod may be given up: cheaper than to ask for each."""
        return self._most_fruitless >= FRUITLESS_ATTEMPTS or self._most_unmoved >= UNMOVED_ATTEMPTS

    def _cluster_changed(self) -> None:
        self._fruitless.clear()
        self._most_fruitless = 0

    def _pods_changed(self) -> None:
        self._cluster_changed()
        self._unmoved.clear()
        self._most_unmoved = 0

    def _take(self, event: WatchEvent) -> None:
        obj = event.object
        if isinstance(obj, Pod):
            self._pod(event, obj, event.old if isinstance(event.old, Pod) else None)
        # As with pods: a failed cycle writes the condition of its group, whose text may differ each time.
        elif not (
            isinstance(obj, PodGroup) and isinstance(event.old, PodGroup) and obj.spec == event.old.spec
        ):
            self._cluster_changed()

    def _pod(self, event: WatchEvent, pod: Pod, old: Pod | None) -> None:
        """Handle an event of a pod.

        A patched status is no change of the cluster: failed attempts patch it, and it helps no pod.
        """
        held_before = old is not None and _holds(old)
        if event.type is EventType.DELETED:
            self._leaves(pod, deleted=True)
        elif _holds(pod) and not held_before:
            self._comes(pod)
        elif held_before and old is not None and not _holds(pod):
            self._leaves(old, deleted=False)
        elif event.type is EventType.ADDED or (old is not None and _is_respecified(old, pod)):
            self._pods_changed()
        nominated = pod.status.nominated_node_name
        if event.type is EventType.MODIFIED and nominated and old is not None and not self._has_place(pod):
            self.preemptions += nominated != old.status.nominated_node_name

    def _has_place(self, pod: Pod) -> bool:
        """Tell whether the pod's latest attempt found a node, so that a nomination is only that of its binding."""
        entry = self.entries.get(pod.uid)
        return entry is not None and entry.result is not None

    def _comes(self, pod: Pod) -> None:
        self._pods_changed()
        if self._cluster.get(Node, pod.node_name) is not None:
            held, peak = self._held, self.peak
            for resource, amount in (*pod.requests.amounts.items(), (PODS, 1)):
                held[resource] += amount
                peak[resource] = max(peak[resource], held[resource])
        if self._started:
            self.bound += 1
            entry = self.entry(pod.uid)
            entry.node, entry.bound = pod.node_name, self._clock.elapsed
            self.last_change = self._clock.elapsed
            self._on_bound(pod)

    def _leaves(self, pod: Pod, *, deleted: bool) -> None:
        """Handle the end of a pod, by its deletion or because its containers have ended; `pod` is its last state."""
        self._pods_changed()
        entry = self.entry(pod.uid)
        entry.gone = True
        if _was_preempted(pod):
            entry.preempted = True
            self.victims += 1
        elif deleted and not self._has_ended(pod):
            entry.deleted = True
        if not _holds(pod):
            entry.last = pod
            return
        self.last_change = self._clock.elapsed
        if self._cluster.get(Node, pod.node_name) is not None:
            self._held.subtract({**dict(pod.requests.amounts.items()), PODS: 1})


class RecordingAlgorithm:
    """An algorithm that records each decision of another one in a ledger.

    A decision takes `seconds` of virtual time.
    """

    def __init__(
        self, algorithm: Algorithm, ledger: Ledger, clock: VirtualClock, seconds: float = 0.0
    ) -> None:
        self._algorithm = algorithm
        self._ledger = ledger
        self._clock = clock
        self._seconds = seconds

    def schedule(self, framework: Framework, state: CycleState, pod: Pod) -> ScheduleResult:
        entry = self._ledger.begin_attempt(pod)
        try:
            entry.result = self._algorithm.schedule(framework, state, pod)
        except Exception as error:
            entry.error = error
            if not isinstance(error, FitError):
                entry.failure = error
            raise
        finally:
            self._clock.advance_to(self._clock.now() + self._seconds)
        return entry.result


class RecordingGroups:
    """An observer of the cycles of groups, which records the decision on each member in a ledger.

    A cycle takes `seconds` of virtual time. `other` follows them, too.
    """

    def __init__(
        self, ledger: Ledger, clock: VirtualClock, seconds: float = 0.0, other: GroupObserver | None = None
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._seconds = seconds
        self._other = other

    @property
    def follows_placed(self) -> bool:
        return self._other is not None and self._other.follows_placed

    def member(self, placement: GroupPlacement, attempt: Attempt) -> DecisionObserver | None:
        return None if self._other is None else self._other.member(placement, attempt)

    def decided(self, decision: GroupDecision) -> None:
        if self._other is not None:
            self._other.decided(decision)
        tried = () if decision.result is None else decision.result.members
        members = {member.attempt.pod.uid: member for member in tried}
        for pod in decision.group.pods:
            entry, member = self._ledger.begin_attempt(pod), members.get(pod.uid)
            status = decision.status if member is None or member.status.is_success else member.status
            if member is not None and member.node_name and decision.status.is_success:
                entry.result = member.result
            else:
                known = status.error
                entry.error = known if isinstance(known, Exception) else SchedulingError(status)
                if status.code is Code.ERROR:
                    entry.failure = entry.error
        self._clock.advance_to(self._clock.now() + self._seconds)


def _holds(pod: Pod) -> bool:
    """Tell whether the pod takes resources of a node."""
    return bool(pod.node_name) and not pod.is_terminal


def _is_respecified(old: Pod, new: Pod) -> bool:
    # Usually it is the same object; comparing field by field would take long.
    return old.spec is not new.spec and old.spec != new.spec


def _was_preempted(pod: Pod) -> bool:
    return any(
        (condition.type, condition.status, condition.reason)
        == (DISRUPTION_TARGET, "True", PREEMPTION_BY_SCHEDULER)
        for condition in pod.status.conditions
    )
