"""Files are read as strictly as kube-scheduler reads them: one document, each key once."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kschedfw import ConfigurationError
from kschedfw.config.document import LARGEST, parse_document, read_document

HEAD = "apiVersion: v1\nkind: Thing\n"


def refused(text: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        parse_document(text, "c.yaml")
    assert caught.value.source == "c.yaml"
    return [str(error) for error in caught.value.errors]


def test_parsed_document_has_api_version_kind_and_content() -> None:
    document = parse_document(HEAD + "a: [1, x]\n", "c.yaml")
    assert (document.api_version, document.kind) == ("v1", "Thing")
    assert document.content == {"apiVersion": "v1", "kind": "Thing", "a": [1, "x"]}
    assert document.warnings == ()


@pytest.mark.parametrize(
    ("text", "missing"),
    [("kind: Thing", "apiVersion"), ("apiVersion: v1", "Kind"), ("{apiVersion: v1, kind: ''}", "Kind")],
)
def test_one_that_does_not_say_what_it_is_is_refused(text: str, missing: str) -> None:
    (error,) = refused(text)
    assert f"Object '{missing}' is missing" in error


def test_the_first_document_counts_and_more_are_warned_of() -> None:
    document = parse_document(f"# comment\n---\n{HEAD}---\nanything: else\n", "c.yaml")
    assert document.kind == "Thing"
    (warning,) = document.warnings
    assert "only the first document" in warning


def test_what_is_wrong_in_a_later_document_does_not_matter() -> None:
    assert parse_document(f"{HEAD}---\na: b: c\n", "c.yaml").kind == "Thing"


@pytest.mark.parametrize(
    "text", [f"---\n{HEAD}", f"{HEAD}---\n", f"{HEAD}---\n# no more\n", f"%YAML 1.1\n---\n{HEAD}"]
)
def test_separators_around_a_single_document_are_no_more_documents(text: str) -> None:
    document = parse_document(text, "c.yaml")
    assert (document.kind, document.warnings) == ("Thing", ())


def test_json_is_read_with_tabs_too() -> None:
    document = parse_document('{\n\t"apiVersion": "v1",\n\t"kind": "Thing"\n}\n', "c.json")
    assert document.kind == "Thing"


class TestDuplicates:
    def test_a_key_given_twice_is_named_with_its_line_and_so_is_every_other(self) -> None:
        assert refused("---\n" + HEAD + "a:\n  b: 1\n  b: 2\nkind: Other\n") == [
            'strict decoding error: line 6: key "b" already set in map',
            'strict decoding error: line 7: key "kind" already set in map',
        ]

    def test_the_same_key_in_different_maps_is_fine(self) -> None:
        parse_document(HEAD + "items: [{a: 1}, {a: 2}]\n", "c.yaml")

    def test_an_anchor_may_be_merged_and_overridden(self) -> None:
        text = HEAD + "base: &base {a: 1, b: 2}\nother: {<<: *base, a: 3}\n"
        assert parse_document(text, "c.yaml").content["other"] == {"a": 3, "b": 2}

    def test_in_json(self) -> None:
        (error,) = refused('{"apiVersion": "v1", "kind": "A", "kind": "B"}')
        assert error == 'strict decoding error: duplicate field "kind"'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: b\nc: d: e\n", "yaml: line 2: mapping values are not allowed"),
        ("# comment\n---\na: [1\nb: 2\n", "yaml: line 4: "),
        ('{"a": 1,,}', "yaml: line 1: "),
        ("- a\n- b\n", 'expected a configuration, which is an object, found ["a","b"]'),
        ("just text", 'expected a configuration, which is an object, found "just text"'),
        ("", "expected a KubeSchedulerConfiguration, found no document"),
        ("# nothing\n---\n", "expected a KubeSchedulerConfiguration, found no document"),
        ("[" * 600, "nested too deeply"),
        ("key: [ many } brackets\n" * 600, "yaml: line 1: while parsing a flow sequence"),
        ("a: {{ .Values.a }}\n", "template syntax"),
    ],
)
def test_what_cannot_be_parsed_is_refused_with_its_line(text: str, problem: str) -> None:
    (error,) = refused(text)
    assert problem in error


def test_a_file_that_cannot_be_read_is_the_systems_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_document(tmp_path / "missing.yaml")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(gzip.compress(HEAD.encode()))
    with pytest.raises(ConfigurationError, match="is not UTF-8 text"):
        read_document(path)


def test_a_file_that_is_too_long_is_told_so_even_where_reading_stops_within_a_character(
    tmp_path: Path,
) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(b"#" * LARGEST + "é".encode())
    with pytest.raises(ConfigurationError, match=r"at most 4,194,304 bytes, found more"):
        read_document(path)
