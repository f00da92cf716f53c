"""OpportunisticBatching: the search for a pod is reused for pods like it that follow."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedfw import (
    EnabledPlugin,
    ExtensionPoint,
    InMemoryCluster,
    NodeInfo,
    Plugin,
    Pod,
    Profile,
    Reads,
    Registry,
    hookimpl,
    make_node,
    make_pod,
)
from kschedfw.explain import ExplainingScheduler
from kschedfw.framework.gate_table import OPPORTUNISTIC_BATCHING
from kschedfw.framework.gates import FeatureGates
from kschedfw.framework.metrics import NO_METRICS, BatchAttempt, BatchFlush, MetricsRecorder, NoMetrics
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.scheduler import FirstByNameSelector, GenericScheduler, Scheduler, profiles_of
from kschedfw.testing import FakeClock
from kschedfw.testing.decisions import as_text
from kschedfw.testing.properties import examples
from tests.config.documents import document, loaded

LIST = [{"name": "PodTopologySpread", "args": {"defaultingType": "List"}}]
PROFILES = profiles_of(loaded(document(profiles=[{"pluginConfig": LIST}])))


class Indifferent(Plugin):
    """A plugin like most: it says nothing of batches, even if its answers may be kept."""

    name = "Indifferent"
    reads = Reads.NODE

    def sign(self, pod: Pod) -> Hashable | None:  # pods make no difference
        return ()

    @hookimpl
    def score(self, node_info: NodeInfo) -> int:
        return 0


class Flushes(NoMetrics):
    """Receives the ends of attempts to reuse a search."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.rescored = 0

    def batch_attempt(self, result: BatchAttempt, profile: str) -> None:
        self.seen.append(result.value)

    def batch_flushed(self, reason: BatchFlush, profile: str) -> None:
        self.seen.append(reason.value)

    def batch_rescored(self, profile: str, seconds: float) -> None:
        self.rescored += 1


class FailsLater(Plugin):
    """A scoring plugin that signs all pods alike, and fails where the second pod is asked about."""

    name = "FailsLater"
    failing = ""

    def sign_for_batch(self, pod: Pod) -> Hashable | None:
        return ()

    def _fail(self, hook: str, pod: Pod) -> None:
        if hook == self.failing and pod.name == "second":
            raise ValueError("told to")

    @hookimpl
    def pre_score(self, pod: Pod) -> None:
        self._fail("pre_score", pod)

    @hookimpl
    def score(self, pod: Pod) -> int:
        self._fail("score", pod)
        return 0

    @hookimpl
    def normalize_score(self, pod: Pod, scores: IntArray) -> None:
        self._fail("normalize_score", pod)


def scheduler_of(
    cluster: InMemoryCluster,
    *,
    batching: bool = True,
    profiles: Sequence[Profile] = PROFILES,
    version: str = "1.36",
    metrics: MetricsRecorder = NO_METRICS,
) -> Scheduler:
    registry = Registry()
    registry.register(Indifferent)
    registry.register(FailsLater)
    return Scheduler(
        cluster,
        profiles,
        registry=registry,
        clock=FakeClock(1000.0),
        selector=FirstByNameSelector(),
        percentage_of_nodes_to_score=100,
        feature_gates=FeatureGates({OPPORTUNISTIC_BATCHING: batching}, version),
        metrics=metrics,
    )


def placed(
    cpus: Sequence[int], pods: int, *, batching: bool, ask: int = 5, version: str = "1.36"
) -> dict[str, str]:
    """The nodes of pods that each ask for so much CPU; for 5, more than half of any node."""
    nodes = [make_node(f"n{index}").capacity(cpu=cpu, memory="8Gi", pods=9) for index, cpu in enumerate(cpus)]
    cluster = InMemoryCluster([each.build() for each in nodes])
    scheduler = scheduler_of(cluster, batching=batching, version=version)
    for index in range(pods):
        cluster.add(make_pod(f"p{index}").requests(cpu=ask, memory="1Gi").build())
        scheduler.run_until_idle()
    scheduler.close()
    return {pod.name: pod.node_name for pod in cluster.list(Pod)}


@settings(max_examples=examples(25))
@given(st.lists(st.integers(4, 9), min_size=1, max_size=8), st.integers(1, 9))
def test_pods_that_fill_their_nodes_go_where_they_go_without_batching_if_nothing_else_happens(
    cpus: list[int], pods: int
) -> None:
    assert placed(cpus, pods, batching=True) == placed(cpus, pods, batching=False)


@pytest.mark.parametrize(
    ("batching", "plugins", "node"),
    [(True, [], "z"), (False, [], "a"), (True, ["Indifferent"], "a")],
    ids=["with batching", "without batching", "with a plugin that signs no pod for it"],
)
def test_a_better_node_that_comes_in_between_is_not_looked_at_if_the_search_is_reused(
    batching: bool, plugins: list[str], node: str
) -> None:
    points = dict(PROFILES[0].points)
    points[ExtensionPoint.SCORE] = (*points[ExtensionPoint.SCORE], *map(EnabledPlugin, plugins))
    profile = attrs.evolve(PROFILES[0], points=points)

    def third_node() -> str:
        cluster = InMemoryCluster(
            [
                make_node(name).capacity(cpu=cpu, pods=9).build()
                for name, cpu in (("m", 7), ("n", 8), ("z", 6))
            ]
        )
        scheduler = scheduler_of(cluster, batching=batching, profiles=[profile])
        for name in ("first", "second"):
            cluster.add(make_pod(name).requests(cpu=5).build())
            scheduler.run_until_idle()
        cluster.add(make_node("a").capacity(cpu=9, pods=9).build())  # all rows move
        cluster.add(make_pod("third").requests(cpu=5).build())
        scheduler.run_until_idle()
        scheduler.close()
        return next(pod.node_name for pod in cluster.list(Pod) if pod.name == "third")

    assert third_node() == node


def test_an_explanation_names_the_pod_whose_search_was_reused() -> None:
    cluster = InMemoryCluster(
        [make_node(name).capacity(cpu=cpu, pods=9).build() for name, cpu in (("m", 7), ("n", 8), ("o", 6))]
    )
    scheduler = scheduler_of(cluster)
    assert isinstance(scheduler.algorithm, GenericScheduler)
    texts: list[str] = []
    scheduler.algorithm = explaining = ExplainingScheduler(scheduler.algorithm)
    for name in ("first", "second"):
        cluster.add(make_pod(name).requests(cpu=5).build())
        scheduler.run_until_idle()
        explanation = explaining.explanation()
        assert explanation is not None
        texts.append(as_text(explanation))
    scheduler.close()
    assert "reused" not in texts[0]
    assert "not looked at: the search for default/first was reused" in texts[1]


class TestRescoring:
    """v1.37 (kubernetes/kubernetes#140289): a node that isn't full is scored again, and competes with the others."""

    @settings(max_examples=examples(25))
    @given(st.lists(st.integers(4, 9), min_size=1, max_size=6), st.integers(1, 12), st.integers(1, 4))
    def test_pods_of_any_size_go_where_they_go_without_batching_if_nothing_else_happens(
        self, cpus: list[int], pods: int, ask: int
    ) -> None:
        reused = placed(cpus, pods, batching=True, ask=ask, version="1.37")
        assert reused == placed(cpus, pods, batching=False, ask=ask, version="1.37")

    @staticmethod
    def run(version: str, *, failing: str = "", nominated: str = "") -> tuple[str, Flushes]:
        """The node of the second of two small pods, between which a better node comes; and what was told of it."""
        points = dict(PROFILES[0].points)
        FailsLater.failing = failing
        for point in (ExtensionPoint.PRE_SCORE, ExtensionPoint.SCORE):
            points[point] = (*points[point], EnabledPlugin("FailsLater"))
        told, cluster = (
            Flushes(),
            InMemoryCluster(
                [make_node(name).capacity(cpu=cpu, pods=9).build() for name, cpu in (("m", 7), ("n", 80))]
            ),
        )
        profile = attrs.evolve(PROFILES[0], points=points)
        scheduler = scheduler_of(cluster, profiles=[profile], version=version, metrics=told)
        cluster.add(make_pod("first").requests(cpu=1).build())
        scheduler.run_until_idle()
        cluster.add(make_node("a").capacity(cpu=90, pods=9).build())  # all rows move
        second = make_pod("second").requests(cpu=1)
        cluster.add((second.nominated_node(nominated) if nominated else second).build())
        scheduler.run_until_idle()
        scheduler.close()
        return next(pod.node_name for pod in cluster.list(Pod) if pod.name == "second"), told

    def test_the_search_is_reused_although_the_last_node_has_room(self) -> None:
        (before, flushed), (after, reused) = self.run("1.36"), self.run("1.37")
        # With two of its 80 CPUs taken, n is still freer than m with one of 7; a isn't part of the search.
        assert (before, flushed.seen[1:]) == ("a", ["node_not_full", "no_hint"])
        assert (after, reused.seen[1:]) == ("n", ["hint_used"])
        assert (flushed.rescored, reused.rescored) == (0, 1)

    @pytest.mark.parametrize(
        ("failing", "reason"),
        [
            ("pre_score", "prescore_error"),
            ("score", "rescore_error"),
            ("normalize_score", "normalize_error"),
        ],
    )
    def test_a_plugin_that_fails_meanwhile_ends_the_reuse(self, failing: str, reason: str) -> None:
        _, told = self.run("1.37", failing=failing)
        assert told.seen[1:3] == [reason, "no_hint"]

    def test_a_nominated_pod_takes_no_part(self) -> None:
        _, told = self.run("1.37", nominated="m")
        assert told.seen[1:3] == ["pod_nominated", "no_hint"]
