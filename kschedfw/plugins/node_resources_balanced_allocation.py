"""NodeResourcesBalancedAllocation: prefers nodes that use their resources evenly."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from operator import attrgetter, itemgetter
from typing import ClassVar

import attrs
import numpy as np
import numpy.typing as npt

from kschedfw import (
    MAX_NODE_SCORE,
    AmountsRule,
    CycleState,
    FieldError,
    Handle,
    IntArray,
    NodeInfo,
    NodeTable,
    Plugin,
    Pod,
    Reads,
    StateKey,
    Status,
    hookimpl,
)
from kschedfw.plugins._device_backed import DeviceBacked
from kschedfw.plugins._resources import (
    DEFAULT_RESOURCES,
    Plan,
    ResourceSpec,
    ScoredResources,
    compiled_scores,
    duplicate_errors,
    plan_columns,
    resources_or_default,
    rows_to_score,
    valid_score,
)

Fractions = npt.NDArray[np.float64]

_PLAN = StateKey[Plan]("NodeResourcesBalancedAllocation.plan")
_BACKED = StateKey[DeviceBacked]("NodeResourcesBalancedAllocation.backed")
_HALF = MAX_NODE_SCORE // 2
_BALANCED_ALLOCATION = attrgetter("balanced_allocation")


@attrs.frozen
class NodeResourcesBalancedAllocationArgs:
    """The resources whose use should be balanced; each has weight 1."""

    resources: tuple[ResourceSpec, ...] = attrs.field(
        default=DEFAULT_RESOURCES, converter=resources_or_default
    )

    def validate(self) -> Iterator[FieldError]:
        yield from duplicate_errors(self.resources, "resources")
        for index, resource in enumerate(self.resources):
            if resource.weight != 1:
                yield FieldError.invalid(f"resources[{index}].weight", resource.weight, "must be 1")


class NodeResourcesBalancedAllocation(Plugin[NodeResourcesBalancedAllocationArgs]):
    """Prefers nodes on which the pod evens out the used shares of the resources.

    A pod that requests none of the resources changes no share and isn't scored: it would otherwise be drawn to
    the one node that happens to be balanced best.
    """

    name = "NodeResourcesBalancedAllocation"
    args_type: ClassVar[type[object] | None] = NodeResourcesBalancedAllocationArgs
    reads = Reads.PODS

    def __init__(self, args: NodeResourcesBalancedAllocationArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._resources = ScoredResources(args.resources, non_zero=False)

    def sign(self, pod: Pod) -> Hashable | None:
        requests = pod.requests
        if requests.amounts.scalar_resources and self.handle.devices.requested_by(pod):
            # Unsigned: device-backed resources depend on other objects than the node.
            return None
        return self._resources.requests_of(requests)

    def sign_for_batch(self, pod: Pod) -> Hashable | None:
        amounts = pod.requests.amounts
        return None if amounts.scalar_resources and self.handle.devices.requested_by(pod) else amounts

    @property
    def amounts_rule(self) -> AmountsRule | None:
        return AmountsRule.BALANCED_ALLOCATION if self._resources.are_cpu_and_memory else None

    @hookimpl
    def pre_score(self, state: CycleState, pod: Pod) -> Status | None:
        plan = self._resources.plan_for(pod)
        if not _requests_any(plan):
            return Status.skip()
        state.write(_PLAN, plan)
        self._note_devices(state, pod, plan)
        return None

    @hookimpl
    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """Return 50 if the pod makes the balance as bad as possible, 75 if it changes nothing, up to 100."""
        plan = self._plan(state, pod)
        if plan is None:
            return 0
        backed = state.find(_BACKED)
        before, after = [], []
        for resource, request in plan:
            found = resource.on_node(node_info) if backed is None else backed.on_node(resource, node_info)
            allocatable, used = found
            if allocatable:
                # Both become floats before the division, as in Go: Python divides large integers more precisely.
                capacity = float(allocatable)
                before.append(min(used / capacity, 1.0))
                after.append(min((used + request) / capacity, 1.0))
        return valid_score(_HALF + (_HALF + balance(after) - balance(before)) // 2)

    @hookimpl
    def score_batch(self, state: CycleState, pod: Pod, nodes: NodeTable, rows: IntArray) -> IntArray | None:
        plan = self._plan(state, pod)
        if plan is None:
            return np.zeros(len(rows), dtype=np.int64)
        if _BACKED in state:
            return None
        scored = rows_to_score(nodes, rows)
        scores = compiled_scores(_BALANCED_ALLOCATION, plan, nodes, scored)
        if scores is None:
            columns = plan_columns(plan, nodes, scored)
            if columns is None:
                return None
            scores = _batch_scores(plan, columns, len(scored))
        return scores if scored is rows else scores.take(rows)

    def _plan(self, state: CycleState, pod: Pod) -> Plan | None:
        """Return the resources to balance; None for a pod that requests none of them."""
        plan = state.find(_PLAN)
        # This plugin isn't enabled at pre_score.
        if plan is None:
            plan = self._resources.plan_for(pod)
            if not _requests_any(plan):
                return None
            self._note_devices(state, pod, plan)
        return plan

    def _note_devices(self, state: CycleState, pod: Pod, plan: Plan) -> None:
        """Write the pod's extended resources that devices may provide, if one of them counts for the score."""
        if not pod.requests.amounts.scalar_resources:
            return
        backed = DeviceBacked.of(pod, self.handle.devices)
        if backed is not None and backed.counts_for(plan):
            state.write(_BACKED, backed)


def _batch_scores(plan: Plan, columns: Sequence[tuple[IntArray, IntArray]], count: int) -> IntArray:
    """Return the scores of `count` nodes, given their total and used amounts of each resource of the plan."""
    if len(plan) == 2 and count and all(amounts[amounts.argmin()] > 0 for amounts, _ in columns):
        pairs = [
            (used / allocatable, (used + request) / allocatable)
            for (_, request), (allocatable, used) in zip(plan, columns, strict=True)
        ]
        (before, after), (other_before, other_after) = pairs
        scores = _balances_of_two(after, other_after)
        scores -= _balances_of_two(before, other_before)
        scores += _HALF
        # Never negative, since a balance is from 50 to 100: so the shift rounds as Go's division does.
        scores >>= 1
        scores += _HALF
        return scores
    before, after = np.zeros((2, len(plan), count))
    there = np.zeros((len(plan), count), dtype=np.bool_)
    for index, ((_, request), (allocatable, used)) in enumerate(zip(plan, columns, strict=True)):
        there[index] = allocatable > 0
        for fractions, amounts in ((before, used), (after, used + request)):
            np.divide(amounts, allocatable, out=fractions[index], where=there[index])
    np.minimum(before, 1, out=before)
    np.minimum(after, 1, out=after)
    return _HALF + (_HALF + balances(after, there) - balances(before, there)) // 2


def _requests_any(plan: Plan) -> bool:
    return any(map(itemgetter(1), plan))


def balance(fractions: Sequence[float]) -> int:
    """Return 100 if all fractions are equal, down to 50 if they are as far apart as possible.

    The order of operations is kube-scheduler's, since the result is cut off to an integer.
    """
    n = len(fractions)
    if n < 2:
        deviation = 0.0
    elif n == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    else:
        total = 0.0
        for fraction in fractions:
            total += fraction
        mean = total / n
        squares = 0.0
        for fraction in fractions:
            squares += (fraction - mean) * (fraction - mean)
        deviation = math.sqrt(squares / n)
    return int((1 - deviation) * MAX_NODE_SCORE)


def _balances_of_two(first: Fractions, second: Fractions) -> IntArray:
    """Return `balance` for two resources that every node has, shape (k,) each. Fractions above 1 count as 1."""
    for fractions in (first, second):
        if fractions[fractions.argmax()] > 1:
            np.minimum(fractions, 1, out=fractions)
    spread = first - second
    np.abs(spread, out=spread)
    spread /= 2
    np.subtract(1, spread, out=spread)
    spread *= MAX_NODE_SCORE
    return spread.astype(np.int64)


def balances(fractions: Fractions, there: npt.NDArray[np.bool_]) -> IntArray:
    """Return `balance` for each column of `fractions` (shape: resources, nodes), over entries in `there`.

    Other entries are 0.
    """
    n = there.sum(axis=0)
    spread = fractions.max(axis=0) - np.where(there, fractions, 1.0).min(axis=0)
    deviation = np.where(n == 2, spread / 2, 0.0)
    if len(fractions) > 2:
        # Added up one by one, since NumPy's sums may take another order. Adding the 0 of an absent resource is exact.
        total = np.zeros(fractions.shape[1])
        for each in fractions:
            total += each
        mean = total / np.maximum(n, 1)
        squares = np.zeros(fractions.shape[1])
        for each, counts in zip(fractions, there, strict=True):
            squares += np.where(counts, (each - mean) * (each - mean), 0.0)
        deviation = np.where(n > 2, np.sqrt(squares / np.maximum(n, 1)), deviation)
    scores: IntArray = ((1 - deviation) * MAX_NODE_SCORE).astype(np.int64)
    return scores
