"""The plugin NodeResourceTopologyMatch."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final

from kschedfw import (
    ActionType,
    ClusterEvent,
    CycleState,
    EventResource,
    Handle,
    KschedfwError,
    NodeInfo,
    Plugin,
    Pod,
    Reads,
    StateKey,
    Status,
    hookimpl,
)
from kschedfw_topoaware.alignment import alignment
from kschedfw_topoaware.amounts import Amounts
from kschedfw_topoaware.args import NodeResourceTopologyMatchArgs, ScoringStrategyType
from kschedfw_topoaware.demand import Demand
from kschedfw_topoaware.least_numa import least_numa_nodes
from kschedfw_topoaware.node_resource_topology import NodeResourceTopology
from kschedfw_topoaware.numa import NodeTopology, NumaNode, Policy, Scope
from kschedfw_topoaware.reservations import Reservations, Reserved
from kschedfw_topoaware.strategies import Strategy, balanced_allocation, least_allocated, most_allocated
from kschedfw_topoaware.topologies import Topologies

_DEMAND = StateKey[Demand]("NodeResourceTopologyMatch.demand")

_STRATEGIES: Final[dict[ScoringStrategyType, Strategy]] = {
    ScoringStrategyType.LEAST_ALLOCATED: least_allocated,
    ScoringStrategyType.MOST_ALLOCATED: most_allocated,
    ScoringStrategyType.BALANCED_ALLOCATION: balanced_allocation,
}

# Every node has these. `NodeInfo.allocatable` names only the others in `scalar_resources`.
_ALWAYS_OFFERED: Final = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})


class NodeResourceTopologyMatch(Plugin[NodeResourceTopologyMatchArgs]):
    """Refuses nodes whose kubelet would refuse the pod because no single NUMA zone has everything that it requests.

    NodeResourceTopology objects report what zones have available. Requests of pods that were placed since the report
    are subtracted from every zone, because only the kubelet knows which zone it assigns. So a node may be refused
    although it has room, until its next report. A node without room is never accepted.

    Filter and score read reports and reservations, which change beside pods and nodes, so they aren't pure.
    """

    name = "NodeResourceTopologyMatch"
    args_type = NodeResourceTopologyMatchArgs
    # PODS suffices although topologies count: reservations count only on their own node, and the number of the
    # topologies is part of the signature.
    reads = Reads.PODS

    def __init__(self, args: NodeResourceTopologyMatchArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._strategy = args.scoring_strategy.type
        self._weights = {each.name: each.weight for each in args.scoring_strategy.resources}
        self._topologies = Topologies(handle)
        self._reservations = Reservations()

    def sign(self, pod: Pod) -> Hashable | None:
        try:
            return Demand.of(pod), self._topologies.latest().number
        except KschedfwError:
            # Some topology can't be parsed. The filter raises the same error, which names the topology.
            return None

    @hookimpl
    def pre_filter(self, state: CycleState, pod: Pod) -> Status | None:
        demand = Demand.of(pod)
        if demand.is_nothing:
            return Status.skip()
        state.write(_DEMAND, demand)
        return None

    @hookimpl
    def filter(self, state: CycleState, node_info: NodeInfo) -> Status | None:
        topology = self._topologies.latest().by_node.get(node_info.name)
        if topology is None or topology.policy is not Policy.SINGLE_NUMA_NODE:
            return None
        offered = _ALWAYS_OFFERED | node_info.allocatable.scalar_resources.keys()
        return alignment(state.read(_DEMAND), topology.scope, self._left(topology, node_info), offered)

    @hookimpl
    def pre_score(self, state: CycleState, pod: Pod) -> None:
        state.write(_DEMAND, Demand.of(pod))

    @hookimpl
    def score(self, state: CycleState, node_info: NodeInfo) -> int:
        demand = state.read(_DEMAND)
        if not demand.is_guaranteed:
            # The kubelet aligns only Guaranteed pods, so zones don't make a node better for others.
            return 100
        topology = self._topologies.latest().by_node.get(node_info.name)
        if topology is None:
            return 0
        if self._strategy is ScoringStrategyType.LEAST_NUMA_NODES:
            return least_numa_nodes(demand, topology, self._left(topology, node_info))
        if topology.policy is not Policy.SINGLE_NUMA_NODE:
            return 0
        zones, strategy = self._left(topology, node_info), _STRATEGIES[self._strategy]
        if topology.scope is Scope.POD:
            return self._worst(strategy, demand.of_the_pod, zones)
        # A Guaranteed pod has at least one container, so the mean is defined.
        scores = [self._worst(strategy, wanted, zones) for wanted in demand.all_containers]
        return sum(scores) // len(scores)

    @hookimpl
    def reserve(self, pod: Pod, node_name: str) -> None:
        topology = self._topologies.latest().by_node.get(node_name)
        if topology is not None:
            # The demand is computed again: `pre_filter` skips pods that need no zone, and scoring may have been
            # skipped.
            self._reservations.add(node_name, pod.uid, Demand.of(pod).of_the_pod, topology.version)

    @hookimpl
    def unreserve(self, pod: Pod, node_name: str) -> None:
        self._reservations.remove(node_name, pod.uid)

    def save_state(self) -> Mapping[str, Reserved]:
        """Return a copy of the reservations.

        Unreserve and reserve can't bring them back: a newer topology may have removed the older reservations meanwhile.
        """
        return self._reservations.save()

    def restore_state(self, token: Mapping[str, Reserved]) -> None:
        self._reservations.restore(token)

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        return [
            # A deleted pod gives back its reservation at once.
            ClusterEvent(EventResource.POD, ActionType.DELETE),
            ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE),
            # Deletion counts, too: a node without a topology isn't restricted to single zones.
            ClusterEvent(NodeResourceTopology.kind, ActionType.ALL),
        ]

    def _left(self, topology: NodeTopology, node_info: NodeInfo) -> Sequence[NumaNode]:
        return topology.less(self._reservations.taken(node_info, topology.version))

    def _worst(self, strategy: Strategy, wanted: Amounts, zones: Sequence[NumaNode]) -> int:
        """Return the lowest score of the zones where the pod fits; 0 if it fits in none.

        The kubelet may choose any of these zones.
        """
        scores = (strategy(wanted, zone.available, self._weights) for zone in zones)
        return min((score for score in scores if score), default=0)
