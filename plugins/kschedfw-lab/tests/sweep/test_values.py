"""Lists and ranges of values."""

from __future__ import annotations

import math
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_lab import Range, SweepError
from kschedfw_lab.sweep.values import Choices, Scale, read_values

shares = st.floats(0, 1, exclude_max=True)
whole = st.integers(-1000, 1000)


@pytest.mark.parametrize(
    ("given_range", "numbers"),
    [
        ({"from": 1, "to": 4}, (1, 2, 3, 4)),
        ({"from": 1, "to": 10, "step": 4}, (1, 5, 9)),
        ({"from": 0.1, "to": 0.3, "step": 0.1}, (0.1, 0.2, 0.3)),
        ({"from": 0, "to": 1, "step": 0.5}, (0.0, 0.5, 1.0)),
        ({"from": 0.0, "to": 1.0, "points": 3}, (0.0, 0.5, 1.0)),
        ({"from": 1, "to": 1000, "points": 4, "scale": "log"}, (1, 10, 100, 1000)),
        ({"from": 1, "to": 3, "points": 10}, (1, 2, 3)),
        ({"from": 7, "to": 7}, (7,)),
    ],
)
def test_the_numbers_of_a_range(given_range: object, numbers: tuple[float, ...]) -> None:
    assert read_values(given_range).listed == numbers


@given(low=whole, width=st.integers(0, 1000), share=shares, scale=st.sampled_from(get_args(Scale)))
def test_a_share_of_a_whole_range_is_one_of_its_numbers(
    low: int, width: int, share: float, scale: Scale
) -> None:
    low = abs(low) + 1 if scale == "log" else low
    drawn = Range(low, low + width, scale=scale).at(share)
    assert isinstance(drawn, int)
    assert low <= drawn <= low + width


@given(
    low=st.floats(0.001, 1000),
    factor=st.floats(1, 1000),
    share=shares,
    scale=st.sampled_from(get_args(Scale)),
)
def test_a_share_of_a_continuous_range_is_in_it(
    low: float, factor: float, share: float, scale: Scale
) -> None:
    drawn = Range(low, low * factor, scale=scale).at(share)
    assert isinstance(drawn, float)
    assert low * (1 - 1e-5) <= drawn <= low * factor * (1 + 1e-5)


@given(st.integers(1, 200))
def test_equal_shares_reach_every_value_equally_often(count: int) -> None:
    values = Choices(tuple(range(count)))
    assert [values.at((part + 0.5) / count) for part in range(count)] == list(range(count))


def test_the_logarithmic_middle_is_the_geometric_mean() -> None:
    assert Range(1.0, 100.0, scale="log").at(0.5) == pytest.approx(math.sqrt(100))


def test_one_value_and_a_python_range_are_values_too() -> None:
    assert read_values(3).listed == (3,)
    assert read_values("text").listed == ("text",)
    assert read_values(range(3)).listed == (0, 1, 2)
    assert read_values(None).listed == (None,)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ([], "the list is empty"),
        (range(0), "the list is empty"),
        ({"from": 2, "to": 1}, "the range is empty: from 2 to 1"),
        ({"from": 1}, "to: expected a number, found null"),
        ({"from": 1, "to": "x"}, 'to: expected a number, found "x"'),
        ({"from": 1, "to": math.inf}, "to: expected a number"),
        ({"from": 1, "to": 2, "stepp": 1}, "stepp: unknown field; did you mean step?"),
        ({"from": 1, "to": 2, "step": 0}, "step: must be above 0, found 0"),
        ({"from": 1, "to": 2, "step": 1, "points": 2}, "step and points exclude each other"),
        ({"from": 1, "to": 2, "points": 1}, "points: expected a whole number from 2 up, found 1"),
        ({"from": 0, "to": 2, "scale": "log"}, "from: must be above 0 with scale log, found 0"),
        ({"from": 1, "to": 2, "scale": "cubic"}, 'scale: expected linear or log, found "cubic"'),
        ({"from": 0, "to": 1_000_000, "step": 1}, "the range has 1,000,001 values; at most 10,000"),
        ([1, 2, 1], "[2]: 1 is there twice"),
        (["x"] * 10_001, "the list has 10,001 values"),
    ],
)
def test_wrong_values_are_refused(wrong: object, why: str) -> None:
    with pytest.raises(SweepError) as caught:
        read_values(wrong)
    assert why in str(caught.value)


def test_one_and_true_and_the_text_one_are_different_values() -> None:
    assert read_values([1, True, "1", 1.0]).listed == (1, True, "1", 1.0)


def test_a_list_is_short_and_what_is_drawn_from_may_be_long() -> None:
    assert Range(0, 1_000_000).at(0.5) == 500_000
    with pytest.raises(SweepError, match="the range has 1,000,001 values; at most 10,000"):
        _ = Range(0, 1_000_000).listed


def test_a_continuous_range_has_no_list() -> None:
    with pytest.raises(SweepError, match="give a step or points"):
        _ = Range(0.5, 1.0).listed
