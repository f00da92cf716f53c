"""VolumeRestrictions: disks that can't be mounted twice, and claims for one pod alone."""

from __future__ import annotations

from typing import Any

import pytest

from kschedfw import make_claim, make_node, make_pod
from kschedfw.api.pod import Pod
from kschedfw.api.storage import PersistentVolumeClaim
from kschedfw.framework.events import QueueingHint
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.status import Code
from kschedfw.plugins.volume_restrictions import VolumeRestrictions
from kschedfw.testing import FrameworkHarness

NODES = [make_node("a").build(), make_node("b").build()]
ONE_POD_ONLY = make_claim("data").access_modes("ReadWriteOncePod").build()

Source = dict[str, Any]


def gce(name: str = "d", *, read_only: bool = False) -> Source:
    return {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def ebs(volume_id: str = "vol-1", *, read_only: bool = False) -> Source:
    return {"awsElasticBlockStore": {"volumeID": volume_id, "readOnly": read_only}}


def iscsi(iqn: str = "iqn.1", *, read_only: bool = False, lun: int = 0) -> Source:
    return {"iscsi": {"iqn": iqn, "lun": lun, "targetPortal": "p", "readOnly": read_only}}


def rbd(*monitors: str, image: str = "i", pool: str = "p", read_only: bool = False) -> Source:
    return {"rbd": {"monitors": list(monitors), "image": image, "pool": pool, "readOnly": read_only}}


def mounting(source: Source, *, node: str = "", uid: str = "new") -> Pod:
    pod = make_pod(uid).uid(uid).volume("disk", source)
    return pod.node(node).build() if node else pod.build()


def using(claim: str, *, node: str = "", uid: str = "new", namespace: str = "default") -> Pod:
    pod = make_pod(uid).uid(uid).namespace(namespace).claim(claim)
    return pod.node(node).build() if node else pod.build()


@pytest.mark.parametrize(
    ("new", "mounted", "fits"),
    [
        (gce(), gce(), False),
        (gce(), gce("other"), True),
        (gce(read_only=True), gce(read_only=True), True),
        (gce(read_only=True), gce(), False),
        (ebs(), ebs(), False),
        (ebs(), ebs("vol-2"), True),
        (ebs(read_only=True), ebs(read_only=True), False),
        (iscsi(), iscsi(lun=1), False),
        (iscsi(), iscsi("iqn.2"), True),
        (iscsi(read_only=True), iscsi(read_only=True), True),
        (rbd("m1", "m2"), rbd("m2", "m3"), False),
        (rbd("m1"), rbd("m2"), True),
        (rbd("m1"), rbd("m1", image="j"), True),
        (rbd("m1"), rbd("m1", pool="q"), True),
        (rbd("m1", read_only=True), rbd("m1", read_only=True), True),
        (gce("vol-1"), ebs("vol-1"), True),
    ],
)
def test_a_disk_is_mounted_once_unless_all_only_read(new: Source, mounted: Source, fits: bool) -> None:
    old = mounting(mounted, node="a", uid="old")
    verdicts = FrameworkHarness(VolumeRestrictions, nodes=NODES, pods=[old]).filter(mounting(new))
    assert verdicts["a"].is_success is fits
    assert verdicts["b"].is_success


def test_a_mounted_disk_is_a_refusal_that_preemption_may_change() -> None:
    old = mounting(gce(), node="a", uid="old")
    status = FrameworkHarness(VolumeRestrictions, nodes=NODES, pods=[old]).filter(mounting(gce()))["a"]
    assert (status.code, status.reasons) == (Code.UNSCHEDULABLE, ("node(s) had no available disk",))


@pytest.mark.parametrize(
    "pod",
    [
        make_pod().build(),
        make_pod().volume("tmp", {"emptyDir": {}}).build(),
        make_pod().ephemeral_volume("scratch").build(),
        using("data"),
    ],
    ids=["no volumes", "a directory", "an ephemeral claim", "a claim that nobody else uses"],
)
def test_other_pods_are_none_of_its_business(pod: Pod) -> None:
    harness = FrameworkHarness(VolumeRestrictions, nodes=NODES, objects=[ONE_POD_ONLY])
    harness.pre_filter(pod)
    assert harness.state.skip_filter_plugins == {"VolumeRestrictions"}


def test_a_claim_that_is_missing_is_a_refusal_on_all_nodes() -> None:
    _, status = FrameworkHarness(VolumeRestrictions, nodes=NODES).pre_filter(using("data"))
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons == ('persistentvolumeclaim "data" not found',)


class TestReadWriteOncePod:
    def harness(self, *pods: Pod) -> FrameworkHarness:
        return FrameworkHarness(VolumeRestrictions, nodes=NODES, pods=pods, objects=[ONE_POD_ONLY])

    def test_a_claim_in_use_is_refused_everywhere(self) -> None:
        verdicts = self.harness(using("data", node="a", uid="old")).filter(using("data"))
        assert {status.code for status in verdicts.values()} == {Code.UNSCHEDULABLE}
        assert verdicts["b"].message == (
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
            "another pod"
        )

    def test_one_of_that_name_in_another_namespace_is_another(self) -> None:
        harness = self.harness(using("data", node="a", uid="old", namespace="team"))
        assert all(status.is_success for status in harness.filter(using("data")).values())

    def test_claims_with_other_access_modes_may_be_shared(self) -> None:
        shared = make_claim("data").access_modes("ReadWriteOnce").build()
        old = using("data", node="a", uid="old")
        harness = FrameworkHarness(VolumeRestrictions, nodes=NODES, pods=[old], objects=[shared])
        assert all(status.is_success for status in harness.filter(using("data")).values())

    def test_evicting_the_user_frees_the_claim_on_a_clone_of_the_state_alone(self) -> None:
        old, new = using("data", node="a", uid="old"), using("data")
        harness = self.harness(old)
        harness.pre_filter(new)
        info, state = harness.snapshot.get("b").clone(), harness.state.clone()
        run = harness.framework
        assert run.run_pre_filter_remove_pod(state, new, PodInfo.of(old), info).is_success
        assert run.run_filter_plugins(state, new, info).is_success
        assert not run.run_filter_plugins(harness.state, new, info).is_success
        assert run.run_pre_filter_add_pod(state, new, PodInfo.of(old), info).is_success
        assert not run.run_filter_plugins(state, new, info).is_success


def test_without_pre_filter_it_looks_at_disks_alone() -> None:
    harness = FrameworkHarness(
        VolumeRestrictions, nodes=NODES, pods=[using("data", node="a", uid="old")], objects=[ONE_POD_ONLY]
    )
    plugin = harness.framework.plugins["VolumeRestrictions"]
    assert isinstance(plugin, VolumeRestrictions)
    assert plugin.filter(harness.state, using("data"), harness.snapshot.get("a")) is None


class TestQueueing:
    def hint(self, index: int, pod: Pod, old: object, new: object) -> QueueingHint:
        event = FrameworkHarness(VolumeRestrictions).framework.events_to_register()["VolumeRestrictions"][
            index
        ]
        assert event.hint is not None
        return event.hint(pod, old, new)

    @pytest.mark.parametrize(
        ("pod", "deleted", "helps"),
        [
            (mounting(gce()), mounting(gce(), uid="old"), True),
            (mounting(gce()), mounting(gce("other"), uid="old"), False),
            (using("data"), using("data", uid="old"), True),
            (using("data"), using("other", uid="old"), False),
            (using("data"), using("data", uid="old", namespace="team"), False),
        ],
    )
    def test_the_end_of_a_pod_helps_those_that_want_its_volumes(
        self, pod: Pod, deleted: Pod, helps: bool
    ) -> None:
        assert (self.hint(0, pod, deleted, None) is QueueingHint.QUEUE) is helps

    @pytest.mark.parametrize(
        ("claim", "helps"),
        [
            (make_claim("data").build(), True),
            (make_claim("other").build(), False),
            (make_claim("data").namespace("team").build(), False),
        ],
    )
    def test_a_new_claim_helps_the_pod_that_waits_for_it(
        self, claim: PersistentVolumeClaim, helps: bool
    ) -> None:
        assert (self.hint(2, using("data"), None, claim) is QueueingHint.QUEUE) is helps
