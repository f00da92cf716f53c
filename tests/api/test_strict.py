"""Configurations are read more strictly than objects."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw.api.convert import structure
from kschedfw.api.field_errors import FieldErrors
from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.quantity import Quantity
from kschedfw.api.scalars import Duration
from kschedfw.api.strict import structure_strictly
from kschedfw.framework.clock import format_duration


@attrs.frozen
class Limit:
    name: str
    most: int = attrs.field(default=9, metadata={"zero_is_unset": True})


@attrs.frozen
class Amounts:
    of_each: FrozenDict[str, Quantity] = EMPTY
    limits: FrozenDict[str, Limit] = EMPTY


@attrs.frozen
class Timing:
    wait: Duration = attrs.field(default=5.0, metadata={"zero_is_unset": True})
    rate: float = 1.0
    secret: bytes = b""
    limits: tuple[Limit, ...] = ()


def refused(value: dict[str, object]) -> list[str]:
    with pytest.raises(FieldErrors) as caught:
        structure_strictly(value, Timing)
    return [str(error) for error in caught.value.errors]


def test_unknown_fields_and_wrong_types_are_named_together() -> None:
    assert refused({"Wait": "1s", "rate": "x", "limits": [{"name": "a", "least": 1}]}) == [
        'strict decoding error: unknown field "Wait"; known are: limits, rate, secret, wait',
        'strict decoding error: unknown field "limits[0].least"; known are: most, name',
        'rate: Invalid value: "x": must be a number',
    ]


def test_zeros_are_unset_where_the_field_says_so() -> None:
    assert structure_strictly({"wait": "0s", "limits": [{"name": "", "most": 0}]}, Timing) == Timing(
        limits=(Limit(""),)
    )
    assert structure_strictly({"wait": ""}, Timing) == Timing()


def test_the_values_of_a_map_are_looked_into_and_its_keys_are_free() -> None:
    given_ = {"ofEach": {"cpu": "1", "example.com/gpu": 2}, "limits": {"a": {"name": "x", "most": 0}}}
    assert structure_strictly(given_, Amounts) == Amounts(
        FrozenDict({"cpu": Quantity.parse(1), "example.com/gpu": Quantity.parse(2)}),
        FrozenDict({"a": Limit("x")}),
    )
    with pytest.raises(FieldErrors, match=r'unknown field "limits\.a\.least"; known are: most, name'):
        structure_strictly({"limits": {"a": {"name": "x", "least": 1}}}, Amounts)


class TestDurations:
    @pytest.mark.parametrize(
        ("text", "seconds"),
        [
            ("15s", 15),
            ("1m30s", 90),
            ("1h0.5s", 3600.5),
            ("100ms", 0.1),
            ("-2s", -2),
            ("0", 0),
            ("1.5h", 5400),
        ],
    )
    def test_are_texts_with_units(self, text: str, seconds: float) -> None:
        assert structure({"wait": text}, Timing).wait == pytest.approx(seconds)

    @given(st.integers(0, (1 << 63) // 1_000_000 - 1))  # Kubernetes counts nanoseconds in an int64
    def test_are_read_as_they_are_shown(self, milliseconds: int) -> None:
        text = format_duration(milliseconds / 1000)
        assert format_duration(structure({"wait": text}, Timing).wait) == text

    @pytest.mark.parametrize("value", [5, 1.5, "5", "5 s", "s", "1d", "--1s", True, ["1s"]])
    def test_anything_else_is_refused(self, value: object) -> None:
        (error,) = refused({"wait": value})
        assert error.endswith("must be a duration such as 30s or 1m30s")


def test_data_is_in_base64_and_not_repeated_where_it_is_wrong() -> None:
    assert structure({"secret": "aGk="}, Timing).secret == b"hi"
    (error,) = refused({"secret": "no!"})
    assert error == 'secret: Invalid value: "…": must be data in base64'


@pytest.mark.parametrize("value", [True, "1", float("nan"), None])
def test_a_number_is_finite(value: object) -> None:
    if value is None:
        assert structure({"rate": value}, Timing).rate == 1.0
    else:
        assert refused({"rate": value})[0].endswith("must be a number")
