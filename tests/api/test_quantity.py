"""Quantities are read, counted, written and compared as Kubernetes v1.36 does it."""

import copy
import json
import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kschedfw.api.errors import KschedfwError
from kschedfw.api.quantity import Quantity, QuantityError, QuantityFormat, parse_quantity

SI = QuantityFormat.DECIMAL_SI
BINARY = QuantityFormat.BINARY_SI
EXPONENT = QuantityFormat.DECIMAL_EXPONENT

WRONG_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
WRONG_NUMBER = "unable to parse numeric part of quantity"
WRONG_SUFFIX = "unable to parse quantity's suffix"

MAX = 2**63 - 1

# text, format, value, milli-value, written
READ = [
    pytest.param("3", SI, 3, 3000, "3", id="an integer"),
    pytest.param("250m", SI, 1, 250, "250m", id="value rounds up"),
    pytest.param("2500m", SI, 3, 2500, "2500m", id="no fraction is written"),
    pytest.param("4000m", SI, 4, 4000, "4", id="the largest suffix is written"),
    pytest.param("0.25", SI, 1, 250, "250m", id="a fraction"),
    pytest.param(".75", SI, 1, 750, "750m", id="no digit before the point"),
    pytest.param("7.", SI, 7, 7000, "7.", id="no digit after the point"),
    pytest.param("+6", SI, 6, 6000, "+6", id="plus stays"),
    pytest.param("007", SI, 7, 7000, "007", id="leading zeros stay"),
    pytest.param("2.125", SI, 3, 2125, "2.125", id="three decimals stay"),
    pytest.param("2.12", SI, 3, 2120, "2120m", id="two decimals don't"),
    pytest.param("12000", SI, 12000, 12000000, "12k", id="thousands"),
    pytest.param("20M", SI, 20000000, 20000000000, "20M", id="M"),
    pytest.param("0.002G", SI, 2000000, 2000000000, "2M", id="a fraction of G"),
    pytest.param("3T", SI, 3 * 10**12, 3 * 10**15, "3T", id="T"),
    pytest.param("4P", SI, 4 * 10**15, 4 * 10**18, "4P", id="P"),
    pytest.param("7n", SI, 1, 1, "7n", id="n"),
    pytest.param("2001u", SI, 1, 3, "2001u", id="u: milli rounds up"),
    pytest.param("3000000000n", SI, 3, 3000, "3", id="nanos that make a unit"),
    pytest.param("0.3n", SI, 1, 1, "1n", id="less than a nano is a nano"),
    pytest.param("7.2n", SI, 1, 1, "8n", id="between nanos rounds up"),
    pytest.param("5.00000000001", SI, 6, 5001, "5000000001n", id="a trace more is a nano more"),
    pytest.param("5Ki", BINARY, 5120, 5120000, "5Ki", id="Ki"),
    pytest.param("16Ki", BINARY, 16384, 16384000, "16Ki", id="Ki, a multiple of eight"),
    pytest.param("2048Mi", BINARY, 2**31, 2**31 * 1000, "2Gi", id="Mi that make Gi"),
    pytest.param("2.5Gi", BINARY, 2684354560, 2684354560000, "2560Mi", id="a fraction of Gi"),
    pytest.param("1500Mi", BINARY, 1572864000, 1572864000000, "1500Mi", id="Mi that don't make Gi"),
    pytest.param("0.3Mi", BINARY, 314573, 314572800, "314572800m", id="a fraction of a byte: decimal"),
    pytest.param("1.5Ki", BINARY, 1536, 1536000, "1536", id="not whole Ki: no suffix"),
    pytest.param("0.5Ki", BINARY, 512, 512000, "512", id="less than 1Ki: decimal"),
    pytest.param("0.0009Ki", SI, 1, 922, "921600u", id="less than one: format changes, too"),
    pytest.param("2e3", EXPONENT, 2000, 2000000, "2e3", id="e"),
    pytest.param("2E4", EXPONENT, 20000, 20000000, "20e3", id="exponents are multiples of three"),
    pytest.param("2.5e+3", EXPONENT, 2500, 2500000, "2500", id="exponent zero isn't written"),
    pytest.param("7e-2", EXPONENT, 1, 70, "70e-3", id="negative exponent"),
    pytest.param("6e-15", EXPONENT, 1, 1, "1e-9", id="an exponent below nano"),
    pytest.param("2E", SI, 2 * 10**18, 0, "2E", id="E alone is exa; milli overflows to 0"),
    pytest.param("-4", SI, -4, -4000, "-4", id="negative"),
    pytest.param("-4.5", SI, -5, -4500, "-4500m", id="negative rounds away from zero"),
    pytest.param("-2Ki", BINARY, -2048, -2048000, "-2Ki", id="negative binary"),
    pytest.param("-2.0005Ki", BINARY, -2047, -2048512, "-2048512m", id="negative wide: one up"),
]

ZEROS = [".", "+", "-", "-0", "000", "0.0", "m", "Gi", "0Ei", "E5", "e-3", "0e9", "0.00000000000", "0.0Mi"]

AT_THE_EDGES = [
    pytest.param(str(MAX), MAX, -1000, str(MAX), id="the largest int64; milli wraps"),
    pytest.param(str(MAX + 2), -MAX, 1000, str(MAX + 2), id="wide: wraps"),
    pytest.param(str(-MAX - 3), -2, -2000, str(-MAX - 3), id="wide, negative: wraps in nanos"),
    pytest.param(f"{MAX}u", 9223372036855, 9223372036854776, f"{MAX}u", id="wide digits, small amount"),
    pytest.param("9300P", 0, 0, "9300P", id="narrow: zero"),
    pytest.param("30000T", 3 * 10**16, 0, "30P", id="narrow: only milli overflows"),
    pytest.param("5e20", 0, 0, "500e18", id="narrow exponent: zero"),
    pytest.param("1e999", 0, 0, "1e999", id="an enormous exponent"),
    pytest.param("8.5Ei", MAX, -1000, str(MAX), id="binary: capped"),
    pytest.param("99999999999999999999Ki", MAX, -1000, str(MAX), id="binary, many digits: capped"),
    pytest.param("-8.5Ei", -MAX, 1000, str(-MAX), id="binary, negative: capped"),
    pytest.param("5Ei", 5 * 2**60, -(2**63), "5Ei", id="binary: milli wraps"),
    pytest.param(
        "3" + "0" * 21, 3 * 10**21 % 2**64 - 2**64, 6011292615620689920, "3", id="no suffix for 10^21"
    ),
    pytest.param("1e4294967298", 100, 100000, "100", id="exponents have 32 bits"),
]

REFUSED = [
    *((text, WRONG_FORMAT) for text in ("", " 2", "2 ", "2\n", "3 Mi", "2.5.Ki", "1..2", "2-3.0M")),
    *(
        (text, WRONG_FORMAT)
        for text in ("5KB", "5GB", "5gi", "5MI", "2,5", "2_0", "0b1", "0x1", "inf", "nan")
    ),
    *((text, WRONG_FORMAT) for text in ("2e3M", "2e3Mi", "2e3.0", "\u0665", "\uff15", "5µ", "cpu")),
    *(
        (text, WRONG_SUFFIX)
        for text in ("5K", "5i", "++1", "--1", "2mi", "2Km", "2e", "2E-", "2e+", "2-3", "2Mi5", "2ee3", "2kM")
    ),
    *((text, WRONG_SUFFIX) for text in ("1e9223372036854775808", "1e-9223372036854775809")),
    *((text, WRONG_NUMBER) for text in ("e-10", ".e-10", "-E-99")),
]


class TestReading:
    @pytest.mark.parametrize(("text", "format", "value", "milli_value", "written"), READ)
    def test_text(
        self, text: str, format: QuantityFormat, value: int, milli_value: int, written: str
    ) -> None:
        quantity = Quantity.parse(text)
        assert quantity.format is format
        assert quantity.value() == value
        assert quantity.milli_value() == milli_value
        assert str(quantity) == written
        assert quantity.sign == (1 if value > 0 else -1)

    @pytest.mark.parametrize("text", ZEROS)
    def test_zero(self, text: str) -> None:
        quantity = Quantity.parse(text)
        assert (quantity.value(), quantity.milli_value(), quantity.sign) == (0, 0, 0)
        assert str(quantity) == "0"
        assert quantity == Quantity.parse("0")

    @pytest.mark.parametrize(("text", "value", "milli_value", "written"), AT_THE_EDGES)
    def test_at_the_edges_of_int64(self, text: str, value: int, milli_value: int, written: str) -> None:
        quantity = Quantity.parse(text)
        assert quantity.value() == value
        assert quantity.milli_value() == milli_value
        assert str(quantity) == written

    @pytest.mark.parametrize(("text", "why"), REFUSED)
    def test_refused(self, text: str, why: str) -> None:
        with pytest.raises(QuantityError) as raised:
            Quantity.parse(text)
        assert str(raised.value) == f"{text!r}: {why}"

    def test_every_observation(self, shared_data: Callable[[str], Path]) -> None:
        def observe(text: str) -> dict[str, object]:
            try:
                quantity = Quantity.parse(text)
            except QuantityError as error:
                return {"in": text, "error": str(error).removeprefix(f"{text!r}: ")}
            return {
                "in": text,
                "format": str(quantity.format),
                "value": quantity.value(),
                "milliValue": quantity.milli_value(),
                "sign": quantity.sign,
                "string": str(quantity),
            }

        expected = json.loads(shared_data("quantities.json").read_text())
        assert len(expected) > 200
        assert [observe(row["in"]) for row in expected] == expected

    def test_errors_are_the_projects_and_value_errors(self) -> None:
        assert issubclass(QuantityError, KschedfwError)
        assert issubclass(QuantityError, ValueError)

    def test_a_long_text_is_refused_in_no_time_and_shown_in_part(self) -> None:
        with pytest.raises(QuantityError, match=r"^'0{78}…: quantities must match"):
            Quantity.parse("0" * 3999 + "x")
        with pytest.raises(QuantityError, match=r"^'9{78}…: a quantity has at most 4000 characters$"):
            Quantity.parse("9" * 4001)


class TestNumbers:
    @pytest.mark.parametrize(
        ("number", "text"),
        [
            (0.15, "150m"),
            (2, "2"),
            (2.0, "2"),
            (-3, "-3"),
            (0, "0"),
            (-0.0, "0"),
            (0.1 + 0.2, "300000001n"),
            (1e3, "1k"),
            (1e16, "10P"),
            (1e-6, "1u"),
            (1e-7, "100e-9"),
            (1e20, "100E"),
            (1.5e21, "1500e18"),
            (2**64, str(2**64)),
        ],
    )
    def test_a_number_is_its_text_in_json(self, number: float, text: str) -> None:
        assert str(Quantity.parse(number)) == text

    @pytest.mark.parametrize(
        "value", [True, False, None, float("nan"), float("inf"), float("-inf"), [], b"1"]
    )
    def test_other_values_are_refused(self, value: object) -> None:
        Quantity.parse(1), Quantity.parse(0)  # 1 == True and 0 == False: what was read before doesn't matter
        with pytest.raises(QuantityError, match="a quantity is a text or a finite number"):
            Quantity.parse(value)  # type: ignore[arg-type]

    def test_an_integer_too_long_to_write_is_refused(self) -> None:
        with pytest.raises(QuantityError, match="an integer of 33220 bits: a quantity has at most"):
            Quantity.parse(10**10000)


class TestManifests:
    def test_spaces_around_a_text_are_ignored(self) -> None:
        assert str(parse_quantity(" 100Mi ")) == "100Mi"
        assert str(parse_quantity("\u00a05\u3000")) == "5"

    @pytest.mark.parametrize("text", ["1 Gi", "1\n", "\t1"])
    def test_others_are_not(self, text: str) -> None:
        with pytest.raises(QuantityError):
            parse_quantity(text)

    def test_numbers(self) -> None:
        assert parse_quantity(0.15).milli_value() == 150

    def test_a_text_is_read_once(self) -> None:
        assert parse_quantity("1234567Mi") is parse_quantity("1234567Mi")


class TestComparison:
    def test_goes_by_the_amount(self) -> None:
        same = [
            Quantity.parse(text)
            for text in ("1024", "1Ki", "1024000m", "1.024e3", "0.00000095367431640625Gi", "+1024.0")
        ]
        assert len(set(same)) == 1
        assert not any(a != b or a < b or a > b for a in same for b in same)

    def test_order(self) -> None:
        texts = [
            "-2Gi",
            "-1",
            "-1m",
            "0",
            "1n",
            "1m",
            "999m",
            "1",
            "1k",
            "1Ki",
            "1025",
            "1G",
            "1Gi",
            "10E",
            "1e30",
        ]
        quantities = [Quantity.parse(text) for text in texts]
        backwards = quantities[::-1]
        assert sorted(backwards) == quantities
        assert quantities[0] <= quantities[1]
        assert quantities[1] >= quantities[0]

    def test_enormous_exponents_cost_nothing(self) -> None:
        huge, larger = Quantity.parse("1e2000000000"), Quantity.parse("12345678901234567890e2000000000")
        assert Quantity.parse("1Ei") < huge < larger
        assert (larger.value(), larger.milli_value()) == (0, 0)
        assert Quantity.parse("12345678901234567890e-2000000000") == Quantity.parse("1n")

    def test_a_quantity_is_no_number(self) -> None:
        assert Quantity.parse("1") != 1  # type: ignore[comparison-overlap]
        with pytest.raises(TypeError):
            assert Quantity.parse("1") < 2  # type: ignore[operator]


def test_shows_how_to_make_it_again() -> None:
    assert repr(Quantity.parse("0.5Gi")) == "Quantity.parse('512Mi')"


def test_can_be_copied_and_pickled() -> None:
    quantity = Quantity.parse("12345678901234567890Ki")
    for other in (copy.deepcopy(quantity), pickle.loads(pickle.dumps(quantity))):
        assert (other, str(other), other.milli_value()) == (quantity, str(quantity), quantity.milli_value())


# --- The same rules, stated for any text ---------------------------------------------------------------------------

FACTORS = {
    **{
        suffix: Fraction(1000) ** i
        for i, suffix in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), -3)
    },
    **{suffix: Fraction(1024) ** i for i, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
    **{f"{e}{i}": Fraction(10) ** i for e in "eE" for i in range(-12, 25)},
    **{f"e+{i}": Fraction(10) ** i for i in range(10)},
}
NANO = Fraction(1, 10**9)


def ceil(number: Fraction) -> int:
    return -(-number.numerator // number.denominator)


@st.composite
def texts(draw: st.DrawFn, signs: tuple[str, ...] = ("", "+", "-")) -> tuple[str, Fraction]:
    """A text that is a quantity, and the amount it stands for."""
    sign = draw(st.sampled_from(signs))
    digits = draw(st.integers(0, 10 ** draw(st.integers(1, 24))).map(str)) + "0" * draw(st.integers(0, 6))
    decimals = draw(st.just("") | st.text("0123456789", max_size=14))
    point = "." if decimals else draw(st.sampled_from(["", "."]))
    suffix = draw(st.sampled_from(sorted(FACTORS)))
    exact = Fraction(int(digits + decimals), 10 ** len(decimals)) * FACTORS[suffix]
    amount = ceil(exact / NANO) * NANO
    if suffix.endswith("i"):
        amount = min(amount, Fraction(MAX))
    return f"{sign}{digits}{point}{decimals}{suffix}", -amount if sign == "-" else amount


@given(texts(signs=("", "+")))
def test_value_is_the_amount_rounded_up(pair: tuple[str, Fraction]) -> None:
    text, amount = pair
    assume(amount <= MAX)
    assert Quantity.parse(text).value() == ceil(amount)


@given(texts(signs=("", "+")))
def test_milli_value_is_the_amount_in_thousandths_rounded_up(pair: tuple[str, Fraction]) -> None:
    text, amount = pair
    assume(amount * 1000 <= MAX)
    quantity = Quantity.parse(text)
    assert quantity.milli_value() == ceil(amount * 1000)
    assert quantity.value() == ceil(Fraction(quantity.milli_value(), 1000))


@given(texts())
def test_values_always_fit_an_int64(pair: tuple[str, Fraction]) -> None:
    quantity = Quantity.parse(pair[0])
    assert -MAX - 1 <= quantity.value() <= MAX
    assert -MAX - 1 <= quantity.milli_value() <= MAX


@given(texts())
def test_what_is_written_is_read_as_the_same(pair: tuple[str, Fraction]) -> None:
    text, amount = pair
    quantity = Quantity.parse(text)
    assume(
        quantity.format is EXPONENT or amount == 0 or amount % 10**21
    )  # DecimalSI lacks a suffix for those
    again = Quantity.parse(str(quantity))
    assert again == quantity
    assert hash(again) == hash(quantity)
    assert str(again) == str(quantity)


@given(texts(), texts())
def test_order_and_equality_agree_with_the_amounts(a: tuple[str, Fraction], b: tuple[str, Fraction]) -> None:
    p, q = Quantity.parse(a[0]), Quantity.parse(b[0])
    assert (p < q, p == q, p > q) == (a[1] < b[1], a[1] == b[1], a[1] > b[1])
    assert p.sign == (a[1] > 0) - (a[1] < 0)


@given(texts(), st.sampled_from(["n", "u", "m", "", "e-3", "e0"]))
def test_the_same_amount_in_another_format_is_equal(pair: tuple[str, Fraction], suffix: str) -> None:
    text, amount = pair
    in_suffix = amount / FACTORS[suffix]
    assume(in_suffix.denominator == 1)
    other = Quantity.parse(f"{in_suffix.numerator}{suffix}")
    assert other == Quantity.parse(text)
    assert hash(other) == hash(Quantity.parse(text))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_read_as_its_shortest_text(number: float) -> None:
    assert Quantity.parse(number) == Quantity.parse(repr(number))


@given(st.text("0123456789.+-eEinumkKMGTP ", max_size=12) | st.text(max_size=6))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        quantity = Quantity.parse(text)
    except QuantityError:
        return
    assert -MAX - 1 <= quantity.value() <= MAX
    assert str(quantity)


@pytest.mark.parametrize(
    ("text", "factor", "product"),
    [
        ("5", 3, "15"),
        ("250m", 4, "1"),
        ("1.5Gi", 2, "3Gi"),
        ("15M", 0, "0"),
        ("2Ki", -3, "-6Ki"),
        ("1e3", 5, "5e3"),
        (str(MAX), 2, str(2 * MAX)),
        ("1n", 10**18, "1G"),
    ],
)
def test_a_multiple_is_exact_and_keeps_its_format(text: str, factor: int, product: str) -> None:
    assert str(Quantity.parse(text) * factor) == product


@given(st.integers(-(10**12), 10**12), st.sampled_from(["", "m", "k", "Ki", "Gi", "e3"]), st.integers(0, 5))
def test_a_multiple_is_so_many_added_up(amount: int, suffix: str, factor: int) -> None:
    quantity = Quantity.parse(f"{amount}{suffix}")
    total = Quantity.parse("0")
    for _ in range(factor):
        total = total + quantity
    assert quantity * factor == total
    assert (quantity * factor).value() == total.value()


@pytest.mark.parametrize(
    ("number", "value"),
    [
        pytest.param(Quantity.parse("0") + Quantity.parse("-8.5Ei"), -MAX, id="nothing and a capped amount"),
        pytest.param(Quantity.parse("-7") * MAX, 6 - MAX, id="a multiple of a narrow one"),
        pytest.param(
            Quantity.of(-MAX, SI) + Quantity.parse("-9"), -MAX - 9 + 2**64, id="a sum of narrow ones"
        ),
        pytest.param(Quantity.of(-MAX, SI) + Quantity.parse("-9.5"), -7, id="the finer of two units: tenths"),
    ],
)
def test_a_negative_amount_wraps_around_in_the_units_of_what_it_was_made_of(
    number: Quantity, value: int
) -> None:
    assert number.value() == value


@pytest.mark.parametrize("factor", [2**63, -(2**63) - 1])
def test_a_factor_has_to_fit_an_int64(factor: int) -> None:
    with pytest.raises(OverflowError, match="must fit an int64"):
        Quantity.parse("1") * factor


@pytest.mark.parametrize("factor", [True, 1.5, Quantity.parse("2")])
def test_only_integers_are_factors(factor: object) -> None:
    with pytest.raises(TypeError):
        Quantity.parse("1") * factor  # type: ignore[operator]


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0.0), ("100m", 0.1), ("1.5Gi", 1.5 * 2**30), ("-3k", -3000.0), ("1n", 1e-9), ("1e400", math.inf)],
)
def test_float_is_the_nearest_one(text: str, number: float) -> None:
    assert float(Quantity.parse(text)) == number


@given(amount=st.integers(-(2**63), 2**63 - 1))
def test_the_negative_of_an_amount(amount: int) -> None:
    quantity = Quantity.parse(str(amount))
    negative = -quantity
    assert -negative == quantity
    assert (quantity + -quantity).sign == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("16Gi", 2**34),
        ("-5k", -5000),
        ("1e3", 1000),
        ("1.5", None),
        ("10E", None),
        ("9223372036854775807", None),
    ],
)
def test_only_whole_amounts_of_an_int64_are_one(text: str, expected: int | None) -> None:
    # The last one fits, but its text is too long for Kubernetes to keep it as an int64.
    assert Quantity.parse(text).as_int64() == expected


def test_a_quantity_that_is_not_parsed_says_how_one_is_made() -> None:
    with pytest.raises(TypeError, match=r"Quantity\.parse\('100'\)"):
        Quantity("100")
