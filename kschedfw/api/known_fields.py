"""The fields of manifests that Kubernetes doesn't know: the API server's field validation.

A table has the known fields (`known_fields.txt`, written by `.ci/known_fields.py`): all fields of the kinds, in
many versions of Kubernetes, since objects may come from a cluster of any age. `status` is checked like all
other fields, since the API server decodes whole objects.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Final

from kschedfw.api.field_errors import STRICT, FieldError, UnknownField, at

FILE: Final = Path(__file__).with_suffix(".txt")

_MOST_NAMED: Final = 50
"""The most unknown fields of an object that are reported one by one."""


class FieldValidation(StrEnum):
    """The treatment of unknown fields: `kubectl --validate` and the API server's `fieldValidation`."""

    IGNORE = "ignore"
    """Ignore them silently."""
    WARN = "warn"
    """Ignore them with a warning."""
    STRICT = "strict"
    """Refuse the object."""


class _Type(dict[str, "_Type | None"]):
    """The fields of a type by name, each with its own type if that has fields, too."""

    name = ""


def unknown_fields(manifest: Mapping[str, object], kind: str) -> tuple[FieldError, ...]:
    """Return the fields that Kubernetes doesn't know in an object of a kind of `kinds.KINDS`, outer ones first."""
    known = _types()[kind]
    # The usual case, for which no paths have to be built.
    if _all_known(manifest, known):
        return ()
    unknown = _unknown(manifest, known, "")
    named: list[FieldError] = [
        UnknownField.near(at(path, key), key, type_, type_.name)
        for path, key, type_ in islice(unknown, _MOST_NAMED)
    ]
    if more := sum(1 for _ in unknown):
        named.append(FieldError("", f"{STRICT}{more} unknown fields more"))
    return tuple(named)


def as_warning(error: FieldError) -> FieldError:
    """Return the same problem as a warning."""
    return FieldError("", str(error).removeprefix(STRICT))


def _all_known(content: Mapping[str, object], known: _Type) -> bool:
    for key, value in content.items():
        if key not in known:
            return False
        type_ = known[key]
        if type_ is None:
            continue
        if isinstance(value, dict):
            if not _all_known(value, type_):
                return False
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, dict) and not _all_known(item, type_):
                    return False
    return True


def _unknown(content: Mapping[str, object], known: _Type, path: str) -> Iterator[tuple[str, str, _Type]]:
    """Yield each unknown field: the path of its owner, its name, and the owner's type."""
    for key, value in content.items():
        if key not in known:
            yield path, str(key), known
            continue
        type_ = known[key]
        if type_ is None:
            continue
        inside = at(path, key)
        if isinstance(value, dict):
            yield from _unknown(value, type_, inside)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, dict):
                    yield from _unknown(item, type_, at(inside, index))


@functools.cache
def _types() -> Mapping[str, _Type]:
    """Return the table, read when it is first needed."""
    lines = [line.split() for line in FILE.read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
    types = {name: _Type() for name, *_ in lines}
    for name, *fields in lines:
        types[name].name = name
        for field in fields:
            field, _, type_ = field.partition(":")
            types[name][field] = types[type_] if type_ else None
    return types
