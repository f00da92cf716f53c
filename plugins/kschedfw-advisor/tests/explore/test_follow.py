"""A cluster that changes while the page shows it: what is read again, handed over, and told."""

from __future__ import annotations

import threading
from collections.abc import Callable

import attrs
import pytest
from explore.clusters import cluster, default_configuration
from explore.served import served
from kschedfw_advisor.explore.changes import Cordon
from kschedfw_advisor.explore.follow import Follower, Reading
from kschedfw_advisor.explore.workbench import Workbench
from kschedfw_advisor.reports import Reports

from kschedfw import InMemoryCluster, Node, make_node
from kschedfw.api import KschedfwError, WarningEvent
from kschedfw.testing.waiting import PATIENCE, eventually


class Told:
    """A follower, what it has handed over, and what it has said last."""

    def __init__(self, read: Callable[[], Reading], seconds: float = 60) -> None:
        self.taken: list[Reading] = []
        self.said: list[str] = []
        self.follower = Follower(read, self.taken.append, self.said.append, Reading(cluster()), seconds)


def grown() -> InMemoryCluster:
    more = cluster()
    more.add(make_node("new").capacity(cpu=4, pods=10).build())
    return more


def test_an_equal_cluster_with_newer_versions_isnt_handed_over() -> None:
    def touched() -> InMemoryCluster:
        same = cluster()
        for node in same.list(Node):
            changed = same.update(attrs.evolve(node, spec=attrs.evolve(node.spec, provider_id="x")))
            same.update(attrs.evolve(changed, spec=node.spec))
        versions = [
            [node.metadata.resource_version for node in each.list(Node)] for each in (same, cluster())
        ]
        assert versions[0] != versions[1]
        return same

    told = Told(lambda: Reading(touched()))
    told.follower.look()
    assert (told.taken, told.said) == ([], [""])


def test_a_changed_cluster_is_handed_over_once() -> None:
    told = Told(lambda: Reading(grown()))
    told.follower.look()
    told.follower.look()
    assert len(told.taken) == 1


def test_a_new_warning_about_a_pods_start_is_handed_over_and_one_about_scheduling_isnt() -> None:
    def warned(reason: str) -> Reading:
        return Reading(cluster(), Reports(warnings=[WarningEvent("Pod", "default", "web", reason, "why")]))

    readings = [warned("FailedScheduling"), warned("FailedMount"), warned("FailedMount")]
    told = Told(lambda: readings.pop(0))
    for _ in range(3):
        told.follower.look()
    (taken,) = told.taken
    assert set(taken.reports.of_pods) == {"default/web"}


def test_what_cant_be_read_is_told_until_it_can() -> None:
    answers: list[Exception | None] = [KschedfwError("no route to the cluster"), None]

    def read() -> Reading:
        if (error := answers.pop(0)) is not None:
            raise error
        return Reading(grown())

    told = Told(read)
    told.follower.look()
    told.follower.look()
    assert told.said == ["what is shown isn't up to date: no route to the cluster", ""]
    assert len(told.taken) == 1


@pytest.mark.parametrize("seconds", [1e30, float("inf")])
def test_any_number_of_seconds_may_lie_between_readings(seconds: float) -> None:
    follower = Told(lambda: Reading(cluster()), seconds).follower
    before = set(threading.enumerate())
    follower.start()
    (thread,) = set(threading.enumerate()) - before
    thread.join(0.05)
    assert thread.is_alive(), "it waits"
    follower.end()
    thread.join(PATIENCE)
    assert not thread.is_alive()


class TestTheWorkbench:
    def test_kept_changes_are_made_to_the_cluster_that_takes_the_place(self) -> None:
        bench = Workbench(cluster(), default_configuration())
        bench.keep((Cordon(("cpu-taken",)),))
        bench.replace(grown())
        assert [node.name for node in bench.outcome().nodes] == ["cpu-taken", "memory-taken", "shut", "new"]
        assert bench.outcome().nodes[0].spec.unschedulable
        assert bench.revision == 1

    def test_a_cluster_that_a_kept_change_cant_be_made_to_isnt_taken(self) -> None:
        bench = Workbench(cluster(), default_configuration())
        bench.keep((Cordon(("cpu-taken",)),))
        before = bench.outcome()
        with pytest.raises(KschedfwError, match="there is no node 'cpu-taken'"):
            bench.replace(InMemoryCluster([make_node("other").build()]))
        assert bench.outcome().fates == before.fates
        assert bench.revision == 0


def test_the_page_of_a_followed_cluster_tells_of_a_new_revision() -> None:
    with served(cluster(), follow=grown) as page:
        eventually(lambda: page.get("/api/news").json["revision"])
        assert "new" in page.get("/api/state").json["map"]["nodes"]["names"]
