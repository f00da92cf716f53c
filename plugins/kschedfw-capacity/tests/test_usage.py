"""Usage is always the sum over the pods that the snapshot has, and so is what the quotas say."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from kschedfw_capacity.amounts import NOTHING, Amounts
from kschedfw_capacity.quota import Bounds
from kschedfw_capacity.usage import Usage
from tests.scenes import NAMESPACES, node, pod

from kschedfw import Cache, Node, Pod, Snapshot


def counted(snapshot: Snapshot) -> dict[str, Amounts]:
    sums = dict.fromkeys(NAMESPACES, NOTHING)
    for info in snapshot.node_infos:
        for each in info.pods:
            sums[each.pod.namespace] += Amounts.requested_by(each.pod)
    return sums


@given(st.randoms(use_true_random=False))
def test_whatever_comes_and_goes(random: Random) -> None:
    cache, snapshot = Cache(), Snapshot()
    nodes: dict[str, Node] = {}
    for name in ("n0", "n1", "n2"):
        cache.add_node(nodes.setdefault(name, node(name)))
    cache.update_snapshot(snapshot)
    usage = Usage(snapshot.table)
    pods: list[Pod] = []
    for i in range(20):
        if not random.randrange(5):
            namespaces = random.sample(NAMESPACES, random.randint(0, len(NAMESPACES)))
            usage.measure_by(dict.fromkeys(namespaces, Bounds()))
        match random.randrange(5):
            case 0 if pods:
                cache.remove_pod(pods.pop(random.randrange(len(pods))))
            case 1:
                name = f"n{random.randrange(5)}"
                nodes[name] = node(name, cpu=random.randrange(1, 9))
                cache.add_node(nodes[name])
            case 2 if nodes:
                cache.remove_node(nodes.pop(random.choice(sorted(nodes))))
            case _:
                key = f"{random.choice(NAMESPACES)}/{i}"
                pods.append(pod(key, random.randrange(4), on=f"n{random.randrange(3)}"))
                cache.add_pod(pods[-1])
        if random.randrange(2):
            cache.update_snapshot(snapshot)
            if not random.randrange(4):
                snapshot.table.rebuild(snapshot.node_infos, snapshot.table.rows)
            expected = counted(snapshot)
            assert {each: usage.of(each) for each in NAMESPACES} == expected
            assert {each: usage.quotas[each].used for each in usage.quotas} == {
                each: expected[each] for each in usage.quotas
            }
