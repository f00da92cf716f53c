"""The scores, worked out by hand from the formulas."""

from __future__ import annotations

import attrs
import pytest
from kschedfw_topoaware import NodeResourceTopology, NodeResourceTopologyMatch
from kschedfw_topoaware.testing import make_topology

from kschedfw import FrozenDict, KschedfwError, Pod, Quantity, make_node, make_pod
from kschedfw.testing import FrameworkHarness

NAME = "NodeResourceTopologyMatch"
GPU = "example.com/gpu"
Amount = str | int

EMPTY: dict[str, Amount] = {"cpu": 8, "memory": "16Gi"}
HALF: dict[str, Amount] = {"cpu": 4, "memory": "8Gi"}


def score(
    pod: Pod,
    topology: NodeResourceTopology | None,
    strategy: str = "LeastAllocated",
    resources: list[dict[str, object]] | None = None,
) -> int:
    args = {"scoringStrategy": {"type": strategy, "resources": resources or []}}
    it = FrameworkHarness(
        NodeResourceTopologyMatch,
        nodes=[make_node("node").capacity({"cpu": 100, "memory": "400Gi", GPU: 8}).build()],
        objects=[] if topology is None else [topology],
        args={NAME: args},
    )
    return it.score(pod)["node"]


def guaranteed(*containers: dict[str, Amount]) -> Pod:
    builder = make_pod()
    for number, amounts in enumerate(containers):
        builder.container(f"c{number}").requests(amounts).limits(amounts)
    return builder.build()


POD = guaranteed({"cpu": 2, "memory": "2Gi"})


@pytest.mark.parametrize("scope", ["container", "pod"])
@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        # Zone 0: (75 + 87) / 2 = 81; zone 1: (50 + 75) / 2 = 62. The worse one counts.
        ("LeastAllocated", 62),
        # Zone 0: (25 + 12) / 2 = 18; zone 1: (50 + 25) / 2 = 37.
        ("MostAllocated", 18),
        # Shares 0.25 and 0.125: variance 0.0078; 0.5 and 0.25: variance 0.03125.
        ("BalancedAllocation", 96),
        # One of eight zones at most: 100 - 12, and 6 as a zone is as near as can be to itself.
        ("LeastNUMANodes", 94),
    ],
)
def test_strategies(strategy: str, expected: int, scope: str) -> None:
    assert score(POD, make_topology("node", EMPTY, HALF, scope=scope), strategy) == expected


def test_zones_where_it_doesnt_fit_dont_count() -> None:
    zones: list[dict[str, Amount]] = [EMPTY, {"cpu": 1, "memory": "1Gi"}]
    assert score(POD, make_topology("node", *zones)) == 81
    assert score(POD, make_topology("node", *zones), "MostAllocated") == 18
    assert score(POD, make_topology("node", *zones), "BalancedAllocation") == 99


def test_weights() -> None:
    cpu_counts = [{"name": "cpu", "weight": 3}]
    # Zone 1: (3 * 50 + 75) / 4 = 56
    assert score(POD, make_topology("node", EMPTY, HALF), resources=cpu_counts) == 56
    # Zone 0: (3 * 25 + 12) / 4 = 21
    assert score(POD, make_topology("node", EMPTY, HALF), "MostAllocated", cpu_counts) == 21


def test_a_part_of_a_cpu_counts_as_a_whole_one() -> None:
    # 1.5 of 4 CPUs as 2 of 4: (50 + 75) / 2
    pod = guaranteed({"cpu": "1500m", "memory": "2Gi"})
    assert score(pod, make_topology("node", HALF)) == 62


def test_a_resource_that_no_zone_has_scores_nothing() -> None:
    # CPU 50, memory 75, GPU 0: a third of 125
    pod = guaranteed({"cpu": 2, "memory": "2Gi", GPU: 1})
    assert score(pod, make_topology("node", HALF)) == 41


def test_containers_score_on_average_and_a_pod_as_a_whole() -> None:
    pod = guaranteed({"cpu": 2, "memory": "2Gi"}, {"cpu": 1, "memory": "4Gi"})
    # (50 + 75) / 2 = 62; (75 + 50) / 2 = 62
    assert score(pod, make_topology("node", HALF)) == 62
    # 3 of 4 CPUs, 6 of 8 GiB: 25
    assert score(pod, make_topology("node", HALF, scope="pod")) == 25


def with_overhead(pod: Pod, cpu: int) -> Pod:
    return attrs.evolve(pod, spec=attrs.evolve(pod.spec, overhead=FrozenDict({"cpu": Quantity.parse(cpu)})))


def test_overhead_is_part_of_the_pod_but_of_no_container() -> None:
    heavy = with_overhead(POD, 1)
    # 3 of 4 CPUs, 2 of 8 GiB: (25 + 75) / 2
    assert score(heavy, make_topology("node", HALF, scope="pod")) == 50
    assert score(heavy, make_topology("node", HALF)) == score(POD, make_topology("node", HALF)) == 62
    # 3 + 2 CPUs are in two zones of four, 3 in one.
    wide = with_overhead(guaranteed({"cpu": 3, "memory": "1Gi"}), 2)
    assert score(wide, make_topology("node", HALF, HALF, scope="pod"), "LeastNUMANodes") == 82
    assert score(wide, make_topology("node", HALF, HALF), "LeastNUMANodes") == 94


@pytest.mark.parametrize("strategy", ["LeastAllocated", "LeastNUMANodes"])
def test_every_node_is_as_good_for_a_pod_that_isnt_guaranteed(strategy: str) -> None:
    pod = make_pod().requests(cpu=2, memory="2Gi").build()
    assert score(pod, None, strategy) == 100
    assert score(pod, make_topology("node", EMPTY, HALF), strategy) == 100


def test_a_guaranteed_pod_prefers_nodes_that_are_aligned() -> None:
    assert score(POD, None) == 0
    assert score(POD, make_topology("node", EMPTY, HALF, policy="restricted")) == 0


ONE: dict[str, Amount] = {"cpu": 4, "memory": "8Gi"}


class TestLeastNumaNodes:
    NEAR_AND_FAR = ((10, 12, 20), (12, 10, 20), (20, 20, 10))

    def score(
        self,
        cpu: int,
        *zones: dict[str, Amount],
        costs: tuple[tuple[int, ...], ...] = (),
        scope: str = "pod",
        policy: str = "none",
    ) -> int:
        topology = make_topology("node", *zones, costs=costs, scope=scope, policy=policy)
        return score(guaranteed({"cpu": cpu, "memory": "1Gi"}), topology, "LeastNUMANodes")

    @pytest.mark.parametrize("scope", ["container", "pod"])
    @pytest.mark.parametrize(("cpu", "expected"), [(4, 94), (8, 82), (12, 70), (13, 0)])
    def test_the_fewer_zones_the_better(self, cpu: int, expected: int, scope: str) -> None:
        assert self.score(cpu, ONE, ONE, ONE, scope=scope) == expected

    @pytest.mark.parametrize("policy", ["best-effort", "single-numa-node"])
    def test_whatever_the_policy_is(self, policy: str) -> None:
        assert self.score(8, ONE, ONE, policy=policy) == 82

    def test_zones_that_are_near_to_one_another_are_better(self) -> None:
        assert self.score(8, ONE, ONE, ONE, costs=self.NEAR_AND_FAR) == 82
        # Without zone 1 only those that are far from each other are left.
        full: dict[str, Amount] = {"cpu": 0, "memory": "8Gi"}
        assert self.score(8, ONE, full, ONE, costs=self.NEAR_AND_FAR) == 76

    def test_a_container_that_took_a_zone_leaves_the_others_to_the_next(self) -> None:
        pod = guaranteed({"cpu": 4, "memory": "1Gi"}, {"cpu": 4, "memory": "1Gi"})
        two = ONE, ONE
        assert score(pod, make_topology("node", *two), "LeastNUMANodes") == 94
        assert score(pod, make_topology("node", *two, scope="pod"), "LeastNUMANodes") == 82
        third: dict[str, Amount] = {"cpu": 3, "memory": "1Gi"}
        assert score(guaranteed(third, third, third), make_topology("node", *two), "LeastNUMANodes") == 0

    def test_what_is_in_no_zone_takes_none(self) -> None:
        pod = guaranteed({"cpu": 1, "memory": "1Gi"})
        assert score(pod, make_topology("node", {GPU: 1}), "LeastNUMANodes") == 100


@pytest.mark.parametrize(
    ("strategy", "text"),
    [
        ({"type": "Random"}, 'scoringStrategy.type: Unsupported value: "Random"'),
        (
            {"resources": [{"name": "cpu", "weight": -1}]},
            "scoringStrategy.resources[0].weight: Invalid value: -1: must be at least 1",
        ),
        (
            {"resources": [{"name": "cpu"}, {"name": "cpu"}]},
            'scoringStrategy.resources[1].name: Duplicate value: "cpu"',
        ),
    ],
)
def test_wrong_arguments_are_named(strategy: dict[str, object], text: str) -> None:
    with pytest.raises(KschedfwError) as raised:
        FrameworkHarness(NodeResourceTopologyMatch, args={NAME: {"scoringStrategy": strategy}})
    assert text in str(raised.value)
