"""Compaction: the least number of machines that a workload fits on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from random import Random
from typing import Final

from kschedfw import Node, Pod
from kschedfw.api import CPU, MEMORY, node_allocatable
from kschedfw_lab.openb import GPU
from kschedfw_lab.packing.loss_system import LossSystem
from kschedfw_lab.packing.policies import Policy
from kschedfw_lab.packing.workload import Trace

PODS: Final = 1000
"""The number of pods in the workload."""

FIRST_STEP: Final = 4
"""The first number of machines that is tried, minus the lower bound."""

PENDING: Final = 0.002
"""The share of pods that may be left out, as in Borg's compactions, so that a few demanding pods don't decide."""


def compacted(trace: Trace, policy: Policy, seed: int, pods: int = PODS) -> int:
    """Return the least number of machines that the workload fits on; one more than there are if all are too few.

    The pods are drawn from the trace with replacement. Machines are removed in a random order until the workload,
    packed from scratch each time, no longer fits. Both depend only on the seed. The number is found by bisection,
    between a number that is too small and one that suffices. The distance to the latter is doubled until it suffices.
    """
    chance = Random(f"compaction {seed}")
    nodes = trace.shuffled_nodes(chance)
    workload = [chance.choice(trace.pods) for _ in range(pods)]
    low, step = _too_few(nodes, workload), FIRST_STEP
    high = low + step
    while high <= len(nodes) and not _fits(nodes[:high], workload, policy, seed):
        low, step = high, 2 * step
        high = low + step
    # One more than there are stands for "all are too few".
    high = min(high, len(nodes) + 1)
    while high - low > 1:
        middle = (low + high) // 2
        if _fits(nodes[:middle], workload, policy, seed):
            high = middle
        else:
            low = middle
    return high


def _fits(nodes: Sequence[Node], workload: Sequence[Pod], policy: Policy, seed: int) -> bool:
    may_be_left = int(PENDING * len(workload))
    with LossSystem(nodes, policy, Random(seed)) as system:
        for pod in workload:
            if system.place(pod) is None:
                may_be_left -= 1
            if may_be_left < 0:
                return False
    return True


def _too_few(nodes: Sequence[Node], workload: Sequence[Pod]) -> int:
    """Return a number of machines that can't suffice: they have less in total than all but the largest pods request.

    It is the lower bound of the search, so that smaller numbers needn't be tried.
    """
    left_out = int(PENDING * len(workload))
    too_few = 0
    for resource in (CPU, MEMORY, GPU):
        asked = sorted(pod.requests.amounts.get(resource) for pod in workload)
        wanted = sum(asked[: len(asked) - left_out])
        totals = accumulate(node_allocatable(node).get(resource) for node in nodes)
        too_few = max(too_few, sum(total < wanted for total in totals))
    return too_few
