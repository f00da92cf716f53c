"""What documents of other distributions are read with: fields, errors with paths, YAML."""

from __future__ import annotations

from kschedfw.api.convert import json_name, structure
from kschedfw.api.documents import given_twice, yaml_parts, yaml_problem
from kschedfw.api.field_errors import at, join, printable, shown
from kschedfw.api.scalars import read_integer, wrong
from kschedfw.api.sources import open_file, sources
from kschedfw.api.strict import unknown_fields
from kschedfw.api.yaml_loader import DocumentError, build

__all__ = [
    "DocumentError",
    "at",
    "build",
    "given_twice",
    "join",
    "json_name",
    "open_file",
    "printable",
    "read_integer",
    "shown",
    "sources",
    "structure",
    "unknown_fields",
    "wrong",
    "yaml_parts",
    "yaml_problem",
]
