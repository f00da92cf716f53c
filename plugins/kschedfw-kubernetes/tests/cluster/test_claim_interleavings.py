"""Every interleaving of few schedulers that claim places by records, and random ones of more."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from cluster.claims_world import ClaimsWorld, run_at_random
from kschedfw_apiserver.exploration import explore


@pytest.mark.slow
def test_every_interleaving_of_two_schedulers_two_nodes_and_two_pods() -> None:
    """No node is overcommitted, no pod is bound twice, and from everywhere all can still get a node."""
    assert explore(lambda: ClaimsWorld(pods=2, crashes=0)).states > 1000


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(partial(ClaimsWorld, crashes=0), id="two nodes", marks=pytest.mark.nightly),
        pytest.param(
            partial(ClaimsWorld, nodes=1, slots=2),
            id="one node with room for two, and a crash",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            partial(ClaimsWorld, nodes=1, slots=2, batch=2, eager=True, crashes=0), id="two claims at once"
        ),
    ],
)
def test_every_interleaving_of_two_schedulers_and_three_pods(make: Callable[[], ClaimsWorld]) -> None:
    """A crash loses what a scheduler knew, and whether it binds the pod of its claim.

    `python -m cluster.claims_world` goes through larger worlds, which takes minutes.
    """
    assert explore(make).states > 1000


def test_without_checks_a_node_is_overcommitted() -> None:
    with pytest.raises(AssertionError, match="overcommitted"):
        explore(lambda: ClaimsWorld(pods=2, crashes=0, checks=False))


def test_without_watermarks_a_node_is_overcommitted() -> None:
    """Whoever follows the records faster than the pods would see neither a claim nor the binding that ended it."""
    with pytest.raises(AssertionError, match="overcommitted"):
        explore(lambda: ClaimsWorld(nodes=1, slots=2, crashes=0, watermarks=False))


def test_without_asking_whether_a_pod_still_fits_a_node_is_overcommitted() -> None:
    """Its decision was made on what was known then; the record that it writes may say more."""
    with pytest.raises(AssertionError, match="overcommitted"):
        explore(lambda: ClaimsWorld(pods=2, crashes=0, fit_checks=False))


@pytest.mark.parametrize("seed", range(6))
def test_random_steps_of_up_to_eight_schedulers(seed: int) -> None:
    run_at_random(seed, 1000)


def test_random_steps_without_checks() -> None:
    with pytest.raises(AssertionError, match="overcommitted"):
        _run_worlds_without_checks()


def _run_worlds_without_checks() -> None:
    for seed in range(20):
        run_at_random(seed, 1000, checks=False)
