"""Splitting of texts into documents, and reading of each document as JSON or YAML.

A document that can't be read becomes a `Document` with a problem, and the other documents are read. The time is
linear in the length of any text.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from kschedfw.api.field_errors import first_of, shown
from kschedfw.api.files import UnreadableError, open_file
from kschedfw.api.json_stream import JsonReader, ReadItem, TextWindow
from kschedfw.api.limits import DEFAULT_LIMITS, Limits, how_to_raise
from kschedfw.api.records import frozen
from kschedfw.api.yaml_loader import Built, DocumentError, build

_SEPARATOR: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_QUOTED_KEY: Final = re.compile(r'[\[{]\s*+["\[{}\]]')
_OBJECT_AT_MARGIN: Final = re.compile(r"^\{", re.MULTILINE)
TEMPLATE_PROBLEM: Final = (
    "contains template syntax ({{ … }}) that has not been rendered; "
    "render it first, for example with `helm template`"
)


@frozen
class Document:
    """A document that was read, or an item of a long list.

    Attributes:
        number: of the document in its source, from 1.
        content: its content, as dicts, lists and scalars; or what `read_item` made of it.
        problem: the reason why it can't be used; empty if it can. A document with a problem may have content.
        item: the item of the document, such as `items[3]`; empty for the document itself, in which `TAKEN`
            stands for such items.
        end: the number of characters of the source that are read.
        text: the JSON of an item.
    """

    number: int
    content: Any = None
    problem: str = ""
    item: str = ""
    end: int = 0
    text: str = ""


def documents(
    pieces: Iterable[str], limits: Limits = DEFAULT_LIMITS, read_item: ReadItem | None = None
) -> Iterator[Document]:
    """Yield the documents of a YAML or JSON text; empty ones are counted, but omitted.

    `read_item` may take over the reading of items of long JSON lists; see `JsonReader`.

    Raises:
        UnreadableError: as the pieces raise it, and where a document is larger than the limit.
    """
    return _Cutter(limits, read_item).documents(pieces)


@frozen
class _Broken:
    """Invalid JSON. It may be YAML instead if nothing before it in its part was JSON."""

    error: DocumentError
    may_be_yaml: bool


class _Cutter:
    """Splits a source into numbered documents."""

    def __init__(self, limits: Limits, read_item: ReadItem | None) -> None:
        self._limits = limits
        self._read_item = read_item
        self._number = 0
        self._told_of_template = False

    def documents(self, pieces: Iterable[str]) -> Iterator[Document]:
        window = TextWindow(pieces)
        broken = yield from self._json(window, 0)
        end = window.end
        parts = yaml_parts(window.rest(), window.line(), self._limits)
        if broken is not None:
            try:
                line, part = next(parts)
            except UnreadableError:
                yield self._problem(broken)
                raise
            yield from self._recovered(part, line, end, broken)
            end += len(part)
        for line, part in parts:
            yield from self._part(part, line, end)
            end += len(part)

    def _part(self, part: str, line: int, begin: int) -> Iterator[Document]:
        if not part or part.isspace():
            return
        window = TextWindow([part], line)
        broken = yield from self._json(window, begin)
        left = "".join(window.rest())
        if broken is not None:
            yield from self._recovered(left, window.line(), begin, broken)
        elif left.strip():
            yield from self._yaml(left, window.line(), begin)

    # --- YAML ---

    def _yaml(self, part: str, line: int, begin: int) -> Iterator[Document]:
        self._number += 1
        try:
            yield from self._built(build(part, largest=self._limits.object), line, begin)
        except DocumentError as error:
            if looks_like_template(part):
                yield from self._template()
            elif not _is_preamble(part):
                yield Document(self._number, problem=f"is not valid YAML: {yaml_problem(error, line)}")

    def _template(self) -> Iterator[Document]:
        # Report the problem once per file.
        if not self._told_of_template:
            yield Document(self._number, problem=TEMPLATE_PROBLEM)
        self._told_of_template = True

    def _built(self, found: Iterable[Built], line: int, begin: int) -> Iterator[Document]:
        for each in found:
            end = begin + each.end
            if each.duplicates:
                told = first_of(given_twice(each.duplicates, line), "keys")
                problem = f"strict decoding error: {', '.join(told)}"
                yield Document(self._number, each.content, problem, each.item, end)
            elif each.content is not None:
                yield Document(self._number, each.content, "", each.item, end, each.text)

    # --- JSON ---

    def _json(self, window: TextWindow, begin: int) -> Generator[Document, None, _Broken | None]:
        """Yield consecutive JSON values, up to other text; `begin` is the position of the window's start."""
        is_first = True
        while True:
            start, taken = window.end, False
            if window.skip_space() not in ("{", "["):
                # White space is indentation if this is YAML.
                window.go_back(start)
                return None
            self._number += 1
            start = window.end
            try:
                reader = JsonReader(window, self._limits.object, self._read_item)
                for document in self._built(reader.read(), 0, begin):
                    taken = True
                    yield document
            except DocumentError as error:
                return _Broken(error, is_first and not taken and window.go_back(start))
            is_first = False

    def _problem(self, broken: _Broken) -> Document:
        return Document(self._number, problem=f"is not valid JSON: {yaml_problem(broken.error, 0)}")

    def _recovered(self, part: str, line: int, begin: int, broken: _Broken) -> Iterator[Document]:
        """Yield the documents of a part that looks like JSON but isn't valid JSON."""
        segments = _at_margin(part)
        if broken.may_be_yaml:
            # Braces also open YAML in flow style, and templates.
            try:
                yield from self._built(list(build(part, largest=self._limits.object)), line, begin)
            except DocumentError as error:
                if looks_like_template(segments[0]):
                    yield from self._template()
                    return
                if not _QUOTED_KEY.match(part):
                    yield Document(self._number, problem=f"is not valid YAML: {yaml_problem(error, line)}")
                    return
            else:
                return
        yield self._problem(broken)
        # If each line is a document, the next one may be valid.
        for segment, next_segment in pairwise(segments):
            line += segment.count("\n")
            window = TextWindow([next_segment], line)
            again = yield from self._json(window, begin)
            if again is not None:
                yield self._problem(again)
            elif window.skip_space():
                yield self._problem(_Broken(DocumentError("Extra data", window.line()), may_be_yaml=False))


def _at_margin(part: str) -> Sequence[str]:
    """Return the part, split before every line but the first that begins with a brace."""
    starts = [0, *(match.start() for match in _OBJECT_AT_MARGIN.finditer(part, 1)), len(part)]
    return [part[start:end] for start, end in pairwise(starts)]


def looks_like_template(text: str) -> bool:
    """Tell whether there is template syntax in the text, outside of comments."""
    start = text.find("{{")
    while start >= 0:
        line_start = text.rfind("\n", 0, start) + 1
        line_end = text.find("\n", start)
        line_end = len(text) if line_end < 0 else line_end
        if text.find("#", line_start, start) < 0 and text.find("}}", start, line_end) >= 0:
            return True
        start = text.find("{{", line_end)
    return False


def yaml_parts(
    pieces: Iterable[str], line: int = 1, limits: Limits = DEFAULT_LIMITS
) -> Iterator[tuple[int, str]]:
    """Yield the texts between the `---`, each with the number of its first line.

    Raises:
        UnreadableError: as the pieces raise it, and where a part is larger than the limit.
    """
    # The chunks of the present part.
    kept: list[str] = []
    size = 0
    for lines in _whole_lines(pieces, limits):
        start = 0
        for match in _SEPARATOR.finditer(lines):
            part = "".join((*kept, lines[start : match.start()]))
            yield line, part
            line += part.count("\n")
            start, size = match.end(), 0
            kept.clear()
        kept.append(lines[start:])
        size += len(lines) - start
        _check_size(size, limits)
    yield line, "".join(kept)


def _whole_lines(pieces: Iterable[str], limits: Limits) -> Iterator[str]:
    """Yield the same text in pieces that end where a line ends."""
    kept: list[str] = []
    size = 0
    for piece in pieces:
        cut = piece.rfind("\n") + 1
        if cut:
            yield "".join((*kept, piece[:cut]))
            kept.clear()
            size = 0
        kept.append(piece[cut:])
        size += len(piece) - cut
        _check_size(size, limits)
    yield "".join(kept)


def _check_size(size: int, limits: Limits) -> None:
    if size > limits.document:
        limit = how_to_raise("document", limits.document)
        raise UnreadableError(f"has a document of more than {limits.document} characters: {limit}")


def read_only_document(
    path: Path | str, largest: int, *, noun: str, part: str
) -> tuple[Mapping[str, Any], str]:
    """Return the object in a YAML file that is one document, and the text that it is in, with the file's lines.

    Errors call it a `noun`, which has at least the field `part`.

    Raises:
        UnreadableError: the file has more than `largest` bytes, isn't UTF-8 or YAML, has several documents or a key
            twice, or has no object.
        OSError: it can't be read.
    """
    with open_file(path) as file:
        content, text = only_document(file.read(largest + 1), largest, noun=noun)
    if not isinstance(content, Mapping):
        found = "nothing" if content is None else shown(content)
        raise UnreadableError(f"expected an object with {part}, found {found}")
    return content, text


def only_document(data: bytes, largest: int, *, noun: str) -> tuple[object, str]:
    """Return the content of a YAML text that is one document, None if it has none; see `read_only_document`.

    Raises:
        UnreadableError: the text has more than `largest` bytes, isn't UTF-8 or YAML, or has several documents or a key
            twice.
    """
    if len(data) > largest:
        raise UnreadableError(f"expected a {noun} of at most {largest:,} bytes, found more")
    try:
        parts = [(line, part) for line, part in yaml_parts([data.decode("utf-8-sig")]) if part.strip()]
        if len(parts) > 1:
            raise UnreadableError(
                f"expected one document, the {noun}, found {len(parts)}; --- separates documents"
            )
        text = "".join("\n" * (line - 1) + part for line, part in parts)
        built = list(build(text, largest=largest, whole=True)) if text else []
    except UnicodeDecodeError as error:
        raise UnreadableError(f"is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except DocumentError as error:
        raise UnreadableError(f"is not valid YAML: {yaml_problem(error, 1)}") from None
    content = built[-1].content if built else None
    if built and built[-1].duplicates:
        raise UnreadableError(given_twice(built[-1].duplicates, 1)[0])
    return content, text


def _is_preamble(part: str) -> bool:
    """Tell whether there are only directives such as `%YAML 1.1`, and comments."""
    return all(not line.strip() or line[0] in "%#" for line in part.splitlines())


def yaml_problem(error: DocumentError, first_line: int) -> str:
    """Return the problem, with the line in the file."""
    return f"line {first_line + error.line}: {error.why}" if error.line >= 0 else error.why


def given_twice(duplicates: Sequence[tuple[int, str]], first_line: int) -> list[str]:
    """Return a message, in Kubernetes' words, for each duplicate key of an object."""
    return [
        f"line {first_line + line}: key {shown(key)} already set in map"
        if line >= 0
        else f"duplicate field {shown(key)}"
        for line, key in duplicates
    ]
