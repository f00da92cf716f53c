"""The subcommands of this distribution; their apps are imported when they are called."""

from __future__ import annotations

from typing import Final

from kschedfw.cli import Command

RECORD: Final = Command("Record what happens in a live cluster.", "kschedfw_replay.cli.record:record")
REPLAY: Final = Command("Replay a recording under other configurations.", "kschedfw_replay.cli.replay:replay")
SHADOW: Final = Command(
    "Decide beside a live cluster's scheduler, and compare.", "kschedfw_replay.cli.shadow:shadow"
)
