"""A waking trial with a drawn pure plugin beside the default ones, or alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Final

import attrs

from kschedfw import CycleState, EnabledPlugin, Node, NodeInfo, Pod, Profile, Registry
from kschedfw.testing.waking import Scene, Tally, Thing, Trial
from tests.framework.learning.drawn_hooks import NOTED, PureHooks
from tests.scheduler.waking.gaps import gaps_of
from tests.scheduler.waking.scenes import of_nodes, of_room, profile, random_scene

_ALONE: Final = Profile(["PrioritySort", "SchedulingGates", "NodePorts", "DefaultBinder"])
"""Without other filters most refusals are the drawn plugin's, and a new scheduler is made in a quarter of the time.
NodePorts stays, since a node on which two pods have one port counts otherwise after one of them has gone.
"""
_SCENES: Final = 5
"""Scenes that are drawn at most until one changes the plugin's answer about some pod."""


def run_trial(seed: int, drawn: PureHooks, pods: int) -> Tally:
    """Return the counts of a trial; of none if the plugin treats all nodes alike in the scenes that are drawn.

    The same seed and plugin make the same trial.
    """
    random, registry = Random(seed), Registry()
    is_alone = random.random() < 0.8
    enabled = _ALONE if is_alone else profile(complete_hints=True)
    scene = _telling_scene(random, drawn, is_alone=is_alone)
    if scene is None:
        return Tally()
    registry.register(drawn.plugin("Drawn", pure=True))
    trial = Trial(
        scene,
        random,
        attrs.evolve(enabled, multi_point=(*enabled.multi_point, EnabledPlugin("Drawn"))),
        registry,
        gaps_of(complete_hints=True),
    )
    try:
        return trial.run(pods)
    finally:
        trial.close()


def _telling_scene(random: Random, drawn: PureHooks, *, is_alone: bool) -> Scene | None:
    """Return a scene with the pods that the plugin refuses in some of its states, if there are such pods."""
    for _ in range(_SCENES):
        scene = random_scene(random, (of_room, of_nodes) if is_alone else ())
        scene = attrs.evolve(scene, things=[_never_cordoned(states) for states in scene.things])
        pods = [pod for pod in scene.pods if len(set(_passes(drawn, pod, scene))) == 2]
        if pods and not _shares_ports(scene):
            # If all nodes went, no filter would have refused the pod.
            node, *others = scene.things
            return attrs.evolve(scene, pods=pods, things=others, lasting=[node])
    return None


def _never_cordoned(states: Thing) -> Thing:
    """Return the states without those of a node that becomes cordoned: kube-scheduler has no event for that."""
    nodes = [state for state in states if isinstance(state, Node)]
    kept = [node for node in nodes if node.spec.unschedulable == nodes[0].spec.unschedulable]
    return kept or states


def _shares_ports(scene: Scene) -> bool:
    """Tell whether two pods of a node may have the same host port, against which nothing guards pods that are bound."""
    taken = Counter(
        (states[0].node_name, port)
        for states in scene.things
        if isinstance(states[0], Pod)
        for port in states[0].host_ports
    )
    return any(number > 1 for number in taken.values())


def _passes(drawn: PureHooks, pod: Pod, scene: Scene) -> Iterator[bool]:
    """Yield whether the filter lets the pod pass, for all states of the nodes, empty and with one other pod."""
    states = [state for thing in scene.things for state in thing]
    others = [state for state in states if isinstance(state, Pod)]
    state = CycleState()
    state.write(NOTED, drawn.notes(pod, state))
    for node in states:
        if isinstance(node, Node):
            for info in (NodeInfo.of(node), *(NodeInfo.of(node, [other]) for other in others)):
                try:
                    verdict = drawn.verdict(pod, info, state)
                except (ValueError, LookupError):
                    continue
                yield verdict is None or verdict.is_success
