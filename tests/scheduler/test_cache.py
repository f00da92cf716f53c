"""The scheduler's own books: nodes, the pods on them, and what was assumed."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kschedfw import Cache, KschedfwError, MemberStates, Node, NodeInfo, Pod, Snapshot, make_node, make_pod
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.resource import Resource
from kschedfw.framework.groups import GroupStates
from kschedfw.scheduler import CacheError
from kschedfw.scheduler.cache import CacheDump
from kschedfw.testing import FakeClock
from kschedfw.testing.properties import examples
from tests.framework.nodes.columns import assert_rows_are_nodes, interrupted

NODES = [make_node(name).capacity(cpu=8).image(f"{name}:1", "shared:1", size=5).build() for name in "abc"]


def pod(name: str, node: str, cpu: str = "1") -> Pod:
    return make_pod(name).uid(f"uid-{name}").requests(cpu=cpu).node(node).build()


def snapshot_of(cache: Cache) -> Snapshot:
    snapshot = Snapshot()
    cache.update_snapshot(snapshot)
    return snapshot


def names(pods: Iterable[Pod]) -> list[str]:
    return [each.name for each in pods]


def pods_by_node(snapshot: Snapshot) -> dict[str, list[str]]:
    return {info.name: sorted(each.pod.name for each in info.pods) for info in snapshot.node_infos}


def cache_with(*nodes: Node) -> Cache:
    cache = Cache()
    for node in nodes:
        cache.add_node(node)
    return cache


class TestNodes:
    def test_they_are_in_the_snapshot_in_the_order_they_came(self) -> None:
        assert [info.name for info in snapshot_of(cache_with(NODES[1], NODES[0])).node_infos] == ["b", "a"]

    def test_a_new_state_takes_the_place_of_the_old_one_and_keeps_the_pods(self) -> None:
        cache = cache_with(NODES[0])
        cache.add_pod(pod("p", "a"))
        cache.update_node(make_node("a").capacity(cpu=16).build())
        info = snapshot_of(cache).get("a")
        assert info.allocatable.milli_cpu == 16_000
        assert info.requested.milli_cpu == 1_000

    def test_a_removed_node_is_gone_but_its_pods_come_back_with_it(self) -> None:
        cache = cache_with(*NODES[:2])
        cache.add_pod(pod("p", "a"))
        cache.remove_node(NODES[0])
        assert pods_by_node(snapshot_of(cache)) == {"b": []}
        cache.add_node(NODES[0])
        assert pods_by_node(snapshot_of(cache)) == {"b": [], "a": ["p"]}

    def test_an_unknown_node_can_not_be_removed(self) -> None:
        with pytest.raises(CacheError) as caught:
            Cache().remove_node(NODES[0])
        assert str(caught.value) == "node 'a' is not in the cache"
        assert isinstance(caught.value, KschedfwError)


class TestPods:
    def test_a_pod_may_come_before_its_node(self) -> None:
        cache = Cache()
        cache.add_pod(pod("p", "a"))
        cache.add_node(NODES[0])
        assert pods_by_node(snapshot_of(cache)) == {"a": ["p"]}

    def test_and_may_go_before_it(self) -> None:
        cache = Cache()
        cache.add_pod(pod("p", "a"))
        cache.remove_pod(pod("p", "a"))
        cache.add_node(NODES[0])
        assert pods_by_node(snapshot_of(cache)) == {"a": []}

    def test_an_update_takes_the_place_of_the_old_state(self) -> None:
        cache = cache_with(NODES[0])
        cache.add_pod(pod("p", "a"))
        cache.update_pod(pod("p", "a", cpu="3"))
        assert snapshot_of(cache).get("a").requested.milli_cpu == 3_000

    def test_an_update_of_labels_alone_reaches_the_next_snapshot(self) -> None:
        cache, snapshot = cache_with(NODES[0]), Snapshot()
        old = pod("p", "a")
        cache.add_pod(old)
        cache.update_snapshot(snapshot)
        new = attrs.evolve(old, metadata=attrs.evolve(old.metadata, labels={"app": "new"}))
        cache.update_pod(new)
        cache.update_snapshot(snapshot)
        assert [each.pod.metadata.labels for each in snapshot.get("a").pods] == [{"app": "new"}]

    def test_a_pod_can_be_added_only_once(self) -> None:
        cache = cache_with(NODES[0])
        cache.add_pod(pod("p", "a"))
        with pytest.raises(CacheError, match=r"pod default/p \(uid-p\) was already in added state"):
            cache.add_pod(pod("p", "a"))

    def test_a_pod_that_was_never_added_can_not_be_updated_even_if_it_is_assumed(self) -> None:
        cache = cache_with(NODES[0])
        cache.assume_pod(pod("p", "a"))
        for name in "pq":
            with pytest.raises(CacheError, match="is not added to the cache, so cannot be updated"):
                cache.update_pod(pod(name, "a"))

    def test_a_pod_can_not_move_to_another_node(self) -> None:
        cache = cache_with(*NODES[:2])
        cache.add_pod(pod("p", "a"))
        with pytest.raises(
            CacheError, match="updated on a different node than previously added to: b, was a"
        ):
            cache.update_pod(pod("p", "b"))
        assert pods_by_node(snapshot_of(cache)) == {"a": ["p"], "b": []}

    def test_a_pod_of_a_node_that_is_gone_can_be_updated_and_removed(self) -> None:
        cache = cache_with(NODES[0])
        cache.add_pod(pod("p", "a"))
        cache.add_pod(pod("q", "a"))
        cache.remove_node(NODES[0])
        cache.update_pod(pod("p", "a", cpu="3"))
        cache.remove_pod(pod("q", "a"))
        cache.add_node(NODES[0])
        assert pods_by_node(snapshot_of(cache)) == {"a": ["p"]}
        assert snapshot_of(cache).get("a").requested.milli_cpu == 3_000

    def test_it_is_taken_off_the_node_it_was_put_on_whatever_is_said_now(self) -> None:
        cache = cache_with(*NODES[:2])
        cache.add_pod(pod("p", "a"))
        cache.remove_pod(pod("p", "b", cpu="7"))
        snapshot = snapshot_of(cache)
        assert pods_by_node(snapshot) == {"a": [], "b": []}
        assert snapshot.get("a").requested.milli_cpu == 0

    def test_an_unknown_pod_can_not_be_removed(self) -> None:
        with pytest.raises(
            CacheError, match=r"pod default/p \(uid-p\) is not found in the cache, so cannot be removed"
        ):
            Cache().remove_pod(pod("p", "a"))


class TestAssume:
    def test_an_assumed_pod_counts_on_its_node_until_it_is_forgotten(self) -> None:
        cache = cache_with(NODES[0])
        cache.assume_pod(pod("p", "a"))
        assert pods_by_node(snapshot_of(cache)) == {"a": ["p"]}
        cache.forget_pod(pod("p", "a"))
        assert pods_by_node(snapshot_of(cache)) == {"a": []}

    def test_the_bound_pod_takes_its_place_even_on_another_node(self) -> None:
        cache = cache_with(*NODES[:2])
        cache.assume_pod(pod("p", "a"))
        cache.add_pod(pod("p", "b"))
        assert pods_by_node(snapshot_of(cache)) == {"a": [], "b": ["p"]}

    def test_a_pod_that_is_there_already_can_not_be_assumed(self) -> None:
        cache = cache_with(NODES[0])
        cache.add_pod(pod("p", "a"))
        with pytest.raises(CacheError, match=r"pod default/p \(uid-p\) is in the cache, so can't be assumed"):
            cache.assume_pod(pod("p", "a"))

    def test_only_an_assumed_pod_can_be_forgotten_and_only_where_it_was_assumed(self) -> None:
        cache = cache_with(*NODES[:2])
        for here, there in ("ab", "ba"):
            cache.assume_pod(pod(here, here))
            with pytest.raises(CacheError, match=f"was assumed on {there} but assigned to {here}"):
                cache.forget_pod(pod(here, there))
        cache.assume_pod(pod("p", "a"))
        cache.add_pod(pod("p", "a"))
        for name in "pq":
            with pytest.raises(CacheError, match="wasn't assumed so cannot be forgotten"):
                cache.forget_pod(pod(name, "a"))

    def test_it_is_known_as_assumed_until_the_cluster_confirms_it(self) -> None:
        cache = cache_with(NODES[0])
        p = pod("p", "a")
        assert cache.get_pod(p) is None
        cache.assume_pod(p)
        assert cache.is_assumed(p)
        assert cache.dump().assumed == {"uid-p"}
        cache.add_pod(p)
        assert not cache.is_assumed(p)
        assert cache.get_pod(p) == p
        assert cache.dump().pods == (p,)


class TestExpiry:
    def test_an_assumed_pod_expires_when_its_confirmation_is_overdue(self) -> None:
        clock = FakeClock()
        cache = Cache(clock=clock, assumed_pod_ttl=30)
        cache.add_node(NODES[0])
        for name in "pqr":
            cache.assume_pod(pod(name, "a"))
        cache.finish_binding(pod("p", "a"))
        clock.advance(20)
        cache.finish_binding(pod("q", "a"))
        assert cache.expire_assumed_pods() == []
        clock.advance(10)
        assert [each.name for each in cache.expire_assumed_pods()] == ["p"]
        assert pods_by_node(snapshot_of(cache)) == {"a": ["q", "r"]}

    def test_a_confirmed_pod_does_not(self) -> None:
        clock = FakeClock()
        cache = Cache(clock=clock, assumed_pod_ttl=30)
        cache.add_node(NODES[0])
        cache.assume_pod(pod("p", "a"))
        cache.finish_binding(pod("p", "a"))
        cache.add_pod(pod("p", "a"))
        cache.finish_binding(pod("p", "a"))
        clock.advance(100)
        assert cache.expire_assumed_pods() == []

    @pytest.mark.parametrize("clock", [None, FakeClock()])
    def test_without_a_ttl_none_does(self, clock: FakeClock | None) -> None:
        cache = Cache(clock=clock)
        cache.add_node(NODES[0])
        cache.assume_pod(pod("p", "a"))
        cache.finish_binding(pod("p", "a"))
        assert cache.expire_assumed_pods() == []

    def test_it_tells_when_the_first_one_will(self) -> None:
        clock = FakeClock(1000.0)
        cache = Cache(clock=clock, assumed_pod_ttl=30)
        cache.add_node(NODES[0])
        for name in "pqr":
            cache.assume_pod(pod(name, "a"))
        assert cache.next_expiry() is None, "no binding has finished"
        cache.finish_binding(pod("p", "a"))
        clock.advance(10)
        cache.finish_binding(pod("q", "a"))
        assert cache.next_expiry() == 1030.0
        cache.add_pod(pod("p", "a"))
        assert cache.next_expiry() == 1040.0
        cache.forget_pod(pod("q", "a"))
        assert cache.next_expiry() is None

    def test_without_a_ttl_there_is_no_such_time(self) -> None:
        cache = cache_with(NODES[0])
        cache.assume_pod(pod("p", "a"))
        cache.finish_binding(pod("p", "a"))
        assert cache.next_expiry() is None

    def test_the_end_of_a_binding_means_nothing_to_a_pod_that_is_not_there(self) -> None:
        cache = Cache(clock=FakeClock(), assumed_pod_ttl=30)
        cache.finish_binding(pod("p", "a"))
        assert cache.next_expiry() is None

    def test_a_ttl_needs_a_clock(self) -> None:
        with pytest.raises(CacheError, match="assumed_pod_ttl needs a clock"):
            Cache(assumed_pod_ttl=30)


class TestSnapshots:
    def test_nothing_that_happens_later_shows_in_one(self) -> None:
        cache = cache_with(NODES[0])
        cache.add_pod(pod("p", "a"))
        snapshot = snapshot_of(cache)
        cache.add_pod(pod("q", "a"))
        cache.remove_pod(pod("p", "a"))
        cache.add_node(NODES[1])
        assert pods_by_node(snapshot) == {"a": ["p"]}
        assert snapshot.get("a").requested.milli_cpu == 1_000

    def test_only_what_changed_is_copied(self) -> None:
        cache = cache_with(*[make_node(name).build() for name in "abc"])
        snapshot = snapshot_of(cache)
        before = list(snapshot.node_infos)
        cache.add_pod(pod("p", "b"))
        cache.update_snapshot(snapshot)
        same = [old is new for old, new in zip(before, snapshot.node_infos, strict=True)]
        assert same == [True, False, True]

    def test_if_nothing_changed_nothing_is_made(self) -> None:
        cache = cache_with(NODES[0])
        snapshot = snapshot_of(cache)
        table, infos = snapshot.table, snapshot.node_infos
        cache.update_snapshot(snapshot)
        assert snapshot.node_infos is infos
        assert snapshot.table is table

    def test_each_of_several_is_brought_up_to_date(self) -> None:
        cache = cache_with(NODES[0])
        first, second = snapshot_of(cache), snapshot_of(cache)
        assert pods_by_node(second) == {"a": []}
        cache.add_pod(pod("p", "a"))
        cache.update_snapshot(second)
        cache.update_snapshot(first)
        assert pods_by_node(first) == pods_by_node(second) == {"a": ["p"]}

    def test_images_are_counted_over_the_nodes_that_have_them(self) -> None:
        cache = cache_with(*NODES)
        snapshot = snapshot_of(cache)

        def spread() -> dict[str, list[int]]:
            return {
                info.name: sorted(image.num_nodes for image in info.image_states.values())
                for info in snapshot.node_infos
            }

        assert spread() == {"a": [1, 3], "b": [1, 3], "c": [1, 3]}
        cache.remove_node(NODES[2])
        cache.update_snapshot(snapshot)
        assert spread() == {"a": [1, 2], "b": [1, 2]}
        cache.add_node(make_node("a").build())
        cache.update_snapshot(snapshot)
        assert spread() == {"a": [], "b": [1, 1]}


PODS = st.sampled_from("pqrstu")


def member(name: str, node: str, cpu: str = "1") -> Pod:
    """A pod of the group `all`, which requests a resource of its own, that no node has."""
    requests = {"cpu": cpu, f"example.com/{name}": "1"}
    return make_pod(name).uid(f"uid-{name}").requests(requests).group("all").node(node).build()


class CacheMachine(RuleBasedStateMachine):
    """Whatever happens in whatever order, the snapshot is the one made from scratch.

    The pods on a node are in kube-scheduler's order: one with a new state, also a confirmed one, goes to the end, and
    the last one takes the place of one that goes. As in kube-scheduler, a node's sum keeps an amount of 0 of a resource
    whose last pod has gone, until the cache has neither the node nor a pod on it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.groups = GroupStates()
        self.cache = Cache(groups=self.groups)
        self.snapshot = Snapshot()
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.assumed: set[str] = set()
        self.order: dict[str, list[str]] = {name: [] for name in "abc"}
        self.named: dict[str, set[str]] = {name: set() for name in "abc"}
        """The resources that a node's sum names: those of all pods that were on it while the cache knew of it."""

    def comes(self, name: str) -> None:
        pod = self.pods[name]
        self.order[pod.node_name].append(name)
        self.named[pod.node_name].update(pod.requests.amounts.scalar_resources)

    def leaves(self, name: str) -> None:
        order = self.order[self.pods[name].node_name]
        last = order.pop()
        if last != name:
            order[order.index(name)] = last

    def forget_unknown_nodes(self) -> None:
        """Forget the sums of nodes of which the cache has neither the node nor a pod. They begin without resources."""
        for node, order in self.order.items():
            if not order and node not in self.nodes:
                self.named[node].clear()

    @rule(
        name=st.sampled_from("abc"), cpu=st.integers(1, 64), images=st.sets(st.sampled_from(["x:1", "y:1"]))
    )
    def add_node(self, name: str, cpu: int, images: set[str]) -> None:
        builder = make_node(name).capacity(cpu=cpu)
        for image in sorted(images):
            builder.image(image, size=1)
        self.nodes[name] = builder.build()
        self.cache.add_node(self.nodes[name])

    @rule(name=st.sampled_from("abc"))
    def remove_node(self, name: str) -> None:
        if name in self.nodes:
            self.cache.remove_node(self.nodes.pop(name))
            self.forget_unknown_nodes()
        else:
            with pytest.raises(CacheError):
                self.cache.remove_node(make_node(name).build())

    @rule(name=PODS, node=st.sampled_from("aaabc"), cpu=st.integers(1, 4))
    def add_pod(self, name: str, node: str, cpu: int) -> None:
        if name in self.pods:
            self.leaves(name)
        if name in self.pods and name not in self.assumed:
            self.pods[name] = member(name, self.pods[name].node_name, str(cpu))
            self.cache.update_pod(self.pods[name])
        else:
            self.pods[name] = member(name, node, str(cpu))
            self.cache.add_pod(self.pods[name])
            self.assumed.discard(name)
        self.comes(name)
        self.forget_unknown_nodes()

    @rule(name=PODS, node=st.sampled_from("aaabc"))
    def assume_pod(self, name: str, node: str) -> None:
        if name in self.pods:
            with pytest.raises(CacheError):
                self.cache.assume_pod(member(name, node))
        else:
            self.pods[name] = member(name, node)
            self.cache.assume_pod(self.pods[name])
            self.assumed.add(name)
            self.comes(name)

    @rule(name=PODS)
    def forget_or_remove_pod(self, name: str) -> None:
        if name in self.pods:
            self.leaves(name)
        if name in self.assumed:
            self.assumed.remove(name)
            self.cache.forget_pod(self.pods.pop(name))
        elif name in self.pods:
            self.cache.remove_pod(self.pods.pop(name))
        self.forget_unknown_nodes()

    @rule(name=PODS, node=st.sampled_from("abc"))
    def what_is_refused_changes_nothing(self, name: str, node: str) -> None:
        given, cache = member(name, node), self.cache
        refused = [cache.assume_pod, cache.add_pod, cache.forget_pod]
        if name not in self.pods:
            refused = [cache.update_pod, cache.forget_pod, cache.remove_pod]
        elif name in self.assumed:
            refused = [cache.assume_pod, cache.update_pod]
            if node != self.pods[name].node_name:
                refused.append(cache.forget_pod)
        for call in refused:
            before = self.contents()
            with pytest.raises(CacheError):
                call(given)
            assert self.contents() == before

    def contents(self) -> tuple[CacheDump, dict[str, Pod], set[str]]:
        members = self.groups.get("default/all") or MemberStates()
        return self.cache.dump(), members.pods, members.assumed

    @rule(name=PODS)
    def try_without(self, name: str) -> None:
        """What is tried and undone leaves no trace, not even in the order."""
        if name in self.pods and self.pods[name].node_name in self.nodes and name not in self.assumed:
            point = self.cache.restore_point()
            self.cache.remove_pod(self.pods[name])
            self.cache.update_snapshot(self.snapshot)
            self.cache.add_pod(self.pods[name])
            self.cache.restore(point)

    @rule(line=st.integers(1, 30) | st.integers(1, 400))
    def be_interrupted(self, line: int) -> None:
        with interrupted(line):
            self.cache.update_snapshot(self.snapshot)

    @rule()
    def look(self) -> None:
        self.cache.update_snapshot(self.snapshot)
        assert_rows_are_nodes(self.snapshot)
        fresh = Snapshot.of(self.nodes.values(), self.pods.values())
        assert pods_by_node(self.snapshot) == pods_by_node(fresh)
        for info in self.snapshot.node_infos:
            assert names([each.pod for each in info.pods]) == self.order[info.name]
        for info in self.snapshot.node_infos:
            expected = fresh.get(info.name)
            assert info.node is expected.node
            assert info.allocatable == expected.allocatable
            zeros = Resource(scalar_resources=FrozenDict(dict.fromkeys(self.named[info.name], 0)))
            assert info.requested == expected.requested.plus(zeros)
            assert info.image_states == expected.image_states

    @invariant()
    def pods_are_in_their_order_also_while_their_node_is_not_there(self) -> None:
        pods = self.cache.dump().pods
        for node, order in self.order.items():
            assert names([each for each in pods if each.node_name == node]) == order

    @invariant()
    def generations_are_unique(self) -> None:
        generations = [info.generation for info in self.snapshot.node_infos]
        assert len(set(generations)) == len(generations)


TestWhateverHappens = CacheMachine.TestCase
TestWhateverHappens.settings = settings(max_examples=examples(40), stateful_step_count=30)


@pytest.mark.parametrize("before_its_node", [True, False])
def test_a_resource_whose_last_pod_was_forgotten_stays_in_the_sum_with_the_amount_0(
    *, before_its_node: bool
) -> None:
    machine = CacheMachine()
    if before_its_node:
        machine.assume_pod("p", "c")
    machine.add_node("c", cpu=1, images=set())
    if not before_its_node:
        machine.assume_pod("p", "c")
    machine.forget_or_remove_pod("p")
    machine.look()
    assert machine.snapshot.get("c").requested == Resource(scalar_resources=FrozenDict({"example.com/p": 0}))


def test_many_threads_may_use_it_at_once() -> None:
    cache = cache_with(*NODES)
    snapshots: list[Snapshot] = []

    def work(thread: int) -> None:
        for number in range(30):
            cache.assume_pod(pod(f"p{thread}-{number}", "abc"[number % 3]))
            snapshots.append(snapshot_of(cache))
            if number % 2:
                cache.forget_pod(pod(f"p{thread}-{number}", "abc"[number % 3]))

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(snapshots) == 4 * 30
    infos: list[NodeInfo] = list(snapshot_of(cache).node_infos)
    assert sum(len(info.pods) for info in infos) == 4 * 15
    assert sum(info.requested.milli_cpu for info in infos) == 4 * 15 * 1000


class TestGoingBack:
    """What was undone by its inverse is in its old order again."""

    @staticmethod
    def order(cache: Cache) -> list[tuple[str, list[str]]]:
        return [(info.name, [each.pod.name for each in info.pods]) for info in snapshot_of(cache).node_infos]

    def test_pods_on_a_node_and_nodes_are_where_they_were(self) -> None:
        nodes = [make_node(name).zone(zone).build() for name, zone in (("a", "x"), ("b", "x"), ("c", "y"))]
        cache = cache_with(*nodes)
        pods = [pod(f"p{number}", "a") for number in range(3)]
        for each in pods:
            cache.add_pod(each)
        before = self.order(cache)
        point = cache.restore_point()
        cache.remove_pod(pods[0])
        cache.remove_node(nodes[0])
        cache.add_node(nodes[0])
        cache.add_pod(pods[0])
        assert self.order(cache) != before
        cache.restore(point)
        assert self.order(cache) == before

    def test_a_point_within_another_is_dropped_into_it(self) -> None:
        cache = cache_with(*NODES)
        pods = [pod(f"p{number}", "a") for number in range(2)]
        for each in pods:
            cache.add_pod(each)
        before = self.order(cache)
        outer = cache.restore_point()
        inner = cache.restore_point()
        cache.remove_pod(pods[0])
        cache.drop(inner)
        cache.add_pod(pods[0])
        cache.restore(outer)
        assert self.order(cache) == before

    @pytest.mark.parametrize("adds", [True, False])
    def test_what_was_not_undone_is_an_error(self, *, adds: bool) -> None:
        cache = cache_with(*NODES)
        for name in "qr":
            cache.add_pod(pod(name, "a"))
        point = cache.restore_point()
        if adds:
            cache.add_pod(pod("p", "a"))
        else:
            cache.remove_pod(pod("q", "a"))
        with pytest.raises(CacheError, match="node 'a' and the pods on it aren't what they were"):
            cache.restore(point)

    def test_points_end_in_reverse_order(self) -> None:
        cache = cache_with(*NODES)
        outer = cache.restore_point()
        cache.restore_point()
        with pytest.raises(CacheError, match="restore points end in reverse order"):
            cache.drop(outer)
