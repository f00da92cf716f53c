"""VolumeZone: the zones and regions of volumes."""

from __future__ import annotations

import attrs
import pytest

from kschedfw import make_claim, make_node, make_pod, make_volume
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.meta import Named
from kschedfw.api.pod import Pod
from kschedfw.framework.events import QueueingHint
from kschedfw.framework.status import Code
from kschedfw.plugins.volume_zone import VolumeZone
from kschedfw.testing import FrameworkHarness
from tests.plugins.volume_objects import BETA_REGION, BETA_ZONE, REGION, ZONE, storage_class

BOUND = make_claim("data").bound_to("pv").build()
POD = make_pod().claim("data").build()


def fits(volume: dict[str, str], node: dict[str, str]) -> bool:
    harness = FrameworkHarness(
        VolumeZone,
        nodes=[make_node("n").labels(node).build()],
        objects=[BOUND, make_volume("pv").labels(volume).build()],
    )
    return harness.filter(POD)["n"].is_success


@pytest.mark.parametrize(
    ("volume", "node", "expected"),
    [
        ({ZONE: "a"}, {ZONE: "a"}, True),
        ({ZONE: "a"}, {ZONE: "b"}, False),
        ({ZONE: "a__b"}, {ZONE: "b"}, True),
        ({ZONE: "a__b"}, {ZONE: "c"}, False),
        ({ZONE: "a____b"}, {ZONE: "c"}, True),
        ({ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "q"}, False),
        ({ZONE: "a", REGION: "r"}, {ZONE: "a"}, False),
        ({ZONE: "a"}, {REGION: "r"}, False),
        ({ZONE: "a"}, {}, True),
        ({ZONE: "a"}, {"disk": "ssd"}, True),
        ({BETA_ZONE: "a"}, {BETA_ZONE: "a"}, True),
        ({BETA_ZONE: "a"}, {ZONE: "a"}, True),
        ({BETA_ZONE: "a"}, {BETA_ZONE: "b", ZONE: "a"}, False),
        ({BETA_REGION: "r"}, {REGION: "q"}, False),
        ({ZONE: "a"}, {BETA_ZONE: "a"}, False),
    ],
)
def test_a_node_has_to_be_where_the_volume_is(
    volume: dict[str, str], node: dict[str, str], expected: bool
) -> None:
    assert fits(volume, node) is expected


def test_the_wrong_zone_is_a_refusal_that_preemption_does_not_change() -> None:
    harness = FrameworkHarness(
        VolumeZone,
        nodes=[make_node("n").zone("b").build()],
        objects=[BOUND, make_volume("pv").zone("a").build()],
    )
    status = harness.filter(POD)["n"]
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons == ("node(s) had no available volume zone",)


@pytest.mark.parametrize(
    ("pod", "objects"),
    [
        (make_pod().build(), []),
        (make_pod().ephemeral_volume("scratch").build(), []),
        (POD, [BOUND, make_volume("pv").build()]),
        (POD, [make_claim("data").storage_class("later").build(), storage_class("later")]),
    ],
    ids=["no volumes", "an ephemeral claim", "a volume without labels", "a volume that waits for its node"],
)
def test_other_pods_are_none_of_its_business(pod: Pod, objects: list[Named]) -> None:
    harness = FrameworkHarness(VolumeZone, nodes=[make_node("n").zone("a").build()], objects=objects)
    harness.pre_filter(pod)
    assert harness.state.skip_filter_plugins == {"VolumeZone"}


ANNOTATED = make_claim("data").annotations({"volume.beta.kubernetes.io/storage-class": "gone"})


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        ([], 'persistentvolumeclaim "data" not found'),
        ([BOUND], 'persistentvolume "pv" not found'),
        ([make_claim("data").build()], "PersistentVolumeClaim had no pv name and storageClass name"),
        (
            [make_claim("data").storage_class("gone").build()],
            'storageclass.storage.k8s.io "gone" not found',
        ),
        (
            [ANNOTATED.storage_class("later").build(), storage_class("later")],
            'storageclass.storage.k8s.io "gone" not found',
        ),
        (
            [make_claim("data").storage_class("now").build(), storage_class("now", waits=False)],
            "PersistentVolume had no name",
        ),
    ],
)
def test_a_claim_of_which_no_place_is_known_is_refused(objects: list[Named], reason: str) -> None:
    _, status = FrameworkHarness(VolumeZone, objects=objects).pre_filter(POD)
    assert (status.code, status.reasons) == (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))


def test_a_volume_that_names_no_claim_is_refused() -> None:
    pod = make_pod().volume("v", {"persistentVolumeClaim": {"claimName": ""}}).build(check=False)
    _, status = FrameworkHarness(VolumeZone).pre_filter(pod)
    assert status.reasons == ("PersistentVolumeClaim had no name",)


class TestQueueing:
    def helps(self, index: int, old: Named | None, new: Named) -> bool:
        event = FrameworkHarness(VolumeZone).framework.events_to_register()["VolumeZone"][index]
        assert event.hint is not None
        return event.hint(POD, old, new) is QueueingHint.QUEUE

    def test_a_class_that_waits_for_nodes_helps(self) -> None:
        assert self.helps(0, None, storage_class("x"))
        assert not self.helps(0, None, storage_class("x", waits=False))

    def test_the_pods_own_claim_helps(self) -> None:
        assert self.helps(2, make_claim("data").build(), BOUND)
        assert not self.helps(2, None, make_claim("other").build())
        assert not self.helps(2, None, make_claim("data").namespace("team").build())

    def test_a_volume_helps_if_it_is_new_or_somewhere_else(self) -> None:
        volume = make_volume("pv").zone("a").build()
        labels = FrozenDict({**volume.labels, "other": "label"})
        assert self.helps(3, None, volume)
        assert self.helps(3, volume, make_volume("pv").zone("b").build())
        relabelled = volume.with_metadata(attrs.evolve(volume.metadata, labels=labels))
        assert not self.helps(3, volume, relabelled)
