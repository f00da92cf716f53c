"""Subcommands of `kschedfw`: extensions of installed distributions in the entry-point group `kschedfw.commands`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

import attrs

from kschedfw.api.extensions import ExtensionError, Extensions

if TYPE_CHECKING:
    import typer  # `kschedfw --help` loads every Command, and no app


@attrs.frozen
class Command:
    """A subcommand: its line in `kschedfw --help`, and its `typer.Typer` as `module:name`.

    An entry point of the group `kschedfw.commands` has the subcommand's name and refers to a Command. The module with
    the Command should import nothing else: `kschedfw --help` loads it to list the subcommand. The module of the app is
    imported when the subcommand is called.
    """

    summary: str
    app: str

    def load(self) -> typer.Typer:
        """Import the app.

        Raises:
            ExtensionError: importing it fails.
        """
        module, _, name = self.app.partition(":")
        try:
            app: typer.Typer = getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise ExtensionError(f"importing {self.app} failed: {error}") from error
        return app


COMMANDS: Final = Extensions(
    "kschedfw.commands",
    "command",
    Command,
    dict.fromkeys(("bench", "compare", "report", "sweep", "tune"), "kschedfw-lab"),
)

SIMULATE: Final = Command("Schedule the pending pods of a cluster.", "kschedfw.cli.simulate:simulate_app")
EXPLAIN: Final = Command("Explain why a pod goes to a node, or to none.", "kschedfw.cli.explain:explain_app")
PENDING: Final = Command(
    "Show why pods are pending, and what would help.", "kschedfw.cli.pending:pending_app"
)
FIT: Final = Command("Show how many more replicas of a pod fit.", "kschedfw.cli.fit:fit_app")
DRAIN: Final = Command("Show whether nodes can be drained.", "kschedfw.cli.drain:drain_app")
SCALE_UP: Final = Command(
    "Show which new nodes get the pending pods a place.", "kschedfw.cli.scale_up:scale_up_app"
)
EXPLORE: Final = Command(
    "Look at a cluster and its decisions in a browser.", "kschedfw.cli.explore:explore_app"
)
SERVE_EXTENDER: Final = Command(
    "Serve plugins to a stock kube-scheduler as an extender.",
    "kschedfw.cli.serve_extender:serve_extender_app",
)
RUN: Final = Command("Schedule the pods of a cluster.", "kschedfw.cli.run:run_app")
DUMP: Final = Command("Write the state of a live cluster to a file.", "kschedfw.cli.dump:dump_app")
CONFIG: Final = Command("Check, show and compare configurations.", "kschedfw.cli.config:config_app")
PLUGINS: Final = Command(
    "Show the installed plugins, or create a new one.", "kschedfw.cli.plugins:plugins_app"
)
