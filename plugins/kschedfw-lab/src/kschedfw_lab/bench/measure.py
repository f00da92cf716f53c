"""Measures one case in this process.

The garbage collector runs as it does for users: enabled, with its default thresholds, and without frozen objects.
Garbage from building the objects is collected before the measurement.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

import attrs

from kschedfw import (
    CycleState,
    Evaluation,
    FitError,
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
from kschedfw_lab.bench.memo import PluginUse, watch_plugins
from kschedfw_lab.bench.memory import peak_resident_bytes
from kschedfw_lab.bench.repeats import Listener
from kschedfw_lab.bench.results import GarbageCollection, Latency, Measurement, Part
from kschedfw_lab.bench.stage import ALL_NODES, AlgorithmStage, Case, Churn, Objects, in_cluster, scheduler_of
from kschedfw_lab.bench.workload import CHURN_INTERVAL

Progress = Callable[[int, int], None]
"""Called with the number of pods done and to do, every `PROGRESS_INTERVAL`."""

PROGRESS_INTERVAL = 0.1
"""Seconds between two such calls."""

LISTENED_NODES, LISTENED_PODS = 50, 20
"""How many are enough to hear whether a plugin repeats itself."""

COUNTED_PODS = 9
"""The number of pods after the measured ones in whose attempts calls are counted, which would take time."""

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

    `timer` gives real time, `cpu_timer` the processor's. `between` is called after each attempt, off the clocks.

    Raises:
        UnknownWorkloadError: there is no such workload.
        PluginError, ProfileError: the profile can't run.
        SchedulingError: a plugin failed.
        FormError: the plugin doesn't have the case's form.
    """
    registry = Registry() if registry is None else registry
    if case.form is not None:
        registry = with_form(registry, case.form)
    run = _algorithm if case.part is Part.ALGORITHM else _end_to_end
    measurement = run(case, _Laps(case, timer, cpu_timer, progress, between), registry)
    measurement = attrs.evolve(measurement, peak_resident_bytes=peak_resident_bytes())
    if case.evaluation is not Evaluation.MEMO or case.form is not None:
        return measurement
    return attrs.evolve(measurement, plugins=_with_repeats(measurement.plugins, case, timer, registry))


def _with_repeats(
    uses: tuple[PluginUse, ...], case: Case, timer: Timer, registry: Registry
) -> tuple[PluginUse, ...]:
    """The same, with how often those that promise nothing repeat themselves: in a small run of its own."""
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
            _Laps(small, timer, timer, None, None),
            DerivedRegistry(registry, listener.listened_to),
        )
    except SchedulingError:  # of a plugin that fails nothing can be said
        return uses
    shares = {name: answers.share for name, answers in listener.answers.items()}
    return tuple(attrs.evolve(use, repeated=shares.get(use.plugin)) for use in uses)


class _Laps:
    """The duration of each attempt."""

    def __init__(
        self,
        case: Case,
        timer: Timer,
        cpu_timer: Timer,
        progress: Progress | None,
        between: Callable[[], None] | None,
    ) -> None:
        self.timer = timer
        self.seconds: list[float] = []
        self.elapsed = 0.0
        self.cpu_elapsed = 0.0
        self._cpu_timer = cpu_timer
        self._case = case
        self._progress = progress
        self._between = between
        self._told = timer()
        self._started = self._cpu_started = 0.0

    @property
    def is_time_up(self) -> bool:
        return self.elapsed >= self._case.time_limit

    def start(self) -> None:
        """An attempt begins."""
        self._cpu_started = self._cpu_timer()
        self._started = self.timer()

    def stop(self) -> tuple[float, float]:
        """How long it took, and how long the processor was at work."""
        seconds = self.timer() - self._started
        return seconds, self._cpu_timer() - self._cpu_started

    def add(self, taken: tuple[float, float]) -> None:
        """Count an attempt that took so long."""
        seconds, cpu_seconds = taken
        self.seconds.append(seconds)
        self.elapsed += seconds
        self.cpu_elapsed += cpu_seconds
        if self._between is not None:
            self._between()
        if self._progress is not None and self.timer() - self._told >= PROGRESS_INTERVAL:
            self._told = self.timer()
            self._progress(min(len(self.seconds), self._case.pods), self._case.pods)


def _algorithm(case: Case, laps: _Laps, registry: Registry) -> Measurement:
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
    churn = Churn(case.workload.churn, CHURN_INTERVAL)
    places: list[str] = []
    uses = watch_plugins(stage.framework, case.nodes)
    with _garbage_collection(timer) as collected:
        for pod in measured:
            if laps.is_time_up:
                break
            for late in in_cluster(cluster, churn.due(laps.elapsed)):
                _attempt(stage, late, laps)
            places.append(_attempt(stage, pod, laps))
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


def fill(stage: AlgorithmStage, cluster: InMemoryCluster, placed: Iterable[Pod]) -> None:
    """Add the cluster's nodes and these bound pods to the cache."""
    for node in cluster.list(Node):
        stage.cache.add_node(node)
    for pod in placed:
        stage.cache.add_pod(pod)


def _attempt(stage: AlgorithmStage, pod: Pod, laps: _Laps) -> str:
    state = CycleState()
    laps.start()
    node_name = _place(stage, state, pod)
    laps.add(laps.stop())
    if node_name:
        _settle(stage, state, pod, node_name)
    return node_name


def _calls(stage: AlgorithmStage, pod: Pod) -> int:
    """Schedule and assume the pod. Return the number of calls of Python functions in between."""
    state, calls, before = CycleState(), 0, sys.getprofile()

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        node_name = _place(stage, state, pod)
    finally:
        sys.setprofile(before)
    if node_name:
        _settle(stage, state, pod, node_name)
    return calls


def place(stage: AlgorithmStage, pod: Pod) -> str:
    """Schedule and assume the pod, and return its node; empty if it fits nowhere."""
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
    """Bind the pod's reservations, such as devices, so that they are taken for the pods that follow."""
    framework = stage.framework
    for run in (
        framework.run_reserve_plugins_reserve,
        framework.run_pre_bind_pre_flights,
        framework.run_pre_bind_plugins,
    ):
        status = run(state, pod, node_name)
        if status.is_skip:
            return
        if not status.is_success:
            raise SchedulingError(status)


def _end_to_end(case: Case, laps: _Laps, registry: Registry) -> Measurement:
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
    churn = Churn(case.workload.churn, CHURN_INTERVAL)
    uses = watch_plugins(scheduler.frameworks[case.profile.scheduler_name], case.nodes)
    with _garbage_collection(timer) as collected:
        while not laps.is_time_up and len(laps.seconds) < MOST_ATTEMPTS * case.pods:
            for late in churn.due(laps.elapsed):
                cluster.add(late)
            if _attempt_next(scheduler, laps):
                continue
            deadline = scheduler.queue.next_deadline()
            if deadline is None:
                break
            clock.skip_to(deadline)
    placed = sum(_is_bound(cluster, pod) for pod in measured)
    given_up = sum(scheduler.queue.place(pod.uid) is Place.UNSCHEDULABLE for pod in measured)
    scheduler.close()
    return _measurement(
        case,
        laps,
        collected(),
        uses(len(laps.seconds)),
        finished=placed + given_up,
        placed=placed,
        create_seconds=create_seconds,
    )


def _attempt_next(scheduler: Scheduler, laps: _Laps) -> bool:
    """One iteration of `Scheduler.run_until_idle`; False if no pod is active."""
    laps.start()
    scheduler.tick()
    tried = scheduler.schedule_one()
    took = laps.stop()
    if tried:
        laps.add(took)
    return tried


def _is_bound(cluster: InMemoryCluster, pod: Pod) -> bool:
    present = cluster.get(Pod, pod.key)
    return present is not None and bool(present.node_name)


def _measurement(
    case: Case,
    laps: _Laps,
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


@contextmanager
def _garbage_collection(timer: Timer) -> Iterator[Callable[[], GarbageCollection]]:
    """Collect garbage, then watch the collector; returns a function that returns what was recorded."""
    collections, seconds, started = 0, 0.0, 0.0

    def watch(phase: str, _info: Mapping[str, int]) -> None:
        nonlocal collections, seconds, started
        if phase == "start":
            started = timer()
        else:
            collections += 1
            seconds += timer() - started

    gc.collect()
    gc.callbacks.append(watch)
    try:
        yield lambda: GarbageCollection(collections, seconds)
    finally:
        gc.callbacks.remove(watch)
