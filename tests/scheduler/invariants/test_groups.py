"""Groups of pods in a world where everything goes wrong: the properties hold after every step.

A failure names the property, the seed and the steps; `replay_groups(seed, steps)` repeats it exactly.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator

import pytest

from kschedfw.scheduler.groups.trial import MemberTrial
from tests.scheduler.invariants.group_world import (
    GroupWorld,
    LaterGroupWorld,
    replay_groups,
    run_group_world,
)

pytestmark = pytest.mark.slow

SEEDS = tuple(range(1, 65))


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Plugins that fail are logged with their tracebacks, thousands of them."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def seen_in(seeds: tuple[int, ...], steps: int, kind: type[GroupWorld] = GroupWorld) -> Counter[str]:
    """What happened in these worlds: properties that nothing could violate would prove nothing."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        world = run_group_world(seed, steps, kind)
        seen["bound"] += len(world.cluster.bound)
        seen["gangs"] += len(world.whole)
        seen["preempted"] += sum(
            event.count for event in world.cluster.truth.events if event.reason == "Preempted"
        )
    return seen


@pytest.mark.parametrize("kind", [GroupWorld, LaterGroupWorld])
def test_properties_of_groups_hold_in_a_few_worlds(kind: type[GroupWorld]) -> None:
    seen = seen_in(SEEDS[:2], 250, kind)
    assert seen["bound"] >= 10
    assert seen["gangs"] >= 1


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [GroupWorld, LaterGroupWorld])
@pytest.mark.parametrize("start", range(8))
def test_properties_of_groups_hold_in_many_worlds(start: int, kind: type[GroupWorld]) -> None:
    seen = seen_in(SEEDS[start::8], 400, kind)
    assert seen["bound"] >= 100
    assert seen["gangs"] >= 5
    assert seen["preempted"] >= 20


def test_a_trial_that_leaves_something_behind_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemberTrial, "undo", lambda trial: None)
    with pytest.raises(AssertionError, match="seed 1, step"):
        run_group_world(1, 250)


def test_the_same_seed_and_steps_make_the_same_run() -> None:
    world = run_group_world(3, 100)
    again = replay_groups(3, " ".join(world.steps))
    assert again.cluster.truth.resource_version == world.cluster.truth.resource_version
