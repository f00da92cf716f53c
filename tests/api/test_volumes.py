"""Volumes of pods, and which claim each of them is."""

from __future__ import annotations

from typing import Any

import pytest

from kschedfw import make_claim, make_pod, make_volume
from kschedfw.api.manifests import object_from_manifest, to_manifest
from kschedfw.api.pod import Pod
from kschedfw.api.quantity import Quantity
from kschedfw.api.storage import PersistentVolume, PersistentVolumeClaim
from kschedfw.api.volumes import claim_name, is_claim_of

SOURCES: list[dict[str, Any]] = [
    {"persistentVolumeClaim": {"claimName": "data", "readOnly": True}},
    {"gcePersistentDisk": {"pdName": "disk"}},
    {"awsElasticBlockStore": {"volumeID": "vol-1"}},
    {"iscsi": {"iqn": "iqn.2024-01.example:1", "targetPortal": "10.0.0.1:3260", "lun": 1}},
    {"rbd": {"monitors": ["10.0.0.1:6789"], "image": "it", "pool": "kube"}},
    {"azureDisk": {"diskName": "disk", "diskURI": "https://example/disk"}},
    {"azureFile": {"secretName": "keys", "shareName": "share"}},
    {"cinder": {"volumeID": "5b8c"}},
    {"portworxVolume": {"volumeID": "px"}},
    {"vsphereVolume": {"volumePath": "[store] a.vmdk"}},
    {"csi": {"driver": "csi.example.com"}},
    {
        "ephemeral": {
            "volumeClaimTemplate": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                    "storageClassName": "fast",
                },
            }
        }
    },
]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: next(iter(source)))
def test_the_sources_of_a_pods_volumes(source: dict[str, Any]) -> None:
    pod = make_pod("a").volume("it", source).build()
    assert to_manifest(pod)["spec"]["volumes"] == [{"name": "it", **source}]
    assert object_from_manifest(to_manifest(pod)) == pod
    assert hash(pod) == hash(object_from_manifest(to_manifest(pod)))


@pytest.mark.parametrize("source", SOURCES[1:-2], ids=lambda source: next(iter(source)))
def test_persistent_volumes_have_most_of_them_too(source: dict[str, Any]) -> None:
    volume = make_volume("pv").source(source).build()
    assert object_from_manifest(to_manifest(volume)) == volume
    (name,) = source
    assert to_manifest(volume)["spec"][name] == source[name]


def test_a_volume_and_its_claim() -> None:
    volume = (
        make_volume("pv")
        .capacity("10Gi")
        .access_modes("ReadWriteOnce", "ReadOnlyMany")
        .storage_class("fast")
        .zone("a")
        .csi("csi.example.com", "handle")
        .node_affinity_in("zone", "a")
        .claimed_by("team/data", uid="7")
        .build()
    )
    assert isinstance(volume, PersistentVolume)
    assert volume.spec.capacity["storage"] == Quantity.parse("10Gi")
    assert volume.spec.access_modes == ("ReadWriteOnce", "ReadOnlyMany")
    assert volume.labels == {"topology.kubernetes.io/zone": "a"}
    assert volume.spec.claim_ref is not None
    assert (volume.spec.claim_ref.namespace, volume.spec.claim_ref.name) == ("team", "data")
    assert volume.status.phase == "Bound"
    claim = make_claim("data").namespace("team").requests("5Gi").storage_class("fast").bound_to("pv").build()
    assert isinstance(claim, PersistentVolumeClaim)
    assert claim.spec.volume_name == "pv"
    assert claim.spec.resources.requests["storage"] == Quantity.parse("5Gi")
    assert claim.annotations["pv.kubernetes.io/bind-completed"] == "yes"


class TestClaimNames:
    def test_a_claim_has_its_own_name(self) -> None:
        assert name_of(make_pod("web").claim("data").build()) == "data"

    def test_that_of_an_ephemeral_volume_is_named_after_pod_and_volume(self) -> None:
        assert name_of(make_pod("web").ephemeral_volume("scratch").build()) == "web-scratch"

    def test_other_volumes_are_no_claims(self) -> None:
        assert name_of(make_pod("web").volume("disk", {"gcePersistentDisk": {"pdName": "d"}}).build()) is None


def name_of(pod: Pod) -> str | None:
    (volume,) = pod.spec.volumes
    return claim_name(pod, volume)


class TestOwners:
    POD = make_pod("web").uid("1").build()

    def test_a_claim_made_for_a_pod_is_controlled_by_it(self) -> None:
        assert is_claim_of(self.POD, make_claim("web-scratch").made_for(self.POD).build())

    @pytest.mark.parametrize("other", [make_pod("web").uid("2").build(), make_pod("a").uid("2").build()])
    def test_another_pods_claim_is_not_its_own(self, other: Pod) -> None:
        assert not is_claim_of(self.POD, make_claim("web-scratch").made_for(other).build())

    def test_nor_is_one_without_owner(self) -> None:
        assert not is_claim_of(self.POD, make_claim("web-scratch").build())
