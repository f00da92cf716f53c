"""The definition of a workload: a cluster, and the pods to schedule on it."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import attrs

from kschedfw.config import REFERENCE
from kschedfw_lab.bench.shapes import Manifest


class Placement(StrEnum):
    """The ways to place the initial pods."""

    ROUND_ROBIN = "round-robin"
    """Bound to the nodes in turn, except for the last `WARM_UP` pods, which are scheduled.

    For workloads whose pods would be spread evenly anyway.
    """
    SCHEDULED = "scheduled"
    """All scheduled. For workloads in which the pods' places depend on each other."""
    BOUND = "bound"
    """All bound to the nodes in turn.

    For workloads in which scheduling the initial pods would take too long, and which need no warm-up.
    """


def nothing(*_: object) -> tuple[Manifest, ...]:
    """Return no objects. Most nodes and pods need no others."""
    return ()


@attrs.frozen
class Workload:
    """A cluster, and the pods to schedule on it.

    `follows` is the test case of scheduler_perf with this shape, and in parentheses its workload with these sizes. The
    functions make the manifest with the given number. scheduler_perf creates one kind of nodes or pods after the other;
    here kinds alternate, so that every size has the same mixture.

    `with_node` and `with_pod` make the objects that a node or a pod needs, such as the pod's volume. `with_bound` makes
    those of a bound initial pod, the `turn`-th on its node, from 0; it defaults to `with_pod`. `with_devices` makes the
    objects that publish a node's devices, `devices` of them by default.

    If `members` isn't 0, measured pods come in gangs of this size, and nodes are divided into `racks`. With several
    racks, all members of a gang must be in the same one. Gangs are scheduled as in `kube_version` of Kubernetes.

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
    kube_version: str = REFERENCE


CHURN_INTERVAL = 0.2
"""The seconds between the arrivals of two pods of `churn`."""
