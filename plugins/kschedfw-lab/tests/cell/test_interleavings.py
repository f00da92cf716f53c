"""Every interleaving of few schedulers on a shared state, and random ones of more."""

from __future__ import annotations

import pytest
from cell.random_world import run_world
from cell.shared_world import SharedWorld
from kschedfw_apiserver.exploration import explore
from kschedfw_lab.cell.shared_state import CommitMode, Detection


@pytest.mark.parametrize("slots", [1, pytest.param(2, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("detection", Detection)
def test_every_interleaving_of_two_schedulers_two_nodes_and_three_pods(
    detection: Detection, slots: int
) -> None:
    """No node is overcommitted, no pod is lost or bound twice, and from everywhere all can still get a node.

    Any scheduler may place any pod, at any time, on any node that is free in its copy, which follows the truth change
    by change, or crash and begin anew.
    """
    found = explore(lambda: SharedWorld(slots=slots, detection=detection))
    assert found.states > 100


@pytest.mark.parametrize("mode", CommitMode)
def test_every_interleaving_of_transactions_of_two_pods(mode: CommitMode) -> None:
    assert explore(lambda: SharedWorld(slots=1, most_claims=2, mode=mode)).states > 100


def test_without_checks_at_the_commit_a_node_is_overcommitted() -> None:
    with pytest.raises(AssertionError, match="overcommitted"):
        explore(lambda: SharedWorld(slots=1, checks=False))
    with pytest.raises(AssertionError, match="overcommitted"):
        _run_worlds_without_checks()


def _run_worlds_without_checks() -> None:
    for seed in range(20):
        run_world(seed, checks=False)


@pytest.mark.parametrize("seed", range(8))
def test_random_steps_of_up_to_eight_schedulers(seed: int) -> None:
    """With crashes, partitions, and copies that lag. `make soak COMMITS=1000000` makes as many steps as it is told."""
    run_world(seed, 1000)
