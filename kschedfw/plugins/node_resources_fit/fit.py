"""The plugin NodeResourcesFit."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import ClassVar

from kschedfw import (
    ActionType,
    AmountsRule,
    ClusterEvent,
    CycleState,
    EventResource,
    Handle,
    IntArray,
    Node,
    NodeInfo,
    NodeTable,
    PlacedGroup,
    Plugin,
    Pod,
    QueuedGroup,
    QueueingHint,
    Reads,
    Resource,
    StateKey,
    Status,
    Verdicts,
    hookimpl,
)
from kschedfw.api import IMPLICIT_RESOURCE_PREFIX, DeviceClass
from kschedfw.framework.diagnosis import Evidence
from kschedfw.plugins._device_backed import DeviceBacked, usages_on
from kschedfw.plugins._hints import queue_if, takes_a_place
from kschedfw.plugins._resources import (
    ScoredResources,
    Usage,
    WeighedResources,
    usages_in,
    valid_score,
    valid_scores,
)
from kschedfw.plugins.node_resources_fit.args import NodeResourcesFitArgs, ScoringStrategyType
from kschedfw.plugins.node_resources_fit.scoring import most_allocated, scorer_of
from kschedfw.plugins.node_resources_fit.shortage import shortages, verdict, verdicts, without_ignored

_DEMAND = StateKey[Resource]("NodeResourcesFit.demand")
_PLAN = StateKey[WeighedResources]("NodeResourcesFit.plan")
_BACKED = StateKey[DeviceBacked]("NodeResourcesFit.backed")
_RULES = {
    ScoringStrategyType.LEAST_ALLOCATED: AmountsRule.LEAST_ALLOCATED,
    ScoringStrategyType.MOST_ALLOCATED: AmountsRule.MOST_ALLOCATED,
}


class NodeResourcesFit(Plugin[NodeResourcesFitArgs]):
    """Refuses nodes without enough room for the pod's requests, and scores the others by their usage with the pod."""

    name = "NodeResourcesFit"
    args_type: ClassVar[type[object] | None] = NodeResourcesFitArgs
    reads = Reads.PODS

    def __init__(self, args: NodeResourcesFitArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._ignored = frozenset(args.ignored_resources), frozenset(args.ignored_resource_groups)
        strategy = args.scoring_strategy
        self._resources = ScoredResources(strategy.resources, non_zero=True)
        self._score = scorer_of(strategy)
        # Equal weights cancel out of the average, also of its integer division: the rule has none.
        is_of_both = (
            self._resources.are_cpu_and_memory and len({spec.weight for spec in strategy.resources}) == 1
        )
        self._rule = _RULES.get(strategy.type) if is_of_both else None

    def sign(self, pod: Pod) -> Hashable | None:
        requests = pod.requests
        if requests.amounts.scalar_resources and self.handle.devices.requested_by(pod):
            # Unsigned: device-backed resources depend on other objects than the node.
            return None
        return requests

    def sign_for_batch(self, pod: Pod) -> Hashable | None:
        amounts = pod.requests.amounts
        return None if amounts.scalar_resources and self.handle.devices.requested_by(pod) else amounts

    @property
    def amounts_rule(self) -> AmountsRule | None:
        return None if any(self._ignored) else self._rule

    @hookimpl
    def pre_filter(self, state: CycleState, pod: Pod) -> Status | None:
        requests = pod.requests
        demand = requests.demand
        if demand.scalar_resources and any(self._ignored):
            demand = without_ignored(demand, *self._ignored)
        state.write(_DEMAND, demand)
        if requests.amounts.scalar_resources:
            backed = DeviceBacked.of(pod, self.handle.devices)
            if backed is not None:
                if missing := self.handle.devices.missing:
                    return Status.unresolvable(missing)
                state.write(_BACKED, backed)
        return None

    @hookimpl
    def filter(self, state: CycleState, node_info: NodeInfo) -> Status | None:
        return verdict(_demand(state, node_info), node_info)

    def evidence(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Iterable[Evidence]:  # noqa: ARG002  # see GivesEvidence
        return (each.evidence for each in shortages(_demand(state, node_info), node_info))

    @hookimpl
    def filter_batch(self, state: CycleState, nodes: NodeTable, rows: IntArray) -> Verdicts | None:
        demand, backed = state.read(_DEMAND), state.find(_BACKED)
        own = demand if backed is None else backed.without_any(demand, nodes, rows)
        return None if own is None else verdicts(own, nodes, rows)

    @hookimpl
    def pre_score(self, state: CycleState, pod: Pod) -> None:
        state.write(_PLAN, self._resources.plan_for(pod))

    @hookimpl
    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        return valid_score(
            int(self._score(usages_on(self._plan(state, pod), state.find(_BACKED), node_info)))
        )

    @hookimpl
    def score_batch(self, state: CycleState, pod: Pod, nodes: NodeTable, rows: IntArray) -> IntArray | None:
        plan, backed = self._plan(state, pod), state.find(_BACKED)
        if backed is not None and backed.counts_for(plan):
            return None
        return valid_scores(self._score(usages_in(plan, nodes, rows)), len(rows))

    @hookimpl
    def placement_score(self, group: QueuedGroup, placed: PlacedGroup) -> int:
        """Return the usage of the placement's nodes together, whatever the strategy: groups are packed.

        As for a pod alone, an extended resource only counts if a member requests it.
        """
        usages = []
        nodes = placed.placement.nodes
        members = [pod for pod in group.pods if pod.uid in placed.node_names]
        for resource in self._resources.resources:
            wanted = sum(resource.request_of(pod.requests) for pod in members)
            if not wanted and not resource.on_every_node:
                continue
            # Lists of Python's numbers, whose sum is exact whatever nodes offer.
            allocatable, used = (sum(each.tolist()) for each in resource.columns(nodes.table, nodes.rows))
            usages.append(Usage(allocatable, used, wanted, resource.weight))
        return valid_score(most_allocated(usages))

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        pods = ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN
        nodes = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE
        classes = ActionType.ADD | ActionType.UPDATE
        return (
            ClusterEvent(EventResource.POD, pods, _after_pod_change),
            ClusterEvent(EventResource.NODE, nodes, self._after_node_change),
            ClusterEvent(EventResource.DEVICE_CLASS, classes, _after_class_change),
        )

    def _after_node_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        """Queue when a node that can hold the pod was added, or has more of the pod's resources than before."""
        if not isinstance(new, Node):
            return QueueingHint.SKIP
        demand, info = pod.requests.demand, NodeInfo.of(new)
        # DynamicResources has to provide what device classes back, so a node without it may do.
        backed = DeviceBacked.of(pod, self.handle.devices)
        needed = demand if backed is None else backed.without(demand, info)
        if verdict(needed, info) is not None:
            return QueueingHint.SKIP
        if not isinstance(old, Node) or needed != demand:
            # kube-scheduler takes any change of a node for more room if devices have to provide a resource there.
            return QueueingHint.QUEUE
        return queue_if(_has_grown(demand, NodeInfo.of(old).allocatable, info.allocatable))

    def _plan(self, state: CycleState, pod: Pod) -> WeighedResources:
        plan = state.find(_PLAN)
        # None where this plugin isn't enabled at pre_score.
        return self._resources.plan_for(pod) if plan is None else plan


def _demand(state: CycleState, node_info: NodeInfo) -> Resource:
    """Return the amounts that must be free on the node, without those that devices provide."""
    demand, backed = state.read(_DEMAND), state.find(_BACKED)
    return demand if backed is None else backed.without(demand, node_info)


def _after_pod_change(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    """Queue when a pod on a node is gone or requests less than before, or the pod itself requests less."""
    if not isinstance(old, Pod):
        return QueueingHint.SKIP
    if not isinstance(new, Pod):
        return queue_if(takes_a_place(old))
    if new.uid == pod.uid:
        return QueueingHint.QUEUE
    return queue_if(bool(new.node_name) and _frees_something(pod, old, new))


def _after_class_change(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    """Queue when a class begins to back an extended resource that the pod requests."""
    if not isinstance(new, DeviceClass):
        return QueueingHint.SKIP
    names = {new.spec.extended_resource_name}
    # A class keeps its name, so what it backs by that name begins with it.
    if not isinstance(old, DeviceClass):
        names.add(IMPLICIT_RESOURCE_PREFIX + new.name)
    elif old.spec.extended_resource_name == new.spec.extended_resource_name:
        return QueueingHint.SKIP
    return queue_if(not names.isdisjoint(pod.requests.amounts.scalar_resources))


def _frees_something(pod: Pod, old: Pod, new: Pod) -> bool:
    wanted, before, after = (p.requests.amounts for p in (pod, old, new))
    return any(amount and before.get(name) > after.get(name) for name, amount in wanted.items())


def _has_grown(demand: Resource, before: Resource, after: Resource) -> bool:
    if after.allowed_pod_number > before.allowed_pod_number:
        return True
    return any(amount and after.get(name) > before.get(name) for name, amount in demand.items())
