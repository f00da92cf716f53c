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
from collections import deque
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Mapping,
    MutableMapping,
    MutableSequence,
    MutableSet,
    Sequence,
    Set,
)
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, TypeVar, get_args, get_origin

import attrs
import cattrs
from cattrs import AttributeValidationNote, ClassValidationError, StructureHandlerNotFoundError
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from kschedfw.api.field_errors import FieldError, FieldErrors, at
from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.pod_groups import DisruptionModeOrUnion, read_disruption_mode
from kschedfw.api.quantity import Quantity
from kschedfw.api.records import is_attrs_class
from kschedfw.api.scalars import (
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


def resolve_types(cls: type[Any]) -> None:
    """Evaluate the annotations of an attrs class; whatever they raise is raised."""
    # Properties have types too, and Pod has one that is imported by type checkers alone.
    attrs.resolve_types(cls, localns={"PodRequests": Any})


def without_hook(type_: Any) -> Any | None:
    """Return the type that can't be read from a manifest, of `type_` and its items; None if all can.

    What an attrs class or `… | None` contains isn't looked at.
    """
    try:
        _QUICK.get_structure_hook(type_)
    except StructureHandlerNotFoundError as error:
        return error.type_
    return None


def json_name(attribute: attrs.Attribute[Any]) -> str:
    """Return the key in a manifest: `hostPort` for `host_port`, unless the field's metadata has another."""
    if "json" in attribute.metadata:
        return str(attribute.metadata["json"])
    head, *rest = attribute.name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def is_written(attribute: attrs.Attribute[Any]) -> bool:
    """Tell whether manifests have the field; its metadata may say that they don't (`{"is_written": False}`)."""
    return bool(attribute.metadata.get("is_written", True))


# --- Maps and lists ---

_MAPS: Final[Mapping[object, Callable[[dict[Any, Any]], object]]] = {
    FrozenDict: lambda found: FrozenDict(found) if found else EMPTY,
    **dict.fromkeys((dict, Mapping, MutableMapping), dict),
}
"""Makers of the map that an annotation asks for, from a dict, by class."""

_LISTS: Final[Mapping[object, Callable[[list[Any]], object]]] = {
    **dict.fromkeys((tuple, Sequence, Collection, Iterable), tuple),
    **dict.fromkeys((list, MutableSequence), list),
    **dict.fromkeys((frozenset, Set), frozenset),
    **dict.fromkeys((set, MutableSet), set),
    deque: deque,
}
"""Makers of the list, set or the like that an annotation asks for, from a list, by class."""


def _class_of(type_: object) -> object:
    """Return the class of a generic annotation: `list` for `list[str]`, and for `list` itself."""
    return get_origin(type_) or type_


def _is_map(type_: object) -> bool:
    return _class_of(type_) in _MAPS


def _is_list(type_: object) -> bool:
    return _class_of(type_) in _LISTS


def _is_set(type_: object) -> bool:
    return _LISTS.get(_class_of(type_)) in (set, frozenset)


def _is_tuple(type_: object) -> bool:
    return get_origin(type_) is tuple


def _errors_at(path: str, error: Exception) -> list[FieldError]:
    """Return the errors of the item of a list or a map, which is at `path`."""
    # Errors of cattrs' own hooks, such as that for an `Enum`, have no path.
    errors = error.errors if isinstance(error, FieldErrors) else (FieldError("", str(error)),)
    return [problem.inside(path) for problem in errors]


def _as_it_is(value: object, _type: object) -> object:
    return value


def _read_key(key: object, _type: object) -> str:
    # Kubernetes turns keys into strings when it converts YAML to JSON.
    return key if isinstance(key, str) else json.dumps(key, default=str)


def _map_hook(type_: Any, converter: cattrs.Converter) -> Callable[[object, object], object]:
    made = _MAPS[_class_of(type_)]
    key_type, item_type = get_args(type_) or (str, Any)
    read_key = _read_key if key_type is str else converter.get_structure_hook(key_type)
    item = converter.get_structure_hook(item_type)
    # Null in a map is the zero of its type, as Kubernetes reads it.
    null = _ZEROS.get(item_type, {} if is_attrs_class(item_type) else None)

    def hook(value: object, _type: object) -> object:
        if type(value) is not dict and not isinstance(value, Mapping):
            raise wrong(value, "a map")
        found: dict[object, object] = {}
        errors: list[FieldError] = []
        for key, content in value.items():
            try:
                name = read_key(key, key_type)
            except Exception as error:
                why = _errors_at(at("", _read_key(key, str)), error)
                errors += [attrs.evolve(problem, detail=f"the key: {problem.detail}") for problem in why]
                continue
            try:
                found[name] = item(null if content is None else content, item_type)
            except Exception as error:
                errors += _errors_at(at("", _read_key(key, str)), error)
        if errors:
            raise FieldErrors(errors)
        return made(found)

    return hook


_ZEROS: Final[Mapping[object, object]] = {str: "", Quantity: 0}
"""The zeros of scalars in maps, by type."""


def _read_items(items: Iterable[tuple[object, Any, Callable[[object, Any], object]]]) -> list[object]:
    """Read values, each as a type by a hook, and raise the errors of all."""
    found, errors = [], []
    for index, (content, item_type, item) in enumerate(items):
        try:
            found.append(item(content, item_type))
        except Exception as error:
            errors += _errors_at(f"[{index}]", error)
    if errors:
        raise FieldErrors(errors)
    return found


def _list_hook(type_: Any, converter: cattrs.Converter) -> Callable[[object, object], object]:
    made = _LISTS[_class_of(type_)]
    types_ = get_args(type_) or (Any,)
    if _is_tuple(type_) and types_[-1] is not ...:
        return _fixed_list_hook(types_, converter)
    item_type = types_[0]
    item = converter.get_structure_hook(item_type)
    # In Python, arguments may be given as a set, too. Other collections have an order, which a set would not give them.
    given_as = (list, tuple, Set) if made in (set, frozenset) else (list, tuple)

    def hook(value: object, _type: object) -> object:
        if not isinstance(value, given_as):
            raise wrong(value, "a list")
        if not converter.detailed_validation:
            return made([item(content, item_type) for content in value])
        return made(_read_items((content, item_type, item) for content in value))

    return hook


def _fixed_list_hook(
    types_: Sequence[Any], converter: cattrs.Converter
) -> Callable[[object, object], tuple[object, ...]]:
    """Return a hook for a tuple whose items have types of their own, such as `tuple[str, int]`."""
    items = [converter.get_structure_hook(item_type) for item_type in types_]

    def hook(value: object, _type: object) -> tuple[object, ...]:
        if not isinstance(value, (list, tuple)) or len(value) != len(items):
            raise wrong(value, f"a list of {len(items)}")
        return tuple(_read_items(zip(value, types_, items, strict=True)))

    return hook


# --- Objects ---


def _class_hook(cls: type[Any], converter: cattrs.Converter) -> Callable[[object, object], Any]:
    # Made for the first object of the class, since cattrs makes the hooks of all fields with it: a pod's class has
    # fifty others below it, of which most manifests use a few.
    @functools.cache
    def reading() -> tuple[Callable[[Mapping[str, Any], Any], Any], tuple[str, ...]]:
        resolve_types(cls)
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
        if isinstance(error, KeyError):
            why = "" if attribute is None else str(attribute.metadata.get("required", ""))
            errors.append(FieldError.required(key, why))
        else:
            errors += _errors_at(key, error)
    return errors


def _write_hook(cls: type[Any], converter: cattrs.Converter) -> Callable[[Any], dict[str, Any]]:
    resolve_types(cls)
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


def _converter(detailed_validation: bool) -> cattrs.Converter:
    converter = cattrs.Converter(detailed_validation=detailed_validation)
    converter.register_structure_hook_factory(is_attrs_class, lambda cls: _class_hook(cls, converter))
    converter.register_structure_hook_factory(_is_map, lambda type_: _map_hook(type_, converter))
    converter.register_structure_hook_factory(_is_list, lambda type_: _list_hook(type_, converter))
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
        (object, _as_it_is),
        (int | str, read_int_or_string),
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
    # Sorted, since a set's order differs from run to run.
    converter.register_unstructure_hook_func(
        _is_set, lambda items: sorted(map(converter.unstructure, items), key=repr)
    )
    converter.register_unstructure_hook(
        FrozenDict, lambda items: {key: converter.unstructure(value) for key, value in items.items()}
    )
    return converter


_QUICK = _converter(detailed_validation=False)
_THOROUGH = _converter(detailed_validation=True)
