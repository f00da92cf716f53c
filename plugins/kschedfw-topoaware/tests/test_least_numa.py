"""LeastNUMANodes takes the fewest and nearest zones, and ends even where there are too many combinations to compare."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from random import Random

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_topoaware import NodeResourceTopologyMatch
from kschedfw_topoaware.demand import Demand
from kschedfw_topoaware.least_numa import least_numa_nodes
from kschedfw_topoaware.node_resource_topology import Attribute, NodeResourceTopology
from kschedfw_topoaware.numa import NodeTopology, NumaNode
from kschedfw_topoaware.testing import make_topology

from kschedfw import Pod, make_node, make_pod
from kschedfw.testing import FrameworkHarness

GPU = "example.com/gpu"
CONTAINERS = st.fixed_dictionaries({"cpu": st.integers(1, 9)}, optional={GPU: st.integers(0, 4)})


def zone(number: int, available: Mapping[str, int], costs: Mapping[int, int]) -> NumaNode:
    """A zone with these amounts, and with all the memory that a pod of these tests requests."""
    amounts = {"memory": 1, **available}
    return NumaNode(number, {name: 1000 * amount for name, amount in amounts.items()}, costs)


def some_costs(seed: int) -> dict[int, int]:
    """Distances to most of eight zones; that of the others is unknown."""
    random = Random(seed)
    return {number: random.choice([10, 11, 12, 20, 32]) for number in range(8) if random.random() < 0.9}


AVAILABLE = st.fixed_dictionaries({"cpu": st.integers(0, 4)}, optional={GPU: st.integers(0, 2)})
ZONES = st.lists(st.tuples(AVAILABLE, st.integers(0, 999).map(some_costs)), min_size=1, max_size=8).map(
    lambda drawn: [zone(number, *each) for number, each in enumerate(drawn)]
)


def on_sockets(cpus: Sequence[int], size: int) -> list[NumaNode]:
    """Zones with so many CPUs each; neighbours share a socket, and are nearer to one another than to the others."""
    numbers = range(len(cpus))
    costs = [{other: 10 if other // size == each // size else 30 for other in numbers} for each in numbers]
    return [zone(each, {"cpu": cpus[each]}, costs[each]) for each in numbers]


def guaranteed(container: Mapping[str, int]) -> Pod:
    limits = {"cpu": container["cpu"], "memory": 1}
    return make_pod().container("main").requests(container).requests(limits).limits(limits).build()


def fewest(wanted: Mapping[str, int], zones: Sequence[NumaNode]) -> tuple[int, bool] | None:
    """How many zones are needed, and whether none are nearer to one another, by comparing all combinations."""
    for count in range(1, len(zones) + 1):
        every = list(itertools.combinations(zones, count))
        fitting = [
            each
            for each in every
            if all(
                name in zone.available and amount <= sum(other.available.get(name, 0) for other in each)
                for zone in each
                for name, amount in wanted.items()
            )
        ]
        if fitting:
            return count, min(map(distance, fitting)) == min(map(distance, every))
    return None


def distance(zones: Sequence[NumaNode]) -> int:
    return sum(one.costs.get(other.id, 255) for one in zones for other in zones)


@given(ZONES, CONTAINERS)
def test_up_to_eight_zones_are_compared_in_all_combinations(
    zones: list[NumaNode], container: Mapping[str, int]
) -> None:
    demand = Demand.of(guaranteed(container))
    found = fewest(demand.of_the_pod, zones)
    # 12 for each of at most eight zones, and half of that for the nearest ones.
    expected = 0 if found is None else 100 - 12 * found[0] + 6 * found[1]
    assert least_numa_nodes(demand, NodeTopology(tuple(zones)), zones) == expected


@given(st.lists(st.integers(0, 4), min_size=12, max_size=64), st.integers(1, 16), st.integers(1, 160))
def test_on_larger_nodes_a_pod_fits_if_all_zones_together_have_enough(
    cpus: list[int], size: int, cpu: int
) -> None:
    zones = on_sockets(cpus, size)
    score = least_numa_nodes(
        Demand.of(guaranteed({"cpu": cpu})), NodeTopology(tuple(zones), most_numa_nodes=64), zones
    )
    sums = list(itertools.accumulate(sorted(cpus, reverse=True)))
    if sums[-1] < cpu:
        assert score == 0
    else:
        needed = 1 + next(place for place, amount in enumerate(sums) if amount >= cpu)
        assert 100 - len(zones) <= score <= 100 - needed


@pytest.mark.parametrize("cpu", [1, 2, 3, 32, 63, 64])
def test_as_many_of_sixty_four_equal_zones_are_taken_as_are_needed(cpu: int) -> None:
    assert score(cpu, topology_of(64)) == 100 - cpu


def test_of_sixty_four_zones_those_of_one_socket_are_found() -> None:
    zones = on_sockets([1 if number in range(40, 44) or number % 7 == 0 else 0 for number in range(64)], 4)
    # Four zones are 12 each, and no four are nearer to one another.
    topology = NodeTopology(tuple(zones))
    assert least_numa_nodes(Demand.of(guaranteed({"cpu": 4})), topology, zones) == 100 - 48 + 6


def test_zones_without_a_resource_are_passed_over_among_many_too() -> None:
    zones = [zone(number, {"cpu": 1, GPU: 1} if number % 3 == 0 else {"cpu": 1}, {}) for number in range(60)]
    topology = NodeTopology(tuple(zones), most_numa_nodes=64)
    assert least_numa_nodes(Demand.of(guaranteed({"cpu": 20, GPU: 20})), topology, zones) == 100 - 20


def test_of_zones_with_one_number_the_last_counts() -> None:
    topology = topology_of(2)
    again = attrs.evolve(topology, zones=(*topology.zones, *topology.zones))
    assert score(2, again) == score(2, topology) == 98
    assert score(3, again) == score(3, topology) == 0


def topology_of(count: int) -> NodeResourceTopology:
    """The topology of a node with so many zones of one CPU, whose kubelet supports 64."""
    one: Mapping[str, str | int] = {"cpu": 1, "memory": "1Gi"}
    topology = make_topology("node", *[one] * count, policy="none", scope="pod")
    most = Attribute("topologyManagerMaxNUMANodes", "64")
    return attrs.evolve(topology, attributes=(*topology.attributes, most))


def score(cpu: int, topology: NodeResourceTopology) -> int:
    harness = FrameworkHarness(
        NodeResourceTopologyMatch,
        nodes=[make_node("node").capacity(cpu=100, memory="400Gi").build()],
        objects=[topology],
        args={"NodeResourceTopologyMatch": {"scoringStrategy": {"type": "LeastNUMANodes"}}},
    )
    return harness.score(guaranteed({"cpu": cpu}))["node"]
