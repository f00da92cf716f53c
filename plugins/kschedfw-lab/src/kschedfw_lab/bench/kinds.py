"""The shapes of nodes and pods in workloads; a pod's shape is a function of its name and namespace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

from kschedfw_lab.bench import shapes
from kschedfw_lab.bench.shapes import HOSTNAME, SMALL, ZONE, Manifest

Shape: TypeAlias = Callable[[str, str], Manifest]
"""Makes the pod of this name and namespace."""

# Nodes


def node(index: int) -> Manifest:
    return shapes.node(f"node-{index}")


def zoned(index: int, *, zones: tuple[str, ...]) -> Manifest:
    return shapes.node(f"node-{index}", labels={ZONE: zones[index % len(zones)]})


one_zone = partial(zoned, zones=("zone1",))
three_zones = partial(zoned, zones=("moon-1", "moon-2", "moon-3"))


def one_in_five_tainted(index: int) -> Manifest:
    taints = ({"key": "foo", "effect": "NoSchedule"},) if index % 5 == 4 else ()
    return shapes.node(f"node-{index}", taints=taints)


def with_a_device_of_its_own(index: int) -> Manifest:
    return shapes.node(f"node-{index}", capacity={f"foo.com/bar-{index}": "1"})


def first_is_the_target(index: int) -> Manifest:
    return shapes.node("target", capacity={"pods": "90000"}) if index == 0 else node(index)


# Pods, by their shape

_BOTH = ["sched-1", "sched-0"]
_DEVOPS = {"matchLabels": {"team": "devops"}}
_NEAR, _AWAY = "podAffinity", "podAntiAffinity"


def _coloured(
    color: str, kind: str, rule: Callable[[Manifest], Manifest], topology_key: str, **namespaces: object
) -> Shape:
    """Return the shape of pods with a colour, and a term about pods of the same colour in the given namespaces."""
    term = shapes.pod_affinity_term({"color": color}, topology_key, **namespaces)
    return partial(shapes.pod, labels={"color": color}, requests=SMALL, affinity={kind: rule(term)})


def _spread(labels: Mapping[str, str], topology_key: str, when: str, max_skew: int, **policies: str) -> Shape:
    constraints = [shapes.spread_constraint(labels, topology_key, when, max_skew, **policies)]
    return partial(shapes.pod, labels=labels, requests=SMALL, topologySpreadConstraints=constraints)


plain = partial(shapes.pod, requests=SMALL)
large_cpu = partial(shapes.pod, requests={"cpu": "9", "memory": "500Mi"}, limits={}, priority=10)
low_priority = partial(
    shapes.pod, requests={"cpu": "900m", "memory": "500Mi"}, terminationGracePeriodSeconds=0
)
high_priority = partial(shapes.pod, requests={"cpu": "3", "memory": "500Mi"}, priority=10)
in_zone_1_or_2 = partial(
    plain,
    affinity=shapes.node_affinity(
        matchExpressions=[{"key": ZONE, "operator": "In", "values": ["zone1", "zone2"]}]
    ),
)
for_the_target = partial(
    shapes.pod,
    port=False,
    affinity=shapes.node_affinity(
        matchFields=[{"key": "metadata.name", "operator": "In", "values": ["target"]}]
    ),
)
near_blue = _coloured("blue", _NEAR, shapes.required, ZONE, namespaces=_BOTH)
away_from_green = _coloured("green", _AWAY, shapes.required, HOSTNAME, namespaces=_BOTH)
rather_near_red = _coloured("red", _NEAR, shapes.preferred, HOSTNAME, namespaces=_BOTH)
rather_away_from_yellow = _coloured("yellow", _AWAY, shapes.preferred, HOSTNAME, namespaces=_BOTH)
near_blue_of_devops = _coloured("blue", _NEAR, shapes.required, ZONE, namespaceSelector=_DEVOPS)
away_from_green_of_devops = _coloured("green", _AWAY, shapes.required, HOSTNAME, namespaceSelector=_DEVOPS)
rather_near_red_of_devops = _coloured("red", _NEAR, shapes.preferred, HOSTNAME, namespaceSelector=_DEVOPS)
rather_away_from_green_of_devops = _coloured(
    "green", _AWAY, shapes.preferred, HOSTNAME, namespaceSelector=_DEVOPS
)
spread = _spread({"color": "blue"}, ZONE, "DoNotSchedule", 5)
rather_spread = _spread({"color": "blue"}, ZONE, "ScheduleAnyway", 5)
spread_over_honoured_nodes = _spread(
    {"foo": "bar"}, HOSTNAME, "DoNotSchedule", 1, nodeAffinityPolicy="Honor", nodeTaintsPolicy="Honor"
)
of_the_service = partial(shapes.pod, labels={"app": "scheduler-perf"}, port=False)


def for_one_device(name: str, *, index: int) -> Manifest:
    return shapes.pod(name, "test", requests={f"foo.com/bar-{index}": "1"}, port=False)
