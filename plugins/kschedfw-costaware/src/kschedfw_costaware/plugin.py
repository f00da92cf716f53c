"""The plugin CostAware."""

from __future__ import annotations

import attrs
import numpy as np

from kschedfw import CycleState, Handle, IntArray, NodeInfo, Plugin, Pod, StateKey, Status, hookimpl
from kschedfw_costaware.args import CostAwareArgs, nano_price

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
    integers, in billionths per hour.
    """

    name = "CostAware"
    args_type = CostAwareArgs
    pure = True

    def __init__(self, args: CostAwareArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._label = args.price_label
        # Exact as floats: the highest price is 10^15 billionths, below 2^53. Looked up with None for a node without the
        # label, which no price is for: a label may have the value "".
        self._prices: dict[str | None, float] = {
            price.value: float(nano_price(price.hourly_price)) for price in args.prices
        }

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

    def _cost(self, demand: Demand, node_info: NodeInfo) -> int:
        price = self._prices.get(node_info.node.labels.get(self._label))
        cpu, memory = node_info.allocatable.milli_cpu, node_info.allocatable.memory
        if price is None or cpu <= 0 or memory <= 0:
            return UNKNOWN
        # A pod pays at most for the whole node.
        share = max(demand.milli_cpu / cpu, demand.memory / memory)
        return int(price * min(share, 1.0))
