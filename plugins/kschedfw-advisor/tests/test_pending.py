"""Pending pods by what keeps them pending."""

from __future__ import annotations

import attrs
import pytest
from kschedfw_advisor.pending import Pending, PodKind, explain_pending, kinds_by_default
from small_clusters import node, owned, running, what_if

from kschedfw import FeatureGates, Pod, make_pod, make_pod_group
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.meta import Named
from kschedfw.what_if.what_if import WhatIf


def helps(found: Pending) -> dict[tuple[str, ...], list[str]]:
    """The smallest change for the pods of each kind, by their names."""
    return {
        tuple(pod.name for pod in kind.pods): [str(remedy) for remedy in kind.remedies[:1]]
        for why in found.whys
        for kind in why.kinds
    }


def test_pods_that_have_a_place_get_it_first() -> None:
    cluster = what_if(node("n1").build(), make_pod("fits").build(), make_pod("huge").requests(cpu=9).build())
    found = explain_pending(cluster)
    assert [each.pod.name for each in found.settled.placed] == ["fits"]
    assert (found.pods, [why.reasons for why in found.whys]) == (1, [("Insufficient cpu",)])


def test_pods_that_are_alike_are_one_kind_and_kinds_with_the_same_reasons_one_group() -> None:
    big = [owned(make_pod(f"big-{number}").requests(cpu=5), "big") for number in range(3)]
    others = [make_pod("other").requests(cpu=6).build(), make_pod("choosy").node_selector(disk="ssd").build()]
    found = explain_pending(what_if(node("n1").build(), big, others))
    assert [(why.reasons, why.pods, len(why.kinds)) for why in found.whys] == [
        (("Insufficient cpu",), 4, 2),
        (("node(s) didn't match Pod's node affinity/selector",), 1, 1),
    ]
    assert helps(found) == {
        ("big-0", "big-1", "big-2"): ["request 1333m of cpu instead of 5"],
        ("other",): ["request 4 of cpu instead of 6"],
        ("choosy",): ["drop disk=ssd from the pod's nodeSelector"],
    }


def test_pods_of_a_stateful_set_are_alike_though_each_has_a_label_of_its_own() -> None:
    def member(number: int) -> Pod:
        pod = owned(make_pod(f"db-{number}").requests(cpu=9), "db", "StatefulSet")
        labels = FrozenDict({"statefulset.kubernetes.io/pod-name": pod.name})
        return pod.with_metadata(attrs.evolve(pod.metadata, labels=labels))

    found = explain_pending(what_if(node("n1").build(), member(0), member(1)))
    assert [tuple(pod.name for pod in kind.pods) for why in found.whys for kind in why.kinds] == [
        ("db-0", "db-1")
    ]


def test_gates_are_taken_away_to_see_whether_that_helps() -> None:
    gated, huge = (
        make_pod("gated").scheduling_gate("a", "b"),
        make_pod("huge").scheduling_gate("a").requests(cpu=9),
    )
    found = explain_pending(what_if(node("n1").build(), gated.build(), huge.build()))
    assert helps(found) == {
        ("gated",): ["remove the scheduling gates a, b"],
        ("huge",): ["remove the scheduling gate a, and request 4 of cpu instead of 9"],
    }


def test_for_kinds_beyond_the_first_only_why_is_told_unless_no_scheduler_tries_them() -> None:
    pods = [
        make_pod("one").requests(cpu=9).build(),
        make_pod("gated").scheduling_gate("a").build(),
        *(owned(make_pod(f"p-{n}").requests(cpu=8)) for n in range(2)),
    ]
    found = explain_pending(what_if(node("n1").build(), pods), most=1)
    assert [(kind.pods[0].name, kind.tried > 0) for why in found.whys for kind in why.kinds] == [
        ("p-0", True),
        ("one", False),
        ("gated", True),
    ]


def test_pods_for_other_schedulers_are_left_to_them() -> None:
    found = explain_pending(what_if(node("n1").build(), make_pod("p").scheduler_name("other").build()))
    assert ([pod.name for pod in found.elsewhere], found.whys, found.settled.placed) == (["p"], (), ())


def test_pods_that_may_preempt_do_so() -> None:
    important = make_pod("important").priority(10).requests(cpu=4).build()
    cluster: WhatIf = what_if(node("n1").build(), running("web-1", "n1"), important)
    found = explain_pending(cluster)
    assert [each.pod.name for each in found.settled.placed] == ["important"]
    assert [pod.name for pod in found.settled.evicted] == ["web-1"]
    assert helps(found) == {("web-1",): ["1 more node like n1"]}


def test_without_a_node_no_node_is_available() -> None:
    found = explain_pending(what_if(make_pod("p").build()))
    assert [why.reasons for why in found.whys] == [("no nodes available to schedule pods",)]


class TestGroups:
    """With the gates for groups, the pods of a PodGroup are one kind, and what helps is tried on all of them."""

    GATES = FeatureGates.of("GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling")

    def explained(self, *objects: Named) -> PodKind:
        ((kind,),) = [why.kinds for why in explain_pending(WhatIf(objects, feature_gates=self.GATES)).whys]
        return kind

    def test_new_nodes_for_all_members_are_found_though_none_runs_before_the_last(self) -> None:
        group = make_pod_group("g").gang(min_count=4).build()
        pods = [make_pod(f"p{number}").requests(cpu=3).group("g").build() for number in range(4)]
        kind = self.explained(node("n1").build(), node("n2").build(), group, *pods)
        assert str(kind.workload) == "PodGroup default/g"
        assert len(kind.pods) == 4
        assert kind.message.startswith("0/2 nodes are available: 2 Insufficient cpu.")
        found = {str(remedy): remedy.placed for remedy in kind.remedies}
        assert found["2 more nodes like n1"] == 4
        assert kind.group_cause is not None
        assert kind.group_cause["code"] == "group-members"

    def test_of_a_group_that_fits_no_rack_the_room_in_another_one_helps(self) -> None:
        group = make_pod_group("g").gang(min_count=2).topology("rack").build()
        pods = [make_pod(f"p{number}").requests(cpu=3).group("g").build() for number in range(2)]
        full = running("web", "b2", cpu=2)
        nodes = [node("a").labels(rack="a"), node("b1").labels(rack="b"), node("b2").labels(rack="b")]
        kind = self.explained(*(each.build() for each in nodes), full, group, *pods)
        assert any(str(remedy).endswith("delete pod default/web from node b2") for remedy in kind.remedies)

    def test_a_group_that_is_missing_is_named_and_the_one_that_may_be_meant(self) -> None:
        group = make_pod_group("train").gang(min_count=1).build()
        kind = self.explained(node("n1").build(), group, make_pod("p").group("trian").build())
        (note,) = kind.notes
        assert str(note) == "PodGroup default/trian doesn't exist (did you mean train?)"

    def test_members_are_asked_for_the_least_that_helps_all_of_them(self) -> None:
        """Beside one member that keeps its request, the other would have to do with 1 cpu; with 2 each, both fit."""
        group = make_pod_group("g").gang(min_count=2).build()
        pods = [make_pod(f"p{number}").requests(cpu=3).group("g").build() for number in range(2)]
        kind = self.explained(node("n1").build(), group, *pods)
        found = {str(remedy): remedy.placed for remedy in kind.remedies}
        assert found["request 2 of cpu instead of 3"] == 2
        assert found["2 more cpu on node n1"] == 2

    def test_amounts_for_a_group_are_whole_mebibytes(self) -> None:
        group = make_pod_group("g").gang(min_count=3).build()
        pods = [make_pod(f"p{number}").requests(memory="3Gi").group("g").build() for number in range(3)]
        kind = self.explained(node("n1").build(), group, *pods)
        found = {str(remedy): remedy.placed for remedy in kind.remedies}
        assert found["request 2730Mi of memory instead of 3Gi"] == 3
        assert found["1Gi more memory on node n1"] == 3


@pytest.mark.parametrize(("nodes", "kinds"), [(0, 20_000), (100, 200), (1_000, 20), (5_000, 20)])
def test_help_is_sought_for_more_kinds_where_there_are_fewer_nodes(nodes: int, kinds: int) -> None:
    assert kinds_by_default(nodes) == kinds
