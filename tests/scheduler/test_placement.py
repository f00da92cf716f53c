"""Places that are held until somebody decides: what embedders do with `Scheduler.place`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from kschedfw import (
    EnabledPlugin,
    FitError,
    Handle,
    InMemoryCluster,
    NoNodesAvailableError,
    PlacementEndedError,
    Plugin,
    Pod,
    PodInFlightError,
    Profile,
    Registry,
    Scheduler,
    SchedulingError,
    Status,
    default_profile,
    hookimpl,
    make_node,
    make_pod,
)
from kschedfw.api import Named
from kschedfw.framework.errors import ProfileError
from kschedfw.scheduler.errors import ConcurrentCycleError
from kschedfw.scheduler.queue.protocol import Place
from kschedfw.testing import FakeClock
from kschedfw.testing.waiting import PATIENCE
from tests.framework.support import answering, plugin
from tests.scheduler.stage import Stage, witness

SMALL = make_node("n").capacity(cpu=2, pods=10).build()


def stage_with(*plugins: object, pods: int = 1) -> Stage:
    """A node with two CPUs, and pending pods `pod-0` … that each ask for both."""
    pending = [make_pod(f"pod-{number}").requests(cpu=2).build() for number in range(pods)]
    return Stage(*plugins, nodes=[SMALL], pods=pending)  # type: ignore[arg-type]  # classes made by `plugin`


class TestCommit:
    def test_binds_the_pod(self) -> None:
        journal: list[str] = []
        stage = stage_with(witness("A", journal))
        with stage.scheduler.place(stage.pod("pod-0")) as placement:
            assert placement.node_name == "n"
            assert stage.pod("pod-0").node_name == ""
            placement.commit()
        assert stage.pod("pod-0").node_name == "n"
        assert journal[-1] == "A.post_bind pod-0"
        assert "A.unreserve pod-0" not in journal
        assert stage.scheduler.run_until_idle() == 0

    def test_holds_the_room_until_then(self) -> None:
        stage = stage_with(pods=2)
        held = stage.scheduler.place(stage.pod("pod-0"))
        with pytest.raises(FitError, match="Insufficient cpu"):
            stage.scheduler.place(stage.pod("pod-1"))
        held.commit()
        assert stage.pod("pod-0").node_name == "n"

    def test_all_of_a_gang_or_none(self) -> None:
        stage = Stage(
            nodes=[make_node("n").capacity(cpu=3, pods=10).build()],
            pods=[make_pod(f"member-{number}").requests(cpu=2).build() for number in range(2)],
        )
        held = [stage.scheduler.place(stage.pod("member-0"))]
        with pytest.raises(FitError):
            held.append(stage.scheduler.place(stage.pod("member-1")))
        for placement in held:
            placement.give_up()
        assert stage.in_cache() == {}

    def test_a_failure_frees_the_room_and_is_raised(self) -> None:
        journal: list[str] = []
        stage = stage_with(witness("A", journal, pre_bind=Status.from_error("no disk")))
        placement = stage.scheduler.place(stage.pod("pod-0"))
        with pytest.raises(SchedulingError, match="no disk"):
            placement.commit()
        assert stage.in_cache() == {}
        assert journal[-1] == "A.unreserve pod-0"
        assert stage.scheduler.queue.place(stage.pod("pod-0").uid) is Place.BACKOFF

    def test_waits_for_permission(self) -> None:
        stage = stage_with(plugin("Careful", permit=answering(Status.wait(60))))
        placement = stage.scheduler.place(stage.pod("pod-0"))
        assert placement.is_waiting
        with ThreadPoolExecutor(1) as elsewhere:
            bound = elsewhere.submit(placement.commit)
            for waiting in stage.scheduler.waiting_pods:
                waiting.allow("Careful")
            bound.result(PATIENCE)
        assert stage.pod("pod-0").node_name == "n"

    def test_permission_that_is_refused(self) -> None:
        stage = stage_with(plugin("Careful", permit=answering(Status.wait(60))))
        placement = stage.scheduler.place(stage.pod("pod-0"))
        for waiting in stage.scheduler.waiting_pods:
            waiting.reject("Careful", "not today")
        assert not placement.is_waiting
        with pytest.raises(FitError, match="not today"):
            placement.commit()
        assert stage.in_cache() == {}

    def test_only_once(self) -> None:
        stage = stage_with()
        placement = stage.scheduler.place(stage.pod("pod-0"))
        placement.commit()
        with pytest.raises(
            PlacementEndedError, match="the placement of pod default/pod-0 on node n has ended"
        ):
            placement.commit()
        placement.give_up()
        assert stage.pod("pod-0").node_name == "n"


class TestGiveUp:
    def test_frees_the_room_for_others(self) -> None:
        journal: list[str] = []
        stage = stage_with(witness("A", journal), pods=2)
        stage.scheduler.place(stage.pod("pod-0")).give_up()
        assert journal[-1] == "A.unreserve pod-0"
        stage.scheduler.place(stage.pod("pod-1")).commit()
        assert stage.pod("pod-1").node_name == "n"

    def test_is_what_the_end_of_a_block_does(self) -> None:
        stage = stage_with()
        with (
            pytest.raises(RuntimeError, match="on second thoughts"),
            stage.scheduler.place(stage.pod("pod-0")),
        ):
            raise RuntimeError("on second thoughts")
        assert stage.in_cache() == {}

    def test_the_queue_has_the_pod_again(self) -> None:
        stage = stage_with()
        stage.scheduler.place(stage.pod("pod-0")).give_up()
        assert stage.scheduler.run_until_idle() == 1
        assert stage.pod("pod-0").node_name == "n"

    def test_wakes_those_who_lacked_the_room(self) -> None:
        stage = stage_with(pods=2)
        held = stage.scheduler.place(stage.pod("pod-0"))
        stage.scheduler.run_until_idle()
        assert stage.scheduler.queue.place(stage.pod("pod-1").uid) is Place.UNSCHEDULABLE
        held.give_up()
        assert stage.scheduler.queue.place(stage.pod("pod-1").uid) is not Place.UNSCHEDULABLE

    def test_a_pod_that_the_cluster_does_not_have_leaves_nothing_behind(self) -> None:
        stage = stage_with(pods=0)
        with stage.scheduler.place(make_pod("thought").uid("thought").requests(cpu=1).build()) as placement:
            assert placement.node_name == "n"
        assert stage.in_cache() == {}
        assert stage.scheduler.queue.pending_pods()[0] == []

    def test_closing_the_scheduler_gives_up(self) -> None:
        stage = stage_with()
        placement = stage.scheduler.place(stage.pod("pod-0"))
        stage.scheduler.close()
        with pytest.raises(PlacementEndedError):
            placement.commit()
        assert stage.in_cache() == {}


class TestPreemption:
    def test_makes_room_for_the_next_time(self) -> None:
        stage = Stage(nodes=[SMALL], pods=[make_pod("low").requests(cpu=2).node("n").build()])
        stage.add(make_pod("high").priority(10).requests(cpu=2).build())
        with pytest.raises(FitError, match="1 Insufficient cpu") as caught:
            stage.scheduler.place(stage.pod("high"))
        assert caught.value.diagnosis.nominated_node_name == "n"
        stage.scheduler.place(stage.pod("high")).commit()
        assert stage.pod("high").node_name == "n"

    def test_not_for_a_pod_that_the_cluster_does_not_have(self) -> None:
        stage = Stage(nodes=[SMALL], pods=[make_pod("low").requests(cpu=2).node("n").build()])
        with pytest.raises(FitError, match=r"1 Insufficient cpu\.$"):
            stage.scheduler.place(make_pod("thought").priority(10).requests(cpu=2).build())
        assert stage.node_of("low") == "n"

    def test_only_where_it_is_wanted(self) -> None:
        stage = Stage(nodes=[SMALL], pods=[make_pod("low").requests(cpu=2).node("n").build()])
        stage.add(make_pod("high").priority(10).requests(cpu=2).build())
        with pytest.raises(FitError, match=r"1 Insufficient cpu\.$"):
            stage.scheduler.place(stage.pod("high"), preempt=False)
        assert stage.node_of("low") == "n"

    def test_a_held_pod_gives_way_at_once(self) -> None:
        stage = stage_with()
        held = stage.scheduler.place(stage.pod("pod-0"))
        stage.add(make_pod("high").priority(10).requests(cpu=2).build())
        with pytest.raises(FitError):
            stage.scheduler.place(stage.pod("high"))
        assert held.preempted == "preempted by DefaultPreemption"
        assert stage.scheduler.placements == ()
        stage.scheduler.place(stage.pod("high")).commit()
        assert stage.node_of("high") == "n"
        with pytest.raises(SchedulingError, match="preempted by DefaultPreemption"):
            held.commit()
        assert stage.node_of("pod-0") == ""

    def test_no_room_is_kept_for_a_pod_that_was_given_up(self) -> None:
        stage = Stage(nodes=[SMALL], pods=[make_pod("low").requests(cpu=2).node("n").build()])
        stage.add(make_pod("high").priority(10).requests(cpu=2).build())
        with pytest.raises(FitError):
            stage.scheduler.place(stage.pod("high"))
        stage.scheduler.place(stage.pod("high")).give_up()
        stage.add(make_pod("modest").requests(cpu=2).build())
        with stage.scheduler.place(stage.pod("modest")) as placement:
            assert placement.node_name == "n"

    def test_a_cluster_that_fails_meanwhile_costs_a_backoff(self, caplog: pytest.LogCaptureFixture) -> None:
        class Locked(InMemoryCluster):
            def delete(self, obj: Named) -> None:
                raise OSError("database is locked")

        stage = Stage(
            cluster=Locked(), nodes=[SMALL], pods=[make_pod("low").requests(cpu=2).node("n").build()]
        )
        stage.run(make_pod("high").priority(10).requests(cpu=2).build())
        assert stage.place("high") is Place.BACKOFF
        assert (
            'making room for default/high failed: running PostFilter plugin "DefaultPreemption": '
            "preemption: OSError: database is locked" in caplog.text
        )


class TestClustersThatLoseAnswers:
    def test_a_pod_that_was_bound_all_the_same_keeps_its_room(self) -> None:
        class Late(InMemoryCluster):
            """Binds, loses the answer, and tells nobody for a while."""

            def bind(self, pod: Pod, node_name: str) -> None:
                subscriptions, self._subscriptions = self._subscriptions, []
                super().bind(pod, node_name)
                self._subscriptions = subscriptions
                raise OSError("database is locked")

        stage = Stage(cluster=Late(), nodes=[SMALL], pods=[make_pod("a").requests(cpu=2).build()])
        with pytest.raises(SchedulingError, match="database is locked"):
            stage.scheduler.place(stage.pod("a")).commit()
        assert stage.node_of("a") == "n"
        with pytest.raises(FitError, match="1 Insufficient cpu"):
            stage.scheduler.place(make_pod("b").uid("b").requests(cpu=2).build())

    def test_events_that_can_not_be_recorded_cost_nothing(self) -> None:
        class Mute(InMemoryCluster):
            def record_event(
                self, regarding: Named, type: str, reason: str, message: str, related: Named | None = None
            ) -> None:
                raise OSError("no journal")

        stage = Stage(cluster=Mute(), nodes=[SMALL])
        assert stage.run(make_pod("a").requests(cpu=2).build(), make_pod("b").requests(cpu=2).build()) == 2
        assert sorted([stage.node_of("a"), stage.node_of("b")]) == ["", "n"]


class TestWhatIsRefused:
    def test_a_pod_that_is_held_already(self) -> None:
        stage = stage_with()
        stage.scheduler.place(stage.pod("pod-0"))
        with pytest.raises(PodInFlightError, match="pod default/pod-0 is being scheduled or bound"):
            stage.scheduler.place(stage.pod("pod-0"))

    def test_a_pod_that_is_bound_already(self) -> None:
        stage = stage_with()
        stage.scheduler.run_until_idle()
        with pytest.raises(SchedulingError, match="pod default/pod-0 is bound to node n already"):
            stage.scheduler.place(make_pod("pod-0").requests(cpu=2).build())

    def test_what_is_no_pod(self) -> None:
        with pytest.raises(TypeError, match="pod: expected a Pod, found 'default/pod-0'"):
            stage_with().scheduler.place("default/pod-0")  # type: ignore[arg-type]

    def test_a_scheduler_that_is_closed(self) -> None:
        stage = stage_with()
        stage.scheduler.close()
        with pytest.raises(SchedulingError, match="the scheduler is closed"):
            stage.scheduler.place(stage.pod("pod-0"))

    def test_a_pod_of_another_scheduler(self) -> None:
        stage = stage_with()
        with pytest.raises(ProfileError, match="no profile has the scheduler name 'mine'; there are"):
            stage.scheduler.place(make_pod("a").scheduler_name("mine").build())

    def test_a_gated_pod(self) -> None:
        stage = stage_with()
        with pytest.raises(SchedulingError, match="waiting for scheduling gates"):
            stage.scheduler.place(make_pod("a").scheduling_gate("quota").build())

    def test_an_empty_cluster(self) -> None:
        with pytest.raises(NoNodesAvailableError):
            Stage().scheduler.place(make_pod("a").build())

    def test_a_plugin_that_fails(self) -> None:
        stage = stage_with(plugin("Bad", filter=answering(Status.from_error("broken"))))
        with pytest.raises(SchedulingError, match="broken"):
            stage.scheduler.place(stage.pod("pod-0"))
        assert stage.in_cache() == {}

    def test_a_place_within_a_cycle(self) -> None:
        caught: list[type[BaseException]] = []

        def greedy() -> None:
            try:
                stage.scheduler.place(make_pod("b").build())
            except ConcurrentCycleError as error:
                caught.append(type(error))

        stage = stage_with(plugin("Greedy", pre_filter=greedy))
        stage.scheduler.place(stage.pod("pod-0"))
        assert caught == [ConcurrentCycleError]


class _Once(Plugin):
    """Reserves for each pod once, and never again."""

    name = "Once"

    def __init__(self, args: None, handle: Handle) -> None:
        super().__init__(args, handle)
        self.reserved: list[str] = []

    @hookimpl
    def reserve(self, pod: Pod) -> Status | None:
        if pod.name in self.reserved:
            return Status.unschedulable("not again")
        self.reserved.append(pod.name)
        return None


class TestHoldingAgain:
    def test_the_room_is_taken_again(self) -> None:
        cluster = InMemoryCluster(
            [make_node("n").capacity(cpu=4).build(), make_pod("p").requests(cpu=3).build()]
        )
        scheduler = Scheduler(cluster, clock=FakeClock())
        pod = cluster.list(Pod)[0]
        placement = scheduler.place(pod)
        placement.give_up()
        assert placement.hold_again().is_success
        assert list(scheduler.placements) == [placement]
        with pytest.raises(FitError):
            scheduler.place(make_pod("q").uid("q").requests(cpu=3).build())
        placement.commit()
        assert cluster.list(Pod)[0].node_name == "n"

    def test_a_plugin_that_refuses_is_named_and_the_place_is_held_without_it(self) -> None:
        registry = Registry()
        registry.register(_Once)
        profile = Profile([*default_profile().multi_point, EnabledPlugin("Once")])
        cluster = InMemoryCluster(
            [make_node("n").capacity(cpu=4).build(), make_pod("p").requests(cpu=3).build()]
        )
        scheduler = Scheduler(cluster, [profile], registry=registry, clock=FakeClock())
        placement = scheduler.place(cluster.list(Pod)[0])
        placement.give_up()
        status = placement.hold_again()
        assert (status.plugin, status.message) == ("Once", "not again")
        assert scheduler.cache.is_assumed(placement.pod)
