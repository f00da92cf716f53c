"""Values of results: what there can be, and how a cell of a CSV file holds it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_lab.results.values import (
    LARGEST_COUNT,
    ResultsError,
    Value,
    cell,
    cell_text,
    cell_value,
    checked_number,
    checked_value,
    of_one_type,
    one_line,
    text_cell,
)
from results import strategies


@given(strategies.values)
def test_a_cell_holds_any_value_exactly(value: Value) -> None:
    found = cell_value(cell(value))
    assert (type(found), found) == (type(value), value)
    assert isinstance(found, float) is isinstance(value, float)
    if isinstance(value, float):
        assert math.copysign(1, value) == math.copysign(1, float(str(found)))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("packing", "packing"),
        ("least allocated, by half", "least allocated, by half"),
        ("", '""'),
        ("1", '"1"'),
        ("true", '"true"'),
        ("a\nb", '"a\\nb"'),
        (None, ""),
        (1, "1"),
        (1.0, "1.0"),
        (0.1, "0.1"),
        (True, "true"),
    ],
)
def test_cells_are_plain_where_nothing_else_could_be_meant(value: Value, text: str) -> None:
    assert cell(value) == text


@pytest.mark.parametrize("value", [math.nan, math.inf, 1 << 63, "\ud800", [1], b"x"])
def test_values_that_no_file_can_hold_are_refused(value: object) -> None:
    with pytest.raises(ResultsError, match=r"^factor weight: .*: expected a text, a finite number"):
        checked_value("weight", value)


@pytest.mark.parametrize("value", [math.nan, -math.inf, LARGEST_COUNT + 1, True, "1", None])
def test_metrics_are_finite_numbers(value: object) -> None:
    with pytest.raises(ResultsError, match=r"^metric placed: .*: expected a finite float, or an int up to"):
        checked_number("placed", value)


def test_numpys_numbers_become_pythons() -> None:
    found = [checked_number("placed", value) for value in (np.int64(3), np.float64(0.1), np.float32(0.5))]
    assert list(map(repr, found)) == ["3", "0.1", "0.5"]


@given(st.lists(strategies.values))
def test_a_column_has_one_type(values: list[Value]) -> None:
    column = of_one_type(values)
    assert len({type(value) for value in column if value is not None}) <= 1
    assert [value is None for value in column] == [value is None for value in values]
    assert of_one_type(column) == column


def test_mixed_columns() -> None:
    assert of_one_type([1, 2.5, None]) == [1.0, 2.5, None]
    assert of_one_type([100, "adaptive", True]) == ["100", "adaptive", "true"]


@given(st.text())
def test_an_error_is_one_line(text: str) -> None:
    line = one_line(text)
    assert line.isprintable()
    assert len(line) <= 20_000


@given(strategies.texts)
def test_no_cell_of_a_text_is_a_formula_and_each_is_read_as_it_was(text: str) -> None:
    for written, read in ((cell(text), cell_value), (text_cell(text), cell_text)):
        assert not written.startswith(("=", "+", "-", "@", "\t", "\r"))
        assert read(written) == text
