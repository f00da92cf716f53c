"""The choice of victims on one node: as few and as unimportant pods as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cmp_to_key

import attrs

from kschedfw.api.errors import KschedfwError
from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.extender import Victims
from kschedfw.framework.handle import PluginsRunner
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.preemption.budgets import DisruptionBudgets
from kschedfw.framework.status import Status

MoreImportant = Callable[[Pod, Pod], bool]
"""A function that tells whether the first pod is more important than the second; a strict weak order."""


class _TrialError(KschedfwError):
    """The failure of a plugin to update its state for a removed or added pod."""

    def __init__(self, status: Status) -> None:
        super().__init__(status)
        self.status = status


@attrs.frozen
class _Trial:
    """A copy of a node and of the cycle state, in which pods are removed and added again."""

    framework: PluginsRunner
    state: CycleState
    pod: Pod
    node_info: NodeInfo

    def remove(self, info: PodInfo) -> None:
        self.node_info.remove_pod(info.pod)
        status = self.framework.run_pre_filter_remove_pod(self.state, self.pod, info, self.node_info)
        if not status.is_success:
            raise _TrialError(status)

    def put_back(self, info: PodInfo) -> None:
        self.node_info.add_pod(info)
        status = self.framework.run_pre_filter_add_pod(self.state, self.pod, info, self.node_info)
        if not status.is_success:
            raise _TrialError(status)

    def verdict(self, *, other_pods_only: bool = False) -> Status:
        return self.framework.run_filter_plugins_with_nominated_pods(
            self.state, self.pod, self.node_info, other_pods_only=other_pods_only
        )

    def not_spared(self, infos: Sequence[PodInfo]) -> list[PodInfo]:
        """Reprieve pods one by one. Return the pods with which the preemptor no longer fits; they stay removed."""
        evicted = []
        for info in infos:
            self.put_back(info)
            # The node object passed in the first verdict and doesn't change, so only filters that read pods
            # are asked.
            if not self.verdict(other_pods_only=True).is_success:
                self.remove(info)
                evicted.append(info)
        return evicted


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
    trial = _Trial(framework, state, pod, node_info)
    try:
        for info in potential:
            trial.remove(info)
        verdict = trial.verdict()
        if not verdict.is_success:
            return verdict
        by_importance = _sorted(potential, more_important)
        violating, others = budgets.split(by_importance)
        evicted_violating = trial.not_spared(violating)
        evicted = {*evicted_violating, *trial.not_spared(others)}
    except _TrialError as error:
        return error.status
    victims = tuple(info.pod for info in by_importance if info in evicted)
    return Victims(victims, len(evicted_violating))


def _sorted(infos: Sequence[PodInfo], more_important: MoreImportant) -> list[PodInfo]:
    """Return the pods sorted by importance, the most important first. The sort is stable."""

    def compare(first: PodInfo, second: PodInfo) -> int:
        return more_important(second.pod, first.pod) - more_important(first.pod, second.pod)

    return sorted(infos, key=cmp_to_key(compare))
