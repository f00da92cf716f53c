"""Subcommands of `kschedfw`: extensions of installed distributions in the entry-point group `kschedfw.commands`."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Final

from kschedfw.api.distributions import ImportFailedError, imported
from kschedfw.api.extensions import ExtensionError, Extensions
from kschedfw.api.records import frozen

if TYPE_CHECKING:
    # For types alone: `kschedfw --help` loads every Command, but no app.
    import click


@frozen
class Command:
    """A subcommand: its line in `kschedfw --help`, and its `click.Command` as `module:name`.

    An entry point of the group `kschedfw.commands` has the subcommand's name and refers to a Command. The module with
    the Command should import nothing else: `kschedfw --help` loads it to list the subcommand. The module of the app is
    imported when the subcommand is called.
    """

    summary: str
    app: str

    def load(self) -> click.Command:
        """Import the app.

        Raises:
            ExtensionError: importing it fails, or there is something else.
        """
        import click

        try:
            app = imported(EntryPoint(self.app, self.app, COMMANDS.group))
        except ImportFailedError as error:
            raise ExtensionError(str(error)) from error
        if not isinstance(app, click.Command):
            raise ExtensionError(f"{self.app} is {type(app).__name__}, expected a click.Command")
        return app


COMMANDS: Final = Extensions(
    "kschedfw.commands",
    "command",
    Command,
    {
        **dict.fromkeys(
            ("drain", "explore", "fit", "pending", "scale-down", "scale-up", "what-if"), "kschedfw-advisor"
        ),
        **dict.fromkeys(("dump", "run", "serve-extender"), "kschedfw-kubernetes"),
        **dict.fromkeys(("bench", "compare", "report", "sweep", "tune"), "kschedfw-lab"),
        **dict.fromkeys(("record", "replay", "shadow"), "kschedfw-replay"),
        "mcp": "kschedfw-mcp",
    },
)

SIMULATE: Final = Command("Schedule the pending pods of a cluster.", "kschedfw.cli.simulate:simulate")
EXPLAIN: Final = Command("Explain why a pod goes to a node, or to none.", "kschedfw.cli.explain:explain")
CONFIG: Final = Command("Check, show and compare configurations.", "kschedfw.cli.config:config")
PLUGINS: Final = Command("Show the installed plugins, or create a new one.", "kschedfw.cli.plugins:plugins")
TEST: Final = Command("Run declarative tests of policies.", "kschedfw.cli.test:run_suites")
