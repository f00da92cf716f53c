"""How selectors match."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw.api.convert import structure
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.selectors import (
    EVERYTHING,
    NOTHING,
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Operator,
    Requirement,
    Selector,
    as_selector,
    parse_canonical_int64,
    parse_int64,
)
from kschedfw.testing.strategies import label_selectors, labels


@pytest.mark.parametrize(
    ("operator", "values", "present", "other", "absent"),
    [
        (Operator.IN, ("a", "b"), True, False, False),
        (Operator.NOT_IN, ("a", "b"), False, True, True),
        (Operator.EXISTS, (), True, True, False),
        (Operator.DOES_NOT_EXIST, (), False, False, True),
    ],
)
def test_requirements(
    operator: Operator, values: tuple[str, ...], present: bool, other: bool, absent: bool
) -> None:
    requirement = Requirement("key", operator, values)
    assert requirement.matches({"key": "a"}) is present
    assert requirement.matches({"key": "c"}) is other
    assert requirement.matches({}) is absent


def test_comparisons_of_numbers() -> None:
    greater, less = Requirement("n", Operator.GT, ("5",)), Requirement("n", Operator.LT, ("5",))
    assert [greater.matches({"n": text}) for text in ("4", "5", "6", "x", "")] == [
        False,
        False,
        True,
        False,
        False,
    ]
    assert [less.matches({"n": text}) for text in ("4", "5", "6", "x")] == [True, False, False, False]
    assert not greater.matches({})
    assert not Requirement("n", Operator.GT, ("5", "6")).matches({"n": "9"})
    assert not Requirement("n", Operator.GT, ("many",)).matches({"n": "9"})


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("5", 5),
        ("+5", 5),
        ("-5", -5),
        ("007", 7),
        ("", None),
        ("-", None),
        ("5 ", None),
        ("1_0", None),
        ("\u0665", None),
    ],
)
def test_int64(text: str, number: int | None) -> None:
    assert parse_int64(text) == number


@pytest.mark.parametrize("text", ["+100", "0100", "-0", "+0", "00", "", "-", " 1", "1.0", "9" * 5000])
def test_tolerations_take_integers_in_canonical_form_alone(text: str) -> None:
    assert parse_canonical_int64(text) is None


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_integer_has_a_canonical_form(number: int) -> None:
    assert parse_canonical_int64(str(number)) == number


def test_int64_has_limits() -> None:
    assert parse_int64("9" * 5000) is None
    assert parse_int64("0" * 5000 + "1") == 1
    assert parse_int64(str(2**63 - 1)) == 2**63 - 1
    assert parse_int64(str(2**63)) is None


@given(st.integers(-(2**70), 2**70))
def test_int64_reads_what_fits(number: int) -> None:
    assert parse_int64(str(number)) == (number if -(2**63) <= number < 2**63 else None)


def test_absent_matches_nothing_and_empty_matches_everything() -> None:
    assert as_selector(None) == NOTHING
    assert not NOTHING.matches({})
    assert not NOTHING.everything
    assert as_selector(LabelSelector()) == EVERYTHING
    assert EVERYTHING.matches({})
    assert EVERYTHING.everything


def test_labels_can_be_added() -> None:
    selector = Selector.from_labels({"a": "1"}).and_labels({"b": "2"})
    assert selector.matches({"a": "1", "b": "2"})
    assert not selector.matches({"a": "1"})
    assert NOTHING.and_labels({"b": "2"}) == NOTHING


@given(label_selectors(), labels())
def test_a_selector_is_all_of_its_parts(manifest: dict[str, object], given_labels: dict[str, str]) -> None:
    selector = structure(manifest, LabelSelector)
    parts = [requirement.matches(given_labels) for requirement in selector.match_expressions]
    parts += [given_labels.get(key) == value for key, value in selector.match_labels.items()]
    assert selector.compile().matches(given_labels) is all(parts)


class TestNodeSelectors:
    HERE = Requirement("metadata.name", Operator.IN, ("here",))

    def test_any_term_will_do_but_an_empty_one_matches_nothing(self) -> None:
        assert not NodeSelector((NodeSelectorTerm(),)).matches({}, "here")
        terms = (NodeSelectorTerm(), NodeSelectorTerm(match_fields=(self.HERE,)))
        assert NodeSelector(terms).matches({}, "here")
        assert not NodeSelector(terms).matches({}, "there")

    def test_a_term_is_all_of_its_parts(self) -> None:
        term = NodeSelectorTerm((Requirement("a", Operator.EXISTS),), (self.HERE,))
        assert term.matches({"a": ""}, "here")
        assert not term.matches({}, "here")

    def test_names_that_a_term_is_limited_to(self) -> None:
        assert NodeSelectorTerm().only_names is None
        assert NodeSelectorTerm(match_fields=(self.HERE,)).only_names == frozenset({"here"})
        there = Requirement("metadata.name", Operator.IN, ("there",))
        assert NodeSelectorTerm(match_fields=(self.HERE, there)).only_names == frozenset()
        elsewhere = Requirement("metadata.name", Operator.NOT_IN, ("here",))
        assert NodeSelectorTerm(match_fields=(elsewhere,)).only_names is None


def test_selectors_are_hashable() -> None:
    selector = LabelSelector(FrozenDict({"a": "1"}), (Requirement("b", Operator.EXISTS),))
    assert len({selector, LabelSelector(FrozenDict({"a": "1"}), (Requirement("b", Operator.EXISTS),))}) == 1
