"""The autoscaler's nodes are enough and one fewer is not; the descheduler's moves help, and honour the budget."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.examples.running import output_as_shown

pytestmark = pytest.mark.slow


def test_each_expander_gets_all_pods_placed_by_its_own_rule() -> None:
    lines = output_as_shown("08-what-if", "autoscaler.py")
    by_expander: dict[str, list[str]] = {}
    for line in lines:
        expander, _, option = line.partition(": ")
        by_expander.setdefault(expander, []).append(option)
    assert list(by_expander) == ["price", "least-waste", "most-pods"]
    for options in by_expander.values():
        pods = [pod for option in options for pod in option.split(" for ")[1].split(", ")[:-2]]
        assert sorted(pods) == ["api-2", "api-3", "cache-2", "etl-1", "etl-2"]
    cents = {
        expander: sum(int(option.split(" cents")[0].rsplit(" ", 1)[1]) for option in options)
        for expander, options in by_expander.items()
    }
    assert cents["price"] == min(cents.values())


def test_every_move_improves_the_balance_and_one_database_may_move() -> None:
    lines = output_as_shown("08-what-if", "descheduler.py")
    moves = [line for line in lines if "→" in line]
    imbalances = [float(line.rstrip(".").rsplit(" ", 1)[1]) for line in (lines[0], *moves)]
    assert all(after < before for before, after in pairwise(imbalances))
    assert sum(line.startswith("db-") for line in moves) == 1
    assert all(line.endswith("would violate PodDisruptionBudget db") for line in lines if "must stay" in line)
    assert lines[-1] == f"Nothing has moved: the imbalance is {imbalances[0]:.3f}."
