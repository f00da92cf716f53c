"""The run of a scheduler on a cluster in virtual time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from random import Random
from typing import TYPE_CHECKING

from kschedfw.api.admission import RefusedPod
from kschedfw.api.frozendict import EMPTY
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.words import counted
from kschedfw.cluster import Cluster, Controller, InMemoryCluster, missing_objects, start_controllers
from kschedfw.config import SchedulerConfiguration, default_profile
from kschedfw.explain import Explaining, ExplainingScheduler, gated
from kschedfw.framework.extender import Extender
from kschedfw.framework.gates import DEFAULT_GATES, FeatureGates
from kschedfw.framework.metrics import PluginTally, PluginTimes
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.profile import Profile
from kschedfw.framework.runtime.registry import Registry
from kschedfw.scheduler.attempt import Attempt
from kschedfw.scheduler.bindings import InlineExecutor
from kschedfw.scheduler.extenders import close_extenders, make_extenders
from kschedfw.scheduler.generic_scheduler import GenericScheduler
from kschedfw.scheduler.queue.protocol import Place
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.scheduler.scheduling_cycle import Algorithm
from kschedfw.scheduler.select import HostSelector
from kschedfw.scheduler.setup import Setup
from kschedfw.simulator.arguments import check_attempt_time, check_types, setup_of
from kschedfw.simulator.arrivals import Arrivals
from kschedfw.simulator.decision import Decision, DecisionMaker, Outcome, with_causes
from kschedfw.simulator.failures import Failures
from kschedfw.simulator.ledger import (
    FRUITLESS_ATTEMPTS,
    UNMOVED_ATTEMPTS,
    Ledger,
    RecordingAlgorithm,
    RecordingGroups,
)
from kschedfw.simulator.report import Replay, Report, Spread, peaks, reasons, utilisation
from kschedfw.simulator.state import ComingsAndGoings, PendingPods, starting_clock
from kschedfw.simulator.timeline import Timeline

if TYPE_CHECKING:
    from kschedfw.scheduler.groups import GroupObserver

Progress = Callable[[int, int], None]
"""Called with the number of pods done and to do."""

_QUEUED = Place.ACTIVE, Place.BACKOFF


class Simulation:
    """The scheduling of a cluster's pending pods in virtual time, until no further progress is possible.

    The whole scheduler runs: pods go through its queue, are preempted, wait for permission, and are tried again
    after events that may help, after backoff, or at a time that a plugin has set. Virtual time begins at
    `start_time`: by default when the first pending pod arrived; if none has a time, when the first other object was
    created; else with the Unix epoch. An attempt takes `attempt_time` seconds, by default 0. When the scheduler is
    idle, time advances to the end of a backoff or of a wait for permission, to a time that a plugin has set, or to
    the next arrival or departure of a pod. The only controller is the one for volumes, in an InMemoryCluster: a
    preempted pod doesn't come back.

    It ends when no pod is active, backs off or waits, or when each such pod has been tried (or its gates have been
    checked, at times that a plugin has set) `FRUITLESS_ATTEMPTS` times since the cluster last changed, or
    `UNMOVED_ATTEMPTS` times since a pod last came, went or changed.
    Unschedulable pods aren't tried again only because they have waited for long.

    Without `arrivals` all pods are there from the start, and those that are placed stay. With `arrivals`, pods
    arrive and leave; the cluster must be an InMemoryCluster then. At the same time, pods leave before others arrive.

    With the gate GenericWorkload in `feature_gates`, groups of pods are scheduled together; each of a group's cycles
    counts as an attempt of each of its members.

    There is one profile per scheduler name; without `profiles`, kube-scheduler's default one. Pods for other
    schedulers are ignored. A `configuration` or `Setup` has profiles, extenders, percentage, backoffs and gates. For
    `extenders`, the percentage and the `selector` see `Scheduler`.

    All random numbers come from `seed`: the same input gives the same decisions. `clock` returns seconds, such as
    `time.perf_counter`; it is only used for `Report.elapsed`, `decisions_per_second` and, with `plugin_times`, the time
    of each plugin, which are 0 without it. `notes`, and pods that admission `refused`, are passed on to the report.

    Failures of plugins are collected during the run, and logged at its end: each distinct failure once, with how
    often it happened. Inside a `with Failures()` block they are collected there instead. Every failed attempt also
    records its event.

    Without `provision_observed`, claims that a cluster's own provisioner has left pending stay so (`VolumeController`).

    An `algorithm` is made from the scheduler's own one, and decides in its place; not together with `explaining`.
    `next_attempt` and `ledger` are for callers that make the attempts one by one, instead of `run`, and then call
    `close`.

    With `explaining`, each attempt is explained after it has ended, and pods without an attempt are explained at
    the end. A `timeline` records where the pods were and how long the queues were. Neither changes decisions.

    Raises:
        ProfileError, PluginError: a profile can't run.
        ArrivalsError: a pod's times aren't numbers, or the cluster isn't an InMemoryCluster.
        ValueError: `attempt_time` is negative or more than an hour, `start_time` has no time zone, or there are both an
            `algorithm` and `explaining`, or a `configuration` and what it has.
        TypeError: `cluster`, `configuration`, `profiles`, `arrivals` or `seed` has the wrong type; says which would be
            right.
    """

    def __init__(
        self,
        cluster: Cluster,
        configuration: SchedulerConfiguration | Setup | None = None,
        *,
        profiles: Sequence[Profile] | None = None,
        registry: Registry | None = None,
        arrivals: Arrivals | None = None,
        seed: int = 0,
        extenders: Sequence[Extender] = (),
        percentage_of_nodes_to_score: int = 0,
        selector: HostSelector | None = None,
        start_time: datetime | None = None,
        attempt_time: float = 0.0,
        parallelism: int = 16,
        clock: Callable[[], float] = lambda: 0.0,
        notes: Sequence[str] = (),
        refused: Sequence[RefusedPod] = (),
        explaining: Explaining | None = None,
        timeline: Timeline | None = None,
        algorithm: Callable[[GenericScheduler], Algorithm] | None = None,
        feature_gates: FeatureGates = DEFAULT_GATES,
        provision_observed: bool = True,
        plugin_times: bool = False,
        causes: bool = False,
    ) -> None:
        check_types(cluster, profiles, arrivals, seed)
        check_attempt_time(attempt_time)
        self._own_extenders: Sequence[Extender] = ()
        initial_backoff, max_backoff = 1.0, 10.0
        if configuration is not None:
            setup = setup_of(configuration, profiles, extenders, percentage_of_nodes_to_score, feature_gates)
            settings = setup.configuration
            profiles, feature_gates = setup.profiles, settings.gates
            extenders = self._own_extenders = make_extenders(settings.extenders)
            percentage_of_nodes_to_score = settings.percentage_of_nodes_to_score
            initial_backoff = settings.pod_initial_backoff_seconds
            max_backoff = settings.pod_max_backoff_seconds
            notes = (*notes, *setup.notes)
        if explaining is not None and algorithm is not None:
            raise ValueError("explaining: the decisions of an algorithm of one's own can't be explained")
        self.cluster = cluster
        default = (default_profile(feature_gates=feature_gates),)
        self.profiles = default if profiles is None else tuple(profiles)
        self.seed = seed
        self.decisions: list[Decision] = []
        self._clock = clock
        self._notes = tuple(notes)
        self._refused = tuple(refused)
        self._has_run = False
        # Both are about the input: before pods that arrive later are taken out, and before controllers make objects.
        self._missing = missing_objects(cluster)
        self._found = PendingPods.of(cluster, {profile.scheduler_name for profile in self.profiles})
        self._is_replay = arrivals is not None
        self._hopeful = ""
        """The last queued pod that was found not to be exhausted; asked first, so that seldom all are checked."""
        self._time = starting_clock(cluster, self._found.pending, start_time)
        self._comings = ComingsAndGoings(cluster, self._time)
        if arrivals is not None:
            # Before the scheduler watches, which must not meet pods that arrive later.
            self._comings.plan(arrivals, self._found.pending, seed)
            self._notes += tuple(arrivals.notes(self._found.pending))
        if isinstance(cluster, InMemoryCluster):
            self._comings.plan_ends()
        self._controllers: Sequence[Controller] = ()
        # They watch before the scheduler does: what they make of a change is there when the scheduler hears of it.
        if isinstance(cluster, InMemoryCluster):
            self._controllers = start_controllers(cluster, provision_observed=provision_observed)
        chance = Random(seed)
        self._tally = PluginTimes(clock) if plugin_times else PluginTally()
        self.ledger = Ledger(cluster, self._time, self._comings.note_bound, self._comings.has_ended)
        self.scheduler = Scheduler(
            cluster,
            self.profiles,
            registry=registry,
            clock=self._time,
            random=chance,
            # Bindings on this thread: with others, the order of events would differ from run to run.
            executor=InlineExecutor(),
            parallelizer=Parallelizer(parallelism),
            extenders=extenders,
            percentage_of_nodes_to_score=percentage_of_nodes_to_score,
            selector=selector,
            initial_backoff=initial_backoff,
            max_backoff=max_backoff,
            # A replay of months has to end: kube-scheduler's flush would try pods again every five minutes.
            unschedulable_timeout=math.inf,
            metrics=self._tally,
            feature_gates=feature_gates,
        )
        generic = self.scheduler.algorithm
        assert isinstance(generic, GenericScheduler)
        self._past = timeline
        self._explaining = explaining
        self._seeks_causes, self._generic = causes, generic
        self._explainer: ExplainingScheduler | None = None
        groups: GroupObserver | None = None
        decider: Algorithm = generic
        if explaining is not None:
            decider = self._explainer = ExplainingScheduler(
                generic,
                wanted=explaining.wanted,
                beyond=explaining.beyond,
                beyond_on=explaining.beyond_on,
                beside=self._tally.paused,
            )
            groups = self._explainer.groups(explaining.take)
        if self.scheduler.group_cycle is not None:
            self.scheduler.group_cycle.observer = RecordingGroups(
                self.ledger, self._time, attempt_time, groups
            )
        if algorithm is not None:
            decider = algorithm(generic)
        self.scheduler.algorithm = RecordingAlgorithm(decider, self.ledger, self._time, attempt_time)

    @property
    def virtual_time(self) -> float:
        """Virtual seconds since the start."""
        return self._time.elapsed

    def run(self, progress: Progress | None = None, until: Callable[[], bool] = lambda: False) -> Report:
        """Schedule all pods and report. Ctrl-C ends it early, and so does an attempt after which `until` is true.

        The report then covers the attempts made. A simulation runs only once.

        Raises:
            RuntimeError: it has been run before.
        """
        if self._has_run:
            raise RuntimeError("a Simulation is run once; make another one, of another cluster")
        self._has_run = True
        with ExitStack() as stack:
            stack.callback(close_extenders, self._own_extenders)
            if not Failures.are_collected():
                failures = Failures()
                stack.callback(failures.log)
                stack.enter_context(failures)
            return self._run(progress, until)

    def _run(self, progress: Progress | None, until: Callable[[], bool]) -> Report:
        interrupted = False
        stop_following = None if self._past is None else self._past.follow(self.cluster)
        self._end_step()
        start = self._clock()
        try:
            while (attempt := self.next_attempt()) is not None:
                self.scheduler.make_attempt(attempt)
                self._explain_attempt()
                self._end_step()
                if progress is not None:
                    progress(self.ledger.tried, len(self._found.pending))
                if until():
                    interrupted = True
                    break
        except KeyboardInterrupt:
            interrupted = True
        elapsed = self._clock() - start
        maker = DecisionMaker(self.scheduler, self.ledger, self._comings.stays, interrupted=interrupted)
        self.decisions = maker.of_all(self._found.pending)
        self._explain_gated()
        if not interrupted:
            if self._seeks_causes:
                frameworks = self.scheduler.frameworks
                with self._tally.paused():
                    self.decisions = [*with_causes(self.decisions, self.cluster, frameworks, self._generic)]
            self._notes += tuple(self._notes_on_the_end())
        if progress is not None and not interrupted:
            progress(len(self._found.pending), len(self._found.pending))
        if self._past is not None and stop_following is not None:
            self._past.end(self._time.elapsed, self.scheduler.queue.counts())
            stop_following()
        self._end(interrupted)
        return self._report(elapsed, interrupted)

    def _end_step(self) -> None:
        if self._past is not None:
            self._past.step(self._time.elapsed, self.scheduler.queue.counts())

    def _notes_on_the_end(self) -> Iterator[str]:
        """Yield notes on facts that the decisions alone don't show."""
        pods, queue = {pod.uid: pod.key for pod in self._found.pending}, self.scheduler.queue
        waiting = {pod.uid for place in (Place.ACTIVE, Place.BACKOFF) for pod in queue.pods_in(place)}
        waiting |= queue.wake_times().keys()
        failing = {each.pod for each in self.decisions if each.outcome is Outcome.FAILED}
        if keys := [key for uid, key in pods.items() if uid in waiting and key not in failing]:
            yield (
                f"{_some(keys)} still waited for a time, or for another attempt, when the simulation ended: while "
                f"nothing in the cluster changes, it doesn't try a pod more than {FRUITLESS_ATTEMPTS} times, and while "
                f"no pod comes or goes, not more than {UNMOVED_ATTEMPTS} times"
            )
        unschedulable = {each.pod for each in self.decisions if each.outcome is Outcome.UNSCHEDULABLE}
        failed = {
            key: error
            for uid, key in pods.items()
            if key in unschedulable and (error := self.ledger.entry(uid).failure) is not None
        }
        if failed:
            yield f"{_some(list(failed))} failed in an earlier attempt than the last one: {next(iter(failed.values()))}"

    def close(self) -> None:
        """End a simulation whose attempts were made one by one; `run` ends by itself."""
        close_extenders(self._own_extenders)
        self._end(interrupted=True)

    def _end(self, interrupted: bool) -> None:
        self.ledger.close()
        for controller in self._controllers:
            controller.close()
        if not interrupted:
            self.scheduler.close()
            return
        # The interruption may have come between two steps of a binding, for whose end `close` would wait.
        self.scheduler.events.close()
        for framework in self.scheduler.frameworks.values():
            framework.close()

    # --- time ---

    def next_attempt(self) -> Attempt | None:
        """Advance the time to the next attempt, for `scheduler.make_attempt`; return None at the simulation's end."""
        while True:
            # All that happens at this moment comes before the next attempt.
            self._comings.let_happen()
            self.scheduler.tick()
            if not self._is_exhausted() and (attempt := self.scheduler.begin_attempt()) is not None:
                return attempt
            due = self._next_time()
            if due is None:
                return None
            self._time.advance_to(due)
            for uid in self._due_by_time():
                # A check of gates is no attempt; uncounted, such checks could go on for ever.
                if self.scheduler.queue.place(uid) is Place.GATED:
                    self.ledger.count_fruitless(uid)

    def _explain_attempt(self) -> None:
        if self._explaining is None or self._explainer is None:
            return
        explanation = self._explainer.explanation()
        if explanation is not None:
            self._explaining.take(explanation)

    def _explain_gated(self) -> None:
        """Explain the gated pods that never had an attempt."""
        if self._explaining is None:
            return
        pods = {pod.key: pod for pod in self._found.pending}
        for decision in self.decisions:
            pod = pods[decision.pod]
            if decision.outcome is Outcome.GATED and self._explaining.wanted(pod):
                framework = self.scheduler.frameworks[pod.spec.scheduler_name]
                self._explaining.take(gated(framework, pod, framework.run_pre_enqueue_plugins(pod)))

    def _is_exhausted(self) -> bool:
        """Tell whether each pod that can be tried is given up until something changes."""
        if not self.ledger.has_given_up:
            return False
        queue = self.scheduler.queue
        if (
            self._hopeful
            and queue.place(self._hopeful) in _QUEUED
            and not self.ledger.is_given_up(self._hopeful)
        ):
            return False
        queued = [pod.uid for place in _QUEUED for pod in queue.pods_in(place)]
        self._hopeful = next((uid for uid in reversed(queued) if not self.ledger.is_given_up(uid)), "")
        return not self._hopeful and all(map(self.ledger.is_given_up, self._due_by_time()))

    def _due_by_time(self) -> Sequence[str]:
        """Return the uids of the pods whose time, set by a plugin, has come."""
        now = self._time.now()
        return [uid for uid, time in self.scheduler.queue.wake_times().items() if time <= now]

    def _next_time(self) -> float | None:
        """Return the virtual time of the next event; None if there is none."""
        times = [
            deadline for waiting in self.scheduler.waiting_pods if (deadline := waiting.deadline) is not None
        ]
        if (coming := self._comings.next_time) is not None:
            times.append(coming)
        queue = self.scheduler.queue
        if self._is_exhausted():
            times += [time for uid, time in queue.wake_times().items() if not self.ledger.is_given_up(uid)]
        elif (retry := queue.next_deadline()) is not None:
            times.append(retry)
        return min(times, default=None)

    # --- the report ---

    def _report(self, elapsed: float, interrupted: bool) -> Report:
        # From the cluster, not from the cache, which an interruption may have left between two steps.
        snapshot = Snapshot.of(
            self.cluster.list(Node), (pod for pod in self.cluster.list(Pod) if not pod.is_terminal)
        )
        outcomes = [decision.outcome for decision in self.decisions]
        found, ledger = self._found, self.ledger
        usages = utilisation(snapshot.node_infos)
        return Report(
            profile=", ".join(profile.scheduler_name for profile in self.profiles),
            seed=self.seed,
            nodes=len(snapshot),
            pods=len(found.pending),
            placed=outcomes.count(Outcome.PLACED),
            preempted=outcomes.count(Outcome.PREEMPTED),
            deleted=outcomes.count(Outcome.DELETED),
            unschedulable=outcomes.count(Outcome.UNSCHEDULABLE),
            gated=outcomes.count(Outcome.GATED),
            failed=outcomes.count(Outcome.FAILED),
            left=len(found.pending) - len(outcomes),
            bound_before=found.bound,
            other_scheduler=found.other_scheduler,
            terminal=found.terminal,
            terminating=found.terminating,
            tried=ledger.tried,
            attempts=ledger.attempts,
            preemptions=ledger.preemptions,
            victims=ledger.victims,
            interrupted=interrupted,
            elapsed=elapsed,
            decisions=tuple(self.decisions),
            reasons=reasons(self.decisions),
            utilisation=usages,
            pods_per_node=Spread.of(len(info.pods) for info in snapshot.node_infos),
            notes=self._notes,
            missing=self._missing,
            refused=self._refused,
            replay=Replay.of(ledger.last_change, ledger.departed, self.decisions, peaks(ledger.peak, usages))
            if self._is_replay
            else None,
            start=self._time.start,
            plugin_metrics=self._tally.series(),
            plugin_seconds=self._tally.seconds() if isinstance(self._tally, PluginTimes) else EMPTY,
        )


def _some(keys: Sequence[str]) -> str:
    """Return the number of pods, and a few of their names, as text."""
    names = ", ".join(keys[:3]) + (", …" if len(keys) > 3 else "")
    return f"{counted(len(keys), 'pod')} ({names})"
