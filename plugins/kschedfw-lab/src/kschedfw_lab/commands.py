"""The subcommands of this distribution; their apps are imported when they are called."""

from __future__ import annotations

from typing import Final

from kschedfw.cli import Command

BENCH: Final = Command(
    "Measure how fast a profile schedules on this machine.", "kschedfw_lab.cli.bench:bench"
)
COMPARE: Final = Command("Compare configurations on the same cluster.", "kschedfw_lab.cli.compare:compare")
REPORT: Final = Command("Show what the results of a sweep say.", "kschedfw_lab.cli.report:report")
SWEEP: Final = Command("Run many simulations that cross factors.", "kschedfw_lab.cli.sweep:sweep")
TUNE: Final = Command("Search for weights and arguments of plugins.", "kschedfw_lab.cli.tune:tune")
