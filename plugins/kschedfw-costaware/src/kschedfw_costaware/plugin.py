"""The plugin CostAware."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import attrs
import numpy as np
import numpy.typing as npt

from kschedfw import (
    ActionType,
    ClusterEvent,
    CycleState,
    EventResource,
    Handle,
    Node,
    NodeInfo,
    NodeTable,
    Plugin,
    Pod,
    QueueingHint,
    Reads,
    StateKey,
    Status,
    Verdicts,
    hookimpl,
)
from kschedfw_costaware.args import CostAwareArgs, nano_price

IntArray = npt.NDArray[np.int64]

MAX_HOURLY_PRICE = "kschedfw-costaware/max-hourly-price"
"""The pod annotation with the highest hourly cost that the pod accepts."""

UNKNOWN = -1
"""The cost on a node whose price isn't known."""

_TOO_EXPENSIVE = Status.unresolvable("node(s) were more expensive than the pod allows")
_NO_PRICE = Status.unresolvable("node(s) had no known price")


@attrs.frozen
class Demand:
    """The pod's requests that determine its cost: CPU and memory."""

    milli_cpu: int
    memory: int

    @classmethod
    def of(cls, pod: Pod) -> Demand:
        amounts = pod.requests.amounts
        return cls(amounts.milli_cpu, amounts.memory)


_BUDGET = StateKey[tuple[Demand, int]]("CostAware.budget")
_DEMAND = StateKey[Demand]("CostAware.demand")


class CostAware(Plugin[CostAwareArgs]):
    """Prefers nodes on which the pod costs less, and refuses nodes on which it costs more than its annotation allows.

    A pod costs the node's price times its share of the node's CPU or memory, whichever share is larger. Costs are
    integers, in billionths per hour, so that the scalar and the batch hooks agree exactly.
    """

    name = "CostAware"
    args_type = CostAwareArgs
    reads = Reads.NODE

    def __init__(self, args: CostAwareArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._label = args.price_label
        # Exact as floats: the highest price is 10^15 billionths, below 2^53. Looked up with None for a node without the
        # label, which no price is for: a label may have the value "".
        self._prices: dict[str | None, float] = {
            price.value: float(nano_price(price.hourly_price)) for price in args.prices
        }

    def sign(self, pod: Pod) -> Hashable | None:
        return Demand.of(pod), pod.annotations.get(MAX_HOURLY_PRICE)

    @hookimpl
    def pre_filter(self, state: CycleState, pod: Pod) -> Status | None:
        text = pod.annotations.get(MAX_HOURLY_PRICE)
        if text is None:
            return Status.skip()
        try:
            state.write(_BUDGET, (Demand.of(pod), nano_price(text)))
        except ValueError as error:
            return Status.unresolvable(f"annotation {MAX_HOURLY_PRICE}: {error}, not {text!r}")
        return None

    @hookimpl
    def filter(self, state: CycleState, node_info: NodeInfo) -> Status | None:
        demand, budget = state.read(_BUDGET)
        cost = self._cost(demand, node_info)
        if cost == UNKNOWN:
            return _NO_PRICE
        return _TOO_EXPENSIVE if cost > budget else None

    @hookimpl
    def filter_batch(self, state: CycleState, nodes: NodeTable, rows: IntArray) -> Verdicts:
        demand, budget = state.read(_BUDGET)
        costs = self._costs(demand, nodes, rows)
        codes = np.where(costs == UNKNOWN, 1, np.where(costs > budget, 2, 0))
        return Verdicts(codes, (Status.success(), _NO_PRICE, _TOO_EXPENSIVE))

    @hookimpl
    def pre_score(self, state: CycleState, pod: Pod) -> Status | None:
        demand = Demand.of(pod)
        # The pod costs 0 on every node.
        if demand == Demand(0, 0):
            return Status.skip()
        state.write(_DEMAND, demand)
        return None

    @hookimpl
    def score(self, state: CycleState, node_info: NodeInfo) -> int:
        return self._cost(state.read(_DEMAND), node_info)

    @hookimpl
    def score_batch(self, state: CycleState, nodes: NodeTable, rows: IntArray) -> IntArray:
        return self._costs(state.read(_DEMAND), nodes, rows)

    @hookimpl
    def normalize_score(self, scores: IntArray) -> IntArray:
        """Return 100 for the cheapest node, 50 for one that costs twice as much, 0 for nodes without a known price."""
        known = scores != UNKNOWN
        if not known.any():
            return np.zeros_like(scores)
        cheapest = int(scores[known].min())
        if cheapest == 0:
            # Ratios to a cost of 0 are undefined. Any other cost is infinitely more.
            return np.where(scores == 0, 100, 0)
        # No overflow: a cost is at most 10^15. `np.where` computes both branches, so a 1 stands in for unknown costs.
        return np.where(known, 100 * cheapest // np.where(known, scores, 1), 0)

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        nodes = ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE
        return [
            ClusterEvent(EventResource.NODE, nodes, self._after_node_change),
            ClusterEvent(EventResource.POD, ActionType.UPDATE, self._after_pod_change),
        ]

    def _cost(self, demand: Demand, node_info: NodeInfo) -> int:
        price = self._prices.get(node_info.node.labels.get(self._label))
        cpu, memory = node_info.allocatable.milli_cpu, node_info.allocatable.memory
        if price is None or cpu <= 0 or memory <= 0:
            return UNKNOWN
        # Convert to float before dividing, as NumPy does, so that both hooks agree. A pod pays at most for the whole
        # node.
        share = max(float(demand.milli_cpu) / float(cpu), float(demand.memory) / float(memory))
        return int(price * min(share, 1.0))

    def _costs(self, demand: Demand, nodes: NodeTable, rows: IntArray) -> IntArray:
        """Return the pod's cost on many nodes, shape (k,)."""
        label = nodes.label(self._label)
        price_of_code = np.array([self._prices.get(value, UNKNOWN) for value in label.values], dtype=float)
        prices = price_of_code[label.codes[rows]]
        cpu = nodes.allocatable[rows, nodes.columns["cpu"]]
        memory = nodes.allocatable[rows, nodes.columns["memory"]]
        known = (prices >= 0) & (cpu > 0) & (memory > 0)
        # NumPy divides in all rows, so rows without a known cost are divided by 1.
        shares = np.maximum(
            demand.milli_cpu / np.where(known, cpu, 1), demand.memory / np.where(known, memory, 1)
        )
        return np.where(known, (prices * np.minimum(shares, 1.0)).astype(np.int64), UNKNOWN)

    def _affordable(self, pod: Pod, node: object | None) -> bool:
        if not isinstance(node, Node):
            return False
        try:
            budget = nano_price(pod.annotations.get(MAX_HOURLY_PRICE, ""))
        except ValueError:
            return False
        # UNKNOWN is below every cost.
        return UNKNOWN < self._cost(Demand.of(pod), NodeInfo.of(node)) <= budget

    def _after_node_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        helps = self._affordable(pod, new) and not self._affordable(pod, old)
        return QueueingHint.QUEUE if helps else QueueingHint.SKIP

    def _after_pod_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        if not (isinstance(old, Pod) and isinstance(new, Pod) and new.uid == pod.uid):
            return QueueingHint.SKIP
        # The signature has all that `filter` reads of a pod.
        return QueueingHint.SKIP if self.sign(old) == self.sign(new) else QueueingHint.QUEUE
