"""Reading of the configuration document in a file, as strict as kube-scheduler's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from kschedfw.api.documents import (
    TEMPLATE_PROBLEM,
    given_twice,
    looks_like_template,
    yaml_parts,
    yaml_problem,
)
from kschedfw.api.field_errors import FieldError, shown
from kschedfw.api.json_stream import JsonReader, TextWindow
from kschedfw.api.records import frozen
from kschedfw.api.sources import STANDARD_INPUT, read_at_most
from kschedfw.api.yaml_loader import Built, DocumentError, build
from kschedfw.config.errors import ConfigurationError

Content: TypeAlias = Mapping[str, Any]
"""The content of a document, as plain mappings, lists and scalars."""

LARGEST: Final = 4 << 20
"""The largest configuration, in bytes; real ones have some thousand."""

_FURTHER = "only the first document of the file is read, as kube-scheduler does"


@frozen
class ConfigurationDocument:
    """A configuration document: its source, its content, and warnings for its user."""

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
    """Return the first document of a file; `-` is the standard input.

    Raises:
        ConfigurationError: it can't be parsed, a key is given twice, or `apiVersion` or `kind` is missing.
        OSError: it can't be read.
    """
    source = STANDARD_INPUT if str(path) == "-" else str(path)
    data = read_at_most(path, LARGEST)
    # Before decoding: what was read of a longer file may end within a character.
    if len(data) > LARGEST:
        raise _refused(source, f"expected a configuration of at most {LARGEST:,} bytes, found more")
    try:
        # A byte order mark, as editors on Windows write it, is no part of the text.
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused(source, f"is not UTF-8 text: {error.reason} at byte {error.start}") from None
    return parse_document(text, source)


def parse_document(text: str, source: str) -> ConfigurationDocument:
    """Return the first document of a text; see `read_document`."""
    try:
        # A text may have lone surrogates, which no file in UTF-8 has, and which no output could show.
        text.encode()
    except UnicodeEncodeError as error:
        raise _refused(source, f"is no text: {error.reason} at character {error.start}") from None
    if len(text) > LARGEST:
        raise _refused(
            source, f"expected a configuration of at most {LARGEST:,} characters, found {len(text):,}"
        )
    content, further = _parse(text, source)
    if not isinstance(content, Mapping):
        raise _refused(source, f"expected a configuration, which is an object, found {shown(content)}")
    return document_of(content, source, (_FURTHER,) if further else ())


def document_of(content: Content, source: str, warnings: tuple[str, ...] = ()) -> ConfigurationDocument:
    """Return the document with content that was parsed already.

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
    """Return the first document, and whether there are more."""
    # JSON first: it may be indented with tabs, which YAML refuses.
    if text.lstrip().startswith("{"):
        window = TextWindow([text])
        try:
            window.skip_space()
            (built,) = JsonReader(window, LARGEST).read()
            is_all = not window.skip_space()
        except DocumentError:
            # Braces also open YAML in flow style: YAML's error is the one to report.
            is_all = False
        if is_all:
            return _checked(built, 0, source), False
    parts = [(line, part) for line, part in yaml_parts([text]) if not _is_empty(part)]
    if not parts:
        raise _refused(source, "expected a KubeSchedulerConfiguration, found no document")
    line, part = parts[0]
    try:
        *_, built = build(part, largest=LARGEST, whole=True)
    except DocumentError as error:
        hint = f" (it {TEMPLATE_PROBLEM})" if looks_like_template(part) else ""
        raise _refused(source, f"yaml: {yaml_problem(error, line)}{hint}") from None
    return _checked(built, line, source), len(parts) > 1


def _is_empty(part: str) -> bool:
    """Tell whether the text has only comments and directives."""
    return all(not line.strip() or line.lstrip()[0] in "%#" for line in part.splitlines())


def _checked(built: Built, first_line: int, source: str) -> object:
    if built.duplicates:
        told = given_twice(built.duplicates, first_line)
        raise ConfigurationError(source, [FieldError("", f"strict decoding error: {each}") for each in told])
    return built.content
