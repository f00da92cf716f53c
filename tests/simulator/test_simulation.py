"""A simulation lets a scheduler do all that it can for the pending pods, and accounts for every pod."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw import make_node, make_pod
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod, PodPhase, PodSchedulingGate, PodStatus
from kschedfw.api.storage import PersistentVolumeClaim
from kschedfw.cluster import EventType, InMemoryCluster, MissingObject, WatchEvent
from kschedfw.config import SchedulerConfiguration, default_profile, parse_configuration
from kschedfw.framework.clock import VirtualClock
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import QueuedPodInfo
from kschedfw.framework.plugin import Plugin, hookimpl
from kschedfw.framework.profile import Profile
from kschedfw.framework.runtime.registry import Registry
from kschedfw.framework.status import Status
from kschedfw.scheduler.queue import SchedulingQueue
from kschedfw.scheduler.queue.protocol import Place
from kschedfw.simulator import Arrivals, Decision, Outcome, Report, Simulation
from kschedfw.simulator.ledger import FRUITLESS_ATTEMPTS
from tests.plugins.storage import claim, storage_class
from tests.simulator.objects import node, pod

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)


class ByPriority(Plugin):
    name = "ByPriority"

    @hookimpl
    def queue_sort(self, first: QueuedPodInfo, second: QueuedPodInfo) -> bool:
        return (-first.pod.priority, first.timestamp) < (-second.pod.priority, second.timestamp)


class Gates(Plugin):
    name = "Gates"

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        return Status.unresolvable("waiting for its gates") if pod.spec.scheduling_gates else None


class Cpu(Plugin):
    name = "Cpu"

    @hookimpl
    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        free = node_info.allocatable.milli_cpu - node_info.requested.milli_cpu
        return None if pod.requests.amounts.milli_cpu <= free else Status.unschedulable("Insufficient cpu")

    @hookimpl
    def score(self, pod: Pod, node_info: NodeInfo) -> int:
        return 0


class Binder(Plugin):
    name = "Binder"

    @hookimpl
    def bind(self, pod: Pod, node_name: str) -> Status | None:
        self.handle.cluster.bind(pod, node_name)
        return None


BASE: tuple[type[Plugin[Any]], ...] = (ByPriority, Gates, Cpu, Binder)


def simulation(
    cluster: InMemoryCluster, *extra: type[Plugin[Any]], without: str = "", **options: Any
) -> Simulation:
    plugins = [plugin for plugin in (*extra, *BASE) if plugin.name != without]
    registry = Registry(entry_points=False)
    for plugin in plugins:
        registry.register(plugin)
    profile = Profile(multi_point=[plugin.name for plugin in plugins])
    return Simulation(cluster, profiles=[profile], registry=registry, parallelism=1, **options)


def run(cluster: InMemoryCluster, *extra: type[Plugin[Any]], **options: Any) -> Report:
    return simulation(cluster, *extra, **options).run()


def cluster_of(*objects: Node | Pod) -> InMemoryCluster:
    return InMemoryCluster(objects)


def host(cluster: InMemoryCluster, name: str) -> str:
    found = cluster.get(Pod, f"default/{name}")
    assert found is not None
    return found.node_name


def decision_of(report: Report, name: str) -> Decision:
    (found,) = (decision for decision in report.decisions if decision.pod == f"default/{name}")
    return found


class TestPlacing:
    def test_a_pod_that_fits_is_bound_on_the_cluster(self) -> None:
        cluster = cluster_of(node("n1", cpu="1"), node("n2", cpu="4"), pod("a", cpu="2"))
        report = run(cluster)
        assert host(cluster, "a") == "n2"
        assert report.decisions == (
            Decision("default/a", Outcome.PLACED, node="n2", attempts=1, evaluated=2, feasible=1, bound=0.0),
        )
        assert (report.nodes, report.pods, report.placed, report.left) == (2, 1, 1, 0)
        assert [(e.regarding, e.reason, e.message) for e in cluster.events] == [
            ("default/a", "Scheduled", "Successfully assigned default/a to n2")
        ]

    def test_pods_take_the_room_of_those_before_and_of_bound_ones(self) -> None:
        bound = pod("bound", {"node_name": "n1"}, cpu="1")
        cluster = cluster_of(node("n1", cpu="2"), bound, pod("a", cpu="1"), pod("b", cpu="1"))
        report = run(cluster)
        assert (host(cluster, "a"), host(cluster, "b")) == ("n1", "")
        assert (report.placed, report.unschedulable, report.bound_before) == (1, 1, 1)

    def test_a_pod_that_fits_nowhere_is_told_why(self) -> None:
        cluster = cluster_of(node("n1", cpu="1"), node("n2", cpu="1"), pod("a", cpu="2"))
        report = run(cluster)
        text = "0/2 nodes are available: 2 Insufficient cpu."
        assert report.decisions[0].message == text
        assert [(r.text, r.pods, r.nodes) for r in report.reasons] == [("Insufficient cpu", 1, 2)]
        assert [(e.type, e.reason, e.message) for e in cluster.events] == [
            ("Warning", "FailedScheduling", text)
        ]
        stored = cluster.get(Pod, "default/a")
        assert stored is not None
        (condition,) = stored.status.conditions
        assert (condition.type, condition.status, condition.reason) == (
            "PodScheduled",
            "False",
            "Unschedulable",
        )

    def test_without_nodes(self) -> None:
        report = run(cluster_of(pod("a")))
        assert report.nodes == 0
        assert report.decisions[0].message == "no nodes available to schedule pods"
        assert report.utilisation == []

    def test_order_is_by_priority_then_arrival(self) -> None:
        pods = [pod("low"), pod("high-1", {"priority": 5}), pod("high-2", {"priority": 5})]
        report = run(cluster_of(node("n1", cpu="1"), *pods))
        assert [decision.pod for decision in report.decisions] == [
            "default/high-1",
            "default/high-2",
            "default/low",
        ]

    def test_finished_pods_hold_nothing(self) -> None:
        done = pod("done", {"node_name": "n1"}, status=PodStatus(phase=PodPhase.SUCCEEDED), cpu="1")
        report = run(cluster_of(node("n1", cpu="1"), done, pod("a", cpu="1")))
        assert (report.placed, report.terminal) == (1, 1)
        assert report.utilisation[0].share == 1.0

    def test_pods_on_nodes_that_are_not_there_are_noted(self) -> None:
        report = run(cluster_of(node("n1"), pod("a", {"node_name": "gone"})))
        assert report.bound_before == 1
        assert report.missing == (MissingObject("Node", "gone", ("default/a",)),)


class TestPassedOver:
    def test_gated_pods(self) -> None:
        gated = pod("gated", {"scheduling_gates": (PodSchedulingGate("quota"),)})
        report = run(cluster_of(node("n1"), gated))
        assert (report.pods, report.gated, report.placed) == (1, 1, 0)
        assert report.decisions == (
            Decision(
                "default/gated",
                Outcome.GATED,
                message="waiting for its gates",
                reasons=FrozenDict({"waiting for its gates": 0}),
            ),
        )

    def test_pods_of_other_schedulers_finished_and_deleted_ones(self) -> None:
        now = datetime(2026, 1, 1, tzinfo=UTC)
        report = run(
            cluster_of(
                node("n1"),
                pod("theirs", {"scheduler_name": "theirs"}),
                pod("failed", status=PodStatus(phase=PodPhase.FAILED)),
                pod("going", meta={"deletion_timestamp": now}),
            )
        )
        assert report.decisions == ()
        assert (report.pods, report.other_scheduler, report.terminal, report.terminating) == (0, 1, 1, 1)

    def test_claims_are_bound_and_volumes_made(self) -> None:
        room = make_node("n1").capacity(cpu=4, memory="8Gi", pods=10).build()
        make = storage_class("make", provisioner="csi.example.com")
        own = make_pod("b").ephemeral_volume("scratch", storage_class="make").build()
        cluster = cluster_of(room, make_pod("a").claim("disk").build(), own)
        cluster.add(make)
        cluster.add(claim("disk", storage_class="make").build())
        report = Simulation(cluster).run()
        assert (report.placed, report.notes) == (2, ())
        assert [each.status.phase for each in cluster.list(PersistentVolumeClaim)] == ["Bound", "Bound"]


class TestPlugins:
    def test_one_that_breaks_costs_only_the_pod_at_hand(self) -> None:
        class Fragile(Plugin):
            name = "Fragile"

            @hookimpl
            def filter(self, pod: Pod) -> None:
                if pod.name == "a":
                    raise ValueError("oops")

        cluster = cluster_of(node("n1"), pod("a"), pod("b"))
        report = run(cluster, Fragile)
        assert (report.failed, report.placed) == (1, 1)
        broken = decision_of(report, "a")
        assert broken.outcome is Outcome.FAILED
        assert "oops" in broken.message

    @pytest.mark.parametrize("point", ["reserve", "permit", "pre_bind"])
    def test_one_that_objects_late_gives_the_place_back(self, point: str) -> None:
        unreserved: list[str] = []

        class Late(Plugin):
            name = "Late"

            @hookimpl
            def unreserve(self, pod: Pod, node_name: str) -> None:
                unreserved.append(f"{pod.name} from {node_name}")

        def refuse(self: Plugin, pod: Pod) -> Status | None:
            return Status.unschedulable("too late") if pod.name == "a" else None

        setattr(Late, point, hookimpl(refuse))
        cluster = cluster_of(node("n1", cpu="1"), pod("a", cpu="1"), pod("b", cpu="1"))
        report = run(cluster, Late)
        assert decision_of(report, "b").outcome is Outcome.PLACED
        assert decision_of(report, "a").outcome is Outcome.UNSCHEDULABLE
        assert any("too late" in event.message for event in cluster.events)
        assert set(unreserved) == {"a from n1"}

    @pytest.mark.parametrize(
        ("point", "outcome", "message"),
        [
            ("permit", Outcome.UNSCHEDULABLE, "0/1 nodes are available: 1 too late."),
            # No event could wake the pod, and the message is the plugin's own.
            ("pre_bind", Outcome.UNSCHEDULABLE, "too late"),
        ],
    )
    def test_a_late_objection_refuses_the_pod_in_the_binding_cycle_too(
        self, point: str, outcome: Outcome, message: str
    ) -> None:
        class Late(Plugin):
            name = "Late"

        setattr(Late, point, hookimpl(lambda self, pod: Status.unschedulable("too late")))
        (decision,) = run(cluster_of(node("n1"), pod("a")), Late).decisions
        assert (decision.outcome, decision.message) == (outcome, message)
        assert decision.reasons == {message: 0}
        assert (decision.evaluated, decision.feasible) == (1, 1)

    def test_a_profile_that_binds_nothing(self) -> None:
        report = run(cluster_of(node("n1"), pod("a")), without="Binder")
        assert report.failed == 1
        assert report.decisions[0].message == "no bind plugin would bind pod default/a"

    def test_post_bind_comes_after_the_binding(self) -> None:
        seen: list[str] = []

        class After(Plugin):
            name = "After"

            @hookimpl
            def post_bind(self, pod: Pod, node_name: str) -> None:
                seen.append(host(cluster, pod.name))

        cluster = cluster_of(node("n1"), pod("a"))
        run(cluster, After)
        assert seen == ["n1"]

    def test_one_that_deletes_pods_makes_room(self) -> None:
        class Evictor(Plugin):
            name = "Evictor"

            @hookimpl
            def pre_filter(self, pod: Pod) -> None:
                victim = self.handle.cluster.get(Pod, "default/bound")
                if pod.name == "b" and victim is not None:
                    self.handle.cluster.delete(victim)

        bound = pod("bound", {"node_name": "n1"}, cpu="1")
        cluster = cluster_of(
            node("n1", cpu="1"), bound, pod("a", cpu="1"), pod("b", cpu="1"), pod("c", cpu="1")
        )
        run(cluster, Evictor)
        # The snapshot of b's own cycle still shows the victim.
        assert (host(cluster, "a"), host(cluster, "b"), host(cluster, "c")) == ("", "", "n1")

    def test_the_pod_may_go_away_in_its_own_cycle(self) -> None:
        class Deleter(Plugin):
            name = "Deleter"

            @hookimpl
            def reserve(self, pod: Pod) -> Status:
                self.handle.cluster.delete(pod)
                return Status.unschedulable("deleted")

        report = run(cluster_of(node("n1"), pod("a")), Deleter)
        assert (report.deleted, report.failed) == (1, 0)
        assert report.decisions[0].message == "deleted before it was bound"

    def test_a_pod_that_a_hook_deletes_after_it_was_bound_is_not_placed(self) -> None:
        class TakesBack(Plugin):
            name = "TakesBack"

            @hookimpl
            def post_bind(self, pod: Pod) -> None:
                self.handle.cluster.delete(pod)

        report = run(cluster_of(node("n1"), pod("a")), TakesBack)
        (decision,) = report.decisions
        assert (report.placed, report.deleted) == (0, 1)
        assert (decision.outcome, decision.node, decision.place) == (Outcome.DELETED, "n1", None)
        assert decision.message == "deleted after it was bound"

    def test_nodes_may_come_and_go(self) -> None:
        class Autoscaler(Plugin):
            name = "Autoscaler"

            @hookimpl
            def pre_filter(self, pod: Pod) -> None:
                if pod.name == "a":
                    cluster.add(node("n2", cpu="1"))
                    cluster.delete(node("n1"))

        cluster = cluster_of(node("n1", cpu="1"), pod("a", cpu="2"), pod("b", cpu="1"))
        report = run(cluster, Autoscaler)
        assert host(cluster, "b") == "n2"
        assert report.nodes == 1


class Gang(Plugin):
    """Holds pods back until there are two."""

    name = "Gang"

    @hookimpl
    def permit(self, pod: Pod) -> Status | None:
        waiting = list(self.handle.waiting_pods)
        if not waiting:
            return Status.wait(60)
        for other in waiting:
            other.allow(self.name)
        return None


class TestPermit:
    def test_a_pod_keeps_its_place_while_it_waits(self) -> None:
        cluster = cluster_of(node("n1", cpu="1"), node("n2", cpu="1"), pod("a", cpu="1"), pod("b", cpu="1"))
        report = run(cluster, Gang)
        assert report.placed == 2
        assert {host(cluster, "a"), host(cluster, "b")} == {"n1", "n2"}
        assert [decision.attempts for decision in report.decisions] == [1, 1]
        assert report.preemptions == 0, "a nomination tells where it will be, and nobody has to go"

    def test_it_gives_up_when_nobody_is_left_to_wait_for(self) -> None:
        cluster = cluster_of(node("n1", cpu="1"), pod("a", cpu="1"))
        report = run(cluster, Gang)
        assert (report.placed, report.unschedulable) == (0, 1)
        (decision,) = report.decisions
        assert decision.message == (
            "0/1 nodes are available: 1 rejected due to timeout after waiting 1m0s at plugin Gang."
        )


class TestRetries:
    def test_a_plugin_that_recovers_gets_the_pod_again_after_backoff(self) -> None:
        times: list[float] = []

        class Flaky(Plugin):
            name = "Flaky"

            @hookimpl
            def filter(self, pod: Pod) -> None:
                times.append(self.handle.clock.now())
                if len(times) < 3:
                    raise ValueError("not yet")

        report = run(cluster_of(node("n1"), pod("a")), Flaky)
        (decision,) = report.decisions
        assert (decision.outcome, decision.attempts, report.attempts) == (Outcome.PLACED, 3, 3)
        assert times[0] == 0.0
        # 1 s and then 2 s of backoff, each moved to the end of its second
        assert times[1] - times[0] >= 1.0
        assert times[2] - times[1] >= 2.0
        assert decision.bound == times[2]

    def test_one_that_never_does_ends_the_simulation_after_five_attempts(self) -> None:
        class Broken(Plugin):
            name = "Broken"

            @hookimpl
            def filter(self, pod: Pod) -> None:
                raise ValueError("oops")

        report = run(cluster_of(node("n1"), pod("a")), Broken)
        assert (report.failed, report.attempts) == (1, 5)

    def test_many_that_never_do_are_not_sorted_for_each_attempt(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Broken(Plugin):
            name = "Broken"

            @hookimpl
            def filter(self, pod: Pod) -> None:
                raise ValueError("oops")

        listed: list[Place] = []
        original = SchedulingQueue.pods_in

        def pods_in(queue: SchedulingQueue, place: Place) -> Sequence[Pod]:
            listed.append(place)
            return original(queue, place)

        monkeypatch.setattr(SchedulingQueue, "pods_in", pods_in)
        report = run(cluster_of(node("n1"), *(pod(f"p{number}") for number in range(60))), Broken)
        assert (report.failed, report.attempts) == (60, 300)
        assert len(listed) < 30

    def test_pods_that_wake_each_other_without_end_do_not_keep_it_going(self) -> None:
        class Fickle(Plugin):
            name = "Fickle"

            @hookimpl
            def permit(self, pod: Pod) -> Status:
                return Status.wait(10)  # and when that is over, its room is news for the others

        report = run(cluster_of(node("n1"), pod("a"), pod("b")), Fickle)
        assert report.unschedulable == 2
        assert all(decision.attempts <= 2 * FRUITLESS_ATTEMPTS for decision in report.decisions)

    def test_a_pod_that_finds_no_room_gets_what_another_gives_back(self) -> None:
        class Refuser(Plugin):
            name = "Refuser"

            @hookimpl
            def permit(self, pod: Pod) -> Status | None:
                return Status.wait(60) if pod.name == "holder" else None

        holder = pod("holder", {"priority": 1}, cpu="1")
        report = run(cluster_of(node("n1", cpu="1"), holder, pod("a", cpu="1")), Refuser)
        placed = decision_of(report, "a")
        assert (placed.outcome, placed.bound) == (Outcome.PLACED, 60.0)
        assert decision_of(report, "holder").outcome is Outcome.UNSCHEDULABLE


class TestPreemption:
    """With the default profile, in which DefaultPreemption is."""

    def test_a_bound_pod_gives_way_to_one_of_higher_priority(self) -> None:
        bound = pod("bound", {"node_name": "n1"}, cpu="1")
        urgent = pod("urgent", {"priority": 10}, cpu="1")
        cluster = cluster_of(node("n1", cpu="1", pods="9"), bound, urgent)
        report = Simulation(cluster, parallelism=1).run()
        decision = decision_of(report, "urgent")
        assert (decision.outcome, decision.node, decision.attempts) == (Outcome.PLACED, "n1", 2)
        assert (report.preemptions, report.victims, report.preempted) == (1, 1, 0)
        assert cluster.get(Pod, "default/bound") is None

    def test_a_pod_may_lose_the_place_that_it_got(self) -> None:
        """`late` comes when `early` has the only place."""
        cluster = cluster_of(
            node("n1", cpu="1", pods="9"),
            pod("early", meta={"creation_timestamp": MIDNIGHT}, cpu="1"),
            pod("late", {"priority": 10}, {"creation_timestamp": MIDNIGHT + timedelta(seconds=5)}, cpu="1"),
        )
        report = Simulation(cluster, parallelism=1, arrivals=Arrivals()).run()
        lost = decision_of(report, "early")
        assert (lost.outcome, lost.preempted, lost.node, lost.bound) == (Outcome.PREEMPTED, True, "n1", 0.0)
        assert decision_of(report, "late").bound == 5.0
        assert (report.placed, report.preempted, report.victims, report.left) == (1, 1, 1, 0)
        assert report.reasons == []


class TestTime:
    def test_passes_only_while_someone_waits(self) -> None:
        clock, condition = VirtualClock(), threading.Condition()
        assert clock.now() == clock.now() == 0.0
        with condition:
            clock.wait_until(condition, 60.0)
            clock.wait_until(condition, 30.0)
        clock.advance_to(50.0)
        assert clock.now() == clock.monotonic() == 60.0


class TestRunning:
    def test_same_seed_same_decisions(self) -> None:
        def nodes_of(seed: int) -> list[str | None]:
            nodes = [node(f"n{i}", cpu="9") for i in range(9)]
            pods = [pod(f"p{i}", cpu="1") for i in range(20)]
            return [decision.node for decision in run(cluster_of(*nodes, *pods), seed=seed).decisions]

        assert nodes_of(1) == nodes_of(1)
        assert nodes_of(1) != nodes_of(2)

    def test_progress_counts_up_to_the_number_of_pods(self) -> None:
        calls: list[tuple[int, int]] = []
        simulation(cluster_of(node("n1"), pod("a"), pod("b"))).run(
            lambda done, total: calls.append((done, total))
        )
        assert calls == [(1, 2), (2, 2), (2, 2)]

    def test_elapsed_is_from_the_clock_that_was_given(self) -> None:
        times = iter([10.0, 14.0])
        report = run(cluster_of(node("n1"), pod("a"), pod("b")), clock=lambda: next(times))
        assert (report.elapsed, report.decisions_per_second) == (4.0, 0.5)

    def test_the_report_is_about_the_cluster_afterwards(self) -> None:
        report = run(cluster_of(node("n1", cpu="4"), node("n2", cpu="4"), pod("a", cpu="3")))
        assert report.utilisation[0].per_node.max == 0.75
        assert (report.pods_per_node.min, report.pods_per_node.max) == (0, 1)

    def test_nothing_watches_the_cluster_afterwards(self) -> None:
        cluster = cluster_of(node("n1"), pod("a"))
        run(cluster)
        assert cluster._subscriptions == []


class TestInterruption:
    """Ctrl-C at any moment leaves a report in which every number is right."""

    @pytest.mark.parametrize(
        ("hook", "placed"),
        [("pre_filter", 1), ("filter", 1), ("reserve", 1), ("permit", 1), ("pre_bind", 1), ("post_bind", 2)],
    )
    def test_in_a_hook(self, hook: str, placed: int) -> None:
        class Interrupted(Plugin):
            name = "Interrupted"

        def interrupt(self: Plugin, pod: Pod) -> None:
            if pod.name == "b":
                raise KeyboardInterrupt

        setattr(Interrupted, hook, hookimpl(interrupt))
        cluster = cluster_of(node("n1", cpu="3"), *(pod(name, cpu="1") for name in "abc"))
        report = run(cluster, Interrupted)
        assert report.interrupted
        assert report.placed == placed == sum(bool(p.node_name) for p in cluster.list(Pod))
        assert (report.pods, report.left) == (3, 3 - placed)
        assert report.pods_per_node.max == placed

    def test_while_the_binding_is_announced(self) -> None:
        cluster = cluster_of(node("n1", cpu="3"), pod("a"), pod("b"))
        mine = simulation(cluster)

        def interrupt(event: WatchEvent) -> None:
            if event.type is EventType.MODIFIED:
                raise KeyboardInterrupt

        cluster.watch(interrupt)
        report = mine.run()
        assert report.interrupted
        assert [decision.pod for decision in report.decisions] == ["default/a"]
        assert (report.placed, report.left) == (1, 1)

    def test_while_a_pod_that_has_waited_is_bound(self) -> None:
        class Interrupted(Plugin):
            name = "Interrupted"

            @hookimpl
            def post_bind(self, pod: Pod) -> None:
                if pod.name == "a":
                    raise KeyboardInterrupt

        cluster = cluster_of(node("n1"), pod("a"), pod("b"), pod("c"))
        report = run(cluster, Interrupted, Gang)
        # Allowing a binds it at once, while b still asks for permission.
        assert (report.placed, report.left) == (1, 2)
        assert host(cluster, "a") == "n1"

    def test_while_a_pod_waits(self) -> None:
        class Late(Plugin):
            name = "Late"

            @hookimpl
            def pre_filter(self, pod: Pod) -> None:
                if pod.name == "b":
                    raise KeyboardInterrupt

        report = run(cluster_of(node("n1"), pod("a"), pod("b")), Late, Gang)
        assert (report.placed, report.left) == (0, 2)


@given(
    capacities=st.lists(st.integers(0, 4), max_size=5),
    pods=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.booleans()), max_size=12),
    seed=st.integers(0, 3),
)
def test_no_node_is_overcommitted_and_no_pod_forgotten(
    capacities: list[int], pods: list[tuple[int, int, bool]], seed: int
) -> None:
    cluster = cluster_of(
        *(node(f"n{i}", cpu=str(capacity)) for i, capacity in enumerate(capacities)),
        *(
            pod(
                f"p{i}",
                {"priority": priority, "scheduling_gates": (PodSchedulingGate("g"),) if gated else ()},
                cpu=str(cpu),
            )
            for i, (cpu, priority, gated) in enumerate(pods)
        ),
    )
    report = run(cluster, seed=seed)
    assert report.placed + report.unschedulable + report.gated == report.pods == len(pods)
    assert report.placed == sum(bool(p.node_name) for p in cluster.list(Pod))
    for usage in report.utilisation:
        assert usage.per_node.max <= 1.0
    used = dict.fromkeys((f"n{i}" for i in range(len(capacities))), 0)
    for i, (cpu, _, gated) in enumerate(pods):
        where = host(cluster, f"p{i}")
        assert not (gated and where)
        if where:
            used[where] += cpu
    assert all(used[f"n{i}"] <= capacity for i, capacity in enumerate(capacities))


def test_second_run_of_a_simulation_is_refused() -> None:
    simulation = Simulation(InMemoryCluster([node("n1", cpu="1", pods="9")]))
    simulation.run()
    with pytest.raises(RuntimeError, match="run once"):
        simulation.run()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            {"profiles": default_profile()},
            "profiles: expected a sequence of Profile, found a Profile; put it in",
        ),
        ({"profiles": ["default-scheduler"]}, "profiles: expected a sequence of Profile, found a list"),
        ({"arrivals": True}, "arrivals: expected Arrivals or None, found True"),
        (
            {"cluster": [make_node("n").build()]},
            "cluster: expected a Cluster such as InMemoryCluster(objects)",
        ),
        ({"seed": "a"}, "seed: expected an integer, found 'a'"),
    ],
)
def test_what_is_mixed_up_is_told_at_once(given: dict[str, Any], text: str) -> None:
    with pytest.raises(TypeError) as raised:
        Simulation(**{"cluster": InMemoryCluster(), **given})
    assert str(raised.value).startswith(text)


def configured(text: str) -> SchedulerConfiguration:
    return parse_configuration(
        f"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{text}"
    )


def test_a_configuration_is_what_its_profiles_and_settings_are() -> None:
    configuration = configured(
        "podInitialBackoffSeconds: 3\npercentageOfNodesToScore: 70\nprofiles: [{schedulerName: mine}]"
    )
    waiting = make_pod("a").scheduler_name("mine").requests(cpu=1).build()
    simulation = Simulation(cluster_of(node("n1", cpu="1", pods="10"), waiting), configuration)
    assert [profile.scheduler_name for profile in simulation.profiles] == ["mine"]
    assert simulation.run().placed == 1


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"configuration": "file.yaml"}, TypeError, "found 'file.yaml'; load_configuration reads files"),
        ({"profiles": [default_profile()]}, ValueError, "profiles: the configuration .* has its own"),
        ({"percentage_of_nodes_to_score": 50}, ValueError, "percentage_of_nodes_to_score: the configuration"),
    ],
)
def test_what_a_configuration_has_is_not_given_twice(
    given: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        Simulation(InMemoryCluster(), **{"configuration": configured("profiles: []"), **given})


def test_pods_that_are_being_deleted_end_at_their_time_and_make_room() -> None:
    ends = datetime(2026, 11, 28, 9, 1, tzinfo=UTC)
    old = make_pod("old").requests(cpu=3).node("n").build()
    old = old.with_metadata(attrs.evolve(old.metadata, deletion_timestamp=ends))
    new = make_pod("new").requests(cpu=3).build()
    cluster = InMemoryCluster([make_node("n").capacity(cpu=4, pods=10).build(), old, new])
    start = ends - timedelta(seconds=60)
    simulation = Simulation(cluster, start_time=start)
    simulation.run()
    assert cluster.get(Pod, old.key) is None
    (decision,) = simulation.decisions
    assert (decision.pod, decision.place, decision.bound) == ("default/new", "n", 60.0)


class TestCauses:
    def test_of_an_unschedulable_pod_are_asked_for_at_the_end(self) -> None:
        small = make_node("n1").capacity(cpu=2, pods=10).build()
        large = make_pod("large").requests(cpu=3).build()
        report = Simulation(InMemoryCluster([small, large]), causes=True).run()
        (decision,) = report.decisions
        (cause,) = decision.causes
        assert (decision.outcome, cause.code, cause.decisive) == (
            Outcome.UNSCHEDULABLE,
            "insufficient-resource",
            True,
        )
        assert dict(cause.evidence.values)["short"] == 1000
        assert decision.to_json()["causes"] == [cause.to_json()]

    def test_are_none_of_a_pod_with_a_place_and_unless_they_are_asked_for(self) -> None:
        small = make_node("n1").capacity(cpu=2, pods=10).build()
        fits, large = make_pod("fits").requests(cpu=1).build(), make_pod("large").requests(cpu=3).build()
        asked = Simulation(InMemoryCluster([small, fits, large]), causes=True).run()
        assert {each.pod: len(each.causes) for each in asked.decisions} == {
            "default/fits": 0,
            "default/large": 1,
        }
        not_asked = Simulation(InMemoryCluster([small, fits, large])).run()
        assert not any(each.causes for each in not_asked.decisions)

    def test_do_not_change_what_is_decided(self) -> None:
        nodes = [make_node(f"n{number}").capacity(cpu=2, pods=10).build() for number in range(3)]
        pods = [make_pod(f"p{number}").requests(cpu=1 + number % 3).build() for number in range(9)]
        with_causes = Simulation(InMemoryCluster([*nodes, *pods]), causes=True).run().decisions
        plain = Simulation(InMemoryCluster([*nodes, *pods])).run().decisions
        assert [attrs.evolve(each, causes=()) for each in with_causes] == list(plain)


def test_plugin_times_tell_which_plugin_is_slow_and_change_no_decision() -> None:
    seconds = 0.0

    class Slow(Plugin):
        name = "Slow"

        @hookimpl
        def reserve(self) -> None:
            nonlocal seconds
            seconds += 3.0

    def simulated(*, plugin_times: bool) -> Report:
        registry = Registry()
        registry.register(Slow)
        profile = Profile(["PrioritySort", "NodeResourcesFit", "Slow", "DefaultBinder"])
        cluster = cluster_of(node("n1", cpu="4", pods="10"), pod("a", cpu="1"), pod("b", cpu="1"))
        return Simulation(
            cluster,
            profiles=[profile],
            registry=registry,
            clock=lambda: seconds,
            plugin_times=plugin_times,
        ).run()

    measured = simulated(plugin_times=True)
    assert next(iter(measured.plugin_seconds.items())) == ("Slow", 6.0)
    assert measured.decisions == simulated(plugin_times=False).decisions
    assert simulated(plugin_times=False).plugin_seconds == {}
