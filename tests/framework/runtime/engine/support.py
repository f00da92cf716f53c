"""Plugins that sign, clusters, and streams of pods for two frameworks: one that decides by plans, and a scalar one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from random import Random
from typing import Any, Final

import attrs
import pytest

from kschedfw import (
    Cache,
    CycleState,
    Evaluation,
    FitError,
    Framework,
    GenericScheduler,
    InMemoryCluster,
    Node,
    NodeSelection,
    Parts,
    Pod,
    Profile,
    Reads,
    Registry,
    ScheduleResult,
    Snapshot,
    make_node,
    make_pod,
)
from kschedfw.api import ResourceRequirements, Service
from kschedfw.config import default_profile, parse_configuration
from kschedfw.framework.metrics import NO_METRICS, MetricsRecorder
from kschedfw.framework.nominator import Nominator
from kschedfw.framework.runtime.engine import together
from kschedfw.framework.runtime.engine.pass_in_use import compiled_pass, with_numpy
from kschedfw.framework.runtime.engine.passes import Pass
from kschedfw.scheduler import HostSelector
from kschedfw.scheduler.decision_observer import DecisionObserver
from tests.framework.support import PluginClass, answering, nodes, plugin

REGISTRY: Final = Registry()
GPU, NIC = "nvidia.com/gpu", "example.com/nic"
NUMPY, COMPILED = "numpy", "compiled"


def use(form: str, monkeypatch: pytest.MonkeyPatch) -> Pass:
    """Let plans be run with this form of the pass."""
    if form == COMPILED:
        pytest.importorskip("numba", reason="needs the extra fast")
    made = compiled_pass() if form == COMPILED else with_numpy()
    assert made is not None
    monkeypatch.setattr(together, "pass_for", lambda _nodes, _pods, **_: made)
    return made


def signing(name: str = "A", /, **members: Any) -> PluginClass:
    """A plugin that reads node objects, lets every pod pass, and signs by the label `kind`."""
    made = plugin(name, **{"reads": Reads.NODE, "filter": answering(None), **members})

    def sign(_self: object, pod: Pod) -> Hashable | None:
        return pod.labels.get("kind")

    made.sign = sign  # type: ignore[assignment, method-assign]
    return made


def of_kind(kind: str, name: str = "p") -> Pod:
    return make_pod(name).labels(kind=kind).build()


def snapshot_of(count: int) -> Snapshot:
    return Snapshot.of(nodes(*(f"n{number}" for number in range(count))))


def everything(framework: Framework) -> NodeSelection:
    """All nodes of the framework's snapshot, as a search covers them."""
    return framework.handle.snapshot.selection


def with_strategy(strategy: str, **args: object) -> Profile:
    """The default profile with this scoring strategy of CPU and memory."""
    scored = {"type": strategy, "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": scored, **args}}]}
        ],
    }
    return parse_configuration(document, "test", REGISTRY).profiles[0]


def sibling(pod: Pod, number: int, cpu: int, memory: int, **extended: int) -> Pod:
    """A pod that differs from another in its name, and in what its first container requests."""
    first, *others = pod.spec.containers
    requests = {"cpu": f"{cpu}m", "memory": str(memory)}
    requests |= {{"gpus": GPU, "nics": NIC}[name]: str(amount) for name, amount in extended.items()}
    first = attrs.evolve(first, resources=ResourceRequirements(requests=requests))
    named = relative(pod, number)
    return attrs.evolve(named, spec=attrs.evolve(pod.spec, containers=(first, *others)))


def relative(pod: Pod, number: int) -> Pod:
    """A pod like another, but for its name."""
    name = f"{pod.name}-{number}"
    return attrs.evolve(pod, metadata=attrs.evolve(pod.metadata, name=name, uid=name))


def some_nodes(count: int, cpu: int = 8) -> list[Node]:
    return [
        make_node(f"n{number}").labels(host=f"n{number}").capacity(cpu=cpu, memory="64Gi", pods=110).build()
        for number in range(count)
    ]


def zoned_nodes(count: int) -> list[Node]:
    """Nodes in three zones, with room for few pods."""
    return [
        make_node(f"n{number}")
        .labels(host=f"n{number}", zone=f"z{number % 3}")
        .capacity(cpu=8, memory="64Gi", pods=3)
        .build()
        for number in range(count)
    ]


RELATED: Final = [
    make_pod("spread").labels(app="a").spread("zone", {"app": "a"}).build(),
    make_pod("evenly").labels(app="a").spread("zone", {"app": "a"}, hard=False).build(),
    make_pod("near").labels(app="a").pod_affinity("zone", {"app": "a"}).build(),
    make_pod("far").labels(app="b").pod_anti_affinity("host", {"app": "b"}).build(),
    make_pod("drawn").labels(app="a").pod_affinity("host", {"app": "a"}, weight=10).build(),
    make_pod("repelled").labels(app="b").pod_anti_affinity("zone", {"app": "a"}, weight=10).build(),
]
"""Pods with terms and constraints about others."""


class House:
    """Nodes and pods on them, and a scheduler with a profile, for one pod after another."""

    def __init__(
        self,
        nodes: Sequence[Node],
        pods: Sequence[Pod] = (),
        *,
        profile: Profile | None = None,
        registry: Registry | None = None,
        services: Sequence[Service] = (),
        percentage: int = 0,
        nominator: Nominator | None = None,
        metrics: MetricsRecorder | None = None,
        selector: HostSelector | None = None,
        evaluation: Evaluation = Evaluation.MEMO,
    ) -> None:
        self.cluster = InMemoryCluster((*nodes, *services))
        self.cache, self.snapshot = Cache(), Snapshot()
        for node in nodes:
            self.cache.add_node(node)
        for pod in pods:
            self.cache.add_pod(pod)
        self.framework = Framework(
            REGISTRY if registry is None else registry,
            default_profile() if profile is None else profile,
            Parts(
                self.cluster,
                snapshot=self.snapshot,
                nominator=Nominator() if nominator is None else nominator,
                metrics=NO_METRICS if metrics is None else metrics,
            ),
            evaluation=evaluation,
        )
        self.random = Random(7)
        self.scheduler = GenericScheduler(
            self.cache,
            self.snapshot,
            random=self.random,
            percentage_of_nodes_to_score=percentage,
            selector=selector,
        )

    @property
    def together(self) -> int:
        """How many times nodes were filtered all together."""
        return self.framework.decided_together

    @property
    def rows_asked(self) -> int:
        """How many nodes plugins were asked about."""
        return sum(counts.rows_asked for counts in self.framework.memo_report().values())

    def schedule(self, pod: Pod, observer: DecisionObserver | None = None) -> ScheduleResult | str:
        """The result, after which the pod counts on its node; the reasons where it fits nowhere."""
        try:
            result = self.scheduler.schedule(self.framework, CycleState(), pod, observer=observer)
        except FitError as error:
            return str(error)
        self.cache.assume_pod(pod.bound_to(result.suggested_host))
        return result

    def host(self, pod: Pod) -> str:
        """The node that the pod gets."""
        result = self.schedule(pod)
        assert isinstance(result, ScheduleResult), result
        return result.suggested_host


def two_houses(nodes: Sequence[Node], pods: Sequence[Pod] = (), **options: object) -> tuple[House, House]:
    """Equal houses: plans decide in the first, and the scalar forms of all hooks in the second."""
    first, second = (
        House(nodes, pods, evaluation=each, **options)  # type: ignore[arg-type]
        for each in (Evaluation.MEMO, Evaluation.SCALAR)
    )
    return first, second


def decision(framework: Framework, pod: Pod, start: int, wanted: int) -> list[object]:
    """What a search from a row on finds, and what later hooks and callers are told."""
    state = CycleState()
    left_over, status, narrowing = framework.run_pre_filter_plugins(state, pod)
    told: list[object] = [left_over, status, narrowing, state.skip_filter_plugins]
    if not status.is_success or left_over is not None:
        return told
    found = framework.filter_nodes(
        state, pod, NodeSelection.whole(framework.handle.snapshot.table, start), wanted
    )
    told += [found.feasible.rows.tolist(), found.count, found.processed, found.error, list(found.refused)]
    if found.count:
        assert framework.run_pre_score_plugins(state, pod, found.feasible).is_success
        totals, _ = framework.total_scores(state, pod, found.feasible)
        assert totals is not None
        best = list(totals.best_rows(found.feasible))
        told += [state.skip_score_plugins, totals.values.tolist(), best, totals.number_of_best]
    return told
