"""Pods, volumes and groups where events come late: all that can be placed is, by the events alone.

A failure names the property, the seed and the steps; `replay_late(kind, seed, steps)` repeats it exactly.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.scheduler.invariants.late_worlds import (
    AnyLateWorld,
    LateGroupWorld,
    LateWorld,
    replay_late,
    run_late_world,
)

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Bindings that fail are logged, many of them."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def preempted(world: AnyLateWorld) -> int:
    return sum(event.count for event in world.cluster.truth.events if event.reason == "Preempted")


@pytest.mark.parametrize("kind", [LateWorld, LateGroupWorld])
def test_all_that_can_be_placed_is_placed_in_a_few_worlds(kind: type[AnyLateWorld]) -> None:
    worlds = [run_late_world(kind, seed, 200) for seed in range(6)]
    assert sum(len(world.cluster.bound) for world in worlds) >= 40
    assert sum(map(preempted, worlds)) >= 3


@pytest.mark.nightly
@pytest.mark.parametrize("start", range(8))
@pytest.mark.parametrize("kind", [LateWorld, LateGroupWorld])
def test_all_that_can_be_placed_is_placed_in_many_worlds(kind: type[AnyLateWorld], start: int) -> None:
    for seed in range(start, 200, 8):
        run_late_world(kind, seed, 300)


def test_the_same_seed_and_steps_make_the_same_run() -> None:
    world = run_late_world(LateGroupWorld, 3, 100)
    again = replay_late(LateGroupWorld, 3, " ".join(world.steps))
    assert again.cluster.truth.resource_version == world.cluster.truth.resource_version
