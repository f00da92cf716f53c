"""From files to documents: finds the files, cuts them into documents, parses each on its own.

A document that can't be parsed becomes a `Document` with a problem; it doesn't hide its neighbours.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import yaml

from kschedfw.api.yaml_loader import ManifestLoader

_SUFFIXES: Final = (".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz")
_SEPARATOR: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_TEMPLATE: Final = re.compile(r"^[^#\n]*\{\{.*?\}\}", re.MULTILINE)
_NEXT_JSON: Final = re.compile(r"^\s*(?=\{)", re.MULTILINE)
# Only what matches can be nested deeply: many brackets, or much indentation, or a line such as `- - - -`.
_BRACKETS: Final = re.compile(r"[\[{]")
_DEEP_BLOCK: Final = re.compile(r"^ {200}|(?:[-?:][ \t]+){100}", re.MULTILINE)
_DEEPEST: Final = 500
_SPACE: Final = re.compile(r"\s*")
_TOO_DEEP: Final = "is nested too deeply"
TEMPLATE_PROBLEM: Final = (
    "contains template syntax ({{ … }}) that has not been rendered; "
    "render it first, for example with `helm template`"
)


@attrs.frozen
class Source:
    """A text that manifests are read from; `problem` says why there is none."""

    name: str
    text: str = ""
    problem: str = ""


@attrs.frozen
class Document:
    """A parsed document and its number in its source, from 1; `problem` says why there is no content."""

    number: int
    content: Any = None
    problem: str = ""


def sources(paths: Iterable[Path | str]) -> Iterator[Source]:
    """The texts of files, of all manifests in directories (in the order of their names), of stdin for `-`."""
    for given in paths:
        if str(given) == "-":
            yield Source("standard input", sys.stdin.read().removeprefix("\ufeff"))
            continue
        path = Path(given)
        if not path.is_dir():
            yield _source(path)
            continue
        for found in sorted(path.rglob("*")):
            if found.name.lower().endswith(_SUFFIXES) and found.is_file():
                yield _source(found)


def _source(path: Path) -> Source:
    try:
        data = path.read_bytes()
        if path.name.lower().endswith(".gz"):
            data = gzip.decompress(data)
        return Source(str(path), data.decode("utf-8-sig"))
    except OSError as error:
        return Source(str(path), problem=f"can't be read: {error.strerror or error}")
    except (EOFError, zlib.error) as error:
        return Source(str(path), problem=f"can't be unpacked: {error}")
    except UnicodeDecodeError as error:
        return Source(str(path), problem=f"is not UTF-8 text: {error.reason} at byte {error.start}")


def documents(text: str) -> Iterator[Document]:
    """The documents of a YAML or JSON text; those without content are counted, but left out."""
    text = text.removeprefix("\ufeff")
    if text.lstrip()[:1] in ("{", "["):
        found = list(_json_documents(text))
        if any(document.problem for document in found):
            # Braces may as well open a template, or YAML in its flow style, or JSON documents may be separated as YAML
            # documents are: whoever makes more of it has the say.
            retried = list(_yaml_documents(text))
            if _success(retried) > _success(found) or (not _success(found)[0] and looks_like_template(text)):
                found = retried
        yield from found
    else:
        yield from _yaml_documents(text)


def _success(found: Sequence[Document]) -> tuple[int, int]:
    """How many documents could be read, and (negative) how many couldn't."""
    failed = sum(bool(document.problem) for document in found)
    return len(found) - failed, -failed


def _json_documents(text: str) -> Iterator[Document]:
    """JSON values one after another, whatever space is between them."""
    decoder, number = json.JSONDecoder(), 0
    position = _end_of_space(text, 0)
    while position < len(text):
        number += 1
        try:
            content, position = decoder.raw_decode(text, position)
        except ValueError as error:
            yield Document(number, problem=f"is not valid JSON: {error}")
            # Where each line is a document, the next may be all right.
            following = _NEXT_JSON.search(text, text.find("\n", position) + 1 or len(text))
            position = following.end() if following else len(text)
        except RecursionError:
            yield Document(number, problem=_TOO_DEEP)
            return
        else:
            yield Document(number, content)
            position = _end_of_space(text, position)


def _end_of_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _yaml_documents(text: str) -> Iterator[Document]:
    number, unrendered = 0, False
    for first_line, part in yaml_parts(text):
        if not part.strip():
            continue
        number += 1
        try:
            if is_too_deep(part):
                yield Document(number, problem=_TOO_DEEP)
                continue
            content = yaml.load(part, Loader=ManifestLoader)  # a safe loader
        except (yaml.YAMLError, ValueError) as error:
            if looks_like_template(part):
                if not unrendered:  # once for a file says it all
                    yield Document(number, problem=TEMPLATE_PROBLEM)
                unrendered = True
            elif not _is_preamble(part):
                yield Document(number, problem=f"is not valid YAML: {yaml_problem(error, first_line)}")
            continue
        if content is not None:
            yield Document(number, content)


def looks_like_template(text: str) -> bool:
    """Whether there is template syntax in it, outside of comments."""
    return _TEMPLATE.search(text) is not None


def is_too_deep(part: str) -> bool:
    """Whether loading it would need too much of the stack, which the loader in C doesn't survive."""
    if len(_BRACKETS.findall(part)) < _DEEPEST and not _DEEP_BLOCK.search(part):
        return False
    depth = 0
    try:
        for event in yaml.parse(part, Loader=ManifestLoader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > _DEEPEST:
                return True
    except (yaml.YAMLError, ValueError):
        pass  # loading stops there, too, and says what is wrong
    return False


def yaml_parts(text: str) -> Iterator[tuple[int, str]]:
    """The text between the `---`, each part with the number of its first line."""
    start, line = 0, 1
    for match in _SEPARATOR.finditer(text):
        part = text[start : match.start()]
        yield line, part
        line += part.count("\n")
        start = match.end()
    yield line, text[start:]


def _is_preamble(part: str) -> bool:
    """Whether there are only directives such as `%YAML 1.1`, and comments."""
    return all(not line.strip() or line[0] in "%#" for line in part.splitlines())


def yaml_problem(error: Exception, first_line: int) -> str:
    """What the loader says, with the line in the file."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        parts = ", ".join(part for part in (error.context, error.problem) if part)
        return f"line {first_line + error.problem_mark.line}: {parts}"
    return str(error).partition("\n")[0]
