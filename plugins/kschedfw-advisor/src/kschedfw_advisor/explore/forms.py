"""Forms for the arguments of plugins, made from their classes."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import attrs
import msgspec

from kschedfw import ExtensionPoint, Profile, Registry
from kschedfw.api.reading import Duration, json_name
from kschedfw.config import PluginCatalog, plain


class Shape(msgspec.Struct, frozen=True, omit_defaults=True):
    """The shape of a value: how the page asks for it.

    `kind` is `object` (with `fields`), `list` (of `item`), `choice` (of `choices`), `integer`, `number`, `boolean`,
    `text`, or `json` for everything else. An `optional` value may be left out.
    """

    kind: str
    fields: list[tuple[str, Shape]] = []
    item: Shape | None = None
    choices: list[str] = []
    optional: bool = False


class PluginForm(msgspec.Struct, frozen=True):
    """A plugin of a profile. `weight` is 0 where it doesn't score, `scores` whether it could."""

    name: str
    enabled: bool
    scores: bool
    weight: int
    shape: Shape | None
    arguments: dict[str, Any]


class ProfileForm(msgspec.Struct, frozen=True):
    """A profile: its own plugins in their order, then the other installed ones."""

    name: str
    plugins: list[PluginForm]


_DEEPEST = 4
_SIMPLE: Mapping[object, str] = {bool: "boolean", int: "integer", float: "number", str: "text"}


def profile_forms(
    profiles: Sequence[Profile], original: Sequence[Profile], registry: Registry
) -> list[ProfileForm]:
    """The forms of the profiles; plugins of the `original` ones stay in their places when they are switched off."""
    catalog = PluginCatalog(registry)
    return [_profile(now, was, catalog, registry) for now, was in zip(profiles, original, strict=True)]


def _profile(now: Profile, was: Profile, catalog: PluginCatalog, registry: Registry) -> ProfileForm:
    named = dict.fromkeys(
        plugin.name
        for profile in (was, now)
        for plugin in profile.listed
        if not plugin.absence or plugin.name in profile.args
    )
    names = [*named, *sorted(set(registry.names()).difference(named))]
    return ProfileForm(
        now.scheduler_name, [_plugin(now, name, catalog) for name in names if catalog.is_known(name)]
    )


def _plugin(profile: Profile, name: str, catalog: PluginCatalog) -> PluginForm:
    at = {
        point: plugin for point, listed in profile.points.items() for plugin in listed if plugin.name == name
    }
    scored = at.get(ExtensionPoint.SCORE)
    args_type = catalog.args_type(name)
    given = profile.args.get(name)
    arguments = plain(given) if given is not None else {}
    assert isinstance(arguments, dict)
    return PluginForm(
        name,
        enabled=bool(at),
        scores=ExtensionPoint.SCORE in catalog.points(name),
        weight=0 if scored is None else scored.weight,
        shape=shape_of(args_type) if args_type is not None and attrs.has(args_type) else None,
        arguments=arguments,
    )


def shape_of(hint: object, depth: int = 0) -> Shape:
    """Return the shape of a type. Types that are nested too deeply for a readable form are JSON."""
    if depth > _DEEPEST:
        return Shape("json")
    # Durations are written as texts, such as `10s`.
    if hint == Duration:
        return Shape("text")
    if get_origin(hint) is Annotated:
        return shape_of(get_args(hint)[0], depth)
    if get_origin(hint) in (Union, types.UnionType):
        others = [each for each in get_args(hint) if each is not type(None)]
        inner = shape_of(others[0], depth) if len(others) == 1 else Shape("json")
        return msgspec.structs.replace(inner, optional=len(others) < len(get_args(hint)))
    if hint in _SIMPLE:
        return Shape(_SIMPLE[hint])
    if get_origin(hint) in (tuple, list, frozenset):
        return Shape("list", item=shape_of(get_args(hint)[0], depth + 1))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return Shape("choice", choices=[str(each.value) for each in hint])
    if isinstance(hint, type) and attrs.has(hint):
        hints = get_type_hints(hint, include_extras=True)
        fields = [(json_name(field), shape_of(hints[field.name], depth + 1)) for field in attrs.fields(hint)]
        return Shape("object", fields=fields)
    return Shape("json")
