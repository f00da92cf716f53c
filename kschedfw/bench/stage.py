"""Sets a workload up: its objects, and a scheduler that has placed the initial ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from random import Random

import attrs

from kschedfw.api.meta import Named
from kschedfw.api.pod import Pod
from kschedfw.bench import shapes
from kschedfw.bench.clock import SkippingClock
from kschedfw.bench.results import Part
from kschedfw.bench.workload import Placement, Workload
from kschedfw.bench.workloads import find_workload
from kschedfw.cluster import InMemoryCluster
from kschedfw.config import default_profile
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.profile import Profile
from kschedfw.framework.runtime.evaluation import Evaluation
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.runtime.registry import Registry
from kschedfw.scheduler import Cache, GenericScheduler, Scheduler

ALL_NODES = 100
ADAPTIVE = 0
"""`percentage` for kube-scheduler's own rule."""

WARM_UP = 100
"""How many of the initial pods are scheduled at least, so that what is made once isn't measured."""

DEFAULT_TIME_LIMIT = 30.0
"""Seconds within attempts."""


@attrs.frozen
class PluginForm:
    """A plugin that is asked in this way, however the others are."""

    plugin: str
    form: Evaluation


@attrs.frozen
class Case:
    """What is measured, and with what.

    `percentage` of the nodes are to be found feasible before the search ends, 0 adapts to their number. No further
    attempt begins after `time_limit` seconds of attempts; initial pods that can't be scheduled within as much time are
    bound in turns. Without `own_placement` and `own_devices` they are the workload's. `trace` is the folder of the
    OpenB trace, if `openb` is to have that.
    """

    workload_name: str
    nodes: int
    initial_pods: int
    pods: int
    part: Part = Part.ALGORITHM
    percentage: int = ALL_NODES
    profile: Profile = attrs.field(factory=default_profile)
    own_placement: Placement | None = None
    time_limit: float = DEFAULT_TIME_LIMIT
    evaluation: Evaluation = Evaluation.MEMO
    form: PluginForm | None = None
    own_devices: int | None = None
    trace: Path | None = None

    @classmethod
    def of(
        cls,
        workload: Workload,
        *,
        nodes: int | None = None,
        initial_pods: int | None = None,
        pods: int | None = None,
        devices: int | None = None,
    ) -> Case:
        """The workload in its own size, or in another; with other nodes, the pods stay in proportion unless given."""
        nodes = workload.nodes if nodes is None else nodes

        def in_proportion(given: int | None, own: int) -> int:
            return -(-own * nodes // workload.nodes) if given is None else given

        return cls(
            workload.name,
            nodes,
            in_proportion(initial_pods, workload.initial_pods),
            in_proportion(pods, workload.pods),
            own_devices=devices,
        )

    @property
    def workload(self) -> Workload:
        return find_workload(self.workload_name, self.trace)

    @property
    def placement(self) -> Placement:
        return self.own_placement or self.workload.placement

    @property
    def devices(self) -> int:
        """Of each node; 0 in workloads that aren't about devices."""
        return self.workload.devices if self.own_devices is None else self.own_devices


@attrs.frozen
class Objects:
    """A workload's objects. `placed` pods are bound; `to_place` are to be scheduled before the measurement."""

    cluster: Sequence[Named]
    """Namespaces and the like, and nodes."""
    placed: Sequence[Named]
    to_place: Sequence[Named]
    measured: Sequence[Named]

    node_names: Sequence[str]

    def node_name(self, index: int) -> str:
        """A node for the pod of this number, if they are put on nodes in turns."""
        return self.node_names[index % len(self.node_names)]

    @classmethod
    def of(cls, case: Case) -> Objects:
        workload = case.workload
        nodes = [shapes.made(workload.node(i)) for i in range(case.nodes)]
        to_place = {
            Placement.SCHEDULED: case.initial_pods,
            Placement.ROUND_ROBIN: WARM_UP,
            Placement.BOUND: 0,
        }[case.placement]
        placed = max(0, case.initial_pods - to_place)
        initial = [workload.initial_pod(i) for i in range(case.initial_pods)]
        measured = [workload.measured_pod(i) for i in range(case.pods)]
        bound = [shapes.bound(pod, nodes[i % len(nodes)].name) for i, pod in enumerate(initial[:placed])]
        companions = [
            *(each for i in range(case.nodes) for each in workload.with_node(workload.node(i))),
            *(
                each
                for i in range(case.nodes)
                for each in workload.with_devices(workload.node(i), case.devices)
            ),
            *_with_bound(workload, bound, len(nodes)),
            *(each for pod in (*initial[placed:], *measured) for each in workload.with_pod(pod)),
        ]
        return cls(
            cluster=[*map(shapes.made, (*workload.others, *companions)), *nodes],
            placed=[*map(shapes.made, bound)],
            to_place=[*map(shapes.made, initial[placed:])],
            measured=[*map(shapes.made, measured)],
            node_names=[node.name for node in nodes],
        )


def _with_bound(
    workload: Workload, bound: Sequence[shapes.Manifest], nodes: int
) -> Iterator[shapes.Manifest]:
    for i, pod in enumerate(bound):
        yield from (
            workload.with_pod(pod) if workload.with_bound is None else workload.with_bound(pod, i // nodes)
        )


@attrs.frozen
class AlgorithmStage:
    """The algorithm, the framework it runs, and the cache it looks at."""

    framework: Framework
    scheduler: GenericScheduler
    cache: Cache

    @classmethod
    def of(cls, case: Case, cluster: InMemoryCluster, registry: Registry) -> AlgorithmStage:
        cache, snapshot, random = Cache(), Snapshot(), Random(0)
        framework = Framework(
            registry,
            case.profile,
            cluster=cluster,
            snapshot=snapshot,
            random=random,
            parallelizer=Parallelizer(1),  # as `Scheduler` has it: threads pay off for plugins that block
            evaluation=case.evaluation,
        )
        scheduler = GenericScheduler(
            cache, snapshot, random=random, percentage_of_nodes_to_score=case.percentage
        )
        return cls(framework, scheduler, cache)


def scheduler_of(case: Case, cluster: InMemoryCluster, registry: Registry, clock: SkippingClock) -> Scheduler:
    """A scheduler for the cluster, on one thread. Unschedulable pods are tried again after events alone."""
    return Scheduler(
        cluster,
        [case.profile],
        registry=registry,
        clock=clock,
        random=Random(0),
        percentage_of_nodes_to_score=case.percentage,
        unschedulable_timeout=math.inf,
        evaluation=case.evaluation,
    )


class Churn:
    """The pods that arrive while others are measured, one every `interval` seconds."""

    def __init__(self, make: Callable[[int], shapes.Manifest] | None, interval: float) -> None:
        self._make = make
        self._interval = interval
        self._made = count()
        self._next = interval

    def due(self, elapsed: float) -> Iterator[Named]:
        """Those that have arrived since the last call."""
        while self._make is not None and elapsed >= self._next:
            self._next += self._interval
            yield shapes.made(self._make(next(self._made)))


def in_cluster(cluster: InMemoryCluster, objects: Iterable[Named]) -> list[Pod]:
    """Create the pods in the cluster, and give them as it stored them."""
    return [pod for pod in map(cluster.add, objects) if isinstance(pod, Pod)]
