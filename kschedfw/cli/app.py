"""The command line: arguments in, exit code out."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any

import attrs
import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from kschedfw.api.errors import KschedfwError
from kschedfw.cli.exits import ExitCode, complain, tell

HELP = """kube-scheduler v1.36 in Python: simulate it, ask it why, run it."""

_ALLOCATIONS_BETWEEN_COLLECTIONS = 20_000
"""With Python's own 700, garbage collection takes a tenth of a simulation's time: most objects live to its end."""


@attrs.frozen
class Command:
    """A subcommand: its line in `kschedfw --help`, and its `typer.Typer` as `module:name`."""

    summary: str
    app: str

    def load(self) -> typer.Typer:
        module, _, name = self.app.partition(":")
        app: typer.Typer = getattr(import_module(module), name)
        return app


COMMANDS = {
    "simulate": Command("Schedule the pending pods of a cluster.", "kschedfw.cli.simulate:simulate_app"),
    "compare": Command("Compare configurations on the same cluster.", "kschedfw.cli.compare:compare_app"),
    "explain": Command("Explain why a pod goes to a node, or to none.", "kschedfw.cli.explain:explain_app"),
    "pending": Command("Show why pods are pending, and what would help.", "kschedfw.cli.pending:pending_app"),
    "fit": Command("Show how many more replicas of a pod fit.", "kschedfw.cli.fit:fit_app"),
    "drain": Command("Show whether nodes can be drained.", "kschedfw.cli.drain:drain_app"),
    "scale-up": Command(
        "Show which new nodes get the pending pods a place.", "kschedfw.cli.scale_up:scale_up_app"
    ),
    "explore": Command(
        "Look at a cluster and its decisions in a browser.", "kschedfw.cli.explore:explore_app"
    ),
    "serve-extender": Command(
        "Serve plugins to a stock kube-scheduler as an extender.",
        "kschedfw.cli.serve_extender:serve_extender_app",
    ),
    "run": Command("Schedule the pods of a cluster.", "kschedfw.cli.run:run_app"),
    "dump": Command("Write the state of a live cluster to a file.", "kschedfw.cli.dump:dump_app"),
    "sweep": Command("Run many simulations that cross factors.", "kschedfw.cli.sweep:sweep_app"),
    "tune": Command("Search for weights and arguments of plugins.", "kschedfw.cli.tune:tune_app"),
    "bench": Command("Measure how fast a profile schedules on this machine.", "kschedfw.cli.bench:bench_app"),
    "report": Command("Show what the results of a sweep say.", "kschedfw.cli.report:report_app"),
    "config": Command("Check, show and compare configurations.", "kschedfw.cli.config:config_app"),
    "plugins": Command(
        "Show the installed plugins, or create a new one.", "kschedfw.cli.plugins:plugins_app"
    ),
}


class _Commands(TyperGroup):
    """The subcommands, imported when they are called; `--help` and a misspelt command import none of them."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, command in COMMANDS.items():
            self.add_command(TyperCommand(name, short_help=command.summary))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            # The library with which Typer reads choices puts this before the problem.
            error.message = error.message.removeprefix("Value error, ")
            raise

    # Without types: depending on its version, typer has its own click or uses the installed one.
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else get_command(COMMANDS[name].load()), rest


app = typer.Typer(
    cls=_Commands,
    help=HELP,
    add_completion=False,
    no_args_is_help=True,
    # Plain text: boxes don't survive narrow terminals, and tracebacks are for developers.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def run(args: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; no error of the input or of kschedfw escapes."""
    gc.set_threshold(_ALLOCATIONS_BETWEEN_COLLECTIONS)
    try:
        app(args=None if args is None else list(args), prog_name="kschedfw")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else ExitCode.DONE
    except KschedfwError as error:
        return _refuse(error)
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        return complain(f"{where}{error.strerror or error}", ExitCode.BAD_INPUT)
    except Exception as error:
        return complain(f"this is a bug in kschedfw: {type(error).__name__}: {error}", ExitCode.BUG)
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


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"kschedfw {version('kschedfw')}")
        raise typer.Exit


@app.callback()
def _command(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    pass
