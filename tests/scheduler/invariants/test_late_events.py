"""Events that come late: about an object that is gone, after another one took its name, or after an eviction."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

import attrs
import pytest

from kschedfw import FeatureGates, make_node, make_pod, make_pod_group
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.meta import Named
from kschedfw.api.pod import Pod
from kschedfw.api.workloads import PodDisruptionBudget
from kschedfw.cluster import EventType, WatchEvent
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.testing import FakeClock
from tests.scheduler.invariants.flaky import FlakyCluster
from tests.scheduler.invariants.late import LateCluster


def test_a_late_update_of_an_earlier_pod_does_not_push_out_the_present_one() -> None:
    cluster = FlakyCluster(Random(0))
    cluster.calm = True
    scheduler = Scheduler(cluster, clock=FakeClock())
    cluster.truth.add(make_node("n").capacity(cpu=4).build())
    earlier = cluster.truth.add(make_pod("p").uid("earlier").build())
    cluster.truth.delete(earlier)
    cluster.truth.add(make_pod("p").uid("present").node("n").build())
    cluster.deliver_all()
    scheduler.events.handle(WatchEvent(EventType.MODIFIED, earlier, earlier))
    assert [pod.uid for pod in scheduler.cache.dump().pods] == ["present"]
    assert scheduler.queue.place("earlier") is None


def test_a_late_deletion_of_an_earlier_node_leaves_the_present_one() -> None:
    cluster = FlakyCluster(Random(0))
    cluster.calm = True
    scheduler = Scheduler(cluster, clock=FakeClock())
    earlier = cluster.truth.add(make_node("n").uid("earlier").build())
    cluster.truth.delete(earlier)
    cluster.truth.add(make_node("n").uid("present").build())
    cluster.deliver_all()
    scheduler.events.handle(WatchEvent(EventType.DELETED, earlier))
    assert [node.uid for node in scheduler.cache.dump().nodes] == ["present"]


ALL_GATES = FeatureGates.of(
    "GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption"
)
T = TypeVar("T", bound=Named)


class BudgetsAreRead(LateCluster):
    """A cluster whose events are handled as soon as the budgets are read, in the midst of a preemption's cycle."""

    events_come = False

    def list(self, kind: type[T], namespace: str | None = None) -> Sequence[T]:
        if kind is PodDisruptionBudget and self.events_come:
            self.deliver_all()
        return super().list(kind, namespace)


class TestVictimsWhoseDeletionIsSeenLate:
    """A gang whose members each need a node, and a victim on each of these, which is deleted at once."""

    def preempting(self, victims: int) -> tuple[BudgetsAreRead, Scheduler, FakeClock]:
        """After the gang's first cycle: the victims are deleted, of which nothing has been seen yet."""
        cluster, clock = BudgetsAreRead(Random(0)), FakeClock()
        cluster.prompt, cluster.graceful = True, 0.0
        scheduler = Scheduler(cluster, clock=clock, feature_gates=ALL_GATES)
        cluster.truth.add(make_pod_group("g").gang(min_count=victims).priority(10).build())
        for number in range(victims):
            cluster.truth.add(make_node(f"n{number}").capacity(cpu=2).build())
            cluster.truth.add(make_pod(f"low{number}").requests(cpu="1500m").node(f"n{number}").build())
            cluster.truth.add(make_pod(f"m{number}").requests(cpu="1800m").priority(10).group("g").build())
        cluster.deliver_all()
        assert scheduler.schedule_one()
        assert not [pod for pod in cluster.truth.list(Pod) if pod.node_name]
        return cluster, scheduler, clock

    def members_bound(self, cluster: BudgetsAreRead, scheduler: Scheduler, clock: FakeClock) -> int:
        cluster.deliver_all()
        clock.advance(10)  # the backoff is over
        scheduler.run_until_idle()
        return len([pod for pod in cluster.truth.list(Pod) if pod.node_name])

    @pytest.mark.parametrize("victims", [1, 2, 3])
    def test_they_bring_the_gang_back_after_its_cycle(self, victims: int) -> None:
        made = self.preempting(victims)
        assert self.members_bound(*made) == victims

    @pytest.mark.parametrize("victims", [1, 2, 3])
    def test_and_if_they_come_while_it_preempts_the_same_victims_once_more(self, victims: int) -> None:
        """No event follows that could bring back members that are held back."""
        cluster, scheduler, clock = self.preempting(victims)
        scheduler.queue.activate(cluster.truth.list(Pod))
        cluster.events_come = True
        assert scheduler.schedule_one()
        cluster.events_come = False
        assert self.members_bound(cluster, scheduler, clock) == victims

    @pytest.mark.parametrize("victims", [1, 2, 3])
    def test_and_if_the_gang_preempts_them_once_more_before_they_come(self, victims: int) -> None:
        cluster, scheduler, clock = self.preempting(victims)
        scheduler.queue.activate(cluster.truth.list(Pod))
        assert scheduler.schedule_one()
        assert self.members_bound(cluster, scheduler, clock) == victims


def test_a_late_cluster_tells_all_of_an_object_in_order_and_has_stored_what_it_tells() -> None:
    for seed in range(20):
        cluster = LateCluster(Random(seed))
        cluster.ordered = seed % 2 == 0
        told: list[tuple[str, str, bool]] = []

        def note(
            event: WatchEvent, told: list[tuple[str, str, bool]] = told, read: LateCluster = cluster
        ) -> None:
            is_stored = read.get(Pod, event.object.key) is not None
            told.append((event.object.name, event.type, is_stored))

        cluster.watch(note)
        for name in ("a", "b"):
            pod = cluster.truth.add(make_pod(name).build())
            cluster.truth.delete(
                cluster.truth.update(pod.with_metadata(attrs.evolve(pod.metadata, labels=FrozenDict(x="y"))))
            )
        assert cluster.get(Pod, "default/a") is None
        while not cluster.is_up_to_date:
            cluster.deliver()
        for name in ("a", "b"):
            assert [kind for each, kind, _ in told if each == name] == ["ADDED", "MODIFIED", "DELETED"]
        assert not any(is_stored for _, kind, is_stored in told if kind == "DELETED")
