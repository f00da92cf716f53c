"""Remedies as changes that can be tried, drains as answers, and work that is cancelled."""

from __future__ import annotations

from itertools import pairwise

import pytest
from explore.clusters import cluster, default_configuration
from hypothesis import given, settings
from kschedfw_advisor.edits import Edit, EditError, edited, object_differences
from kschedfw_advisor.explore.advice import advice_of, emptied_of
from kschedfw_advisor.explore.changes import ChangeError, EditObjects, EditOf, Reschedule
from kschedfw_advisor.explore.work import CancelledError
from kschedfw_advisor.explore.workbench import Workbench
from kschedfw_advisor.reports import Reports

from kschedfw import InMemoryCluster, Node, Pod, make_node, make_pod
from kschedfw.api import object_from_manifest, to_manifest
from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import DrawnCluster, clusters


@pytest.fixture
def bench() -> Workbench:
    return Workbench(cluster(), default_configuration())


@settings(max_examples=examples(25))
@given(clusters(most_nodes=3, most_bound=2, most_pending=3))
def test_the_differences_of_two_objects_make_the_second_of_the_first(given: DrawnCluster) -> None:
    pairs: list[tuple[Pod, Pod] | tuple[Node, Node]] = [
        *pairwise(given.nodes),
        *pairwise([*given.bound, *given.pending]),
    ]
    for old, new in pairs:
        changes = list(object_differences(old, new))
        assert object_from_manifest(edited(to_manifest(old), changes), check=False) == new


def test_an_edit_of_what_isnt_there_names_it() -> None:
    with pytest.raises(EditError, match="Pod default/p: there is no /spec/containers/3/image"):
        edited({"spec": {"containers": [{}]}}, [Edit("Pod default/p", "/spec/containers/3/image", "a", "b")])


class TestRemedies:
    def test_each_remedy_of_the_page_places_what_it_says(self, bench: Workbench) -> None:
        advice = advice_of(bench.replica(()), lambda *_: None)
        assert [f"{kind.namespace}/{kind.name}" for kind in advice.kinds] == ["default/huge", "default/gated"]
        for kind in advice.kinds:
            assert kind.remedies
            for remedy in kind.remedies:
                assert remedy.change is not None
                outcome = bench.outcome((remedy.change,))
                placed = [pod for pod in kind.pods if outcome.fates[pod].node]
                assert len(placed) == remedy.placed

    def test_workloads_with_other_problems_have_these_in_a_sentence_the_most_pods_first(self) -> None:
        lost = [make_pod(f"lost-{number}").node("gone").build() for number in range(2)]
        reports = Reports(without_pods={"Job default/night": "it is suspended"})
        cluster = InMemoryCluster([make_node("n").build(), *lost])
        what_if = Workbench(cluster, default_configuration()).replica(())
        troubles = advice_of(what_if, lambda *_: None, reports=reports).troubles
        gone = "bound to node gone, which doesn't exist, so nothing starts it"
        assert [(each.code, each.workload, each.name, each.number, each.cause) for each in troubles] == [
            ("not-started", "", "lost-0", 1, gone),
            ("not-started", "", "lost-1", 1, gone),
            ("no-pods", "Job", "night", 0, "it is suspended"),
        ]

    def test_what_is_done_to_one_pod_of_a_kind_is_done_to_all(self) -> None:
        pods = [make_pod(f"p-{number}").requests(cpu="8").build() for number in range(3)]
        node = make_node("n").capacity(cpu=4, pods=10).build()
        bench = Workbench(InMemoryCluster([node, *pods]), default_configuration())
        path = "/spec/containers/0/resources/requests/cpu"
        keys = tuple(pod.key for pod in pods)
        less = EditObjects("less", (EditOf(f"Pod {keys[0]}", path, "8", "1"),), keys)
        assert {bench.outcome((less,)).fates[key].node for key in keys} == {"n"}

    def test_pods_that_were_placed_before_a_remedy_are_explained_as_if_they_were_off(
        self, bench: Workbench
    ) -> None:
        less = EditOf("Pod default/huge", "/spec/containers/0/resources/requests/cpu", "64", "3")
        remedy = EditObjects("less", (less,), ("default/huge",))
        assert bench.outcome((remedy,)).fates["default/web"].is_new
        assert bench.explain("default/web", (remedy,)).node == "cpu-taken"
        assert bench.explain("default/huge", (remedy,)).node == "memory-taken"

    def test_objects_appear_and_are_gone(self, bench: Workbench) -> None:
        new = to_manifest(make_node("new").capacity(cpu=128, pods=9).build())
        change = EditObjects(
            "swap", (EditOf("Node new", "", None, new), EditOf("Pod default/busy", "", {"old": 1}, None))
        )
        outcome = bench.outcome((change,))
        assert outcome.fates["default/huge"].node == "new"
        assert "default/busy" not in outcome.fates

    @pytest.mark.parametrize("name", ["Pod default/none", "Node none", "Secret default/x"])
    def test_an_edit_of_an_object_that_isnt_there_is_refused(self, bench: Workbench, name: str) -> None:
        kind, _, key = name.partition(" ")
        with pytest.raises(ChangeError, match=f"there is no {kind} '{key}'"):
            bench.outcome((EditObjects("e", (EditOf(name, "/spec", 1, 2),)),))


def test_a_node_without_pods_is_emptied_and_a_pod_without_a_controller_is_lost(bench: Workbench) -> None:
    assert emptied_of(bench.plan_drain("shut", ())).evicted == 0
    assert emptied_of(bench.plan_drain("cpu-taken", ())).homeless == [
        ("default/busy", "it has no controller, so nothing makes it anew")
    ]


def test_work_that_is_cancelled_leaves_nothing_behind(bench: Workbench) -> None:
    before = bench.outcome()
    bench.work.begin("all pods")
    bench.work.cancel()
    with pytest.raises(CancelledError):
        bench.outcome((Reschedule(),))
    bench.work.begin("again")
    assert bench.outcome().fates == before.fates
    assert all(fate.is_new for name, fate in bench.outcome((Reschedule(),)).fates.items() if fate.node)
