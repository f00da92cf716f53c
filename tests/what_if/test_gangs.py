"""The transactions' properties with plugins that have a state of their own: gangs, and quotas that they share.

`make soak CASES=20000` tries so many programs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_capacity import CapacityScheduling, ElasticQuota, ElasticQuotaSpec
from kschedfw_coscheduling import POD_GROUP_LABEL, Coscheduling, PodGroup, PodGroupSpec

from kschedfw import (
    EnabledPlugin,
    FrozenDict,
    Node,
    ObjectMeta,
    Pod,
    Profile,
    Quantity,
    Registry,
    WhatIf,
    default_profile,
    make_node,
    make_pod,
)
from kschedfw.api import Named
from tests.what_if.programs import PROGRAMS, Answers, Program, World, run, surviving

pytestmark = pytest.mark.slow

CASES = settings(
    max_examples=int(os.environ.get("KSCHEDFW_CASES", "60")) // 3,
)

_NAMESPACES = ("team-a", "team-b")
_REPLACED = ("PrioritySort", "DefaultPreemption")


def _cpus(amount: int) -> FrozenDict[str, Quantity]:
    return FrozenDict({"cpu": Quantity.parse(amount)})


def _node(name: str, cpu: int) -> Node:
    return make_node(name).zone("abc"[cpu % 3]).capacity(cpu=cpu, memory="64Gi", pods=8).build()


@st.composite
def _pods(draw: st.DrawFn, name: str) -> Pod:
    """A pod of its own, or of a gang that may have enough pods or not."""
    pod = make_pod(name).namespace(draw(st.sampled_from(_NAMESPACES))).requests(cpu=draw(st.integers(1, 2)))
    pod = pod.priority(draw(st.integers(0, 2)))
    gang = draw(st.sampled_from(("", "g", "g", "h")))
    return (pod.labels({POD_GROUP_LABEL: gang}) if gang else pod).build()


@st.composite
def worlds_with_gangs(draw: st.DrawFn) -> World:
    """Gangs of up to three pods in two namespaces, on nodes that have too little room for all."""
    nodes = [_node(f"n{number}", draw(st.integers(1, 4))) for number in range(draw(st.integers(1, 3)))]
    objects: list[Named] = [*nodes]
    for namespace in _NAMESPACES:
        for gang in "gh":
            spec = PodGroupSpec(draw(st.integers(1, 3)))
            objects.append(PodGroup(ObjectMeta(name=gang, namespace=namespace), spec))
        if draw(st.booleans()):
            least, most = draw(st.integers(0, 5)), draw(st.integers(1, 6))
            metadata = ObjectMeta(name="quota", namespace=namespace)
            objects.append(ElasticQuota(metadata, ElasticQuotaSpec(_cpus(least), _cpus(most))))
    pods = [draw(_pods(f"pod-{number}")) for number in range(draw(st.integers(2, 7)))]
    bound = draw(st.integers(0, 2))
    pods = [attrs.evolve(pod, spec=attrs.evolve(pod.spec, node_name="n0")) for pod in pods[:bound]] + pods[
        bound:
    ]
    new = tuple(draw(_pods(f"new-{number}")) for number in (1, 2))
    return World([*objects, *pods], new, (_node("new", 2),))


def _what_if(objects: Sequence[Named]) -> WhatIf:
    registry = Registry()
    for plugin in (CapacityScheduling, Coscheduling):
        registry.register(plugin, replace=True)
    default = [each for each in default_profile().multi_point if each.name not in _REPLACED]
    own = map(EnabledPlugin, ("CapacityScheduling", "Coscheduling"))
    return WhatIf(objects, registry=registry, profiles=[Profile([*default, *own])])


@given(worlds_with_gangs(), PROGRAMS, st.booleans())
@CASES
def test_after_a_revert_everything_is_as_if_nothing_had_happened(
    world: World, program: Program, preempt: bool
) -> None:
    what_if, untouched = _what_if(world.objects), _what_if(world.objects)
    with what_if.transaction() as trial:
        run(world, what_if, trial, program)
    with what_if.transaction() as trial, untouched.transaction() as reference:
        assert Answers.of(world, what_if, trial, preempt=preempt) == Answers.of(
            world, untouched, reference, preempt=preempt
        )


@given(worlds_with_gangs(), PROGRAMS, st.booleans())
@CASES
def test_reverted_parts_leave_no_trace_in_the_rest(world: World, program: Program, preempt: bool) -> None:
    what_if, straight = _what_if(world.objects), _what_if(world.objects)
    with what_if.transaction() as trial, straight.transaction() as reference:
        run(world, what_if, trial, program)
        run(world, straight, reference, surviving(program))
        assert Answers.of(world, what_if, trial, preempt=preempt) == Answers.of(
            world, straight, reference, preempt=preempt
        )


@given(worlds_with_gangs(), PROGRAMS, st.booleans())
@CASES
def test_the_same_question_has_the_same_answer(world: World, program: Program, preempt: bool) -> None:
    what_if = _what_if(world.objects)
    with what_if.transaction() as trial:
        run(world, what_if, trial, program)
        first, again = (Answers.of(world, what_if, trial, preempt=preempt) for _ in range(2))
    assert first == again
