"""A scheduler on a cluster of its own that is never run: it answers questions about pods, one by one."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import TypeAlias

import attrs

from kschedfw.api.pod import Pod
from kschedfw.api.pod_groups import group_key
from kschedfw.cluster import RevertibleCluster, start_controllers
from kschedfw.explain import ExplainingScheduler, Explanation, GroupStep, gated
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import Diagnosis, FitError, NoNodesAvailableError
from kschedfw.framework.nodes.pod_info import PodInfo, QueuedPodInfo
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.status import Status
from kschedfw.scheduler.attempt import MemberRefusal
from kschedfw.scheduler.binding_cycle import as_fit_error
from kschedfw.scheduler.errors import SchedulingError
from kschedfw.scheduler.generic_scheduler import GenericScheduler
from kschedfw.scheduler.placement import Placement
from kschedfw.scheduler.queue.heap import in_order
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.what_if.checks import ConcurrentUseError, WhatIfError
from kschedfw.what_if.history import History, LostPlace
from kschedfw.what_if.results import Feasibility, Placed, PodResult, Refused, Waiting

_log = logging.getLogger(__name__)

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of pods done, and of all pods."""


class OneThread:
    """A guard that keeps a WhatIf to the thread that enters it for a block; that thread may enter it again.

    Other threads are refused at once. Waiting would not help: they would go on in the midst of this thread's
    transaction.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise ConcurrentUseError

    def __exit__(self, *_: object) -> None:
        self._lock.release()


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
        self.one_thread = OneThread()
        self.history = History(cluster, scheduler)
        self._algorithm = scheduler.algorithm
        # An algorithm of its own, whose searches don't move the node where the scheduler's next search begins.
        self._probe = GenericScheduler(scheduler.cache, scheduler.snapshot, random=chance, exhaustive=True)
        self._explainer = ExplainingScheduler(scheduler.algorithm, beyond=True)
        self._controllers = start_controllers(cluster, provision_observed=False)
        # What the controllers made of the objects as they were given belongs to the state that no transaction undoes.
        cluster.forget_log()
        for framework in scheduler.frameworks.values():
            _warn_of_plugins_that_cannot_undo(framework)

    def close(self) -> None:
        for controller in self._controllers:
            controller.close()
        self.scheduler.close()

    @contextmanager
    def in_cluster(self, pod: Pod) -> Iterator[Pod]:
        """Yield the pod as plugins would find it: in the cluster for this block, if controllers make claims for it."""
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
        """Return where the pod fits: all nodes are looked at, even if a scheduler would sample."""
        framework = self.scheduler.frameworks.get(pod.spec.scheduler_name)
        if framework is None:
            return Feasibility(pod, Diagnosis(), self._no_profile(pod), None)
        self.history.forget_attempts()
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
        self.history.forget_attempts()
        return self._explain(pod)

    def _explain(self, pod: Pod) -> Explanation:
        framework = self.scheduler.frameworks.get(pod.spec.scheduler_name)
        if framework is None:
            raise WhatIfError(self._no_profile(pod))
        with self.in_cluster(pod) as present:
            return self._explainer.explain(framework, present)

    def explain_after(self, pods: Iterable[Pod], pod: Pod, *, preempt: bool) -> Explanation:
        """Return the decision on the pod after the given pods, and why. Their places stay taken."""
        self.history.forget_attempts()
        group = self._group_of(pod)
        with self._algorithm.trial():
            before = list(pods)
            # Its own group's members one by one: without the pod they may be fewer than their group needs, and would
            # be refused together.
            own = [each for each in before if group and self._group_of(each) == group]
            self._place_each([each for each in before if each not in own], preempt=preempt, lost={})
            for each in own:
                self._place(self.present(each), preempt=preempt, lost={})
            return self._explain(self.present(pod))

    def explain_group(self, before: Sequence[Pod], members: Sequence[Pod], *, preempt: bool) -> GroupStep:
        """Return the decision on a group after the given pods, and why. All places stay taken."""
        self.history.forget_attempts()
        first = members[0]
        cycle = self.scheduler.group_cycle
        if cycle is None or not self._group_of(first):
            raise WhatIfError(f"pod {first.key} isn't scheduled together with others")
        found: list[Explanation] = []
        with self._algorithm.trial():
            self._place_each(before, preempt=preempt, lost={})
            cycle.observer = self._explainer.groups(found.append, placed=False)
            try:
                self._place_group(members, preempt=preempt, lost={})
            finally:
                cycle.observer = None
        if not found:
            # Gates hold all members back.
            framework = self.scheduler.frameworks[first.spec.scheduler_name]
            found.append(gated(framework, first, framework.run_pre_enqueue_plugins(first)))
        step = found[-1].group
        assert step is not None
        return step

    def pods_on(self, node_name: str) -> Sequence[Pod]:
        """Return the pods on the node, placed ones included."""
        snapshot = self.scheduler.snapshot
        self.scheduler.cache.update_snapshot(snapshot)
        info = snapshot.find(node_name)
        return () if info is None else tuple(each.pod for each in info.pods)

    def place_all(
        self, pods: Sequence[Pod], *, preempt: bool, progress: Progress | None = None
    ) -> Sequence[PodResult]:
        """Give each of the cluster's pods a place, in their order. Return the final outcome for each.

        Members of a PodGroup are placed together, in the turn of the first.
        """
        self.history.forget_attempts()
        lost: dict[str, Refused] = {}
        with self._algorithm.trial():
            outcomes = self._place_each(pods, preempt=preempt, lost=lost, progress=progress)
        return self.as_of_now(
            [
                attrs.evolve(lost[each.pod.uid], victims=each.victims) if each.pod.uid in lost else each
                for each in outcomes
            ]
        )

    def as_of_now(self, outcomes: Iterable[PodResult]) -> Sequence[PodResult]:
        """Return the outcomes as they are now.

        Later operations may have allowed a pod that waited for permission, or taken a pod's place.
        """
        return [self._as_of_now(each) for each in outcomes]

    def all_waiting(self) -> Iterator[Waiting]:
        """Yield the pods that have a place and wait for permission, in the order in which they began to."""
        for waiting in self.scheduler.waiting_pods:
            placement = self.history.held.get(waiting.pod.uid)
            if placement is not None and (found := self._waiting(placement)) is not None:
                yield found

    def _waiting(self, placement: Placement, victims: Sequence[Pod] = ()) -> Waiting | None:
        """Return the wait for permission of the pod with this place; None if it doesn't wait."""
        held = self.scheduler.waiting_pods.get(placement.pod.uid)
        if held is None or held.poll() is not None:
            return None
        pod, plugins = placement.attempt.pod, held.pending_plugins
        return Waiting(pod, placement.node_name, plugins, ", ".join(held.reasons), tuple(victims))

    def _as_of_now(self, outcome: PodResult) -> PodResult:
        if isinstance(outcome, Refused):
            return outcome
        placement = self.history.held.get(outcome.pod.uid)
        if placement is None:
            return Refused(outcome.pod, f"it has lost its place on node {outcome.node_name}", Diagnosis())
        waiting = self._waiting(placement, outcome.victims)
        return waiting or Placed(outcome.pod, outcome.node_name, outcome.victims)

    def present(self, pod: Pod) -> Pod:
        """Return the pod as it is in the cluster now, with claims and a nomination that were written to its status."""
        return self.cluster.get(Pod, pod.key) or pod

    def in_queue_order(self, pods: Iterable[Pod]) -> Sequence[Pod]:
        """Return the order in which a scheduler that has just started would take these pods from its queue."""
        infos = [QueuedPodInfo(PodInfo.of(pod), sequence=number) for number, pod in enumerate(pods)]
        # Any profile's: all have the same queue sort plugin, since they share a queue.
        less = next(iter(self.scheduler.frameworks.values())).less
        return [info.pod for info in in_order(infos, less)]

    def _place_each(
        self,
        pods: Sequence[Pod],
        *,
        preempt: bool,
        lost: dict[str, Refused],
        progress: Progress | None = None,
    ) -> Sequence[Placed | Refused]:
        members: defaultdict[str, list[Pod]] = defaultdict(list)
        for pod in pods:
            members[self._group_of(pod)].append(pod)
        outcomes: list[Placed | Refused] = []
        for pod in pods:
            group = self._group_of(pod)
            if not group:
                outcomes.append(self._place(self.present(pod), preempt=preempt, lost=lost))
            elif group in members:
                outcomes += self._place_group(members.pop(group), preempt=preempt, lost=lost)
            if progress is not None:
                progress(len(outcomes), len(pods))
        return outcomes

    def _group_of(self, pod: Pod) -> str:
        """Return the key of the pod's PodGroup; empty without one, or if groups aren't scheduled together."""
        is_known = (
            self.scheduler.group_cycle is not None and pod.spec.scheduler_name in self.scheduler.frameworks
        )
        return group_key(pod) if is_known else ""

    def _place_group(
        self, pods: Sequence[Pod], *, preempt: bool, lost: dict[str, Refused]
    ) -> Sequence[Placed | Refused]:
        """Attempt to place the members of a group, and again the members for which a preemption made room."""
        ends: dict[str, Placed | Refused] = {}
        victims: tuple[Pod, ...] = ()
        left = pods
        # A further round needs pods that have made room, so there is a last one.
        while left:
            begin = self.cluster.position
            found = self.scheduler.place_group([self.present(pod) for pod in left], preempt=preempt)
            for placement in found.placements:
                self.history.take(placement)
                pod = placement.attempt.pod
                ends[pod.uid] = Placed(pod, placement.node_name, victims)
            gone = self._note_lost(lost)
            if preempt:
                gone += [*self.cluster.deleted_since(begin, Pod), *self._note_preempted(lost)]
            victims += tuple(gone)
            left = [pod for pod in left if pod.uid in found.refused]
            if not gone:
                ends |= {pod.uid: _refused_with_group(pod, found.refused[pod.uid], victims) for pod in left}
                break
        return [ends[pod.uid] for pod in pods if pod.uid in ends]

    def _place(self, pod: Pod, *, preempt: bool, lost: dict[str, Refused]) -> Placed | Refused:
        """Attempt to place the pod, and again if that has made room.

        `lost` gets the pods that lose their places for it, by uid.
        """
        if pod.spec.scheduler_name not in self.scheduler.frameworks:
            return Refused(pod, self._no_profile(pod), Diagnosis())
        victims: list[Pod] = []
        while True:
            begin = self.cluster.position
            try:
                placement = self.scheduler.place(pod, preempt=preempt)
            except FitError as error:
                found = self._note_lost(lost)
                if preempt:
                    found += [*self.cluster.deleted_since(begin, Pod), *self._note_preempted(lost)]
                if not found:
                    return Refused(pod, str(error), error.diagnosis, victims=tuple(victims))
                victims += found
                # The present pod: the preemption has nominated it, and there is room now.
                pod = self.present(pod)
                continue
            except NoNodesAvailableError as error:
                return Refused(pod, str(error), Diagnosis(), victims=tuple(victims))
            except SchedulingError as error:
                # The failure of a plugin is no answer to the question.
                if not error.status.is_rejected:
                    raise
                diagnosis = Diagnosis()
                diagnosis.add_plugin_status(error.status)
                return Refused(pod, str(error), diagnosis, victims=tuple(victims))
            self.history.take(placement)
            self._note_lost(lost)
            return Placed(pod, placement.node_name, tuple(victims))

    def _note_lost(self, lost: dict[str, Refused]) -> list[Pod]:
        """Record the pods that lost their places while they waited for permission.

        Return the preempted ones of them.
        """
        victims = []
        for ended in self.history.give_up_refused():
            pod = ended.placement.attempt.pod
            lost[pod.uid] = _refused_after_all(ended)
            # A preemption ends a wait with an error, since it says nothing about the pod.
            if not ended.status.is_rejected:
                victims.append(pod)
        return victims

    def _note_preempted(self, lost: dict[str, Refused]) -> Iterator[Pod]:
        for placement in self.history.note_preempted():
            pod = placement.attempt.pod
            lost[pod.uid] = Refused(pod, placement.preempted or "", Diagnosis())
            yield pod

    def _no_profile(self, pod: Pod) -> str:
        known = ", ".join(map(repr, self.scheduler.frameworks))
        return f"no profile has the scheduler name {pod.spec.scheduler_name!r}; there is {known}"


def _needs_claims(pod: Pod) -> bool:
    """Tell whether controllers make claims for the pod as soon as it exists."""
    return any(volume.ephemeral for volume in pod.spec.volumes) or any(
        claim.resource_claim_template_name for claim in pod.spec.resource_claims
    )


def _refused_after_all(ended: LostPlace) -> Refused:
    """Return the outcome of a pod that had a place, in the words that its binding cycle would have written."""
    attempt, status = ended.placement.attempt, ended.status
    error = as_fit_error(attempt, ended.placement.node_name, status).error
    if status.is_rejected and isinstance(error, FitError):
        return Refused(attempt.pod, str(error), error.diagnosis, ended.placement.node_name)
    return Refused(attempt.pod, status.message, Diagnosis())


def _refused_with_group(pod: Pod, refusal: MemberRefusal, victims: tuple[Pod, ...]) -> Refused:
    """Return the outcome of a member whose group isn't placed, or of one that isn't needed and fits nowhere."""
    error = refusal.status.error
    if isinstance(error, FitError):
        return Refused(pod, str(error), error.diagnosis, refusal.node_name, victims)
    if not refusal.status.is_rejected:
        raise SchedulingError(refusal.status)
    return Refused(pod, refusal.status.message, Diagnosis(), refusal.node_name, victims)


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
