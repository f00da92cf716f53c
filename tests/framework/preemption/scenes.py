"""Clusters in which somebody has to make room, in a few words each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any

import attrs

from kschedfw import Parts, make_node, make_pod
from kschedfw.api import PodBuilder
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.meta import ObjectMeta
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod, PodCondition, PreemptionPolicy
from kschedfw.api.selectors import LabelSelector
from kschedfw.api.workloads import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from kschedfw.cluster import InMemoryCluster
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import NodeToStatus
from kschedfw.framework.extender import Extender, ExtenderFilterResult, Victims
from kschedfw.framework.gates import DEFAULT_GATES, FeatureGates
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.nominator import Nominator
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.plugin import Plugin
from kschedfw.framework.preemption import Candidate, PreemptionEvaluator, PreemptionPlan, PreemptionRules
from kschedfw.framework.profile import Profile
from kschedfw.framework.results import PostFilterResult
from kschedfw.framework.runtime.calls import Evaluation
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.runtime.registry import Registry
from kschedfw.framework.status import Status
from kschedfw.plugins.node_resources_fit import NodeResourcesFit
from kschedfw.testing import FakeClock

PluginClass = type[Plugin[Any]]

MARKED = PodCondition("DisruptionTarget", "True", "PreemptionByScheduler")


def node(name: str, cpu: int = 500, **labels: str) -> Node:
    """A node with so many millicores."""
    return make_node(name).capacity(cpu=f"{cpu}m", memory="64Gi").labels(labels).build()


def pod(
    name: str,
    cpu: int = 0,
    *,
    on: str = "",
    priority: int = 0,
    started: float | None = None,
    labels: Mapping[str, str] | None = None,
    policy: PreemptionPolicy = PreemptionPolicy.PREEMPT_LOWER_PRIORITY,
    nominated: str = "",
    terminating: bool = False,
    conditions: Sequence[PodCondition] = (),
    build: Callable[[PodBuilder], PodBuilder] = lambda builder: builder,
) -> Pod:
    """A pod that requests so many millicores, and started so many seconds after the epoch."""
    builder = make_pod(name).uid(f"uid-{name}").priority(priority).labels(labels or {})
    if cpu:
        builder.requests(cpu=f"{cpu}m")
    if on:
        builder.node(on)
    result = build(builder).build()
    moment = datetime.fromtimestamp(0, UTC)
    status = attrs.evolve(
        result.status,
        start_time=None if started is None else datetime.fromtimestamp(started, UTC),
        nominated_node_name=nominated,
        conditions=tuple(conditions),
    )
    metadata = attrs.evolve(result.metadata, deletion_timestamp=moment if terminating else None)
    spec = attrs.evolve(result.spec, preemption_policy=policy)
    return attrs.evolve(result, metadata=metadata, spec=spec, status=status)


def budget(
    allowed: int,
    labels: Mapping[str, str] | None,
    *,
    disrupted: Sequence[str] = (),
    namespace: str = "default",
) -> PodDisruptionBudget:
    """A budget for the pods with these labels; None has no selector at all."""
    selector = None if labels is None else LabelSelector(FrozenDict(labels))
    return PodDisruptionBudget(
        ObjectMeta(name=f"budget-{allowed}", namespace=namespace),
        PodDisruptionBudgetSpec(selector),
        PodDisruptionBudgetStatus(allowed, FrozenDict(dict.fromkeys(disrupted, "2024-01-01T00:00:00Z"))),
    )


def names(pods: Iterable[Pod | PodInfo]) -> list[str]:
    return [each.name if isinstance(each, Pod) else each.pod.name for each in pods]


def victims(candidates: Iterable[Candidate]) -> dict[str, list[str]]:
    """The victims' names by node."""
    return {candidate.node_name: names(candidate.victims.pods) for candidate in candidates}


@attrs.define
class ExtenderStub:
    """An extender with a say in preemption only; `decide` is its answer."""

    decide: Callable[[Mapping[str, Victims]], Mapping[str, Victims]]
    is_ignorable: bool = False
    interested: bool = True
    supports_preemption: bool = True
    asked: list[list[str]] = attrs.field(factory=list)
    name: str = "stub"
    weight: int = 1
    is_filter: bool = False
    is_prioritizer: bool = False
    is_binder: bool = False

    def is_interested(self, pod: Pod) -> bool:
        return self.interested

    def filter(self, pod: Pod, nodes: Sequence[NodeInfo]) -> ExtenderFilterResult:
        raise NotImplementedError

    def prioritize(self, pod: Pod, nodes: Sequence[NodeInfo]) -> Mapping[str, int]:
        raise NotImplementedError

    def process_preemption(
        self, pod: Pod, victims_by_node: Mapping[str, Victims], snapshot: Snapshot
    ) -> Mapping[str, Victims]:
        self.asked.append(sorted(victims_by_node))
        return self.decide(victims_by_node)

    def bind(self, pod: Pod, node_name: str) -> None:
        raise NotImplementedError


def only(*node_names: str) -> ExtenderStub:
    """An extender that leaves these nodes over."""
    return ExtenderStub(
        lambda by_node: {name: found for name, found in by_node.items() if name in node_names}
    )


@attrs.define(eq=False)
class Scene:
    """Nodes, the pods on them, and an evaluator; all nodes are UNSCHEDULABLE unless a test says otherwise."""

    framework: Framework
    cluster: InMemoryCluster
    nominator: Nominator
    evaluator: PreemptionEvaluator
    rules: PreemptionRules

    @property
    def snapshot(self) -> Snapshot:
        return self.framework.handle.snapshot

    def refused(self) -> NodeToStatus:
        return NodeToStatus({info.name: Status.unschedulable("full") for info in self.snapshot.node_infos})

    def state(self, preemptor: Pod) -> CycleState:
        state = CycleState()
        self.framework.run_pre_filter_plugins(state, preemptor)
        return state

    def plan(self, preemptor: Pod, node_to_status: NodeToStatus | None = None) -> PreemptionPlan:
        refusals = self.refused() if node_to_status is None else node_to_status
        return self.evaluator.plan(self.state(preemptor), preemptor, refusals)

    def preempt(
        self, preemptor: Pod, node_to_status: NodeToStatus | None = None
    ) -> tuple[PostFilterResult | None, Status]:
        """With the pod in the cluster, as it is in real life."""
        if self.cluster.get(Pod, preemptor.key) is None:
            self.cluster.add(preemptor)
        refusals = self.refused() if node_to_status is None else node_to_status
        return self.evaluator.preempt(self.state(preemptor), preemptor, refusals)

    def is_there(self, name: str) -> bool:
        return self.cluster.get(Pod, f"default/{name}") is not None


def scene(
    nodes: Iterable[Node],
    pods: Iterable[Pod] = (),
    *,
    plugins: Sequence[PluginClass] = (NodeResourcesFit,),
    budgets: Iterable[PodDisruptionBudget] = (),
    extenders: Sequence[Extender] = (),
    rules: type[PreemptionRules] = PreemptionRules,
    parallelizer: Parallelizer | None = None,
    cluster: InMemoryCluster | None = None,
    seed: int = 0,
    limits: Mapping[str, int] | None = None,
    evaluation: Evaluation = Evaluation.MEMO,
    gates: FeatureGates = DEFAULT_GATES,
) -> Scene:
    registry = Registry(entry_points=False)
    for each in plugins:
        registry.register(each)
    nodes, pods = list(nodes), list(pods)
    cluster = InMemoryCluster() if cluster is None else cluster
    for obj in (*nodes, *pods, *budgets):
        cluster.add(obj)
    nominator = Nominator()
    framework = Framework(
        registry,
        Profile([each.name for each in plugins]),
        Parts(
            cluster,
            snapshot=Snapshot.of(nodes, pods),
            nominator=nominator,
            clock=FakeClock(),
            random=Random(seed),
            parallelizer=parallelizer or Parallelizer(1),
            extenders=extenders,
            feature_gates=gates,
        ),
        evaluation=evaluation,
    )
    made = rules(framework.handle, **(limits or {}))
    return Scene(
        framework, cluster, nominator, PreemptionEvaluator("Preemptor", framework.handle, made), made
    )
