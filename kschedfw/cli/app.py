"""The command line: arguments in, exit code out."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

import click

from kschedfw.api.distributions import told
from kschedfw.api.errors import KschedfwError
from kschedfw.api.extensions import ExtensionError
from kschedfw.api.garbage import without_collections
from kschedfw.cli.commands import COMMANDS
from kschedfw.cli.completion import install_completion, show_completion
from kschedfw.cli.exits import ExitCode, complain, tell

HELP = """kube-scheduler v1.36 in Python: simulate it, ask it why, run it."""


class _Commands(click.Group):
    """The subcommands, imported when they are called; `--help` and a misspelt command import none of them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # Here, not when this module is imported: reading entry points warns of those that are damaged.
        for name in COMMANDS.names():
            # Only the name, for listing and suggesting; `resolve_command` loads the command.
            self.add_command(click.Command(name))
        try:
            return super().parse_args(ctx, args)
        except BrokenPipeError:
            # While --help is printed; see `invoke`.
            ctx.exit(ExitCode.READER_GONE)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for name, command in self.commands.items():
            command.short_help = _summary(name)
        super().format_commands(ctx, formatter)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            # click would print an empty line, and exit with 1.
            ctx.exit(ExitCode.INTERRUPTED)
        except BrokenPipeError:
            # click would exit with 1, which is an answer of many commands.
            ctx.exit(ExitCode.READER_GONE)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] in COMMANDS.homes:
            # Raises the error that names the distribution to install.
            COMMANDS.load(args[0])
        name, _, rest = super().resolve_command(ctx, args)
        if name is None:
            return name, None, rest
        # Collections take a quarter of the time of importing, and free nothing.
        with without_collections():
            command = COMMANDS.load(name)
            try:
                loaded = command.load()
            except ExtensionError as error:
                raise COMMANDS.failure(name, str(error)) from error
            # Before collections begin again: the first one would look at everything that was imported.
            gc.freeze()
        return name, loaded, rest


def _summary(name: str) -> str:
    try:
        return COMMANDS.load(name).summary
    except ExtensionError as error:
        # Other commands may still work.
        return f"(can't be used: {error})"


@click.command(cls=_Commands, help=HELP, context_settings={"show_default": True})
@click.version_option(
    package_name="kschedfw", message="%(prog)s %(version)s", help="Show the version and exit."
)
@click.option(
    "--install-completion",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=install_completion,
    help="Install completion for the current shell.",
)
@click.option(
    "--show-completion",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=show_completion,
    help="Show completion for the current shell, to copy it or customize the installation.",
)
def app() -> None:
    pass


def run(args: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; no error of the input or of kschedfw escapes."""
    try:
        app(args=None if args is None else list(args), prog_name="kschedfw")
    except SystemExit as end:
        # click ends so, also after --help and for a wrong option.
        return end.code if isinstance(end.code, int) else ExitCode.DONE
    except KschedfwError as error:
        return _refuse(error)
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        return complain(f"{where}{error.strerror or error}", ExitCode.BAD_INPUT)
    except Exception as error:
        return complain(f"this is a bug in kschedfw: {type(error).__name__}: {error}", ExitCode.BUG)
    except KeyboardInterrupt:
        raise
    # Neither kschedfw nor Python raises any other: it is a plugin's, which isn't known here but for the place.
    except BaseException as error:
        return complain(f"ended by {told(error)}", ExitCode.BUG)
    return ExitCode.DONE


def _refuse(error: KschedfwError) -> ExitCode:
    # Imported here, since `--help` doesn't need it.
    from kschedfw.cli.inputs import InvalidInputError
    from kschedfw.config import ConfigurationError

    message = str(error)
    if isinstance(error, InvalidInputError):
        tell(error.problems)
    elif isinstance(error, ConfigurationError):
        tell(message.splitlines())
        message = "the configuration is refused, so nothing was done"
    return complain(message, ExitCode.BAD_INPUT)
