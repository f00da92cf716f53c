"""Writes docs/arguments.md from the plugins' arguments classes: `python docs/generate_arguments.py`."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path

from kschedfw.cli.plugins import Argument, PluginSummary, summaries
from kschedfw.framework.runtime.registry import Registry

OUTPUT = Path(__file__).parent / "arguments.md"

INTRODUCTION = """\
# Arguments

For operators and policy testers: every argument of every plugin, with type, range and default.

<!-- Written by docs/generate_arguments.py from the plugins' arguments classes. Change those. -->

Every argument that a plugin of kschedfw takes in `pluginConfig`, with its type and default. What they do is in
[the in-tree plugins](plugins.md) and [Policies](policy.md); `kschedfw plugins show NAME` says the same of any
installed plugin.
"""


def arguments_reference() -> str:
    """The text of docs/arguments.md."""
    homes = ("kschedfw ", "kschedfw-devices ", "kschedfw-legacy ")
    ours = [plugin for plugin in summaries(Registry()) if plugin.distribution.startswith(homes)]
    sections = (line for plugin in ours if plugin.arguments for line in _section(plugin))
    without = ", ".join(f"`{plugin.name}`" for plugin in ours if not plugin.arguments)
    return "\n".join([INTRODUCTION, *sections, f"## Without arguments\n\n{without}\n"])


def _section(plugin: PluginSummary) -> Iterator[str]:
    yield f"## {plugin.name}\n"
    yield f"{inspect.cleandoc(plugin.doc).partition(chr(10))[0]}\n"
    yield "| argument | type | default |"
    yield "| --- | --- | --- |"
    yield from map(_row, plugin.arguments)
    yield ""


def _row(argument: Argument) -> str:
    default = "required" if argument.required else f"`{json.dumps(argument.default)}`"
    return f"| `{argument.name}` | {argument.type} | {default} |"


if __name__ == "__main__":
    OUTPUT.write_text(arguments_reference(), encoding="utf-8")
