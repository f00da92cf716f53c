"""Events about an object that is gone, after another one took its name."""

from __future__ import annotations

from random import Random

from kschedfw import make_node, make_pod
from kschedfw.cluster import EventType, WatchEvent
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.testing import FakeClock
from tests.scheduler.invariants.flaky import FlakyCluster


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
