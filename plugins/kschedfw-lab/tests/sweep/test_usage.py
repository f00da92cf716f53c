"""What pods hold over virtual time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_lab.sweep.usage import Usage, mean_over_time

from kschedfw import InMemoryCluster, make_node, make_pod
from kschedfw.simulator import Arrivals, Simulation
from kschedfw.testing.properties import examples

DURATION = "kschedfw/duration-seconds"

jobs = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 60)), min_size=1, max_size=8)


def followed(amounts: list[tuple[int, int]], rate: float | None) -> Usage:
    cluster = InMemoryCluster(
        [make_node(name).capacity(cpu=4, memory="8Gi", pods=10).build() for name in "ab"]
    )
    for index, (cpu, seconds) in enumerate(amounts):
        pod = make_pod(f"p{index}").requests(cpu=cpu).annotations({DURATION: str(seconds)})
        cluster.add(pod.build())
    simulation = Simulation(cluster, arrivals=Arrivals(rate=rate), seed=1)
    usage = Usage(simulation)
    simulation.run()
    usage.close()
    return usage


@settings(max_examples=examples(20))
@given(amounts=jobs, rate=st.sampled_from([None, 0.05, 1.0]))
def test_the_mean_is_what_the_jobs_hold_times_how_long(
    amounts: list[tuple[int, int]], rate: float | None
) -> None:
    usage = followed(amounts, rate)
    held, nodes, price = mean_over_time(usage, {"a": 5, "b": 5})
    seconds = sum(cpu * 1000 * seconds for cpu, seconds in amounts)
    assert held["cpu"] * usage.end == pytest.approx(seconds)
    assert held["pods"] * usage.end == pytest.approx(sum(seconds for _, seconds in amounts))
    assert 0 < nodes <= 2
    assert price == pytest.approx(5 * nodes)


@settings(max_examples=examples(20))
@given(amounts=jobs, rate=st.sampled_from([None, 1.0]))
def test_in_the_end_nobody_holds_anything_and_nobody_is_pending(
    amounts: list[tuple[int, int]], rate: float | None
) -> None:
    usage = followed(amounts, rate)
    (state,) = usage.states([usage.end])
    assert not any(state.held.values())
    assert (state.pending, state.on_node) == (0, {})
    assert len(usage.gone) == len(amounts)


@settings(max_examples=examples(20))
@given(amounts=jobs)
def test_at_any_time_the_nodes_together_hold_what_is_held(amounts: list[tuple[int, int]]) -> None:
    usage = followed(amounts, 0.5)
    for state in usage.states([usage.end * part / 7 for part in range(8)]):
        assert sum(each["cpu"] for each in state.on_node.values()) == state.held["cpu"]
        assert all(each["cpu"] <= 4000 for each in state.on_node.values())


def test_without_time_there_is_no_mean() -> None:
    cluster = InMemoryCluster([make_node("a").build(), make_pod("p").build()])
    simulation = Simulation(cluster)
    usage = Usage(simulation)
    simulation.run()
    assert mean_over_time(usage, {}) == ({}, 0, 0)
    assert usage.end == 0
