"""Whatever kind of step a plugin is in plans, its answers are those of its scalar forms, while the cluster changes."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable, Sequence
from enum import Enum
from random import Random

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedfw import (
    ByDomain,
    Cache,
    CycleState,
    EnabledPlugin,
    Evaluation,
    Framework,
    InMemoryCluster,
    IntArray,
    Node,
    NodeInfo,
    NodeTable,
    Parts,
    PluginByDomain,
    Pod,
    PodInfo,
    Profile,
    Reads,
    Registry,
    Snapshot,
    StateKey,
    Status,
    Verdicts,
    make_node,
    make_pod,
)
from kschedfw.framework.metrics import NO_METRICS, MetricsRecorder, NoMetrics
from kschedfw.framework.nominator import Nominator
from kschedfw.framework.plugin import IDLE
from kschedfw.framework.results import DomainScores, DomainVerdicts, Normalizing
from kschedfw.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from kschedfw.plugins.node_resources_fit import NodeResourcesFit
from kschedfw.testing.properties import examples
from tests.framework.runtime.engine.support import COMPILED, NUMPY, decision, use
from tests.framework.support import PluginClass, plugin

pytestmark = pytest.mark.slow


class Kind(Enum):
    """The kinds of steps."""

    KEPT_BY_NODE = "kept by node"
    KEPT_BY_PODS = "kept by pods"
    IDLE = "idle for some pods"
    LEARNED = "kept by what it reads"
    TOGETHER = "asked about all nodes together"
    ONE_BY_ONE = "asked node by node"
    BY_DOMAIN = "asked by domain"
    BY_AMOUNTS = "computed from amounts"


def drawn(*what: object) -> int:
    """A number that depends on these things only, and looks random."""
    return zlib.crc32(repr(what).encode())


def kind_of(pod: Pod) -> str:
    return pod.labels["kind"]


def step_of(kind: Kind, name: str, random: Random) -> PluginClass:
    """A plugin that is a step of this kind."""
    if kind is Kind.BY_AMOUNTS:
        return random.choice([NodeResourcesFit, NodeResourcesBalancedAllocation])
    if kind is Kind.BY_DOMAIN:
        return by_domain(name, random)
    seed, normalizes, is_batch = random.random(), random.random() < 0.5, random.random() < 0.5
    reads = Reads.NODE if kind is Kind.KEPT_BY_NODE else Reads.PODS
    if kind is Kind.LEARNED:
        reads, is_batch = random.choice(list(Reads)[:2]), False

    def seen(info: NodeInfo) -> object:
        node = info.name, sorted(info.node.labels.items())
        return node if reads is Reads.NODE else (node, len(info.pods))

    def filter_(pod: Pod, node_info: NodeInfo) -> Status | None:
        number = drawn(seed, "filter", kind_of(pod), seen(node_info))
        if number % 5:
            return None
        return Status.unresolvable(f"{name} no") if number % 3 else Status.unschedulable(f"{name} not yet")

    def score(pod: Pod, node_info: NodeInfo) -> int:
        return drawn(seed, "score", kind_of(pod), seen(node_info)) % 101

    def filter_batch(pod: Pod, nodes: NodeTable, rows: IntArray) -> Verdicts:
        statuses, codes = [Status.success()], []
        for row in rows.tolist():
            status = filter_(pod, nodes.node_infos[row])
            if status is not None and status not in statuses:
                statuses.append(status)
            codes.append(0 if status is None else statuses.index(status))
        return Verdicts(np.array(codes, dtype=random.choice([np.int8, np.int64])), tuple(statuses))

    def score_batch(pod: Pod, nodes: NodeTable, rows: IntArray) -> IntArray:
        return np.array([score(pod, nodes.node_infos[row]) for row in rows.tolist()], dtype=np.int64)

    skipping = {hook: random.random() < 0.3 for hook in ("pre_filter", "pre_score")}

    def skip_in(hook: str) -> Callable[[Pod], Status | None]:
        def skip(pod: Pod) -> Status | None:
            is_idle = kind is Kind.IDLE and kind_of(pod) == "0"
            return Status.skip() if is_idle or (skipping[hook] and kind_of(pod) == "1") else None

        return skip

    hooks: dict[str, Callable[..., object]] = {
        "pre_filter": skip_in("pre_filter"),
        "filter": filter_,
        "pre_score": skip_in("pre_score"),
        "score": score,
    }
    if kind is Kind.TOGETHER or (kind is not Kind.ONE_BY_ONE and is_batch):
        hooks |= {"filter_batch": filter_batch, "score_batch": score_batch}
    if normalizes:
        hooks["normalize_score"] = stretched
    made = plugin(name, **hooks)
    if kind is Kind.LEARNED:
        made.pure = True
    elif kind not in (Kind.TOGETHER, Kind.ONE_BY_ONE):
        made.reads = reads

        def sign(_self: object, pod: Pod) -> Hashable:
            return IDLE if kind is Kind.IDLE and kind_of(pod) == "0" else kind_of(pod)

        made.sign = sign  # type: ignore[assignment, method-assign]
    return made


def stretched(scores: IntArray) -> IntArray:
    low, high = int(scores.min()), int(scores.max())
    return np.array([int((score - low) / ((high - low) or 1) * 100) for score in scores.tolist()])


def reversed_(scores: IntArray) -> IntArray:
    low, high = int(scores.min()), int(scores.max())
    return np.array([100 * (high + low - score) // high if high else 100 for score in scores.tolist()])


def by_domain(name: str, random: Random) -> PluginClass:
    """A plugin that decides by the numbers of pods in the zones and racks of nodes."""
    seed, normalizing = random.random(), random.choice(list(Normalizing))
    keys = random.choice([("zone",), ("zone", "rack"), ()])
    counts_key = StateKey[dict[tuple[str, str | None], int]](f"counts of {name}")

    def count(state: CycleState, nodes: Sequence[NodeInfo]) -> None:
        found: dict[tuple[str, str | None], int] = {}
        for info in nodes:
            for key in keys:
                domain = key, info.node.labels.get(key)
                found[domain] = found.get(domain, 0) + len(info.pods)
        state.write(counts_key, found)

    def refuses(pod: Pod, domain: tuple[str, str | None], number: int) -> bool:
        return drawn(seed, kind_of(pod), domain, number) % 6 == 0

    def filter_(state: CycleState, pod: Pod, node_info: NodeInfo) -> Status | None:
        counts = state.read(counts_key)
        domains = [(key, node_info.node.labels.get(key)) for key in keys]
        refused = any(refuses(pod, each, counts[each]) for each in domains)
        return Status.unschedulable(f"{name} no") if refused else None

    def score(state: CycleState, node_info: NodeInfo) -> int:
        counts = state.read(counts_key)
        return sum(counts.get((key, node_info.node.labels.get(key)), 0) for key in keys)

    def filter_batch(state: CycleState, pod: Pod, nodes: NodeTable, rows: IntArray) -> Verdicts:
        said = [filter_(state, pod, nodes.node_infos[row]) for row in rows.tolist()]
        refused = np.array([each is not None for each in said], dtype=np.bool_)
        return Verdicts.refuse(refused, Status.unschedulable(f"{name} no"))

    # The last value is that of nodes without the label.
    def values(nodes: NodeTable, key: str, of: Callable[[str | None], object], dtype: type) -> ByDomain:
        column = nodes.label(key)
        made = [of(value) for value in column.values[: column.size]]
        return ByDomain(column, np.array([*made, of(None)], dtype=dtype))

    def domain_refusals(_self: object, state: CycleState, nodes: NodeTable) -> DomainVerdicts:
        counts, pod = state.read(counts_key), state.read(POD)

        def refused(key: str) -> Callable[[str | None], bool]:
            return lambda value: refuses(pod, (key, value), counts.get((key, value), 0))

        parts = [values(nodes, key, refused(key), bool) for key in keys]
        return DomainVerdicts(parts, [Status.unschedulable(f"{name} no")] * len(parts))

    def domain_scores(_self: object, state: CycleState, nodes: NodeTable) -> DomainScores:
        counts = state.read(counts_key)

        def score_of(key: str) -> Callable[[str | None], int]:
            return lambda value: counts.get((key, value), 0)

        return DomainScores([values(nodes, key, score_of(key), np.int64) for key in keys], normalizing)

    def pre_filter(state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> None:
        state.write(POD, pod)
        count(state, nodes)

    own: dict[str, object] = {
        "filter": filter_,
        "filter_batch": filter_batch,
        "score": score,
        "score_batch": None,
        "normalize_score": stretched if normalizing is Normalizing.STRETCHED else reversed_,
    }
    # Half of these plugins leave the hooks to their base.
    made = plugin(name, PluginByDomain, pre_filter=pre_filter, **(own if random.random() < 0.5 else {}))
    made.domain_refusals = domain_refusals  # type: ignore[attr-defined]
    made.domain_scores = domain_scores  # type: ignore[attr-defined]
    return made


POD = StateKey[Pod]("pod")


class World:
    """Nodes and pods that come, go and change, in a cache that brings a snapshot along."""

    def __init__(self, random: Random) -> None:
        self.random, self.cache, self.snapshot = random, Cache(), Snapshot()
        self.nominator = Nominator()
        self.nodes: dict[str, Node] = {}
        self.placed: list[Pod] = []
        self._made = 0
        for _ in range(random.choice([3, 12, 30])):
            self.add_node()
        self.cache.update_snapshot(self.snapshot)

    def pod(self) -> Pod:
        self._made += 1
        made = make_pod(f"p{self._made}").labels(kind=str(self.random.randrange(3)))
        requests = {"cpu": self.random.choice(["0", "100m", "100m", "1", f"{self._made}m"])}
        if self.random.random() < 0.5:
            requests["memory"] = self.random.choice(["1Gi", "3Gi"])
        return made.priority(self.random.randrange(2)).requests(requests).build()

    def node(self, name: str) -> Node:
        labels = {
            key: self.random.choice(["a", "b", "c"]) for key in ("zone", "rack") if self.random.random() < 0.8
        }
        capacity: dict[str, str | int] = {
            "cpu": self.random.choice([0, 2, 4]),
            "memory": self.random.choice(["4Gi", "8Gi"]),
            "pods": self.random.choice([2, 9]),
        }
        return make_node(name).labels(labels).capacity(capacity).build()

    def add_node(self) -> None:
        name = f"n{self.random.randrange(40)}"
        if name not in self.nodes:
            self.nodes[name] = self.node(name)
            self.cache.add_node(self.nodes[name])

    def change(self) -> None:
        for _ in range(self.random.choice([0, 1, 1, 2, 6])):
            self._change(
                self.random.choice(
                    ["pod"] * 5 + ["gone"] * 2 + ["label", "add", "remove", "again", "nominate"]
                )
            )
        self.cache.update_snapshot(self.snapshot)

    def _change(self, what: str) -> None:
        name = self.random.choice(list(self.nodes))
        match what:
            case "pod":
                self.placed.append(self.pod().bound_to(name))
                self.cache.add_pod(self.placed[-1])
            case "gone" if self.placed:
                self.cache.remove_pod(self.placed.pop(self.random.randrange(len(self.placed))))
            case "label":
                self.nodes[name] = self.node(name)
                self.cache.update_node(self.nodes[name])
            case "add":
                self.add_node()
            case "remove" | "again" if len(self.nodes) > 1:
                self.cache.remove_node(self.nodes.pop(name))
                if what == "again":
                    self.cache.update_snapshot(self.snapshot)
                    self.nodes[name] = self.node(name)
                    self.cache.add_node(self.nodes[name])
            case "nominate":
                for info in self.nominator.nominated_pods():
                    self.nominator.delete(info.pod)
                for _ in range(self.random.choice([0, 1, 12])):
                    self.nominator.add(PodInfo.of(self.pod()), f"n{self.random.randrange(40)}")


class Listening(NoMetrics):
    """A recorder that a framework has to tell, unlike its base."""


def framework_of(
    world: World,
    steps: Sequence[tuple[PluginClass, int]],
    evaluation: Evaluation,
    metrics: MetricsRecorder = NO_METRICS,
) -> Framework:
    registry = Registry(entry_points=False)
    for each, _ in steps:
        registry.register(each)
    return Framework(
        registry,
        Profile([EnabledPlugin(each.name, weight) for each, weight in steps]),
        Parts(InMemoryCluster(), snapshot=world.snapshot, nominator=world.nominator, metrics=metrics),
        evaluation=evaluation,
    )


@attrs.frozen
class Search:
    """One question to all frameworks."""

    pod: Pod
    start: int
    wanted: int

    @classmethod
    def any(cls, world: World) -> Search:
        count = len(world.snapshot)
        whole = world.random.random() < 0.5
        start = 0 if whole else world.random.randrange(count)
        return cls(world.pod(), start, count if whole else world.random.randint(1, count))


@pytest.mark.parametrize("form", [NUMPY, COMPILED])
@pytest.mark.parametrize("kind", Kind)
@settings(max_examples=examples(60))
@given(st.integers(0, 2**32 - 1))
def test_step_of_each_kind_beside_others_decides_as_its_scalar_forms(
    kind: Kind, form: str, seed: int
) -> None:
    random = Random(seed)
    kinds = [kind, *random.choices(list(Kind), k=random.choice([0, 1, 2]))]
    random.shuffle(kinds)
    made = [step_of(each, f"P{number}", random) for number, each in enumerate(kinds)]
    steps = {each.name: (each, random.choice([1, 1, 3])) for each in made}.values()
    world = World(random)
    metrics = random.choice([NO_METRICS, Listening()])
    with pytest.MonkeyPatch.context() as patch:
        use(form, patch)
        planned, scalar = (
            framework_of(world, list(steps), evaluation, metrics)
            for evaluation in (Evaluation.MEMO, Evaluation.SCALAR)
        )
        for _ in range(10):
            search = Search.any(world)
            asked = search.pod, search.start, search.wanted
            assert decision(planned, *asked) == decision(scalar, *asked)
            if random.random() < 0.4:
                assert decision(planned, *asked) == decision(scalar, *asked)
            world.change()
        planned.close()
        scalar.close()
