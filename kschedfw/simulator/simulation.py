"""Schedules the pending pods of a cluster one after another, and keeps account."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import attrs

from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod, PodCondition
from kschedfw.cluster import Cluster, ClusterError
from kschedfw.config import default_profile
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import FitError, NoNodesAvailableError
from kschedfw.framework.framework import Framework
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.pod_info import PodInfo, QueuedPodInfo
from kschedfw.framework.profile import Profile
from kschedfw.framework.registry import Registry
from kschedfw.framework.snapshot import Snapshot
from kschedfw.framework.status import Status
from kschedfw.scheduler import Cache, CacheError, GenericScheduler, Nominator, ScheduleResult, SchedulingError
from kschedfw.simulator.decision import Decision, Outcome
from kschedfw.simulator.report import Report, Spread, reasons, utilisation
from kschedfw.simulator.state import CacheFeed, PendingPods, VirtualClock

Progress = Callable[[int, int], None]
"""Called with the number of pods done and to do."""


@attrs.frozen
class _Reserved:
    """A pod that has its place (and carries its name) but isn't bound yet."""

    pod: Pod
    state: CycleState
    result: ScheduleResult


class Simulation:
    """One pass over the pending pods of a cluster.

    Pods are taken in the order of the profile's queue sort (by default by priority), then in the order in which the
    cluster lists them. Each gets one scheduling cycle and, if it fits, is bound on the cluster before the next one's
    turn; one that fits nowhere isn't tried again, and nothing is preempted. A pod that a permit plugin holds back keeps
    its place while later pods are tried, and gives it up in the end.

    Time within the simulation stands still, and chance comes from `seed`: the same input gives the same
    decisions. `clock` is read for `Report.elapsed` alone, in seconds. `notes` are passed on to the report.

    Raises ProfileError or PluginError where the profile can't run.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        profile: Profile | None = None,
        registry: Registry | None = None,
        seed: int = 0,
        percentage_of_nodes_to_score: int = 0,
        parallelism: int = 16,
        clock: Callable[[], float] = lambda: 0.0,
        notes: Sequence[str] = (),
    ) -> None:
        self.cluster = cluster
        self.profile = default_profile() if profile is None else profile
        self.seed = seed
        self.decisions: list[Decision] = []
        self._clock = clock
        self._notes = tuple(notes)
        snapshot, chance = Snapshot(), random.Random(seed)
        self._nominator = Nominator()
        self.framework = Framework(
            Registry() if registry is None else registry,
            self.profile,
            cluster=cluster,
            snapshot=snapshot,
            nominator=self._nominator,
            clock=VirtualClock(),
            random=chance,
            parallelizer=Parallelizer(parallelism),
        )
        self._cache = Cache()
        self._scheduler = GenericScheduler(
            self._cache, snapshot, random=chance, percentage_of_nodes_to_score=percentage_of_nodes_to_score
        )
        self._feed = CacheFeed(cluster, self._cache)
        self._found = PendingPods.of(cluster, self.profile.scheduler_name)
        for pod in self._found.pending:
            self._nominator.add(PodInfo.of(pod))
        self._waiting: list[_Reserved] = []

    def run(self, progress: Progress | None = None) -> Report:
        """Schedule all pods and report. Ctrl-C ends it early; the report then covers what was done."""
        interrupted = False
        start = self._clock()
        try:
            for _ in self.decide(progress):
                pass
        except KeyboardInterrupt:
            interrupted = True
            self._settle_interrupted()
        elapsed = self._clock() - start
        self.framework.close()
        self._feed.close()
        return self._report(elapsed, interrupted)

    def decide(self, progress: Progress | None = None) -> Iterator[Decision]:
        """The decisions, one by one, each when it has been carried out. They are kept in `decisions`, too."""
        queue = self._sorted(self._found.pending)
        for pod in queue:
            yield from self._keep(self._try(pod))
            yield from self._keep(*self._finish_waiting())
            if progress is not None:
                progress(len(self.decisions), len(queue))
        yield from self._keep(*self._finish_waiting(give_up=True))
        if progress is not None:
            progress(len(self.decisions), len(queue))

    # --- one pod ---

    def _try(self, pod: Pod) -> Decision | None:
        """One scheduling cycle; None where a permit plugin holds the pod back."""
        gate = self.framework.run_pre_enqueue_plugins(pod)
        if not gate.is_success:
            return _refused(pod, gate, Outcome.GATED)
        state = CycleState()
        try:
            result = self._scheduler.schedule(self.framework, state, pod)
        except FitError as error:
            return self._unschedulable(pod, error)
        except NoNodesAvailableError as error:
            self._tell(pod, "Unschedulable", str(error))
            return Decision(
                pod.key, Outcome.UNSCHEDULABLE, message=str(error), reasons=FrozenDict({str(error): 0})
            )
        except SchedulingError as error:  # a broken plugin: this pod's attempt fails, the next one's may not
            self._tell(pod, "SchedulerError", str(error))
            return Decision(pod.key, Outcome.FAILED, message=str(error), reasons=FrozenDict({str(error): 0}))
        node_name = result.suggested_host
        assumed = pod.bound_to(node_name)
        self._cache.assume_pod(assumed)
        self._nominator.delete(pod)
        reserved = _Reserved(assumed, state, result)
        status = self.framework.run_reserve_plugins_reserve(state, assumed, node_name)
        if status.is_success:
            status = self.framework.run_permit_plugins(state, assumed, node_name)
            if status.is_wait:
                self._waiting.append(reserved)
                return None
        return self._bind(reserved) if status.is_success else self._give_up(reserved, status)

    def _bind(self, reserved: _Reserved) -> Decision:
        pod, state, node_name = reserved.pod, reserved.state, reserved.result.suggested_host
        status = self.framework.run_pre_bind_plugins(state, pod, node_name)
        if status.is_success:
            status = self.framework.run_bind_plugins(state, pod, node_name)
            if status.is_skip:
                status = Status.from_error("no bind plugin was willing to bind the pod")
        if not status.is_success:
            return self._give_up(reserved, status)
        self.framework.run_post_bind_plugins(state, pod, node_name)
        self.cluster.record_event(
            pod, "Normal", "Scheduled", f"Successfully assigned {pod.key} to {node_name}"
        )
        return _placed(reserved)

    def _give_up(self, reserved: _Reserved, status: Status) -> Decision:
        self.framework.run_reserve_plugins_unreserve(
            reserved.state, reserved.pod, reserved.result.suggested_host
        )
        with suppress(CacheError):  # a plugin may have deleted the pod
            self._cache.forget_pod(reserved.pod)
        self._tell(reserved.pod, "Unschedulable" if status.is_rejected else "SchedulerError", status.message)
        outcome = Outcome.UNSCHEDULABLE if status.is_rejected else Outcome.FAILED
        return _refused(reserved.pod, status, outcome, reserved.result)

    def _finish_waiting(self, *, give_up: bool = False) -> Iterator[Decision]:
        """Go on with the pods whose wait is over; with `give_up`, with all of them."""
        waiting, self._waiting = self._waiting, []
        for reserved in waiting:
            held = self.framework.waiting_pods.get(reserved.pod.uid)
            if held is not None and held.poll() is None:
                if not give_up:
                    self._waiting.append(reserved)
                    continue
                plugin = held.pending_plugins[0]
                held.reject(plugin, f"still waiting for plugin {plugin} when all pods had been tried")
            status = self.framework.wait_on_permit(reserved.pod)
            yield self._bind(reserved) if status.is_success else self._give_up(reserved, status)

    def _unschedulable(self, pod: Pod, error: FitError) -> Decision:
        self._tell(pod, "Unschedulable", str(error))
        return Decision(
            pod.key,
            Outcome.UNSCHEDULABLE,
            message=str(error),
            evaluated=error.number_of_nodes,
            reasons=FrozenDict(error.diagnosis.reasons(error.number_of_nodes)),
        )

    def _tell(self, pod: Pod, reason: str, message: str) -> None:
        """Say on the cluster why the pod isn't scheduled, as kube-scheduler does."""
        self.cluster.record_event(pod, "Warning", "FailedScheduling", message)
        with suppress(ClusterError):  # a plugin may have deleted the pod
            self.cluster.patch_pod_status(
                pod, condition=PodCondition("PodScheduled", "False", reason, message)
            )

    # --- the whole ---

    def _keep(self, *decisions: Decision | None) -> Iterator[Decision]:
        for decision in decisions:
            if decision is not None:
                self.decisions.append(decision)
                yield decision

    def _sorted(self, pods: Sequence[Pod]) -> list[Pod]:
        less = self.framework.less
        queued = [QueuedPodInfo(PodInfo.of(pod), timestamp=float(turn)) for turn, pod in enumerate(pods)]
        queued.sort(key=functools.cmp_to_key(lambda a, b: -1 if less(a, b) else 1 if less(b, a) else 0))
        return [info.pod for info in queued]

    def _settle_interrupted(self) -> None:
        """Account for the pod that was just being bound: it is decided if its binding got through."""
        decided = {decision.pod for decision in self.decisions}
        for pod in self._found.pending:
            present = self.cluster.get(Pod, pod.key)
            if present is not None and present.node_name and pod.key not in decided:
                self.decisions.append(Decision(pod.key, Outcome.PLACED, node=present.node_name))

    def _report(self, elapsed: float, interrupted: bool) -> Report:
        # From the cluster, not from the cache, which an interruption may have caught between two steps.
        snapshot = Snapshot.of(
            self.cluster.list(Node), (pod for pod in self.cluster.list(Pod) if not pod.is_terminal)
        )
        outcomes = [decision.outcome for decision in self.decisions]
        found = self._found
        return Report(
            profile=self.profile.scheduler_name,
            seed=self.seed,
            nodes=len(snapshot),
            pods=len(found.pending),
            placed=outcomes.count(Outcome.PLACED),
            unschedulable=outcomes.count(Outcome.UNSCHEDULABLE),
            gated=outcomes.count(Outcome.GATED),
            failed=outcomes.count(Outcome.FAILED),
            left=len(found.pending) - len(outcomes),
            bound_before=found.bound,
            other_scheduler=found.other_scheduler,
            terminal=found.terminal,
            terminating=found.terminating,
            interrupted=interrupted,
            elapsed=elapsed,
            decisions=tuple(self.decisions),
            reasons=reasons(self.decisions),
            utilisation=utilisation(snapshot.node_infos),
            pods_per_node=Spread.of(len(info.pods) for info in snapshot.node_infos),
            notes=(*found.notes(), *self._notes),
        )


def _placed(reserved: _Reserved) -> Decision:
    result = reserved.result
    return Decision(
        reserved.pod.key,
        Outcome.PLACED,
        node=result.suggested_host,
        evaluated=result.evaluated_nodes,
        feasible=result.feasible_nodes,
    )


def _refused(pod: Pod, status: Status, outcome: Outcome, result: ScheduleResult | None = None) -> Decision:
    return Decision(
        pod.key,
        outcome,
        message=status.message,
        evaluated=0 if result is None else result.evaluated_nodes,
        feasible=0 if result is None else result.feasible_nodes,
        reasons=FrozenDict(dict.fromkeys(status.reasons, 0)),
    )
