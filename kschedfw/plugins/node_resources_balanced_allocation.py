"""NodeResourcesBalancedAllocation: prefers nodes that use their resources evenly."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from operator import itemgetter
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
from kschedfw.api.records import frozen
from kschedfw.api.resource import int64
from kschedfw.plugins._device_backed import DeviceBacked, usages_on
from kschedfw.plugins._resources import (
    DEFAULT_RESOURCES,
    ResourceSpec,
    ScoredResources,
    Usage,
    WeighedResources,
    duplicate_errors,
    resources_or_default,
    usages_in,
    valid_score,
    valid_scores,
)

Fractions = npt.NDArray[np.float64]

_PLAN = StateKey[WeighedResources]("NodeResourcesBalancedAllocation.plan")
_BACKED = StateKey[DeviceBacked]("NodeResourcesBalancedAllocation.backed")
_HALF = MAX_NODE_SCORE // 2
# Amounts that have wrapped around may give a balance below int64. Go's conversion gives the least int64 then, on amd64
# and arm64; NumPy's warns, and Python's goes on.
_LEAST_BALANCE = -(2.0**63)


@frozen
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
        # Without NumPy, which takes five times as long for one node.
        before, after = [], []
        for allocatable, used, request, _ in usages_on(plan, state.find(_BACKED), node_info):
            if allocatable:
                # All become floats before the division, as in Go: Python divides large integers more precisely.
                capacity = float(allocatable)
                before.append(min(used / capacity, 1.0))
                after.append(min(int64(used + request) / capacity, 1.0))
        gain = balance(after) - balance(before)
        # Go cuts a half off towards 0, also below 0.
        return valid_score(_HALF + int(int64(_HALF + gain) / 2))

    @hookimpl
    def score_batch(self, state: CycleState, pod: Pod, nodes: NodeTable, rows: IntArray) -> IntArray | None:
        plan = self._plan(state, pod)
        if plan is None:
            return np.zeros(len(rows), dtype=np.int64)
        return None if _BACKED in state else scores_of(usages_in(plan, nodes, rows), len(rows))

    def _plan(self, state: CycleState, pod: Pod) -> WeighedResources | None:
        """Return the resources to balance; None for a pod that requests none of them."""
        plan = state.find(_PLAN)
        # This plugin isn't enabled at pre_score.
        if plan is None:
            plan = self._resources.plan_for(pod)
            if not _requests_any(plan):
                return None
            self._note_devices(state, pod, plan)
        return plan

    def _note_devices(self, state: CycleState, pod: Pod, plan: WeighedResources) -> None:
        """Write the pod's extended resources that devices may provide, if one of them counts for the score."""
        if not pod.requests.amounts.scalar_resources:
            return
        backed = DeviceBacked.of(pod, self.handle.devices)
        if backed is not None and backed.counts_for(plan):
            state.write(_BACKED, backed)


def scores_of(usages: Sequence[Usage], nodes: int) -> IntArray:
    """Return the scores of so many nodes, shape (nodes,), by what the pod changes in the balance of each."""
    before, after = np.zeros((2, len(usages), nodes))
    there = np.zeros((len(usages), nodes), dtype=np.bool_)
    for index, (allocatable, used, request, _) in enumerate(usages):
        # In int64 also where the amounts are Python's integers: the sum wraps around as in Go.
        total = np.asarray(used).astype(np.int64, copy=False) + request
        # All become floats before the division, as in Go: Python divides large integers more precisely.
        capacity = np.asarray(allocatable, dtype=np.float64)
        there[index] = capacity != 0
        for fractions, amounts in ((before, used), (after, total)):
            np.divide(
                np.asarray(amounts, dtype=np.float64), capacity, out=fractions[index], where=there[index]
            )
    gain = balances(np.minimum(after, 1), there) - balances(np.minimum(before, 1), there)
    # Go cuts a half off towards 0, also below 0.
    return valid_scores(_HALF + np.trunc((_HALF + gain) / 2), nodes)


def _requests_any(plan: WeighedResources) -> bool:
    return any(map(itemgetter(1), plan))


def balance(fractions: Sequence[float]) -> int:
    """Return `balances` of one node, of the used shares of the resources that it has."""
    n, deviation = len(fractions), 0.0
    if n == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif n > 2:
        # Added up one by one: `sum` of floats compensates for rounding since Python 3.12.
        total = squares = 0.0
        for fraction in fractions:
            total += fraction
        mean = total / n
        for fraction in fractions:
            squares += (fraction - mean) * (fraction - mean)
        deviation = math.sqrt(squares / n)
    return int(max((1 - deviation) * MAX_NODE_SCORE, _LEAST_BALANCE))


def balances(fractions: Fractions, there: npt.NDArray[np.bool_]) -> IntArray:
    """Return 100 for a node where all fractions are equal, down to 50 where they are as far apart as possible.

    The order of operations is kube-scheduler's, since the result is cut off to an integer.

    Args:
        fractions: the used shares, shape (resources, nodes), 0 where a node hasn't got the resource.
        there: whether it has, in the same shape.
    """
    n = there.sum(axis=0)
    deviation = np.zeros(fractions.shape[1])
    if len(fractions) == 2:
        deviation = np.where(n == 2, np.abs((fractions[0] - fractions[1]) / 2), 0.0)
    elif len(fractions) > 2:
        # Shares may be below 0 where amounts have wrapped around.
        spread = np.where(there, fractions, -np.inf).max(axis=0) - np.where(there, fractions, 1.0).min(axis=0)
        # Added up one by one, since NumPy's sums may take another order. Adding the 0 of an absent resource is exact.
        mean = sum(fractions) / np.maximum(n, 1)
        squares = sum(
            np.where(counts, (each - mean) * (each - mean), 0.0)
            for each, counts in zip(fractions, there, strict=True)
        )
        deviation = np.where(n > 2, np.sqrt(squares / np.maximum(n, 1)), np.where(n == 2, spread / 2, 0.0))
    scores: IntArray = np.maximum((1 - deviation) * MAX_NODE_SCORE, _LEAST_BALANCE).astype(np.int64)
    return scores
