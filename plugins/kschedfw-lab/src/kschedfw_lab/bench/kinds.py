"""The shapes of nodes and pods in workloads; a pod's shape is a function of its name and namespace."""

from __future__ import annotations

from functools import partial

from kschedfw_lab.bench import shapes
from kschedfw_lab.bench.shapes import HOSTNAME, SMALL, ZONE, Manifest

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

affine = partial(shapes.pod, labels={"color": "blue"}, requests=SMALL)
anti_affine = partial(shapes.pod, labels={"color": "green"}, requests=SMALL)
preferring = partial(shapes.pod, labels={"color": "red"}, requests=SMALL)
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
near_blue = partial(
    affine,
    affinity={
        "podAffinity": shapes.required(shapes.pod_affinity_term({"color": "blue"}, ZONE, namespaces=_BOTH))
    },
)
away_from_green = partial(
    anti_affine,
    affinity={
        "podAntiAffinity": shapes.required(
            shapes.pod_affinity_term({"color": "green"}, HOSTNAME, namespaces=_BOTH)
        )
    },
)
rather_near_red = partial(
    preferring,
    affinity={
        "podAffinity": shapes.preferred(
            shapes.pod_affinity_term({"color": "red"}, HOSTNAME, namespaces=_BOTH)
        )
    },
)
rather_away_from_yellow = partial(
    shapes.pod,
    labels={"color": "yellow"},
    requests=SMALL,
    affinity={
        "podAntiAffinity": shapes.preferred(
            shapes.pod_affinity_term({"color": "yellow"}, HOSTNAME, namespaces=_BOTH)
        )
    },
)
near_blue_of_devops = partial(
    affine,
    affinity={
        "podAffinity": shapes.required(
            shapes.pod_affinity_term({"color": "blue"}, ZONE, namespaceSelector=_DEVOPS)
        )
    },
)
away_from_green_of_devops = partial(
    anti_affine,
    affinity={
        "podAntiAffinity": shapes.required(
            shapes.pod_affinity_term({"color": "green"}, HOSTNAME, namespaceSelector=_DEVOPS)
        )
    },
)
rather_near_red_of_devops = partial(
    preferring,
    affinity={
        "podAffinity": shapes.preferred(
            shapes.pod_affinity_term({"color": "red"}, HOSTNAME, namespaceSelector=_DEVOPS)
        )
    },
)
rather_away_from_green_of_devops = partial(
    anti_affine,
    affinity={
        "podAntiAffinity": shapes.preferred(
            shapes.pod_affinity_term({"color": "green"}, HOSTNAME, namespaceSelector=_DEVOPS)
        )
    },
)
spread = partial(
    affine,
    topologySpreadConstraints=[shapes.spread_constraint({"color": "blue"}, ZONE, "DoNotSchedule", 5)],
)
rather_spread = partial(
    affine,
    topologySpreadConstraints=[shapes.spread_constraint({"color": "blue"}, ZONE, "ScheduleAnyway", 5)],
)
spread_over_honoured_nodes = partial(
    shapes.pod,
    labels={"foo": "bar"},
    requests=SMALL,
    topologySpreadConstraints=[
        shapes.spread_constraint(
            {"foo": "bar"},
            HOSTNAME,
            "DoNotSchedule",
            1,
            nodeAffinityPolicy="Honor",
            nodeTaintsPolicy="Honor",
        )
    ],
)
of_the_service = partial(shapes.pod, labels={"app": "scheduler-perf"}, port=False)


def for_one_device(name: str, *, index: int) -> Manifest:
    return shapes.pod(name, "test", requests={f"foo.com/bar-{index}": "1"}, port=False)
