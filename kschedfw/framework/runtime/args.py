"""Conversion of plugin arguments from a configuration's mapping to the plugin's attrs class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Final, Protocol, runtime_checkable

import attrs

from kschedfw.api import FieldError, FieldErrors, KschedfwError
from kschedfw.api.records import define, is_attrs_class
from kschedfw.api.words import with_article
from kschedfw.framework.errors import HOOK_FAILURES, PluginLoadError
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
        PluginLoadError: a field of `args_type` has a type that can't be read, or a method that validates fails.
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
    errors: list[FieldError] = []
    if isinstance(args, Validated):
        errors += _broken_rules(plugin, args.validate)
    if isinstance(args, ValidatedWithGates):
        errors += _broken_rules(plugin, partial(args.validate_with, gates))
    if errors:
        raise ArgsError(plugin, tuple(errors))
    return args


def args_type_problem(args_type: object) -> str | None:
    """Return why a plugin can't have this `args_type`; None if it can. Types of fields aren't looked at."""
    if args_type is None or is_attrs_class(args_type):
        return None
    if isinstance(args_type, type):
        # A dict takes any arguments as they are. The contract of plugins (`kschedfw.testing`) refuses it.
        if issubclass(args_type, Mapping):
            return None
        return f"its args_type {args_type.__qualname__} is no attrs class; decorate it with @attrs.frozen"
    return f"its args_type is {args_type!r}; it must be an attrs class, not an instance or a name"


def check_fields(plugin: str, args_type: type[object]) -> None:
    """Check that a configuration can have every field of a plugin's `args_type`, given or not.

    Raises:
        PluginLoadError: fields have types that can't be read; names all of them.
    """
    if problem := _unreadable_fields(args_type):  # type: ignore[arg-type]  # every class is hashable
        raise PluginLoadError(plugin, f"its args_type {args_type.__qualname__} is unusable: {problem}")


# Kept, since reading a configuration asks for each plugin several times.
@cache
def _unreadable_fields(args_type: type[object]) -> str:
    from kschedfw.api.strict import unreadable_types  # brings cattrs along

    return "; ".join(map(str, unreadable_types(args_type)))


def _broken_rules(plugin: str, validate: Callable[[], object]) -> Sequence[FieldError]:
    method = getattr(validate, "func", validate).__qualname__
    try:
        answer = validate()
        errors = tuple(answer) if isinstance(answer, Iterable) else None
    except HOOK_FAILURES as error:
        raise PluginLoadError(
            plugin, f"{method} raised {type(error).__name__}: {error}; {_VALIDATING}"
        ) from error
    if errors is None:
        raise PluginLoadError(plugin, f"{method} returned {answer!r}; {_VALIDATING}")
    for each in errors:
        if not isinstance(each, FieldError):
            raise PluginLoadError(plugin, f"{method} yielded {each!r}; {_VALIDATING}")
    return errors


_VALIDATING: Final = (
    "it must yield a FieldError for each rule that is broken, nothing if none is, and raise nothing"
)


def _structure(plugin: str, args_type: type[object], given: Mapping[str, object]) -> object:
    given = {key: value for key, value in given.items() if key not in ("apiVersion", "kind")}
    if not given and attrs.has(args_type):
        # Most plugins have nothing but defaults. What is wrong with those is told below.
        with suppress(Exception):
            return args_type()
    check_fields(plugin, args_type)
    from kschedfw.api.strict import structure_strictly

    try:
        return structure_strictly(given, args_type)
    except FieldErrors as error:
        raise ArgsError(plugin, error.errors) from None
