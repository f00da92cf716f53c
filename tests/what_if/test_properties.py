"""Whatever is done and undone: the answers are those of a scheduler that has only seen what is left."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedfw import FitError, InMemoryCluster, Profile, Scheduler, WhatIf, default_profile
from kschedfw.framework.clock import VirtualClock
from kschedfw.framework.diagnosis import NoNodesAvailableError
from kschedfw.testing.properties import examples
from tests.what_if.builders import REGISTRY
from tests.what_if.programs import (
    PROGRAMS,
    Answers,
    Program,
    World,
    outcome,
    run,
    surviving,
    worlds,
    worlds_with_volumes_and_devices,
)

pytestmark = pytest.mark.slow

_WORLDS = worlds() | worlds_with_volumes_and_devices()


@given(_WORLDS, PROGRAMS)
@settings(max_examples=examples(20))
def test_after_a_revert_everything_is_as_if_nothing_had_happened(world: World, program: Program) -> None:
    what_if, untouched = WhatIf(world.objects, registry=REGISTRY), WhatIf(world.objects, registry=REGISTRY)
    before = list(what_if.objects())
    with what_if.transaction() as trial:
        run(world, what_if, trial, program)
    after = list(what_if.objects())
    assert len(after) == len(before)
    assert all(one is other for one, other in zip(after, before, strict=True))
    with what_if.transaction() as trial, untouched.transaction() as reference:
        assert Answers.of(world, what_if, trial, preempt=True) == Answers.of(
            world, untouched, reference, preempt=True
        )


@given(_WORLDS, PROGRAMS, st.booleans())
@settings(max_examples=examples(20))
def test_reverted_parts_leave_no_trace_in_the_rest(world: World, program: Program, preempt: bool) -> None:
    what_if, straight = WhatIf(world.objects, registry=REGISTRY), WhatIf(world.objects, registry=REGISTRY)
    with what_if.transaction() as trial, straight.transaction() as reference:
        run(world, what_if, trial, program)
        run(world, straight, reference, surviving(program))
        assert Answers.of(world, what_if, trial, preempt=preempt) == Answers.of(
            world, straight, reference, preempt=preempt
        )


@given(_WORLDS, st.lists(st.tuples(PROGRAMS, st.booleans()), min_size=1, max_size=3))
@settings(max_examples=examples(15))
def test_transactions_after_one_another_are_those_that_were_committed(
    world: World, transactions: list[tuple[Program, bool]]
) -> None:
    what_if, straight = WhatIf(world.objects, registry=REGISTRY), WhatIf(world.objects, registry=REGISTRY)
    for program, is_committed in transactions:
        with what_if.transaction() as trial:
            run(world, what_if, trial, program)
            if is_committed:
                trial.commit()
        if is_committed:
            with straight.transaction() as trial:
                run(world, straight, trial, surviving(program))
                trial.commit()
    with what_if.transaction() as trial, straight.transaction() as reference:
        assert Answers.of(world, what_if, trial, preempt=True) == Answers.of(
            world, straight, reference, preempt=True
        )


_PROFILE = Profile([plugin for plugin in default_profile().multi_point if plugin.name != "DefaultPreemption"])


@given(worlds(), PROGRAMS)
@settings(max_examples=examples(20))
def test_answers_are_those_of_a_fresh_scheduler_on_the_resulting_objects(
    world: World, program: Program
) -> None:
    what_if = WhatIf(world.objects, registry=REGISTRY, profiles=[_PROFILE])
    with what_if.transaction() as trial:
        run(world, what_if, trial, program)
        fresh = WhatIf(trial.objects(), registry=REGISTRY, profiles=[_PROFILE])
        with fresh.transaction() as reference:
            assert Answers.of(world, what_if, trial, preempt=False) == Answers.of(
                world, fresh, reference, preempt=False
            )
        cluster = InMemoryCluster(trial.objects())
        assert outcome(trial.schedule(what_if.pending)) == _placed_by_a_scheduler(cluster)


def _placed_by_a_scheduler(
    cluster: InMemoryCluster,
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """What becomes of the pending pods if a scheduler that has just started places them one after another."""
    scheduler = Scheduler(cluster, [_PROFILE], registry=REGISTRY, clock=VirtualClock(), random=Random(0))
    placed: list[tuple[str, str]] = []
    refused: list[tuple[str, str]] = []
    pods = []
    while (info := scheduler.queue.try_pop()) is not None:
        scheduler.queue.done(info.pod.uid)
        pods.append(info.pod)
    for pod in pods:
        try:
            placement = scheduler.place(pod, preempt=False)
        except (FitError, NoNodesAvailableError) as error:
            refused.append((pod.key, str(error)))
        else:
            placement.commit()
            placed.append((pod.key, placement.node_name))
    scheduler.close()
    return tuple(placed), tuple(refused)
