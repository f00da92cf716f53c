"""NodeResourceLimits: a tie-breaker for nodes that could hold a pod's limits (alpha, until v1.19)."""

from __future__ import annotations

from typing import ClassVar

from kschedfw import CycleState, NodeInfo, Plugin, Pod, Quantity, StateKey, StateKeyError, hookimpl
from kschedfw.api import CPU, MEMORY

Limits = tuple[int, int]
"""Limits of CPU in millicores and of memory in bytes; 0 means no limit."""

_LIMITS = StateKey[Limits]("NodeResourceLimits.limits")
_ZERO = Quantity.parse(0)


class NodeResourceLimits(Plugin):
    """Scores nodes 1 if they are large enough for the pod's CPU limit or its memory limit, and others 0."""

    name: ClassVar[str] = "NodeResourceLimits"
    pure = True

    @hookimpl
    def pre_score(self, state: CycleState, pod: Pod) -> None:
        state.write(_LIMITS, _limits(pod))

    @hookimpl
    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        try:
            cpu, memory = state.read(_LIMITS)
        except StateKeyError:
            # The plugin may be enabled at score, but not at pre_score.
            cpu, memory = _limits(pod)
        allocatable = node_info.allocatable
        return int(0 < cpu <= allocatable.milli_cpu or 0 < memory <= allocatable.memory)


class ResourceLimits(NodeResourceLimits):
    """NodeResourceLimits under the name of its priority, ResourceLimitsPriority."""

    name: ClassVar[str] = "ResourceLimits"


def _limits(pod: Pod) -> Limits:
    """Return the sum of the containers' limits, or the limits of an init container if they are higher."""
    containers, inits = pod.spec.containers, pod.spec.init_containers
    cpu = sum(each.resources.limits.get(CPU, _ZERO).milli_value() for each in containers)
    memory = sum(each.resources.limits.get(MEMORY, _ZERO).value() for each in containers)
    for each in inits:
        cpu = max(cpu, each.resources.limits.get(CPU, _ZERO).milli_value())
        memory = max(memory, each.resources.limits.get(MEMORY, _ZERO).value())
    return cpu, memory
