"""VolumeBinding refuses nodes on which a pod's claims can't be had."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import attrs
import pytest

from kschedfw import IDLE, make_node, make_pod
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.meta import Named, ObjectMeta
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.selectors import LabelSelector, NodeSelector, NodeSelectorTerm, Operator, Requirement
from kschedfw.api.storage import PersistentVolumeClaim, VolumeNodeAffinity, VolumePhase
from kschedfw.framework.gates import DEFAULT_GATES, FeatureGates
from kschedfw.framework.profile import Profile
from kschedfw.framework.runtime.args import ArgsError
from kschedfw.framework.status import Code
from kschedfw.testing import FrameworkHarness
from tests.plugins.storage import ZONE, claim, csi_node, driver, room, storage_class, volume

OUT_OF_REACH = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
LOST = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


EBS = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
SCORING = FeatureGates.of("StorageCapacityScoring")
SHAPE = {
    "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}],
}
"""The fuller the better."""


def zoned(name: str, zone: str) -> Node:
    return make_node(name).zone(zone).build()


NODES = (zoned("a", "1"), zoned("b", "2"))


def pod_with(*claims: str) -> Pod:
    pod = make_pod()
    for name in claims:
        pod.claim(name)
    return pod.build()


def reasons(pod: Pod, *objects: Named, nodes: Iterable[Node] = NODES) -> dict[str, tuple[str, ...]]:
    """Why the pod is refused, by node; no reason where it isn't."""
    harness = FrameworkHarness("VolumeBinding", nodes=nodes, objects=objects)
    statuses = harness.filter(pod)
    assert {status.code for status in statuses.values()} <= {
        Code.SUCCESS,
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
    }, statuses
    return {name: status.reasons for name, status in statuses.items()}


def everywhere(reason: str) -> dict[str, tuple[str, ...]]:
    return {"a": (reason,), "b": (reason,)}


FINE: dict[str, tuple[str, ...]] = {"a": (), "b": ()}


class TestPodsWithoutClaims:
    @pytest.mark.parametrize(
        "pod", [make_pod().build(), make_pod().volume("cache", {"emptyDir": {}}).build()]
    )
    def test_are_not_looked_at(self, pod: Pod) -> None:
        harness = FrameworkHarness("VolumeBinding", nodes=NODES)
        harness.pre_filter(pod)
        assert harness.state.skip_filter_plugins == {"VolumeBinding"}
        assert harness.framework.plugins["VolumeBinding"].sign(pod) is IDLE


class TestClaimsThatCanNotBeUsed:
    def test_one_that_is_missing(self) -> None:
        assert reasons(pod_with("claim")) == everywhere('persistentvolumeclaim "claim" not found')

    def test_one_that_is_being_deleted(self) -> None:
        going = claim().bound_to("volume").build()
        metadata = attrs.evolve(going.metadata, deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC))
        going = attrs.evolve(going, metadata=metadata)
        found = reasons(pod_with("claim"), going, volume().build())
        assert found == everywhere('persistentvolumeclaim "claim" is being deleted')

    def test_one_whose_volume_is_lost(self) -> None:
        lost = attrs.evolve(claim().bound_to("gone").build(), status=VolumePhase("Lost"))
        assert reasons(pod_with("claim"), lost) == everywhere(
            'persistentvolumeclaim "claim" bound to non-existent persistentvolume "gone"'
        )

    @pytest.mark.parametrize("name", ["now", "", "unknown"])
    def test_one_that_should_have_been_bound_by_now(self, name: str) -> None:
        """Unless its class says that claims wait for pods."""
        found = reasons(
            pod_with("claim"), storage_class("now", delayed=False), claim(storage_class=name).build()
        )
        assert found == everywhere(UNBOUND_IMMEDIATE)

    def test_one_that_names_its_volume_but_is_not_bound_yet(self) -> None:
        wishing = claim().build()
        wishing = attrs.evolve(wishing, spec=attrs.evolve(wishing.spec, volume_name="volume"))
        assert reasons(pod_with("claim"), storage_class(), wishing, volume().build()) == everywhere(
            UNBOUND_IMMEDIATE
        )


class TestEphemeralVolumes:
    POD = make_pod("web").uid("web-1").ephemeral_volume("scratch", storage_class="wait").build()

    def test_wait_for_their_claim(self) -> None:
        assert reasons(self.POD) == everywhere(
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "web-scratch"'
        )

    def test_do_not_take_the_claim_of_somebody_else(self) -> None:
        assert reasons(self.POD, storage_class(), claim("web-scratch").build()) == everywhere(
            "PVC default/web-scratch was not created for pod default/web (pod is not owner)"
        )

    def test_are_claims_like_others(self) -> None:
        own = claim("web-scratch").made_for(self.POD).build()
        assert reasons(self.POD, storage_class(), own, volume().build()) == FINE


class TestBoundVolumes:
    def test_can_be_used_from_everywhere_if_nothing_else_is_said(self) -> None:
        assert reasons(pod_with("claim"), claim().bound_to("volume").build(), volume().build()) == FINE

    def test_draw_the_pod_to_where_they_are(self) -> None:
        there = volume().node_affinity_in(ZONE, "2").build()
        found = reasons(pod_with("claim"), claim().bound_to("volume").build(), there)
        assert found == {"a": (OUT_OF_REACH,), "b": ()}

    def test_that_are_gone(self) -> None:
        assert reasons(pod_with("claim"), claim().bound_to("volume").build()) == everywhere(LOST)

    def test_the_first_that_does_not_fit_counts(self) -> None:
        objects = (
            claim("here").bound_to("here").build(),
            claim("gone").bound_to("gone").build(),
            volume("here").node_affinity_in(ZONE, "1").build(),
        )
        assert reasons(pod_with("here", "gone"), *objects) == {"a": (LOST,), "b": (OUT_OF_REACH,)}

    def test_node_affinity_looks_at_labels_alone(self) -> None:
        terms = (NodeSelectorTerm((), (Requirement("metadata.name", Operator.IN, ("a",)),)),)
        local = volume().build()
        affinity = VolumeNodeAffinity(NodeSelector(terms))
        local = attrs.evolve(local, spec=attrs.evolve(local.spec, node_affinity=affinity))
        found = reasons(pod_with("claim"), claim().bound_to("volume").build(), local)
        assert found == everywhere(OUT_OF_REACH)

    def test_a_malformed_term_spoils_the_others(self) -> None:
        terms = (
            NodeSelectorTerm((Requirement(ZONE, Operator.EXISTS),)),
            NodeSelectorTerm((Requirement(ZONE, Operator.IN, ()),)),
        )
        broken = volume().build()
        affinity = VolumeNodeAffinity(NodeSelector(terms))
        broken = attrs.evolve(broken, spec=attrs.evolve(broken.spec, node_affinity=affinity))
        found = reasons(pod_with("claim"), claim().bound_to("volume").build(), broken)
        assert found == everywhere(OUT_OF_REACH)


class TestInTreeVolumesThatWereMigrated:
    """On nodes where a CSI driver has taken over, zones have the driver's label."""

    NODES = (
        make_node("old").labels({ZONE: "1"}).build(),
        make_node("new").labels({"topology.ebs.csi.aws.com/zone": "1"}).build(),
        make_node("elsewhere").labels({ZONE: "1", "topology.ebs.csi.aws.com/zone": "2"}).build(),
    )
    MIGRATED = tuple(csi_node(name, migrated=("kubernetes.io/aws-ebs",)) for name in ("new", "elsewhere"))

    def test_by_their_node_affinity(self) -> None:
        disk = volume().source(EBS).node_affinity_in(ZONE, "1").build()
        found = reasons(
            pod_with("claim"), claim().bound_to("volume").build(), disk, *self.MIGRATED, nodes=self.NODES
        )
        assert found == {"old": (), "new": (), "elsewhere": (OUT_OF_REACH,)}

    @pytest.mark.parametrize("label", [ZONE, OLD_ZONE])
    def test_by_their_labels(self, label: str) -> None:
        """Which VolumeZone looks at on nodes that haven't been migrated."""
        disk = volume().source(EBS).labels({label: "1__3"}).build()
        found = reasons(
            pod_with("claim"), claim().bound_to("volume").build(), disk, *self.MIGRATED, nodes=self.NODES
        )
        assert found == {"old": (), "new": (), "elsewhere": (OUT_OF_REACH,)}

    def test_those_without_zones_are_as_before(self) -> None:
        disk = volume().source(EBS).build()
        found = reasons(
            pod_with("claim"), claim().bound_to("volume").build(), disk, *self.MIGRATED, nodes=self.NODES
        )
        assert found == {"old": (), "new": (), "elsewhere": ()}


class TestAvailableVolumes:
    def test_one_is_needed(self) -> None:
        assert reasons(pod_with("claim"), storage_class(), claim().build()) == everywhere(NO_VOLUME)
        assert reasons(pod_with("claim"), storage_class(), claim().build(), volume().build()) == FINE

    @pytest.mark.parametrize(
        "unfit",
        [
            volume(size="1023Mi"),
            volume(storage_class="other"),
            volume().access_modes("ReadOnlyMany"),
            volume().source({"volumeMode": "Block"}),
            volume().source({"volumeAttributesClassName": "fast"}),
            volume().claimed_by("default/other"),
            volume().claimed_by("default/claim", uid="that of an earlier claim"),
        ],
        ids=["too small", "class", "access modes", "mode", "attributes", "taken", "taken by its predecessor"],
    )
    def test_that_do_not_fit(self, unfit: object) -> None:
        found = reasons(pod_with("claim"), storage_class(), claim().build(), unfit.build())  # type: ignore[attr-defined]
        assert found == everywhere(NO_VOLUME)

    @pytest.mark.parametrize("phase", ["Pending", "Released", "Failed"])
    def test_that_are_not_available(self, phase: str) -> None:
        other = attrs.evolve(volume().build(), status=VolumePhase(phase))
        assert reasons(pod_with("claim"), storage_class(), claim().build(), other) == everywhere(NO_VOLUME)

    def test_that_the_claim_does_not_select(self) -> None:
        picky = claim().build()
        selector = LabelSelector(FrozenDict({"speed": "high"}))
        picky = attrs.evolve(picky, spec=attrs.evolve(picky.spec, selector=selector))
        slow, fast = (volume(speed).labels({"speed": speed}).build() for speed in ("low", "high"))
        assert reasons(pod_with("claim"), storage_class(), picky, slow) == everywhere(NO_VOLUME)
        assert reasons(pod_with("claim"), storage_class(), picky, slow, fast) == FINE

    def test_are_to_be_had_where_they_can_be_used(self) -> None:
        there = volume().node_affinity_in(ZONE, "2").build()
        found = reasons(pod_with("claim"), storage_class(), claim().build(), there)
        assert found == {"a": (NO_VOLUME,), "b": ()}

    def test_each_serves_one_claim(self) -> None:
        claims = claim("c1").build(), claim("c2").build()
        found = reasons(
            pod_with("c1", "c2"),
            storage_class(),
            *claims,
            volume("v1").build(),
            volume("v2").node_affinity_in(ZONE, "2").build(),
        )
        assert found == {"a": (NO_VOLUME,), "b": ()}

    def test_the_smaller_claim_does_not_take_the_larger_volume(self) -> None:
        claims = claim("large", "2Gi").build(), claim("small", "1Gi").build()
        volumes = volume("v2", "2Gi").build(), volume("v1", "1Gi").build()
        assert reasons(pod_with("large", "small"), storage_class(), *claims, *volumes) == FINE

    def test_one_that_names_the_claim_is_the_only_one_for_it(self) -> None:
        meant = volume("meant", "5Gi").claimed_by("default/claim").node_affinity_in(ZONE, "1").build()
        found = reasons(pod_with("claim"), storage_class(), claim().build(), meant, volume("other").build())
        assert found == {"a": (), "b": (NO_VOLUME,)}

    def test_together_with_bound_ones(self) -> None:
        objects = (
            storage_class(),
            claim("old").bound_to("old").build(),
            claim("new").build(),
            volume("old").node_affinity_in(ZONE, "1").build(),
            volume("new").node_affinity_in(ZONE, "1").build(),
        )
        assert reasons(pod_with("old", "new"), *objects) == {"a": (), "b": (OUT_OF_REACH, NO_VOLUME)}

    def test_the_old_annotation_of_classes_counts(self) -> None:
        annotation = {"volume.beta.kubernetes.io/storage-class": "wait"}
        old_style = claim(storage_class="x").annotations(annotation).build()
        assert reasons(pod_with("claim"), storage_class(), old_style, volume().build()) == FINE


class TestVolumesThatCanBeMade:
    MAKE = storage_class("make", provisioner="csi.example.com")
    CLAIM = claim(storage_class="make").build()

    def test_wherever_the_class_allows_it(self) -> None:
        assert reasons(pod_with("claim"), self.MAKE, self.CLAIM) == FINE
        limited = storage_class("make", provisioner="csi.example.com", zones=("2", "3"))
        assert reasons(pod_with("claim"), limited, self.CLAIM) == {"a": (NO_VOLUME,), "b": ()}

    def test_where_there_is_room(self) -> None:
        rooms = room("r1", "1", "1023Mi"), room("r2", "2", "1Gi")
        found = reasons(pod_with("claim"), self.MAKE, self.CLAIM, driver(), *rooms)
        assert found == {"a": (NO_SPACE,), "b": ()}

    def test_room_of_another_class_is_no_room(self) -> None:
        found = reasons(
            pod_with("claim"), self.MAKE, self.CLAIM, driver(), room("r", "1", "1Ti", storage_class="other")
        )
        assert found == everywhere(NO_SPACE)

    def test_the_largest_possible_volume_is_what_counts(self) -> None:
        rooms = (
            room("r1", "1", "1Ti", maximumVolumeSize="1Mi"),
            room("r2", "2", "1Mi", maximumVolumeSize="1Gi"),
        )
        found = reasons(pod_with("claim"), self.MAKE, self.CLAIM, driver(), *rooms)
        assert found == {"a": (NO_SPACE,), "b": ()}

    def test_a_driver_that_does_not_tell_how_much_room_it_has(self) -> None:
        assert reasons(pod_with("claim"), self.MAKE, self.CLAIM, driver(tells_capacity=False)) == FINE

    def test_for_those_claims_alone_that_find_none(self) -> None:
        objects = (
            storage_class("make", provisioner="csi.example.com", zones=("2",)),
            claim("c1", storage_class="make").build(),
            claim("c2", storage_class="make").build(),
            volume("v1", storage_class="make").node_affinity_in(ZONE, "1").build(),
            volume("v2", storage_class="make").node_affinity_in(ZONE, "1").build(),
        )
        assert reasons(pod_with("c1", "c2"), *objects) == FINE

    def test_one_that_is_being_made_binds_the_pod_to_its_node(self) -> None:
        annotation = {"volume.kubernetes.io/selected-node": "b"}
        selected = claim(storage_class="make").annotations(annotation).build()
        assert reasons(pod_with("claim"), self.MAKE, selected) == {"a": (NO_VOLUME,), "b": ()}


class TestScoring:
    def scores(self, pod: Pod, *objects: Named) -> dict[str, int]:
        harness = FrameworkHarness(
            "VolumeBinding",
            nodes=NODES,
            objects=objects,
            args={"VolumeBinding": SHAPE},
            feature_gates=SCORING,
        )
        harness.filter(pod)
        return harness.score(pod)

    def test_is_on_by_default_in_v1_37(self) -> None:
        """KEP-4049: beta and on since v1.37."""
        objects = storage_class(), claim(size="1Gi").build(), volume(size="4Gi").build()
        scores = {
            version: FrameworkHarness(
                "VolumeBinding", nodes=NODES, objects=objects, feature_gates=FeatureGates(version=version)
            ).score(pod_with("claim"))
            for version in ("1.36", "1.37")
        }
        assert scores == {"1.36": {"a": 0, "b": 0}, "1.37": {"a": 75, "b": 75}}

    def test_is_off_unless_it_is_turned_on(self) -> None:
        harness = FrameworkHarness("VolumeBinding", nodes=NODES)
        pod = make_pod().build()
        harness.pre_filter(pod)
        harness.framework.run_pre_score_plugins(harness.state, pod, harness.snapshot.node_infos)
        assert harness.state.skip_score_plugins == {"VolumeBinding"}

    def test_without_a_shape_less_use_is_better(self) -> None:
        objects = storage_class(), claim(size="1Gi").build(), volume(size="4Gi").build()
        harness = FrameworkHarness(
            "VolumeBinding",
            nodes=NODES,
            objects=objects,
            feature_gates=SCORING,
        )
        assert harness.score(pod_with("claim")) == {"a": 75, "b": 75}

    def test_a_volume_that_the_claim_fills_is_better(self) -> None:
        volumes = (
            volume("tight", "2Gi").node_affinity_in(ZONE, "1").build(),
            volume("roomy", "10Gi").node_affinity_in(ZONE, "2").build(),
        )
        found = self.scores(pod_with("claim"), storage_class(), claim(size="1Gi").build(), *volumes)
        assert found == {"a": 50, "b": 10}

    def test_classes_count_alike(self) -> None:
        objects = (
            storage_class("x"),
            storage_class("y"),
            *(claim(f"x{i}", "1Gi", storage_class="x").build() for i in range(2)),
            claim("y", "3Gi", storage_class="y").build(),
            *(volume(f"x{i}", "5Gi", storage_class="x").build() for i in range(2)),
            volume("y", "4Gi", storage_class="y").build(),
        )
        assert self.scores(pod_with("x0", "x1", "y"), *objects) == {"a": 48, "b": 48}  # (20 + 75) / 2

    def test_room_for_new_volumes(self) -> None:
        make = storage_class("make", provisioner="csi.example.com")
        rooms = room("r1", "1", "4Gi"), room("r2", "2", "2Gi")
        objects = make, claim(size="1Gi", storage_class="make").build(), driver(), *rooms
        assert self.scores(pod_with("claim"), *objects) == {"a": 25, "b": 50}

    def test_pods_without_anything_to_bind(self) -> None:
        assert self.scores(make_pod().build()) == {"a": 0, "b": 0}
        bound = claim().bound_to("volume").build()
        assert self.scores(pod_with("claim"), bound, volume().build()) == {"a": 0, "b": 0}


class TestArguments:
    @pytest.mark.parametrize(
        ("gates", "args", "problem"),
        [
            (
                DEFAULT_GATES,
                {"bindTimeoutSeconds": -1},
                "bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value",
            ),
            (
                DEFAULT_GATES,
                {"shape": [{"utilization": 7}]},
                (
                    'shape: Invalid value: [{"Utilization":7,"Score":0}]: unexpected field `shape`, '
                    "remove it or turn on the feature gate StorageCapacityScoring"
                ),
            ),
            (
                SCORING,
                {"shape": [{"utilization": 101}]},
                "shape[0].utilization: Invalid value: 101: not in valid range [0, 100]",
            ),
            (
                SCORING,
                {"shape": [{"utilization": 5}, {"utilization": 5}]},
                "shape[1].utilization: Invalid value: 5: values must be sorted in increasing order",
            ),
        ],
    )
    def test_are_checked(self, gates: FeatureGates, args: dict[str, object], problem: str) -> None:
        with pytest.raises(ArgsError) as error:
            FrameworkHarness("VolumeBinding", args={"VolumeBinding": args}, feature_gates=gates)
        assert str(error.value) == f"VolumeBinding: {problem}"


def test_it_stands_where_kube_scheduler_has_it() -> None:
    from kschedfw.config import default_profile

    profile: Profile = default_profile()
    names = [plugin.name for plugin in profile.multi_point]
    assert names.index("VolumeBinding") == names.index("VolumeZone") - 1


def test_a_claim_is_not_that_of_another_namespace() -> None:
    there = claim().build()
    assert isinstance(there, PersistentVolumeClaim)
    elsewhere = attrs.evolve(there, metadata=ObjectMeta(name="claim", namespace="other"))
    assert reasons(pod_with("claim"), elsewhere) == everywhere('persistentvolumeclaim "claim" not found')
