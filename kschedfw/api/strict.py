"""Reading of configurations: unlike in objects, unknown fields are errors, and some zeros mean "unset".

Objects may have fields that kschedfw doesn't read; but in a configuration, a misspelt field would silently have
no effect.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import attrs

from kschedfw.api.convert import is_written, json_name, resolve_types, structure, without_hook
from kschedfw.api.field_errors import FieldError, FieldErrors, UnknownField, at, join
from kschedfw.api.records import is_attrs_class

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


def unreadable_types(cls: type[Any]) -> Iterator[FieldError]:
    """Yield an error for each field of an attrs class, and of classes within, of a type that can't be read."""
    seen: set[object] = set()

    def of_class(owner: type[Any], path: str) -> Iterator[FieldError]:
        try:
            resolve_types(owner)
        # Annotations are code: evaluating them may raise anything.
        except Exception as error:
            why = f"an annotation of {owner.__name__} can't be evaluated: {error}"
            yield FieldError(path, f"{why}; the module must have its names at run time, too")
            return
        for field in attrs.fields(owner):
            # A field's own converter takes what no hook reads.
            if field.init and field.converter is None and field.type is not None:
                yield from of_type(field.type, join(path, json_name(field)))

    def of_type(type_: object, path: str) -> Iterator[FieldError]:
        if isinstance(type_, type) and is_attrs_class(type_):
            if type_ not in seen:
                seen.add(type_)
                yield from of_class(type_, path)
        elif (unknown := without_hook(type_)) is not None:
            yield FieldError(path, f"{_shown_type(unknown)} can't be read; {_READABLE}")
        elif get_origin(type_) not in (Literal, Annotated):
            for part in get_args(type_):
                if part not in (..., type(None)):
                    yield from of_type(part, path)

    return of_type(cls, "")


_READABLE = (
    "a field may be a str, int, float, bool, an enumeration, another attrs class, "
    "a tuple[…, ...], list[…], frozenset[…] or Mapping[str, …] of these, or … | None"
)


def _shown_type(type_: object) -> str:
    return type_.__qualname__ if isinstance(type_, type) and not get_args(type_) else str(type_)


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
