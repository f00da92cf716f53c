"""`kschedfw plugins`: lists installed plugins, shows one, and creates new ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kschedfw.cli.plugin_summary import PluginSummary, summaries, summary
from kschedfw.cli.plugins_new import NEW_HELP, new_plugin
from kschedfw.cli.tables import LIST_WIDTH, print_parts, stdout_console
from kschedfw.framework.runtime.registry import Registry

plugins_app = typer.Typer(
    help="Show the installed plugins, or create a new one.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
)

WIDE = 160
"""From this width on, in columns, the list is a table; in a narrower one names would be wrapped."""

_LAID_OUT = re.compile(r"^(\s|[-*] |[|>])", re.MULTILINE)
"""A line of a paragraph that is a list, a table, a quotation or code."""

_AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@plugins_app.command("list", help="List every plugin that a profile may enable.")
def list_plugins(as_json: _AsJson = False) -> None:
    found = summaries(Registry())
    if as_json:
        print(json.dumps([each.to_json() for each in found], indent=2, ensure_ascii=False))
    else:
        console = stdout_console(LIST_WIDTH)
        print_parts(console, _wide(found) if console.width >= WIDE else _narrow(found))


@plugins_app.command("show", help="Show one plugin: what it does, its arguments and its hooks.")
def show_plugin(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The plugin's name, as in a profile.")],
    as_json: _AsJson = False,
) -> None:
    found = summary(Registry(), name)
    if as_json:
        print(json.dumps(found.to_json(), indent=2, ensure_ascii=False))
    else:
        print_parts(stdout_console(), _parts(found))


plugins_app.command("new", help=NEW_HELP, short_help="Make a distribution with a plugin, to begin from.")(
    new_plugin
)


def _wide(found: list[PluginSummary]) -> Iterator[RenderableType]:
    """Yield a table of the working plugins, and the others below it: their texts would make its columns wide."""
    yield _table([each for each in found if not each.problem])
    yield from _narrow([each for each in found if each.problem])


def _table(found: list[PluginSummary]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for header in ("plugin", "distribution", "enabled at", "reads", "sign", "batch", "arguments"):
        table.add_column(header, overflow="fold", header_style="dim", no_wrap=header == "plugin")
    for each in found:
        table.add_row(
            each.name,
            each.source,
            ", ".join(each.points),
            each.reads,
            "yes" if each.signs else "no",
            "yes" if each.batch else "no",
            ", ".join(argument.name for argument in each.arguments),
        )
    return table


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
            "sign" if each.signs else "",
            "batch" if each.batch else "",
            f"arguments {', '.join(argument.name for argument in each.arguments)}" if each.arguments else "",
        )
        yield Padding(Text("; ".join(filter(None, facts))), (0, 0, 0, 2))


def _parts(found: PluginSummary) -> Iterator[RenderableType]:
    source = f"  {found.source}" if found.source else ""
    yield Text(found.name, "bold") + Text(source, "dim")
    yield Padding(Text(_reflowed(found.doc) or "It has no docstring."), (1, 0))
    facts = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row("class", found.where)
    facts.add_row("enabled at", ", ".join(found.points) or "nothing")
    facts.add_row("hooks", ", ".join(found.hooks) or "none")
    facts.add_row("reads", found.reads or "not said, so that answers are never reused")
    facts.add_row("sign", "yes" if found.signs else "no, so that answers are never reused")
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
