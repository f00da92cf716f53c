"""The batch forms give what the scalar forms give, to the last digit."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from kschedfw_costaware import MAX_HOURLY_PRICE, CostAware, CostAwareArgs, InstancePrice

from kschedfw import Node, Pod, make_node, make_pod
from kschedfw.testing import FrameworkHarness

TYPES = ["", *(f"type-{index}" for index in range(7))]


def any_node(random: Random, name: str) -> Node:
    builder = make_node(name)
    if random.random() < 0.9:
        builder.capacity(cpu=f"{random.randint(1, 64_000)}m", memory=random.randint(1, 1 << 40))
    if random.random() < 0.9:
        builder.labels({"node.kubernetes.io/instance-type": random.choice([*TYPES, "unknown"])})
    return builder.build()


def any_pod(random: Random) -> Pod:
    builder = make_pod().annotations({MAX_HOURLY_PRICE: str(random.choice([0, 0.001, 0.05, 1, 100]))})
    if random.random() < 0.9:
        builder.requests(cpu=f"{random.randint(0, 8_000)}m")
    if random.random() < 0.9:
        builder.requests(memory=random.randint(0, 1 << 36))
    return builder.build()


@pytest.mark.parametrize("seed", range(30))
def test_batch_equals_scalar(seed: int) -> None:
    random = Random(seed)
    prices = tuple(
        InstancePrice(value, f"{random.uniform(0, 20):.{random.randint(0, 9)}f}") for value in TYPES
    )
    nodes = [any_node(random, f"node-{index}") for index in range(50)]
    harness = FrameworkHarness(CostAware, nodes=nodes, args={"CostAware": CostAwareArgs(prices=prices)})
    plugin = harness.framework.plugins["CostAware"]
    assert isinstance(plugin, CostAware)
    table, infos = harness.snapshot.table, harness.snapshot.node_infos
    for _ in range(20):
        pod = any_pod(random)
        _, status = harness.pre_filter(pod)
        assert status.is_success
        rows = np.array(
            sorted(random.sample(range(len(nodes)), random.randint(1, len(nodes)))), dtype=np.int64
        )
        verdicts = plugin.filter_batch(harness.state, table, rows)
        assert [verdicts.of(index) for index in range(len(rows))] == [
            plugin.filter(harness.state, infos[row]) for row in rows
        ]
        if harness.framework.run_pre_score_plugins(harness.state, pod, infos).is_success and (
            "CostAware" not in harness.state.skip_score_plugins
        ):
            scores = plugin.score_batch(harness.state, table, rows)
            assert scores.dtype == np.int64
            assert scores.tolist() == [plugin.score(harness.state, infos[row]) for row in rows]


def test_equal_signatures_mean_equal_answers() -> None:
    harness = FrameworkHarness(
        CostAware, args={"CostAware": CostAwareArgs(prices=(InstancePrice("a", "1"),))}
    )
    plugin = harness.framework.plugins["CostAware"]
    base = make_pod("one").requests(cpu="1").build()
    assert plugin.sign(base) == plugin.sign(make_pod("two").labels(app="web").requests(cpu="1000m").build())
    assert plugin.sign(base) != plugin.sign(make_pod("three").requests(cpu="2").build())
    limited = make_pod("four").requests(cpu="1").annotations({MAX_HOURLY_PRICE: "1"}).build()
    assert plugin.sign(base) != plugin.sign(limited)
