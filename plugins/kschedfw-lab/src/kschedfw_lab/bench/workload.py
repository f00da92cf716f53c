"""The definition of a workload: a cluster, and the pods to schedule on it."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import attrs

from kschedfw_lab.bench.shapes import Manifest


class Placement(StrEnum):
    """How the initial pods are placed."""

    ROUND_ROBIN = "round-robin"
    """Bound to the nodes in turn, except for the last `WARM_UP` pods, which are scheduled. For pods that spread
    evenly anyway.
    """
    SCHEDULED = "scheduled"
    """All scheduled. For pods whose places depend on each other."""
    BOUND = "bound"
    """All bound to the nodes in turn. For clusters in which scheduling them would take too long, and that need no
    warm-up.
    """


def nothing(*_: object) -> tuple[Manifest, ...]:
    """The objects that come with most nodes and pods: none."""
    return ()


@attrs.frozen
class Workload:
    """A cluster, and the pods to schedule on it.

    `follows` is the test case of scheduler_perf that has this shape, and in parentheses its workload with these
    sizes. The functions make the manifest with the given number. Where scheduler_perf creates one kind of nodes or
    pods after the other, kinds alternate here, so that every size has the same mixture.

    `with_node` and `with_pod` make the objects that come with each of them, such as the pod's volume. `with_bound`
    makes those of a bound initial pod, the `turn`-th on its node, from 0; by default `with_pod` does. `with_devices`
    makes the objects that publish a node's devices, `devices` of them by default.

    Where `members` isn't 0, measured pods come in gangs of so many, and nodes are divided into `racks`. With several
    racks a gang keeps to one of them.

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
    members: int = 0
    racks: int = 0


CHURN_INTERVAL = 0.2
"""Seconds."""
