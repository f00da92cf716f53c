"""The scheduler: takes pods from the queue, finds each a node, and has it bound (kube-scheduler `Scheduler`)."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Protocol

from kschedfw.api.pod import Pod
from kschedfw.cluster import Cluster
from kschedfw.config import default_profile
from kschedfw.framework.activation import take_pods_to_activate
from kschedfw.framework.clock import Clock, SystemClock
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import FitError, NoNodesAvailableError
from kschedfw.framework.errors import ProfileError
from kschedfw.framework.evaluation import Evaluation
from kschedfw.framework.extender import Extender
from kschedfw.framework.framework import Framework
from kschedfw.framework.metrics import NO_METRICS, MetricsRecorder, Operation, PluginSampling, listens
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.pod_info import QueuedPodInfo
from kschedfw.framework.profile import Profile
from kschedfw.framework.registry import Registry
from kschedfw.framework.results import PostFilterResult
from kschedfw.framework.snapshot import Snapshot
from kschedfw.framework.status import Code, Status
from kschedfw.scheduler.attempt import CLEAR_NOMINATION, Attempt
from kschedfw.scheduler.binding_cycle import BindingCycle, as_fit_error, release
from kschedfw.scheduler.cache import Cache, CacheError
from kschedfw.scheduler.debugger import CacheDebugger
from kschedfw.scheduler.errors import SchedulingError
from kschedfw.scheduler.event_handlers import EventHandlers
from kschedfw.scheduler.failure import FailureHandler
from kschedfw.scheduler.generic_scheduler import GenericScheduler, ScheduleResult
from kschedfw.scheduler.http_extender import order_extenders
from kschedfw.scheduler.nominator import Nominator
from kschedfw.scheduler.queue import SchedulingQueue
from kschedfw.scheduler.select import HostSelector

_log = logging.getLogger(__name__)

_LONGEST_SLEEP = 1.0
"""Seconds. A signal handler that calls `stop` just before the wait begins wakes nobody; and a binding that ends during
it may bring a deadline that nobody knew of."""


class Algorithm(Protocol):
    """Finds the node for a pod, or raises what `GenericScheduler.schedule` does; that is the usual one."""

    def schedule(self, framework: Framework, state: CycleState, pod: Pod) -> ScheduleResult: ...


class BindingExecutor(Protocol):
    """Runs binding cycles; `concurrent.futures.Executor` is one."""

    def submit(self, task: Callable[[], None], /) -> object: ...


class InlineExecutor:
    """Runs every binding cycle at once, on the scheduler's own thread: for simulations and tests."""

    def submit(self, task: Callable[[], None], /) -> None:
        task()


class Scheduler:
    """Schedules the pods of a cluster, each with the profile of its scheduler name.

    Scheduling cycles are serial and run on the thread that calls `run`, `run_until_idle` or `schedule_one`;
    binding cycles run on `executor` (by default at once, on the same thread). A pod that a permit plugin holds back
    occupies no thread. Whatever a plugin raises costs one attempt of one pod.

    Args:
        cluster: what is scheduled.
        profiles: one per scheduler name; by default kube-scheduler's default profile.
        executor: where binding cycles run.
        extenders: asked after the plugins, the ignorable ones last.
        percentage_of_nodes_to_score: 0–100, 0 adapts to the size; a profile's own comes first.
        selector: who picks among equally good nodes; by default a reservoir, drawing from `random`.
        initial_backoff: seconds before a second attempt; it doubles with each further one.
        max_backoff: seconds at most.
        unschedulable_timeout: seconds after which an unschedulable pod is tried again in any case.
        assumed_pod_ttl: seconds after its binding in which a pod must be confirmed by the cluster; 0 for no limit.
        metrics: who is told what happens.
        evaluation: chooses between ways to the same decisions, of which only the default is fast.

    Raises:
        ProfileError: there is no profile, two have the same scheduler name, or one can't work.
        PluginError: a plugin can't be used.
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
        assumed_pod_ttl: float = 0.0,
        metrics: MetricsRecorder = NO_METRICS,
        evaluation: Evaluation = Evaluation.MEMO,
    ) -> None:
        self._clock = SystemClock() if clock is None else clock
        self._metrics = metrics
        self._measuring = listens(metrics)
        # A generator of its own: who measures must not change what is decided.
        self._sampling = PluginSampling(Random(0))
        random = Random(0) if random is None else random
        self.cluster = cluster
        self.snapshot = Snapshot()
        self.nominator = Nominator()
        self.cache = Cache(clock=self._clock, assumed_pod_ttl=assumed_pod_ttl)
        registry = Registry() if registry is None else registry
        parallelizer = Parallelizer(1) if parallelizer is None else parallelizer
        self.frameworks: dict[str, Framework] = {}
        for profile in (default_profile(),) if profiles is None else profiles:
            if profile.scheduler_name in self.frameworks:
                raise ProfileError(f"two profiles have the scheduler name {profile.scheduler_name!r}")
            self.frameworks[profile.scheduler_name] = Framework(
                registry,
                profile,
                cluster=cluster,
                snapshot=self.snapshot,
                nominator=self.nominator,
                clock=self._clock,
                random=random,
                parallelizer=parallelizer,
                extenders=order_extenders(extenders),
                metrics=metrics,
                plugin_sampling=self._sampling,
                evaluation=evaluation,
            )
        self.queue = SchedulingQueue(
            self.frameworks,
            clock=self._clock,
            nominator=self.nominator,
            initial_backoff=initial_backoff,
            max_backoff=max_backoff,
            unschedulable_timeout=unschedulable_timeout,
            metrics=metrics,
        )
        for framework in self.frameworks.values():
            framework.handle.attach(self.queue)
        self.algorithm: Algorithm = GenericScheduler(
            self.cache,
            self.snapshot,
            random=random,
            percentage_of_nodes_to_score=percentage_of_nodes_to_score,
            selector=selector,
        )
        self._executor = InlineExecutor() if executor is None else executor
        self._failures = FailureHandler(cluster, self.queue, self.nominator, self._clock, metrics)
        self._binding_cycle = BindingCycle(
            cluster, self.cache, self.queue, self._failures, self._clock, metrics
        )
        self._bindings = 0
        self._binding_ended = threading.Condition()
        self._stopping = False
        self.events = EventHandlers(cluster, self.cache, self.queue, self.frameworks, self._clock, metrics)

    @property
    def debugger(self) -> CacheDebugger:
        return CacheDebugger(self.cluster, self.cache, self.queue)

    # Running

    def run(self) -> None:
        """Schedule until `stop` is called (from another thread, or a signal handler), then wait for all bindings."""
        while not self._stopping:
            try:
                self.tick()
                info = self.queue.pop(self._seconds_to_next_tick())
                if info is not None:
                    self._attempt(info)
            except Exception:  # the last resort
                _log.exception("an attempt failed in a way that it shouldn't")
        self.close()

    def run_until_idle(self) -> int:
        """Schedule until no pod is active and no binding is under way; gives the number of attempts.

        Pods that back off or wait for permission are left as they are: move the clock and call again.
        """
        attempts = 0
        while True:
            self.tick()
            if self.schedule_one():
                attempts += 1
            elif not self._await_binding():
                return attempts

    def schedule_one(self) -> bool:
        """One attempt for the next pod; False if none is active."""
        info = self.queue.try_pop()
        if info is None:
            return False
        self._attempt(info)
        return True

    def tick(self) -> None:
        """Do what time alone brings: end waits for permission that have lasted too long, expire assumed pods."""
        for framework in self.frameworks.values():
            for waiting in framework.waiting_pods:
                waiting.poll()
        for pod in self.cache.expire_assumed_pods():
            _log.warning("pod %s expired: its binding was never confirmed", pod.key)
        if self._measuring:
            for kind, count in self.cache.sizes().items():
                self._metrics.cache_size(kind, count)

    def stop(self) -> None:
        """End `run` after the current attempt."""
        self._stopping = True
        self.queue.close()

    def close(self) -> None:
        """Stop, reject all waiting pods, and wait until every binding cycle has ended."""
        self.stop()
        for framework in self.frameworks.values():
            for waiting in framework.waiting_pods:
                waiting.reject("", "the scheduler is shutting down")
        with self._binding_ended:
            while self._bindings:
                self._binding_ended.wait()
        self.events.close()
        for framework in self.frameworks.values():
            framework.close()

    # One attempt

    def _attempt(self, info: QueuedPodInfo) -> None:
        framework = self.frameworks.get(info.pod.spec.scheduler_name)
        if framework is None or self._is_superfluous(info.pod):
            self.queue.done(info.pod.uid)
            return
        attempt = Attempt(info, framework, self._clock.monotonic())
        attempt.state.record_plugin_metrics = self._measuring and self._sampling()
        try:
            self._scheduling_cycle(attempt)
        except Exception as error:  # nothing that a pod brings about may end the loop
            if attempt.assumed is not None:
                attempt.framework.waiting_pods.remove(info.pod.uid)
                release(attempt, self.cache)
            self._fail(attempt, Status.from_error(error))

    def _is_superfluous(self, pod: Pod) -> bool:
        if pod.is_terminating:
            self.cluster.record_event(
                pod, "Warning", "FailedScheduling", f"skip schedule deleting pod: {pod.key}"
            )
            return True
        return self.cache.is_assumed(pod)

    def _scheduling_cycle(self, attempt: Attempt) -> None:
        try:
            result = self.algorithm.schedule(attempt.framework, attempt.state, attempt.pod)
        except NoNodesAvailableError as error:
            self._algorithm_done(attempt)
            self._fail(attempt, Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (str(error),), error=error))
        except FitError as error:
            self._make_room(attempt, error)
        except SchedulingError as error:
            self._algorithm_done(attempt)
            self._fail(attempt, error.status)
        else:
            self._algorithm_done(attempt)
            self._assume(attempt, result)

    def _algorithm_done(self, attempt: Attempt) -> None:
        self._metrics.scheduling_algorithm(self._clock.monotonic() - attempt.started)

    def _make_room(self, attempt: Attempt, error: FitError) -> None:
        nomination: PostFilterResult | None = CLEAR_NOMINATION
        if attempt.framework.has_post_filter_plugins:
            nomination, status = attempt.framework.run_post_filter_plugins(
                attempt.state, attempt.pod, error.diagnosis.node_to_status
            )
            error.diagnosis.post_filter_message = status.message
        self._algorithm_done(attempt)
        self._fail(attempt, Status(Code.UNSCHEDULABLE, (str(error),), error=error), nomination)

    def _assume(self, attempt: Attempt, result: ScheduleResult) -> None:
        host = result.suggested_host
        attempt.result, assumed = result, attempt.pod.bound_to(host)
        try:
            self.cache.assume_pod(assumed)
        except CacheError as error:
            self._fail(attempt, Status.from_error(error))
            return
        attempt.assumed = assumed
        self.nominator.delete(assumed)
        status = attempt.framework.run_reserve_plugins_reserve(attempt.state, assumed, host)
        if status.is_success:
            status = attempt.framework.run_permit_plugins(attempt.state, assumed, host)
        if not (status.is_success or status.is_wait):
            release(attempt, self.cache)
            self._fail(attempt, as_fit_error(attempt, host, status) if status.is_rejected else status)
            return
        self.queue.activate(take_pods_to_activate(attempt.state))
        self._start_binding(attempt)

    def _fail(
        self, attempt: Attempt, status: Status, nomination: PostFilterResult | None = CLEAR_NOMINATION
    ) -> None:
        self._failures.handle(attempt, status, nomination)

    # Binding cycles

    def _start_binding(self, attempt: Attempt) -> None:
        """Hand the binding cycle to the executor, as soon as the pod no longer waits for permission."""
        with self._binding_ended:
            self._bindings += 1
        waiting = attempt.framework.waiting_pods.get(attempt.pod.uid)
        if waiting is None:
            self._submit(attempt)
        else:
            waiting.on_settled(lambda: self._submit(attempt))

    def _submit(self, attempt: Attempt) -> None:
        try:
            self._executor.submit(lambda: self._bind(attempt))
        except Exception as error:  # an executor that was shut down, for one
            attempt.framework.waiting_pods.remove(attempt.pod.uid)
            self._give_up(attempt, error)
            self._end_binding()

    def _bind(self, attempt: Attempt) -> None:
        """Never raises an Exception, which would get lost in the executor, or end the loop without one."""
        self._metrics.workers(Operation.BINDING, 1)
        try:
            self._binding_cycle.run(attempt)
        except Exception as error:
            self._give_up(attempt, error)
        finally:
            self._metrics.workers(Operation.BINDING, -1)
            self._end_binding()

    def _give_up(self, attempt: Attempt, error: Exception) -> None:
        _log.error("the binding cycle of %s failed", attempt.pod.key, exc_info=error)
        try:
            self._binding_cycle.give_up(attempt, Status.from_error(error))
        except Exception:
            _log.exception("%s couldn't be given back", attempt.pod.key)

    def _end_binding(self) -> None:
        with self._binding_ended:
            self._bindings -= 1
            self._binding_ended.notify_all()

    def _await_binding(self) -> bool:
        """Wait until one of the binding cycles under way has ended; False if all that are left wait for permission."""
        with self._binding_ended:
            waiting = sum(
                waiting.poll() is None
                for framework in self.frameworks.values()
                for waiting in framework.waiting_pods
            )
            if self._bindings <= waiting:
                return False
            before = self._bindings
            while self._bindings >= before:
                self._binding_ended.wait()
            return True

    def _seconds_to_next_tick(self) -> float:
        deadlines = [
            deadline
            for framework in self.frameworks.values()
            for waiting in framework.waiting_pods
            if (deadline := waiting.deadline) is not None
        ]
        if (expiry := self.cache.next_expiry()) is not None:
            deadlines.append(expiry)
        return min(max(0.0, min(deadlines, default=math.inf) - self._clock.now()), _LONGEST_SLEEP)
