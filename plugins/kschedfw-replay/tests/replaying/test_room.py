"""What is left free on nodes, and what the nodes in use cost."""

from __future__ import annotations

import tracemalloc
from collections import defaultdict
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_lab.compare import NodeAllocation, RequestMix, fragmentation
from kschedfw_replay import RecordingError
from kschedfw_replay.replaying.room import NANO, Room, Typical, annotated_price

from kschedfw import Node, Pod, make_node, make_pod
from kschedfw.api import CPU, MEMORY, PODS, PRICE, Named, Resource, pod_from_manifest

_GIB = 1 << 30
TYPICAL = ((Resource(1000, _GIB), 3), (Resource(3000, 0), 1))
BEGINS = 50.0


def node(name: str, cpu: int = 4, price: str | None = None) -> Node:
    builder = make_node(name).capacity(cpu=cpu, memory="8Gi", pods=4)
    return (builder if price is None else builder.annotations({PRICE: price})).build()


def bound(name: str, node_name: str, cpu: str = "1") -> Pod:
    return make_pod(name).requests(cpu=cpu, memory="1Gi").node(node_name).build()


@given(st.integers(0, 10_000))
def test_fragmentation_is_that_of_compare_weighted_by_what_is_free_over_time(seed: int) -> None:
    random = Random(seed)
    room, at, objects = Room(BEGINS, TYPICAL), BEGINS, dict[str, Named]()
    free, unusable = defaultdict[str, float](float), defaultdict[str, float](float)
    for step in range(12):
        name = random.choice(["n0", "n1", "p0", "p1", "p2", "p3"])
        old = objects.pop(name, None)
        cpu = random.randrange(1, 5)
        made = node(name, cpu) if name[0] == "n" else bound(name, random.choice(["n0", "n1"]), str(cpu))
        new = made if old is None or random.random() < 0.5 else None
        if isinstance(old, Pod) and new is not None:  # a pod never changes its node
            new = bound(name, old.node_name, str(cpu))
        room.take(at, old, new)
        if new is not None:
            objects[name] = new
        passed = float(random.randrange(3)) if step < 11 else 1.0
        for part in fragmentation(allocations(objects), RequestMix(dict(TYPICAL), (CPU, MEMORY))):
            free[part.resource] += part.free * passed
            unusable[part.resource] += part.unusable * passed
        at += passed
    expected = {name: unusable[name] / free[name] for name in free if free[name]}
    assert room.fragmentation(at) == pytest.approx(expected, abs=2e-6)


def test_memory_does_not_follow_the_amounts_that_were_free() -> None:
    pods = [
        make_pod("p0").requests(cpu=3, memory=str(_GIB + extra)).node("n0").build() for extra in range(4_000)
    ]
    room, traced = Room(BEGINS, TYPICAL), list[int]()
    room.take(BEGINS, None, node("n0"))
    tracemalloc.start()
    for half in (pods[:2_000], pods[2_000:]):
        for (
            each
        ) in half:  # it leaves less CPU than the largest pod requests, and always another amount of memory
            room.take(BEGINS, None, each)
            room.take(BEGINS, each, None)
        traced.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    first, second = traced
    assert second < 1.5 * first


def allocations(objects: dict[str, Named]) -> list[NodeAllocation]:
    found = []
    for each in objects.values():
        if isinstance(each, Node):
            on_it = [pod for pod in objects.values() if isinstance(pod, Pod) and pod.node_name == each.name]
            cpu = int(each.status.allocatable[CPU].milli_value())
            # What is overcommitted isn't free.
            held = {
                CPU: min(cpu, sum(pod.requests.amounts.milli_cpu for pod in on_it)),
                MEMORY: sum(pod.requests.amounts.memory for pod in on_it),
                PODS: len(on_it),
            }
            found.append(NodeAllocation(each.name, held, {CPU: cpu, MEMORY: 8 * _GIB, PODS: 4}))
    return found


def test_commonest_requests_are_typical() -> None:
    typical = Typical()
    for index in range(60):
        typical.take(make_pod(f"p{index}").requests(cpu=f"{1 + index % 25}m").build())
    counts = [count for _, count in typical.requests]
    assert counts == [3] * 10 + [2] * 10
    assert typical.requests[0][0].milli_cpu == 1


def test_node_is_in_use_while_it_has_a_pod_that_is_not_the_nodes_own() -> None:
    room = Room(BEGINS, ())
    room.take(BEGINS, None, node("n0", price="2.5"))
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}
    metadata = {"name": "d", "ownerReferences": [owner]}
    daemon = pod_from_manifest(
        {"metadata": metadata, "spec": {"nodeName": "n0", "containers": [{"name": "c", "image": "i"}]}}
    )
    room.take(BEGINS, None, daemon)
    room.take(BEGINS + 1800, None, bound("p", "n0"))
    room.take(BEGINS + 5400, bound("p", "n0"), None)
    ends = BEGINS + 7200
    assert room.node_hours(ends) == 1.0
    assert room.costs(ends) == (2.5, 5.0)


def test_cost_is_unknown_if_a_node_has_no_price() -> None:
    room = Room(BEGINS, ())
    room.take(BEGINS, None, node("n0", price="2.5"))
    room.take(BEGINS, None, node("n1"))
    assert room.costs(BEGINS + 10) is None


def test_annotation_that_is_no_price_is_refused_by_its_node() -> None:
    assert annotated_price(node("n", price="0.25")) == NANO // 4
    for text in ("cheap", "-1", "NaN", "1e7"):
        with pytest.raises(
            RecordingError, match=r"node n: metadata.annotations\[kschedfw/price\]: '.*' is no price"
        ):
            annotated_price(node("n", price=text))
