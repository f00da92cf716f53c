"""NodeVolumeLimits: how many volumes of each CSI driver a node can attach."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from kschedfw import InMemoryCluster, Scheduler, make_claim, make_node, make_pod, make_volume
from kschedfw.api import CSIDriver, ObjectMeta
from kschedfw.api.meta import Named
from kschedfw.api.pod import Pod
from kschedfw.api.storage import CSIDriverSpec
from kschedfw.framework.events import QueueingHint
from kschedfw.framework.gates import FeatureGates
from kschedfw.framework.status import Code, Status
from kschedfw.plugins.node_volume_limits import NodeVolumeLimits
from kschedfw.testing import FrameworkHarness
from tests.plugins.volume_objects import (
    DRIVER,
    EBS,
    EBS_DRIVER,
    attachment,
    csi_node,
    storage_class,
)

NODE = make_node("n").build()
GCE, GCE_DRIVER = "kubernetes.io/gce-pd", "pd.csi.storage.gke.io"


def volume(name: str, source: Mapping[str, object] | None = None) -> list[Named]:
    """A volume of the driver (or another), and the claim that is bound to it."""
    made = make_volume(f"pv-{name}")
    made = made.csi(DRIVER, f"handle-{name}") if source is None else made.source(source)
    return [made.build(), make_claim(name).bound_to(f"pv-{name}").build()]


def using(*claims: str, node: str = "", uid: str = "new") -> Pod:
    pod = make_pod(uid).uid(uid)
    for claim in claims:
        pod.claim(claim)
    return pod.node(node).build() if node else pod.build()


def verdict(
    new: Pod,
    *objects: Named,
    limits: Mapping[str, int | None] | None = None,
    pods: Iterable[Pod] = (),
    migrated: Sequence[str] = (),
    version: str = "1.36",
) -> Status:
    csi_nodes = [] if limits is None else [csi_node("n", limits, migrated=migrated)]
    harness = FrameworkHarness(
        NodeVolumeLimits,
        nodes=[NODE],
        pods=pods,
        objects=[*objects, *csi_nodes],
        feature_gates=FeatureGates(version=version),
    )
    return harness.filter(new)["n"]


def test_one_volume_too_many_is_a_refusal_that_preemption_may_change() -> None:
    objects = [*volume("a"), *volume("b")]
    old = using("a", node="n", uid="old")
    assert verdict(using("b"), *objects, pods=[old], limits={DRIVER: 2}).is_success
    status = verdict(using("b"), *objects, pods=[old], limits={DRIVER: 1})
    assert (status.code, status.reasons) == (Code.UNSCHEDULABLE, ("node(s) exceed max volume count",))


@pytest.mark.parametrize("limits", [None, {}, {DRIVER: None}, {"another.example.com": 0}])
def test_without_a_limit_of_the_driver_there_is_none(limits: dict[str, int | None] | None) -> None:
    assert verdict(using("a"), *volume("a"), limits=limits).is_success


def test_a_volume_that_is_there_already_does_not_count_twice() -> None:
    old = using("a", node="n", uid="old")
    assert verdict(using("a"), *volume("a"), pods=[old], limits={DRIVER: 1}).is_success


class TestNodesWithoutTheDriver:
    """KEP-5030; VolumeLimitScaling is on since v1.37."""

    DEMANDING = CSIDriver(ObjectMeta(name=DRIVER), CSIDriverSpec(prevent_pod_scheduling_if_missing=True))

    @pytest.mark.parametrize("limits", [None, {}, {"another.example.com": 1}])
    def test_are_refused_since_v1_37_if_the_driver_asks_for_that(
        self, limits: dict[str, int | None] | None
    ) -> None:
        objects = [*volume("a"), self.DEMANDING]
        assert verdict(using("a"), *objects, limits=limits, version="1.36").is_success
        status = verdict(using("a"), *objects, limits=limits, version="1.37")
        assert status.code is Code.UNSCHEDULABLE
        assert status.reasons == (f"{DRIVER} CSI driver is not installed on the node",)

    def test_are_fine_if_the_driver_does_not_ask(self) -> None:
        driver = CSIDriver(ObjectMeta(name=DRIVER))
        assert verdict(using("a"), *volume("a"), driver, limits={}, version="1.37").is_success

    def test_are_told_from_those_that_have_it_without_a_limit(self) -> None:
        objects = [*volume("a"), self.DEMANDING]
        assert verdict(using("a"), *objects, limits={DRIVER: None}, version="1.37").is_success

    def test_are_refused_for_claims_whose_volume_is_still_to_be_made(self) -> None:
        claim = make_claim("a").storage_class("later").build()
        objects = [claim, storage_class("later"), self.DEMANDING]
        assert not verdict(using("a"), *objects, limits={}, version="1.37").is_success

    def test_are_refused_by_the_batch_form_as_one_by_one(self) -> None:
        objects = [*volume("a"), self.DEMANDING, csi_node("n", {DRIVER: 5})]
        harness = FrameworkHarness(
            NodeVolumeLimits,
            nodes=[NODE, make_node("bare").build()],
            objects=objects,
            feature_gates=FeatureGates(version="1.37"),
        )
        scheduler = Scheduler(
            InMemoryCluster([NODE, make_node("bare").build(), *objects, using("a")]),
            feature_gates=FeatureGates(version="1.37"),
        )
        assert [name for name, status in harness.filter(using("a")).items() if status.is_success] == ["n"]
        scheduler.run_until_idle()
        bound = scheduler.cluster.get(Pod, "default/new")
        assert bound is not None
        assert bound.node_name == "n"


@pytest.mark.parametrize(
    "pod",
    [
        make_pod().build(),
        make_pod().volume("tmp", {"emptyDir": {}}).build(),
        make_pod().volume("own", {"csi": {"driver": DRIVER}}).build(),
    ],
    ids=["no volumes", "a directory", "a volume that the driver makes"],
)
def test_other_pods_are_none_of_its_business(pod: Pod) -> None:
    harness = FrameworkHarness(NodeVolumeLimits, nodes=[NODE])
    harness.pre_filter(pod)
    assert harness.state.skip_filter_plugins == {"NodeVolumeLimits"}


class TestClaims:
    def test_an_unbound_claim_counts_for_the_driver_of_its_class(self) -> None:
        objects = [make_claim("a").storage_class("later").build(), storage_class("later")]
        assert not verdict(using("a"), *objects, limits={DRIVER: 0}).is_success
        assert verdict(using("a"), *objects, limits={"another.example.com": 0}).is_success

    def test_one_whose_volume_is_missing_does_too(self) -> None:
        claim = make_claim("a").storage_class("later").bound_to("gone").build()
        assert not verdict(using("a"), claim, storage_class("later"), limits={DRIVER: 0}).is_success

    @pytest.mark.parametrize(
        "claim", [make_claim("a").build(), make_claim("a").storage_class("gone").build()]
    )
    def test_one_of_no_class_that_is_known_does_not(self, claim: Named) -> None:
        assert verdict(using("a"), claim, limits={DRIVER: 0}).is_success

    def test_a_missing_claim_is_a_refusal_for_good(self) -> None:
        status = verdict(using("a"), limits={DRIVER: 0})
        assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        assert status.reasons == ('looking up PVC default/a: persistentvolumeclaim "a" not found',)

    def test_that_of_a_pod_on_the_node_does_not_count(self) -> None:
        old = using("gone", node="n", uid="old")
        assert verdict(using("a"), *volume("a"), pods=[old], limits={DRIVER: 1}).is_success

    def test_an_ephemeral_volume_counts_if_its_claim_was_made_for_the_pod(self) -> None:
        pod = make_pod("web").uid("1").ephemeral_volume("scratch").build()
        claim = make_claim("web-scratch").storage_class("later")
        status = verdict(pod, claim.build(), storage_class("later"), limits={DRIVER: 0})
        assert status.code is Code.ERROR
        assert status.message.endswith(
            "PVC default/web-scratch was not created for pod default/web (pod is not owner)"
        )
        status = verdict(pod, claim.made_for(pod).build(), storage_class("later"), limits={DRIVER: 0})
        assert status.code is Code.UNSCHEDULABLE


class TestAttachments:
    def test_what_is_attached_counts_though_no_pod_uses_it(self) -> None:
        objects = [*volume("a"), *volume("b"), attachment("va", "n", "pv-b")]
        assert verdict(using("a"), *objects, limits={DRIVER: 2}).is_success
        assert not verdict(using("a"), *objects, limits={DRIVER: 1}).is_success

    def test_but_once_with_the_pod_that_uses_it(self) -> None:
        objects = [*volume("a"), *volume("b"), attachment("va", "n", "pv-b")]
        old = using("b", node="n", uid="old")
        assert verdict(using("a"), *objects, pods=[old], limits={DRIVER: 2}).is_success

    def test_it_counts_as_it_is_now_though_as_many_are_listed_as_before(self) -> None:
        """A volume is detached from one node and attached to another, under the same name."""
        objects = [
            *volume("a"),
            *volume("b"),
            attachment("va", "elsewhere", "pv-b"),
            csi_node("n", {DRIVER: 1}),
        ]
        harness = FrameworkHarness(NodeVolumeLimits, nodes=[NODE], objects=objects)
        assert harness.filter(using("a"))["n"].is_success
        harness.cluster.update(attachment("va", "n", "pv-b"))
        assert not harness.filter(using("a"))["n"].is_success
        harness.cluster.update(attachment("va", "elsewhere", "pv-b"))
        assert harness.filter(using("a"))["n"].is_success

    @pytest.mark.parametrize("other", [attachment("va", "elsewhere", "pv-b"), attachment("va", "n", "gone")])
    def test_other_attachments_do_not(self, other: Named) -> None:
        assert verdict(using("a"), *volume("a"), *volume("b"), other, limits={DRIVER: 1}).is_success


class TestMigration:
    EBS_DISK: Mapping[str, Any] = {"awsElasticBlockStore": {"volumeID": "aws://zone/vol-1"}}
    GCE_DISK: Mapping[str, Any] = {"gcePersistentDisk": {"pdName": "d"}}

    def test_an_in_tree_volume_counts_for_the_driver_where_it_has_been_migrated(self) -> None:
        pod = make_pod().volume("disk", self.EBS_DISK).build()
        assert verdict(pod, limits={EBS_DRIVER: 0}).is_success
        assert verdict(pod, limits={EBS_DRIVER: 0}, migrated=[GCE]).is_success
        assert not verdict(pod, limits={EBS_DRIVER: 0}, migrated=[GCE, EBS]).is_success

    def test_so_does_a_persistent_one_and_an_unbound_claim(self) -> None:
        disk = volume("a", self.EBS_DISK)
        assert verdict(using("a"), *disk, limits={EBS_DRIVER: 0}).is_success
        assert not verdict(using("a"), *disk, limits={EBS_DRIVER: 0}, migrated=[EBS]).is_success
        unbound = [make_claim("a").storage_class("ebs").build(), storage_class("ebs", EBS)]
        assert verdict(using("a"), *unbound, limits={EBS_DRIVER: 0}).is_success
        assert not verdict(using("a"), *unbound, limits={EBS_DRIVER: 0}, migrated=[EBS]).is_success

    def test_the_same_disk_under_two_names_is_one(self) -> None:
        pod = make_pod().volume("disk", {"awsElasticBlockStore": {"volumeID": "vol-1"}}).build()
        old = using("a", node="n", uid="old")
        disk = volume("a", self.EBS_DISK)
        assert verdict(pod, *disk, pods=[old], limits={EBS_DRIVER: 1}, migrated=[EBS]).is_success

    def test_an_id_that_is_none_is_an_error(self) -> None:
        pod = make_pod().volume("disk", {"awsElasticBlockStore": {"volumeID": "aws://a/x"}}).build()
        status = verdict(pod, limits={EBS_DRIVER: 1}, migrated=[EBS])
        assert status.code is Code.ERROR
        assert "converting volume(disk) from inline to csi: " in status.message

    @pytest.mark.parametrize(
        ("zones", "handle"),
        [
            ("", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"),
            ("us-central1-a", "projects/UNSPECIFIED/zones/us-central1-a/disks/d"),
            ("us-central1-a__us-central1-b", "projects/UNSPECIFIED/regions/us-central1/disks/d"),
        ],
    )
    def test_the_handle_of_a_gce_disk_says_where_it_is(self, zones: str, handle: str) -> None:
        disk = make_volume("pv-a").source(self.GCE_DISK).zone(zones).build()
        claim = make_claim("a").bound_to("pv-a").build()
        same = volume("b", {"csi": {"driver": GCE_DRIVER, "volumeHandle": handle}})
        old = using("b", node="n", uid="old")
        status = verdict(using("a"), disk, claim, *same, pods=[old], limits={GCE_DRIVER: 1}, migrated=[GCE])
        assert status.is_success

    def test_a_gce_disk_in_two_regions_does_not_count(self) -> None:
        disk = make_volume("pv-a").source(self.GCE_DISK).zone("us-central1-a__us-east1-b").build()
        claim = make_claim("a").bound_to("pv-a").build()
        assert verdict(using("a"), disk, claim, limits={GCE_DRIVER: 0}, migrated=[GCE]).is_success


class TestQueueing:
    def helps(self, index: int, pod: Pod, old: Named | None, new: Named | None) -> bool:
        harness = FrameworkHarness(NodeVolumeLimits)
        event = harness.framework.events_to_register()["NodeVolumeLimits"][index]
        assert event.hint is not None
        return event.hint(pod, old, new) is QueueingHint.QUEUE

    @pytest.mark.parametrize(
        ("before", "after", "helps"),
        [({DRIVER: 1}, {DRIVER: 2}, True), ({DRIVER: 2}, {DRIVER: 1}, False), ({}, {DRIVER: 1}, True)],
    )
    def test_a_higher_limit_helps(self, before: dict[str, int], after: dict[str, int], helps: bool) -> None:
        assert self.helps(1, using("a"), csi_node("n", before), csi_node("n", after)) is helps

    @pytest.mark.parametrize(
        ("deleted", "helps"),
        [
            (using("x", node="n", uid="old"), True),
            (using("x", uid="old"), False),
            (make_pod("old").node("n").build(), False),
        ],
    )
    def test_the_end_of_a_pod_with_volumes_helps(self, deleted: Pod, helps: bool) -> None:
        assert self.helps(2, using("a"), deleted, None) is helps

    def test_the_pods_own_claim_helps(self) -> None:
        assert self.helps(3, using("a"), None, make_claim("a").build())
        assert not self.helps(3, using("a"), None, make_claim("b").build())
        assert not self.helps(3, using("a"), None, make_claim("a").namespace("team").build())
        ephemeral = make_pod("web").ephemeral_volume("scratch").build()
        assert self.helps(3, ephemeral, None, make_claim("web-scratch").build())

    def test_a_detachment_helps_pods_with_claims_or_volumes_of_the_driver(self) -> None:
        detached = attachment("va", "n", "pv", EBS_DRIVER)
        assert self.helps(4, using("a"), detached, None)
        disk = make_pod().volume("disk", {"awsElasticBlockStore": {"volumeID": "vol-1"}}).build()
        assert self.helps(4, disk, detached, None)
        assert not self.helps(4, disk, attachment("va", "n", "pv"), None)
        assert not self.helps(4, make_pod().build(), detached, None)
