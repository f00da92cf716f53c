"""A scheduler, a cluster in memory and a clock that stands still: namespaces borrow, and take back."""

from __future__ import annotations

from collections.abc import Iterable

import attrs
from kschedfw_capacity import ElasticQuota, ElasticQuotaSpec
from tests.scenes import (
    node,
    placed,
    pod,
    quota,
    resources,
    scheduler_of,
    terminating,
    used_by_namespace,
)

from kschedfw import InMemoryCluster, Node, Pod, Scheduler
from kschedfw.testing import FakeClock


class Running:
    """A cluster with its scheduler; each step waits until the scheduler has nothing left to do."""

    def __init__(self, quotas: Iterable[ElasticQuota], nodes: Iterable[Node]) -> None:
        self.cluster = InMemoryCluster([*quotas, *nodes])
        self.clock = FakeClock()
        self.scheduler: Scheduler = scheduler_of(self.cluster, self.clock)

    def submit(self, *pods: Pod) -> set[str]:
        for each in pods:
            self.cluster.add(each)
        return self.settle()

    def settle(self) -> set[str]:
        """Let backoffs pass until nothing happens any more; gives the keys of the bound pods."""
        for _ in range(5):
            self.scheduler.run_until_idle()
            self.clock.advance(20)
        return placed(self.cluster)

    def set_quota(self, namespace: str, least: int, most: int) -> set[str]:
        present = self.cluster.get(ElasticQuota, f"{namespace}/quota")
        assert present is not None
        spec = ElasticQuotaSpec(resources({"cpu": least}), resources({"cpu": most}))
        self.cluster.update(attrs.evolve(present, spec=spec))
        return self.settle()

    def why_not(self, key: str) -> str:
        present = self.cluster.get(Pod, key)
        assert present is not None
        return next(each.message for each in present.status.conditions if each.type == "PodScheduled")


def pods(namespace: str, count: int, cpu: int = 2, priority: int = 0, first: int = 0) -> list[Pod]:
    return [pod(f"{namespace}/{first + i}", cpu, priority=priority) for i in range(count)]


def test_a_namespace_borrows_up_to_its_max() -> None:
    running = Running([quota("a", 4, 6), quota("b", 4, 6)], [node(cpu=8)])
    assert running.submit(*pods("a", 4)) == {"a/0", "a/1", "a/2"}
    assert "Pod a/3 is rejected in PreFilter because ElasticQuota a is more than Max" in running.why_not(
        "a/3"
    )


def test_what_was_lent_is_taken_back_and_no_more() -> None:
    running = Running([quota("a", 4, 6), quota("b", 4, 6)], [node(cpu=8)])
    running.submit(*pods("a", 3))
    # Of equal pods that haven't started, the first on the node goes.
    assert running.submit(*pods("b", 2)) == {"a/1", "a/2", "b/0", "b/1"}
    # Beyond its own min, b can't take any more of what a is sure to get.
    assert running.submit(*pods("b", 1, first=2)) == {"a/1", "a/2", "b/0", "b/1"}
    assert "because total ElasticQuota used is more than min" in running.why_not("b/2")
    preempted = [each.regarding for each in running.cluster.events if each.reason == "Preempted"]
    assert preempted == ["a/0"]


def test_priority_does_not_protect_a_borrower_nor_does_it_break_into_anothers_min() -> None:
    running = Running([quota("a", 4), quota("b", 4)], [node(cpu=8)])
    running.submit(*pods("a", 3, priority=100))
    assert len(running.submit(*pods("b", 2)) & {"a/0", "a/1", "a/2"}) == 2
    assert used_by_namespace(running.cluster.list(Pod)) == {"a": 4, "b": 4, "c": 0}
    running.submit(*pods("b", 1, priority=1000, first=2))
    assert used_by_namespace(running.cluster.list(Pod)) == {"a": 4, "b": 4, "c": 0}


def test_beyond_its_min_a_namespace_preempts_its_own_less_important_pods_only() -> None:
    running = Running([quota("a", 2, 4), quota("b", 6)], [node(cpu=8)])
    running.submit(*pods("b", 1), *pods("a", 2))
    assert running.submit(pod("a/important", 2, priority=1)) >= {"b/0", "a/important"}
    assert used_by_namespace(running.cluster.list(Pod)) == {"a": 4, "b": 2, "c": 0}


def test_namespaces_without_quota_are_left_alone() -> None:
    running = Running([quota("a", 4)], [node(cpu=8)])
    running.submit(*pods("c", 2, cpu=4))
    assert running.submit(*pods("a", 1, priority=10)) == {"c/0", "c/1"}


def test_a_pod_that_ends_makes_room_in_the_quota() -> None:
    running = Running([quota("a", 4, 4)], [node(cpu=8)])
    assert running.submit(*pods("a", 3)) == {"a/0", "a/1"}
    present = running.cluster.get(Pod, "a/0")
    assert present is not None
    running.cluster.delete(present)
    assert running.settle() == {"a/1", "a/2"}


def test_a_higher_quota_lets_waiting_pods_in_and_a_lower_one_leaves_running_pods_alone() -> None:
    running = Running([quota("a", 2, 2)], [node(cpu=8)])
    assert running.submit(*pods("a", 3)) == {"a/0"}
    assert running.set_quota("a", 6, 4) == {"a/0", "a/1"}
    assert running.set_quota("a", 6, 6) == {"a/0", "a/1", "a/2"}
    assert running.set_quota("a", 1, 1) == {"a/0", "a/1", "a/2"}


def test_a_new_quota_counts_pods_that_are_there_already() -> None:
    running = Running([], [node(cpu=8)])
    running.submit(*pods("a", 2))
    running.cluster.add(quota("a", 6, 6))
    assert running.submit(*pods("a", 2, first=2)) == {"a/0", "a/1", "a/2"}


def test_victims_are_found_on_the_one_node_where_they_make_room() -> None:
    running = Running([quota("a", 4), quota("b", 4)], [node("x", 4), node("y", 4)])
    running.submit(*pods("a", 8, cpu=1))
    assert running.submit(*pods("b", 1, cpu=3)) >= {"b/0"}
    present = running.cluster.get(Pod, "b/0")
    assert present is not None
    evicted = [each.message for each in running.cluster.events if each.reason == "Preempted"]
    assert len(evicted) == 3
    assert all(message.endswith(f"on node {present.node_name}") for message in evicted)


def test_a_pod_that_is_being_deleted_gives_what_was_lent_and_nobody_is_evicted() -> None:
    running = Running([quota("a", 4), quota("b", 4)], [node(cpu=8)])
    lent = [pod(f"b/{i}", 2, on="n") for i in range(4)]
    for each in [*lent[:1], terminating(lent[1]), *lent[2:]]:
        running.cluster.add(each)
    running.submit(*pods("a", 1))
    waiting = running.cluster.get(Pod, "a/0")
    assert waiting is not None
    assert waiting.status.nominated_node_name == "n"
    gone = running.cluster.get(Pod, "b/1")
    assert gone is not None
    running.cluster.delete(gone)
    assert running.settle() == {"a/0", "b/0", "b/2", "b/3"}
    assert [each.regarding for each in running.cluster.events if each.reason == "Preempted"] == []
