"""The subcommands of this distribution. Their apps are imported when they are called."""

from __future__ import annotations

from typing import Final

from kschedfw.cli import Command

DUMP: Final = Command("Write the state of a live cluster to a file.", "kschedfw_kubernetes.cli.dump:dump")
RUN: Final = Command("Schedule the pods of a cluster.", "kschedfw_kubernetes.cli.run:run")
SERVE_EXTENDER: Final = Command(
    "Serve plugins to a stock kube-scheduler as an extender.",
    "kschedfw_kubernetes.cli.serve_extender:serve_extender",
)
