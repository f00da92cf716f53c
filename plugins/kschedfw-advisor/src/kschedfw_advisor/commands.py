"""The subcommands of this distribution; their apps are imported when they are called."""

from __future__ import annotations

from typing import Final

from kschedfw.cli import Command

PENDING: Final = Command(
    "Show why pods are pending, and what would help.", "kschedfw_advisor.cli.pending:pending"
)
FIT: Final = Command("Show how many more replicas of a pod fit.", "kschedfw_advisor.cli.fit:fit")
DRAIN: Final = Command("Show whether nodes can be drained.", "kschedfw_advisor.cli.drain:drain")
SCALE_UP: Final = Command(
    "Show which new nodes get the pending pods a place.", "kschedfw_advisor.cli.scale_up:scale_up"
)
SCALE_DOWN: Final = Command(
    "Show which nodes can go, or be replaced by cheaper ones.",
    "kschedfw_advisor.cli.scale_down:scale_down",
)
WHAT_IF: Final = Command("Show which pods move if something changes.", "kschedfw_advisor.cli.what_if:what_if")
EXPLORE: Final = Command(
    "Look at a cluster and its decisions in a browser.", "kschedfw_advisor.cli.explore:explore"
)
