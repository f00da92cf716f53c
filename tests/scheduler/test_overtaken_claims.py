"""Other clients that write a pod's claims while the pod is being bound."""

from __future__ import annotations

import pytest
from device_world import World, claim, devices, gpu_class, node, pod

from kschedfw.api import Pod, ResourceClaim
from tests.overtaken import OvertakenCluster


@pytest.mark.parametrize("times", [1, 4])
def test_whoever_writes_a_claim_at_the_same_time_costs_the_pod_no_attempt(times: int) -> None:
    cluster = OvertakenCluster({ResourceClaim: [1] * times, Pod: [1] * times})
    world = World(
        node("a"),
        gpu_class(extendedResourceName="example.com/gpu"),
        devices("a", "g0", "g1"),
        cluster=cluster,
    )
    cluster.add(claim("c"))
    cluster.add(pod("p", "c", **{"example.com/gpu": "1"}))
    world.scheduler.schedule_one()
    assert cluster.others == 2 * times
    assert world.node_of("p") == "a"
    found = cluster.get(ResourceClaim, "default/c")
    assert found is not None
    assert len(found.labels) == times
    assert [each.name for each in found.status.reserved_for] == ["p"]


def test_a_claim_that_others_write_all_the_time_fails_the_attempt() -> None:
    cluster = OvertakenCluster({ResourceClaim: [1] * 5})
    world = World(node("a"), gpu_class(), devices("a", "g0"), cluster=cluster)
    cluster.add(claim("c"))
    cluster.add(pod("p", "c"))
    world.scheduler.schedule_one()
    assert world.node_of("p") == ""
    assert "has been modified" in world.told("p")
