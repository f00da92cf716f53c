"""The scheduler: takes pods from the queue, finds a node for each, and binds it (kube-scheduler `Scheduler`)."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from random import Random
from typing import TYPE_CHECKING

import attrs

from kschedfw.api import Pod, PodGroup, group_key
from kschedfw.cluster import Cluster
from kschedfw.config import default_profile
from kschedfw.framework.clock import Clock, SystemClock
from kschedfw.framework.cluster_client import check_cluster
from kschedfw.framework.extender import Extender
from kschedfw.framework.gate_table import GENERIC_WORKLOAD, OPPORTUNISTIC_BATCHING
from kschedfw.framework.gates import DEFAULT_GATES, FeatureGates
from kschedfw.framework.groups import GroupStates
from kschedfw.framework.metrics import NO_METRICS, MetricsRecorder, listens, sampling_of
from kschedfw.framework.nodes.pod_info import QueuedPodInfo
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.parts import Parts, PendingEvictions
from kschedfw.framework.profile import Profile
from kschedfw.framework.runtime.calls import Evaluation
from kschedfw.framework.runtime.framework import frameworks_of
from kschedfw.framework.runtime.registry import Registry
from kschedfw.framework.status import Status
from kschedfw.framework.versions.v1_37 import EVENT_NAMES, GROUP_BACKOFF, GROUP_ENTITY, RESIZED_PODS
from kschedfw.scheduler.attempt import Attempt, Moment
from kschedfw.scheduler.batching import Batching
from kschedfw.scheduler.binding_cycle import BindingCycle
from kschedfw.scheduler.bindings import BindingExecutor, Bindings, InlineExecutor
from kschedfw.scheduler.cache import Cache
from kschedfw.scheduler.debugger import CacheDebugger
from kschedfw.scheduler.errors import ConcurrentCycleError, SchedulingError
from kschedfw.scheduler.event_handlers import EventHandlers
from kschedfw.scheduler.extenders import close_extenders, order_extenders
from kschedfw.scheduler.failure import FailedGates, FailureHandler
from kschedfw.scheduler.generic_scheduler import GenericScheduler
from kschedfw.scheduler.placement import GroupPlaces, Placement, Placements
from kschedfw.scheduler.queue import IdleQueue, SchedulingQueue
from kschedfw.scheduler.queue.cluster_events import label_of, queue_name_since_v1_37
from kschedfw.scheduler.queue.protocol import Place
from kschedfw.scheduler.queue.stillness import ObservedClock
from kschedfw.scheduler.scheduling_cycle import Algorithm, Attempts, SchedulingCycle
from kschedfw.scheduler.select import HostSelector

if TYPE_CHECKING:
    from kschedfw.scheduler.groups import GroupCycle

_log = logging.getLogger(__name__)

_LONGEST_SLEEP = 1.0
"""The longest wait for a pod, in seconds. A signal handler that calls `stop` just before the wait begins can't
interrupt it, and a binding that ends during it may set an earlier deadline.
"""


class Scheduler:
    """The scheduler of a cluster's pods, each with the profile of its scheduler name.

    Scheduling cycles are serial and run on the thread that calls `run`, `run_until_idle` or `schedule_one`;
    only one of these runs at a time. Binding cycles run on `executor` (by default at once, on the same thread).
    A pod that a permit plugin holds back occupies no thread. An exception in a plugin fails one attempt of one
    pod. KeyboardInterrupt propagates after the attempt's reservations are undone.

    Args:
        cluster: the cluster whose pods are scheduled.
        profiles: one per scheduler name; by default kube-scheduler's default profile.
        executor: where binding cycles run.
        extenders: called after the plugins, the ignorable ones last; `close` closes them.
        percentage_of_nodes_to_score: 0–100, 0 adapts to the size; a profile's own value takes precedence.
        selector: picks among equally good nodes; by default by reservoir selection with `random`.
        initial_backoff: seconds before a second attempt; it doubles with each further one.
        max_backoff: the longest backoff, in seconds.
        unschedulable_timeout: seconds after which an unschedulable pod is tried again in any case.
        retry_unchanged: False is for virtual time: while nothing has changed since all waiting pods were tried, they
            aren't tried again at the timeout, so that time passes in one step up to the next event. Decisions are the
            same as with attempts that leave the random generator as it was. Where a plugin reads the clock, or there
            are extenders, pods are tried again all the same.
        assumed_pod_ttl: seconds after its binding in which a pod must be confirmed by the cluster; 0 for no limit.
        metrics: the recorder of metrics.
        evaluation: how decisions are computed; the result is the same, and the default is the fast one.
        idle: the scheduler won't be run, only asked to `place` pods: its queue stays empty, and costs nothing.
        feature_gates: kube-scheduler's feature gates. With GenericWorkload, `run`, `run_until_idle` and
            `schedule_one` schedule the members of a group together.

    Raises:
        ProfileError: there is no profile, two have the same scheduler name, or one can't work.
        PluginError: a plugin can't be used.
        IncompleteClusterError: the cluster lacks a method of `Cluster`.
    """

    def __init__(
        self,
        cluster: Cluster,
        profiles: Iterable[Profile] | None = None,
        *,
        registry: Registry | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
        executor: BindingExecutor | None = None,
        parallelizer: Parallelizer | None = None,
        extenders: Sequence[Extender] = (),
        percentage_of_nodes_to_score: int = 0,
        selector: HostSelector | None = None,
        initial_backoff: float = 1.0,
        max_backoff: float = 10.0,
        unschedulable_timeout: float = 300.0,
        retry_unchanged: bool = True,
        assumed_pod_ttl: float = 0.0,
        metrics: MetricsRecorder = NO_METRICS,
        evaluation: Evaluation = Evaluation.MEMO,
        idle: bool = False,
        feature_gates: FeatureGates = DEFAULT_GATES,
    ) -> None:
        check_cluster(cluster, Cluster, "Scheduler")
        clock = SystemClock() if clock is None else clock
        grouping, groups = feature_gates.enabled(GENERIC_WORKLOAD), GroupStates()
        self.cache = Cache(
            clock=clock,
            assumed_pod_ttl=assumed_pod_ttl,
            groups=groups if grouping else None,
            largest_sum=feature_gates.follows(RESIZED_PODS),
        )
        self.parts = parts = Parts(
            cluster,
            clock=clock,
            random=Random(0) if random is None else random,
            parallelizer=Parallelizer(1) if parallelizer is None else parallelizer,
            extenders=order_extenders(extenders),
            metrics=metrics,
            plugin_sampling=sampling_of(metrics),
            feature_gates=feature_gates,
            binds_in_background=not (executor is None or isinstance(executor, InlineExecutor)),
            groups=groups,
            evictions=PendingEvictions(lambda pod: self.cache.get_pod(pod) is not None),
        )
        """The parts that the frameworks, their handles and the cycles share."""
        self.cluster = cluster
        self.snapshot, self.nominator = parts.snapshot, parts.nominator
        self.waiting_pods, self.pods_in_pre_bind = parts.waiting_pods, parts.pods_in_pre_bind
        self.feature_gates = feature_gates
        self._clock = clock
        self.registry = registry = Registry() if registry is None else registry
        # What extenders answer may change without an event.
        may_rest = not (retry_unchanged or parts.extenders)
        observed = ObservedClock(self._clock)
        # Plugins that read the clock are noted; the scheduler reads it all the time.
        for_plugins = attrs.evolve(parts, clock=observed) if may_rest else parts
        profiles = (default_profile(feature_gates=feature_gates),) if profiles is None else profiles
        self.frameworks = frameworks_of(registry, profiles, for_plugins, evaluation)
        self._failed_gates = FailedGates(cluster)
        queue_type = IdleQueue if idle else SchedulingQueue
        self.queue = queue_type(
            {name: self._failed_gates.watching(framework) for name, framework in self.frameworks.items()},
            clock=self._clock,
            nominator=self.nominator,
            initial_backoff=initial_backoff,
            max_backoff=max_backoff,
            unschedulable_timeout=unschedulable_timeout,
            groups=grouping,
            size_of=parts.groups.size_of if grouping and feature_gates.follows(GROUP_BACKOFF) else None,
            entities=feature_gates.follows(GROUP_ENTITY),
            has_group=lambda key: cluster.get(PodGroup, key) is not None,
            name_of=queue_name_since_v1_37 if feature_gates.follows(EVENT_NAMES) else label_of,
            retry_unchanged=not may_rest,
            metrics=metrics,
        )
        observed.tell = self.queue.note_change
        for framework in self.frameworks.values():
            # The queue needs the frameworks, and plugins need the queue, so they get it afterwards.
            framework.handle.attach(self.queue)
        generic = GenericScheduler(
            self.cache,
            self.snapshot,
            random=parts.random,
            percentage_of_nodes_to_score=percentage_of_nodes_to_score,
            selector=selector,
            batching=Batching(self._clock, metrics)
            if feature_gates.enabled(OPPORTUNISTIC_BATCHING)
            else None,
        )
        self.algorithm: Algorithm = generic
        self._stop_noting: Callable[[], None] = lambda: None
        if may_rest:
            # Before the handlers watch: the queue is brought up to the present before it learns of a change.
            self._stop_noting = cluster.watch(lambda _event: self.queue.note_change())
        failures = FailureHandler(parts, self.queue)
        cycle = SchedulingCycle(parts, self.cache, self.queue, failures)
        binding_cycle = BindingCycle(parts, self.cache, self.queue, failures)
        self._bindings = Bindings(InlineExecutor() if executor is None else executor, binding_cycle, parts)
        self._placements = Placements(parts, binding_cycle, self.cache, self.queue)
        self._attempts = Attempts(parts, self.frameworks, self.queue, cycle, self._bindings, self._placements)
        self._attempts.remember = generic.remember if may_rest else None
        self.group_cycle: GroupCycle | None = None
        """The cycle of groups; None without the gate GenericWorkload."""
        if grouping:
            # Here, since it is a tenth of the scheduler's code, and the gate is off by default.
            from kschedfw.scheduler.groups import GroupAlgorithm, GroupCycle

            self.group_cycle = GroupCycle(
                parts,
                self.queue,
                GroupAlgorithm(generic, parts),
                cycle,
                self._attempts,
            )
            self._attempts.run_group = self.group_cycle.run
        # A recorder that is read now and then needs no numbers in between.
        self._reports_sizes = listens(metrics) and not metrics.before_reading(self._report_sizes)
        self._cycle = threading.Lock()
        self._stopping = False
        self.last_tick = self._clock.monotonic()
        """The time of the last `tick`, in seconds on the clock's monotonic scale. `run` calls it at least each
        second, except during an attempt."""
        # Last: watching sends all objects that are there, and the handlers need everything above.
        self.events = EventHandlers(cluster, parts, self.cache, self.queue, self.frameworks)

    @property
    def debugger(self) -> CacheDebugger:
        return CacheDebugger(self.cluster, self.cache, self.queue)

    # Running

    def run(self) -> None:
        """Schedule until `stop` is called (from another thread, or a signal handler), then `close`.

        KeyboardInterrupt, and SystemExit unless a plugin raises it, also closes.

        Raises:
            ConcurrentCycleError: scheduling is under way, on another thread or further up the stack.
        """
        with self._scheduling():
            try:
                while not self._stopping:
                    try:
                        self.tick()
                        info = self.queue.pop(self._seconds_to_next_tick())
                        if info is not None and (attempt := self._attempts.begin(info)) is not None:
                            self._attempts.make(attempt, self.algorithm)
                    # Whatever fails in one attempt, the loop goes on.
                    except Exception:
                        _log.exception("an attempt failed in a way that it shouldn't")
            finally:
                self.close()

    def run_until_idle(self) -> int:
        """Schedule until no pod is active and no binding is under way. Return the number of attempts.

        Pods that back off or wait for permission are left as they are: move the clock and call again.

        Raises:
            ConcurrentCycleError: as `run`.
            StandstillError: a pod was tried 100 times, and once more for every pod that got a node meanwhile,
                while the clock stood still. kube-scheduler goes on for ever there, slowed by its clock alone.
        """
        attempts = 0
        moment = Moment(self._clock.monotonic())
        with self._scheduling():
            while True:
                self.tick()
                if not self._is_hopeless() and (info := self._schedule_next()) is not None:
                    attempts += 1
                    if (now := self._clock.monotonic()) != moment.time:
                        moment = Moment(now)
                    moment.check(info, self.cache)
                elif not self._bindings.await_one():
                    return attempts

    def schedule_one(self) -> bool:
        """Make one attempt for the next pod; return False if none is active.

        Raises:
            ConcurrentCycleError: as `run`.
        """
        with self._scheduling():
            return self._schedule_next() is not None

    def begin_attempt(self) -> Attempt | None:
        """Take the next pod from the queue, for the attempt that `make_attempt` makes; None if none is active.

        In between, the caller may tell `algorithm` what to decide. The pod is in flight until its attempt is
        made. Groups of pods that come before it are scheduled (GenericWorkload).

        Raises:
            ConcurrentCycleError: as `run`.
        """
        with self._scheduling():
            attempt = None
            while attempt is None and not self._is_hopeless():
                if (info := self.queue.try_pop()) is None:
                    break
                attempt = self._attempts.begin(info)
            self._failed_gates.tell()
            return attempt

    def make_attempt(self, attempt: Attempt) -> None:
        """Find the pod a node and bind it, as `schedule_one` does with the next pod.

        Raises:
            ConcurrentCycleError: as `run`.
        """
        with self._scheduling():
            self._attempts.make(attempt, self.algorithm)
            self._failed_gates.tell()

    @property
    def placements(self) -> Sequence[Placement]:
        """The placements that are held."""
        return tuple(self._placements)

    def place(self, pod: Pod, *, preempt: bool = True) -> Placement:
        """Find a node for this pod now, out of turn, and hold the place until it is committed or given up.

        The attempt is like any other. So a pod of the cluster that fits nowhere goes back to the queue, its
        condition says why, and preemption may make room for it: then victims are being evicted, and the pod is
        nominated. A pod that isn't in the cluster can be placed, too, to see where it would go. No pods are
        preempted for such a pod, nor without `preempt`.

        Raises:
            FitError, NoNodesAvailableError: no node is feasible.
            SchedulingError: a plugin failed, a gate (pre_enqueue) holds the pod back, it is bound already, or the
                scheduler is closed.
            ProfileError: there is no profile for the pod's scheduler name.
            PodInFlightError: the pod is being scheduled or bound, or has a placement.
            ConcurrentCycleError: as `run`.
        """
        self._refuse_if_closed()
        with self._scheduling(), self._evicting():
            return self._attempts.place(pod, self.algorithm, preempt=preempt)

    def place_group(self, pods: Sequence[Pod], *, preempt: bool = True) -> GroupPlaces:
        """Find nodes for members of a PodGroup together, now and out of turn, and hold the places.

        It is the cycle of their group, with these members in this order; those that a gate (pre_enqueue) holds back are
        left out. If the group can't be placed, all are refused. Otherwise it is as for `place`.

        Raises:
            SchedulingError, ProfileError, PodInFlightError, ConcurrentCycleError: as `place`.
            ValueError: the pods have no group, or several, or groups aren't enabled.
        """
        if self.group_cycle is None:
            raise ValueError(f"place_group: groups need feature_gates with {GENERIC_WORKLOAD}, which is off")
        if len(groups := {group_key(pod) for pod in pods} - {""}) != 1:
            known = ", ".join(sorted(groups)) or "none"
            raise ValueError(f"pods: expected members of one PodGroup, found those of {known}")
        self._refuse_if_closed()
        with self._scheduling(), self._evicting():
            return self._attempts.place_group(pods, self.group_cycle.place, preempt=preempt)

    def _refuse_if_closed(self) -> None:
        if self._stopping:
            raise SchedulingError(Status.from_error("the scheduler is closed"))

    @contextmanager
    def _scheduling(self) -> Iterator[None]:
        """Raise ConcurrentCycleError if a cycle is under way; else block others during the block."""
        if not self._cycle.acquire(blocking=False):
            raise ConcurrentCycleError(
                "this scheduler is scheduling already: only one thread at a time may call run, run_until_idle or "
                "schedule_one, and no plugin"
            )
        try:
            yield
        finally:
            self._cycle.release()

    @contextmanager
    def _evicting(self) -> Iterator[None]:
        """Carry out the block's preemptions, also if it raises, as `place` does for a pod that waits for victims."""
        try:
            yield
        finally:
            self.parts.evictions.carry_out()

    def _schedule_next(self) -> QueuedPodInfo | None:
        info = self.queue.try_pop()
        if info is not None and (attempt := self._attempts.begin(info)) is not None:
            self._attempts.make(attempt, self.algorithm)
        self._failed_gates.tell()
        return info

    def tick(self) -> None:
        """End permit waits that have timed out, and expire assumed pods.

        Also give up binding cycles that the executor has cancelled, and report pods that a failed plugin keeps
        gated.
        """
        self.last_tick = self._clock.monotonic()
        for waiting in self.waiting_pods:
            waiting.poll()
        self._bindings.reap()
        self._failed_gates.tell()
        for pod in self.cache.expire_assumed_pods():
            _log.warning("pod %s expired: its binding was never confirmed", pod.key)
        if self._reports_sizes:
            self._report_sizes()

    def _report_sizes(self) -> None:
        for kind, count in self.cache.sizes().items():
            self.parts.metrics.cache_size(kind, count)

    def stop(self) -> None:
        """End `run` after the current attempt."""
        self._stopping = True
        self.queue.close()

    def close(self) -> None:
        """Stop, give up placements, reject all waiting pods, and wait until every binding cycle has ended.

        The extenders are closed, too.
        """
        with ExitStack() as stack:
            # The callbacks run after the bindings have ended, in reverse order, and each of them even if
            # another raises.
            stack.callback(close_extenders, self.parts.extenders)
            for framework in self.frameworks.values():
                stack.callback(framework.close)
            stack.callback(self.events.close)
            stack.callback(self._stop_noting)
            self.stop()
            for placement in tuple(self._placements):
                placement.give_up()
            for waiting in self.waiting_pods:
                waiting.reject("", "the scheduler is shutting down")
            self._bindings.await_all()

    def _is_hopeless(self) -> bool:
        """Return whether no pod is active and a group that backs off would be next.

        In an idle cluster kube-scheduler retries such a group without rest, and so does `run`. Where time
        stands still between attempts, that would never end.
        """
        if self.group_cycle is None:
            return False
        pod = self.queue.next_pod()
        return pod is not None and bool(group_key(pod)) and self.queue.place(pod.uid) is Place.BACKOFF

    def _seconds_to_next_tick(self) -> float:
        deadlines = [deadline for waiting in self.waiting_pods if (deadline := waiting.deadline) is not None]
        if (expiry := self.cache.next_expiry()) is not None:
            deadlines.append(expiry)
        return min(max(0.0, min(deadlines, default=math.inf) - self._clock.now()), _LONGEST_SLEEP)
