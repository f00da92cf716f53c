"""The subcommands of this distribution; their apps are imported when they are called."""

from __future__ import annotations

from typing import Final

from kschedfw.cli import Command

SHADOW: Final = Command(
    "Decide beside a live cluster's scheduler, and compare.", "kschedfw_replay.cli.shadow:shadow_app"
)
