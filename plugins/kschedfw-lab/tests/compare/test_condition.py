"""Conditions on a comparison: what they mean, and what is none."""

from __future__ import annotations

import pytest
from compare.scenes import packing, pod, spreading, two_nodes
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_lab.compare import Comparison, Condition, ConditionError, compare, failures
from kschedfw_lab.expressions import DEEPEST, LONGEST


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    """Of 3 pods `big` fits only while the others are together: one moves, one is gained."""
    return compare(two_nodes(pod("a"), pod("b"), pod("big", cpu=4)), [spreading(), packing()])


def holds(text: str, comparison: Comparison) -> bool:
    return Condition.parse(text).holds(comparison, 1)


def test_the_scene(comparison: Comparison) -> None:
    assert [run.report.placed for run in comparison.runs] == [2, 3]
    assert [run.nodes_in_use for run in comparison.runs] == [2, 2]


@pytest.mark.parametrize(
    "text",
    [
        "moved",
        "gained",
        "moved >= 1 and gained == 1",
        "changed > 60%",
        "changed < 67%",
        "placed > baseline.placed",
        "placed == baseline.placed + 1",
        "placed > baseline.placed + 33%",
        "baseline.unplaced == 1",
        "not unplaced",
        "lost or (moved and not lost)",
        "utilisation.cpu > 70% and utilisation.cpu <= 87.5%",
        "utilisation.cpu == 0.875",
        "utilisation.cpu > baseline.utilisation.cpu + 10%",
        "imbalance.within >= 0",
        "fragmentation.memory >= 0%",
        "pods - unplaced == placed",
        "1 < pods",
        "nodesInUse == 2",
        "fragmentation.example.com/gpu == 0",
        "placed > baseline.placed * 140%",
        "2 * baseline.placed > placed",
    ],
)
def test_what_holds(text: str, comparison: Comparison) -> None:
    assert holds(text, comparison)
    assert not holds(f"not ({text})", comparison)


def test_and_binds_closer_than_or(comparison: Comparison) -> None:
    assert holds("moved or moved and lost", comparison)
    assert not holds("(moved or moved) and lost", comparison)


def test_failures_name_the_configuration_and_the_values(comparison: Comparison) -> None:
    (failure,) = failures(comparison, [Condition.parse("moved > 5%"), Condition.parse("lost")])
    assert (failure.label, failure.condition) == ("packing", "moved > 5%")
    assert failure.told == "moved is 1 of 3 pods"
    assert failure.to_json() == {
        "label": "packing",
        "condition": "moved > 5%",
        "values": {"moved": 1},
    }


def test_the_resources_that_it_asks_about() -> None:
    text = "utilisation.nvidia.com/gpu < 50% or imbalance.within > 1 and fragmentation.cpu"
    assert Condition.parse(text).resources == {"nvidia.com/gpu", "cpu"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "a metric or a number is missing at the end"),
        ("move", "there is no metric 'move'; did you mean moved?"),
        ("__import__('os')", "there is no metric '__import__'"),
        ("moved == 'a'", "a metric or a number is missing before \"'a'\""),
        ("moved ? 1", "is not understood"),
        ("utilisation", "there is no metric 'utilisation'; there are pods, placed"),
        ("utilization.cpu < 5%", r"did you mean utilisation\.cpu\?"),
        ("imbalnce.nvidia.com/gpu", r"did you mean imbalance\.nvidia\.com/gpu\?"),
        ("xyz.cpu", "there are pods, placed, "),
        ("xyz > 1", "there are pods, placed, .*fragmentation.RESOURCE, imbalance.within"),
        ("moved >", "a metric or a number is missing at the end"),
        ("moved > > 1", "a metric or a number is missing before '>'"),
        ("moved > 1 2", "'2' is one too many"),
        ("(moved", "a closing parenthesis is missing"),
        ("moved)", "'\\)' is one too many"),
        ("moved and", "missing at the end"),
        ("moved = 1", "'=' is not understood"),
        ("5% > 1", "a metric is missing: numbers alone say nothing"),
        ("moved > utilisation.cpu", "a count and a share can't be compared"),
        ("moved + utilisation.cpu", "a count and a share can't be added up"),
        ("baseline.moved", "moved is what differs from the baseline"),
        ("moved ** 2", r"a metric or a number is missing before '\*'"),
        ("moved * placed", "a count and a count can't be multiplied"),
        ("(" * (DEEPEST + 1), f"nested more than {DEEPEST} levels deep"),
        ("not " * (DEEPEST + 1) + "moved", f"nested more than {DEEPEST} levels deep"),
        ("moved" + " " * LONGEST, f"at most {LONGEST}"),
    ],
)
def test_what_is_no_condition_is_told_why(text: str, problem: str) -> None:
    with pytest.raises(ConditionError, match=problem):
        Condition.parse(text)


TOKENS = st.sampled_from(
    ["moved", "baseline.placed", "and", "or", "not", "(", ")", "<", ">=", "+", "-", "5", "%", "x"]
)


@given(st.lists(TOKENS, max_size=40).map(" ".join) | st.text(max_size=LONGEST + 10))
def test_any_text_is_a_condition_or_a_condition_error(text: str) -> None:
    try:
        Condition.parse(text)
    except ConditionError:
        return
