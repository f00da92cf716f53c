"""PodDisruptionBudgets divide victims into those whose eviction violates one and the others."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw.api.pod import Pod
from kschedfw.api.selectors import LabelSelector, Operator, Requirement
from kschedfw.api.workloads import PodDisruptionBudget
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.preemption import DisruptionBudgets
from tests.framework.preemption.scenes import budget, names, pod

FOO = {"app": "foo"}


def split(pods: Sequence[Pod], *budgets: PodDisruptionBudget) -> tuple[list[str], list[str]]:
    violating, others = DisruptionBudgets.of(budgets).split([PodInfo.of(each) for each in pods])
    return names(violating), names(others)


def test_without_budgets_nothing_is_violated() -> None:
    assert split([pod("a", labels=FOO)]) == ([], ["a"])


def test_a_budget_is_used_up_in_the_order_of_the_pods() -> None:
    pods = [pod(name, labels=FOO) for name in "abc"]
    assert split(pods, budget(2, FOO)) == (["c"], ["a", "b"])


def test_an_exhausted_budget_is_violated_by_all_its_pods_and_by_no_others() -> None:
    pods = [pod("a", labels=FOO), pod("b", labels={"app": "bar"}), pod("c", labels=FOO)]
    assert split(pods, budget(0, FOO)) == (["a", "c"], ["b"])


@pytest.mark.parametrize(
    "uncovering",
    [
        pytest.param(budget(0, None), id="no selector"),
        pytest.param(budget(0, {}), id="empty selector"),
        pytest.param(budget(0, FOO, namespace="elsewhere"), id="other namespace"),
        pytest.param(budget(0, {"app": "bar"}), id="other labels"),
    ],
)
def test_a_budget_that_does_not_cover_the_pod_is_not_violated(uncovering: PodDisruptionBudget) -> None:
    assert split([pod("a", labels=FOO)], uncovering) == ([], ["a"])


def test_a_pod_without_labels_is_covered_by_no_budget() -> None:
    # not even by one that matches whatever lacks a label
    lacking = LabelSelector(match_expressions=(Requirement("app", Operator.DOES_NOT_EXIST),))
    base = budget(0, FOO)
    matches_bare = attrs.evolve(base, spec=attrs.evolve(base.spec, selector=lacking))
    assert split([pod("bare"), pod("other", labels={"x": "y"})], matches_bare) == (["other"], ["bare"])


def test_a_pod_that_the_api_server_has_let_go_neither_violates_nor_uses_up_its_budget() -> None:
    pods = [pod(name, labels=FOO) for name in "abc"]
    assert split(pods, budget(1, FOO, disrupted=["a"])) == (["c"], ["a", "b"])


def test_a_pod_uses_up_every_budget_that_covers_it_also_beside_a_violated_one() -> None:
    both = {"app": "foo", "tier": "web"}
    pods = [pod("both", labels=both), pod("web", labels={"tier": "web"})]
    assert split(pods, budget(0, FOO), budget(1, {"tier": "web"})) == (["both", "web"], [])


@given(st.lists(st.sampled_from(["foo", "bar", ""])), st.integers(-1, 4))
def test_the_first_pods_of_a_budget_are_allowed_and_both_groups_keep_their_order(
    apps: list[str], allowed: int
) -> None:
    pods = [pod(f"p{i:02}", labels={"app": app} if app else {}) for i, app in enumerate(apps)]
    covered = [f"p{i:02}" for i, app in enumerate(apps) if app == "foo"]

    violating, others = split(pods, budget(allowed, FOO))

    assert violating == covered[max(0, allowed) :]
    assert others == [name for name in names(pods) if name not in violating]
