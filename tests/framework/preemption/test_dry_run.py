"""Which nodes are tried, from where on, and when there are candidates enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from kschedfw.api.frozendict import EMPTY
from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import NodeToStatus
from kschedfw.framework.extender import Victims
from kschedfw.framework.handle import Handle
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.preemption import DisruptionBudgets, PreemptionRules
from kschedfw.framework.status import Status
from tests.framework.preemption.scenes import Scene, budget, node, pod, scene, victims

FOO = {"app": "foo"}
PREEMPTOR = pod("p", 500, priority=10)


class Tracking(PreemptionRules):
    """Begins where it is told and remembers which nodes it was asked about."""

    def __init__(self, handle: Handle, *, offset: int = 0, **limits: int) -> None:
        super().__init__(handle, **limits)
        self.offset = offset
        self.tried: list[str] = []

    def offset_and_num_candidates(self, num_nodes: int) -> tuple[int, int]:
        return self.offset, super().offset_and_num_candidates(num_nodes)[1]

    def potential_victims(self, pod: Pod, node_info: NodeInfo) -> Sequence[PodInfo]:
        self.tried.append(node_info.name)
        return super().potential_victims(pod, node_info)


def limits(percentage: int, absolute: int) -> dict[str, int]:
    return {"min_candidate_nodes_percentage": percentage, "min_candidate_nodes_absolute": absolute}


def full(
    count: int, *, protected: Sequence[int] = (), offset: int = 0, limits: Mapping[str, int] = EMPTY
) -> Scene:
    """n0, n1, … with a victim each; evicting from the `protected` ones violates a budget."""
    return scene(
        [node(f"n{i}") for i in range(count)],
        [
            pod(f"v{i}", 500, on=f"n{i}", labels=FOO if i in protected else {"app": "bar"})
            for i in range(count)
        ],
        budgets=[budget(0, FOO)],
        rules=Tracking,
        limits={"offset": offset, **limits},
    )


def tried(made: Scene) -> list[str]:
    assert isinstance(made.rules, Tracking)
    return made.rules.tried


class TestHowMany:
    @pytest.mark.parametrize(
        ("percentage", "absolute", "nodes", "wanted"),
        [
            (10, 100, 50, 50),
            (10, 100, 500, 100),
            (10, 100, 5000, 500),
            (40, 1, 5, 2),
            (0, 1, 5, 1),
            (100, 0, 7, 7),
            (10, 0, 5, 0),
        ],
    )
    def test_a_share_of_the_nodes_but_at_least_the_absolute_number(
        self, percentage: int, absolute: int, nodes: int, wanted: int
    ) -> None:
        made = scene([], limits=limits(percentage, absolute))
        offset, found = made.rules.offset_and_num_candidates(nodes)
        assert found == wanted
        assert 0 <= offset < nodes

    def test_the_offset_comes_from_the_injected_generator(self) -> None:
        def offsets(seed: int) -> list[int]:
            rules = scene([], seed=seed).rules
            return [rules.offset_and_num_candidates(1000)[0] for _ in range(10)]

        assert offsets(1) == offsets(1) != offsets(2)

    def test_the_search_ends_with_enough_candidates(self) -> None:
        made = full(5, limits=limits(40, 1))
        assert victims(made.plan(PREEMPTOR).candidates) == {"n0": ["v0"], "n1": ["v1"]}
        assert tried(made) == ["n0", "n1"]

    def test_it_begins_at_the_offset_and_goes_round_the_end(self) -> None:
        made = full(5, offset=4, limits=limits(40, 1))
        plan = made.plan(PREEMPTOR)
        assert [each.node_name for each in plan.candidates] == ["n4", "n0"]
        assert tried(made) == ["n4", "n0"]

    def test_it_goes_on_until_one_candidate_violates_no_budget(self) -> None:
        made = full(5, protected=[0, 1, 2], limits=limits(40, 1))
        plan = made.plan(PREEMPTOR)
        assert tried(made) == ["n0", "n1", "n2", "n3"]
        assert [each.node_name for each in plan.candidates] == ["n3", "n0", "n1"]
        assert plan.chosen is not None
        assert plan.chosen.node_name == "n3"

    def test_where_all_violate_one_as_many_as_wanted_are_kept(self) -> None:
        made = full(4, protected=range(4), limits=limits(50, 1))
        assert [each.node_name for each in made.plan(PREEMPTOR).candidates] == ["n0", "n1"]
        assert tried(made) == ["n0", "n1", "n2", "n3"]

    def test_nodes_that_refuse_do_not_count(self) -> None:
        nodes = [node("small", cpu=100), node("big")]
        pods = [pod("a", 100, on="small"), pod("b", 500, on="big")]
        plan = scene(nodes, pods, limits=limits(0, 1)).plan(PREEMPTOR)
        assert victims(plan.candidates) == {"big": ["b"]}


class TestWhichNodes:
    def test_only_those_that_other_pods_may_have_made_unschedulable(self) -> None:
        made = full(4)
        refusals = NodeToStatus(
            {
                "n0": Status.unschedulable("full"),
                "n1": Status.unresolvable("tainted"),
                "n2": Status.pending("later"),
            }
        )
        assert list(victims(made.plan(PREEMPTOR, refusals).candidates)) == ["n0"]
        assert tried(made) == ["n0"]

    def test_nodes_without_a_status_have_the_common_one(self) -> None:
        made = full(3)
        refusals = NodeToStatus(
            {"n1": Status.unresolvable("tainted")}, absent=Status.unschedulable("pre_filter")
        )
        assert sorted(victims(made.plan(PREEMPTOR, refusals).candidates)) == ["n0", "n2"]

    def test_a_status_of_a_node_that_is_gone_is_passed_over(self) -> None:
        made = full(1)
        refusals = NodeToStatus({"gone": Status.unschedulable("full"), "n0": Status.unschedulable("full")})
        assert list(victims(made.plan(PREEMPTOR, refusals).candidates)) == ["n0"]


class TestFailures:
    """A node that fails is no candidate; only where there is none at all, its error counts."""

    class Failing(PreemptionRules):
        texts: Sequence[str] = ()

        def select_victims(
            self,
            state: CycleState,
            pod: Pod,
            node_info: NodeInfo,
            potential: Sequence[PodInfo],
            budgets: DisruptionBudgets,
        ) -> Victims | Status:
            text = self.texts[int(node_info.name[1:])]
            if text:
                return Status.from_error(text)
            return super().select_victims(state, pod, node_info, potential, budgets)

    def made(self, *texts: str) -> Scene:
        rules = type("Rules", (self.Failing,), {"texts": texts})
        count = len(texts)
        return scene(
            [node(f"n{i}") for i in range(count)],
            [pod(f"v{i}", 500, on=f"n{i}") for i in range(count)],
            rules=rules,
            parallelizer=Parallelizer(1),
        )

    def test_the_other_nodes_are_candidates_all_the_same(self) -> None:
        plan = self.made("broken", "").plan(PREEMPTOR)
        assert plan.status.is_success
        assert victims(plan.candidates) == {"n1": ["v1"]}
        assert plan.rejected.get("n0").message == "broken"

    def test_one_error_is_the_result(self) -> None:
        plan = self.made("broken").plan(PREEMPTOR)
        assert (str(plan.status.code), plan.status.message, plan.result) == ("Error", "broken", None)

    def test_equal_errors_are_told_once_and_several_in_brackets(self) -> None:
        assert self.made("broken", "broken").plan(PREEMPTOR).status.message == "broken"
        several = sorted(self.made("one", "two", "one").plan(PREEMPTOR).status.message[1:-1].split(", "))
        assert several == ["one", "two"]

    def test_the_first_errors_exception_is_kept_as_the_cause(self) -> None:
        status = self.made("broken").plan(PREEMPTOR).status
        assert status.error is not None
        assert str(status.error.__cause__) == "broken"
