"""Reading of configurations: unlike in objects, unknown fields are errors, and some zeros mean "unset".

Objects may have fields that kschedfw doesn't read; but in a configuration, a misspelt field would silently have
no effect.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar, get_args, get_origin, get_type_hints

import attrs

from kschedfw.api.convert import is_written, json_name, structure
from kschedfw.api.field_errors import FieldError, FieldErrors, UnknownField, at, join

T = TypeVar("T")


def structure_strictly(value: Mapping[str, object], cls: type[T]) -> T:
    """Read a configuration, or a part of one, as `cls`.

    Raises:
        FieldErrors: fields are unknown, missing, or have the wrong type; names all of them.
    """
    unknown = tuple(unknown_fields(value, cls))
    try:
        structured = structure(without_unset(value, cls), cls)
    except FieldErrors as error:
        raise FieldErrors((*unknown, *error.errors)) from None
    if unknown:
        raise FieldErrors(unknown)
    return structured


def _is_always_known(_field: attrs.Attribute[object]) -> bool:
    return True


def unknown_fields(
    value: object,
    type_: object,
    is_known: Callable[[attrs.Attribute[object]], bool] = _is_always_known,
) -> Iterator[FieldError]:
    """Yield an error for each key without a field, or whose field isn't known (by default, all are).

    A field may name the version of Kubernetes that it came with (`metadata={"since": "1.37"}`), for the error.
    """
    for field_path, content, cls in _objects(value, type_, ""):
        if not content:
            continue
        fields = [field for field in attrs.fields(cls) if is_written(field)]
        known = sorted(json_name(field) for field in fields if is_known(field))
        since = {json_name(field): field.metadata.get("since") for field in fields}
        for key in content:
            if key in known:
                continue
            if version := since.get(key):
                yield UnknownField(join(field_path, str(key)), f"Kubernetes has it since v{version}")
            else:
                yield UnknownField.among(join(field_path, str(key)), known)


def without_unset(value: object, type_: object) -> object:
    """Return the value without zeros that Kubernetes reads as unset (`metadata={"zero_is_unset": True}`)."""
    # The caller's mapping keeps its zeros.
    value = copy.deepcopy(value)
    for _, content, cls in _objects(value, type_, ""):
        for field in attrs.fields(cls):
            key = json_name(field)
            if (
                field.metadata.get("zero_is_unset")
                and content.get(key) in _ZEROS
                and isinstance(content, dict)
            ):
                del content[key]
    return value


_ZEROS = (0, "", "0s")
"""The zero values of fields: of a number, a string, a duration."""


def _objects(
    value: object, type_: object, path: str
) -> Iterator[tuple[str, Mapping[str, object], type[attrs.AttrsInstance]]]:
    """Yield every mapping in `value` that is read as an attrs class, with path and class, from the outside in."""
    if isinstance(value, Mapping):
        choices = (type_, *get_args(type_))
        if (mapping := next(filter(_is_mapping, choices), None)) is not None:
            for key, item in value.items():
                yield from _objects(item, get_args(mapping)[1], at(path, str(key)))
            return
        cls = next((choice for choice in choices if isinstance(choice, type) and attrs.has(choice)), None)
        if cls is not None:
            yield path, value, cls
            parts = [
                (field.name, key, part)
                for field in attrs.fields(cls)
                if isinstance(part := value.get(key := json_name(field)), Mapping | list)
            ]
            # Evaluating annotations took a tenth of the time in which a framework is made; most arguments are flat.
            hints = get_type_hints(cls) if parts else {}
            for name, key, part in parts:
                yield from _objects(part, hints[name], join(path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            for item_type in get_args(type_):
                yield from _objects(item, item_type, at(path, index))


def _is_mapping(type_: object) -> bool:
    origin = get_origin(type_)
    return isinstance(origin, type) and issubclass(origin, Mapping)
