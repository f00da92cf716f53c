"""A node and the sums over its pods."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedfw import NodeInfo, PodInfo, make_node, make_pod
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.pod import Pod
from kschedfw.api.resource import Resource
from kschedfw.api.volumes import EmptyDirSource, Volume
from kschedfw.framework.nodes.node_info import HostPortInfo
from kschedfw.testing import strategies
from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import GPU, pods

NODE = make_node("n").capacity({"nvidia.com/gpu": 8}, cpu=4, memory="8Gi", pods=20).build()


FEW = settings(max_examples=examples(20))  # whole pods take their time


def pod_lists(prefix: str = "p") -> st.SearchStrategy[list[Pod]]:
    counts = st.integers(0, 4)
    return counts.flatmap(lambda count: st.tuples(*(pods(f"{prefix}{index}") for index in range(count)))).map(
        list
    )


def names(infos: Sequence[PodInfo]) -> set[str]:
    return {info.pod.name for info in infos}


def assert_consistent(info: NodeInfo, expected: Sequence[Pod]) -> None:
    """The node has just these pods, in any order, and every sum and list is what they make of it."""
    assert len(info.pods) == len(expected)
    assert names(info.pods) == {pod.name for pod in expected}
    requests = [pod.requests for pod in expected]
    assert info.requested.milli_cpu == sum(each.amounts.milli_cpu for each in requests)
    assert info.requested.memory == sum(each.amounts.memory for each in requests)
    assert info.requested.get(GPU) == sum(each.amounts.scalar_resources.get(GPU, 0) for each in requests)
    assert info.non_zero_requested.milli_cpu == sum(each.non_zero_milli_cpu for each in requests)
    assert info.non_zero_requested.memory == sum(each.non_zero_memory for each in requests)
    assert names(info.pods_with_affinity) == {pod.name for pod in expected if PodInfo.of(pod).has_affinity}
    assert names(info.pods_with_required_anti_affinity) == {
        pod.name for pod in expected if PodInfo.of(pod).required_anti_affinity_terms
    }
    assert names(info.pods_with_volumes) == {pod.name for pod in expected if pod.storage}


class TestPods:
    @FEW
    @given(pod_lists(), st.data())
    def test_the_sums_are_those_of_the_pods_whatever_is_added_and_removed(
        self, pods: list[Pod], data: st.DataObject
    ) -> None:
        info = NodeInfo.of(NODE, pods)
        assert_consistent(info, pods)
        left = list(pods)
        for pod in data.draw(st.permutations(pods)):
            assert info.remove_pod(pod)
            left.remove(pod)
            assert_consistent(info, left)

    @FEW
    @given(pod_lists(), st.data())
    def test_their_host_ports_are_taken_until_they_go(self, pods: list[Pod], data: st.DataObject) -> None:
        def spelt_out(pod: Pod) -> set[tuple[str, str, int]]:
            return {(ip or "0.0.0.0", protocol, port) for ip, protocol, port in pod.host_ports}

        info = NodeInfo.of(NODE, pods)
        taken = set().union(*map(spelt_out, pods))
        assert len(info.used_ports) == len(taken)
        for pod in data.draw(st.permutations(pods)):
            info.remove_pod(pod)
            taken -= spelt_out(pod)
            assert len(info.used_ports) == len(taken)
            assert all(info.used_ports.conflicts(*port) for port in taken)

    @FEW
    @given(pod_lists(), st.data())
    def test_a_new_state_of_a_pod_takes_the_place_of_the_old_one(
        self, pods: list[Pod], data: st.DataObject
    ) -> None:
        changed = make_pod("changed").build()
        info = NodeInfo.of(NODE, [*pods, changed])
        old = info.pods[-1]
        before = info.generation
        new = PodInfo.of(data.draw(strategies.pods("changed")))
        info.replace_pod(old, new)
        assert_consistent(info, [*pods, new.pod])
        assert info.generation > before
        assert info.remove_pod(new.pod)
        assert_consistent(info, pods)

    def test_a_pod_of_which_only_labels_changed_gives_the_node_a_new_generation(self) -> None:
        """Otherwise no snapshot would take the new labels, by which affinity and spreading count pods."""
        pod = make_pod("a").labels(app="old").build()
        info = NodeInfo.of(NODE, [pod])
        before = info.generation
        relabelled = attrs.evolve(pod, metadata=attrs.evolve(pod.metadata, labels={"app": "new"}))
        info.replace_pod(info.pods[0], PodInfo.of(relabelled))
        assert_consistent(info, [relabelled])
        assert info.generation > before

    def test_a_pod_with_volumes_is_no_longer_among_those_with_volumes_when_it_is_gone(self) -> None:
        with_claim, without = make_pod("a").claim("c").build(), make_pod("b").build()
        info = NodeInfo.of(NODE, [with_claim, without])
        assert_consistent(info, [with_claim, without])
        assert names(info.pods_with_volumes) == {"a"}
        info.remove_pod(with_claim)
        assert_consistent(info, [without])

    def test_a_pod_whose_volumes_store_nothing_is_not_among_those_with_volumes(self) -> None:
        """Filters of volumes look at every pod on that list."""
        pod = make_pod("a").build()
        scratch = attrs.evolve(pod.spec, volumes=(Volume("scratch", empty_dir=EmptyDirSource()),))
        assert NodeInfo.of(NODE, [attrs.evolve(pod, spec=scratch)]).pods_with_volumes == ()

    def test_the_new_state_of_a_pod_with_volumes_stands_on_their_list(self) -> None:
        pod = make_pod("a").claim("c").build()
        info = NodeInfo.of(NODE, [pod])
        bound = PodInfo.of(pod.bound_to("n"))
        info.replace_pod(info.pods[0], bound)
        assert [each is bound for each in info.pods_with_volumes] == [True]

    def test_removing_a_pod_that_is_not_there_changes_nothing(self) -> None:
        there, stranger = make_pod("a").uid("1").build(), make_pod("a").uid("2").build()
        info = NodeInfo.of(NODE, [there])
        generation = info.generation
        assert not info.remove_pod(stranger)
        assert_consistent(info, [there])
        assert info.generation == generation

    def test_a_pod_is_known_by_its_uid_whatever_else_changed(self) -> None:
        info = NodeInfo.of(NODE, [make_pod("a").uid("1").requests(cpu="2").build()])
        assert info.remove_pod(make_pod("a").uid("1").labels(new="label").build())
        assert_consistent(info, [])
        assert info.requested == Resource()

    def test_a_container_without_requests_counts_as_100m_and_200_mib_in_scores_only(self) -> None:
        info = NodeInfo.of(NODE, [make_pod().build()])
        assert (info.requested.milli_cpu, info.requested.memory) == (0, 0)
        assert (info.non_zero_requested.milli_cpu, info.non_zero_requested.memory) == (100, 200 << 20)


LISTS = ("pods", "pods_with_affinity", "pods_with_required_anti_affinity", "pods_with_volumes")


@attrs.frozen
class Orders:
    """kube-scheduler's order in each list: new pods are at the end, and the last takes the place of one that goes."""

    lists: dict[str, list[PodInfo]] = attrs.field(factory=lambda: {name: [] for name in LISTS})

    def of(self, info: PodInfo) -> list[list[PodInfo]]:
        belongs = (True, info.has_affinity, info.required_anti_affinity_terms, info.pod.storage)
        return [each for each, there in zip(self.lists.values(), belongs, strict=True) if there]

    def add(self, info: PodInfo) -> None:
        for each in self.of(info):
            each.append(info)

    def remove(self, info: PodInfo) -> None:
        for each in self.of(info):
            last = each.pop()
            if last is not info:
                each[each.index(info)] = last


class TestOrder:
    KINDS = (
        make_pod("plain"),
        make_pod("near").pod_affinity("zone", {"app": "x"}),
        make_pod("far").pod_anti_affinity("zone", {"app": "x"}),
        make_pod("stores").claim("c"),
    )

    @settings(max_examples=examples(200))
    @given(st.lists(st.tuples(st.sampled_from("aaars"), st.integers(0, 3), st.integers(0, 99)), max_size=40))
    def test_pods_are_in_kube_schedulers_order_whatever_comes_and_goes(
        self, steps: list[tuple[str, int, int]]
    ) -> None:
        info, expected = NodeInfo.of(NODE), Orders()
        for number, (step, kind, which) in enumerate(steps):
            there = info.pods
            new = PodInfo.of(self.KINDS[kind].uid(str(number)).build())
            if step == "a" or not there:
                info.add_pod(new)
                expected.add(new)
                continue
            leaving = there[which % len(there)]
            expected.remove(leaving)
            if step == "s":
                info.replace_pod(leaving, new)
                expected.add(new)
            else:
                info.remove_pod(leaving.pod)
        assert {name: list(getattr(info, name)) for name in LISTS} == expected.lists


class TestNode:
    def test_allocatable_comes_from_the_node(self) -> None:
        info = NodeInfo.of(NODE)
        assert info.name == "n"
        assert info.allocatable == Resource(4000, 8 << 30, 0, 20, FrozenDict({"nvidia.com/gpu": 8}))

    def test_a_new_state_of_the_node_keeps_its_pods(self) -> None:
        pod = make_pod().requests(cpu="1").build()
        info = NodeInfo.of(NODE, [pod])
        info.set_node(make_node("n").capacity(cpu=16).build())
        assert info.allocatable.milli_cpu == 16_000
        assert_consistent(info, [pod])


class TestGenerations:
    def test_no_two_states_of_any_nodes_share_one(self) -> None:
        pod = make_pod().uid("1").build()
        first, second = NodeInfo.of(NODE), NodeInfo.of(NODE)
        seen = [first.generation, second.generation]
        for info in (first, second, first):
            info.add_pod(PodInfo.of(pod))
            seen.append(info.generation)
            info.remove_pod(pod)
            seen.append(info.generation)
            info.set_node(NODE)
            seen.append(info.generation)
        assert seen == sorted(set(seen))

    def test_a_clone_is_the_same_state(self) -> None:
        info = NodeInfo.of(NODE)
        assert info.clone().generation == info.generation


@FEW
@given(pod_lists("p"), pod_lists("q"))
def test_a_clone_can_be_changed_without_the_original_noticing(pods: list[Pod], more: list[Pod]) -> None:
    info = NodeInfo.of(NODE, pods)
    clone = info.clone()
    assert_consistent(clone, pods)
    for pod in pods:
        clone.remove_pod(pod)
    for pod in more:
        clone.add_pod(PodInfo.of(pod))
    assert_consistent(clone, more)
    assert_consistent(info, pods)


ADDRESSES = ["", "0.0.0.0", "10.0.0.1", "10.0.0.2"]
PORTS = st.tuples(st.sampled_from(ADDRESSES), st.sampled_from(["TCP", "UDP"]), st.integers(-1, 3))


class TestHostPorts:
    @pytest.mark.parametrize(
        ("taken", "wanted", "conflict"),
        [
            (("10.0.0.1", "TCP", 80), ("10.0.0.1", "TCP", 80), True),
            (("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), False),
            (("10.0.0.1", "TCP", 80), ("10.0.0.1", "UDP", 80), False),
            (("10.0.0.1", "TCP", 80), ("10.0.0.1", "TCP", 81), False),
            (("10.0.0.1", "TCP", 80), ("0.0.0.0", "TCP", 80), True),
            (("0.0.0.0", "TCP", 80), ("10.0.0.1", "TCP", 80), True),
            (("", "TCP", 80), ("10.0.0.1", "TCP", 80), True),
            (("10.0.0.1", "TCP", 80), ("", "TCP", 80), True),
            (("", "TCP", 0), ("", "TCP", 0), False),
        ],
    )
    def test_a_port_is_taken_per_address_and_protocol_and_any_address_meets_all(
        self, taken: tuple[str, str, int], wanted: tuple[str, str, int], conflict: bool
    ) -> None:
        ports = HostPortInfo.of([taken])
        assert ports.conflicts(*wanted) is conflict

    @given(st.lists(PORTS), st.lists(PORTS), PORTS)
    def test_what_was_given_back_is_free_again(
        self,
        added: list[tuple[str, str, int]],
        removed: list[tuple[str, str, int]],
        wanted: tuple[str, str, int],
    ) -> None:
        def spelt_out(port: tuple[str, str, int]) -> tuple[str, str, int]:
            return (port[0] or "0.0.0.0", port[1], port[2])

        ports = HostPortInfo.of(added).minus(removed)
        left = {spelt_out(port) for port in added if port[2] > 0} - {spelt_out(port) for port in removed}
        assert len(ports) == len(left)
        ip, protocol, number = spelt_out(wanted)
        expected = any(
            ((protocol, number) == (p, n) and "0.0.0.0" in (ip, i)) or (ip, protocol, number) == (i, p, n)
            for i, p, n in left
        )
        assert ports.conflicts(*wanted) is (expected and number > 0)

    def test_they_are_a_value(self) -> None:
        ports = HostPortInfo.of([("", "TCP", 80)])
        without = ports.minus([("", "TCP", 80)])
        assert ports.conflicts("", "TCP", 80)
        assert not without.conflicts("", "TCP", 80)

    def test_containers_and_sidecars_take_them_and_ordinary_init_containers_do_not(self) -> None:
        manifest_port = {"containerPort": 1, "hostPort": 1}
        builder = (
            make_pod()
            .host_port(80, host_ip="10.0.0.1")
            .init_container("init")
            .init_container("side", sidecar=True)
        )
        init, side = builder._manifest["spec"]["initContainers"]  # type: ignore[index]
        init["ports"] = [{**manifest_port, "hostPort": 81}]
        side["ports"] = [{**manifest_port, "hostPort": 82, "protocol": "UDP"}, {"containerPort": 9}]
        assert builder.build().host_ports == (("10.0.0.1", "TCP", 80), ("", "UDP", 82))


def test_a_port_without_a_protocol_is_a_tcp_port() -> None:
    ports = HostPortInfo.of([("", "", 80)])
    assert ports.conflicts("10.0.0.1", "TCP", 80)
    assert not ports.conflicts("10.0.0.1", "UDP", 80)
    assert not ports.minus([("", "TCP", 80)]).conflicts("", "", 80)
