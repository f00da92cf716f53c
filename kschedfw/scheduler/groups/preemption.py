"""Makes room for a whole group (kube-scheduler `podGroupEvaluator`; KEP-5710)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from kschedfw.api import Pod, PodDisruptionBudget, PodGroup, PreemptionPolicy
from kschedfw.api.records import frozen
from kschedfw.framework.eviction import Harm, Preemptor, is_terminating_by_preemption
from kschedfw.framework.gate_table import POD_GROUP_PREEMPTION_POLICY
from kschedfw.framework.gates import FeatureGates
from kschedfw.framework.groups import QueuedGroup
from kschedfw.framework.handle import Handle
from kschedfw.framework.metrics import EntityKind
from kschedfw.framework.preemption.budgets import DisruptionBudgets
from kschedfw.framework.preemption.units import VictimUnit, by_importance, victim_units
from kschedfw.framework.status import Code, Status
from kschedfw.framework.versions.v1_37 import FIRST_BUDGET, GROUP_POST_FILTER, PREEMPTION_METRICS
from kschedfw.scheduler.groups.in_place import ReprieveError, ReprieveInPlace
from kschedfw.scheduler.groups.trial import GroupResult, SnapshotTrial

PLUGIN = "DefaultPreemption"
"""The plugin without which no group preempts, and for which victims that wait at permit are rejected."""

_CLUSTER = "cluster"
"""The one domain of a group's preemption, where a pod's has a node."""


@frozen(eq=False)
class Reprieve:
    """The attempt to spare a unit: whether the group still fits with it, and where its members would go then."""

    unit: VictimUnit
    fits: bool
    result: GroupResult


@frozen(eq=False)
class GroupPreemption:
    """The result of looking for room, with its reasons. With success the `victims` are being evicted.

    `violations` has the number of pods of each unit that violate a budget, if it isn't 0. `nominations` are the nodes
    that members wait for, by uid: empty up to v1.36, where members wait for the nodes of the cycle itself. `is_ongoing`
    says that victims of an earlier preemption still have to go, so that there are no others.
    """

    status: Status
    potential: Sequence[VictimUnit] = ()
    all_removed: GroupResult | None = None
    violations: Mapping[VictimUnit, int] = attrs.field(factory=dict)
    reprieves: Sequence[Reprieve] = ()
    nominations: Mapping[str, str] = attrs.field(factory=dict)
    is_ongoing: bool = False

    @property
    def victims(self) -> Sequence[VictimUnit]:
        """The units that can't be spared, the most important first."""
        if self.is_ongoing or not self.status.is_success:
            return ()
        spared = {each.unit for each in self.reprieves if each.fits}
        return [unit for unit in self.potential if unit not in spared]

    @property
    def num_pdb_violations(self) -> int:
        """The number of victims whose eviction violates a disruption budget."""
        return sum(1 for unit in self.victims if unit in self.violations)

    @property
    def violating(self) -> Sequence[VictimUnit]:
        """The units whose eviction violates a disruption budget, the most important first."""
        return tuple(self.violations)


def plan_preemption(
    handle: Handle, group: QueuedGroup, try_group: Callable[[], GroupResult]
) -> GroupPreemption:
    """Find the units whose eviction makes room for the group, by trying it on the snapshot without them.

    `try_group` runs the group's algorithm, without making room. Nothing is evicted yet. Since v1.37 it runs once, and
    victims are spared while members keep the nodes that they got then.
    """
    in_place = handle.feature_gates.follows(GROUP_POST_FILTER)
    present = group.object
    if present is None:
        missing = f'podgroup.scheduling.k8s.io "{group.key.partition("/")[2]}" not found'
        return GroupPreemption(Status.from_error(f"failed to get pod group object: {missing}"))
    if present.topology_key and not in_place:
        text = "workload aware preemption is not supported for pod groups with scheduling constraints"
        return GroupPreemption(Status.unschedulable(text))
    if _never_preempts(handle.feature_gates, group.pods, present):
        return GroupPreemption(Status.unschedulable("not eligible due to preemptionPolicy=Never."))

    def find_group(key: str) -> PodGroup | None:
        return handle.cluster.get(PodGroup, key)

    units = victim_units((info.pods for info in handle.snapshot.node_infos), find_group, by_group=in_place)
    potential = [unit for unit in by_importance(units) if unit.priority < present.priority]
    if in_place and _waits_for_victims(handle, group.pods, potential):
        nominations = {pod.uid: pod.status.nominated_node_name for pod in group.pods}
        return GroupPreemption(
            _told("ongoing preemption on nominated nodes"),
            potential,
            nominations=nominations,
            is_ongoing=True,
        )
    begun = handle.clock.monotonic()
    plan = _evaluate(handle, potential, try_group, in_place=in_place)
    if handle.feature_gates.follows(PREEMPTION_METRICS):
        seconds = handle.clock.monotonic() - begun
        handle.metrics.preemption_evaluated(EntityKind.GROUP, plan.status.code, seconds)
    return plan


def _evaluate(
    handle: Handle, potential: Sequence[VictimUnit], try_group: Callable[[], GroupResult], *, in_place: bool
) -> GroupPreemption:
    if not potential:
        return GroupPreemption(Status.unresolvable("No preemption victims found for incoming preemptor"))
    trial = SnapshotTrial(handle.snapshot)
    try:
        return _plan(handle, potential, trial, try_group, in_place=in_place)
    finally:
        trial.undo()


def _plan(
    handle: Handle,
    potential: Sequence[VictimUnit],
    trial: SnapshotTrial,
    try_group: Callable[[], GroupResult],
    *,
    in_place: bool,
) -> GroupPreemption:
    for unit in potential:
        trial.remove(unit.pods)
    all_removed = try_group()
    if not all_removed.status.is_success:
        return GroupPreemption(all_removed.status, potential, all_removed)
    budgets = DisruptionBudgets.of(
        handle.cluster.list(PodDisruptionBudget), ends_at_first=handle.feature_gates.follows(FIRST_BUDGET)
    )
    count = budgets.violations if in_place else budgets.violated
    counts = count([unit.pods for unit in potential])
    violations = {unit: int(number) for unit, number in zip(potential, counts, strict=True) if number}
    # Those that violate a budget are spared first, as with preemption for one pod.
    order = (*violations, *(unit for unit in potential if unit not in violations))
    if not in_place:
        reprieves = [_reprieve_by_run(unit, trial, try_group) for unit in order]
        return GroupPreemption(Status.success(), potential, all_removed, violations, reprieves)
    spare = ReprieveInPlace(handle, trial, all_removed).spares
    try:
        reprieves = [Reprieve(unit, spare(unit), all_removed) for unit in order]
    except ReprieveError as error:
        return GroupPreemption(error.status, potential, all_removed, violations)
    evicted = sum(len(each.unit.pods) for each in reprieves if not each.fits)
    nominations = {each.attempt.pod.uid: each.node_name for each in all_removed.members if each.node_name}
    status = _told(f"found a placement for podgroup, preempting {evicted} victims")
    return GroupPreemption(status, potential, all_removed, violations, reprieves, nominations)


def _reprieve_by_run(
    unit: VictimUnit, trial: SnapshotTrial, try_group: Callable[[], GroupResult]
) -> Reprieve:
    trial.put_back(unit.pods)
    result = try_group()
    if not result.status.is_success:
        trial.remove(unit.pods)
    return Reprieve(unit, result.status.is_success, result)


def _told(text: str) -> Status:
    return Status(Code.SUCCESS, (text,))


def _never_preempts(gates: FeatureGates, pods: Sequence[Pod], group: PodGroup) -> bool:
    if gates.enabled(POD_GROUP_PREEMPTION_POLICY):
        return group.spec.preemption_policy is PreemptionPolicy.NEVER
    return any(pod.spec.preemption_policy is PreemptionPolicy.NEVER for pod in pods)


def _waits_for_victims(handle: Handle, pods: Sequence[Pod], potential: Sequence[VictimUnit]) -> bool:
    """Return whether possible victims are terminating by a preemption on nodes that members are nominated to."""
    nominated = {pod.status.nominated_node_name for pod in pods} & {
        info.name for info in handle.snapshot.node_infos
    }
    return any(
        pod.node_name in nominated and is_terminating_by_preemption(pod)
        for unit in potential
        for pod in unit.pods
    )


def start_eviction(handle: Handle, group: QueuedGroup, plan: GroupPreemption, scheduler_name: str) -> None:
    """Evict the victims of a plan, after the cycle."""
    assert group.object is not None
    if plan.is_ongoing:
        return
    victims = [pod for unit in plan.victims for pod in unit.pods]
    preemptor = Preemptor("podgroup", group.object, scheduler_name, _CLUSTER, group.object.priority)
    harm = None
    if handle.feature_gates.follows(PREEMPTION_METRICS):
        violations = sum(plan.violations.get(unit, 0) for unit in plan.victims)
        harm = Harm(sum(unit.is_grouped for unit in plan.victims), violations)
    handle.evictor.evict_later(victims, preemptor, PLUGIN, group.pods, harm)
