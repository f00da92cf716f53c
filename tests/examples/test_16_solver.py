"""The solver moves as few pods as can be, and the scheduler follows its plan."""

from __future__ import annotations

from itertools import chain, combinations

import pytest

from kschedfw import InMemoryCluster, Node, Pod, make_node, make_pod
from tests.examples.running import loaded, output_as_shown

pytest.importorskip("scipy", reason="needs scipy")
pytestmark = pytest.mark.slow

REPACK = loaded("16-solver", "repack.py")


def test_the_scheduler_places_what_waited_after_the_moves_of_the_readme() -> None:
    before, after = "\n".join(output_as_shown("16-solver", "repack.py")).split("\nthe solver's plan\n")
    assert "no place: database, lost" in before
    assert after.count("moves") == 2
    assert after.endswith("no place: lost")


def test_fewer_moves_would_leave_a_node_without_room() -> None:
    """By trying all sets of pods that could leave."""
    cluster = REPACK.cluster_with_gaps()
    moved = REPACK.plan(cluster).moved
    running = [pod for pod in cluster.list(Pod) if pod.node_name and REPACK.STAYS not in pod.labels]
    fewer = chain.from_iterable(combinations(running, count) for count in range(len(moved)))
    for leaving in fewer:
        free = {
            node.name: 3 + sum(_cpus(pod) for pod in leaving if pod.node_name == node.name)
            for node in cluster.list(Node)
        }
        assert max(free.values()) < 6


def _cpus(pod: Pod) -> int:
    return pod.requests.amounts.milli_cpu // 1000


def test_nothing_moves_where_nothing_can_be_placed_by_it() -> None:
    cluster = InMemoryCluster(
        [
            make_node("a").capacity(cpu=4, memory="8Gi", pods=10).build(),
            make_pod("web").requests(cpu=3).node("a").build(),
            make_pod("large").requests(cpu=5).build(),
        ]
    )
    assert REPACK.plan(cluster) == REPACK.Plan({}, {})


def test_a_plan_that_spreading_forbids_is_not_carried_out() -> None:
    nodes = [
        make_node(name).capacity(cpu=4, memory="8Gi", pods=10).labels(zone=name).build() for name in "ab"
    ]
    spread = make_pod("spread").labels(app="x").requests(cpu=1)
    there = [
        make_pod(f"there-{index}").labels(app="x").requests(cpu=1).node("b").build() for index in range(2)
    ]
    cluster = InMemoryCluster([*nodes, *there, spread.spread("zone", {"app": "x"}).build()])
    assert not REPACK.works(cluster, REPACK.Plan({"default/spread": "b"}, {}))
    assert REPACK.works(cluster, REPACK.Plan({"default/spread": "a"}, {}))
