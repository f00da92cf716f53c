"""Facts about a pure plugin that only calls of its hooks show: what they read, and whether learning pays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kschedfw.api.builders import make_node, make_pod
from kschedfw.api.errors import KschedfwError
from kschedfw.api.pod import Pod
from kschedfw.cluster import InMemoryCluster
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.learning.evidence import place_name
from kschedfw.framework.learning.learned import LearnedHook
from kschedfw.framework.learning.places import ReadPlace
from kschedfw.framework.profile import Profile
from kschedfw.framework.runtime.registry import Registry
from kschedfw.scheduler import Scheduler

_NODES: Final = 16
_PODS: Final = 64
_RACKS: Final = 4
_APPS: Final = 3


def learned_facts(registry: Registry, name: str) -> Mapping[str, str]:
    """Return what a pure plugin's filter and score read of pods and nodes of a small sample, by hook.

    No two pods and no two nodes of the sample have the same name. A hook whose answers seldom repeat there, or can't be
    learned, is described as such. Empty if the plugin can't be used with its default arguments.
    """
    cluster = InMemoryCluster(
        make_node(f"node-{index}")
        .capacity(cpu=64, memory="256Gi", pods=110)
        .labels(rack=f"rack-{index % _RACKS}")
        .zone(f"zone-{index % 2}")
        .build()
        for index in range(_NODES)
    )
    try:
        scheduler = Scheduler(
            cluster,
            [Profile(["PrioritySort", name, "DefaultBinder"])],
            registry=registry,
            percentage_of_nodes_to_score=100,
        )
    except KschedfwError:
        return {}
    try:
        (framework,) = scheduler.frameworks.values()
        for pod in _pods():
            try:
                node = scheduler.algorithm.schedule(framework, CycleState(), pod).suggested_host
            except KschedfwError:
                continue
            cluster.add(pod.bound_to(node))
        return {
            form.hook_name: _fact(form)
            for form in framework.learned[name].forms.values()
            if form.obstacle or form.of_pod.places or form.of_node.places
        }
    finally:
        scheduler.close()


def _pods() -> Iterator[Pod]:
    for index in range(_PODS):
        app = f"app-{index % _APPS}"
        yield make_pod(f"pod-{index}").labels(app=app).requests(cpu="100m", memory="64Mi").build()


def _fact(form: LearnedHook) -> str:
    if form.obstacle:
        return f"{form.obstacle}: it is asked about each node"
    read = (_read("pod", form.of_pod.places), _read("node", form.of_node.places))
    return f"in a trial with a few pods it reads {'; '.join(filter(None, read))}"


def _read(root: str, places: Iterable[ReadPlace]) -> str:
    names = dict.fromkeys(place_name(place) for place in places)
    return f"of the {root}: {', '.join(names)}" if names else ""
