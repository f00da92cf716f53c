"""`kschedfw plugins`: lists installed plugins, shows one, and creates new ones."""

from __future__ import annotations

import inspect
import json
import re
import types
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import attrs
import click
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kschedfw.api.convert import json_name
from kschedfw.api.quantity import Quantity
from kschedfw.cli.construction import refused_plugin
from kschedfw.cli.exits import print_json
from kschedfw.cli.learned_facts import learned_facts
from kschedfw.cli.options import json_option
from kschedfw.cli.plugins_new import new_plugin
from kschedfw.cli.tables import LIST_WIDTH, print_parts, stdout_console
from kschedfw.config.effective import plain
from kschedfw.framework.errors import PluginError
from kschedfw.framework.plugin import AnyPlugin, Plugin
from kschedfw.framework.profile import ExtensionPoint
from kschedfw.framework.runtime.args import check_fields
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
    pure: bool = False
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
            "pure": self.pure,
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
    if plugin.args_type is not None:
        check_fields(name, plugin.args_type)
    points = points_of(plugin)
    return PluginSummary(
        name=name,
        distribution=registry.distribution(name) or "",
        replaces=tuple(registry.replaced(name)),
        where=f"{plugin.__module__}:{plugin.__qualname__}",
        # Its own: getdoc would take the one of the base, Plugin.
        doc=inspect.cleandoc(plugin.__doc__ or ""),
        points=tuple(point.value for point in ExtensionPoint if point in points),
        hooks=hooks_of(plugin),
        reads=plugin.reads.value if plugin.reads is not None else "",
        signs=plugin.sign is not Plugin.sign,
        pure=bool(plugin.pure),
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
    # `X | None` has the one origin, `Optional[X]` the other.
    if origin is types.UnionType or str(origin) == "typing.Union":
        return " or ".join(_type_name(each) for each in args if each is not type(None))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"map of {_type_name(args[1])}"
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return f"list of {_type_name(args[0])}"
    if isinstance(hint, type) and issubclass(hint, Enum):
        return " or ".join(f'"{choice.value}"' for choice in hint)
    if hint in _TYPES:
        return _TYPES[hint]
    if isinstance(hint, type) and attrs.has(hint):
        return f"object with {', '.join(json_name(field) for field in attrs.fields(hint))}"
    return getattr(hint, "__name__", str(hint))


@click.group("plugins", help="Show the installed plugins, or create a new one.")
def plugins() -> None:
    pass


WIDE = 160
"""From this width on, in columns, the list is a table; in a narrower one names would be wrapped."""

_LAID_OUT = re.compile(r"^(\s|[-*] |[|>])", re.MULTILINE)
"""A line of a paragraph that is a list, a table, a quotation or code."""


@plugins.command("list", help="List every plugin that a profile may enable.")
@json_option
def list_plugins(
    as_json: bool,
) -> None:
    found = summaries(Registry())
    if as_json:
        print_json([each.to_json() for each in found])
    else:
        console = stdout_console(LIST_WIDTH)
        print_parts(console, _wide(found) if console.width >= WIDE else _narrow(found))


@plugins.command("show", help="Show one plugin: what it does, its arguments and its hooks.")
@click.argument("name", metavar="NAME", help="The plugin's name, as in a profile.")
@json_option
def show_plugin(
    name: str,
    as_json: bool,
) -> None:
    registry = Registry()
    found = summary(registry, name)
    learned = learned_facts(registry, name) if found.pure else {}
    if as_json:
        tried = {"learned": learned} if found.pure else {}
        print_json({**found.to_json(), **tried})
    else:
        print_parts(stdout_console(), _parts(found, learned))


plugins.add_command(new_plugin)


def _wide(found: list[PluginSummary]) -> Iterator[RenderableType]:
    """Yield a table of the working plugins, and the others below it: their texts would make its columns wide."""
    yield _table([each for each in found if not each.problem])
    yield from _narrow([each for each in found if each.problem])


def _table(found: list[PluginSummary]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for header in ("plugin", "distribution", "enabled at", "pure", "reads", "sign", "batch", "arguments"):
        table.add_column(header, overflow="fold", header_style="dim", no_wrap=header == "plugin")
    for each in found:
        table.add_row(
            each.name,
            each.source,
            ", ".join(each.points),
            _yes(each.pure),
            each.reads,
            _yes(each.signs),
            _yes(bool(each.batch)),
            ", ".join(argument.name for argument in each.arguments),
        )
    return table


def _yes(holds: bool) -> str:
    # No "no": a pure plugin needs none of the other promises.
    return "yes" if holds else ""


def _narrow(found: list[PluginSummary]) -> Iterator[RenderableType]:
    """Yield the content of the table as lines, for narrow terminals."""
    for each in found:
        yield Text(each.name, "bold") + Text(f"  {each.source}", "dim")
        if each.problem:
            yield Padding(Text(f"can't be used: {each.problem}", "red"), (0, 0, 0, 2))
            continue
        facts = (
            ", ".join(each.points),
            f"reads {each.reads}" if each.reads else "",
            "pure" if each.pure else "",
            "sign" if each.signs else "",
            "batch" if each.batch else "",
            f"arguments {', '.join(argument.name for argument in each.arguments)}" if each.arguments else "",
        )
        yield Padding(Text("; ".join(filter(None, facts))), (0, 0, 0, 2))


def _parts(found: PluginSummary, learned: Mapping[str, str]) -> Iterator[RenderableType]:
    source = f"  {found.source}" if found.source else ""
    yield Text(found.name, "bold") + Text(source, "dim")
    yield Padding(Text(_reflowed(found.doc) or "It has no docstring."), (1, 0))
    facts = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row("class", found.where)
    facts.add_row("enabled at", ", ".join(found.points) or "nothing")
    facts.add_row("hooks", ", ".join(found.hooks) or "none")
    if found.pure:
        facts.add_row("pure", "yes: what filter and score read is learned, and answers are reused")
        for hook, fact in learned.items():
            facts.add_row(hook, fact)
    elif found.reads or found.signs:
        facts.add_row("reads", found.reads or "not said, so that answers are never reused")
        facts.add_row("sign", "yes" if found.signs else "no, so that answers are never reused")
    else:
        facts.add_row("pure", "no, so that it is asked about each node for each pod")
    facts.add_row("batch", ", ".join(found.batch) or "no")
    yield facts
    if not found.arguments:
        yield Text("\nIt takes no arguments.")
        return
    table = Table(title="Arguments", title_justify="left", title_style="bold", box=None, pad_edge=False)
    for header in ("name", "type", "default"):
        table.add_column(header, overflow="fold", header_style="dim", no_wrap=header == "name")
    for argument in found.arguments:
        default = "required" if argument.required else json.dumps(argument.default, ensure_ascii=False)
        table.add_row(argument.name, argument.type, default)
    yield Padding(table, (1, 0, 0, 0))


def _reflowed(doc: str) -> str:
    """Return the text with each paragraph on one line, for a terminal of any width.

    Lists and code stay as they are.
    """
    paragraphs = doc.split("\n\n")
    return "\n\n".join(
        paragraph if _LAID_OUT.search(paragraph) else " ".join(paragraph.split()) for paragraph in paragraphs
    )
