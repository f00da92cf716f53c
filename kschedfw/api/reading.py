"""Helpers for reading documents of other distributions: fields, errors with paths, YAML."""

from __future__ import annotations

from kschedfw.api.convert import json_name, structure
from kschedfw.api.custom import custom_key, plural_of, read_custom_object
from kschedfw.api.documents import (
    Document,
    documents,
    given_twice,
    only_document,
    read_only_document,
    yaml_parts,
    yaml_problem,
)
from kschedfw.api.field_errors import at, first_of, join, printable, quoted, shown
from kschedfw.api.files import UnreadableError, content_of, lines_of, open_file
from kschedfw.api.json_stream import is_too_deep
from kschedfw.api.names import subdomain_problems
from kschedfw.api.pod_json import pod_from_json
from kschedfw.api.scalars import Duration, read_duration, read_integer, write_time, wrong
from kschedfw.api.selector_text import SelectorSyntaxError, parse_selector
from kschedfw.api.sources import STANDARD_INPUT, read_at_most, sources
from kschedfw.api.strict import structure_strictly, unknown_fields
from kschedfw.api.yaml_loader import DEEPEST, TOO_DEEP, DocumentError, build

__all__ = [
    "DEEPEST",
    "Document",
    "DocumentError",
    "Duration",
    "STANDARD_INPUT",
    "SelectorSyntaxError",
    "TOO_DEEP",
    "UnreadableError",
    "at",
    "build",
    "content_of",
    "custom_key",
    "documents",
    "first_of",
    "given_twice",
    "is_too_deep",
    "join",
    "json_name",
    "lines_of",
    "only_document",
    "open_file",
    "parse_selector",
    "plural_of",
    "pod_from_json",
    "printable",
    "quoted",
    "read_at_most",
    "read_custom_object",
    "read_duration",
    "read_integer",
    "read_only_document",
    "shown",
    "sources",
    "structure",
    "structure_strictly",
    "subdomain_problems",
    "unknown_fields",
    "write_time",
    "wrong",
    "yaml_parts",
    "yaml_problem",
]
