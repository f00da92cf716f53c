"""OpportunisticBatching: the search for a pod is reused for pods like it that follow."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from kschedfw import InMemoryCluster, Pod, make_node, make_pod
from kschedfw.explain import ExplainingScheduler
from kschedfw.explain.text import as_text
from kschedfw.framework.gates import OPPORTUNISTIC_BATCHING, FeatureGates
from kschedfw.scheduler import FirstByNameSelector, GenericScheduler, Scheduler, profiles_of
from kschedfw.testing import FakeClock
from tests.config.documents import document, loaded

LIST = [{"name": "PodTopologySpread", "args": {"defaultingType": "List"}}]
PROFILES = profiles_of(loaded(document(profiles=[{"pluginConfig": LIST}])))


def scheduler_of(cluster: InMemoryCluster, *, batching: bool = True) -> Scheduler:
    return Scheduler(
        cluster,
        PROFILES,
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


@settings(max_examples=25)
@given(st.lists(st.integers(4, 9), min_size=1, max_size=8), st.integers(1, 9))
def test_pods_that_fill_their_nodes_go_where_they_go_without_batching_if_nothing_else_happens(
    cpus: list[int], pods: int
) -> None:
    assert placed(cpus, pods, batching=True) == placed(cpus, pods, batching=False)


def test_a_better_node_that_comes_in_between_is_not_looked_at() -> None:
    def third_node(*, batching: bool) -> str:
        cluster = InMemoryCluster(
            [
                make_node(name).capacity(cpu=cpu, pods=9).build()
                for name, cpu in (("m", 7), ("n", 8), ("z", 6))
            ]
        )
        scheduler = scheduler_of(cluster, batching=batching)
        for name in ("first", "second"):
            cluster.add(make_pod(name).requests(cpu=5).build())
            scheduler.run_until_idle()
        cluster.add(make_node("a").capacity(cpu=9, pods=9).build())  # all rows move
        cluster.add(make_pod("third").requests(cpu=5).build())
        scheduler.run_until_idle()
        scheduler.close()
        return next(pod.node_name for pod in cluster.list(Pod) if pod.name == "third")

    assert third_node(batching=True) == "z"
    assert third_node(batching=False) == "a"


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
