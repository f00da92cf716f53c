"""The summary of a plugin, from its class, its arguments' class and its distribution."""

from __future__ import annotations

import inspect
import types
from enum import Enum
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import attrs

from kschedfw.api.convert import json_name
from kschedfw.api.quantity import Quantity
from kschedfw.cli.construction import refused_plugin
from kschedfw.config.effective import plain
from kschedfw.framework.errors import PluginError
from kschedfw.framework.plugin import AnyPlugin, Plugin
from kschedfw.framework.profile import ExtensionPoint
from kschedfw.framework.runtime.hooks import hooks_of, points_of
from kschedfw.framework.runtime.registry import Registry

_BATCH = ("filter_batch", "score_batch")
_TYPES = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    bytes: "base64",
    object: "anything",
    Quantity: "quantity",
}


@attrs.frozen
class Argument:
    """A field of a plugin's arguments, as in a configuration."""

    name: str
    type: str
    required: bool = False
    default: object = None


@attrs.frozen(kw_only=True)
class PluginSummary:
    """A plugin; if it can't be loaded, only `problem` is set."""

    name: str
    distribution: str = ""
    replaces: tuple[str, ...] = ()
    """The distributions whose plugins of this name aren't used."""
    problem: str = ""
    where: str = ""
    doc: str = ""
    points: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    reads: str = ""
    signs: bool = False
    arguments: tuple[Argument, ...] = ()

    @property
    def source(self) -> str:
        """The plugin's source, in a few words."""
        instead = f" instead of {', '.join(self.replaces)}" if self.replaces else ""
        return f"{self.distribution}{instead}"

    @property
    def batch(self) -> tuple[str, ...]:
        """The batch forms that it has."""
        return tuple(hook for hook in self.hooks if hook in _BATCH)

    def to_json(self) -> dict[str, object]:
        known: dict[str, object] = {"name": self.name, "distribution": self.distribution or None}
        if self.replaces:
            known["replaces"] = list(self.replaces)
        if self.problem:
            return {**known, "problem": self.problem}
        return {
            **known,
            "class": self.where,
            "doc": self.doc,
            "extensionPoints": list(self.points),
            "hooks": list(self.hooks),
            "reads": self.reads or None,
            "sign": self.signs,
            "batch": list(self.batch),
            "args": [attrs.asdict(argument) for argument in self.arguments],
        }


def summaries(registry: Registry) -> list[PluginSummary]:
    """Return all available plugins, by name; a plugin that can't be loaded or made has a `problem`."""
    found = []
    for name in registry.names():
        try:
            found.append(summary(registry, name))
        except PluginError as error:
            distribution = registry.distribution(name) or ""
            found.append(PluginSummary(name=name, distribution=distribution, problem=error.message))
    return found


def summary(registry: Registry, name: str) -> PluginSummary:
    """Return the summary of one plugin.

    Raises:
        PluginError: it isn't available, or can't be loaded or made.
    """
    plugin = registry.load(name)
    if (refusal := refused_plugin(name, registry)) is not None:
        raise refusal
    points = points_of(plugin)
    return PluginSummary(
        name=name,
        distribution=registry.distribution(name) or "",
        replaces=tuple(registry.replaced(name)),
        where=f"{plugin.__module__}:{plugin.__qualname__}",
        doc=inspect.getdoc(plugin) or "",
        points=tuple(point.value for point in ExtensionPoint if point in points),
        hooks=hooks_of(plugin),
        reads=plugin.reads.value if plugin.reads is not None else "",
        signs=plugin.sign is not Plugin.sign,
        arguments=_arguments(plugin),
    )


def _arguments(plugin: type[AnyPlugin]) -> tuple[Argument, ...]:
    cls = plugin.args_type
    if cls is None or not attrs.has(cls):
        return ()
    hints = get_type_hints(cls, include_extras=True)
    return tuple(_argument(field, hints[field.name]) for field in attrs.fields(cls))


def _argument(field: attrs.Attribute[Any], hint: object) -> Argument:
    name, type_, default = json_name(field), _type_name(hint), field.default
    if default is attrs.NOTHING:
        return Argument(name, type_, required=True)
    factory = getattr(default, "factory", None)
    return Argument(name, type_, default=plain(default if factory is None else factory()))


def _type_name(hint: Any) -> str:
    """Return a type in terms of a configuration: `list of string`, `"List" or "System"`."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return str(args[1])
    if origin is types.UnionType or str(origin) == "typing.Union":
        return " or ".join(_type_name(each) for each in args if each is not type(None))
    if origin is tuple:
        return f"list of {_type_name(args[0])}"
    if isinstance(origin, type) and issubclass(origin, dict):
        return f"map of {_type_name(args[1])}"
    if isinstance(hint, type) and issubclass(hint, Enum):
        return " or ".join(f'"{choice.value}"' for choice in hint)
    if hint in _TYPES:
        return _TYPES[hint]
    if isinstance(hint, type) and attrs.has(hint):
        return f"object with {', '.join(json_name(field) for field in attrs.fields(hint))}"
    return getattr(hint, "__name__", str(hint))
