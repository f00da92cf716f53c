"""The subcommands of this distribution; their apps are imported when they are called."""

from __future__ import annotations

from typing import Final

from kschedfw.cli import Command

BENCH: Final = Command(
    "Measure how fast a profile schedules on this machine.", "kschedfw_lab.cli.bench:bench_app"
)
COMPARE: Final = Command(
    "Compare configurations on the same cluster.", "kschedfw_lab.cli.compare:compare_app"
)
REPORT: Final = Command("Show what the results of a sweep say.", "kschedfw_lab.cli.report:report_app")
SWEEP: Final = Command("Run many simulations that cross factors.", "kschedfw_lab.cli.sweep:sweep_app")
TUNE: Final = Command("Search for weights and arguments of plugins.", "kschedfw_lab.cli.tune:tune_app")
