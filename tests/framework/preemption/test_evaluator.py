"""From a pod that fits nowhere to the node where room can be made for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from kschedfw.api.builders import make_pod
from kschedfw.api.pod import Pod, PodCondition, PreemptionPolicy
from kschedfw.framework.diagnosis import NodeToStatus
from kschedfw.framework.extender import Victims
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.preemption import PreemptionRules, ScoreFunction
from kschedfw.framework.results import PostFilterResult
from kschedfw.framework.status import Code, Status
from tests.framework.preemption.scenes import (
    MARKED,
    ExtenderStub,
    Scene,
    node,
    only,
    pod,
    scene,
    victims,
)

PREEMPTOR = pod("p", 500, priority=10)
CLEARED = PostFilterResult.nominate("")


def three() -> tuple[list[NodeInfo], Scene]:
    made = scene(
        [node("a"), node("b"), node("c")],
        [
            pod("a1", 250, on="a", priority=5),
            pod("a2", 250, on="a", priority=0),
            pod("b1", 500, on="b", priority=5),
            pod("c1", 500, on="c", priority=10),
        ],
    )
    return list(made.snapshot.node_infos), made


class TestOutcome:
    def test_the_pod_is_nominated_to_the_best_candidate(self) -> None:
        _, made = three()
        plan = made.plan(PREEMPTOR)
        assert plan.status == Status.success()
        assert plan.result == PostFilterResult.nominate("b")
        assert victims(plan.candidates) == {"a": ["a1", "a2"], "b": ["b1"]}
        assert list(victims(plan.tied)) == ["b"]
        assert [name for name, _ in plan.rejected] == ["c"]

    def test_where_nothing_helps_the_reasons_of_all_nodes_are_counted(self) -> None:
        made = scene(
            [node("a", cpu=100), node("b"), node("c"), node("d")],
            [pod("a1", on="a"), pod("b1", 500, on="b", priority=10), pod("c1", on="c", priority=10)],
        )
        refusals = made.refused()
        refusals.set("d", Status.unresolvable("tainted"))
        plan = made.plan(PREEMPTOR, refusals)
        assert plan.status == Status.unschedulable(
            "0/4 nodes are available: 1 Insufficient cpu, 1 Preemption is not helpful for scheduling, "
            "2 No preemption victims found for incoming pod."
        )

    def test_and_an_earlier_nomination_is_taken_back(self) -> None:
        made = scene([node("a")])
        assert made.plan(PREEMPTOR).result == CLEARED
        assert made.plan(PREEMPTOR, NodeToStatus()).result == CLEARED

    def test_without_any_candidate_node_nothing_is_tried(self) -> None:
        _, made = three()
        random_state = made.framework.handle.random.getstate()
        plan = made.plan(PREEMPTOR, NodeToStatus())
        assert plan.status.message == ("0/3 nodes are available: 3 Preemption is not helpful for scheduling.")
        assert made.framework.handle.random.getstate() == random_state

    def test_without_nodes_it_is_an_error(self) -> None:
        plan = scene([]).plan(PREEMPTOR)
        assert (plan.status.code, plan.status.message) == (Code.ERROR, "no nodes available")

    def test_of_tied_candidates_the_first_one_tried_is_taken(self) -> None:
        made = scene(
            [node(name) for name in "abc"], [pod(f"{name}1", 500, on=name, started=0) for name in "abc"]
        )
        plan = made.plan(PREEMPTOR)
        assert sorted(victims(plan.tied)) == ["a", "b", "c"]
        assert list(victims(plan.tied)) == [each.node_name for each in plan.candidates]
        assert plan.chosen == plan.candidates[0]
        assert plan.result == PostFilterResult.nominate(plan.candidates[0].node_name)


class TestObjections:
    """Reasons not to preempt at all; the pod's nomination stays as it is."""

    def test_a_pod_that_never_preempts(self) -> None:
        _, made = three()
        plan = made.plan(pod("p", 500, priority=10, policy=PreemptionPolicy.NEVER))
        assert plan.status == Status.unschedulable("not eligible due to preemptionPolicy=Never.")
        assert plan.result is None

    def nominated(self, victim: Pod, status: Status | None = None, name: str = "a") -> str:
        made = scene([node("a")], [victim])
        refusals = made.refused()
        if status is not None:
            refusals.set("a", status)
        plan = made.plan(pod("p", 500, priority=10, nominated=name), refusals)
        assert plan.result is not None or plan.status.code is Code.UNSCHEDULABLE
        return "" if plan.result is not None else plan.status.message

    def test_victims_that_still_terminate_are_waited_for(self) -> None:
        victim = pod("v", 500, on="a", terminating=True, conditions=[MARKED])
        assert self.nominated(victim) == "not eligible due to a terminating pod on the nominated node."

    @pytest.mark.parametrize(
        "victim",
        [
            pytest.param(pod("v", 500, on="a", terminating=True), id="terminates for another reason"),
            pytest.param(pod("v", 500, on="a", conditions=[MARKED]), id="marked but not terminating"),
            pytest.param(
                pod("v", 500, on="a", priority=10, terminating=True, conditions=[MARKED]), id="not lower"
            ),
            pytest.param(
                pod(
                    "v",
                    500,
                    on="a",
                    terminating=True,
                    conditions=[PodCondition("DisruptionTarget", "True", "EvictionByEvictionAPI")],
                ),
                id="evicted by someone else",
            ),
            pytest.param(
                pod(
                    "v",
                    500,
                    on="a",
                    terminating=True,
                    conditions=[PodCondition("DisruptionTarget", "False", "PreemptionByScheduler"), MARKED],
                ),
                id="condition is false",
            ),
        ],
    )
    def test_other_pods_are_not(self, victim: Pod) -> None:
        assert self.nominated(victim) == ""

    def test_a_nominated_node_that_filters_have_ruled_out_is_given_up(self) -> None:
        victim = pod("v", 500, on="a", terminating=True, conditions=[MARKED])
        assert self.nominated(victim, Status.unresolvable("tainted")) == ""

    def test_a_nominated_node_that_is_gone_is_given_up(self) -> None:
        made = scene([node("a")], [pod("v", 500, on="a")])
        refusals = NodeToStatus({}, absent=Status.unschedulable("full"))
        plan = made.plan(pod("p", 500, priority=10, nominated="gone"), refusals)
        assert plan.status.is_success


class TestExtenders:
    def plan_with(self, *extenders: ExtenderStub, preemptor: Pod = PREEMPTOR) -> tuple[Status, list[str]]:
        made = scene(
            [node("a"), node("b")],
            [pod("a1", 500, on="a", priority=5), pod("b1", 500, on="b", priority=1)],
            extenders=extenders,
        )
        plan = made.plan(preemptor)
        assert (plan.result is not None) == plan.status.is_success
        assert sorted(victims(plan.candidates)) == ["a", "b"]
        return plan.status, [each.node_name for each in plan.tied]

    def test_they_narrow_the_candidates_down_one_after_the_other(self) -> None:
        first, second = only("a", "b"), only("a")
        assert self.plan_with(first, second) == (Status.success(), ["a"])
        assert self.plan_with(second, first) == (Status.success(), ["a"])
        assert first.asked == [["a", "b"], ["a"]]

    def test_where_they_leave_nothing_no_one_is_preempted(self) -> None:
        later = only("a", "b")
        status, tied = self.plan_with(only(), later)
        assert status == Status.unschedulable("no candidate node for preemption")
        assert not tied
        assert later.asked == []

    def test_they_may_choose_other_victims(self) -> None:
        other = make_pod("other").uid("other").priority(0).build()
        swap = ExtenderStub(lambda by_node: {name: Victims((other,)) for name in by_node if name == "a"})
        made = scene([node("a")], [pod("a1", 500, on="a")], extenders=[swap])
        plan = made.plan(PREEMPTOR)
        assert plan.chosen is not None
        assert plan.chosen.victims.pods == (other,)

    @pytest.mark.parametrize("aside", [{"interested": False}, {"supports_preemption": False}])
    def test_those_without_a_say_are_not_asked(self, aside: Mapping[str, bool]) -> None:
        extender = only("a")
        for name, value in aside.items():
            setattr(extender, name, value)
        assert self.plan_with(extender) == (Status.success(), ["b"])
        assert extender.asked == []

    def failing(self, *, is_ignorable: bool) -> ExtenderStub:
        def fail(by_node: Mapping[str, Victims]) -> Mapping[str, Victims]:
            raise ConnectionError("refused")

        return ExtenderStub(fail, is_ignorable=is_ignorable)

    def test_a_failure_is_an_error(self) -> None:
        status, tied = self.plan_with(self.failing(is_ignorable=False))
        assert (status.code, status.message) == (Code.ERROR, "ConnectionError: refused")
        assert isinstance(status.error, ConnectionError)
        assert not tied

    def test_unless_the_extender_is_ignorable(self) -> None:
        assert self.plan_with(self.failing(is_ignorable=True), only("a")) == (Status.success(), ["a"])

    def emptying(self, *, is_ignorable: bool) -> ExtenderStub:
        return ExtenderStub(lambda by_node: {**by_node, "b": Victims(())}, is_ignorable=is_ignorable)

    def test_a_node_without_victims_is_an_error(self) -> None:
        status, _ = self.plan_with(self.emptying(is_ignorable=False))
        assert (status.code, status.message) == (Code.ERROR, 'expected at least one victim pod on node "b"')

    def test_which_an_ignorable_extender_has_left_out(self) -> None:
        assert self.plan_with(self.emptying(is_ignorable=True)) == (Status.success(), ["a"])

    def test_an_extender_that_changes_what_it_was_given_changes_nothing_else(self) -> None:
        def grab(by_node: Mapping[str, Victims]) -> Mapping[str, Victims]:
            assert isinstance(by_node, dict)
            by_node.clear()
            raise ConnectionError

        assert self.plan_with(ExtenderStub(grab, is_ignorable=True)) == (Status.success(), ["b"])


class TestOwnRules:
    """Other plugins bring their own idea of who may be evicted, who first, and where."""

    def test_who_may_be_preempted(self) -> None:
        class OnlyMarked(PreemptionRules):
            def may_preempt(self, pod: Pod, victim: PodInfo, node_info: NodeInfo) -> bool:
                marked = victim.pod.labels.get("preemptible") == "yes" and node_info.name != "c"
                return marked and super().may_preempt(pod, victim, node_info)

        yes, no = {"preemptible": "yes"}, {"preemptible": "no"}
        pods = [
            pod("v1", 500, on="a", labels=no),
            pod("v2", 500, on="b", labels=yes),
            pod("v3", 500, on="c", labels=yes),
            pod("v4", 500, on="d", priority=10, labels=yes),
        ]
        plan = scene([node(name) for name in "abcd"], pods, rules=OnlyMarked).plan(PREEMPTOR)
        assert victims(plan.candidates) == {"b": ["v2"]}

    def test_who_is_more_important(self) -> None:
        class ByName(PreemptionRules):
            def more_important(self, first: Pod, second: Pod) -> bool:
                return first.name < second.name

        pods = [pod("foo", 200, on="n"), pod("bar", 200, on="n"), pod("baz", 200, on="n", priority=5)]
        plan = scene([node("n", cpu=600)], pods, rules=ByName).plan(pod("p", 400, priority=10))
        assert victims(plan.candidates) == {"n": ["baz", "foo"]}

    def test_which_candidate_is_best(self) -> None:
        class MostVictims(PreemptionRules):
            def score_functions(self) -> Sequence[ScoreFunction]:
                return [lambda candidate: len(candidate.victims.pods)]

        pods = [pod("a1", 500, on="a"), pod("b1", 250, on="b"), pod("b2", 250, on="b")]
        plan = scene([node("a"), node("b")], pods, rules=MostVictims).plan(PREEMPTOR)
        assert plan.result == PostFilterResult.nominate("b")
