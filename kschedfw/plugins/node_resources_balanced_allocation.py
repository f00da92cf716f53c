"""NodeResourcesBalancedAllocation: nodes that use their resources evenly."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

import attrs

from kschedfw.api.field_errors import FieldError
from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState, StateKey, StateKeyError
from kschedfw.framework.node_info import NodeInfo
from kschedfw.framework.plugin import Plugin, Reads, hookimpl
from kschedfw.framework.results import MAX_NODE_SCORE
from kschedfw.framework.status import Status
from kschedfw.plugins._resources import (
    DEFAULT_RESOURCES,
    Reading,
    ResourceSpec,
    amount_of,
    counts,
    duplicate_errors,
    reading,
    resources_or_default,
)

if TYPE_CHECKING:
    from kschedfw.framework.handle import Handle

Plan = Sequence[tuple[Reading, int]]
"""For each resource that counts for the pod: how to read it off a node, and the pod's request."""

_PLAN = StateKey[Plan]("NodeResourcesBalancedAllocation.plan")
_HALF = MAX_NODE_SCORE // 2


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
    """Prefers nodes on which the pod evens out how much of each resource is in use.

    A pod that requests none of the resources changes nothing, and is left alone: it would otherwise be drawn to
    the one node that happens to be balanced best.
    """

    name: ClassVar[str] = "NodeResourcesBalancedAllocation"
    args_type: ClassVar[type[object] | None] = NodeResourcesBalancedAllocationArgs
    reads: ClassVar[Reads | None] = Reads.PODS

    def __init__(self, args: NodeResourcesBalancedAllocationArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._readings = [
            (resource.name, reading(resource.name, non_zero=False)) for resource in args.resources
        ]

    def sign(self, pod: Pod) -> Hashable | None:
        amounts = pod.requests.amounts
        return tuple(amount_of(amounts, resource.name) for resource in self.args.resources)

    @hookimpl
    def pre_score(self, state: CycleState, pod: Pod) -> Status | None:
        plan = self._plan(pod)
        if not _requests_any(plan):
            return Status.skip()
        state.write(_PLAN, plan)
        return None

    @hookimpl
    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """50 where the pod makes the balance as bad as it can, 75 where it changes nothing, up to 100."""
        try:
            plan = state.read(_PLAN)
        except StateKeyError:  # this plugin isn't enabled at pre_score
            plan = self._plan(pod)
            if not _requests_any(plan):
                return 0
        before, after = [], []
        for read, request in plan:
            allocatable, used = read(node_info)
            if allocatable:
                before.append(_fraction(used, allocatable))
                after.append(_fraction(used + request, allocatable))
        return _HALF + (_HALF + balance(after) - balance(before)) // 2

    def _plan(self, pod: Pod) -> Plan:
        amounts = pod.requests.amounts
        requests = [(name, read, amount_of(amounts, name)) for name, read in self._readings]
        return [(read, request) for name, read, request in requests if counts(name, request)]


def _requests_any(plan: Plan) -> bool:
    return any(request for _, request in plan)


def _fraction(used: int, allocatable: int) -> float:
    # Both are made floats first, as in Go: Python divides large integers more precisely.
    return min(float(used) / float(allocatable), 1.0)


def balance(fractions: Sequence[float]) -> int:
    """100 where all fractions are equal, down to 50 where they lie as far apart as they can.

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
