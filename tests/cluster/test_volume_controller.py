"""VolumeController binds claims and makes volumes where nobody else does."""

from __future__ import annotations

from datetime import UTC, datetime

import attrs
import pytest

from kschedfw import make_node, make_pod
from kschedfw.api.meta import Named
from kschedfw.api.storage import ObjectReference, PersistentVolume, PersistentVolumeClaim, VolumePhase
from kschedfw.api.volume_matching import SELECTED_NODE, is_bound_to, is_fully_bound
from kschedfw.cluster import InMemoryCluster, VolumeController
from tests.plugins.storage import ZONE, claim, csi_node, storage_class, volume

NOW = storage_class("now", delayed=False)
MAKE = storage_class("make", provisioner="csi.example.com")
FOR_NODE = {SELECTED_NODE: "n1"}


def cluster_with(*objects: Named) -> InMemoryCluster:
    """With a node in zone 1, and a controller that came before the objects."""
    cluster = InMemoryCluster([make_node("n1").zone("1").build(), NOW, MAKE, storage_class()])
    VolumeController(cluster)
    for obj in objects:
        cluster.add(obj)
    return cluster


def the_claim(cluster: InMemoryCluster, name: str = "claim") -> PersistentVolumeClaim:
    found = cluster.get(PersistentVolumeClaim, f"default/{name}")
    assert found is not None
    return found


def the_volume(cluster: InMemoryCluster, name: str = "volume") -> PersistentVolume:
    found = cluster.get(PersistentVolume, name)
    assert found is not None
    return found


def is_bound(cluster: InMemoryCluster, name: str = "claim") -> bool:
    found = the_claim(cluster, name)
    if not is_fully_bound(found):
        return False
    its_volume = the_volume(cluster, found.spec.volume_name)
    assert is_bound_to(its_volume, found)
    assert (its_volume.status.phase, found.status.phase) == ("Bound", "Bound")
    return True


class TestBinding:
    def test_a_claim_gets_the_smallest_volume_that_fits(self) -> None:
        volumes = (volume(f"v{size}", f"{size}Gi", storage_class="now").build() for size in (3, 1, 2))
        cluster = cluster_with(*volumes, claim(size="1500Mi", storage_class="now").build())
        assert is_bound(cluster)
        assert the_claim(cluster).spec.volume_name == "v2"

    @pytest.mark.parametrize("volume_first", [True, False])
    def test_whichever_comes_first(self, volume_first: bool) -> None:
        objects = [volume(storage_class="now").build(), claim(storage_class="now").build()]
        cluster = cluster_with(*(objects if volume_first else reversed(objects)))
        assert is_bound(cluster)

    def test_also_what_was_there_before_the_controller(self) -> None:
        cluster = InMemoryCluster(
            [NOW, volume(storage_class="now").build(), claim(storage_class="now").build()]
        )
        VolumeController(cluster)
        assert is_bound(cluster)

    def test_not_if_the_class_waits_for_pods(self) -> None:
        assert not is_bound(cluster_with(volume().build(), claim().build()))

    def test_but_then_to_the_volume_that_names_it(self) -> None:
        cluster = cluster_with(volume().claimed_by("default/claim").build(), claim().build())
        assert is_bound(cluster)

    def test_to_the_volume_that_it_names(self) -> None:
        wishing = claim().build()
        wishing = attrs.evolve(wishing, spec=attrs.evolve(wishing.spec, volume_name="volume"))
        assert is_bound(cluster_with(wishing, volume().build()))

    def test_one_volume_serves_one_claim(self) -> None:
        claims = (claim(name, storage_class="now").build() for name in ("c1", "c2"))
        cluster = cluster_with(volume(storage_class="now").build(), *claims)
        assert [is_bound(cluster, name) for name in ("c1", "c2")] == [True, False]
        cluster.add(volume("another", storage_class="now").build())
        assert is_bound(cluster, "c2")

    @pytest.mark.parametrize("group", ["storageclass.kubernetes.io", "storageclass.beta.kubernetes.io"])
    def test_claims_without_a_class_get_the_default_one(self, group: str) -> None:
        default = storage_class(
            "default",
            delayed=False,
            provisioner="csi.example.com",
            annotations={f"{group}/is-default-class": "true"},
        )
        bare = claim().build()
        bare = attrs.evolve(bare, spec=attrs.evolve(bare.spec, storage_class_name=None))
        cluster = cluster_with(default, bare)
        assert the_claim(cluster).spec.storage_class_name == "default"
        assert is_bound(cluster)


class TestMaking:
    def test_for_the_selected_node(self) -> None:
        cluster = cluster_with(claim(storage_class="make").build())
        assert not cluster.list(PersistentVolume)
        cluster.update(claim(storage_class="make").annotations(FOR_NODE).build())
        assert is_bound(cluster)

    @pytest.mark.parametrize("said_by", ["class", "driver"])
    def test_within_the_topology(self, said_by: str) -> None:
        zones = ("1", "2") if said_by == "class" else ()
        objects = [storage_class("here", provisioner="csi.example.com", zones=zones)]
        if said_by == "driver":
            objects.append(csi_node("n1", topology_keys=(ZONE,)))  # type: ignore[arg-type]
        cluster = cluster_with(*objects, claim(storage_class="here").annotations(FOR_NODE).build())
        assert is_bound(cluster)
        affinity = cluster.list(PersistentVolume)[0].spec.node_affinity
        assert affinity is not None
        assert affinity.required is not None
        assert affinity.required.matches({ZONE: "1"}, "")
        assert not affinity.required.matches({ZONE: "2"}, "")

    @pytest.mark.parametrize("node", ["n1", "gone"])
    def test_takes_the_node_back_where_it_fails(self, node: str) -> None:
        elsewhere = storage_class("elsewhere", provisioner="csi.example.com", zones=("2",))
        wish = claim(storage_class="elsewhere").annotations({SELECTED_NODE: node}).build()
        cluster = cluster_with(elsewhere, wish)
        assert SELECTED_NODE not in the_claim(cluster).annotations
        assert not cluster.list(PersistentVolume)


class TestEnds:
    def test_a_volume_is_released_with_its_claim(self) -> None:
        cluster = cluster_with(volume(storage_class="now").build(), claim(storage_class="now").build())
        cluster.delete(the_claim(cluster))
        assert the_volume(cluster).status.phase == "Released"
        cluster.add(claim(storage_class="now").uid("another").build())
        assert not is_bound(cluster)

    def test_one_that_was_made_for_the_claim_is_deleted(self) -> None:
        cluster = cluster_with(claim(storage_class="make").annotations(FOR_NODE).build())
        cluster.delete(the_claim(cluster))
        assert not cluster.list(PersistentVolume)

    def test_a_claim_whose_volume_is_gone_is_lost(self) -> None:
        cluster = cluster_with(volume(storage_class="now").build(), claim(storage_class="now").build())
        cluster.delete(the_volume(cluster))
        assert the_claim(cluster).status.phase == "Lost"

    def test_a_lost_claim_is_bound_again_when_a_volume_of_that_name_comes(self) -> None:
        cluster = cluster_with(volume(storage_class="now").build(), claim(storage_class="now").build())
        cluster.delete(the_volume(cluster))
        cluster.add(volume(storage_class="now").build())
        assert the_claim(cluster).status.phase == "Bound"

    def test_closing_ends_all(self) -> None:
        cluster = InMemoryCluster([NOW, volume(storage_class="now").build()])
        VolumeController(cluster).close()
        cluster.add(claim(storage_class="now").build())
        assert not is_bound(cluster)


class TestWhatAnApiServerHasStored:
    @pytest.mark.parametrize("provision_observed", [True, False])
    def test_a_claim_that_its_provisioner_left_pending_stays_so_if_asked(
        self, provision_observed: bool
    ) -> None:
        stored = stamped(claim(storage_class="make-now").build())
        cluster = InMemoryCluster(
            [storage_class("make-now", delayed=False, provisioner="csi.example.com"), stored]
        )
        VolumeController(cluster, provision_observed=provision_observed)
        assert is_bound(cluster) == provision_observed

    def test_a_volume_for_it_binds_it(self) -> None:
        cluster = InMemoryCluster([NOW, stamped(claim(storage_class="now").build())])
        VolumeController(cluster, provision_observed=False)
        cluster.add(volume(storage_class="now").build())
        assert is_bound(cluster)

    def test_one_that_waited_for_a_consumer_is_provisioned_on_the_consumers_node(self) -> None:
        stored = stamped(claim(storage_class="make").annotations(FOR_NODE).build())
        cluster = InMemoryCluster([make_node("n1").zone("1").build(), csi_node("n1"), MAKE, stored])
        VolumeController(cluster, provision_observed=False)
        assert is_bound(cluster)

    @pytest.mark.parametrize("provision_observed", [True, False])
    def test_a_volume_bound_to_a_claim_that_was_not_exported_stays_so_if_asked(
        self, provision_observed: bool
    ) -> None:
        reference = ObjectReference("PersistentVolumeClaim", "default", "elsewhere", "uid")
        given = volume(storage_class="now").build()
        bound = attrs.evolve(
            given, spec=attrs.evolve(given.spec, claim_ref=reference), status=VolumePhase("Bound")
        )
        cluster = InMemoryCluster([NOW, bound])
        VolumeController(cluster, provision_observed=provision_observed)
        assert the_volume(cluster).status.phase == ("Released" if provision_observed else "Bound")


def stamped(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    made = datetime(2026, 1, 1, tzinfo=UTC)
    return claim.with_metadata(attrs.evolve(claim.metadata, creation_timestamp=made))


def test_ephemeral_volumes_have_claims_that_go_with_the_pod() -> None:
    pod = make_pod().ephemeral_volume("scratch", storage_class="now").build()
    cluster = cluster_with(pod, volume(storage_class="now").build())
    assert is_bound(cluster, "pod-scratch")
    cluster.delete(pod)
    assert not cluster.list(PersistentVolumeClaim)


def test_on_demand_nothing_happens_before_sync() -> None:
    cluster = InMemoryCluster([NOW, volume(storage_class="now").build(), claim(storage_class="now").build()])
    controller = VolumeController(cluster, on_demand=True)
    assert not is_bound(cluster)
    controller.sync()
    assert is_bound(cluster)
