"""Prepares a workload: its objects, and a scheduler that has placed the initial pods."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from itertools import count
from pathlib import Path
from random import Random

import attrs

from kschedfw import (
    Cache,
    Evaluation,
    FeatureGates,
    Framework,
    GenericScheduler,
    InMemoryCluster,
    Parallelizer,
    Parts,
    Pod,
    Profile,
    Registry,
    Scheduler,
    Snapshot,
    default_profile,
)
from kschedfw.api import Named
from kschedfw_lab.bench import shapes
from kschedfw_lab.bench.clock import SkippingClock
from kschedfw_lab.bench.groups import group_gates, in_groups, in_rack, with_groups
from kschedfw_lab.bench.results import Part
from kschedfw_lab.bench.workload import Placement, Workload
from kschedfw_lab.bench.workloads import find_workload

ALL_NODES = 100
ADAPTIVE = 0
"""The `percentage` that means kube-scheduler's own rule."""

WARM_UP = 100
"""The least number of initial pods that are scheduled, so that one-time work isn't measured."""

DEFAULT_TIME_LIMIT = 30.0
"""The default time limit, in seconds of attempts."""


class Form(Enum):
    """The forms in which a plugin may answer."""

    SCALAR = "scalar"
    """Node by node."""
    BATCH = "batch"
    """By its batch forms, for every pod."""
    MEMO = "memo"
    """The scheduler in its usual form: by batch forms, and by answers that are kept."""


@attrs.frozen
class PluginForm:
    """A plugin and the form in which it is called. Other plugins keep their forms."""

    plugin: str
    form: Form


@attrs.frozen
class Case:
    """A case to measure: the workload, its sizes, the profile and other settings.

    `percentage` is `percentage_of_nodes_to_score`; 0 adapts to the number of nodes. No attempt begins after
    `time_limit` seconds of attempts; initial pods that can't be scheduled within that time are bound to the nodes in
    turn. `own_placement`, `own_devices`, `own_members` and `own_racks` replace the workload's. `trace` is the folder of
    the OpenB trace, for `openb`.
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
    own_members: int | None = None
    own_racks: int | None = None
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
        members: int | None = None,
        racks: int | None = None,
    ) -> Case:
        """Return the case of a workload, by default in the workload's own size.

        With another number of nodes, the numbers of pods are scaled unless they are given.
        """
        nodes = workload.nodes if nodes is None else nodes

        def in_proportion(given: int | None, own: int) -> int:
            # Rounded up, so that small clusters get pods, too.
            return -(-own * nodes // workload.nodes) if given is None else given

        return cls(
            workload.name,
            nodes,
            in_proportion(initial_pods, workload.initial_pods),
            in_proportion(pods, workload.pods),
            own_devices=devices,
            own_members=members,
            own_racks=racks,
        )

    @property
    def workload(self) -> Workload:
        return find_workload(self.workload_name, self.trace)

    @property
    def placement(self) -> Placement:
        return self.own_placement or self.workload.placement

    @property
    def devices(self) -> int:
        """The number of devices per node; 0 in workloads without devices."""
        return self.workload.devices if self.own_devices is None else self.own_devices

    @property
    def members(self) -> int:
        """The number of pods per group; 0 in workloads without groups."""
        own = self.workload.members
        return min(self.pods, self.own_members or own) if own else 0

    @property
    def racks(self) -> int:
        """The number of racks that the nodes are divided into; 0 in workloads without groups."""
        own = self.workload.racks
        return min(self.nodes, self.own_racks or own) if own else 0

    def node(self, index: int) -> shapes.Manifest:
        """Return the `index`-th node, in its rack."""
        node = self.workload.node(index)
        return in_rack(node, index, self.racks) if self.racks else node

    def grouped(self, pods: Sequence[shapes.Manifest]) -> Iterable[shapes.Manifest]:
        """Return the pods. In workloads of groups, put each pod into one and add the PodGroups."""
        return in_groups(pods, self.members, self.racks) if self.members else pods


@attrs.frozen
class Objects:
    """The objects of a workload. `placed` pods are bound; those in `to_place` are scheduled before the measurement.

    PodGroups are among the pods, each before its members.
    """

    cluster: Sequence[Named]
    """Nodes, and other objects such as namespaces."""
    placed: Sequence[Named]
    to_place: Sequence[Named]
    measured: Sequence[Named]

    node_names: Sequence[str]

    def node_name(self, index: int) -> str:
        """Return the name of the node for the `index`-th pod, if pods are bound to the nodes in turn."""
        return self.node_names[index % len(self.node_names)]

    @classmethod
    def of(cls, case: Case) -> Objects:
        workload = case.workload
        nodes = [shapes.made(case.node(i)) for i in range(case.nodes)]
        to_place = {
            Placement.SCHEDULED: case.initial_pods,
            Placement.ROUND_ROBIN: WARM_UP,
            Placement.BOUND: 0,
        }[case.placement]
        placed = max(0, case.initial_pods - to_place)
        initial = [workload.initial_pod(i) for i in range(case.initial_pods)]
        measured = [workload.measured_pod(i) for i in range(case.pods)]
        # Warm up with a group like the measured ones, since the first one pays for one-time work. Its numbers follow
        # theirs, so that names differ.
        warm_up = [workload.measured_pod(case.pods + i) for i in range(case.members)]
        bound = [shapes.bound(pod, nodes[i % len(nodes)].name) for i, pod in enumerate(initial[:placed])]
        companions = [
            *(each for i in range(case.nodes) for each in workload.with_node(workload.node(i))),
            *(
                each
                for i in range(case.nodes)
                for each in workload.with_devices(workload.node(i), case.devices)
            ),
            *_with_bound(workload, bound, len(nodes)),
            *(each for pod in (*initial[placed:], *warm_up, *measured) for each in workload.with_pod(pod)),
        ]
        return cls(
            cluster=[*map(shapes.made, (*workload.others, *companions)), *nodes],
            placed=[*map(shapes.made, bound)],
            to_place=[*map(shapes.made, (*initial[placed:], *case.grouped(warm_up)))],
            measured=[*map(shapes.made, case.grouped(measured))],
            node_names=[node.name for node in nodes],
        )

    @staticmethod
    def further(case: Case, count: int) -> Sequence[Named]:
        """Return the pods that would follow the measured ones, each after the objects that it needs."""
        workload, first = case.workload, case.pods + case.members
        pods = [workload.measured_pod(first + number) for number in range(count)]
        companions = [each for pod in pods for each in workload.with_pod(pod)]
        return [shapes.made(each) for each in (*companions, *case.grouped(pods))]


def _with_bound(
    workload: Workload, bound: Sequence[shapes.Manifest], nodes: int
) -> Iterator[shapes.Manifest]:
    for i, pod in enumerate(bound):
        yield from (
            workload.with_pod(pod) if workload.with_bound is None else workload.with_bound(pod, i // nodes)
        )


@attrs.frozen
class AlgorithmStage:
    """The algorithm, its framework and its cache."""

    framework: Framework
    scheduler: GenericScheduler
    cache: Cache

    @classmethod
    def of(cls, case: Case, cluster: InMemoryCluster, registry: Registry) -> AlgorithmStage:
        cache, snapshot, random = Cache(), Snapshot(), Random(0)
        framework = Framework(
            registry,
            case.profile,
            # One thread, as in `Scheduler` by default: threads only help plugins that block.
            Parts(cluster, snapshot=snapshot, random=random, parallelizer=Parallelizer(1)),
            evaluation=case.evaluation,
        )
        scheduler = GenericScheduler(
            cache, snapshot, random=random, percentage_of_nodes_to_score=case.percentage
        )
        return cls(framework, scheduler, cache)


def scheduler_of(case: Case, cluster: InMemoryCluster, registry: Registry, clock: SkippingClock) -> Scheduler:
    """Return a scheduler for the cluster, on one thread. It retries unschedulable pods only after events."""
    gates = group_gates(case.workload.kube_version) if case.members else FeatureGates()
    return Scheduler(
        cluster,
        [with_groups(case.profile, gates) if case.members else case.profile],
        feature_gates=gates,
        registry=registry,
        clock=clock,
        random=Random(0),
        percentage_of_nodes_to_score=case.percentage,
        unschedulable_timeout=math.inf,
        evaluation=case.evaluation,
    )


class Churn:
    """Pods that arrive during the measurement, one every `interval` seconds."""

    def __init__(self, make: Callable[[int], shapes.Manifest] | None, interval: float) -> None:
        self._make = make
        self._interval = interval
        self._made = count()
        self._next = interval

    def due(self, elapsed: float) -> Iterator[Named]:
        """Yield the pods that have arrived since the last call."""
        while self._make is not None and elapsed >= self._next:
            self._next += self._interval
            yield shapes.made(self._make(next(self._made)))


def in_cluster(cluster: InMemoryCluster, objects: Iterable[Named]) -> list[Pod]:
    """Create the objects in the cluster, and return them as stored."""
    return [pod for pod in map(cluster.add, objects) if isinstance(pod, Pod)]
