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


def scheduler_of(
    cluster: InMemoryCluster, *, batching: bool = True, profiles: Sequence[Profile] = PROFILES
) -> Scheduler:
    registry = Registry()
    registry.register(Indifferent)
    return Scheduler(
        cluster,
        profiles,
        registry=registry,
        clock=FakeClock(1000.0),
        selector=FirstByNameSelector(),
        percentage_of_nodes_to_score=100,
        feature_gates=FeatureGates({OPPORTUNISTIC_BATCHING: batching}),
    )


def placed(cpus: Sequence[int], pods: int, *, batching: bool) -> dict[str, str]:
    """The nodes of pods that each ask for more than half of any node."""
    nodes = [make_node(f"n{index}").capacity(cpu=cpu, memory="8Gi", pods=9) for index, cpu in enumerate(cpus)]
    cluster = InMemoryCluster([each.build() for each in nodes])
    scheduler = scheduler_of(cluster, batching=batching)
    for index in range(pods):
        cluster.add(make_pod(f"p{index}").requests(cpu=5, memory="1Gi").build())
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
