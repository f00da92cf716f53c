"""Cache and queue follow the cluster, whatever order its events come in, and how often."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from kschedfw import (
    ActionType,
    ClusterEvent,
    CustomKind,
    CustomObject,
    CustomResource,
    EventResource,
    InMemoryCluster,
    Node,
    Pod,
    QueueingHint,
    Scheduler,
    Status,
    make_node,
    make_pod,
)
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.meta import Named, ObjectMeta
from kschedfw.api.pod import PodPhase
from kschedfw.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from kschedfw.api.workloads import Namespace
from kschedfw.cluster import EventType, WatchEvent
from kschedfw.cluster.protocol import Handler
from kschedfw.framework.errors import IncompleteClusterError
from kschedfw.scheduler.queue.protocol import Place
from kschedfw.testing import FakeClock
from tests.framework.support import answering, plugin
from tests.scheduler.stage import Stage, node, pod, witness

HOSTNAME = "kubernetes.io/hostname"


@attrs.frozen
class Gang(CustomResource):
    kind = CustomKind("example.com/v1", "Gang")

    metadata: ObjectMeta


class LossyCluster(InMemoryCluster):
    """A cluster whose events may be held back; the test then delivers what it likes."""

    def __init__(self) -> None:
        super().__init__()
        self.holds = False
        self.held: list[WatchEvent] = []
        self.deliver: Handler = lambda _: None

    def watch(self, handler: Handler) -> Callable[[], None]:
        self.deliver = handler
        return super().watch(lambda event: self.held.append(event) if self.holds else handler(event))

    def hold(self) -> None:
        self.held.clear()
        self.holds = True


class LossyStage(Stage):
    """A scheduler that is told only what the test lets through, from `hold` on."""

    cluster: LossyCluster

    def __init__(self, *nodes: Node, assumed_pod_ttl: float = 0.0) -> None:
        super().__init__(cluster=LossyCluster(), nodes=nodes, assumed_pod_ttl=assumed_pod_ttl)

    def hold(self) -> None:
        self.cluster.hold()

    def deliver(self, *order: int) -> None:
        """Deliver the held events in this order, counted from 0."""
        for index in order:
            self.cluster.deliver(self.cluster.held[index])

    def resync(self) -> None:
        self.scheduler.events.resync()
        assert not self.scheduler.debugger.compare()

    def nodes(self) -> list[str]:
        return [each.name for each in self.scheduler.cache.dump().nodes]

    def pending(self) -> list[str]:
        return [each.name for each in self.scheduler.queue.pending_pods()[0]]

    def cpus(self, node: str) -> int:
        self.scheduler.cache.update_snapshot(self.scheduler.snapshot)
        return self.scheduler.snapshot.get(node).allocatable.milli_cpu // 1000

    def cpu_used(self) -> int:
        self.scheduler.cache.update_snapshot(self.scheduler.snapshot)
        return self.scheduler.snapshot.get("n").requested.milli_cpu


def relabelled(name: str = "pod", *, on: str = "", **labels: str) -> Pod:
    builder = make_pod(name).requests(cpu="1").priority(0).labels(labels)
    return (builder.node(on) if on else builder).build()


class TestWhatIsThere:
    def test_everything_that_was_there_before_is_known(self) -> None:
        stage = Stage(nodes=[node()], pods=[pod("bound", on="n"), pod("waits")])
        assert stage.in_cache() == {"n": {"bound"}}
        assert stage.place("waits") is Place.ACTIVE

    def test_finished_pods_take_no_room_and_are_not_scheduled(self) -> None:
        stage = Stage(nodes=[node()])
        for phase in (PodPhase.SUCCEEDED, PodPhase.FAILED):
            for on in ("", "n"):
                done = pod(f"{phase.lower()}{on}", on=on)
                stage.add(attrs.evolve(done, status=attrs.evolve(done.status, phase=phase)))
        assert stage.in_cache() == {}
        assert stage.run() == 0

    def test_a_pod_that_finishes_makes_room(self) -> None:
        stage = Stage(nodes=[node(cpu=1)])
        stage.run(pod("first"), pod("second"))
        first = stage.pod("first")
        stage.cluster.update(attrs.evolve(first, status=attrs.evolve(first.status, phase=PodPhase.SUCCEEDED)))
        stage.run(after=60)
        assert stage.in_cache() == {"n": {"second"}}

    def test_after_the_end_nothing_is_followed_any_more(self) -> None:
        stage = Stage()
        stage.scheduler.close()
        stage.add(node())
        assert stage.scheduler.cache.dump().nodes == ()


class TestPods:
    def test_a_bound_pod_that_changes_is_changed_on_its_node(self) -> None:
        stage = LossyStage(node())
        stage.run(pod())
        stage.cluster.update(make_pod().requests(cpu="3").priority(0).node("n").build())
        assert stage.cpu_used() == 3000

    def test_a_pending_pod_that_changes_is_tried_as_it_is_now(self) -> None:
        stage = Stage(nodes=[node(cpu=4)])
        stage.run(pod(cpu="8"))
        assert stage.place() is Place.UNSCHEDULABLE
        stage.cluster.update(pod(cpu="2"))  # it was scaled down
        stage.run(after=60)
        assert stage.node_of() == "n"

    def test_a_pod_that_somebody_else_binds_leaves_the_queue(self) -> None:
        stage = Stage(nodes=[node()])
        stage.add(pod())
        stage.cluster.bind(stage.pod(), "n")
        assert stage.place() is None
        assert stage.in_cache() == {"n": {"pod"}}
        assert stage.run() == 0

    def test_a_pod_that_was_bound_elsewhere_than_assumed_counts_where_it_is(self) -> None:
        gate = witness("Gate", [], permit=[Status.wait(60)])
        stage = Stage(gate, nodes=[node("a")])
        stage.run(pod())
        stage.add(node("b"))
        assert stage.in_cache() == {"a": {"pod*"}}
        stage.cluster.bind(stage.pod(), "b")
        assert stage.in_cache() == {"b": {"pod"}}
        stage.run(after=60)
        assert stage.in_cache() == {"b": {"pod"}}
        assert stage.waiting() == []

    def test_a_pending_pod_that_is_deleted_is_forgotten(self) -> None:
        stage = Stage()
        stage.add(pod())
        stage.delete("pod")
        assert stage.run() == 0

    def test_changes_of_an_assumed_pod_do_not_bring_it_back_to_the_queue(self) -> None:
        gate = witness("Gate", [], permit=[Status.wait(60)])
        stage = Stage(gate, nodes=[node()])
        stage.run(pod())
        stage.cluster.update(relabelled(new="yes"))
        assert stage.place() is Place.IN_FLIGHT
        assert stage.run() == 0

    def test_a_new_pod_with_the_name_of_an_old_one_takes_its_place(self) -> None:
        stage = Stage(nodes=[node()])
        stage.run(pod())
        stage.delete("pod")
        stage.run(make_pod("pod").uid("second").requests(cpu="2").build())
        (known,) = stage.scheduler.cache.dump().pods
        assert known.uid == "second"


class TestNodes:
    def test_pods_of_a_removed_node_count_again_when_it_comes_back(self) -> None:
        stage = LossyStage(node())
        stage.run(pod())
        stage.cluster.delete(node())
        assert stage.nodes() == []
        stage.add(node())
        assert stage.cpu_used() == 1000

    def test_a_pod_of_a_removed_node_may_change_and_go(self) -> None:
        stage = LossyStage(node())
        stage.run(pod("stays"), pod("goes"))
        stage.cluster.delete(node())
        stage.cluster.update(make_pod("stays").requests(cpu="2").priority(0).node("n").build())
        stage.delete("goes")
        stage.add(node())
        assert stage.cpu_used() == 2000

    def test_a_pod_may_come_before_its_node(self) -> None:
        stage = LossyStage()
        stage.add(pod(on="n"))
        stage.add(node())
        assert stage.cpu_used() == 1000

    def test_only_changes_that_matter_are_told(self) -> None:
        told: list[str] = []

        def hint(_pod: Pod, _old: object, new: object) -> object:
            assert isinstance(new, Node)
            told.append(new.name)
            raise LookupError("counts as worth an attempt")

        nodes_change = ClusterEvent(EventResource.NODE, ActionType.ALL, hint)  # type: ignore[arg-type]
        no = plugin(
            "No", filter=answering(Status.unresolvable("no")), events_to_register=answering([nodes_change])
        )
        stage = Stage(no, nodes=[node()])
        stage.run(pod())
        heartbeat = attrs.evolve(node().metadata, uid="")
        stage.cluster.update(attrs.evolve(node(), metadata=heartbeat))
        assert told == []
        stage.cluster.update(make_node("n").capacity(cpu=5, memory="64Gi").build())
        assert told == ["n"]

    def test_the_removal_of_a_node_is_told(self) -> None:
        removed = ClusterEvent(EventResource.NODE, ActionType.DELETE)
        no = plugin(
            "No", filter=answering(Status.unresolvable("no")), events_to_register=answering([removed])
        )
        stage = Stage(no, nodes=[node("a"), node("b")])
        stage.run(pod())
        stage.cluster.delete(node("a"))
        assert stage.place() is Place.BACKOFF


@pytest.mark.parametrize(
    ("kind", "resource"),
    [
        (PersistentVolume, EventResource.PERSISTENT_VOLUME),
        (PersistentVolumeClaim, EventResource.PERSISTENT_VOLUME_CLAIM),
        (StorageClass, EventResource.STORAGE_CLASS),
        (CSINode, EventResource.CSI_NODE),
        (CSIDriver, EventResource.CSI_DRIVER),
        (CSIStorageCapacity, EventResource.CSI_STORAGE_CAPACITY),
        (VolumeAttachment, EventResource.VOLUME_ATTACHMENT),
    ],
)
def test_storage_objects_that_come_change_and_go_reach_the_queue(
    kind: type[Named], resource: EventResource
) -> None:
    seen: list[tuple[str, str]] = []

    def hint(action: str) -> Callable[[Pod, object, object], object]:
        def look(_pod: Pod, old: object, new: object) -> object:
            seen.append((action, f"{_version(old)} → {_version(new)}"))
            return QueueingHint.SKIP

        return look

    subscriptions = [
        ClusterEvent(resource, action, hint(name))  # type: ignore[arg-type]
        for name, action in (
            ("add", ActionType.ADD),
            ("update", ActionType.UPDATE),
            ("delete", ActionType.DELETE),
        )
    ]
    no = plugin(
        "No", filter=answering(Status.unresolvable("no")), events_to_register=answering(subscriptions)
    )
    stage = Stage(no, nodes=[node()])
    stage.run(pod())
    obj = kind(metadata=ObjectMeta(name="it"))
    stage.add(obj)
    newer = attrs.evolve(obj, metadata=ObjectMeta(name="it", labels=FrozenDict({"v": "2"})))
    stage.cluster.update(newer)
    stage.cluster.delete(obj)
    assert seen == [("add", "none → 1"), ("update", "1 → 2"), ("delete", "2 → none")]


@pytest.mark.parametrize("action", [ActionType.UPDATE_OTHER, ActionType.UPDATE])
@pytest.mark.parametrize("resource", [EventResource.UNSCHEDULED_POD, EventResource.POD])
def test_a_pod_whose_annotation_changes_comes_back_to_those_who_subscribed_to_that(
    resource: EventResource, action: ActionType
) -> None:
    def wants_a_window(pod: Pod) -> Status | None:
        return None if "window" in pod.annotations else Status.unresolvable("no window")

    windows = plugin(
        "Windows", pre_filter=wants_a_window, events_to_register=answering([ClusterEvent(resource, action)])
    )
    stage = Stage(windows, nodes=[node()])
    stage.run(pod())
    assert stage.place() is Place.UNSCHEDULABLE
    (waiting,) = stage.cluster.list(Pod)
    annotated = attrs.evolve(waiting.metadata, annotations=FrozenDict({"window": "9-17"}))
    stage.cluster.update(waiting.with_metadata(annotated))
    assert stage.place() is Place.BACKOFF


def test_custom_objects_that_come_change_and_go_reach_those_who_subscribed_to_their_kind() -> None:
    seen: list[tuple[str, str]] = []

    def hint(action: str) -> Callable[[Pod, object, object], object]:
        def look(_pod: Pod, old: object, new: object) -> object:
            seen.append((action, f"{_version(Gang.of(old))} → {_version(Gang.of(new))}"))
            return QueueingHint.SKIP

        return look

    subscriptions = [
        ClusterEvent(Gang.kind, action, hint(name))  # type: ignore[arg-type]
        for name, action in (
            ("add", ActionType.ADD),
            ("update", ActionType.UPDATE),
            ("delete", ActionType.DELETE),
        )
    ]
    no = plugin(
        "No", filter=answering(Status.unresolvable("no")), events_to_register=answering(subscriptions)
    )
    stage = Stage(no, nodes=[node()])
    stage.run(pod())
    gang = stage.cluster.add(Gang(ObjectMeta(name="it")))
    stage.cluster.add(CustomObject(CustomKind("example.com/v1", "Other"), ObjectMeta(name="it")))
    newer = attrs.evolve(gang.metadata, labels=FrozenDict({"v": "2"}))
    stage.cluster.update(attrs.evolve(gang, metadata=newer))
    stage.cluster.delete(gang)
    assert seen == [("add", "none → 1"), ("update", "1 → 2"), ("delete", "2 → none")]


def test_custom_objects_whose_events_were_missed_are_found_again() -> None:
    subscriptions = [ClusterEvent(Gang.kind, ActionType.ADD | ActionType.DELETE)]
    no = plugin(
        "No", filter=answering(Status.unresolvable("no")), events_to_register=answering(subscriptions)
    )
    stage = Stage(no, nodes=[node()], cluster=LossyCluster())
    assert isinstance(stage.cluster, LossyCluster)
    stage.run(pod())
    stage.cluster.hold()
    gang = stage.cluster.add(Gang(ObjectMeta(name="it")))
    assert stage.place() is Place.UNSCHEDULABLE
    stage.scheduler.events.resync()
    assert stage.place() is Place.BACKOFF
    assert stage.run(after=10) == 1
    stage.cluster.delete(gang)
    stage.scheduler.events.resync()
    assert stage.place() is Place.BACKOFF


def _version(obj: object) -> str:
    return obj.metadata.labels.get("v", "1") if isinstance(obj, Named) else "none"


def test_objects_of_no_concern_are_passed_over() -> None:
    stage = Stage(nodes=[node()])
    stage.run(pod(cpu="100"))
    stage.add(Namespace(metadata=ObjectMeta(name="team")))
    assert stage.run(after=60) == 0


class TestUnreliableEvents:
    def test_events_that_come_twice_change_nothing(self) -> None:
        stage = LossyStage(node())
        stage.hold()
        stage.add(node("m"), pod("bound", on="n"), pod("waits"))
        stage.deliver(*range(len(stage.cluster.held)), *range(len(stage.cluster.held)))
        assert stage.nodes() == ["n", "m"]
        assert stage.in_cache() == {"n": {"bound"}}
        assert stage.pending() == ["waits"]

    def test_a_deletion_that_comes_twice_is_one(self) -> None:
        stage = LossyStage(node(), node("m"))
        stage.add(pod("bound", on="n"), pod("waits"))
        stage.hold()
        stage.delete("bound")
        stage.delete("waits")
        stage.cluster.delete(node("m"))
        stage.deliver(0, 0, 1, 1, 2, 2)
        assert stage.nodes() == ["n"]
        assert stage.in_cache() == {}
        assert stage.pending() == []

    def test_what_was_missed_is_noticed_by_the_state_and_not_by_the_kind_of_event(self) -> None:
        stage = LossyStage()
        stage.hold()
        stage.add(node(cpu=1), pod())
        stage.cluster.update(node(cpu=8))
        stage.cluster.update(relabelled(on="n"))
        modified = [
            index for index, event in enumerate(stage.cluster.held) if event.type is EventType.MODIFIED
        ]
        stage.deliver(*modified)
        assert stage.cpus("n") == 8
        assert stage.in_cache() == {"n": {"pod"}}

    def test_older_states_that_come_late_are_passed_over(self) -> None:
        stage = LossyStage(node(cpu=1))
        stage.add(pod(on="n"))
        stage.hold()
        for cpu in (2, 3):
            stage.cluster.update(node(cpu=cpu))
            stage.cluster.update(make_pod().requests(cpu=f"{cpu}").priority(0).node("n").build())
        stage.deliver(2, 3, 0, 1)
        assert stage.cpus("n") == 3
        assert stage.cpu_used() == 3000

    def test_a_pod_that_is_bound_does_not_become_pending_again(self) -> None:
        stage = LossyStage(node())
        stage.hold()
        stage.add(pod())
        stage.cluster.bind(stage.pod(), "n")
        stage.deliver(*reversed(range(len(stage.cluster.held))))
        assert stage.pending() == []
        assert stage.in_cache() == {"n": {"pod"}}

    def test_versions_that_are_no_numbers_are_taken_as_they_come(self) -> None:
        stage = LossyStage(node())
        for version, cpu in (("b", 5), ("a", 6)):
            state = node(cpu=cpu)
            newer = attrs.evolve(state, metadata=attrs.evolve(state.metadata, resource_version=version))
            stage.cluster.deliver(WatchEvent(EventType.MODIFIED, newer))
        assert stage.cpus("n") == 6

    def test_a_late_deletion_does_not_hit_the_pod_that_has_the_name_now(self) -> None:
        stage = LossyStage(node())
        stage.add(make_pod("pod").uid("first").build())
        stage.hold()
        stage.delete("pod")
        stage.add(make_pod("pod").uid("second").build())
        stage.deliver(1, 0)
        assert [each.uid for each in stage.scheduler.queue.pending_pods()[0]] == ["second"]

    def test_a_pod_that_takes_the_name_of_a_bound_one_frees_its_room(self) -> None:
        stage = LossyStage(node())
        stage.add(make_pod("pod").uid("first").requests(cpu="2").node("n").build())
        stage.hold()
        stage.delete("pod")
        stage.add(make_pod("pod").uid("second").requests(cpu="1").node("n").build())
        stage.deliver(1)
        assert stage.cpu_used() == 1000

    def test_a_handler_that_can_not_make_sense_of_an_event_gets_the_next_one(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        stage = Stage(nodes=[node("a"), node("b")], pods=[pod(on="a")])
        stage.cluster.update(relabelled(on="b"))  # pods don't move
        assert "updated on a different node than previously added to" in caplog.text
        stage.run(pod("next"))
        assert stage.node_of("next")


class TestResync:
    def test_what_was_missed_is_made_up_for(self) -> None:
        stage = LossyStage(node("kept"), node("gone"), node("changed", cpu=1))
        stage.add(pod("kept", on="kept"), pod("deleted", on="kept"), pod("waits"), pod("vanishes"))
        stage.hold()
        stage.cluster.delete(node("gone"))
        stage.cluster.update(node("changed", cpu=2))
        stage.add(node("new"))
        stage.delete("deleted")
        stage.delete("vanishes")
        stage.add(pod("fresh"), pod("arrived", on="new"))
        stage.cluster.bind(stage.pod("waits"), "kept")
        finished = pod("finished", on="new")
        stage.add(attrs.evolve(finished, status=attrs.evolve(finished.status, phase=PodPhase.SUCCEEDED)))
        stage.resync()
        assert sorted(stage.nodes()) == ["changed", "kept", "new"]
        assert stage.in_cache() == {"kept": {"kept", "waits"}, "new": {"arrived"}}
        assert stage.pending() == ["fresh"]
        assert stage.cpus("changed") == 2

    def test_where_nothing_was_missed_nothing_happens(self) -> None:
        stage = LossyStage(node())
        stage.run(pod("bound"), pod("big", cpu="100"))
        version = stage.cluster.resource_version
        stage.resync()
        assert stage.run() == 0
        assert stage.cluster.resource_version == version
        assert stage.place("big") is Place.UNSCHEDULABLE

    def test_a_recreated_pod_is_another_one(self) -> None:
        stage = LossyStage(node())
        stage.add(make_pod("pod").uid("first").requests(cpu="2").node("n").build())
        stage.hold()
        stage.delete("pod")
        stage.add(make_pod("pod").uid("second").requests(cpu="1").node("n").build())
        stage.resync()
        assert stage.cpu_used() == 1000

    def test_pods_that_were_missed_help_those_that_wait(self) -> None:
        stage = LossyStage(node(cpu=1))
        stage.run(pod("first"), pod("second"))
        assert stage.place("second") is Place.UNSCHEDULABLE
        stage.hold()
        stage.delete("first")
        stage.resync()
        stage.cluster.holds = False
        stage.run(after=60)
        assert stage.node_of("second") == "n"

    def test_late_events_after_it_are_harmless(self) -> None:
        stage = LossyStage(node())
        stage.hold()
        stage.add(pod("a", on="n"), pod("b"))
        stage.delete("b")
        stage.resync()
        stage.deliver(*range(len(stage.cluster.held)))
        assert stage.in_cache() == {"n": {"a"}}
        assert stage.pending() == []

    def test_a_pod_that_was_lost_here_comes_back(self) -> None:
        """Its binding was reported as done but never was, so that it expired."""
        liar = plugin("Liar", bind=answering(None))
        stage = Stage(liar, nodes=[node()], assumed_pod_ttl=30)
        stage.run(pod())
        stage.scheduler.events.resync()
        assert stage.place() is None, "it may still be confirmed"
        stage.run(after=30)
        assert stage.place() is None
        stage.scheduler.events.resync()
        assert stage.place() is Place.ACTIVE


class TestNominations:
    """Who had to leave a place to a nominated pod is told when that pod gives it up."""

    @staticmethod
    def stage() -> tuple[InMemoryCluster, Scheduler]:
        cluster = InMemoryCluster([make_node("a").capacity(cpu=2).build()])
        scheduler = Scheduler(cluster, clock=FakeClock())
        # An important pod is nominated, but held back from trying again, and so keeps a lesser one away.
        cluster.add(
            make_pod("vip").priority(10).requests(cpu=2).nominated_node("a").node_selector(no="where").build()
        )
        cluster.add(make_pod("low").requests(cpu=1).build())
        return cluster, scheduler

    def lesser_pod(self, cluster: InMemoryCluster) -> Pod:
        found = cluster.get(Pod, "default/low")
        assert found is not None
        return found

    def test_by_being_deleted(self) -> None:
        cluster, scheduler = self.stage()
        vip = cluster.get(Pod, "default/vip")
        assert vip is not None
        info = scheduler.queue.try_pop()
        assert info is not None
        assert info.pod.name == "vip"  # in flight from here on
        scheduler.schedule_one()
        assert not self.lesser_pod(cluster).node_name
        cluster.delete(vip)
        scheduler.run_until_idle()
        assert self.lesser_pod(cluster).node_name == "a"

    def test_by_losing_its_nomination(self) -> None:
        cluster, scheduler = self.stage()
        info = scheduler.queue.try_pop()
        assert info is not None
        scheduler.schedule_one()
        assert scheduler.queue.place(self.lesser_pod(cluster).uid) is Place.UNSCHEDULABLE
        cluster.patch_pod_status(info.pod, nominated_node_name="")
        assert scheduler.queue.place(self.lesser_pod(cluster).uid) is not Place.UNSCHEDULABLE

    @pytest.mark.parametrize("node", ["a", "b"])
    def test_and_not_by_being_bound_as_in_kube_scheduler(self, node: str) -> None:
        """Not even elsewhere: whoever was kept out of the nominated node waits for another event."""
        cluster, scheduler = self.stage()
        cluster.add(make_node("b").taint("closed").build())
        info = scheduler.queue.try_pop()
        assert info is not None
        scheduler.schedule_one()
        cluster.bind(info.pod, node)
        assert scheduler.nominator.is_empty
        assert scheduler.queue.place(self.lesser_pod(cluster).uid) is Place.UNSCHEDULABLE

    def test_and_not_by_a_change_of_an_assumed_pod(self) -> None:
        cluster, scheduler = self.stage()
        info = scheduler.queue.try_pop()
        assert info is not None
        scheduler.schedule_one()
        scheduler.cache.assume_pod(info.pod.bound_to("a"))
        cluster.patch_pod_status(info.pod, nominated_node_name="")
        assert scheduler.queue.place(self.lesser_pod(cluster).uid) is Place.UNSCHEDULABLE

    def test_and_not_by_a_pod_of_another_scheduler(self) -> None:
        cluster, scheduler = self.stage()
        info = scheduler.queue.try_pop()
        assert info is not None
        scheduler.schedule_one()
        other = make_pod("other").scheduler_name("another").priority(10).nominated_node("a").build()
        for ended in (cluster.add(other), cluster.add(attrs.evolve(other, metadata=ObjectMeta("more")))):
            cluster.patch_pod_status(ended, nominated_node_name="")
            cluster.delete(ended)
        assert scheduler.queue.place(self.lesser_pod(cluster).uid) is Place.UNSCHEDULABLE

    @pytest.mark.parametrize("deleted", [True, False])
    @pytest.mark.parametrize(
        "lesser",
        [
            make_pod("low").labels(app="x").pod_anti_affinity(HOSTNAME, {"app": "x"}).build(),
            make_pod("low").labels(app="x").spread(HOSTNAME, {"app": "x"}).build(),
        ],
        ids=["anti-affinity", "spread"],
    )
    def test_by_either_whoever_refused_because_of_it(self, lesser: Pod, deleted: bool) -> None:
        """The other node counts for spreading, but is tainted."""
        nodes = make_node("a").labels({HOSTNAME: "a"}), make_node("b").labels({HOSTNAME: "b"}).taint("closed")
        cluster = InMemoryCluster([each.build() for each in nodes])
        scheduler = Scheduler(cluster, clock=FakeClock())
        cluster.add(make_pod("vip").labels(app="x").priority(10).nominated_node("a").build())
        cluster.add(lesser)
        info = scheduler.queue.try_pop()
        assert info is not None
        assert info.pod.name == "vip"  # in flight from here on
        scheduler.schedule_one()
        low = self.lesser_pod(cluster)
        assert scheduler.queue.place(low.uid) is Place.UNSCHEDULABLE
        if deleted:
            cluster.delete(info.pod)
        else:
            cluster.patch_pod_status(info.pod, nominated_node_name="")
        assert scheduler.queue.place(low.uid) is not Place.UNSCHEDULABLE


class TestClustersThatCanNotBeFollowed:
    def test_a_watch_that_can_not_be_ended(self) -> None:
        class Endless(InMemoryCluster):
            def watch(self, handler: Handler) -> Callable[[], None]:
                return None  # type: ignore[return-value]

        with pytest.raises(
            IncompleteClusterError, match=r"Endless.watch must return a function that ends it, not None"
        ):
            Scheduler(Endless())

    def test_methods_that_nobody_awaits(self) -> None:
        class Later(InMemoryCluster):
            async def bind(self, pod: Pod, node_name: str) -> None:  # type: ignore[override]
                pass

        with pytest.raises(
            IncompleteClusterError, match="of Later, bind is async, and nobody would await that"
        ):
            Scheduler(Later())  # type: ignore[arg-type]  # what a checker would say, too
