"""The claims of pods that are drawn more than once."""

from __future__ import annotations

import pytest
from kschedfw_lab.sweep.draws import Draw, drawn

from kschedfw import InMemoryCluster, Pod, make_node, make_pod
from kschedfw.api import Named, PersistentVolume, PersistentVolumeClaim, make_claim, make_volume
from kschedfw.simulator import Simulation


def objects(count: int) -> list[Named]:
    """A node, and pods of manifests, without uids; each has a bound volume that only one pod at a time may use."""
    found: list[Named] = [make_node("n").capacity(cpu=8, memory="8Gi", pods=99).build()]
    for number in range(count):
        claim = make_claim(f"c{number}").requests("1Gi").access_modes("ReadWriteOncePod").storage_class("s")
        volume = make_volume(f"v{number}").capacity("1Gi").access_modes("ReadWriteOncePod").storage_class("s")
        found.append(volume.claimed_by(f"default/c{number}").build())
        found.append(claim.bound_to(f"v{number}").build())
        found.append(make_pod(f"p{number}").claim(f"c{number}").build())
    return found


@pytest.mark.parametrize("seed", range(5))
def test_pods_that_are_drawn_twice_are_all_placed_since_each_has_a_volume_of_its_own(seed: int) -> None:
    found = drawn(objects(6), Draw.RESAMPLE, seed)
    assert len({each.key for each in found if isinstance(each, Pod)}) == 6
    assert Simulation(InMemoryCluster(found)).run().placed == 6


def test_claims_of_pods_that_are_not_drawn_are_not_there() -> None:
    found = drawn(objects(6), Draw.RESAMPLE, 0)
    claims = {each.name for each in found if isinstance(each, PersistentVolumeClaim)}
    volumes = {each.name for each in found if isinstance(each, PersistentVolume)}
    named = {
        volume.persistent_volume_claim.claim_name
        for each in found
        if isinstance(each, Pod)
        for volume in each.spec.volumes
        if volume.persistent_volume_claim is not None
    }
    assert claims == named
    assert volumes == {f"v{name[1:]}" for name in claims}
    assert any("." in name for name in claims)  # a pod was drawn twice


def test_shuffled_pods_keep_their_claims() -> None:
    before = objects(6)
    claims = [each for each in before if not isinstance(each, Pod)]
    after = drawn(before, Draw.SHUFFLE, 0)
    assert sorted(each.key for each in after) == sorted(each.key for each in before)
    assert all(each in after for each in claims)
