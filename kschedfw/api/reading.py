"""What documents of other distributions are read with: fields, errors with paths, YAML."""

from __future__ import annotations

from kschedfw.api.convert import json_name, structure
from kschedfw.api.field_errors import at
from kschedfw.api.scalars import read_integer, wrong
from kschedfw.api.strict import unknown_fields

__all__ = ["at", "json_name", "read_integer", "structure", "unknown_fields", "wrong"]
