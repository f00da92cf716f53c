"""Whatever a recorder can be told, a scheduler tells: nothing stays at 0 for ever."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import attrs

from kschedfw import make_node, make_pod
from kschedfw.api.pod import Pod, PodPhase
from kschedfw.cluster import EventType, InMemoryCluster, WatchEvent
from kschedfw.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from kschedfw.framework.metrics import CachedObject, HintResult, MetricsRecorder, NoMetrics
from kschedfw.framework.runtime.registry import Registry
from kschedfw.framework.status import Status
from kschedfw.scheduler.event_handlers import happened
from kschedfw.scheduler.queue.in_flight import InFlight
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.testing import FakeClock
from tests.framework.support import PluginClass, answering, plugin
from tests.plugins.storage import volume
from tests.scheduler.queue.support import NODE_ADD, NODE_LABEL, PROFILE, Gate, Queue, pod, subscriber
from tests.scheduler.stage import with_default_plugins


class Journal(NoMetrics):
    """Which methods were called, and what the queue and the event handlers told."""

    def __init__(self) -> None:
        self.rejected: Counter[tuple[str, str]] = Counter()
        self.kept: Counter[str] = Counter()
        self.hints: list[tuple[str, str, HintResult, float]] = []
        self.handled: list[tuple[str, float]] = []

    def unschedulable_pods(self, plugin: str, profile: str, change: int) -> None:
        self.rejected[plugin, profile] += change

    def in_flight_events(self, event: str, change: int) -> None:
        self.kept[event] += change

    def queueing_hint(self, plugin: str, event: str, result: HintResult, seconds: float) -> None:
        self.hints.append((plugin, event, result, seconds))

    def event_handled(self, event: str, seconds: float) -> None:
        self.handled.append((event, seconds))


def everything_told() -> tuple[MetricsRecorder, set[str]]:
    """A recorder, and the names of its methods that were called."""
    called: set[str] = set()

    def telling(name: str) -> Callable[..., None]:
        return lambda *_: called.add(name)

    methods = {name: telling(name) for name in vars(MetricsRecorder) if not name.startswith("_")}
    return type("Everything", (NoMetrics,), methods)(), called


def slow(clock: FakeClock, seconds: float, answer: QueueingHint | None) -> PluginClass:
    """A plugin whose hint for new nodes takes its time; without an answer it raises."""

    def hint(_pod: Pod, _old: object, _new: object) -> QueueingHint:
        clock.advance(seconds)
        if answer is None:
            raise RuntimeError("broken")
        return answer

    return plugin(
        f"Slow{seconds:g}",
        filter=lambda: None,
        events_to_register=lambda: [attrs.evolve(NODE_ADD, hint=hint)],
    )


def test_a_scheduler_tells_all_there_is_to_tell() -> None:
    metrics, called = everything_told()
    clock = FakeClock(1000.0)
    registry = Registry()
    waits = plugin("Waits", permit=lambda pod: Status.wait(60.0) if pod.name == "waits" else None)

    def shy_filter(pod: Pod) -> Status | None:
        return Status.unresolvable("later") if pod.name == "shy" and clock.now() < 1300.0 else None

    shy = plugin("Shy", filter=shy_filter, events_to_register=answering([]))
    profile = with_default_plugins(registry.register(waits), registry.register(shy))
    cluster = InMemoryCluster([make_node(name).capacity(cpu=2, pods=9).build() for name in ("n", "m")])
    scheduler = Scheduler(cluster, [profile], registry=registry, clock=clock, metrics=metrics)
    for name, cpu, priority in (("low", 1, 0), ("other", 2, 0), ("high", 2, 9), ("huge", 9, 9)):
        cluster.add(make_pod(name).requests(cpu=cpu).priority(priority).build())
        scheduler.run_until_idle()
    cluster.add(make_pod("waits").build())
    cluster.add(make_pod("shy").build())
    for _ in range(3):
        scheduler.run_until_idle()
        clock.advance(400.0)
    scheduler.run_until_idle()
    cluster.add(make_node("large").capacity(cpu=16, pods=9).build())
    scheduler.run_until_idle()
    scheduler.close()
    # tests/plugins/dynamic_resources, test_volume_binding_reserving, tests/framework/test_plugin_metrics, test_groups
    # and test_batching have these
    elsewhere = {"claim_created", "devices_prepared", "volume_stage_failed", "plugin_metric"}
    elsewhere |= {"group_attempt", "group_algorithm", "batch_rescored"}
    # tests/scheduler/queue/test_group_entities
    elsewhere |= {"queued_entities", "entity_incoming"}
    # tests/framework/versions/test_v1_37
    elsewhere |= {"group_preemption_attempt", "group_preemption_victims", "preemption_evaluated"}
    elsewhere |= {"preemption_carried_out", "groups_disrupted", "budgets_violated"}
    assert called == {name for name in vars(MetricsRecorder) if not name.startswith("_")} - elsewhere


class TestHints:
    def test_each_has_a_result_and_a_duration(self) -> None:
        clock, journal = FakeClock(1000.0), Journal()
        plugins = [slow(clock, 1.0, QueueingHint.SKIP), slow(clock, 2.0, None)]
        queue = Queue(*plugins, clock=clock, metrics=journal)
        queue.add_refused(pod(), "Slow1", "Slow2")
        queue.tell(NODE_ADD)
        assert journal.hints == [
            ("Slow1", "NodeAdd", HintResult.SKIP, 1.0),
            ("Slow2", "NodeAdd", HintResult.ERROR, 2.0),
        ]

    def test_one_that_is_not_there_says_queue_at_once(self) -> None:
        journal = Journal()
        silent = plugin("Silent", filter=lambda: None)
        queue = Queue(silent, metrics=journal)
        queue.add_refused(pod(), "Silent")
        queue.tell(NODE_LABEL)
        assert journal.hints == [("Silent", "NodeUpdateNodeLabel", HintResult.QUEUE, 0.0)]


class TestUnschedulablePods:
    def test_counts_for_each_plugin_until_it_is_popped(self) -> None:
        journal = Journal()
        queue = Queue(metrics=journal)
        queue.add_refused(pod("a"), "A", pending=["P"])
        queue.add_refused(pod("b"), "A")
        assert journal.rejected == {("A", PROFILE): 2, ("P", PROFILE): 1}
        queue.activate([pod("a")])
        assert journal.rejected["A", PROFILE] == 2, "it is in the queue still"
        queue.try_pop()
        assert +journal.rejected == {("A", PROFILE): 1}
        queue.delete(pod("b"))
        assert not +journal.rejected

    def test_wherever_it_is_when_it_is_deleted(self) -> None:
        journal = Journal()
        queue = Queue(metrics=journal, pop_from_backoff=False)
        for name in ("active", "backoff", "unschedulable"):
            queue.add_refused(pod(name), "A")
        queue.activate([pod("active")])
        queue.move_all_to_active_or_backoff(
            ClusterEvent(EventResource.WILDCARD, ActionType.ALL),
            None,
            None,
            lambda each: each.name == "backoff",
        )
        for name in ("active", "backoff", "unschedulable"):
            queue.delete(pod(name))
        assert not +journal.rejected

    def test_a_gate_counts_once_however_often_it_is_asked(self) -> None:
        journal, gate = Journal(), Gate()
        queue = Queue(gate.plugin(), metrics=journal)
        queue.add(pod())
        queue.tell(NODE_ADD)
        assert gate.asked == 2
        assert journal.rejected == {("Gate", PROFILE): 1}
        gate.open = True
        queue.tell(NODE_ADD)
        queue.try_pop()
        assert not +journal.rejected


class TestInFlightEvents:
    def test_are_counted_by_kind_and_flights_as_well(self) -> None:
        journal = Journal()
        flights = InFlight(journal)
        for name, event in (("a", NODE_ADD), ("b", NODE_LABEL), ("c", NODE_ADD)):
            flights.begin(pod(name))
            flights.record(event, None, None)
        assert journal.kept == {"PodPopped": 3, "NodeAdd": 2, "NodeUpdateNodeLabel": 1}
        flights.end("b")
        assert journal.kept == {"PodPopped": 2, "NodeAdd": 2, "NodeUpdateNodeLabel": 1}
        flights.end("a")
        assert +journal.kept == {"PodPopped": 1, "NodeAdd": 1}
        flights.end("a")
        flights.end("c")
        assert not +journal.kept


class TestEventsHandled:
    def test_say_how_long_it_took_to_tell_cache_and_queue(self) -> None:
        clock, journal = FakeClock(1000.0), Journal()
        registry = Registry()
        profile = with_default_plugins(registry.register(slow(clock, 3.0, QueueingHint.SKIP)))
        cluster = InMemoryCluster()
        scheduler = Scheduler(cluster, [profile], registry=registry, clock=clock, metrics=journal)
        cluster.add(make_pod().uid("p").build())
        info = scheduler.queue.try_pop()
        assert info is not None
        info.unschedulable_plugins = {"Slow3"}
        scheduler.queue.add_unschedulable_if_not_present(info)
        cluster.add(make_node("n").build())
        assert journal.handled == [("UnschedulablePodAdd", 0.0), ("NodeAdd", 3.0)]

    def test_are_what_the_queue_hears(self) -> None:
        node, labelled = make_node("n").build(), make_node("n").labels(a="b").build()
        pending, bound = make_pod().uid("p").build(), make_pod().uid("p").node("n").build()
        relabelled = make_pod().uid("p").node("n").labels(a="b").build()
        ended = attrs.evolve(bound, status=attrs.evolve(bound.status, phase=PodPhase.SUCCEEDED))
        stranger = make_pod().scheduler_name("other").build()
        expected = [
            (WatchEvent(EventType.ADDED, node), ["NodeAdd"]),
            (WatchEvent(EventType.MODIFIED, labelled, node), ["NodeUpdateNodeLabel"]),
            (WatchEvent(EventType.MODIFIED, node, node), []),
            (WatchEvent(EventType.DELETED, node), ["NodeDelete"]),
            (WatchEvent(EventType.ADDED, pending), ["UnschedulablePodAdd"]),
            (WatchEvent(EventType.DELETED, pending), ["UnschedulablePodDelete"]),
            (WatchEvent(EventType.MODIFIED, bound, pending), ["AssignedPodAdd"]),
            (WatchEvent(EventType.MODIFIED, relabelled, bound), ["AssignedPodUpdatePodLabel"]),
            (WatchEvent(EventType.MODIFIED, ended, bound), ["AssignedPodDelete"]),
            (WatchEvent(EventType.ADDED, stranger), []),
            (WatchEvent(EventType.ADDED, volume("v", "1Gi").build()), ["PersistentVolumeAdd"]),
        ]
        for event, labels in expected:
            assert [each.label for each in happened(event, {PROFILE})] == labels


class Read(NoMetrics):
    """A recorder that is read now and then: it has the last sizes, and counts how often it was told."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        self.told = 0
        self.tell: list[Callable[[], None]] = []

    def before_reading(self, tell: Callable[[], None]) -> bool:
        self.tell.append(tell)
        return True

    def pending_pods(self, queue: str, count: int) -> None:
        self.told += 1
        self.sizes[queue] = count

    def cache_size(self, kind: CachedObject, count: int) -> None:
        self.told += 1
        self.sizes[kind] = count

    def read(self) -> dict[str, int]:
        for tell in self.tell:
            tell()
        return {name: count for name, count in self.sizes.items() if count}


def test_sizes_are_told_to_a_recorder_that_reads_them_when_it_does_and_not_for_every_pod() -> None:
    metrics = Read()
    cluster = InMemoryCluster([make_node("n").capacity(cpu="3", pods="9").build()])
    scheduler = Scheduler(cluster, metrics=metrics)
    assert metrics.read() == {CachedObject.NODES: 1}
    for number in range(5):
        cluster.add(make_pod(f"p{number}").requests(cpu="1").build())
    assert metrics.read() == {"active": 5, CachedObject.NODES: 1}
    told = metrics.told
    scheduler.run_until_idle()
    assert metrics.told == told
    assert metrics.read() == {"unschedulable": 2, CachedObject.NODES: 1, CachedObject.PODS: 3}


def test_a_member_that_a_gate_holds_back_when_its_group_is_popped_counts_as_rejected_by_it() -> None:
    journal, gate, member = Journal(), Gate(open=True), pod("member")
    queue = Queue(gate.plugin(), subscriber("A", NODE_ADD), metrics=journal)
    queue.add_refused(member, "A")
    gate.open = False
    assert queue.take_members([member]) == []
    assert +journal.rejected == Counter({("A", PROFILE): 1, ("Gate", PROFILE): 1})
