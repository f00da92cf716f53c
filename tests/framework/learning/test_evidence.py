"""The evidence for a refusal by a pure filter is what the filter reads, in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest
from hypothesis import given

from kschedfw import (
    CycleState,
    EnabledPlugin,
    InMemoryCluster,
    Node,
    NodeInfo,
    Plugin,
    Pod,
    Registry,
    Status,
    default_profile,
    hookimpl,
    make_node,
    make_pod,
)
from kschedfw.api import NodeCondition
from kschedfw.explain import Evidence, explain_pod
from kschedfw.framework.learning.evidence import learned_evidence
from kschedfw.testing.strategies import nodes, pods
from tests.framework.learning.drawn_hooks import Reading, readings

POD = make_pod("p").labels(racks="r1_r2").requests(cpu="2").build()
NODE = make_node("n").capacity(cpu="4").labels(rack="r9").taint("spot", effect="NoSchedule").build()
INFO = NodeInfo.of(NODE, [make_pod("there").requests(cpu="3").node("n").build()])


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (
            lambda pod, info: info.node.labels.get("rack") in pod.labels.get("racks", ""),
            "label racks: r1_r2; label rack: r9",
        ),
        (lambda _pod, info: "disk" in info.node.labels, "nothing of the pod; label disk: none"),
        (lambda _pod, info: "rack" in info.node.labels, "nothing of the pod; label rack: some"),
        (lambda _pod, info: len(info.pods), "nothing of the pod; number of pods: 1"),
        (lambda pod, _info: pod.priority, "priority: 0"),
        (
            lambda pod, info: (
                pod.requests.amounts.milli_cpu <= info.allocatable.milli_cpu - info.requested.milli_cpu
            ),
            "requests milli cpu: 2000; allocatable milli cpu: 4000, requested milli cpu: 3000",
        ),
        (
            lambda _pod, info: [each.key for each in info.node.spec.taints],
            "nothing of the pod; taints key: spot",
        ),
        (
            lambda _pod, info: sorted(info.node.labels),
            "nothing of the pod; labels: kubernetes.io/hostname=n, rack=r9",
        ),
        (lambda pod, _info: pod.spec.affinity.node_affinity, "affinity node affinity: none"),
    ],
)
def test_what_is_read_is_said_in_words(read: Callable[[Pod, NodeInfo], object], text: str) -> None:
    def hook(_state: CycleState, pod: Pod, info: NodeInfo) -> Status:
        read(pod, info)
        return Status.unschedulable("node(s) no")

    (evidence,) = learned_evidence(hook, CycleState(), POD, INFO)
    assert str(evidence) == text


WEB = make_pod("p").labels(racks="r1_r2", tier="gold", app="web").requests(cpu="3500m").build()
_HOT = (
    make_node("n")
    .capacity({"cpu": 4, "memory": "8Gi", "example.com/gpu": 2})
    .labels(rack="r9", vip="yes")
    .taint("spot", effect="PreferNoSchedule")
    .build()
)
BUSY = NodeInfo.of(
    attrs.evolve(
        _HOT, status=attrs.evolve(_HOT.status, conditions=(NodeCondition(type="Overheated", status="True"),))
    ),
    [make_pod("there").labels(app="web").requests(cpu="100m").node("n").build()],
)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (
            lambda pod, info: info.node.labels.get("rack") in pod.labels.get("racks", "").split("_"),
            "label racks: r1_r2; label rack: r9",
        ),
        (
            lambda _pod, info: any(each.key == "spot" for each in info.node.spec.taints),
            "nothing of the pod; taints key: spot",
        ),
        (
            lambda pod, info: (
                pod.requests.amounts.milli_cpu > info.allocatable.milli_cpu - info.requested.milli_cpu
            ),
            "requests milli cpu: 3500; allocatable milli cpu: 4000, requested milli cpu: 100",
        ),
        (lambda _pod, info: len(info.pods) > 0, "nothing of the pod; number of pods: 1"),
        (
            lambda pod, info: pod.labels.get("tier") == "gold" and "gold" not in info.node.labels,
            "label tier: gold; label gold: none",
        ),
        (
            lambda pod, info: any(each.pod.labels.get("app") == pod.labels.get("app") for each in info.pods),
            "label app: web; pods label app: web",
        ),
        (
            lambda pod, info: pod.spec.containers[0].image in info.image_states,
            "containers image: registry.example/app:1; image states: none",
        ),
        (
            lambda pod, info: pod.priority < 100 and info.node.labels.get("vip") == "yes",
            "priority: 0; label vip: yes",
        ),
        (
            lambda _pod, info: any(
                each.type == "Overheated" and each.status == "True" for each in info.node.status.conditions
            ),
            "nothing of the pod; conditions type: Overheated, conditions status: True",
        ),
        (
            lambda pod, info: (
                pod.requests.amounts.scalar_resources.get("example.com/gpu", 0)
                < info.allocatable.scalar_resources.get("example.com/gpu", 0)
            ),
            "requests scalar resources: none; allocatable scalar resource example.com/gpu: 2",
        ),
    ],
)
def test_ten_plain_filters_are_explained(read: Callable[[Pod, NodeInfo], object], text: str) -> None:
    def hook(_state: CycleState, pod: Pod, info: NodeInfo) -> Status:
        read(pod, info)
        return Status.unschedulable("node(s) no")

    (evidence,) = learned_evidence(hook, CycleState(), WEB, BUSY)
    assert str(evidence) == text


@given(pods(), nodes(), readings)
def test_evidence_of_whatever_is_read_is_short_and_can_be_printed(
    pod: Pod, node: Node, reading: Reading
) -> None:
    def hook(state: CycleState, pod: Pod, info: NodeInfo) -> Status:
        return Status.unschedulable(str(reading.of(pod, info, state)))

    info = NodeInfo.of(node, [pod.bound_to(node.name)])
    try:
        (evidence,) = learned_evidence(hook, CycleState(), pod, info)
    except KeyError:
        return  # the filter's own
    assert len(str(evidence)) < 2500
    assert str(evidence).isprintable()


class Rack(Plugin):
    name = "Rack"
    pure = True

    @hookimpl
    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        if node_info.node.labels.get("rack") in pod.labels.get("racks", "").split("_"):
            return None
        return Status.unschedulable("node(s) were in the wrong rack")


class Telling(Rack):
    pure = True

    def evidence(self) -> list[Evidence]:
        return [Evidence("one of its racks")]


def told(kind: type[Plugin[Any]]) -> list[str]:
    """The evidence for the refusal of the node in an explanation."""
    registry, profile = Registry(), default_profile()
    registry.register(kind)
    profile = attrs.evolve(profile, multi_point=(*profile.multi_point, EnabledPlugin("Rack")))
    explanation = explain_pod(InMemoryCluster([NODE]), POD, profiles=[profile], registry=registry)
    return [str(each) for each in explanation.of("n").evidence.get("Rack", ())]


def test_an_explanation_has_it_unless_the_plugin_words_it() -> None:
    assert told(Rack) == ["label racks: r1_r2; label rack: r9"]
    assert told(Telling) == ["one of its racks"]


class Impure(Rack):
    pure = False


def test_a_plugin_that_is_not_pure_gives_none() -> None:
    assert told(Impure) == []
