"""JSON as Go's encoding/json reads it."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_kubernetes.http_extender.go_json import (
    Json,
    WireError,
    decode,
    elements,
    encode,
    entries,
    fields,
    integer,
    items,
    manifest,
    members,
    string,
    string_map,
    strings,
)

from kschedfw.testing.properties import examples

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_what_is_encoded_is_decoded(value: object) -> None:
    assert decode(encode(value)) == value


@given(JSON, st.sampled_from(["", " ", "\n", " trailing", "{", "]"]))
def test_what_follows_the_first_value_is_not_looked_at(value: object, rest: str) -> None:
    assert decode(b" \r\n\t" + json.dumps([value]).encode() + rest.encode()) == [value]


@given(st.binary())
def test_any_bytes_are_json_or_an_error(body: bytes) -> None:
    with suppress(WireError):
        decode(body)


def test_invalid_utf8_is_replaced() -> None:
    assert decode(b'"\xff"') == "\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "it is empty"),
        (b"  \n", "it is empty"),
        (b"{", "Expecting property name"),
        (b"<html>busy</html>", "'<html>busy</html>'"),
        (b"x" * 1000, "x" * 60 + "…"),
        (b"NaN", "NaN is no number"),
        (b"[-Infinity]", "-Infinity is no number"),
        (b"[" * 100_000, "nested too deeply"),
        (b"1" * 5000, "limit"),
    ],
)
def test_what_is_no_json(body: bytes, says: str) -> None:
    with pytest.raises(WireError, match=r"^no JSON: ") as caught:
        decode(body)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 300


def test_names_of_fields_match_in_any_case() -> None:
    assert fields({"NodeNames": 1, "ERROR": 2}, "it") == {"nodenames": 1, "error": 2}


def test_null_is_as_good_as_missing() -> None:
    assert fields(None, "it") == {}
    assert string(None, "it") == ""
    assert integer(None, "it") == 0
    assert list(items(None, "it")) == []
    assert list(entries(None, "it")) == []
    assert string_map(None, "it") == {}
    assert manifest(None, "it") == {}
    assert strings(None, "it") is None  # but a list that isn't there is no empty list
    assert strings([], "it") == ()


@pytest.mark.parametrize(
    ("read", "value", "says"),
    [
        (fields, [], "it: must be an object, not '[]'"),
        (string, 7, "it: must be a string, not '7'"),
        (integer, "7", "it: must be an integer, not '\"7\"'"),
        (integer, 7.0, "it: must be an integer, not '7.0'"),
        (integer, True, "it: must be an integer, not 'true'"),
        (integer, 1 << 63, "it: must be an integer of 64 bits"),
        (integer, -(1 << 63) - 1, "it: must be an integer of 64 bits"),
        (strings, {}, "it: must be a list, not '{}'"),
        (strings, ["a", 1], "it[1]: must be a string, not '1'"),
        (string_map, "x", "it: must be an object, not '\"x\"'"),
        (string_map, {"n": []}, "it[n]: must be a string, not '[]'"),
        (manifest, "x", "it: must be an object, not '\"x\"'"),
    ],
)
def test_another_type_is_an_error(read: object, value: object, says: str) -> None:
    with pytest.raises(WireError) as caught:
        read(value, "it")  # type: ignore[operator]
    assert str(caught.value) == says


@settings(max_examples=examples(20))
@given(st.dictionaries(st.text(), JSON, max_size=3))
def test_an_object_is_taken_apart(value: dict[str, object]) -> None:
    lowered = {key.lower(): content for key, content in value.items()}
    parts = members(json.dumps(value).encode(), "it")
    assert {key: decode(part) for key, part in parts.items()} == lowered


@settings(max_examples=examples(20))
@given(st.lists(JSON, max_size=3), st.sampled_from(["", "\n", " trailing", "]"]))
def test_a_list_is_taken_apart(value: list[object], rest: str) -> None:
    parts = elements(Json(json.dumps(value).encode() + rest.encode()), "it")
    assert [decode(part) for part in parts] == value


@given(st.binary())
def test_any_bytes_are_taken_apart_or_an_error(body: bytes) -> None:
    with suppress(WireError):
        members(body, "it")
    with suppress(WireError):
        elements(Json(body), "it")


def test_what_go_mends_is_mended() -> None:
    parts = members(b'{"A":"\xff","b":"\\ud800"} and more', "it")
    assert decode(parts["a"]) == "\N{REPLACEMENT CHARACTER}"
    assert decode(parts["b"]) == "\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("take", "text", "says"),
    [
        (members, b"[]", "it: must be an object, not '[]'"),
        (members, b"", "no JSON: it is empty"),
        (members, b"[" * 100_000, "no JSON: it is nested too deeply"),
        (elements, b"{}", "it: must be a list, not '{}'"),
    ],
)
def test_what_cannot_be_taken_apart(take: object, text: bytes, says: str) -> None:
    with pytest.raises(WireError) as caught:
        take(Json(text), "it")  # type: ignore[operator]
    assert str(caught.value) == says


def test_parts_are_encoded_as_they_are() -> None:
    assert encode({"a": [Json(b"1.0"), "\u00e9"]}) == '{"a":[1.0,"\u00e9"]}'.encode()
    assert json.loads(encode({"a": Json(b"[1]"), "b": "\ud800"})) == {"a": [1], "b": "\ud800"}
