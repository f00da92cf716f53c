"""v1.37: a group is one entity of the queue. Source: kube-scheduler's `backend/queue/scheduling_queue.go`, KEP-4671."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import attrs
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kschedfw import (
    EnabledPlugin,
    FeatureGates,
    InMemoryCluster,
    Pod,
    Registry,
    Scheduler,
    default_profile,
    make_node,
    make_pod,
    make_pod_group,
)
from kschedfw.framework.groups import GroupPlacement
from kschedfw.framework.metrics import EntityKind, NoMetrics
from kschedfw.framework.nodes.pod_info import QueuedPodInfo
from kschedfw.scheduler.attempt import Attempt
from kschedfw.scheduler.groups.cycle import GroupDecision
from kschedfw.scheduler.queue import Place
from kschedfw.scheduler.queue.cluster_events import UNSCHEDULED_POD_ADD
from kschedfw.testing import FakeClock
from kschedfw.testing.properties import examples
from tests.framework.support import plugin
from tests.scheduler.queue.support import NODE_ADD, Gate, Queue

GATES = {
    version: FeatureGates(dict.fromkeys(names, True), version)
    for version, names in {
        "1.36": ("GenericWorkload", "GangScheduling"),
        "1.37": ("GenericWorkload",),
    }.items()
}


def member(name: str, *, group: str = "g", gated: bool = False) -> Pod:
    made = make_pod(name).requests(cpu=1).group(group)
    return (made.scheduling_gate("wait") if gated else made).build()


def scheduler_of(
    version: str, *pods: Pod, cpu: int = 9, least: int | None = None
) -> tuple[Scheduler, InMemoryCluster, FakeClock]:
    """A scheduler that has seen a node, the group and its members, and its clock."""
    group = make_pod_group("g")
    cluster = InMemoryCluster(
        [
            make_node("n").capacity(cpu=cpu, pods=99).build(),
            (group if least is None else group.gang(min_count=least)).build(),
            *pods,
        ]
    )
    clock = FakeClock(1000.0)
    return Scheduler(cluster, feature_gates=GATES[version], clock=clock), cluster, clock


def bound(cluster: InMemoryCluster) -> set[str]:
    return {pod.name for pod in cluster.list(Pod) if pod.node_name}


def places(scheduler: Scheduler, cluster: InMemoryCluster) -> dict[str, Place | None]:
    return {pod.name: scheduler.queue.place(pod.uid) for pod in cluster.list(Pod) if not pod.node_name}


@pytest.mark.parametrize(("version", "at_first"), [("1.36", {"a"}), ("1.37", set[str]())])
def test_a_gated_member_holds_the_others_back_until_its_gates_are_gone(
    version: str, at_first: set[str]
) -> None:
    scheduler, cluster, _ = scheduler_of(version, member("a"), member("b", gated=True))
    scheduler.run_until_idle()
    assert bound(cluster) == at_first
    if version == "1.37":
        assert places(scheduler, cluster) == dict.fromkeys("ab", Place.GATED)
    cluster.update(member("b"))
    scheduler.run_until_idle()
    assert bound(cluster) == {"a", "b"}


@pytest.mark.parametrize(("version", "place"), [("1.36", Place.ACTIVE), ("1.37", Place.BACKOFF)])
def test_a_new_member_backs_off_with_its_group(version: str, place: Place) -> None:
    scheduler, cluster, _ = scheduler_of(version, member("a"), member("b"), cpu=1, least=2)
    scheduler.schedule_one()
    assert set(places(scheduler, cluster).values()) == {Place.BACKOFF}
    cluster.add(member("c"))
    assert places(scheduler, cluster)["c"] is place
    info = scheduler.queue.get(next(pod.uid for pod in cluster.list(Pod) if pod.name == "c"))
    assert info is not None
    assert info.unschedulable_count == (version == "1.37")


def test_a_gated_member_that_comes_holds_back_those_that_back_off() -> None:
    scheduler, cluster, _ = scheduler_of("1.37", member("a"), member("b"), cpu=1, least=2)
    scheduler.schedule_one()
    cluster.add(member("c", gated=True))
    assert places(scheduler, cluster) == dict.fromkeys("abc", Place.GATED)


def test_a_member_that_comes_during_a_cycle_in_vain_waits_for_the_backoff_of_all() -> None:
    scheduler, cluster, clock = scheduler_of("1.37", member("a"), member("b"), cpu=1, least=2)
    come = member("c")

    class Late:
        """Adds a member when the group is decided on."""

        follows_placed = False

        def member(self, placement: GroupPlacement, attempt: Attempt) -> None:
            return

        def decided(self, decision: GroupDecision) -> None:
            cluster.add(come)

    assert scheduler.group_cycle is not None
    scheduler.group_cycle.observer = Late()
    scheduler.schedule_one()
    assert places(scheduler, cluster) == dict.fromkeys("abc", Place.BACKOFF)
    clock.advance(5.0)
    scheduler.queue.flush_backoff_completed()
    assert places(scheduler, cluster) == dict.fromkeys("abc", Place.ACTIVE)


def test_gates_are_asked_once_for_each_member_until_a_gang_is_complete() -> None:
    asked = Counter[str]()

    def count(pod: Pod) -> None:
        asked[pod.name] += 1

    registry = Registry()
    registry.register(plugin("Counts", pre_enqueue=count))
    base = default_profile(feature_gates=GATES["1.37"])
    profile = attrs.evolve(base, multi_point=(EnabledPlugin("Counts"), *base.multi_point))
    cluster = InMemoryCluster([make_pod_group("g").gang(min_count=5).build()])
    Scheduler(cluster, [profile], registry=registry, feature_gates=GATES["1.37"], clock=FakeClock())
    for name in "abcd":
        cluster.add(member(name))
    assert asked == {"a": 1}
    cluster.add(member("e"))
    assert asked == {"a": 2, **dict.fromkeys("bcde", 1)}


def test_a_member_inherits_the_gate_of_one_that_goes() -> None:
    scheduler, cluster, _ = scheduler_of("1.37", member("a"), member("b"), least=3)
    cluster.delete(member("a"))
    assert places(scheduler, cluster) == {"b": Place.GATED}
    for name in "cd":
        cluster.add(member(name))
    assert places(scheduler, cluster) == dict.fromkeys("bcd", Place.ACTIVE)


class Entities(NoMetrics):
    """Receives the numbers of entities."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, str], int] = {}
        self.incoming: Counter[tuple[str, str, str]] = Counter()

    def queued_entities(self, queue: str, kind: EntityKind, count: int) -> None:
        self.counts[str(queue), kind.value] = count

    def entity_incoming(self, queue: str, event: str, kind: EntityKind) -> None:
        self.incoming[str(queue), event, kind.value] += 1


def test_groups_and_pods_without_one_are_counted_as_entities() -> None:
    told = Entities()
    queue = Queue(entities=True, groups=True, metrics=told)
    for name in "abc":
        queue.add(member(name))
    queue.add(make_pod("alone").build())
    queue.add(member("x", group="h", gated=True))
    queue.add(member("y", group="h"))
    assert {key: count for key, count in told.counts.items() if count} == {
        ("active", "pod"): 1,
        ("active", "podgroup"): 1,
        ("gated", "podgroup"): 1,
    }
    assert told.incoming == {
        ("active", UNSCHEDULED_POD_ADD.label, "podgroup"): 1,
        ("active", UNSCHEDULED_POD_ADD.label, "pod"): 1,
        ("unschedulable", UNSCHEDULED_POD_ADD.label, "podgroup"): 1,
    }
    assert queue.counts()[Place.GATED] == 2


def test_up_to_v1_36_nobody_counts_entities() -> None:
    told = Entities()
    queue = Queue(groups=True, metrics=told)
    queue.add(member("a"))
    assert not told.counts
    assert not told.incoming


NAMES = st.sampled_from("abcd")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), NAMES),
        st.tuples(st.just("add gated"), NAMES),
        st.tuples(st.just("delete"), NAMES),
        st.tuples(st.just("activate"), NAMES),
        st.tuples(
            st.sampled_from(("try", "try", "event", "open", "close", "wait", "age", "flush")), st.just("")
        ),
    ),
    max_size=25,
)


@settings(max_examples=examples(150))
@given(STEPS, st.booleans())
@example([("add", "a"), ("try", ""), ("add gated", "b")], False)
@example([("add", "a"), ("add", "b"), ("close", ""), ("try", "")], True)
def test_all_waiting_members_are_in_one_place_and_share_a_turn_whatever_happens(
    steps: list[tuple[str, str]], pop_from_backoff: bool
) -> None:
    gate, clock = Gate(open=True), FakeClock(1000.0)
    queue = Queue(gate.plugin(), entities=True, groups=True, clock=clock, pop_from_backoff=pop_from_backoff)
    pods: dict[str, Pod] = {}

    def attempt() -> None:
        """A cycle in which one member stays without a node, and others come back after a success."""
        popped = queue.try_pop()
        if popped is None:
            return
        infos = [popped, *queue.take_members(pod for pod in pods.values() if pod.uid != popped.pod.uid)]
        assert {info.pod.name for info in infos} == pods.keys(), "all members are popped together"
        queue.begin_group(popped)
        for info in infos:
            info.unschedulable_plugins.add("Fit")
            queue.add_unschedulable_if_not_present(info)
        assert {queue.place(pod.uid) for pod in pods.values()} == {Place.ACTIVE}
        queue.end_group("default/g", is_refused=True)

    actions: dict[str, Callable[[str], object]] = {
        "add": lambda name: pods.setdefault(name, member(name)),
        "add gated": lambda name: pods.setdefault(name, member(name, gated=True)),
        "delete": lambda name: queue.delete(pods.pop(name, member(name))),
        "activate": lambda name: queue.activate([pods[name]] if name in pods else []),
        "try": lambda _: attempt(),
        "event": lambda _: queue.tell(NODE_ADD),
        "open": lambda _: setattr(gate, "open", True),
        "close": lambda _: setattr(gate, "open", False),
        "wait": lambda _: clock.advance(3.0),
        "age": lambda _: clock.advance(400.0),
        "flush": lambda _: queue.flush_unschedulable_leftover(),
    }
    for action, name in steps:
        before = dict(pods)
        actions[action](name)
        for new in pods.keys() - before.keys():
            queue.add(pods[new])
        assert len({queue.place(pod.uid) for pod in pods.values()}) <= 1, (action, name)
        infos = [info for pod in pods.values() if isinstance(info := queue.get(pod.uid), QueuedPodInfo)]
        assert len(infos) == len(pods)
        assert (
            len({(info.timestamp, info.unschedulable_count, info.backoff_expiration) for info in infos}) <= 1
        )
        if any(pod.spec.scheduling_gates for pod in pods.values()) and pods:
            # Without popping from backoff, gates are asked at its end.
            expected = {Place.GATED} if pop_from_backoff else {Place.GATED, Place.BACKOFF}
            assert {queue.place(pod.uid) for pod in pods.values()} <= expected
        counted = queue._sub_queues.entity_counts()
        assert sum(counted.values()) == bool(pods)
