"""Pods with claims in drawn recordings: each brings its own, with a volume that is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_lab import Sweep
from kschedfw_lab.sweep.draws import Draw, drawn
from kschedfw_replay import ChangeType, Record, RecordedChange, State
from kschedfw_replay.replaying.claims import NO_EPHEMERAL, NO_VOLUME, UNKNOWN_CLAIM
from kschedfw_replay.replaying.trace import read_trace
from recording.histories import write
from replaying.scenes import START

from kschedfw import InMemoryCluster, Node, Pod, make_node, make_pod
from kschedfw.api import (
    Named,
    PersistentVolume,
    PersistentVolumeClaim,
    ResourceClaim,
    make_claim,
    make_volume,
    to_manifest,
)
from kschedfw.cluster import WatchEvent
from kschedfw.simulator import Arrivals, Simulation
from kschedfw.testing.properties import examples

DAY, ZONE = 86_400.0, "topology.kubernetes.io/zone"


class Storage(StrEnum):
    """What a pod of the recording claims."""

    NOTHING = "nothing"
    BY_HAND = "by-hand"
    """A volume that somebody made, before the pod came or after."""
    PROVISIONED = "provisioned"
    DEVICE = "device"
    NEVER_BOUND = "never-bound"
    """A volume that nobody made."""
    NOT_RECORDED = "not-recorded"
    EPHEMERAL_BY_HAND = "ephemeral-by-hand"


LEFT_OUT = {
    Storage.NEVER_BOUND: NO_VOLUME,
    Storage.NOT_RECORDED: UNKNOWN_CLAIM,
    Storage.EPHEMERAL_BY_HAND: NO_EPHEMERAL,
}


@attrs.frozen
class Coming:
    """A pod, when it comes, the zone of its volume, and how much later than the pod the volume comes."""

    at: float
    storage: Storage
    zone: str
    lateness: float


comings = st.lists(
    st.builds(
        Coming,
        st.integers(0, 70).map(lambda hours: START + hours * 3600.0),
        st.sampled_from(Storage),
        st.sampled_from(("z0", "z1")),
        st.sampled_from((-60.0, 0.5, 600.0)),
    ),
    min_size=1,
    max_size=8,
)


def named(kind: str, api_version: str, name: str, **content: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **content}


def cluster() -> Iterator[dict[str, Any]]:
    """Two zones with a node each, on which everything fits that reaches it."""
    for index in range(2):
        yield to_manifest(
            make_node(f"n{index}")
            .capacity(cpu=99, memory="99Gi", pods=99)
            .labels({ZONE: f"z{index}"})
            .build()
        )
        pool = {"name": f"n{index}", "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": f"d{number}"} for number in range(20)]
        spec = {"driver": "gpu.example.com", "nodeName": f"n{index}", "pool": pool, "devices": devices}
        yield named("ResourceSlice", "resource.k8s.io/v1", f"n{index}", spec=spec)
    yield named("DeviceClass", "resource.k8s.io/v1", "gpu", spec={})
    for name, provisioner in (
        ("by-hand", "kubernetes.io/no-provisioner"),
        ("provisioned", "csi.example.com"),
    ):
        content = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
        yield named("StorageClass", "storage.k8s.io/v1", name, **content)


def happenings(number: int, each: Coming) -> Iterator[tuple[float, Named | dict[str, Any]]]:
    """Yield what a recorder sees of a pod and what it claims, as states of objects with their times."""
    name = f"p{number}"
    builder = make_pod(name).requests(cpu=1)
    bound = each.at + max(each.lateness, 0.0) + 1.0
    claim = make_claim(name).requests("1Gi").access_modes("ReadWriteOnce")
    volume = make_volume(f"v{number}").capacity("1Gi").access_modes("ReadWriteOnce")
    volume = volume.node_affinity_in(ZONE, each.zone).storage_class(each.storage)
    match each.storage:
        case Storage.BY_HAND | Storage.PROVISIONED:
            builder = builder.claim(name)
            claim = claim.storage_class(each.storage)
            yield each.at, claim.build()
            yield each.at + each.lateness, volume.build()
            yield bound, claim.bound_to(f"v{number}").build()
        case Storage.NEVER_BOUND:
            builder = builder.claim(name)
            yield each.at, claim.storage_class("by-hand").build()
        case Storage.NOT_RECORDED:
            builder = builder.claim(name)
        case Storage.EPHEMERAL_BY_HAND:
            builder = builder.ephemeral_volume("scratch", storage_class="by-hand")
        case Storage.DEVICE:
            spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
            yield each.at, named("ResourceClaim", "resource.k8s.io/v1", name, spec=spec)
    pod = to_manifest(builder.build())
    if each.storage is Storage.DEVICE:
        pod["spec"]["resourceClaims"] = [{"name": "d", "resourceClaimName": name}]
    yield each.at, pod
    if each.storage not in LEFT_OUT:
        yield bound, {**pod, "spec": {**pod["spec"], "nodeName": f"n{each.zone[1]}"}}


def records(found: list[Coming]) -> list[Record]:
    seen = [pair for number, each in enumerate(found) for pair in happenings(number, each)]
    seen.sort(key=lambda pair: pair[0])  # stable: a claim comes before its pod
    manifests = [(max(at, START + 1), obj if isinstance(obj, dict) else to_manifest(obj)) for at, obj in seen]
    changes = [RecordedChange(at, ChangeType.MODIFIED, manifest) for at, manifest in manifests]
    return [State(START, tuple(cluster())), *changes]


def claimed(pods: list[Pod]) -> Counter[tuple[str, str]]:
    """How many pods name each claim, by its kind and name."""
    found: Counter[tuple[str, str]] = Counter()
    for pod in pods:
        for volume in pod.spec.volumes:
            assert volume.persistent_volume_claim is not None
            found["volume", volume.persistent_volume_claim.claim_name] += 1
        for claim in pod.spec.resource_claims:
            found["device", claim.resource_claim_name or ""] += 1
    return found


@settings(max_examples=examples(80, usual=12))
@given(comings, st.sampled_from([None, *Draw]), st.integers(0, 3))
def test_drawn_pod_has_claims_of_its_own_and_is_placed_where_its_volume_is(
    found: list[Coming], draw: Draw | None, seed: int
) -> None:
    with TemporaryDirectory() as folder:
        write(Path(folder, "r"), records(found))
        trace = read_trace(Path(folder, "r"))
    assert trace.left_out == Counter(LEFT_OUT[each.storage] for each in found if each.storage in LEFT_OUT)
    arriving = [obj for obj in trace.objects if isinstance(obj, Pod)]
    stays = Arrivals().plan(arriving, 0).values()
    if not arriving or (draw is Draw.DAYS and max(stay.arrival for stay in stays) < DAY):
        return
    objects = trace.objects if draw is None else drawn(trace.objects, draw, seed)
    pods = [obj for obj in objects if isinstance(obj, Pod)]
    users = claimed(pods)
    assert set(users.values()) <= {1}
    claims = [obj for obj in objects if isinstance(obj, PersistentVolumeClaim | ResourceClaim)]
    of_nobody = sum(each.storage is Storage.NEVER_BOUND for each in found)
    assert len(claims) == len(users) + of_nobody
    there = InMemoryCluster(objects)
    bound_at = volumes_when_bound(there)
    assert Simulation(there, arrivals=Arrivals()).run().placed == len(pods)
    for pod, zone in bound_at.items():
        original = found[int(pod.partition("/")[2].split(".")[0][1:])]
        if original.storage is Storage.BY_HAND:
            assert zone == original.zone


def volumes_when_bound(cluster: InMemoryCluster) -> dict[str, str]:
    """The zone of each pod's node, by the pod's key; it fills as pods are bound, and each has its volume then."""
    zones: dict[str, str] = {}

    def see(event: WatchEvent) -> None:
        pod = event.object
        if not isinstance(pod, Pod) or not pod.node_name:
            return
        node = cluster.get(Node, pod.node_name)
        assert node is not None
        zones[pod.key] = node.labels[ZONE]
        for volume in pod.spec.volumes:
            assert volume.persistent_volume_claim is not None
            claim = cluster.get(PersistentVolumeClaim, f"default/{volume.persistent_volume_claim.claim_name}")
            assert claim is not None
            there = cluster.get(PersistentVolume, claim.spec.volume_name)
            assert there is not None
            assert there.spec.claim_ref is not None
            assert there.spec.claim_ref.uid == claim.uid

    cluster.watch(see)
    return zones


def test_plan_of_a_sweep_tells_how_many_pods_are_left_out_and_why(tmp_path: Path) -> None:
    coming = [Coming(START + 5.0, storage, "z0", 0.5) for storage in (*Storage, Storage.NEVER_BOUND)]
    write(tmp_path / "r", records(coming))
    assert Sweep({"cluster": {"recording": "r"}}, folder=tmp_path).plan().warnings == (
        f"r: warning: 2 pods left out for {NO_VOLUME}",
        f"r: warning: 1 pod left out for {UNKNOWN_CLAIM}",
        f"r: warning: 1 pod left out for {NO_EPHEMERAL}",
    )


@pytest.mark.parametrize("draw", list(Draw))
def test_claim_that_several_pods_name_stays_shared(draw: Draw, tmp_path: Path) -> None:
    shared = make_claim("shared").requests("1Gi").access_modes("ReadWriteMany").storage_class("by-hand")
    volume = make_volume("v").capacity("1Gi").access_modes("ReadWriteMany").claimed_by("default/shared")
    pods = [make_pod(f"p{number}").claim("shared").build() for number in range(4)]
    state = [*cluster(), to_manifest(shared.bound_to("v").build()), to_manifest(volume.build())]
    changes = [
        RecordedChange(START + 1.0 + number * DAY, ChangeType.ADDED, to_manifest(pod))
        for number, pod in enumerate(pods)
    ]
    write(tmp_path / "r", [State(START, tuple(state)), *changes])
    objects = drawn(read_trace(tmp_path / "r").objects, draw, 0)
    assert claimed([obj for obj in objects if isinstance(obj, Pod)]).keys() == {("volume", "shared")}
    assert [obj.name for obj in objects if isinstance(obj, PersistentVolumeClaim | PersistentVolume)] == [
        "v",
        "shared",
    ]
