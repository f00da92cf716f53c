"""A plugin of another distribution that keeps books of its own, by events and by reserve, takes part."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings

from kschedfw import (
    EnabledPlugin,
    Handle,
    Plugin,
    Pod,
    Profile,
    Registry,
    Status,
    WhatIf,
    default_profile,
    hookimpl,
)
from kschedfw.cluster import EventType, RevertibleCluster, WatchEvent
from kschedfw.testing.properties import examples
from tests.what_if.programs import PROGRAMS, Answers, Program, World, run, surviving, worlds


class TeamLimit(Plugin):
    """At most three pods with a place or a node per namespace: bound ones by events, others by reserve."""

    name = "TeamLimit"

    def __init__(self, args: None, handle: Handle) -> None:
        super().__init__(args, handle)
        self._bound: dict[str, str] = {}
        self._reserved: dict[str, str] = {}
        assert isinstance(handle.cluster, RevertibleCluster)
        handle.cluster.watch(self._follow)

    def _follow(self, event: WatchEvent) -> None:
        pod = event.object
        if isinstance(pod, Pod):
            self._bound.pop(pod.uid, None)
            if pod.node_name and event.type is not EventType.DELETED:
                self._bound[pod.uid] = pod.namespace

    @hookimpl
    def filter(self, pod: Pod) -> Status | None:
        taken = Counter((self._reserved | self._bound).values())[pod.namespace]
        return Status.unschedulable("its team has three pods") if taken >= 3 else None

    @hookimpl
    def reserve(self, pod: Pod) -> None:
        self._reserved[pod.uid] = pod.namespace

    @hookimpl
    def unreserve(self, pod: Pod) -> None:
        del self._reserved[pod.uid]


def _what_if(world: World) -> WhatIf:
    registry = Registry()
    registry.register(TeamLimit)
    profile = Profile([*default_profile().multi_point, EnabledPlugin("TeamLimit")])
    return WhatIf(world.objects, registry=registry, profiles=[profile])


@pytest.mark.slow
@given(worlds(), PROGRAMS)
@settings(max_examples=examples(25))
def test_its_answers_are_those_of_one_that_has_seen_only_what_is_left(world: World, program: Program) -> None:
    what_if, straight = _what_if(world), _what_if(world)
    with what_if.transaction() as trial, straight.transaction() as reference:
        run(world, what_if, trial, program)
        run(world, straight, reference, surviving(program))
        assert Answers.of(world, what_if, trial, preempt=True) == Answers.of(
            world, straight, reference, preempt=True
        )
