"""Answers for agents: shortened, with their codes, and about one workload."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_mcp.answers import answer_of, codes_in, shortened
from kschedfw_mcp.pending import kinds_of, summaries_of
from kschedfw_mcp.questions import Limits, QuestionError, Result, Source

from kschedfw.testing.properties import examples

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=6) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=4)
    ),
    max_leaves=30,
)


def result(content: Any) -> Result:
    return Result("kschedfw pending c.yaml --json", 0, content, "")


class TestShortening:
    def test_the_longest_lists_that_fit_are_kept_and_the_rest_is_counted(self) -> None:
        content = {"nodes": [{"node": f"n-{number}"} for number in range(500)], "message": "m"}
        answer = answer_of(result(content), "placed", content, Limits(most_bytes=2000))
        assert len(answer.answer["nodes"]) == 100
        assert answer.omitted == {"nodes[]": 400}
        assert answer.answer["message"] == "m"
        assert len(json.dumps(answer.answer)) <= 2000

    def test_a_mapping_by_name_is_shortened_and_fields_are_kept(self) -> None:
        omitted: dict[str, int] = {}
        content = {"byNode": {f"n-{number}": 1 for number in range(100)}, **dict.fromkeys("abcdefghij", 0)}
        shown = shortened(content, 3, "", omitted)
        assert len(shown["byNode"]) == 3
        assert set(shown) == set(content)
        assert omitted == {"byNode": 97}

    def test_what_cant_be_shortened_enough_names_the_command(self) -> None:
        content = {f"field-{number}": "x" * 500 for number in range(10)}
        with pytest.raises(QuestionError, match=r"ask about less: kschedfw pending c\.yaml --json"):
            answer_of(result(content), "placed", content, Limits(most_bytes=2000))

    @settings(max_examples=examples(100))
    @given(JSON)
    def test_nothing_is_left_out_of_what_is_short_enough(self, content: Any) -> None:
        answer = answer_of(result(content), "placed", content, Limits(most_bytes=100_000))
        assert (answer.answer, answer.omitted) == (content, {})

    @settings(max_examples=examples(100))
    @given(JSON, st.integers(1, 5))
    def test_what_is_shown_is_the_beginning_of_each_list(self, content: Any, most: int) -> None:
        omitted: dict[str, int] = {}
        shown = shortened(content, most, "", omitted)
        assert is_beginning(shown, content, most)
        assert bool(omitted) == (shown != content)


def is_beginning(shown: Any, content: Any, most: int) -> bool:
    """Tell whether lists have their first items, as many as they may, and all else is the same."""
    if isinstance(content, list):
        return len(shown) == min(len(content), most) and all(
            is_beginning(one, other, most) for one, other in zip(shown, content, strict=False)
        )
    if isinstance(content, dict):
        return set(shown) == set(content) and all(
            is_beginning(shown[key], content[key], most) for key in content
        )
    return bool(shown == content)


@settings(max_examples=examples(100))
@given(JSON)
def test_codes_are_found_wherever_they_are(content: Any) -> None:
    assert list(codes_in({"deep": [content, {"code": "spread"}]}))[-1] == "spread"
    assert list(codes_in({"code": {"code": "inner"}, "codes": ["other"]})) == ["inner"]


KIND = {
    "workload": "Deployment shop/web",
    "pods": ["shop/web-1", "shop/web-2"],
    "message": "m",
    "code": "taint",
}
REMEDY = {"changes": ["tolerate it"], "edits": [{"path": "/spec"}], "placed": 2, "nodes": ["n1"]}
ALONE = {"workload": None, "pods": ["default/huge"], "message": "m", "helps": []}
PENDING = {
    "groups": [
        {"reasons": ["r"], "pods": 2, "kinds": [{**KIND, "helps": [REMEDY, REMEDY]}]},
        {"reasons": ["Insufficient cpu"], "pods": 1, "kinds": [ALONE]},
    ],
    "notes": ["a note"],
    "missing": [],
}


class TestPending:
    def test_a_summary_has_the_first_remedy_without_edits_and_what_else_the_command_says(self) -> None:
        summary = summaries_of(PENDING, namespace="", workload="")
        assert (summary["pending"], summary["notes"]) == (3, ["a note"])
        assert "missing" not in summary
        web, huge = summary["kinds"]
        assert (web["code"], web["pods"], web["otherRemedies"]) == ("taint", 2, 1)
        assert web["firstRemedy"] == {"changes": ["tolerate it"], "placed": 2}
        assert huge["firstRemedy"] is None

    def test_pods_that_are_stuck_on_their_node_are_told_beside(self) -> None:
        stuck = [{"workload": "Deployment shop/db", "pods": ["shop/db-1"], "finding": {"code": "c"}}]
        content = {**PENDING, "stuck": stuck}
        assert summaries_of(content, namespace="", workload="")["stuck"] == stuck
        assert "stuck" not in summaries_of(content, namespace="shop", workload="web")

    @pytest.mark.parametrize("name", ["Deployment shop/web", "shop/web", "web", "shop/web-2", "web-2"])
    def test_a_workload_is_found_by_each_of_its_names_and_by_its_pods(self, name: str) -> None:
        (kind,) = kinds_of(PENDING, name)["kinds"]
        assert kind["pods"] == KIND["pods"]
        assert kind["helps"][0]["edits"]
        assert summaries_of(PENDING, namespace="shop", workload=name)["pending"] == 2

    def test_what_isnt_pending_is_told_with_what_is(self) -> None:
        expected = "no pending pods of db; pending are Deployment shop/web, default/huge"
        with pytest.raises(QuestionError, match=expected):
            kinds_of(PENDING, "db")
        with pytest.raises(QuestionError, match="no pod is pending without a place"):
            summaries_of({"groups": []}, namespace="shop", workload="")


def test_files_after_the_first_are_more_pods_since_drain_takes_one_file() -> None:
    source = Source(("a.yaml", "b.yaml"), (), ("--config", "c.yaml"))
    line = source.line("drain", "n1", "n2")
    assert line == ["drain", "a.yaml", "n1", "n2", "--pods", "b.yaml", "--config", "c.yaml", "--json"]
    live = Source((), ("--context", "production")).line("explain", "shop/web")
    assert live == ["explain", "shop/web", "--context", "production", "--json"]
