"""What documents of other distributions are read with: fields, errors with paths, YAML."""

from __future__ import annotations

from kschedfw.api.convert import json_name, structure
from kschedfw.api.documents import Document, documents, given_twice, yaml_parts, yaml_problem
from kschedfw.api.field_errors import at, first_of, join, printable, shown
from kschedfw.api.scalars import read_integer, wrong
from kschedfw.api.sources import UnreadableError, open_file, sources
from kschedfw.api.strict import structure_strictly, unknown_fields
from kschedfw.api.yaml_loader import DocumentError, build

__all__ = [
    "Document",
    "DocumentError",
    "UnreadableError",
    "at",
    "build",
    "documents",
    "first_of",
    "given_twice",
    "join",
    "json_name",
    "open_file",
    "printable",
    "read_integer",
    "shown",
    "sources",
    "structure",
    "structure_strictly",
    "unknown_fields",
    "wrong",
    "yaml_parts",
    "yaml_problem",
]
