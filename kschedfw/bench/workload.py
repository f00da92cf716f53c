"""What a workload is: a cluster, and the pods that are to be scheduled on it."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import attrs

from kschedfw.bench.shapes import Manifest


class Placement(StrEnum):
    """How the initial pods come onto the nodes."""

    ROUND_ROBIN = "round-robin"
    """Bound in turns, except for the last `WARM_UP`, which are scheduled. For pods that spread evenly anyway."""
    SCHEDULED = "scheduled"
    """Each scheduled. For pods whose places depend on each other."""
    BOUND = "bound"
    """All bound in turns. For clusters in which scheduling that many would take too long, and which needn't be warm."""


def nothing(*_: object) -> tuple[Manifest, ...]:
    """What comes with most nodes and pods."""
    return ()


@attrs.frozen
class Workload:
    """A cluster and the pods that are to be scheduled on it.

    `follows` is the test case of scheduler_perf that has this shape, and in parentheses the workload of it that the
    sizes are from. The functions make the manifest with the given number; where scheduler_perf creates one kind of
    nodes or pods after the other, they take turns here, so that any size has the same mixture.

    `with_node` and `with_pod` make what comes with each of them, such as the pod's volume. `with_bound` makes the same
    for an initial pod that is bound, the `turn`-th on its node, from 0; without it, `with_pod` does. `with_devices`
    makes what publishes a node's devices, `devices` of them on each unless another number is asked for.

    A pod of `churn` arrives every `CHURN_INTERVAL` seconds.
    """

    name: str
    measures: str
    follows: str
    nodes: int
    initial_pods: int
    pods: int
    node: Callable[[int], Manifest]
    initial_pod: Callable[[int], Manifest]
    measured_pod: Callable[[int], Manifest]
    others: tuple[Manifest, ...] = ()
    placement: Placement = Placement.ROUND_ROBIN
    churn: Callable[[int], Manifest] | None = None
    with_node: Callable[[Manifest], tuple[Manifest, ...]] = nothing
    with_pod: Callable[[Manifest], tuple[Manifest, ...]] = nothing
    with_bound: Callable[[Manifest, int], tuple[Manifest, ...]] | None = None
    devices: int = 0
    with_devices: Callable[[Manifest, int], tuple[Manifest, ...]] = nothing


CHURN_INTERVAL = 0.2
"""Seconds."""
