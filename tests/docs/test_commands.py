"""Every `kschedfw` command that a page shows has subcommands and options that exist.

`conftest.py` runs most of them. Those that need a cluster or a server, or aren't in a `console` block, are only parsed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
import pytest

from kschedfw.cli.commands import COMMANDS

REPOSITORY = Path(__file__).parents[2]
PAGES = [
    page
    for pattern in ("*.md", "docs/*.md", "examples/**/README.md", "plugins/*/README.md")
    for page in sorted(REPOSITORY.glob(pattern))
]
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
SHELL_BLOCKS = ("console", "sh", "shell", "bash")
END_OF_COMMAND = {"|", ";", ";;", "&", "&&", "||", ">", ">>", "<", "done"}


KNOWN = frozenset(COMMANDS.homes) | frozenset(COMMANDS.names())


def shown_commands(text: str) -> Iterator[list[str]]:
    """The arguments of each `kschedfw` command in a page's blocks for shells, whether it is run or not."""
    for _, kind, block in FENCE.findall(text):
        if kind not in SHELL_BLOCKS:
            continue
        lines = block.replace("\\\n", " ").splitlines()
        if kind == "console":
            lines = [line.strip()[2:] for line in lines if line.strip().startswith("$ ")]
        for line in lines:
            yield from _commands_of(line)


def _commands_of(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    for place, word in enumerate(words[:-1]):
        if word == "kschedfw" and words[place - 1] not in ("install", "run") and words[place + 1] in KNOWN:
            arguments = []
            for each in words[place + 1 :]:
                if each in END_OF_COMMAND:
                    break
                arguments.append(each)
            yield arguments


def parse(arguments: list[str]) -> None:
    """Parse a command without running it.

    Raises:
        click.UsageError: there is no such subcommand or option, or a value is invalid.
    """
    name, *rest = arguments
    command = COMMANDS.load(name).load()
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        name, *rest = rest
        assert name in command.commands, f"{name}: no such subcommand"
        command = command.commands[name]
    with (
        suppress(click.exceptions.Exit),
        command.make_context(name, rest),
    ):  # an option may end the command while it is parsed
        pass


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_command_that_is_shown_has_subcommands_and_options_that_exist(page: Path) -> None:
    for arguments in shown_commands(page.read_text(encoding="utf-8")):
        try:
            parse(arguments)
        except Exception as error:
            raise AssertionError(f"kschedfw {shlex.join(arguments)}: {error}") from error


def test_there_are_many_and_a_misspelt_option_would_be_noticed() -> None:
    found = [command for page in PAGES for command in shown_commands(page.read_text(encoding="utf-8"))]
    assert len(found) > 100
    assert {"run", "record", "shadow", "serve-extender", "bench", "explore"} <= {
        command[0] for command in found
    }
    with pytest.raises(Exception, match="--sede"):
        parse(["simulate", "cluster.yaml", "--sede", "1"])
