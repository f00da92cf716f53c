"""Makes room for a whole group (kube-scheduler `podGroupEvaluator`; KEP-5710)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from kschedfw.api import DisruptionMode, Pod, PodDisruptionBudget, PodGroup, PreemptionPolicy, group_key
from kschedfw.api.records import frozen
from kschedfw.framework.eviction import Preemptor
from kschedfw.framework.groups import QueuedGroup
from kschedfw.framework.handle import Handle
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.preemption.budgets import DisruptionBudgets
from kschedfw.framework.preemption.candidates import start_time
from kschedfw.framework.status import Status
from kschedfw.scheduler.groups.trial import GroupResult, SnapshotTrial


@frozen(eq=False)
class VictimUnit:
    """Pods that are evicted together, in the order of the nodes that they are on.

    A unit of a group has the group's priority, else the pod's. What counts as its start is that of its first pod, as in
    kube-scheduler, not the earliest.
    """

    pods: tuple[Pod, ...]
    priority: int

    @property
    def is_grouped(self) -> bool:
        """True if its first pod is a member of a group, of whatever disruption mode."""
        return bool(group_key(self.pods[0]))

    @property
    def started(self) -> float:
        """Seconds since the epoch; infinity for a pod that hasn't started."""
        return start_time(self.pods[0])

    @property
    def importance(self) -> tuple[float, ...]:
        """The sort key that puts the most important unit first."""
        # The size counts among groups only: all others have the same one.
        size = -len(self.pods) if self.is_grouped else -math.inf
        return (-self.priority, not self.is_grouped, size, self.started)


def victim_units(
    nodes: Iterable[NodeInfo], find_group: Callable[[str], PodGroup | None]
) -> Sequence[VictimUnit]:
    """All pods on these nodes as units, the most important first, and equal ones in the order of nodes and pods.

    So are those that haven't started, since kube-scheduler notes the present for their start, pod by pod. Of units that
    started at the same time its order is random.
    """
    units: list[VictimUnit] = []
    members: dict[str, list[Pod]] = {}
    groups: dict[str, PodGroup] = {}
    for info in nodes:
        for pod_info in info.pods:
            pod, key = pod_info.pod, group_key(pod_info.pod)
            group = find_group(key) if key else None
            if group is not None and group.spec.disruption_mode is DisruptionMode.POD_GROUP:
                groups[key] = group
                members.setdefault(key, []).append(pod)
            else:
                units.append(VictimUnit((pod,), pod.priority))
    units += [VictimUnit(tuple(pods), groups[key].priority) for key, pods in members.items()]
    return sorted(units, key=lambda unit: unit.importance)


PLUGIN = "DefaultPreemption"
"""The plugin without which no group preempts, and for which victims that wait at permit are rejected."""

_CLUSTER = "cluster"
"""The one domain of a group's preemption, where a pod's has a node."""


@frozen(eq=False)
class Reprieve:
    """The attempt to spare a unit: whether the group still fits with it, and where its members would go then."""

    unit: VictimUnit
    result: GroupResult

    @property
    def fits(self) -> bool:
        return self.result.status.is_success


@frozen(eq=False)
class GroupPreemption:
    """The result of looking for room, with its reasons. With success the `victims` are being evicted."""

    status: Status
    potential: Sequence[VictimUnit] = ()
    all_removed: GroupResult | None = None
    violating: Sequence[VictimUnit] = ()
    reprieves: Sequence[Reprieve] = ()

    @property
    def victims(self) -> Sequence[VictimUnit]:
        """The units that can't be spared, the most important first."""
        spared = {each.unit for each in self.reprieves if each.fits}
        return [unit for unit in self.potential if unit not in spared] if self.status.is_success else ()

    @property
    def num_pdb_violations(self) -> int:
        """The number of victims whose eviction violates a disruption budget."""
        return sum(1 for unit in self.victims if unit in self.violating)


def plan_preemption(
    handle: Handle, group: QueuedGroup, try_group: Callable[[], GroupResult]
) -> GroupPreemption:
    """Find the units whose eviction makes room for the group, by trying it on the snapshot without them.

    `try_group` runs the group's algorithm, without making room. Nothing is evicted yet.
    """
    present = group.object
    if present is None:
        missing = f'podgroup.scheduling.k8s.io "{group.key.partition("/")[2]}" not found'
        return GroupPreemption(Status.from_error(f"failed to get pod group object: {missing}"))
    if present.topology_key:
        text = "workload aware preemption is not supported for pod groups with scheduling constraints"
        return GroupPreemption(Status.unschedulable(text))
    if any(pod.spec.preemption_policy is PreemptionPolicy.NEVER for pod in group.pods):
        return GroupPreemption(Status.unschedulable("not eligible due to preemptionPolicy=Never."))
    units = victim_units(handle.snapshot.node_infos, lambda key: handle.cluster.get(PodGroup, key))
    potential = [unit for unit in units if unit.priority < present.priority]
    if not potential:
        return GroupPreemption(Status.unresolvable("No preemption victims found for incoming preemptor"))
    trial = SnapshotTrial(handle.snapshot)
    try:
        return _plan(handle, potential, trial, try_group)
    finally:
        trial.undo()


def _plan(
    handle: Handle,
    potential: Sequence[VictimUnit],
    trial: SnapshotTrial,
    try_group: Callable[[], GroupResult],
) -> GroupPreemption:
    for unit in potential:
        trial.remove(unit.pods)
    all_removed = try_group()
    if not all_removed.status.is_success:
        return GroupPreemption(all_removed.status, potential, all_removed)
    budgets = DisruptionBudgets.of(handle.cluster.list(PodDisruptionBudget))
    violates = budgets.violated([unit.pods for unit in potential])
    violating = [unit for unit, is_bad in zip(potential, violates, strict=True) if is_bad]
    others = [unit for unit, is_bad in zip(potential, violates, strict=True) if not is_bad]
    reprieves: list[Reprieve] = []
    # Those that violate a budget are spared first, as with preemption for one pod.
    for unit in (*violating, *others):
        trial.put_back(unit.pods)
        reprieve = Reprieve(unit, try_group())
        if not reprieve.fits:
            trial.remove(unit.pods)
        reprieves.append(reprieve)
    return GroupPreemption(Status.success(), potential, all_removed, violating, reprieves)


def start_eviction(handle: Handle, group: QueuedGroup, plan: GroupPreemption, scheduler_name: str) -> None:
    """Evict the victims of a plan, after the cycle."""
    assert group.object is not None
    victims = [pod for unit in plan.victims for pod in unit.pods]
    preemptor = Preemptor("podgroup", group.object, scheduler_name, _CLUSTER, group.object.priority)
    handle.evictor.evict_later(victims, preemptor, PLUGIN, group.pods)
