"""From a file to the one document in it that counts, read as strictly as kube-scheduler reads it."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import yaml

from kschedfw.api.documents import (
    TEMPLATE_PROBLEM,
    is_too_deep,
    looks_like_template,
    yaml_parts,
    yaml_problem,
)
from kschedfw.api.field_errors import FieldError
from kschedfw.api.yaml_loader import ManifestLoader
from kschedfw.config.errors import ConfigurationError

Content: TypeAlias = Mapping[str, Any]
"""What a document says, as plain mappings, lists and scalars."""

_FURTHER = "only the first document of the file is read, as kube-scheduler does"


@attrs.frozen
class ConfigurationDocument:
    """A configuration document: where it comes from, what it says, and what should be known about it."""

    source: str
    content: Content
    warnings: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        return str(self.content["apiVersion"])

    @property
    def kind(self) -> str:
        return str(self.content["kind"])


def read_document(path: Path | str) -> ConfigurationDocument:
    """The first document of a file.

    Raises:
        ConfigurationError: it can't be parsed, a key is given twice, or it doesn't say what it is.
        OSError: it can't be read.
    """
    source = str(path)
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused(source, f"is not UTF-8 text: {error.reason} at byte {error.start}") from None
    return parse_document(text, source)


def parse_document(text: str, source: str) -> ConfigurationDocument:
    """The first document of a text; see `read_document`."""
    content, further = _parse(text, source)
    if not isinstance(content, Mapping):
        raise _refused(source, f"a configuration is an object, not {type(content).__name__}")
    return document_of(content, source, (_FURTHER,) if further else ())


def document_of(content: Content, source: str, warnings: tuple[str, ...] = ()) -> ConfigurationDocument:
    """What was parsed already, if it says what it is.

    Raises:
        ConfigurationError: `apiVersion` or `kind` is missing.
    """
    errors = [
        FieldError.required(key, f"Object '{name}' is missing")
        for key, name in (("apiVersion", "apiVersion"), ("kind", "Kind"))
        if not content.get(key)
    ]
    if errors:
        raise ConfigurationError(source, errors)
    return ConfigurationDocument(source, content, warnings)


def _refused(source: str, problem: str) -> ConfigurationError:
    return ConfigurationError(source, [FieldError("", problem)])


def _parse(text: str, source: str) -> tuple[object, bool]:
    """The first document, and whether there are more."""
    if text.lstrip().startswith("{"):
        pairs = _Pairs()
        try:
            content = json.loads(text, object_pairs_hook=pairs)
        except (ValueError, RecursionError):
            pass  # braces may also open YAML in its flow style, which has the say on what is wrong
        else:
            _refuse_duplicates(source, pairs.duplicates)
            return content, False
    parts = [(line, part) for line, part in yaml_parts(text) if not _is_empty(part)]
    if not parts:
        raise _refused(source, "has no document in it")
    return _load(*parts[0], source), len(parts) > 1


def _is_empty(part: str) -> bool:
    """Whether there are only comments and directives."""
    return all(not line.strip() or line.lstrip()[0] in "%#" for line in part.splitlines())


def _load(first_line: int, part: str, source: str) -> object:
    if is_too_deep(part):
        raise _refused(source, "is nested too deeply")
    loader = _StrictLoader(part)
    try:
        content = loader.get_single_data()
    except (yaml.YAMLError, ValueError) as error:
        hint = f" (it {TEMPLATE_PROBLEM})" if looks_like_template(part) else ""
        raise _refused(source, f"yaml: {yaml_problem(error, first_line)}{hint}") from None
    finally:
        loader.dispose()
    duplicates = [
        f'line {first_line + line}: key "{key}" already set in map' for line, key in loader.duplicates
    ]
    _refuse_duplicates(source, duplicates)
    return content


def _refuse_duplicates(source: str, duplicates: list[str]) -> None:
    if duplicates:
        raise ConfigurationError(
            source, [FieldError("", f"strict decoding error: {duplicate}") for duplicate in duplicates]
        )


class _Pairs:
    """Makes objects of a JSON text, and notes keys that an object has twice."""

    def __init__(self) -> None:
        self.duplicates: list[str] = []

    def __call__(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        seen: dict[str, object] = {}
        for key, value in pairs:
            if key in seen:
                self.duplicates.append(f'duplicate field "{key}"')
            seen[key] = value
        return seen


class _StrictLoader(ManifestLoader):
    """Notes keys that a mapping has twice; of which the last would win otherwise."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.duplicates: list[tuple[int, str]] = []

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (known := (key.tag, key.value)) in seen:
                    self.duplicates.append((key.start_mark.line, key.value))
                seen.add(known)
        return super().construct_mapping(node, deep)
