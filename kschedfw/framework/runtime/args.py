"""Conversion of plugin arguments from a configuration's mapping to the plugin's attrs class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Protocol, runtime_checkable

import attrs

from kschedfw.api import FieldError, FieldErrors, KschedfwError
from kschedfw.api.records import define
from kschedfw.api.words import with_article
from kschedfw.framework.gates import DEFAULT_GATES, FeatureGates


@runtime_checkable
class Validated(Protocol):
    """Arguments with rules beyond their types. `validate` yields the rules that they break."""

    def validate(self) -> Iterator[FieldError]: ...


@runtime_checkable
class ValidatedWithGates(Protocol):
    """Arguments with fields that only some feature gates allow. `validate_with` yields the rules that they break."""

    def validate_with(self, gates: FeatureGates) -> Iterator[FieldError]: ...


@define(eq=False)
class ArgsError(KschedfwError, ValueError):
    """The error of invalid plugin arguments. Names the plugin and every bad field."""

    plugin: str
    errors: tuple[FieldError, ...]

    def __str__(self) -> str:
        return f"{self.plugin}: " + "; ".join(map(str, self.errors))


def plugin_args(
    plugin: str, args_type: type[object] | None, given: object, gates: FeatureGates = DEFAULT_GATES
) -> object:
    """Return the arguments that a plugin is made with.

    `given` is None (all defaults), an instance of `args_type`, or a mapping from a configuration: camelCase
    keys, each of them known; `apiVersion` and `kind` are ignored.

    Raises:
        ArgsError: a field is unknown, has the wrong type or breaks a rule; names all of them.
    """
    if args_type is None:
        if given:
            raise ArgsError(plugin, (FieldError("", "the plugin takes no arguments"),))
        return None
    if isinstance(given, args_type):
        args = given
    elif given is None or isinstance(given, Mapping):
        args = _structure(plugin, args_type, given or {})
    else:
        raise ArgsError(
            plugin,
            (
                FieldError(
                    "",
                    f"must be {with_article(args_type.__name__)} or a mapping, not {type(given).__name__}",
                ),
            ),
        )
    errors = list(args.validate()) if isinstance(args, Validated) else []
    if isinstance(args, ValidatedWithGates):
        errors += args.validate_with(gates)
    if errors:
        raise ArgsError(plugin, tuple(errors))
    return args


def _structure(plugin: str, args_type: type[object], given: Mapping[str, object]) -> object:
    given = {key: value for key, value in given.items() if key not in ("apiVersion", "kind")}
    if not given and attrs.has(args_type):
        # Most plugins have nothing but defaults. What is wrong with those is told below.
        with suppress(Exception):
            return args_type()
    from kschedfw.api.strict import structure_strictly  # brings cattrs along

    try:
        return structure_strictly(given, args_type)
    except FieldErrors as error:
        raise ArgsError(plugin, error.errors) from None
