"""Measures one case in this process.

The garbage collector runs as it does for users: enabled, with its default thresholds, and without frozen objects.
Garbage from building the objects is collected before the measurement.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from random import Random
from typing import Any

import attrs

from kschedfw import (
    Cache,
    CycleState,
    Evaluation,
    FitError,
    Framework,
    GenericScheduler,
    InMemoryCluster,
    Node,
    Pod,
    Registry,
    Scheduler,
    SchedulingError,
)
from kschedfw.scheduler import Place
from kschedfw_lab.bench.clock import SkippingClock, Timer
from kschedfw_lab.bench.derived_registry import DerivedRegistry
from kschedfw_lab.bench.forms import with_form
from kschedfw_lab.bench.laps import CallCount, Laps, Progress, garbage_collection
from kschedfw_lab.bench.memo import PluginUse, watch_plugins
from kschedfw_lab.bench.memory import peak_resident_bytes
from kschedfw_lab.bench.repeats import Listener
from kschedfw_lab.bench.results import GarbageCollection, Latency, Measurement, Part
from kschedfw_lab.bench.stage import ALL_NODES, AlgorithmStage, Case, Churn, Objects, in_cluster, scheduler_of
from kschedfw_lab.bench.workload import CHURN_INTERVAL

LISTENED_NODES, LISTENED_PODS = 50, 20
"""The numbers of nodes and pods in a run that only determines how often plugins repeat their answers."""

COUNTED_PODS = 9
"""The number of additional pods for whose attempts calls are counted. Counting would slow down the measured ones."""

TRIAL_PODS = 40
"""The number of additional pods that are tried before the clock runs: after 32, Numba is loaded."""

MOST_ATTEMPTS = 10
"""The average number of attempts per pod after which a workload is aborted."""


def measure(
    case: Case,
    timer: Timer,
    *,
    cpu_timer: Timer = time.process_time,
    registry: Registry | None = None,
    progress: Progress | None = None,
    between: Callable[[], None] | None = None,
) -> Measurement:
    """Run the case, and return the measurement.

    `timer` returns real time, `cpu_timer` the processor's time. `between` is called after each attempt and isn't timed.

    Raises:
        UnknownWorkloadError: there is no such workload.
        PluginError, ProfileError: the profile can't run.
        SchedulingError: a plugin failed.
        FormError: the plugin doesn't have the case's form.
    """
    registry = Registry() if registry is None else registry
    if case.form is not None:
        registry = with_form(registry, case.form)
    # A group's members come from the queue, so its algorithm can't run without the scheduler's cycle.
    run = _algorithm if case.part is Part.ALGORITHM and not case.members else _end_to_end
    measurement = run(case, Laps(case, timer, cpu_timer, progress, between), registry)
    measurement = attrs.evolve(measurement, peak_resident_bytes=peak_resident_bytes())
    if case.evaluation is not Evaluation.MEMO or case.form is not None:
        return measurement
    return attrs.evolve(measurement, plugins=_with_repeats(measurement.plugins, case, timer, registry))


def _with_repeats(
    uses: tuple[PluginUse, ...], case: Case, timer: Timer, registry: Registry
) -> tuple[PluginUse, ...]:
    """Return the uses with `repeated` set for plugins without promises.

    The repeated answers are counted in a small run of their own.
    """
    listener = Listener([use.plugin for use in uses if use.rows_asked and not use.promises])
    if not listener.answers:
        return uses
    small = attrs.evolve(
        case,
        nodes=min(case.nodes, LISTENED_NODES),
        initial_pods=0,
        pods=min(case.pods, LISTENED_PODS),
        part=Part.ALGORITHM,
        percentage=ALL_NODES,
        evaluation=Evaluation.SCALAR,
    )
    try:
        _algorithm(
            small,
            # Nobody reads the times of this run.
            Laps(small, timer, timer, None, None),
            DerivedRegistry(registry, listener.listened_to),
        )
    except SchedulingError:  # A plugin that fails gives no answers to compare.
        return uses
    shares = {name: answers.share for name, answers in listener.answers.items()}
    return tuple(attrs.evolve(use, repeated=shares.get(use.plugin)) for use in uses)


def _algorithm(case: Case, laps: Laps, registry: Registry) -> Measurement:
    timer = laps.timer
    objects = Objects.of(case)
    cluster = InMemoryCluster(objects.cluster)
    stage = AlgorithmStage.of(case, cluster, registry)
    fill(stage, cluster, in_cluster(cluster, objects.placed))
    started = timer()
    for index, pod in enumerate(in_cluster(cluster, objects.to_place)):
        if timer() - started < case.time_limit:
            place(stage, pod)
        else:
            stage.cache.add_pod(pod.bound_to(objects.node_name(index)))
    measured = in_cluster(cluster, objects.measured)
    _try_further(case, timer, cluster, stage.framework, stage.cache)
    churn = Churn(case.workload.churn, CHURN_INTERVAL)
    places: list[str] = []
    uses = watch_plugins(stage.framework, case.nodes)
    with garbage_collection(timer) as collected:
        for pod in measured:
            if laps.is_time_up:
                break
            for late in in_cluster(cluster, churn.due(laps.elapsed)):
                _attempt(stage, late, laps)
            places.append(_attempt(stage, pod, laps))
    # Before the calls are counted, since those attempts ask plugins, too.
    used = uses(len(laps.seconds))
    calls = [_calls(stage, pod) for pod in in_cluster(cluster, Objects.further(case, COUNTED_PODS))]
    stage.framework.close()
    measurement = _measurement(
        case,
        laps,
        collected(),
        used,
        finished=len(places),
        placed=sum(map(bool, places)),
    )
    return attrs.evolve(measurement, places=tuple(places), calls_per_pod=sorted(calls)[len(calls) // 2])


def _try_further(
    case: Case, timer: Timer, cluster: InMemoryCluster, framework: Framework, cache: Cache
) -> None:
    """Decide about pods like the measured ones without placing them, so that one-time work isn't measured.

    Not all workloads place pods before the measurement. The measured pods' places stay the same: these decisions draw
    from a generator of their own, and the objects that their pods need are deleted.
    """
    probe = GenericScheduler(
        cache, framework.parts.snapshot, random=Random(0), percentage_of_nodes_to_score=case.percentage
    )
    further = Objects.further(case, TRIAL_PODS)
    companions = [cluster.add(each) for each in further if not isinstance(each, Pod)]
    started = timer()
    for pod in further:
        if isinstance(pod, Pod) and timer() - started < case.time_limit:
            # The measured pods will show what fails.
            with suppress(FitError, SchedulingError):
                probe.schedule(framework, CycleState(), pod)
    for each in companions:
        cluster.delete(each)


def fill(stage: AlgorithmStage, cluster: InMemoryCluster, placed: Iterable[Pod]) -> None:
    """Add the cluster's nodes and these bound pods to the cache."""
    for node in cluster.list(Node):
        stage.cache.add_node(node)
    for pod in placed:
        stage.cache.add_pod(pod)


def _attempt(stage: AlgorithmStage, pod: Pod, laps: Laps) -> str:
    state = CycleState()
    laps.start()
    node_name = _place(stage, state, pod)
    laps.add(laps.stop())
    # After the lap: the algorithm ends when the pod is assumed.
    if node_name:
        _settle(stage, state, pod, node_name)
    return node_name


def _calls(stage: AlgorithmStage, pod: Pod) -> int:
    """Schedule and assume the pod. Return how many Python functions were called meanwhile."""
    state = CycleState()
    with CallCount() as count:
        node_name = _place(stage, state, pod)
    if node_name:
        _settle(stage, state, pod, node_name)
    return count.calls


def place(stage: AlgorithmStage, pod: Pod) -> str:
    """Schedule and assume the pod. Return its node's name; empty if it fits nowhere."""
    state = CycleState()
    node_name = _place(stage, state, pod)
    if node_name:
        _settle(stage, state, pod, node_name)
    return node_name


def _place(stage: AlgorithmStage, state: CycleState, pod: Pod) -> str:
    try:
        result = stage.scheduler.schedule(stage.framework, state, pod)
    except FitError:
        return ""
    stage.cache.assume_pod(pod.bound_to(result.suggested_host))
    return result.suggested_host


def _settle(stage: AlgorithmStage, state: CycleState, pod: Pod, node_name: str) -> None:
    """Bind the pod's reservations, such as devices, so that later pods find them taken."""
    framework = stage.framework
    for run in (
        framework.run_reserve_plugins_reserve,
        framework.run_pre_bind_pre_flights,
        framework.run_pre_bind_plugins,
    ):
        status = run(state, pod, node_name)
        # No plugin has anything to do before binding.
        if status.is_skip:
            return
        if not status.is_success:
            raise SchedulingError(status)


def _end_to_end(case: Case, laps: Laps, registry: Registry) -> Measurement:
    timer = laps.timer
    objects = Objects.of(case)
    cluster = InMemoryCluster((*objects.cluster, *objects.placed))
    to_place = in_cluster(cluster, objects.to_place)
    clock = SkippingClock(timer)
    scheduler = scheduler_of(case, cluster, registry, clock)
    started = timer()
    while timer() - started < case.time_limit and scheduler.schedule_one():
        pass
    for index, pod in enumerate(to_place):
        if scheduler.queue.place(pod.uid) is Place.ACTIVE:
            cluster.bind(pod, objects.node_name(index))
    started = timer()
    measured = in_cluster(cluster, objects.measured)
    create_seconds = timer() - started
    framework = scheduler.frameworks[case.profile.scheduler_name]
    # The first group of a workload of groups was placed before.
    if not case.members:
        _try_further(case, timer, cluster, framework, scheduler.cache)
    churn = Churn(case.workload.churn, CHURN_INTERVAL)
    uses = watch_plugins(framework, case.nodes)
    trials = GroupTrials(scheduler, laps) if case.part is Part.ALGORITHM else None
    with garbage_collection(timer) as collected:
        while not laps.is_time_up and len(laps.seconds) < MOST_ATTEMPTS * case.pods:
            for late in churn.due(laps.elapsed):
                cluster.add(late)
            if _attempt_next(scheduler, laps) if trials is None else trials.attempt():
                continue
            deadline = scheduler.queue.next_deadline()
            if deadline is None:
                break
            # Backoffs cost no real time.
            clock.skip_to(deadline)
    places = [_node_name(cluster, pod) for pod in measured]
    placed = sum(map(bool, places))
    given_up = sum(scheduler.queue.place(pod.uid) is Place.UNSCHEDULABLE for pod in measured)
    used = uses(len(laps.seconds))
    calls = None
    if trials is not None:
        further = in_cluster(cluster, Objects.further(case, case.members))
        calls = trials.calls() // len(further)
    scheduler.close()
    measurement = _measurement(
        case,
        laps,
        collected(),
        used,
        finished=placed + given_up,
        placed=placed,
        create_seconds=0.0 if trials is not None else create_seconds,
    )
    if trials is None:
        return measurement
    return attrs.evolve(measurement, places=tuple(places), calls_per_pod=calls)


def _attempt_next(scheduler: Scheduler, laps: Laps) -> bool:
    """Run one iteration of `Scheduler.run_until_idle`. Return False if no pod is active."""
    laps.start()
    scheduler.tick()
    tried = scheduler.schedule_one()
    took = laps.stop()
    if tried:
        laps.add(took)
    return tried


def _node_name(cluster: InMemoryCluster, pod: Pod) -> str:
    """Return the name of the pod's node; empty if it isn't bound."""
    present = cluster.get(Pod, pod.key)
    return "" if present is None else present.node_name


def _measurement(
    case: Case,
    laps: Laps,
    collected: GarbageCollection,
    plugins: tuple[PluginUse, ...],
    *,
    finished: int,
    placed: int,
    create_seconds: float = 0.0,
) -> Measurement:
    return Measurement(
        workload=case.workload.name,
        part=case.part,
        percentage=case.percentage,
        nodes=case.nodes,
        initial_pods=case.initial_pods,
        placement=case.placement,
        members=case.members,
        racks=case.racks,
        wanted=case.pods,
        finished=finished,
        placed=placed,
        attempts=len(laps.seconds),
        seconds=laps.elapsed,
        cpu_seconds=laps.cpu_elapsed,
        latency=Latency.of(laps.seconds),
        garbage_collection=collected,
        plugins=plugins,
        create_seconds=create_seconds,
    )


class GroupTrials:
    """Times the algorithm for a scheduler's groups: trying the members on each placement, and choosing one.

    Taking the members from the queue and binding them isn't timed.
    """

    def __init__(self, scheduler: Scheduler, laps: Laps) -> None:
        assert scheduler.group_cycle is not None
        algorithm = scheduler.group_cycle.algorithm
        self._scheduler = scheduler
        self._laps = laps
        self._run = algorithm.run
        self._taken = (0.0, 0.0)
        self._calls: CallCount | None = None
        algorithm.run = self._timed  # type: ignore[method-assign]  # with the same arguments

    def attempt(self) -> bool:
        """Schedule the next group, and count its trials as an attempt. Return False if no pod is active."""
        self._taken = (0.0, 0.0)
        self._scheduler.tick()
        tried = self._scheduler.schedule_one()
        if tried:
            self._laps.add(self._taken)
        return tried

    def calls(self) -> int:
        """Schedule the next group. Return the number of calls of Python functions in its trials."""
        self._calls = CallCount()
        self._scheduler.schedule_one()
        return self._calls.calls

    def _timed(self, *args: Any, **named: Any) -> Any:
        if self._calls is not None:
            with self._calls:
                return self._run(*args, **named)
        self._laps.start()
        try:
            return self._run(*args, **named)
        finally:
            # A group that preempts is tried several times.
            seconds, cpu_seconds = self._laps.stop()
            self._taken = self._taken[0] + seconds, self._taken[1] + cpu_seconds
