"""Pods and their volumes, from the queue to the binding."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kschedfw import make_node, make_pod
from kschedfw.api.meta import Named
from kschedfw.api.pod import Pod
from kschedfw.api.storage import PersistentVolume, PersistentVolumeClaim
from kschedfw.cluster import InMemoryCluster, VolumeController
from kschedfw.scheduler.queue.protocol import Place
from tests.plugins.storage import ZONE, claim, storage_class, volume
from tests.scheduler.stage import LaterExecutor, Stage

MAKE = storage_class("make", provisioner="csi.example.com")


def using(name: str, *claims: str) -> Pod:
    pod = make_pod(name)
    for each in claims:
        pod.claim(each)
    return pod.build()


def stage_with(*objects: Named, later: LaterExecutor | None = None, controller: bool = True) -> Stage:
    """Two nodes in two zones."""
    stage = Stage(executor=later)
    if controller:
        VolumeController(stage.cluster)
    nodes = (make_node(f"n{zone}").zone(zone).capacity(cpu=4, memory="8Gi", pods=10).build() for zone in "12")
    stage.add(storage_class(), MAKE, storage_class("now", delayed=False), *nodes, *objects)
    return stage


def volume_of(stage: Stage, name: str) -> str:
    found = stage.cluster.get(PersistentVolumeClaim, f"default/{name}")
    assert found is not None
    return found.spec.volume_name


class TestTheLastVolume:
    """Two pods race for it."""

    CLAIMS = (claim("c1").build(), claim("c2").build())

    def test_goes_to_one_and_the_other_waits(self) -> None:
        stage = stage_with(volume().build(), *self.CLAIMS)
        stage.run(using("p1", "c1"), using("p2", "c2"))
        assert bool(stage.node_of("p1")) != bool(stage.node_of("p2"))
        assert sorted((volume_of(stage, "c1"), volume_of(stage, "c2"))) == ["", "volume"]

    def test_the_other_goes_where_there_is_one(self) -> None:
        stage = stage_with(
            volume("v1").node_affinity_in(ZONE, "1").build(),
            volume("v2").node_affinity_in(ZONE, "2").build(),
            *self.CLAIMS,
        )
        stage.run(using("p1", "c1"), using("p2", "c2"))
        assert {stage.node_of("p1"), stage.node_of("p2")} == {"n1", "n2"}

    def test_also_while_it_is_being_bound(self) -> None:
        later = LaterExecutor()
        stage = stage_with(volume().build(), *self.CLAIMS, later=later)
        stage.add(using("p1", "c1"), using("p2", "c2"))
        stage.scheduler.schedule_one()
        stage.scheduler.schedule_one()
        assert len(later.tasks) == 1
        assert stage.place("p2") is Place.UNSCHEDULABLE
        later.run()
        assert volume_of(stage, "c1") == "volume"

    def test_the_other_gets_it_five_minutes_after_the_binding_failed(self) -> None:
        """As in kube-scheduler, no hint tells of the reservation that is given up: the flush wakes the pod."""
        later = LaterExecutor()
        stage = stage_with(volume().build(), *self.CLAIMS, later=later)
        stage.add(using("p1", "c1"), using("p2", "c2"))
        stage.scheduler.schedule_one()
        stage.scheduler.schedule_one()
        stage.delete("p1")
        stage.cluster.delete(claim("c1").build())
        later.run()
        assert stage.place("p2") is Place.UNSCHEDULABLE
        stage.clock.advance(330)
        stage.scheduler.tick()
        while stage.scheduler.schedule_one() or later.tasks:
            later.run()
        assert stage.node_of("p2") != ""
        assert volume_of(stage, "c2") == "volume"

    def test_a_new_one_ends_the_wait(self) -> None:
        stage = stage_with(volume().build(), *self.CLAIMS)
        stage.run(using("p1", "c1"), using("p2", "c2"))
        stage.run(volume("another").build(), after=60)
        assert all(stage.node_of(pod) for pod in ("p1", "p2"))


class TestClaims:
    def test_that_are_bound_at_once_need_no_pod(self) -> None:
        stage = stage_with(
            volume(storage_class="now").node_affinity_in(ZONE, "2").build(),
            claim(storage_class="now").build(),
        )
        assert volume_of(stage, "claim") == "volume"
        stage.run(using("pod", "claim"))
        assert stage.node_of() == "n2"

    def test_that_come_after_their_pod(self) -> None:
        stage = stage_with(using("pod", "claim"))
        stage.run()
        assert stage.condition()[2].startswith(
            '0/2 nodes are available: persistentvolumeclaim "claim" not found.'
        )
        stage.run(claim(storage_class="make").build(), after=60)
        assert stage.node_of() != ""

    def test_get_a_new_volume_for_the_node_of_the_pod(self) -> None:
        pod = make_pod().claim("claim").node_affinity_in(ZONE, "2").build()
        stage = stage_with(claim(storage_class="make").build(), pod)
        stage.run()
        assert stage.node_of() == "n2"
        made = stage.cluster.get(PersistentVolume, volume_of(stage, "claim"))
        assert made is not None
        assert made.status.phase == "Bound"

    def test_of_ephemeral_volumes_come_and_go_with_the_pod(self) -> None:
        stage = stage_with(make_pod().ephemeral_volume("scratch", storage_class="make").build())
        stage.run()
        assert stage.node_of() != ""
        assert volume_of(stage, "pod-scratch") != ""
        stage.delete("pod")
        assert not stage.cluster.list(PersistentVolumeClaim)
        assert not stage.cluster.list(PersistentVolume)


class TestWhatBringsAPodBack:
    """Events that may help it do; others leave it alone."""

    WAITING = (using("pod", "claim"), claim(storage_class="make").build())
    NO_ROOM = storage_class("make", provisioner="csi.example.com", zones=("3",))

    def unschedulable(self, *objects: Named) -> Stage:
        stage = Stage()
        nodes = (make_node(f"n{zone}").zone(zone).capacity(cpu=4, memory="8Gi").build() for zone in "12")
        stage.add(*nodes, *objects)
        stage.run()
        assert stage.place() is Place.UNSCHEDULABLE
        return stage

    @pytest.mark.parametrize(
        "change",
        [
            lambda cluster: cluster.update(storage_class("make", provisioner="csi.example.com")),
            lambda cluster: cluster.add(storage_class("another")),
            lambda cluster: cluster.add(volume(storage_class="make").build()),
            lambda cluster: cluster.update(claim(size="2Gi", storage_class="make").build()),
            lambda cluster: cluster.add(make_node("n3").zone("3").build()),
            lambda cluster: cluster.update(make_node("n1").zone("3").build()),
        ],
        ids=["class", "new class", "volume", "claim", "node", "label"],
    )
    def test_that_waits_for_a_volume(self, change: Callable[[InMemoryCluster], object]) -> None:
        stage = self.unschedulable(self.NO_ROOM, *self.WAITING)
        change(stage.cluster)
        assert stage.place() is not Place.UNSCHEDULABLE

    @pytest.mark.parametrize(
        "change",
        [
            lambda cluster: cluster.update(
                storage_class("make", provisioner="other.example.com", zones=("3",))
            ),
            lambda cluster: cluster.add(claim("other").build()),
            lambda cluster: cluster.update(make_node("n1").zone("1").taint("dedicated").build()),
        ],
        ids=["class", "claim", "taint"],
    )
    def test_not_that_these_help(self, change: Callable[[InMemoryCluster], object]) -> None:
        stage = self.unschedulable(self.NO_ROOM, *self.WAITING)
        change(stage.cluster)
        assert stage.place() is Place.UNSCHEDULABLE
