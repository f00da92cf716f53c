"""How many replicas of pods, and copies of groups, fit, of one kind and of several."""

from __future__ import annotations

from kschedfw_advisor.turns import Copies, GroupTemplate, fit, fit_in_turns
from small_clusters import REGISTRY, node, running, what_if

from kschedfw import FeatureGates, WhatIf, make_pod, make_pod_group
from kschedfw.api import Named
from kschedfw.what_if import Replicas

WEB = make_pod("web").requests(cpu=1).build()
DB = make_pod("db").requests(cpu=2).build()


def test_as_many_as_fit_and_what_stops_the_next() -> None:
    cluster = what_if(node("n1").build(), node("n2", cpu=2).build(), running("a", "n1"))
    with cluster.transaction() as trial:
        found = fit(trial, WEB, at_most=1000)
        assert dict(found.by_node) == {"n1": 3, "n2": 2}
        assert found.refusal is not None
        assert found.refusal.message == "0/2 nodes are available: 2 Insufficient cpu."
        assert trial.can_schedule(WEB), "nothing is left of it"


def test_no_more_than_are_wanted() -> None:
    told: list[tuple[int, int]] = []
    cluster = what_if(node("n1", cpu=9).build())
    with cluster.transaction() as trial:
        found = fit(trial, WEB, 3, lambda done, most: told.append((done, most)))
    assert (found.count, found.refusal, told) == (3, None, [(3, 3)])


def test_many_replicas_are_placed_in_parts() -> None:
    large = node("n1").capacity(cpu=500, memory="8Gi", pods=1000).build()
    cluster = what_if(large)
    with cluster.transaction() as trial:
        found = fit(trial, WEB, at_most=1000)
    assert found.count == 500
    assert len({each.pod.name for each in found.placed}) == 500


def test_several_kinds_take_turns_and_one_that_is_refused_drops_out() -> None:
    cluster = what_if(node("n1", cpu=8).build())
    with cluster.transaction() as trial:
        web, db = fit_in_turns(trial, [WEB, DB], at_most=1000)
        assert (web.count, db.count) == (4, 2), (
            "two turns of three CPUs, then web alone has one more, and one more"
        )
        assert trial.can_schedule(WEB)
    assert isinstance(web, Replicas)
    assert isinstance(db, Replicas)
    assert web.refusal is not None
    assert db.refusal is not None


class TestGroups:
    """The pods of a PodGroup are copied and placed together."""

    GATES = FeatureGates.of("GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling")

    def fits(self, template: GroupTemplate, *objects: Named, at_most: int = 100) -> Copies:
        cluster = WhatIf(objects, feature_gates=self.GATES, registry=REGISTRY)
        before = [*cluster.pods]
        with cluster.transaction() as trial:
            found = fit(trial, template, at_most)
            assert [*cluster.pods] == before, "nothing is left of it"
        return found

    def test_a_copy_fits_only_with_all_its_pods(self) -> None:
        found = self.fits(gang("g", pods=3), node("n1").build(), node("n2").build())
        assert (found.count, dict(found.by_node)) == (2, {"n1": 3, "n2": 3})
        assert found.next is not None
        assert found.next.message == "0/2 nodes are available: 2 Insufficient cpu."
        assert len(found.next.without_place) == 1, "two more pods have room"
        assert not found.next.would_run, "and don't run without the third"

    def test_of_a_gang_that_runs_with_fewer_the_next_copy_would_run_in_part(self) -> None:
        found = self.fits(gang("g", pods=3, min_count=2), node("n1", cpu=5).build())
        assert found.count == 1
        assert found.next is not None
        assert (found.next.would_run, len(found.next.without_place)) == (2, 1)

    def test_a_copy_keeps_to_one_domain_of_its_constraint(self) -> None:
        nodes = [node(f"n{number}", cpu=2).labels(rack="ab"[number // 2]).build() for number in range(4)]
        found = self.fits(gang("g", pods=3, topology="rack"), *nodes)
        assert dict(found.by_domain) == {"a": 1, "b": 1}
        assert found.next is not None
        assert found.next.message == "0/2 nodes are available: 2 Insufficient cpu."

    def test_next_copy_is_told_of_on_the_placement_that_takes_most_of_its_members(self) -> None:
        tried_first = node("a1", cpu=1).labels(rack="a").build()
        nearest = node("b1", cpu=2).labels(rack="b").taint("kept").build()
        others = [node(f"b{number}", cpu=1).labels(rack="b").build() for number in (2, 3)]
        found = self.fits(gang("g", pods=3, topology="rack"), tried_first, nearest, *others)
        assert found.next is not None
        assert (found.count, found.next.domain) == (0, "b")
        (without,) = found.next.without_place
        assert (
            without.message
            == "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu."
        )

    def test_next_copy_without_a_placement_has_the_messages_of_its_members(self) -> None:
        found = self.fits(gang("g", pods=2, topology="rack"), node("n1").build())
        assert found.next is not None
        assert (found.next.domain, len(found.next.without_place)) == ("", 2)
        assert found.next.message

    def test_no_more_than_are_wanted_are_placed_and_nothing_stops_them(self) -> None:
        found = self.fits(gang("g", pods=2), node("n1").build(), at_most=1)
        assert (found.count, found.next) == (1, None)

    def test_names_that_are_taken_are_left_out(self) -> None:
        taken = (make_pod_group("g-1").build(), make_pod("g-0-2").build(), gang("g", pods=2).group)
        found = self.fits(gang("g", pods=2), node("n1", cpu=2).build(), *taken)
        assert [each.pod.name for places in found.placed for each in places] == ["g-0-3", "g-1-3"]

    def test_pods_and_groups_take_turns(self) -> None:
        cluster = WhatIf([node("n1", cpu=8).build()], feature_gates=self.GATES, registry=REGISTRY)
        with cluster.transaction() as trial:
            web, copies = fit_in_turns(trial, [WEB, gang("g", pods=2)], at_most=100)
        assert (web.count, copies.count) == (4, 2), "two turns of three CPUs, then web alone has two more"


def gang(name: str, pods: int, min_count: int = 0, topology: str = "") -> GroupTemplate:
    """A gang of pods that request 1 CPU each; it needs all of them unless told how many."""
    made = make_pod_group(name).gang(min_count=min_count or pods)
    group = (made.topology(topology) if topology else made).build()
    members = (make_pod(f"{name}-{number}").requests(cpu=1).group(name).build() for number in range(pods))
    return GroupTemplate(group, tuple(members))
