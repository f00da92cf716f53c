"""A queue of nobody: who is in flight and who is nominated is known, and nothing else."""

from __future__ import annotations

import pytest

from kschedfw import PodInFlightError, Scheduler, make_node, make_pod
from kschedfw.cluster import InMemoryCluster
from kschedfw.framework.clock import VirtualClock
from kschedfw.scheduler.queue import IdleQueue


@pytest.fixture
def scheduler() -> Scheduler:
    cluster = InMemoryCluster([make_node("n").capacity(cpu=4).build(), make_pod("p").requests(cpu=1).build()])
    return Scheduler(cluster, clock=VirtualClock(), idle=True)


def test_an_idle_scheduler_places_pods_and_never_runs_any(scheduler: Scheduler) -> None:
    assert isinstance(scheduler.queue, IdleQueue)
    assert scheduler.run_until_idle() == 0
    pod = make_pod("q").uid("q").requests(cpu=3).build()
    with scheduler.place(pod), pytest.raises(PodInFlightError):
        scheduler.place(pod)
    with scheduler.place(pod) as placement:
        assert placement.node_name == "n"
    assert scheduler.queue.pending_pods()[0] == []


def test_nominations_of_statuses_are_kept(scheduler: Scheduler) -> None:
    pod = make_pod("late").uid("late").nominated_node("n").build()
    scheduler.cluster.add(pod)
    assert scheduler.nominator.node_of("late") == "n"
    scheduler.cluster.patch_pod_status(pod, nominated_node_name="")
    assert scheduler.nominator.node_of("late") == ""
    scheduler.cluster.patch_pod_status(pod, nominated_node_name="n")
    scheduler.cluster.delete(pod)
    assert scheduler.nominator.is_empty
