"""Conversion between manifests (plain dicts, lists and scalars) and the attrs classes of this package.

There are two converters. The fast one stops at the first error; then the thorough one reads the same manifest
again and collects all errors with their paths. Nearly all manifests are valid, so loading is as fast as the
fast one.

As in Kubernetes' decoding: keys are camelCase, unknown keys are ignored, null means absent, and a scalar of the
wrong type is an error, never converted: a label `yes` without quotes is a boolean, and refused.
"""

from __future__ import annotations

import functools
import json
import operator
import types
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar, get_args, get_origin

import attrs
import cattrs
from cattrs import AttributeValidationNote, ClassValidationError
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from kschedfw.api.field_errors import FieldError, FieldErrors, at
from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.pod_groups import DisruptionModeOrUnion, read_disruption_mode
from kschedfw.api.quantity import Quantity
from kschedfw.api.records import is_attrs_class
from kschedfw.api.scalars import (
    ZERO,
    Duration,
    Int32,
    read_boolean,
    read_bytes,
    read_duration,
    read_enumeration,
    read_int32,
    read_int_or_string,
    read_integer,
    read_number,
    read_quantity,
    read_string,
    read_time,
    write_time,
    wrong,
)
from kschedfw.api.selectors import LABEL_OPERATORS, LabelSelector, Operator

T = TypeVar("T")


def structure(manifest: object, cls: type[T]) -> T:
    """Read a manifest as `cls`, without defaults.

    Raises:
        FieldErrors: fields have the wrong type, or required fields are missing.
    """
    try:
        return _QUICK.structure(manifest, cls)
    # The thorough converter raises the error again, with the field.
    except Exception:
        return _THOROUGH.structure(manifest, cls)


def unstructure(value: Any) -> Any:
    """Return the manifest of an attrs object, without fields that have their defaults."""
    return _QUICK.unstructure(value)


def json_name(attribute: attrs.Attribute[Any]) -> str:
    """Return the key in a manifest: `hostPort` for `host_port`, unless the field's metadata has another."""
    if "json" in attribute.metadata:
        return str(attribute.metadata["json"])
    head, *rest = attribute.name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def is_written(attribute: attrs.Attribute[Any]) -> bool:
    """Tell whether manifests have the field; its metadata may say that they don't (`{"is_written": False}`)."""
    return bool(attribute.metadata.get("is_written", True))


def _map_hook(
    item: Callable[[object, object], T], empty: T
) -> Callable[[object, object], FrozenDict[str, T]]:
    def hook(value: object, _type: object) -> FrozenDict[str, T]:
        if type(value) is not dict and not isinstance(value, Mapping):
            raise wrong(value, "a map")
        found: dict[str, T] = {}
        errors: list[FieldError] = []
        for key, content in value.items():
            if not isinstance(key, str):
                # Kubernetes turns keys into strings when it converts YAML to JSON.
                key = json.dumps(key, default=str)
            try:
                found[key] = empty if content is None else item(content, None)
            except FieldErrors as error:
                errors += [problem.inside(at("", key)) for problem in error.errors]
        if errors:
            raise FieldErrors(errors)
        return FrozenDict(found) if found else EMPTY

    return hook


def _object_map_hook(
    type_: Any, converter: cattrs.Converter
) -> Callable[[object, object], FrozenDict[str, Any]]:
    item_type = get_args(type_)[1]
    item = converter.get_structure_hook(item_type)
    read = _map_hook(lambda value, _type: item(value, item_type), None)

    def hook(value: object, _type: object) -> FrozenDict[str, Any]:
        # Kubernetes reads a null object as an empty one.
        if isinstance(value, Mapping) and None in value.values():
            value = {key: {} if content is None else content for key, content in value.items()}
        return read(value, _type)

    return hook


def _as_it_is(value: object, _type: object) -> object:
    return value


def _tuple_hook(type_: Any, converter: cattrs.Converter) -> Callable[[object, object], tuple[Any, ...]]:
    item_type = get_args(type_)[0]
    item = converter.get_structure_hook(item_type)

    def hook(value: object, _type: object) -> tuple[Any, ...]:
        if not isinstance(value, (list, tuple)):
            raise wrong(value, "a list")
        if not converter.detailed_validation:
            return tuple([item(content, item_type) for content in value])
        found, errors = [], []
        for index, content in enumerate(value):
            try:
                found.append(item(content, item_type))
            except FieldErrors as error:
                errors += [problem.inside(f"[{index}]") for problem in error.errors]
        if errors:
            raise FieldErrors(errors)
        return tuple(found)

    return hook


def _class_hook(cls: type[Any], converter: cattrs.Converter) -> Callable[[object, object], Any]:
    # Made for the first object of the class, since cattrs makes the hooks of all fields with it: a pod's class has
    # fifty others below it, of which most manifests use a few.
    @functools.cache
    def reading() -> tuple[Callable[[Mapping[str, Any], Any], Any], tuple[str, ...]]:
        _resolve_types(cls)
        # An enumeration that is written as "" is absent.
        choices = tuple(json_name(attribute) for attribute in attrs.fields(cls) if _is_choice(attribute.type))
        read = make_dict_structure_fn(
            cls,
            converter,
            _cattrs_forbid_extra_keys=False,
            _cattrs_detailed_validation=converter.detailed_validation,
            **_renamed(cls),
        )
        return read, choices

    def hook(value: object, _type: object) -> Any:
        if type(value) is not dict and not isinstance(value, Mapping):
            raise wrong(value, "an object")
        read, choices = reading()
        if None in value.values():
            value = {key: content for key, content in value.items() if content is not None}
        for key in choices:
            if value.get(key) == "":
                value = {other: content for other, content in value.items() if other != key}
        try:
            return read(value, cls)
        except ClassValidationError as group:
            attributes = {attribute.name: attribute for attribute in attrs.fields(cls)}
            raise FieldErrors(_flattened(group, attributes)) from None

    return hook


def _label_selector_hook(converter: cattrs.Converter) -> Callable[[object, object], LabelSelector]:
    """Return a hook whose errors only name the operators of label selectors; node selectors have two more."""
    read = _class_hook(LabelSelector, converter)

    def hook(value: object, _type: object) -> LabelSelector:
        try:
            selector: LabelSelector = read(value, LabelSelector)
            return selector
        except FieldErrors as error:
            raise FieldErrors(
                [
                    attrs.evolve(problem, detail=problem.detail.replace(_ALL_OPERATORS, _OPERATORS_OF_LABELS))
                    for problem in error.errors
                ]
            ) from None

    return hook


def _quoted(operators: Iterable[Operator]) -> str:
    return ", ".join(f'"{operator}"' for operator in operators)


_ALL_OPERATORS, _OPERATORS_OF_LABELS = _quoted(Operator), _quoted(LABEL_OPERATORS)


def _resolve_types(cls: type[Any]) -> None:
    # Properties have types too, and Pod has one that is imported by type checkers alone.
    attrs.resolve_types(cls, localns={"PodRequests": Any})


def _is_choice(hint: Any) -> bool:
    candidates = get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    return any(isinstance(candidate, type) and issubclass(candidate, StrEnum) for candidate in candidates)


def _flattened(
    group: ClassValidationError, attributes: Mapping[str, attrs.Attribute[Any]]
) -> list[FieldError]:
    errors: list[FieldError] = []
    for error in group.exceptions:
        notes = getattr(error, "__notes__", ())
        names = (note.name for note in notes if isinstance(note, AttributeValidationNote))
        attribute = attributes.get(next(names, ""))
        key = "" if attribute is None else json_name(attribute)
        if isinstance(error, FieldErrors):
            errors += [problem.inside(key) for problem in error.errors]
        elif isinstance(error, KeyError):
            why = "" if attribute is None else str(attribute.metadata.get("required", ""))
            errors.append(FieldError.required(key, why))
        else:
            errors.append(FieldError(key, str(error)))
    return errors


def _write_hook(cls: type[Any], converter: cattrs.Converter) -> Callable[[Any], dict[str, Any]]:
    _resolve_types(cls)
    return make_dict_unstructure_fn(
        cls,
        converter,
        _cattrs_omit_if_default=True,
        **_renamed(cls),
    )


def _renamed(cls: type[Any]) -> dict[str, Any]:
    return {
        attribute.name: override(rename=json_name(attribute), omit=None if is_written(attribute) else True)
        for attribute in attrs.fields(cls)
    }


def _is_object_map(type_: Any) -> bool:
    return get_origin(type_) is FrozenDict and is_attrs_class(get_args(type_)[1])


def _is_tuple(type_: Any) -> bool:
    return get_origin(type_) is tuple


def _converter(detailed_validation: bool) -> cattrs.Converter:
    converter = cattrs.Converter(detailed_validation=detailed_validation)
    converter.register_structure_hook_factory(is_attrs_class, lambda cls: _class_hook(cls, converter))
    converter.register_structure_hook_factory(_is_object_map, lambda cls: _object_map_hook(cls, converter))
    converter.register_structure_hook_factory(_is_tuple, lambda cls: _tuple_hook(cls, converter))
    converter.register_structure_hook_factory(
        functools.partial(operator.is_, LabelSelector), lambda _cls: _label_selector_hook(converter)
    )
    # A hook for a class applies to its subclasses, too: without a hook of their own enumerations would get str's.
    converter.register_structure_hook(StrEnum, read_enumeration)
    converter.register_structure_hook(Quantity, read_quantity)
    converter.register_structure_hook(str, read_string)
    converter.register_structure_hook(int, read_integer)
    converter.register_structure_hook(bool, read_boolean)
    converter.register_structure_hook(float, read_number)
    converter.register_structure_hook(bytes, read_bytes)
    converter.register_structure_hook(datetime, read_time)
    for type_, hook in (
        (FrozenDict[str, str], _map_hook(read_string, "")),
        (FrozenDict[str, Quantity], _map_hook(read_quantity, ZERO)),
        (FrozenDict[str, object], _map_hook(_as_it_is, None)),
        (int | str | None, read_int_or_string),
        (Duration, read_duration),
        (Int32, read_int32),
        (DisruptionModeOrUnion, read_disruption_mode),
    ):
        converter.register_structure_hook_func(functools.partial(operator.eq, type_), hook)
    converter.register_unstructure_hook_factory(attrs.has, lambda cls: _write_hook(cls, converter))
    converter.register_unstructure_hook(Quantity, str)
    converter.register_unstructure_hook(datetime, write_time)
    converter.register_unstructure_hook(StrEnum, str)
    converter.register_unstructure_hook_func(
        _is_tuple, lambda items: [converter.unstructure(i) for i in items]
    )
    converter.register_unstructure_hook(
        FrozenDict, lambda items: {key: converter.unstructure(value) for key, value in items.items()}
    )
    return converter


_QUICK = _converter(detailed_validation=False)
_THOROUGH = _converter(detailed_validation=True)
