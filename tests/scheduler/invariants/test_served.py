"""A scheduler over HTTP, with all that goes wrong there: at quiet points all is as it has to be.

`make soak STEPS=200000` takes more of the same steps.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator

import pytest
from kschedfw_kubernetes.cluster import store

from kschedfw.api.node import Node
from tests.scheduler.invariants import served
from tests.scheduler.invariants.served import STEPS_BETWEEN_QUIET_POINTS, ServedWorld

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """What goes wrong is logged, thousands of times."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", range(4))
def test_at_quiet_points_all_is_well(seed: int) -> None:
    with ServedWorld(seed) as world:
        world.run(4 * STEPS_BETWEEN_QUIET_POINTS)
        assert world.quiet_points == 4


def test_much_goes_wrong_in_a_world() -> None:
    with ServedWorld(11) as world:
        world.run(6 * STEPS_BETWEEN_QUIET_POINTS)
        events, bound = world.server.audit.events, len(world.node_of)
        kinds = len(world.cluster.sync_status())
    verbs = Counter(event.verb for event in events)
    assert bound >= 10
    assert sum(event.resource == "pods/binding" and event.code == 201 for event in events) >= 10
    # Cut watches begin anew, and lists where the version is too old by then.
    assert min(verbs["list"], verbs["watch"]) >= 2 * kinds


def test_a_client_that_misses_deletions_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store.Store, "remove", lambda self, key, last=None: iter(()))
    monkeypatch.setattr(served, "PATIENCE", 0.5)
    with ServedWorld(1) as world:
        world.truth.delete(world.truth.list(Node)[0])
        with pytest.raises(AssertionError, match="the list of Nodes is another one"):
            world.come_to_rest()
