"""A scheduler on a cluster of its own that is never run: it answers questions about pods, one by one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import TypeAlias

from kschedfw.api.pod import Pod
from kschedfw.cluster import ClaimController, RevertibleCluster, VolumeController
from kschedfw.explain import ExplainingScheduler, Explanation
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import Diagnosis, FitError, NoNodesAvailableError
from kschedfw.framework.nodes.pod_info import PodInfo, QueuedPodInfo
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.status import Status
from kschedfw.scheduler.errors import SchedulingError
from kschedfw.scheduler.generic_scheduler import GenericScheduler
from kschedfw.scheduler.queue.heap import in_order
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.what_if.errors import WhatIfError
from kschedfw.what_if.history import History
from kschedfw.what_if.results import Feasibility, Placed, Refused

_log = logging.getLogger(__name__)

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of pods done, and of all pods."""


class Engine:
    """The parts that transactions share. Every answer is that of a scheduler that has just started on this state."""

    def __init__(
        self,
        cluster: RevertibleCluster,
        scheduler: Scheduler,
        chance: Random,
    ) -> None:
        assert isinstance(scheduler.algorithm, GenericScheduler)
        self.cluster = cluster
        self.scheduler = scheduler
        self.history = History(cluster, scheduler.cache)
        self._algorithm = scheduler.algorithm
        self._probe = GenericScheduler(scheduler.cache, scheduler.snapshot, random=chance, exhaustive=True)
        self._explainer = ExplainingScheduler(scheduler.algorithm, beyond=True)
        self._controllers = VolumeController(cluster), ClaimController(cluster)
        cluster.forget_log()
        for framework in scheduler.frameworks.values():
            _warn_of_plugins_that_cannot_undo(framework)

    def close(self) -> None:
        for controller in self._controllers:
            controller.close()
        self.scheduler.close()

    @contextmanager
    def in_cluster(self, pod: Pod) -> Iterator[Pod]:
        """The pod as plugins would find it: for this block it is in the cluster if controllers make claims for it."""
        if self.cluster.get(Pod, pod.key) is not None or not _needs_claims(pod):
            yield pod
            return
        mark = self.history.mark()
        try:
            self.cluster.add(pod)
            yield self.present(pod)
        finally:
            self.history.revert(mark)

    def feasibility(self, pod: Pod) -> Feasibility:
        """Where the pod fits: all nodes, whatever part of them a scheduler would look at."""
        framework = self.scheduler.frameworks.get(pod.spec.scheduler_name)
        if framework is None:
            return Feasibility(pod, Diagnosis(), self._no_profile(pod), None)
        gate = framework.run_pre_enqueue_plugins(pod)
        if not gate.is_success:
            return _gated(pod, gate)
        snapshot = self.scheduler.snapshot
        self.scheduler.cache.update_snapshot(snapshot, pod)
        if not snapshot:
            return Feasibility(pod, Diagnosis(), str(NoNodesAvailableError()), None)
        feasible, diagnosis = self._probe.find_nodes_that_fit_pod(framework, CycleState(), pod)
        message = "" if len(feasible.rows) else str(FitError(pod, len(snapshot), diagnosis))
        return Feasibility(pod, diagnosis, message, feasible)

    def explain(self, pod: Pod) -> Explanation:
        framework = self.scheduler.frameworks.get(pod.spec.scheduler_name)
        if framework is None:
            raise WhatIfError(self._no_profile(pod))
        with self.in_cluster(pod) as present:
            return self._explainer.explain(framework, present)

    def explain_after(self, pods: Iterable[Pod], pod: Pod, *, preempt: bool) -> Explanation:
        """What would be decided on the pod after these, and why; it leaves their places taken."""
        with self._algorithm.trial():
            for each in pods:
                self._place(self.present(each), preempt=preempt)
            return self.explain(self.present(pod))

    def pods_on(self, node_name: str) -> Sequence[Pod]:
        """The pods on the node, placed ones included."""
        snapshot = self.scheduler.snapshot
        self.scheduler.cache.update_snapshot(snapshot)
        info = snapshot.find(node_name)
        return () if info is None else tuple(each.pod for each in info.pods)

    def place_all(
        self, pods: Sequence[Pod], *, preempt: bool, progress: Progress | None = None
    ) -> Sequence[Placed | Refused]:
        """Give each of the cluster's pods a place, in their order."""
        results: list[Placed | Refused] = []
        with self._algorithm.trial():
            for pod in pods:
                results.append(self._place(self.present(pod), preempt=preempt))
                if progress is not None:
                    progress(len(results), len(pods))
        return results

    def present(self, pod: Pod) -> Pod:
        """The pod as it is in the cluster: controllers write its claims into its status, preemption its node."""
        return self.cluster.get(Pod, pod.key) or pod

    def in_queue_order(self, pods: Iterable[Pod]) -> Sequence[Pod]:
        """The order in which a scheduler that has just started would take these pods from its queue."""
        infos = [QueuedPodInfo(PodInfo.of(pod), sequence=number) for number, pod in enumerate(pods)]
        less = next(iter(self.scheduler.frameworks.values())).less
        return [info.pod for info in in_order(infos, less)]

    def _place(self, pod: Pod, *, preempt: bool) -> Placed | Refused:
        if pod.spec.scheduler_name not in self.scheduler.frameworks:
            return Refused(pod, self._no_profile(pod), Diagnosis())
        victims: list[Pod] = []
        while True:
            begin = self.cluster.position
            try:
                placement = self.scheduler.place(pod, preempt=preempt)
            except FitError as error:
                lost = self._victims(begin) if preempt else []
                if not lost:
                    return Refused(pod, str(error), error.diagnosis)
                victims += lost
                pod = self.present(pod)  # there is room now
                continue
            except NoNodesAvailableError as error:
                return Refused(pod, str(error), Diagnosis())
            except SchedulingError as error:
                if not error.status.is_rejected:
                    raise
                diagnosis = Diagnosis()
                diagnosis.add_plugin_status(error.status)
                return Refused(pod, str(error), diagnosis)
            self.history.take(placement)
            return Placed(pod, placement.node_name, tuple(victims))

    def _victims(self, position: int) -> list[Pod]:
        """Who was preempted since then."""
        held = self.history.note_preempted()
        return [*self.cluster.deleted_since(position, Pod), *(each.attempt.pod for each in held)]

    def _no_profile(self, pod: Pod) -> str:
        known = ", ".join(map(repr, self.scheduler.frameworks))
        return f"no profile has the scheduler name {pod.spec.scheduler_name!r}; there is {known}"


def _needs_claims(pod: Pod) -> bool:
    """Whether controllers make claims for the pod as soon as it exists."""
    return any(volume.ephemeral for volume in pod.spec.volumes) or any(
        claim.resource_claim_template_name for claim in pod.spec.resource_claims
    )


def _gated(pod: Pod, gate: Status) -> Feasibility:
    if not gate.is_rejected:
        raise SchedulingError(gate)
    diagnosis = Diagnosis()
    diagnosis.add_plugin_status(gate)
    return Feasibility(pod, diagnosis, gate.message, None)


def _warn_of_plugins_that_cannot_undo(framework: Framework) -> None:
    for name, plugin in framework.plugins.items():
        if hasattr(plugin, "reserve") and not hasattr(plugin, "unreserve"):
            _log.warning(
                "plugin %s has reserve and no unreserve: what it reserves in a transaction stays reserved after it",
                name,
            )
