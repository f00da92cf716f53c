"""Which nodes are refused, by the policy single-numa-node."""

from __future__ import annotations

import attrs
import pytest
from kschedfw_topoaware import Attribute, NodeResourceTopology, NodeResourceTopologyMatch, Zone
from kschedfw_topoaware.testing import make_topology

from kschedfw import (
    FrozenDict,
    InMemoryCluster,
    KschedfwError,
    Node,
    ObjectMeta,
    Pod,
    Quantity,
    make_node,
    make_pod,
)
from kschedfw.testing import FrameworkHarness

GPU = "example.com/gpu"
Amount = str | int

CONTAINER = "cannot align container"
INIT_CONTAINER = "cannot align init container"
SIDECAR = "cannot align sidecar container"
POD = "cannot align pod"
FITS = ""


def node(**more: Amount) -> Node:
    return make_node("node").capacity({"cpu": 100, "memory": "400Gi", **more}).build()


def verdict(pod: Pod, *topologies: NodeResourceTopology, on: Node | None = None) -> str:
    """What the plugin says of the node."""
    on = on or node()
    it = FrameworkHarness(NodeResourceTopologyMatch, nodes=[on], objects=topologies)
    return it.filter(pod)[on.name].message


def guaranteed(*containers: dict[str, Amount]) -> Pod:
    builder = make_pod()
    for number, amounts in enumerate(containers):
        builder.container(f"c{number}").requests(amounts).limits(amounts)
    return builder.build()


def of(cpu: Amount, memory: Amount = "1Gi", **more: Amount) -> dict[str, Amount]:
    return {"cpu": cpu, "memory": memory, **more}


TWO_ZONES = of(4, "8Gi"), of(2, "16Gi")


@pytest.mark.parametrize("scope", ["container", "pod"])
@pytest.mark.parametrize(
    ("cpu", "memory", "fits"),
    [
        (4, "8Gi", True),  # all of the first zone
        (2, "16Gi", True),  # all of the second
        (5, "1Gi", False),  # there are six CPUs, but not together
        (4, "9Gi", False),  # one zone has the CPUs, another one the memory
        ("4001m", "1Gi", False),
    ],
)
def test_one_zone_must_have_everything(cpu: Amount, memory: str, fits: bool, scope: str) -> None:
    refused = {"container": CONTAINER, "pod": POD}[scope]
    found = verdict(guaranteed(of(cpu, memory)), make_topology("node", *TWO_ZONES, scope=scope))
    assert found == (FITS if fits else refused)


def test_each_container_may_have_a_zone_of_its_own() -> None:
    topology = make_topology("node", *TWO_ZONES)
    assert verdict(guaranteed(of(4), of(2)), topology) == FITS
    assert verdict(guaranteed(of(3), of(3)), topology) == CONTAINER


def test_but_not_where_the_pod_is_aligned_as_a_whole() -> None:
    topology = make_topology("node", *TWO_ZONES, scope="pod")
    assert verdict(guaranteed(of(3), of(1)), topology) == FITS
    assert verdict(guaranteed(of(4), of(2)), topology) == POD


def test_a_container_goes_to_the_first_zone_that_has_room_as_the_kubelet_does_it() -> None:
    # The first takes two CPUs of zone 0, so that there is none left for the second; in zone 1 it would have had them.
    assert verdict(guaranteed(of(2), of(3)), make_topology("node", *TWO_ZONES)) == CONTAINER
    assert verdict(guaranteed(of(3), of(2)), make_topology("node", *TWO_ZONES)) == FITS


def init_pod(init_cpu: int, cpu: int, *, sidecar: bool = False) -> Pod:
    """Guaranteed, with an init container."""
    builder = make_pod().init_container("init", requests=of(init_cpu), sidecar=sidecar)
    pod = builder.requests(of(cpu)).limits(of(cpu)).build()
    (init,) = pod.spec.init_containers
    resources = attrs.evolve(init.resources, limits=init.resources.requests)
    spec = attrs.evolve(pod.spec, init_containers=(attrs.evolve(init, resources=resources),))
    return attrs.evolve(pod, spec=spec)


def test_init_containers_are_over_before_the_others_begin() -> None:
    topology = make_topology("node", of(4))
    assert verdict(init_pod(4, 4), topology) == FITS
    assert verdict(init_pod(5, 1), topology) == INIT_CONTAINER
    pod_scope = make_topology("node", of(4), scope="pod")
    assert verdict(init_pod(4, 4), pod_scope) == FITS
    assert verdict(init_pod(5, 1), pod_scope) == POD


def test_a_sidecar_is_named_as_what_it_is() -> None:
    topology = make_topology("node", of(4))
    assert verdict(init_pod(5, 1, sidecar=True), topology) == SIDECAR
    assert verdict(init_pod(4, 4, sidecar=True), topology) == FITS


def test_overhead_is_part_of_the_pod_but_of_no_container() -> None:
    pod = guaranteed(of(4))
    heavy = attrs.evolve(pod, spec=attrs.evolve(pod.spec, overhead=FrozenDict({"cpu": Quantity.parse(1)})))
    zones = of(4), of(4)
    assert verdict(heavy, make_topology("node", *zones, scope="pod")) == POD
    assert verdict(pod, make_topology("node", *zones, scope="pod")) == FITS
    assert verdict(heavy, make_topology("node", of(5), scope="pod")) == FITS
    assert verdict(heavy, make_topology("node", *zones)) == FITS


def test_overhead_comes_on_top_of_an_init_container_that_needs_more_than_all_others() -> None:
    pod = init_pod(4, 1)
    heavy = attrs.evolve(pod, spec=attrs.evolve(pod.spec, overhead=FrozenDict({"cpu": Quantity.parse(1)})))
    assert verdict(heavy, make_topology("node", of(4), scope="pod")) == POD
    assert verdict(heavy, make_topology("node", of(5), scope="pod")) == FITS


@pytest.mark.parametrize("scope", ["container", "pod"])
class TestPodsThatArentGuaranteed:
    def test_may_take_cpu_and_memory_from_anywhere(self, scope: str) -> None:
        pod = make_pod().requests(cpu=50, memory="100Gi").build()
        assert verdict(pod, make_topology("node", *TWO_ZONES, scope=scope)) == FITS

    def test_but_devices_are_given_to_them_by_zones(self, scope: str) -> None:
        gpus = node(**{GPU: 2})
        topology = make_topology("node", of(4, **{GPU: 1}), of(4, **{GPU: 1}), scope=scope)
        assert verdict(make_pod().requests({GPU: 1}).build(), topology, on=gpus) == FITS
        refused = verdict(make_pod().requests({GPU: 2}).build(), topology, on=gpus)
        assert refused in (CONTAINER, POD)

    def test_two_containers_dont_get_the_same_device(self, scope: str) -> None:
        gpus = node(**{GPU: 2})
        pod = make_pod().container("a").requests({GPU: 1}).container("b").requests({GPU: 1}).build()
        together = make_topology("node", of(4, **{GPU: 2}), scope=scope)
        assert verdict(pod, together, on=gpus) == FITS
        apart = make_topology("node", of(4, **{GPU: 1}), of(4, **{GPU: 1}), scope=scope)
        assert verdict(pod, apart, on=gpus) == (FITS if scope == "container" else POD)

    def test_that_ask_for_nothing_are_not_looked_at(self, scope: str) -> None:
        it = FrameworkHarness(NodeResourceTopologyMatch, nodes=[node()], objects=[make_topology("node")])
        it.filter(make_pod().build())
        assert "NodeResourceTopologyMatch" in it.state.skip_filter_plugins


class TestResourcesOfTheHost:
    """Some resources are in no zone."""

    def test_a_device_that_only_the_node_has_is_no_obstacle(self) -> None:
        pod = guaranteed(of(4, **{GPU: 1}))
        assert verdict(pod, make_topology("node", *TWO_ZONES), on=node(**{GPU: 1})) == FITS

    def test_nor_is_ephemeral_storage(self) -> None:
        pod = guaranteed(of(4, **{"ephemeral-storage": "1Gi"}))
        assert verdict(pod, make_topology("node", *TWO_ZONES)) == FITS

    def test_what_the_node_hasnt_got_at_all_is_one(self) -> None:
        assert verdict(guaranteed(of(4, **{GPU: 1})), make_topology("node", *TWO_ZONES)) == CONTAINER

    def test_cpu_and_memory_and_huge_pages_are_always_in_zones(self) -> None:
        pages = of(1, **{"hugepages-2Mi": "4Mi"})
        has_pages = node(**{"hugepages-2Mi": "1Gi"})
        assert verdict(guaranteed(pages), make_topology("node", *TWO_ZONES), on=has_pages) == CONTAINER
        with_pages = make_topology("node", of(4, **{"hugepages-2Mi": "4Mi"}))
        assert verdict(guaranteed(pages), with_pages, on=has_pages) == FITS

    def test_nothing_of_something_is_nothing(self) -> None:
        assert verdict(guaranteed(of(4, **{GPU: 0})), make_topology("node", *TWO_ZONES)) == FITS


class TestWhatTheTopologySays:
    def test_a_node_without_one_is_no_obstacle(self) -> None:
        assert verdict(guaranteed(of(50))) == FITS
        assert verdict(guaranteed(of(50)), make_topology("another", of(1))) == FITS

    @pytest.mark.parametrize("policy", ["none", "best-effort", "restricted", "something-new"])
    def test_only_the_policy_single_numa_node_refuses(self, policy: str) -> None:
        assert verdict(guaranteed(of(50)), make_topology("node", of(1), policy=policy)) == FITS

    @pytest.mark.parametrize(
        ("policy", "expected"),
        [
            ("SingleNUMANodePodLevel", POD),
            ("SingleNUMANodeContainerLevel", CONTAINER),
            ("RestrictedPodLevel", FITS),
            ("BestEffortContainerLevel", FITS),
            ("None", FITS),
        ],
    )
    def test_the_older_way_to_say_it_is_understood(self, policy: str, expected: str) -> None:
        topology = attrs.evolve(make_topology("node", of(1)), attributes=(), topology_policies=(policy,))
        assert verdict(guaranteed(of(50)), topology) == expected

    def test_attributes_come_before_it(self) -> None:
        topology = attrs.evolve(
            make_topology("node", of(1)),
            topology_policies=("SingleNUMANodeContainerLevel",),
            attributes=(Attribute("topologyManagerScope", "pod"), Attribute("topologyManagerScope", "?")),
        )
        assert verdict(guaranteed(of(50)), topology) == POD

    def test_zones_that_are_no_numa_zones_dont_count(self) -> None:
        (big,) = make_topology("node", of(50, "100Gi")).zones
        others = [Zone("node-1", "Die", big.resources), Zone("socket-1", "Node", big.resources)]
        others += [Zone("node-x", "Node", big.resources), Zone("node-99", "Node", big.resources)]
        topology = make_topology("node", of(1))
        assert (
            verdict(guaranteed(of(2)), attrs.evolve(topology, zones=(*topology.zones, *others))) == CONTAINER
        )
        assert verdict(guaranteed(of(2)), attrs.evolve(topology, zones=(*others, big))) == FITS

    def test_one_that_cant_be_read_is_named(self) -> None:
        broken = attrs.evolve(
            make_topology("node", of(1)).as_custom_object(), metadata=ObjectMeta(name="node")
        )
        content = {**broken.content, "zones": 3}
        cluster = InMemoryCluster([attrs.evolve(broken, content=type(broken.content)(content))])
        with pytest.raises(KschedfwError, match="NodeResourceTopology node: zones"):
            cluster.get(NodeResourceTopology, "node")
