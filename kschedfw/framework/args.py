"""Plugin arguments: from a configuration's mapping to the plugin's attrs class, or one clear error."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Protocol, get_args, get_type_hints, runtime_checkable

import attrs

from kschedfw.api.convert import json_name, structure
from kschedfw.api.errors import KschedfwError
from kschedfw.api.field_errors import FieldError, FieldErrors, at, join


@runtime_checkable
class Validated(Protocol):
    """Arguments with rules beyond their types say here which they break."""

    def validate(self) -> Iterator[FieldError]: ...


class ArgsError(KschedfwError, ValueError):
    """The arguments of a plugin are wrong; names the plugin and every bad field."""

    def __init__(self, plugin: str, errors: tuple[FieldError, ...]) -> None:
        super().__init__(plugin, errors)
        self.plugin = plugin
        self.errors = errors

    def __str__(self) -> str:
        return f"{self.plugin}: " + "; ".join(map(str, self.errors))


def plugin_args(plugin: str, args_type: type[object] | None, given: object) -> object:
    """The arguments a plugin is made with.

    `given` is None (all defaults), an instance of `args_type`, or a mapping as it stands in a configuration:
    camelCase keys, each of them known; `apiVersion` and `kind` are passed over.

    Raises:
        ArgsError: a field is unknown, has the wrong type or breaks a rule; names all of them.
    """
    if args_type is None:
        if given:
            raise ArgsError(plugin, (FieldError("args", "the plugin takes no arguments"),))
        return None
    if isinstance(given, args_type):
        args = given
    elif given is None or isinstance(given, Mapping):
        args = _structure(plugin, args_type, given or {})
    else:
        raise ArgsError(
            plugin,
            (FieldError("args", f"must be a {args_type.__name__} or a mapping, not {type(given).__name__}"),),
        )
    if isinstance(args, Validated) and (errors := tuple(args.validate())):
        raise ArgsError(plugin, errors)
    return args


def _structure(plugin: str, args_type: type[object], given: Mapping[str, object]) -> object:
    given = {key: value for key, value in given.items() if key not in ("apiVersion", "kind")}
    if unknown := tuple(_unknown_fields(given, args_type, "")):
        raise ArgsError(plugin, unknown)
    try:
        return structure(_without_unset(given, args_type), args_type)
    except FieldErrors as error:
        raise ArgsError(plugin, error.errors) from None


def _unknown_fields(value: object, type_: object, path: str) -> Iterator[FieldError]:
    """Keys that no field has: objects may ignore them, for the API has many; in a configuration they are mistakes."""
    for field_path, content, cls in _objects(value, type_, path):
        known = {json_name(field) for field in attrs.fields(cls)}
        for key in content:
            if key not in known:
                yield FieldError(
                    join(field_path, str(key)), f"unknown field; known are: {', '.join(sorted(known))}"
                )


def _objects(
    value: object, type_: object, path: str
) -> Iterator[tuple[str, Mapping[str, object], type[attrs.AttrsInstance]]]:
    """Every mapping inside `value` that is read as an attrs class, with its path and class, from the outside in."""
    if isinstance(value, Mapping):
        cls = next(
            (
                choice
                for choice in (type_, *get_args(type_))
                if isinstance(choice, type) and attrs.has(choice)
            ),
            None,
        )
        if cls is not None:
            yield path, value, cls
            hints = get_type_hints(cls)
            for field in attrs.fields(cls):
                key = json_name(field)
                yield from _objects(value.get(key), hints[field.name], join(path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            for item_type in get_args(type_):
                yield from _objects(item, item_type, at(path, index))


def _without_unset(value: object, type_: object) -> object:
    """The value without zeros in fields where Kubernetes reads zero as unset (`metadata={"zero_is_unset": True}`)."""
    value = copy.deepcopy(value)
    for _, content, cls in _objects(value, type_, ""):
        for field in attrs.fields(cls):
            key = json_name(field)
            if field.metadata.get("zero_is_unset") and content.get(key) == 0 and isinstance(content, dict):
                del content[key]
    return value
