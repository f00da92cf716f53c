"""Selectors in CEL: what the language, Kubernetes' functions and the limits do."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_devices.cel import (
    COST_LIMIT,
    Budget,
    DeviceInput,
    OutOfStepsError,
    SelectorError,
    Version,
    compile_selector,
)

from kschedfw.api import Quantity
from kschedfw.testing.properties import examples

DEVICE = DeviceInput(
    "gpu.example.com",
    {
        "model": "a100",
        "index": 3,
        "healthy": True,
        "driverVersion": Version.parse("2.1.0-rc.1+build"),
        "vendor.example.org/lane": "x16",
    },
    {"memory": Quantity.parse("40Gi"), "vendor.example.org/ports": Quantity.parse("4")},
    allow_multiple_allocations=True,
)
OWN = 'device.attributes["gpu.example.com"]'
INT_MIN, INT_MAX = -(2**63), 2**63 - 1


def matches(expression: str, device: DeviceInput = DEVICE) -> bool:
    selector = compile_selector(expression)
    assert selector.compile_error is None, selector.compile_error
    return selector.matches(device, Budget())


def error(expression: str, device: DeviceInput = DEVICE) -> str:
    selector = compile_selector(expression)
    assert selector.compile_error is None, selector.compile_error
    with pytest.raises(SelectorError) as caught:
        selector.matches(device, Budget())
    return str(caught.value)


def compile_error(expression: str) -> str:
    found = compile_selector(expression).compile_error
    assert found is not None
    return found


def literal(value: object) -> str:
    """Write a value in CEL."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f'double("{value!r}")'
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(c):08x}" for c in value) + '"'
    return str(value)


PIECES = [
    *"()[]{}.,?:!-+*/%<>&|'\"",
    *("&&", "||", "==", "in", "true", "1", "1u", "1.5", "'a'", "device", "x", " ", "has(", "device.driver"),
    *(".all(x,", ".?y", "cel.bind(", "quantity(", "b'x'", r"'\x4'"),
]


class TestDevice:
    @pytest.mark.parametrize(
        "expression",
        [
            'device.driver == "gpu.example.com"',
            "device.allowMultipleAllocations",
            f'{OWN}.model == "a100" && {OWN}.index == 3 && {OWN}.healthy',
            'device.attributes["vendor.example.org"].lane == "x16"',
            'device.capacity["vendor.example.org"].ports.asInteger() == 4',
            'device.capacity["gpu.example.com"].memory.compareTo(quantity("41943040Ki")) == 0',
            f'has({OWN}.model) && !has({OWN}.nothing) && !has(device.attributes["none"].x)',
            'device.attributes["none"].size() == 0',
            'size(device.attributes) == 2 && device.attributes.exists(d, d == "vendor.example.org")',
            f"{OWN}.all(name, value, name.size() > 0)",
            "[{'driver': 'x'}].all(device, device.driver == 'x') && cel.bind(device, {'a': {'b': 1}}, device.a.b == 1)",
        ],
    )
    def test_parts(self, expression: str) -> None:
        assert matches(expression)

    def test_in_tells_the_domains_that_are_there_from_those_that_are_empty_by_default(self) -> None:
        assert matches('"gpu.example.com" in device.attributes && "gpu.example.com" in device.capacity')
        bare = DeviceInput("gpu.example.com", {"other.example.com/a": 1})
        assert not matches('"gpu.example.com" in device.attributes', bare)
        assert not matches('"gpu.example.com" in device.capacity', bare)
        assert matches('!("a" in device.attributes["gpu.example.com"])', bare)
        assert matches("device.attributes.size() == 1 && device.capacity.size() == 0", bare)
        assert matches('has(device.attributes.none) && device.attributes[?"none"].hasValue()', bare)

    def test_a_missing_domain_is_an_empty_map_and_a_missing_name_an_error(self) -> None:
        assert error('device.attributes["none"].x == 1') == "no such key: x"
        assert error(f"{OWN}.missing") == "no such key: missing"

    @pytest.mark.parametrize(
        ("attribute", "why"),
        [
            (
                "index",
                "CEL result of type int could not be converted to bool: unsupported type conversion from",
            ),
            (
                "model",
                "CEL result of type string could not be converted to bool: unsupported native conversion",
            ),
            ("driverVersion", "CEL result of type kubernetes.Semver could not be converted to bool"),
        ],
    )
    def test_a_result_that_is_no_bool(self, attribute: str, why: str) -> None:
        assert error(f"{OWN}.{attribute}").startswith(why)

    def test_the_device_is_not_changed_by_an_evaluation(self) -> None:
        for _ in range(2):
            assert matches(f'{OWN}.map(k, k).filter(k, k.startsWith("m")) == ["model"]')


class TestLogic:
    @pytest.mark.parametrize("order", ["{a} {op} {b}", "{b} {op} {a}"])
    @pytest.mark.parametrize(("op", "decides"), [("||", "true"), ("&&", "false")])
    def test_one_side_decides_whatever_the_other_is(self, order: str, op: str, decides: str) -> None:
        expression = order.format(a=f"{OWN}.missing == 1", b=decides, op=op)
        assert matches(expression) is (decides == "true")

    def test_otherwise_the_first_error_is_the_result(self) -> None:
        assert error(f"{OWN}.first == 1 || {OWN}.second == 1") == "no such key: first"
        assert error(f"{OWN}.first == 1 && true") == "no such key: first"

    def test_macros_absorb_errors_as_the_operators_do(self) -> None:
        assert matches(f"[1, 2].exists(x, x == 2 || {OWN}.missing == x)")
        assert not matches(f"[1, 2].all(x, x == 1 && {OWN}.index == 3)")
        assert error(f"[1, 2].exists_one(x, {OWN}.missing == x)") == "no such key: missing"

    def test_the_branch_not_taken_is_not_evaluated(self) -> None:
        assert matches(f"true ? true : {OWN}.missing")
        assert matches(f"cel.bind(x, {OWN}.missing, true)")


class TestNumbers:
    @settings(max_examples=examples(60))
    @given(a=st.integers(INT_MIN, INT_MAX), b=st.integers(INT_MIN, INT_MAX), op=st.sampled_from("+-*"))
    def test_integers_overflow(self, a: int, b: int, op: str) -> None:
        exact = {"+": a + b, "-": a - b, "*": a * b}[op]
        expression = f"dyn({a}) {op} dyn({b}) == {min(max(exact, INT_MIN), INT_MAX)}"
        if INT_MIN <= exact <= INT_MAX:
            assert matches(expression)
        else:
            assert error(expression) == "integer overflow"

    @settings(max_examples=examples(60))
    @given(a=st.integers(INT_MIN, INT_MAX), b=st.integers(INT_MIN, INT_MAX))
    def test_division_rounds_to_zero(self, a: int, b: int) -> None:
        if b == 0:
            assert error(f"{a} / {b} == 0") == "division by zero"
            assert error(f"{a} % {b} == 0") == "modulus by zero"
        elif a == INT_MIN and b == -1:
            assert error(f"{a} / {b} == 0") == "integer overflow"
        else:
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            assert matches(f"{a} / {b} == {quotient} && {a} % {b} == {a - quotient * b}")

    def test_the_corners(self) -> None:
        assert error(f"-(int({INT_MIN})) == 0") == "integer overflow"
        assert error("1u - 2u == 0u") == "unsigned integer overflow"
        assert error("18446744073709551615u + 1u == 0u") == "unsigned integer overflow"
        assert matches("1.0 / 0.0 > 1.0 && -1.0 / 0.0 < 1.0 && 0.0 == -0.0")
        assert matches('double("NaN") != double("NaN")')
        assert error('double("NaN") < 1.0') == "NaN values cannot be ordered"

    @settings(max_examples=examples(60))
    @given(
        a=st.integers(-(2**53), 2**53),
        b=st.integers(-(2**53), 2**53) | st.floats(-(2.0**60), 2.0**60),
    )
    def test_numbers_of_different_types_are_ordered_as_numbers(self, a: int, b: int | float) -> None:
        other = literal(b)
        assert matches(f"dyn({a}) < dyn({other})") is (a < b)
        assert matches(f"dyn({a}) == dyn({other})") is (a == b)
        if a >= 0:
            assert matches(f"dyn({a}u) >= dyn({other})") is (a >= b)
        assert matches(f"dyn({a}) in [dyn({other})]") is (a == b)

    @settings(max_examples=examples(60))
    @given(number=st.floats(allow_nan=False, allow_infinity=False))
    def test_doubles_survive_their_text(self, number: float) -> None:
        assert matches(f"double(string({literal(number)})) == {literal(number)}")

    @pytest.mark.parametrize(
        ("number", "text"),
        [
            ("1.0", "1"),
            ("1e21", "1e+21"),
            ("1000000.0", "1e+06"),
            ("0.00001", "1e-05"),
            ("-2.5", "-2.5"),
            ("0.0001", "0.0001"),
        ],
    )
    def test_texts_of_doubles(self, number: str, text: str) -> None:
        assert matches(f"string({number}) == '{text}'")

    @pytest.mark.parametrize(
        "bad", ["int('1.2')", "uint(-1)", "bool('yes')", "int(1e19)", "double('x')", "uint('-1')"]
    )
    def test_conversions_of_constants_fail_when_compiled(self, bad: str) -> None:
        assert compile_error(f"{bad} == {bad}").startswith("program instantiation failed: ")

    @pytest.mark.parametrize("zeros", [0, 64, 5000])  # Python reads at most 4,300 digits
    def test_zeros_before_a_number_do_not_count(self, zeros: int) -> None:
        before = "0" * zeros
        for sign, number in (("", 7), ("+", 7), ("-", -7)):
            assert matches(f"int('{sign}{before}7') == {number}")
        assert matches(f"int('{before}0') == 0")
        assert matches(f"int('-{before}{-INT_MIN}') == {INT_MIN}")
        assert matches(f"uint('{before}{2**64 - 1}') == {2**64 - 1}u")
        assert "from 'string' to 'int'" in compile_error(f"int('{before}{INT_MAX + 1}') == 0")
        assert "from 'string' to 'uint'" in compile_error(f"uint('{before}{2**64}') == 0u")
        assert "from 'string' to 'uint'" in compile_error(f"uint('+{before}1') == 1u")
        assert "from 'string' to 'int'" in compile_error(f"int('{before}_1') == 1")

    @pytest.mark.parametrize("digits", [30, 9000])
    def test_a_number_that_is_too_large_is_refused_whatever_its_length(self, digits: int) -> None:
        assert "from 'string' to 'int'" in compile_error(f"int('-1{'0' * digits}') == 0")
        assert "from 'string' to 'uint'" in compile_error(f"uint('1{'0' * digits}') == 0u")

    @settings(max_examples=examples(60))
    @given(number=st.floats(allow_nan=False, allow_infinity=False))
    def test_hexadecimal_texts_are_doubles(self, number: float) -> None:
        assert matches(f"double('{number.hex()}') == {literal(number)}")
        assert matches(f"double('{number.hex().upper()}') == {literal(number)}")

    @pytest.mark.parametrize(
        ("text", "number"),
        [
            ("0x1p-2", "0.25"),
            ("+0X.8P+1", "1.0"),
            ("-0xA.p0", "-10.0"),
            ("0x_f_f.8_0p1_0", "261632.0"),
            ("0x0p99999999999999999999", "0.0"),
            ("0x1p-99999999999999999999", "0.0"),
            ("1_000.2_5e+0_2", "100025.0"),
            ("5.", "5.0"),
            (".5", "0.5"),
            ("inf", "1.0 / 0.0"),
            ("-INFINITY", "-1.0 / 0.0"),
        ],
    )
    def test_texts_that_are_doubles(self, text: str, number: str) -> None:
        assert matches(f"double('{text}') == {number}")

    @pytest.mark.parametrize(
        "text",
        [
            *("0x1", "0x1.8", "0xp1", "0x.p1", "0x1p", "0x1pa", "x1p1", "0x1e2", "1p1", "0b1p1"),
            *(
                "_1",
                "1_",
                "1__0",
                "1_.5",
                "1._5",
                "1_e5",
                "1e_5",
                "1e5_",
                "0_x1p1",
                "0x__1p1",
                "0x1_p1",
                "0x_.1p1",
            ),
            *("0x1p1024", "-0x1.fffffffffffff8p1023", "1e309", f"1{'0' * 309}", f"1{'0' * 309}."),
            # No signed NaN, and no letters that are only alike: the dotless i.
            *("+nan", "-NaN", "\u0131nf", "infi", "nano", "", "+", ".", " 1", "\u0661"),
        ],
    )
    def test_texts_that_are_no_doubles(self, text: str) -> None:
        assert "from 'string' to 'double'" in compile_error(f"double('{text}') == 0.0")


class TestTypes:
    @pytest.mark.parametrize(
        ("expression", "why"),
        [
            ("1 == 1.0", "found no matching overload for '_==_' applied to '(int, double)'"),
            ("[1, 'a'].size() == 2", "expected type 'int' but found 'string'"),
            ("nothing == 1", "undeclared reference to 'nothing' (in container '')"),
            ("device.nothing == 1", "undefined field 'nothing'"),
            ("1", "must evaluate to bool or the unknown type, not int"),
            ("has(device)", "invalid argument to has() macro"),
            ("1.exists(x, true)", "cannot be range of a comprehension"),
            ("duration('x') == duration('1s')", "invalid duration argument"),
            ("timestamp('x') == timestamp('2024-01-01T00:00:00Z')", "invalid timestamp argument"),
            ("'%d'.format(['x']) == ''", "error during formatting"),
            ("for == 1", "reserved identifier: for"),
            ("true &&", "Syntax error"),
            ("'open", "Syntax error"),
            ("(true", "Syntax error"),
        ],
    )
    def test_expression_with_mismatched_types_is_refused(self, expression: str, why: str) -> None:
        assert why in compile_error(expression)

    def test_errors_point_into_the_source(self) -> None:
        assert compile_error("true &&\n 1 == 'a'") == (
            "compilation failed: ERROR: <input>:2:4: found no matching overload for '_==_' applied to '(int, string)'\n"
            " |  1 == 'a'\n"
            " | ...^"
        )

    def test_attributes_are_checked_when_they_are_known(self) -> None:
        assert error(f"{OWN}.index.startsWith('a')") == "no such overload"
        assert error(f"size({OWN}.index) == 1") == "no such overload: size"
        assert error(f"{OWN}.driverVersion == '1.0.0'") == "no such overload"
        assert error(f"{OWN}.model.isGreaterThan(semver('1.0.0'))") == (
            "no such overload: isGreaterThan(string, kubernetes.Semver)"
        )
        assert not matches(f"'1.0.0' == {OWN}.driverVersion")
        assert matches(f"{OWN}.driverVersion != '1.0.0'")


class TestStrings:
    @settings(max_examples=examples(60))
    @given(text=st.text(max_size=12), part=st.text(max_size=3))
    def test_code_points_count(self, text: str, part: str) -> None:
        a, b = literal(text), literal(part)
        assert matches(f"size({a}) == {len(text)} && {a}.contains({b}) == {literal(part in text)}")
        assert matches(f"{a}.startsWith({b}) == {literal(text.startswith(part))}")
        assert matches(f"({a} + {b}).substring(0, {len(text)}) == {a}")
        assert matches(f"bytes({a}).size() == {len(text.encode())}")
        assert matches(f"string(bytes({a})) == {a}")

    @pytest.mark.parametrize(
        "expression",
        [
            "'abc'.split('') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c'] && 'a'.split(',', 0) == []",
            "'hello'.charAt(5) == '' && 'hello'.indexOf('l', 3) == 3 && 'hello'.lastIndexOf('l', 2) == 2",
            "'aaa'.replace('a', 'b', 2) == 'bba' && 'aaa'.replace('', '-') == '-a-a-a-'",
            "' \t x '.trim() == 'x' && 'äB'.lowerAscii() == 'äb'",
            "['a', 'b'].join('-') == 'a-b' && strings.quote('a\"b') == '\"a\\\\\"b\"'",
            "'%s|%d|%.2f|%x|%b|%o|%%'.format(['a', 7, 1.5, 255, 5, 8]) == 'a|7|1.50|ff|101|10|%'",
            "'%s'.format([[1, 'a']]) == '[1, \"a\"]' && '%e'.format([1500.0]) == '1.500000e+03'",
            r"""r'\n' == '\\n' && '\x41\u0042\103' == 'ABC' && b'\xff'.size() == 1 && '''a'b''' == "a'b" """,
        ],
    )
    def test_functions(self, expression: str) -> None:
        assert matches(expression)

    def test_out_of_range(self) -> None:
        assert error("'abc'.charAt(9) == ''") == "index out of range: 9"
        assert error("'abc'.substring(2, 1) == ''") == "invalid substring range. start: 2, end: 1"


class TestPatterns:
    def test_functions(self) -> None:
        assert matches(f"{OWN}.model.matches('^a[0-9]+$') && {OWN}.model.matches('10')")
        assert matches("'a1b22'.find('[0-9]+') == '1' && 'a1b22'.findAll('[0-9]+') == ['1', '22']")
        assert matches("'aaa'.findAll('a', 2) == ['a', 'a'] && 'x'.find('y') == ''")

    def test_patterns_that_re2_lacks_are_refused(self) -> None:
        assert "invalid matches argument" in compile_error(f"{OWN}.model.matches('a(?=b)')")
        assert "invalid matches argument" in compile_error(r"'a'.matches('(a)\\1')")
        assert compile_error("'a'.find('[') == ''").startswith(
            "program instantiation failed: error parsing regexp"
        )

    def test_no_pattern_takes_exponential_time(self) -> None:
        device = DeviceInput("d", {"text": "a" * 64})
        assert not matches('device.attributes["d"].text.matches("^(a|aa|a*)*$b")', device)  # or it never ends

    def test_without_the_library_one_line_says_what_to_install(self) -> None:
        code = (
            "import sys; sys.modules['re2'] = None\n"
            "from kschedfw_devices.cel import Budget\n"
            "from kschedfw_devices.cel import *\n"
            "assert compile_selector('1 < 2').matches(DeviceInput('d'), Budget())\n"
            "print(compile_selector(\"'a'.matches('a')\").compile_error)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == (
            "selectors with regular expressions need google-re2; install it with: pip install google-re2"
        )


class TestCollections:
    @settings(max_examples=examples(40))
    @given(numbers=st.lists(st.integers(-9, 9), max_size=6))
    def test_lists(self, numbers: list[int]) -> None:
        text = str(numbers)
        assert matches(f"{text}.map(n, n * 2) == {[n * 2 for n in numbers]}")
        assert matches(f"{text}.filter(n, n > 0) == {[n for n in numbers if n > 0]}")
        assert matches(f"{text}.all(n, n > 0) == {literal(all(n > 0 for n in numbers))}")
        assert matches(f"{text}.exists(n, n > 0) == {literal(any(n > 0 for n in numbers))}")
        assert matches(f"{text}.exists_one(n, n > 0) == {literal(sum(n > 0 for n in numbers) == 1)}")
        assert matches(
            f"{text}.sum() == {sum(numbers)} && {text}.isSorted() == {literal(numbers == sorted(numbers))}"
        )
        assert matches(f"{text}.sort() == {sorted(numbers)} && {text}.reverse() == {numbers[::-1]}")
        assert matches(f"{text}.distinct() == {list(dict.fromkeys(numbers))}")
        assert matches(f"{text}.sortBy(n, -n) == {sorted(numbers, key=lambda n: -n)}")
        assert matches(f"sets.contains({text}, {numbers[:2]}) && size({text}) == {len(numbers)}")

    @pytest.mark.parametrize(
        "expression",
        [
            "{'a': 1}['a'] == 1 && 'b' in {'b': 2} && {1: 'x'}[1] == 'x' && {'a': 1} == {'a': 1}",
            "dyn({1: 'x'})[1.0] == 'x' && dyn({1: 'x'})[1u] == 'x'",
            "[1, 2, 3].transformList(i, v, i * v) == [0, 2, 6]",
            "[1, 2].transformMap(i, v, v * 2) == {0: 2, 1: 4}",
            "{'a': 'b'}.transformMapEntry(k, v, {v: k}) == {'b': 'a'}",
            "[[1], [2, 3]].flatten() == [1, 2, 3] && [1, 2, 3].slice(1, 3) == [2, 3] && lists.range(2) == [0, 1]",
            "[1, 2].max() == 2 && [1, 2].min() == 1 && [1, 2, 1].lastIndexOf(1) == 2",
            "cel.bind(x, [1, 2], x.map(y, y + x.size()) == [3, 4])",
        ],
    )
    def test_maps_and_macros(self, expression: str) -> None:
        assert matches(expression)

    @pytest.mark.parametrize(
        "expression",
        [
            f"{OWN}.?model.orValue('x') == 'a100' && {OWN}.?none.orValue('x') == 'x'",
            f"!{OWN}.?none.hasValue() && {OWN}.?none.or({OWN}.?model).value() == 'a100'",
            f"{OWN}.?model.optMap(m, m + '!').value() == 'a100!' && !{OWN}.?none.optMap(m, m).hasValue()",
            "optional.ofNonZeroValue(0) == optional.none() && optional.of(1).value() == 1",
            f"[?{OWN}.?none, ?{OWN}.?model].size() == 1 && {{?'a': {OWN}.?none}}.size() == 0",
            "[1, 2][?5].orValue(7) == 7 && [1, 2].first().value() == 1",
        ],
    )
    def test_optionals(self, expression: str) -> None:
        assert matches(expression)

    def test_out_of_bounds(self) -> None:
        assert error("[1, 2][2] == 2") == "index out of bounds: 2"
        assert error("[].max() == 1") == "max called on empty list"
        assert error(f"{OWN}.?none.value() == 1") == "optional.none() dereference"


class TestTimes:
    @settings(max_examples=examples(40))
    @given(seconds=st.integers(0, 4 * 10**9), step=st.integers(-(10**6), 10**6))
    def test_arithmetic(self, seconds: int, step: int) -> None:
        assert matches(f"int(timestamp({seconds}) + duration('{step}s')) == {seconds + step}")
        assert matches(f"timestamp({seconds}) - timestamp({seconds + step}) == duration('{-step}s')")
        assert matches(f"timestamp(string(timestamp({seconds}))) == timestamp({seconds})")
        assert matches(f"timestamp({seconds}) < timestamp({seconds + 1})")

    @pytest.mark.parametrize(
        "expression",
        [
            "duration('1h30m').getMinutes() == 90 && duration('1.5s').getMilliseconds() == 1500",
            "string(duration('1m30.5s')) == '90.5s' && duration('-1m') < duration('0s')",
            "timestamp('2024-02-29T12:30:00.25+02:00').getHours() == 10",
            "timestamp('2024-01-01T00:00:00Z').getDayOfWeek() == 1",
            "timestamp('2024-03-01T00:00:00Z').getDayOfYear() == 60",
            "timestamp('2024-01-01T00:00:00Z').getHours('-02:30') == 21",
        ],
    )
    def test_parts(self, expression: str) -> None:
        assert matches(expression)

    def test_overflow(self) -> None:
        assert (
            error("timestamp('9999-12-31T23:59:59Z') + duration('1s') == timestamp(0)")
            == "timestamp overflow"
        )
        assert error("duration('2562047h') + duration('2562047h') == duration('0s')") == "duration overflow"


versions = st.builds(
    Version,
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(0, 3),
    st.lists(st.integers(0, 11) | st.sampled_from(["rc", "alpha", "x-1"]), max_size=2).map(tuple),
)


class TestKubernetes:
    @settings(max_examples=examples(60))
    @given(a=versions, b=versions)
    def test_versions_are_ordered_as_semver_says(self, a: Version, b: Version) -> None:
        assert Version.parse(str(a)) == a
        order = (a > b) - (a < b)
        assert matches(f"semver('{a}').compareTo(semver('{b}')) == {order}")
        assert matches(f"semver('{a}').isGreaterThan(semver('{b}')) == {literal(order > 0)}")
        assert (order == 0) is (a == b)

    def test_the_order_of_the_specification(self) -> None:
        texts = [
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0-rc.1",
            "1.0.0",
        ]
        assert sorted(map(Version.parse, reversed(texts))) == list(map(Version.parse, texts))
        assert Version.parse("1.0.0+a") == Version.parse("1.0.0+b")

    @pytest.mark.parametrize("bad", ["1.2", "01.2.3", "1.2.3-", "v1.2.3", "1.2.x", "", "1.2.3-01", "1.2.3+"])
    def test_what_is_no_version(self, bad: str) -> None:
        assert not matches(f"isSemver('{bad}')")
        with pytest.raises(ValueError, match=r"."):
            Version.parse(bad)

    def test_versions_that_are_made_ones(self) -> None:
        assert matches(
            "semver('v01.2', true) == semver('1.2.0') && isSemver('v1', true) && !isSemver('1.2-rc', true)"
        )
        assert matches(f"{OWN}.driverVersion.major() == 2 && {OWN}.driverVersion.minor() == 1")

    @settings(max_examples=examples(60))
    @given(
        a=st.integers(-(10**6), 10**6),
        b=st.integers(-(10**6), 10**6),
        unit=st.sampled_from(["", "k", "Mi", "Gi", "m"]),
    )
    def test_quantities(self, a: int, b: int, unit: str) -> None:
        left, right = Quantity.parse(f"{a}{unit}"), Quantity.parse(f"{b}Ki")
        order = (left > right) - (left < right)
        assert matches(f"quantity('{a}{unit}').compareTo(quantity('{b}Ki')) == {order}")
        assert matches(f"sign(quantity('{a}{unit}').sub(quantity('{a}{unit}'))) == 0")
        assert matches(f"quantity('{a}').add({b}).asInteger() == {a + b}")

    @pytest.mark.parametrize(
        "expression",
        [
            "isQuantity('1.5Gi') && !isQuantity('1gi') && quantity('1Ki') == quantity('1024')",
            "!quantity('1.5').isInteger() && !quantity('1000m').isInteger() && quantity('16Gi').isInteger()",
            "quantity('1500m').asApproximateFloat() == 1.5",
            "ip('10.0.0.1').family() == 4 && isIP('::1') && !isIP('::ffff:1.2.3.4') && ip('::1').isLoopback()",
            "cidr('10.0.0.0/8').containsIP('10.1.2.3') && cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')",
            "cidr('10.1.2.3/8').masked().ip() == ip('10.0.0.0') && !isCIDR('10.0.0.0/33')",
            "url('https://u@h.example:81/a%20b?x=1&x=2').getHost() == 'h.example:81' && !isURL('x/y')",
            "url('https://[::1]:80/a').getHostname() == '::1' && url('/a?b=c').getQuery() == {'b': ['c']}",
            "!format.dns1123Label().validate('a-b').hasValue() && format.dns1123Label().validate('A').hasValue()",
            "!format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()",
            "!format.date().validate('2024-02-29').hasValue() && format.date().validate('2023-02-29').hasValue()",
            "!format.byte().validate('YQ==').hasValue() && format.uri().validate('a b').hasValue()",
            "!format.datetime().validate('2024-01-01T10:00:00Z').hasValue()",
            "format.named('qualifiedName').value().validate('a/b/c').hasValue()",
        ],
    )
    def test_functions(self, expression: str) -> None:
        assert matches(expression)

    def test_errors(self) -> None:
        assert error("quantity('10E').asInteger() > 0") == "cannot convert value to integer"
        assert error("quantity('abc') == quantity('1')") == (
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
        assert (
            error("semver('01.2.3') == semver('1.2.3')")
            == 'Major number must not contain leading zeroes "01"'
        )
        assert "too large" in error("quantity('1e2000000000').add(quantity('1')) == quantity('1')")


class TestLimits:
    def nested(self, depth: int) -> str:
        expression = " + ".join("abcdefgh"[:depth]) + " >= 0"
        for name in reversed("abcdefgh"[:depth]):
            expression = f"[1,2,3,4,5,6,7,8,9,10].all({name}, {expression})"
        return expression

    def test_what_costs_too_much_is_stopped(self) -> None:
        selector = compile_selector(self.nested(6))
        assert selector.max_cost > COST_LIMIT
        assert error(self.nested(6)) == "operation cancelled: actual cost limit exceeded"

    def test_the_limit_is_no_error_that_logic_absorbs(self) -> None:
        assert error(f"{self.nested(6)} || true") == "operation cancelled: actual cost limit exceeded"

    def test_large_results_are_refused(self) -> None:
        assert "1000000 elements" in error("lists.range(9000000000).size() > 0")

    @pytest.mark.parametrize(
        "expression",
        [
            "(" * 5000 + "true" + ")" * 5000,
            "!" + "(!" * 500 + "true" + ")" * 500,
            "[" * 3000,
            "1" + "+1" * 4000 + " > 0",
            "a" + ".b" * 4000,
        ],
    )
    def test_deep_nesting_is_refused(self, expression: str) -> None:
        assert "expression recursion limit exceeded" in compile_error(expression)

    def test_long_chains_of_logic_are_fine(self) -> None:
        assert matches(" && ".join(["true"] * 1000))
        assert matches(" || ".join([*["false"] * 900, "true"]))

    def test_the_deepest_that_is_allowed_works(self) -> None:
        depth = 60
        assert matches("(" * depth + "true" + ")" * depth)
        expression = "true"
        for _ in range(20):
            expression = f"[1].all(x, {expression})"
        assert matches(expression)

    @pytest.mark.parametrize(
        "macro", ["[1].map(x, {})", "[1].sortBy(x, {}).size()", "optional.of(1).optMap(x, {})"]
    )
    def test_deep_trees_are_refused_though_the_text_is_not_nested_as_deep(self, macro: str) -> None:
        expression = "1"
        for _ in range(60):
            expression = macro.format(expression)
        assert "expression recursion limit exceeded" in compile_error(f"{expression} == 1")

    def test_macros_that_double_an_expression(self) -> None:
        assert matches("optional.of(1)" + ".optMap(x, x + 1)" * 5 + ".value() == 6")
        assert "too large" in compile_error("optional.of(1)" + ".optMap(x, x)" * 50 + ".value() == 1")

    def test_length(self) -> None:
        assert "may not be more than 10240 bytes" in compile_error("true || " * 2000 + "true")

    def test_the_same_expression_is_compiled_once(self) -> None:
        assert compile_selector("1 < 2") is compile_selector("1 < 2")

    @settings(max_examples=examples(150))
    @given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join) | st.text(max_size=20))
    def test_any_text_compiles_or_says_why_not(self, text: str) -> None:
        selector = compile_selector(text)
        if selector.compile_error is None:
            with contextlib.suppress(SelectorError):
                assert selector.matches(DEVICE, Budget()) in (True, False)
        else:
            assert re.match(
                r"compilation failed|program instantiation failed|must evaluate", selector.compile_error
            )

    @pytest.mark.parametrize(
        "expression",
        [
            f"'{'a' * 4000}'.matches('{'(a?)' * 1000}b')",
            f"'{'a' * 4000}'.matches('(a?){{1000}}b')",
            f"'{'a' * 1000}'.findAll('a+b|a').size() == 0",
            "[lists.range(1000)].all(r, r.exists(i, (r + r).size() == i))",
        ],
    )
    def test_work_that_costs_little_is_paid_in_steps_before_it_is_done(self, expression: str) -> None:
        selector = compile_selector(expression)
        assert selector.cost(DEVICE) < COST_LIMIT
        with pytest.raises(OutOfStepsError):
            selector.matches(DEVICE, Budget(3_000))

    def test_costs_are_paid_in_steps(self) -> None:
        budget = Budget(100_000)
        compile_selector("lists.range(1000).all(i, i >= 0)").matches(DEVICE, budget)
        assert 0 < 100_000 - budget.left < 2_000

    @pytest.mark.parametrize(
        "doubled",
        ["{0} + {0}", "[{0}.size()] + {0}.map(x, x) + {0}"],
    )
    def test_lists_that_double_do_not_fill_the_memory(self, doubled: str) -> None:
        expression = "a29.size() > 0"
        for i in reversed(range(29)):
            expression = f"cel.bind(a{i + 1}, {doubled.format(f'a{i}')}, {expression})"
        assert re.search("at most 1000000 elements|cost limit", error(f"cel.bind(a0, [1], {expression})"))

    def test_texts_that_grow_do_not_fill_the_memory(self) -> None:
        long = "cel.bind(s, lists.range(9000).map(i, 'aaaaaaaaaa').join(), {})"
        assert re.search("characters|cost limit", error(long.format("s.replace('a', s).size() > 0")))


def test_infinity_is_ordered() -> None:
    assert matches(f"dyn({INT_MAX}) < dyn(double('+Inf'))")


@pytest.mark.parametrize("digits", [20, 4300, 9000])  # a selector may have 10,240 characters
def test_whole_numbers_of_any_number_of_digits_are_read_or_refused(digits: int) -> None:
    zeros = "0" * digits
    assert matches(f"{zeros}7 == 7")
    assert matches(f"{zeros}7u == 7u")
    assert matches(f"0x{zeros}f == 15")
    assert "invalid int literal" in compile_error(f"1{zeros} == 1")
    assert "invalid int literal" in compile_error(f"-1{zeros} == 1")
    assert "invalid uint literal" in compile_error(f"1{zeros}u == 1u")
    assert "invalid int literal" in compile_error(f"0xf{zeros} == 1")
