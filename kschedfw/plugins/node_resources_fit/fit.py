"""The plugin NodeResourcesFit."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, ClassVar

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState, StateKey, StateKeyError
from kschedfw.framework.events import ActionType, ClusterEvent, EventResource
from kschedfw.framework.node_info import NodeInfo
from kschedfw.framework.plugin import Plugin, Reads, hookimpl
from kschedfw.framework.status import Code, Status
from kschedfw.plugins._resources import Reading, amount_of, counts, reading
from kschedfw.plugins.node_resources_fit.args import NodeResourcesFitArgs
from kschedfw.plugins.node_resources_fit.queueing import after_node_change, after_pod_change
from kschedfw.plugins.node_resources_fit.scoring import scorer_of
from kschedfw.plugins.node_resources_fit.shortage import Demand, fits, shortages

if TYPE_CHECKING:
    from kschedfw.framework.handle import Handle

Plan = Sequence[tuple[Reading, int, int]]
"""For each resource that counts for the pod: how to read it off a node, the pod's request, the weight."""

_DEMAND = StateKey[Demand]("NodeResourcesFit.demand")
_PLAN = StateKey[Plan]("NodeResourcesFit.plan")


class NodeResourcesFit(Plugin[NodeResourcesFitArgs]):
    """Refuses nodes without enough room for the pod's requests, and scores the others by how full they would get."""

    name: ClassVar[str] = "NodeResourcesFit"
    args_type: ClassVar[type[object] | None] = NodeResourcesFitArgs
    reads: ClassVar[Reads | None] = Reads.PODS

    def __init__(self, args: NodeResourcesFitArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._ignored = frozenset(args.ignored_resources), frozenset(args.ignored_resource_groups)
        strategy = args.scoring_strategy
        self._readings = [
            (resource.name, reading(resource.name, non_zero=True), resource.weight)
            for resource in strategy.resources
        ]
        self._scorer = scorer_of(strategy)

    def sign(self, pod: Pod) -> Hashable | None:
        return pod.requests

    @hookimpl
    def pre_filter(self, state: CycleState, pod: Pod) -> None:
        state.write(_DEMAND, Demand.of(pod.requests.amounts, *self._ignored))

    @hookimpl
    def filter(self, state: CycleState, node_info: NodeInfo) -> Status | None:
        demand = state.read(_DEMAND)
        if fits(demand, node_info):
            return None
        short = shortages(demand, node_info)
        unresolvable = any(shortage.unresolvable for shortage in short)
        code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if unresolvable else Code.UNSCHEDULABLE
        return Status(code, tuple(shortage.reason for shortage in short))

    @hookimpl
    def pre_score(self, state: CycleState, pod: Pod) -> None:
        state.write(_PLAN, self._plan(pod))

    @hookimpl
    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        try:
            plan = state.read(_PLAN)
        except StateKeyError:  # this plugin isn't enabled at pre_score
            plan = self._plan(pod)
        usages = []
        for read, request, weight in plan:
            allocatable, used = read(node_info)
            if allocatable:
                usages.append((used + request, allocatable, weight))
        return self._scorer(usages)

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        pods = ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN
        nodes = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE
        return [
            ClusterEvent(EventResource.POD, pods, after_pod_change),
            ClusterEvent(EventResource.NODE, nodes, after_node_change),
        ]

    def _plan(self, pod: Pod) -> Plan:
        requests = [(name, read, _scored_request(pod, name), weight) for name, read, weight in self._readings]
        return [(read, request, weight) for name, read, request, weight in requests if counts(name, request)]


def _scored_request(pod: Pod, name: str) -> int:
    """The pod's request as scores count it: containers that request no CPU or memory count as if they did."""
    match name:
        case "cpu":
            return pod.requests.non_zero_milli_cpu
        case "memory":
            return pod.requests.non_zero_memory
    return amount_of(pod.requests.amounts, name)
