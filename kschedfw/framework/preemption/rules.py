"""The parts of preemption that a plugin may override, and the choice of victims on one node."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from kschedfw.api import KschedfwError, Pod, PreemptionPolicy, wrapped
from kschedfw.api.records import define, frozen
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.eviction import is_terminating_by_preemption
from kschedfw.framework.extender import Victims
from kschedfw.framework.handle import Handle, PluginsRunner
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.preemption.budgets import DisruptionBudgets
from kschedfw.framework.preemption.candidates import LEAST_HARM, ScoreFunction, start_time
from kschedfw.framework.preemption.go_sort import go_sorted
from kschedfw.framework.status import Code, Status

MoreImportant = Callable[[Pod, Pod], bool]
"""A function that tells whether the first pod is more important than the second."""


@define(eq=False)
class TrialError(KschedfwError):
    """The failure of a plugin to update its state for a removed or added pod."""

    status: Status


@frozen
class _NodeTrial:
    """A copy of a node and of the cycle state, in which pods are removed and added again."""

    framework: PluginsRunner
    state: CycleState
    pod: Pod
    node_info: NodeInfo

    def remove(self, info: PodInfo) -> None:
        self.node_info.remove_pod(info.pod)
        status = self.framework.run_pre_filter_remove_pod(self.state, self.pod, info, self.node_info)
        if not status.is_success:
            raise TrialError(status)

    def put_back(self, info: PodInfo) -> None:
        self.node_info.add_pod(info)
        status = self.framework.run_pre_filter_add_pod(self.state, self.pod, info, self.node_info)
        if not status.is_success:
            raise TrialError(status)

    def verdict(self, *, other_pods_only: bool = False) -> Status:
        return self.framework.run_filter_plugins_with_nominated_pods(
            self.state, self.pod, self.node_info, other_pods_only=other_pods_only
        )

    def spares(self, info: PodInfo) -> bool:
        """Put the pod back if the preemptor still passes. Return whether it does."""
        self.put_back(info)
        # The node object passed in the first verdict and doesn't change, so only filters that read pods are
        # asked.
        if self.verdict(other_pods_only=True).is_success:
            return True
        self.remove(info)
        return False


class _FreeAmounts:
    """The amounts that are free on a node without some of its pods.

    Additions of integers take a tenth of the time that it takes to change a NodeInfo and to ask a filter.
    """

    def __init__(
        self, node_info: NodeInfo, without: Sequence[PodInfo], wanted: tuple[int, int, int, int]
    ) -> None:
        """Make the room for a preemptor that wants CPU, memory, ephemeral storage and a number of pods."""
        there, taken = node_info.allocatable, node_info.requested
        cpu = there.milli_cpu - taken.milli_cpu
        memory = there.memory - taken.memory
        storage = there.ephemeral_storage - taken.ephemeral_storage
        for info in without:
            amounts = info.requests.amounts
            cpu += amounts.milli_cpu
            memory += amounts.memory
            storage += amounts.ephemeral_storage
        self._cpu, self._memory, self._storage = cpu, memory, storage
        self._pods = there.allowed_pod_number - len(node_info.pods) + len(without)
        self._wanted = wanted

    @property
    def suffices(self) -> bool:
        """Tell whether the preemptor fits."""
        return self._has(self._cpu, self._memory, self._storage, self._pods)

    def spares(self, info: PodInfo) -> bool:
        """Take the pod's amounts if the preemptor still fits. Return whether it does."""
        amounts = info.requests.amounts
        cpu, memory = self._cpu - amounts.milli_cpu, self._memory - amounts.memory
        storage, pods = self._storage - amounts.ephemeral_storage, self._pods - 1
        if not self._has(cpu, memory, storage, pods):
            return False
        self._cpu, self._memory, self._storage, self._pods = cpu, memory, storage, pods
        return True

    def _has(self, cpu: int, memory: int, storage: int, pods: int) -> bool:
        # `wrapped`: sums and differences of int64 overflow silently in kube-scheduler.
        wanted_cpu, wanted_memory, wanted_storage, wanted_pods = self._wanted
        return (
            wrapped(cpu) >= wanted_cpu
            and wrapped(memory) >= wanted_memory
            and wrapped(storage) >= wanted_storage
            and pods >= wanted_pods
        )


def select_victims(
    framework: PluginsRunner,
    state: CycleState,
    pod: Pod,
    node_info: NodeInfo,
    potential: Sequence[PodInfo],
    budgets: DisruptionBudgets,
    more_important: MoreImportant,
) -> Victims | Status:
    """Return the potential victims that must leave the node, or why the pod doesn't fit even without all of them.

    With all of them gone, the pod must pass the filters, nominated pods included. Then each victim is put back
    if the pod still passes: first those whose eviction violates a disruption budget, then the others, in either
    group the more important ones first. `state` and `node_info` are changed, so they have to be copies.

    Semantics: kube-scheduler DefaultPreemption `SelectVictimsOnNode`.
    """
    trial = _NodeTrial(framework, state, pod, node_info)
    try:
        for info in potential:
            trial.remove(info)
        verdict = trial.verdict()
        if not verdict.is_success:
            return verdict
        return _victims(potential, budgets, more_important, trial.spares)
    except TrialError as error:
        return error.status


def victims_for_room(
    framework: PluginsRunner,
    state: CycleState,
    pod: Pod,
    node_info: NodeInfo,
    potential: Sequence[PodInfo],
    budgets: DisruptionBudgets,
    more_important: MoreImportant,
) -> Victims | None:
    """Return what `select_victims` does, if the amounts on the node alone decide; None if filters must be asked.

    Nothing is changed, so neither the state nor the node has to be a copy.
    """
    wanted = framework.wanted_room(state, pod, node_info)
    if wanted is None:
        return None
    room = _FreeAmounts(node_info, potential, wanted)
    # Only the filters can say what is short.
    return _victims(potential, budgets, more_important, room.spares) if room.suffices else None


def _victims(
    potential: Sequence[PodInfo],
    budgets: DisruptionBudgets,
    more_important: MoreImportant,
    spares: Callable[[PodInfo], bool],
) -> Victims:
    """Return the pods that `spares` doesn't let come back; it is called for one after the other."""
    violating, others = budgets.split(_sorted(potential, more_important))
    # Pods whose eviction violates a budget come first: room is given back in this order, so they likely stay.
    evicted_violating = [info for info in violating if not spares(info)]
    evicted = [*evicted_violating, *[info for info in others if not spares(info)]]
    # kube-scheduler sorts again in this case only, and the sort isn't stable: another one might change who is
    # first among equals.
    if violating and others:
        evicted = _sorted(evicted, more_important)
    return Victims(tuple([info.pod for info in evicted]), len(evicted_violating))


def _sorted(infos: Sequence[PodInfo], more_important: MoreImportant) -> list[PodInfo]:
    return go_sorted(infos, lambda first, second: more_important(first.pod, second.pod))


DEFAULT_MIN_CANDIDATE_NODES_PERCENTAGE = 10
DEFAULT_MIN_CANDIDATE_NODES_ABSOLUTE = 100


class PreemptionRules:
    """The decisions of a preemption that may differ by plugin: victims, search effort, and preferred node.

    The methods here are DefaultPreemption's; another preemption plugin overrides some of them (kube-scheduler
    `preemption.Interface`, `IsEligiblePod`, `MoreImportantPod`). They are called in the scheduling cycle;
    `may_preempt`, `more_important`, `potential_victims` and `select_victims` from several threads at once.

    The dry run goes on until there are candidates for `min_candidate_nodes_percentage` (0–100) of the nodes
    where preemption may help, but at least `min_candidate_nodes_absolute`.
    """

    def __init__(
        self,
        handle: Handle,
        *,
        min_candidate_nodes_percentage: int = DEFAULT_MIN_CANDIDATE_NODES_PERCENTAGE,
        min_candidate_nodes_absolute: int = DEFAULT_MIN_CANDIDATE_NODES_ABSOLUTE,
    ) -> None:
        self.handle = handle
        self._percentage = min_candidate_nodes_percentage
        self._absolute = min_candidate_nodes_absolute

    @property
    def are_default(self) -> bool:
        """True if victims are selected by DefaultPreemption's own rules, so that dry runs' outcomes can be reused."""
        return all(
            getattr(type(self), name) is getattr(PreemptionRules, name)
            for name in ("may_preempt", "more_important", "potential_victims", "select_victims")
        )

    @property
    def select_default_victims(self) -> bool:
        """True if `select_victims` isn't overridden."""
        return type(self).select_victims is PreemptionRules.select_victims

    def objection(self, pod: Pod, nominated_node_status: Status) -> str:
        """Return the reason why the pod may not preempt now; empty if it may.

        While victims of an earlier preemption still terminate on its nominated node, the pod has to wait for
        them, unless the filters have ruled that node out by now (`nominated_node_status`).
        """
        if pod.spec.preemption_policy is PreemptionPolicy.NEVER:
            return "not eligible due to preemptionPolicy=Never."
        node_name = pod.status.nominated_node_name
        if not node_name or nominated_node_status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return ""
        if node_name in self.handle.snapshot:
            victims = self.potential_victims(pod, self.handle.snapshot.get(node_name))
            if any(is_terminating_by_preemption(info.pod) for info in victims):
                return "not eligible due to a terminating pod on the nominated node."
        return ""

    def may_preempt(self, pod: Pod, victim: PodInfo, node_info: NodeInfo) -> bool:  # noqa: ARG002  # for overriding
        """Return whether the pod may have the victim evicted from the node: if the victim's priority is lower.

        An override should go on allowing that for system pods, or they may find no room.
        """
        return victim.pod.priority < pod.priority

    def more_important(self, first: Pod, second: Pod) -> bool:
        """Return whether `first` is more important: it has the higher priority or, if equal, has run longer.

        Of two pods that haven't started, each is more important than the other: kube-scheduler takes the present for
        the start, and reads the clock twice. An override must be a strict weak order otherwise. Victims are sorted by
        it, and score functions rely on the first one having the highest priority.
        """
        if first.priority != second.priority:
            return first.priority > second.priority
        one, other = start_time(first), start_time(second)
        return one < other or one == other == math.inf

    def by_importance(self, infos: Sequence[PodInfo]) -> list[PodInfo]:
        """Return the pods sorted as kube-scheduler sorts them by `more_important`, the most important first."""
        return _sorted(infos, self.more_important)

    def potential_victims(self, pod: Pod, node_info: NodeInfo) -> Sequence[PodInfo]:
        """Return the pods on the node that may be evicted for this pod."""
        return [info for info in node_info.pods if self.may_preempt(pod, info, node_info)]

    def offset_and_num_candidates(self, num_nodes: int) -> tuple[int, int]:
        """Return the index of the first node to try, which is random, and the number of candidates that are enough."""
        wanted = max(num_nodes * self._percentage // 100, self._absolute)
        # The random start is kube-scheduler's: a dry run stops at enough candidates, and would otherwise evict from the
        # first nodes again and again.
        return self.handle.random.randrange(num_nodes), min(wanted, num_nodes)

    def select_victims(
        self,
        state: CycleState,
        pod: Pod,
        node_info: NodeInfo,
        potential: Sequence[PodInfo],
        budgets: DisruptionBudgets,
    ) -> Victims | Status:
        """Return the pods to evict (at least one of the potential victims), or why evicting them doesn't help.

        `state` and `node_info` are copies that may be changed.
        """
        framework = self.handle.framework
        return select_victims(framework, state, pod, node_info, potential, budgets, self.more_important)

    def score_functions(self) -> Sequence[ScoreFunction]:
        """Return the criteria for choosing among several candidates, the decisive one first."""
        return LEAST_HARM
