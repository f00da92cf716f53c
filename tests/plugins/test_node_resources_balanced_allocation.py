"""NodeResourcesBalancedAllocation: nodes that use their resources evenly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw import make_node, make_pod
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.plugins._resources import ResourceSpec
from kschedfw.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
    NodeResourcesBalancedAllocationArgs,
    balances,
)
from kschedfw.testing import FrameworkHarness

NAME = "NodeResourcesBalancedAllocation"
PLUGIN: Any = NodeResourcesBalancedAllocation
GPU = "example.com/gpu"


def node(name: str = "node", **capacity: str | int) -> Node:
    return (
        make_node(name).capacity({key.replace("gpu", GPU): value for key, value in capacity.items()}).build()
    )


def pod(where: str = "", **requests: str | int) -> Pod:
    builder = make_pod(f"on-{where or 'none'}").requests(
        {key: v for key, v in requests.items() if key != "gpu"}
    )
    if "gpu" in requests:
        builder.limits({GPU: requests["gpu"]})  # which the request follows
    return builder.node(where).build() if where else builder.build()


def harness(*nodes: Node, pods: tuple[Pod, ...] = (), resources: tuple[str, ...] = ()) -> FrameworkHarness:
    args = NodeResourcesBalancedAllocationArgs(tuple(map(ResourceSpec, resources)))
    return FrameworkHarness(PLUGIN, nodes=nodes, pods=pods, args={NAME: args})


def score(new: Pod, *nodes: Node, pods: tuple[Pod, ...] = (), resources: tuple[str, ...] = ()) -> list[int]:
    return list(harness(*nodes, pods=pods, resources=resources).score(new).values())


def test_on_an_empty_node_it_is_how_even_the_pods_own_shares_are() -> None:
    # empty nodes are balanced (100); with the pod: equal shares 100, shares 75 % and 50 % 87
    new = pod(cpu=3, memory=5000)
    assert score(new, node(cpu=6, memory=10000), node("b", cpu=4, memory=10000)) == [
        75,
        50 + (50 + 87 - 100) // 2,
    ]


def test_evening_out_what_is_there_earns_more_than_leaving_it_as_it_is() -> None:
    busy = pod("node", cpu=4)
    # before: 50 % and 0 % = 75; with 4000 of memory: 50 % and 40 % = 95
    assert score(pod(memory=4000), node(cpu=8, memory=10000), pods=(busy,)) == [50 + (50 + 95 - 75) // 2]


def test_making_it_worse_earns_less() -> None:
    busy = pod("node", cpu=4)
    # before 75; with 4 more CPUs: 100 % and 0 % = 50
    assert score(pod(cpu=4), node(cpu=8, memory=10000), pods=(busy,)) == [50 + (50 + 50 - 75) // 2]


def test_the_containers_own_requests_count_not_the_assumed_ones() -> None:
    silent = make_pod("silent").node("node").build()
    assert score(pod(cpu=3, memory=3000), node(cpu=6, memory=6000), pods=(silent,)) == [75]


def test_shares_are_capped_at_one() -> None:
    full = pod("node", cpu=6)
    assert score(pod(cpu=1), node(cpu=2, memory=1000), pods=(full,)) == [75]


def test_a_pod_that_requests_none_of_the_resources_is_skipped() -> None:
    run = harness(node(cpu=4, memory=1000))
    for silent in (make_pod().build(), pod(gpu=1)):
        run.state = CycleState()
        run.framework.run_pre_score_plugins(run.state, silent, run.snapshot.node_infos)
        assert run.state.skip_score_plugins == {NAME}


def test_without_its_pre_score_such_a_pod_gets_nothing_and_others_are_scored() -> None:
    run = harness(node(cpu=6, memory=6000))
    for new, expected in ((make_pod().build(), 0), (pod(cpu=3, memory=3000), 75)):
        scores, _ = run.framework.run_score_plugins(CycleState(), new, run.snapshot.node_infos)
        assert scores is not None
        assert list(scores.totals) == [expected]


def test_an_extended_resource_counts_only_for_pods_that_want_it() -> None:
    resources = ("cpu", "memory", GPU)
    machine = node(cpu=10, memory=10000, gpu=10)
    assert score(pod(cpu=5, memory=5000), machine, resources=resources) == [75]
    # 50 %, 50 %, 20 %: deviation √0.02 = 0.141, so 85
    assert score(pod(cpu=5, memory=5000, gpu=2), machine, resources=resources) == [50 + (50 + 85 - 100) // 2]


def test_a_resource_that_the_node_has_not_got_does_not_count() -> None:
    assert score(
        pod(cpu=5, memory=5000, gpu=2), node(cpu=10, memory=10000), resources=("cpu", "memory", GPU)
    ) == [75]


def test_ephemeral_storage_can_be_balanced_too() -> None:
    storage = "ephemeral-storage"
    new = make_pod().requests({storage: 500}, memory=500).build()
    machine = make_node().capacity({storage: 1000}, memory=1000).build()
    assert score(new, machine, resources=("memory", storage)) == [75]


def test_one_resource_alone_is_always_balanced() -> None:
    assert score(pod(cpu=3), node(cpu=4), resources=("cpu",)) == [75]


def balance(fractions: list[float]) -> int:
    """The balance of one node with these used shares."""
    shares = np.array(fractions).reshape(-1, 1)
    return int(balances(shares, np.ones_like(shares, dtype=np.bool_))[0])


def test_balance_is_cut_off_not_rounded() -> None:
    assert balance([]) == 100
    assert balance([0.3]) == 100
    assert balance([0.75, 0.5]) == 87
    assert balance([1.0, 0.0]) == 50
    assert balance([0.0, 0.0, 1.0]) == 52


AMOUNTS = st.integers(0, 2000)


@given(AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS)
def test_scores_lie_between_50_and_100(
    cpu: int, memory: int, gpu: int, cpu2: int, memory2: int, gpu2: int
) -> None:
    busy = pod("node", cpu=f"{cpu}m", memory=memory, gpu=gpu)
    new = pod(cpu=f"{cpu2 + 1}m", memory=memory2, gpu=gpu2)
    machine = node(cpu="1500m", memory=1000, gpu=700)
    (result,) = score(new, machine, pods=(busy,), resources=("cpu", "memory", GPU))
    assert 50 <= result <= 100


@given(st.lists(st.floats(0, 1), max_size=6))
def test_the_order_of_resources_hardly_matters(fractions: list[float]) -> None:
    assert abs(balance(fractions) - balance(fractions[::-1])) <= 1


def test_pods_with_the_same_requests_share_their_answers() -> None:
    plugin = harness().framework.plugins[NAME]
    assert plugin.sign(pod(cpu=1, gpu=1)) == plugin.sign(pod(cpu=1))
    assert plugin.sign(pod(cpu=1)) != plugin.sign(pod(cpu=2))


class TestArgs:
    def test_cpu_and_memory_are_the_default(self) -> None:
        assert [spec.name for spec in NodeResourcesBalancedAllocationArgs().resources] == ["cpu", "memory"]
        assert [spec.name for spec in NodeResourcesBalancedAllocationArgs(()).resources] == ["cpu", "memory"]

    def test_weights_other_than_1_and_repeated_names_are_refused(self) -> None:
        args = NodeResourcesBalancedAllocationArgs(
            (ResourceSpec("cpu", 2), ResourceSpec("memory", 1), ResourceSpec("cpu", 0))
        )
        assert sorted(map(str, args.validate())) == [
            "resources[0].weight: Invalid value: 2: must be 1",
            'resources[2].name: Duplicate value: "cpu"',
            "resources[2].weight: Invalid value: 0: must be 1",
        ]

    @pytest.mark.parametrize("resources", [[{"name": "cpu"}], [{"name": "cpu", "weight": 1}]])
    def test_they_are_read_from_a_configuration(self, resources: list[dict[str, object]]) -> None:
        run = FrameworkHarness(PLUGIN, args={NAME: {"resources": resources}})
        assert run.framework.plugins[NAME].args == NodeResourcesBalancedAllocationArgs((ResourceSpec("cpu"),))
