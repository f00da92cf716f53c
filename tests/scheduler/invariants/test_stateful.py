"""The whole scheduler in a world where everything goes wrong: the properties hold after every step.

A failure names the property, the seed and the steps; `replay(seed, steps)` repeats it exactly.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from kschedfw.api.pod import Pod
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.testing.properties import examples
from tests.scheduler.invariants import properties
from tests.scheduler.invariants.world import STEPS, World, replay, run_world

pytestmark = pytest.mark.slow

SEEDS = tuple(range(1, 41))
STEPS_PER_SEED = 600


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Plugins that fail are logged with their tracebacks, thousands of them."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


class SchedulerMachine(RuleBasedStateMachine):
    """Lets hypothesis choose the steps, so that a failure is reduced to a few of them."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(0)

    @initialize(seed=st.integers(0, 2**16))
    def begin(self, seed: int) -> None:
        self.world = World(seed)

    @rule(step=st.sampled_from(sorted(STEPS)))
    def step(self, step: str) -> None:
        self.world.do(step)

    @rule(pods=st.integers(1, 6))
    def burst(self, pods: int) -> None:
        """New pods that the scheduler sees at once; single steps alone seldom bring it that far."""
        for step in ("add_pod", "deliver", "schedule", "bind"):
            for _ in range(pods):
                self.world.do(step)

    def teardown(self) -> None:
        self.world.do("settle")
        self.world.close()


TestSchedulerMachine = SchedulerMachine.TestCase
TestSchedulerMachine.settings = settings(max_examples=examples(30), stateful_step_count=40, print_blob=True)


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(
            SEEDS[start::10], id=f"from-{SEEDS[start]}", marks=[pytest.mark.nightly] if start else ()
        )
        for start in range(10)
    ],
)
def test_many_steps(seeds: tuple[int, ...]) -> None:
    """Much happens in them: properties that nothing could violate would prove nothing."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        world = run_world(seed, STEPS_PER_SEED)
        for event in world.cluster.truth.events:
            seen[event.reason] += event.count
        seen["bound"] += len(world.cluster.bound)
        seen["attempts"] += sum(world.journal.attempts.values())
        seen["preemptions"] += len(world.journal.victims)
    assert seen["bound"] >= 40
    assert seen["attempts"] >= 200
    assert seen["preemptions"] >= 4
    assert seen["FailedScheduling"] >= 80


def test_there_are_enough_steps() -> None:
    assert len(SEEDS) * STEPS_PER_SEED >= 20_000


def test_the_same_seed_and_steps_make_the_same_run() -> None:
    world = run_world(7, 150)
    again = replay(7, " ".join(world.steps))
    assert again.cluster.truth.list(Pod) == world.cluster.truth.list(Pod)
    assert again.cluster.truth.resource_version == world.cluster.truth.resource_version


def test_a_failure_says_how_to_repeat_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing_is_bound(world: World) -> None:
        if world.cluster.bound:
            raise AssertionError("a pod was bound")

    monkeypatch.setattr(properties, "ALWAYS", (nothing_is_bound,))
    with pytest.raises(AssertionError, match=r"nothing_is_bound: a pod was bound") as failure:
        run_world(1, 200)
    seed, steps = str(failure.value).partition("replay(")[2].removesuffix(")").split(", ", 1)
    with pytest.raises(AssertionError, match="nothing_is_bound") as repeated:
        replay(int(seed), steps.strip("'"))
    assert str(repeated.value) == str(failure.value)


@pytest.mark.parametrize("seed", range(5))
def test_changes_during_a_cycle_do_not_change_its_result(seed: int) -> None:
    """A pod goes where it would have gone without what another plugin does to the cluster during its cycle."""
    hosts = []
    for meddling in (False, True):
        world = World(seed)
        world.cluster.calm = True
        world.journal.trouble = False
        for step in ("add_pod", "add_pod", "add_pod", "deliver", "deliver", "schedule", "schedule"):
            world.do(step)
        if meddling:
            meddle = world.journal.meddle
            world.journal.on_pre_filter = partial(_whatever, meddle)
        world.scheduler.schedule_one()
        hosts.append({pod.name: pod.node_name for pod in world.scheduler.cache.dump().pods})
    assert hosts[0] == hosts[1]


def _whatever(act: Callable[[], None], snapshot: Snapshot) -> None:
    act()
