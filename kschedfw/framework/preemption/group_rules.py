"""The choice of victims on one node where groups may have to go as a whole (kube-scheduler v1.37)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kschedfw.api import Pod, PodGroup, group_key
from kschedfw.api.records import frozen
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.extender import Victims
from kschedfw.framework.groups import NO_MEMBERS
from kschedfw.framework.handle import PluginsRunner
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.preemption.budgets import DisruptionBudgets
from kschedfw.framework.preemption.go_sort import go_sorted
from kschedfw.framework.preemption.rules import PreemptionRules, TrialError
from kschedfw.framework.preemption.units import VictimUnit, is_evicted_whole, victim_units
from kschedfw.framework.status import Status


class GroupAwareRules(PreemptionRules):
    """DefaultPreemption's rules since v1.37 where pods are scheduled in groups.

    A group that is disrupted as a whole is one victim: all of its scheduled members go, those on other nodes as well.
    Each member counts with its group's priority.
    """

    def may_preempt(self, pod: Pod, victim: PodInfo, node_info: NodeInfo) -> bool:  # noqa: ARG002  # as in the base
        group = self._group_of(victim.pod)
        return (victim.pod if group is None else group).priority < pod.priority

    def select_victims(
        self,
        state: CycleState,
        pod: Pod,
        node_info: NodeInfo,
        potential: Sequence[PodInfo],
        budgets: DisruptionBudgets,
    ) -> Victims | Status:
        units = self._units(node_info, potential)
        trial = _UnitTrial(self.handle.framework, state, pod, node_info, self._nodes_of(units))
        try:
            for unit in units:
                trial.remove(unit)
            verdict = trial.verdict()
            if not verdict.is_success:
                return verdict
            ordered = go_sorted(units, _is_more_important)
            violations = budgets.violations([unit.pods for unit in ordered])
            counted = list(zip(ordered, violations, strict=True))
            # Units whose eviction violates a budget come first: room is given back in this order, so they likely stay.
            first = [each for each in counted if each[1]]
            then = [each for each in counted if not each[1]]
            evicted = [each for each in (*first, *then) if not trial.spares(each[0])]
        except TrialError as error:
            return error.status
        victims = [unit for unit, _ in evicted]
        if first and then:
            victims = go_sorted(victims, _is_more_important)
        pods = tuple(each for unit in victims for each in unit.pods)
        return Victims(pods, sum(number for _, number in evicted))

    def _units(self, node_info: NodeInfo, potential: Sequence[PodInfo]) -> Sequence[VictimUnit]:
        """Return the potential victims as units, in their order, with the members of groups that are on other nodes."""
        return victim_units(self._with_members(node_info, potential), self._find_group, by_group=True)

    def _with_members(self, node_info: NodeInfo, potential: Sequence[PodInfo]) -> Iterator[Sequence[PodInfo]]:
        yield potential
        keys = dict.fromkeys(group_key(info.pod) for info in potential if group_key(info.pod))
        for key in keys:
            if is_evicted_whole(self._find_group(key)):
                states = self.handle.groups.get(key) or NO_MEMBERS
                yield [
                    PodInfo.of(member)
                    for member in states.scheduled
                    if member.node_name != node_info.name and member.node_name in self.handle.snapshot
                ]

    def _nodes_of(self, units: Sequence[VictimUnit]) -> Mapping[str, NodeInfo]:
        names = {pod.node_name for unit in units for pod in unit.pods}
        return {name: self.handle.snapshot.get(name) for name in names}

    def _group_of(self, pod: Pod) -> PodGroup | None:
        key = group_key(pod)
        return self._find_group(key) if key else None

    def _find_group(self, key: str) -> PodGroup | None:
        return self.handle.cluster.get(PodGroup, key)


def _is_more_important(one: VictimUnit, other: VictimUnit) -> bool:
    return one.importance < other.importance


@frozen
class _UnitTrial:
    """A copy of a node and of the cycle state, in which units are removed and added again.

    Filters are asked about that node alone. So the other nodes of a unit stay as they are, and only what plugins keep
    in the state about their pods changes, as in kube-scheduler.
    """

    framework: PluginsRunner
    state: CycleState
    pod: Pod
    node_info: NodeInfo
    _others: Mapping[str, NodeInfo]

    def remove(self, unit: VictimUnit) -> None:
        for pod in unit.pods:
            if pod.node_name == self.node_info.name:
                self.node_info.remove_pod(pod)
            self._check(
                self.framework.run_pre_filter_remove_pod(
                    self.state, self.pod, PodInfo.of(pod), self._node_of(pod)
                )
            )

    def spares(self, unit: VictimUnit) -> bool:
        """Put the unit back if the preemptor still passes. Return whether it does."""
        for pod in unit.pods:
            info = PodInfo.of(pod)
            if pod.node_name == self.node_info.name:
                self.node_info.add_pod(info)
            self._check(self.framework.run_pre_filter_add_pod(self.state, self.pod, info, self._node_of(pod)))
        if self.verdict().is_success:
            return True
        self.remove(unit)
        return False

    def verdict(self) -> Status:
        return self.framework.run_filter_plugins_with_nominated_pods(self.state, self.pod, self.node_info)

    def _node_of(self, pod: Pod) -> NodeInfo:
        return self.node_info if pod.node_name == self.node_info.name else self._others[pod.node_name]

    @staticmethod
    def _check(status: Status) -> None:
        if not status.is_success:
            raise TrialError(status)
