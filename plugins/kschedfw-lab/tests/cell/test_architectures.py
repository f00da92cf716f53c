"""The architectures: who sees what, how long it takes, and that one scheduler alone decides the same in all of them."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_lab.cell.architecture import (
    ARCHITECTURES,
    MONOLITHIC,
    MULTI_PATH,
    PARTITIONED,
    SHARED_STATE,
    TWO_LEVEL,
    Architecture,
    NodeAccess,
    NodeShares,
)
from kschedfw_lab.cell.cell import Cell
from kschedfw_lab.cell.turns import ThinkTime

from kschedfw import InMemoryCluster, Pod, Scheduler, make_node, make_pod
from kschedfw.api.meta import Named
from kschedfw.testing import FakeClock
from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import DrawnCluster, clusters

SLOW, FAST = ThinkTime(10, 0), ThinkTime(1, 0)


def kind_of(pod: Pod) -> str:
    return pod.labels.get("kind", "batch")


def cell(
    architecture: Architecture,
    nodes: int,
    service: int,
    batch: int,
    think: dict[str, ThinkTime] | None = None,
) -> Cell:
    """Nodes of 2 CPUs, and pods of 2 CPUs: a node takes one."""
    objects: list[Named] = [make_node(f"n{number}").capacity(cpu=2).build() for number in range(nodes)]
    for kind, count in ("service", service), ("batch", batch):
        objects += [
            make_pod(f"{kind}-{number}").labels(kind=kind).requests(cpu=2).build() for number in range(count)
        ]
    think = {"service": SLOW, "batch": FAST} if think is None else think
    return Cell(InMemoryCluster(objects), architecture, think, kind_of=kind_of)


def placed(truth: InMemoryCluster) -> dict[str, str]:
    return {pod.name: pod.node_name for pod in truth.list(Pod) if pod.node_name}


class TestShares:
    def test_partitions_have_all_nodes_once(self) -> None:
        shares = NodeShares(NodeAccess.PARTITION, range(7), 3)
        parts = [shares.take(index) for index in range(3)]
        assert sorted(node for part in parts for node in part) == list(range(7))
        assert max(map(len, parts)) - min(map(len, parts)) <= 1

    def test_an_offer_is_locked_until_it_is_given_back(self) -> None:
        shares = NodeShares(NodeAccess.OFFER, range(3), 2)
        assert shares.take(0) == {0, 1, 2}
        assert shares.take(1) == frozenset()
        shares.give_back(0)
        assert shares.take(1) == {0, 1, 2}

    @pytest.mark.parametrize("access", NodeAccess)
    def test_a_single_scheduler_has_all(self, access: NodeAccess) -> None:
        shares = NodeShares(access, "abc", 1)
        for _ in range(2):
            assert shares.take(0) == set("abc")


class TestTime:
    """One service pod, for which a scheduler thinks 10 s, and one batch pod, for which it thinks 1 s."""

    @pytest.mark.parametrize(
        ("architecture", "end"),
        [
            (MONOLITHIC, 20.0),
            (MULTI_PATH, 11.0),
            (PARTITIONED, 10.0),
            (TWO_LEVEL, 11.0),
            (SHARED_STATE, 10.0),
        ],
        ids=lambda value: getattr(value, "name", None),
    )
    def test_until_both_are_placed(self, architecture: Architecture, end: float) -> None:
        stage = cell(architecture, 4, service=1, batch=1)
        stage.run()
        assert len(placed(stage.state.truth)) == 2
        assert stage.clock.now() == end

    def test_a_conflict_is_decided_again(self) -> None:
        stage = cell(SHARED_STATE, 1, service=1, batch=1)
        stage.run()
        service, batch = stage.schedulers
        assert placed(stage.state.truth) == {"batch-0": "n0"}
        assert (service.accounts.conflicting, batch.accounts.conflicting) == (1, 0)
        assert (service.accounts.busy, service.accounts.wasted) == (20, 10)  # the second time it fits nowhere

    def test_offers_never_conflict(self) -> None:
        stage = cell(TWO_LEVEL, 3, service=3, batch=3)
        stage.run()
        assert len(placed(stage.state.truth)) == 3
        assert [each.accounts.conflicting for each in stage.schedulers] == [0, 0]

    def test_a_partition_may_be_full_while_others_are_empty(self) -> None:
        stage = cell(PARTITIONED, 4, service=0, batch=4)
        stage.run()
        assert len(placed(stage.state.truth)) == 2

    def test_who_waits(self) -> None:
        stage = cell(MULTI_PATH, 4, service=1, batch=1)
        stage.run()
        assert sorted(stage.schedulers[0].accounts.waits) == [0, 10]
        assert stage.schedulers[0].accounts.busyness(stage.clock.now()) == 1


@pytest.mark.slow
@settings(max_examples=examples(10))
@given(clusters(most_nodes=3, most_bound=3, most_pending=3), st.sampled_from(ARCHITECTURES))
def test_with_one_scheduler_every_architecture_decides_like_the_monolithic_one(
    given_cluster: DrawnCluster, architecture: Architecture
) -> None:
    """The same places as by a plain Scheduler, which knows nothing of shared states."""
    objects = [*given_cluster.nodes, *given_cluster.bound, *given_cluster.pending]
    stage = Cell(InMemoryCluster(objects), architecture, {"batch": FAST}, kind_of=lambda _: "batch", seed=1)
    stage.run(until=1000)
    assert placed(stage.state.truth) == placed(_scheduled_alone(objects))


def _scheduled_alone(objects: Iterable[Named]) -> InMemoryCluster:
    truth = InMemoryCluster(objects)
    Scheduler(truth, clock=FakeClock(), random=Random(1), initial_backoff=0.0).run_until_idle()
    return truth
