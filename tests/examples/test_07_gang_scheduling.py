"""Half a gang runs with the default profile, and never with Coscheduling."""

from __future__ import annotations

import pytest

from tests.examples.running import REPOSITORY, output_as_shown

pytestmark = pytest.mark.slow

COSCHEDULING = REPOSITORY / "plugins" / "kschedfw-coscheduling" / "src"


@pytest.fixture(scope="module")
def chapters() -> dict[str, dict[str, int]]:
    """How many pods of each gang run, by the line that begins the chapter."""
    found: dict[str, dict[str, int]] = {}
    for line in output_as_shown("07-gang-scheduling", "gangs.py", COSCHEDULING):
        if not line.startswith(" "):
            gangs = found[line] = {}
        elif " run" in line:
            name, _, rest = line.strip().partition(": ")
            gangs[name] = int(rest.split()[0])
    return found


def test_without_the_plugin_both_gangs_hold_half_and_neither_can_work(
    chapters: dict[str, dict[str, int]],
) -> None:
    assert chapters["The default profile:"] == {"left": 2, "right": 2}


def test_with_it_one_runs_and_then_the_other(chapters: dict[str, dict[str, int]]) -> None:
    assert chapters["With Coscheduling:"] == {"left": 3, "right": 0}
    assert chapters["When left has finished:"] == {"left": 0, "right": 3}
