"""Binding cycles beside the scheduling of later pods: preemption and deletion reach them, and all of them end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime

import attrs
import pytest
from kschedfw_kubernetes.http_extender import HTTPExtender

from kschedfw import InMemoryCluster, Pod, PreBindPreFlightResult, Status, make_pod
from kschedfw.api.meta import Named
from kschedfw.api.pod import PodCondition
from kschedfw.config.extenders import ExtenderConfig
from kschedfw.scheduler.queue.protocol import Place
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.testing.waiting import PATIENCE
from tests.framework.support import PluginClass, answering, plugin
from tests.scheduler.stage import LaterExecutor, Stage, node, pod, with_default_plugins, witness
from tests.scheduler.test_extender import Helper


class Slow:
    """A plugin whose pre_bind takes as long as the test wants, for pods of a name."""

    def __init__(self, *names: str) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()

        def pre_bind(pod: Pod) -> None:
            if pod.name in names:
                self.begun.set()
                assert self.go_on.wait(PATIENCE)

        self.plugin: PluginClass = plugin("Slow", pre_bind=pre_bind)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as executor:
        yield executor


@attrs.define
class Closable(Helper):
    """An extender that nobody asks, and that has something to close."""

    filters: bool = False
    failure: Exception | None = None
    closed: int = 0

    def close(self) -> None:
        self.closed += 1
        if self.failure is not None:
            raise self.failure


class TestVictims:
    def test_one_in_pre_bind_is_not_deleted_but_comes_back(self, pool: ThreadPoolExecutor) -> None:
        journal: list[str] = []
        slow = Slow("low")
        stage = Stage(slow.plugin, witness("A", journal), nodes=[node(cpu=2)], executor=pool)
        stage.add(pod("low", cpu="2"))
        stage.scheduler.schedule_one()
        assert slow.begun.wait(PATIENCE)
        stage.add(pod("vip", cpu="2", priority=100))
        stage.scheduler.schedule_one()
        assert stage.pod("low").status.conditions == (), "no DisruptionTarget"
        slow.go_on.set()
        stage.scheduler.run_until_idle()
        assert stage.node_of("vip") == "n"
        assert stage.node_of("low") == ""
        assert stage.place("low") is Place.BACKOFF
        assert stage.condition("low")[1:] == ("SchedulerError", "preempted by DefaultPreemption")
        assert ("Normal", "Preempted", f"Preempted by pod {stage.pod('vip').uid} on node n") in stage.events(
            "low"
        )
        assert "A.unreserve low" in journal
        assert "A.bind low" not in journal
        stage.scheduler.close()

    def test_one_that_waits_for_a_thread_of_the_executor_neither(self) -> None:
        later = LaterExecutor()
        stage = Stage(nodes=[node(cpu=2)], executor=later)
        stage.add(pod("low", cpu="2"))
        stage.scheduler.schedule_one()
        stage.add(pod("vip", cpu="2", priority=100))
        stage.scheduler.schedule_one()
        later.run()
        stage.clock.advance(60)
        stage.scheduler.schedule_one()
        later.run()
        assert stage.node_of("vip") == "n"
        assert stage.place("low") is not None
        assert stage.node_of("low") == ""

    def test_one_that_waits_under_another_profile_is_rejected_not_deleted(self) -> None:
        journal: list[str] = []
        gate, other = witness("Gate", journal, permit=[Status.wait(600)]), witness("Other", journal)
        profiles = [with_default_plugins(gate), with_default_plugins(other, scheduler_name="other")]
        stage = Stage(gate, other, profiles=profiles, nodes=[node(cpu=2)])
        stage.run(pod("low", cpu="2"))
        assert stage.waiting() == ["low"]
        stage.run(make_pod("vip").requests(cpu="2").priority(100).scheduler_name("other").build())
        assert stage.waiting() == []
        assert stage.node_of("vip") == "n"
        assert stage.place("low") is Place.BACKOFF
        assert stage.condition("low")[2] == "waiting on permit for pod: preempted"

    def test_all_profiles_see_all_waiting_pods(self) -> None:
        profiles = [with_default_plugins(), with_default_plugins(scheduler_name="other")]
        one, two = Stage(profiles=profiles).scheduler.frameworks.values()
        assert one.handle.waiting_pods is two.handle.waiting_pods
        assert one.handle.pods_in_pre_bind is two.handle.pods_in_pre_bind


class WithFinalizers(InMemoryCluster):
    """Deleted pods stay, with a deletionTimestamp, until somebody really deletes them."""

    def begin_deletion(self, pod: Pod) -> None:
        present = self.get(Pod, pod.key)
        assert present is not None
        self.update(
            present.with_metadata(
                attrs.evolve(present.metadata, deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC))
            )
        )


class TestPodsThatAreBeingDeleted:
    def test_one_that_waits_for_permission_gives_up_its_room_at_once(self) -> None:
        journal: list[str] = []
        cluster = WithFinalizers()
        stage = Stage(
            witness("Gate", journal, permit=[Status.wait(600)]), cluster=cluster, nodes=[node(cpu=1)]
        )
        stage.run(pod("going"), pod("next"))
        assert stage.place("next") is Place.UNSCHEDULABLE
        cluster.begin_deletion(stage.pod("going"))
        assert stage.waiting() == []
        assert stage.in_cache() == {}
        assert "Gate.unreserve going" in journal
        stage.run(after=60)
        assert stage.node_of("next") == "n", "it was told"
        assert stage.node_of("going") == ""

    def test_one_in_pre_bind_is_forgotten_at_once(self, pool: ThreadPoolExecutor) -> None:
        cluster, slow = WithFinalizers(), Slow("going")
        stage = Stage(slow.plugin, cluster=cluster, nodes=[node(cpu=1)], executor=pool)
        stage.add(pod("going"), pod("next"))
        stage.scheduler.schedule_one()
        assert slow.begun.wait(PATIENCE)
        stage.scheduler.schedule_one()
        assert stage.place("next") is Place.UNSCHEDULABLE
        cluster.begin_deletion(stage.pod("going"))
        assert stage.in_cache() == {}
        assert stage.place("going") is None, "its binding cycle still has it"
        stage.clock.advance(60)
        stage.scheduler.schedule_one()
        slow.go_on.set()
        stage.scheduler.run_until_idle()
        assert stage.node_of("next") == "n"
        assert stage.node_of("going") == ""
        assert stage.in_cache() == {"n": {"next"}}
        stage.scheduler.close()

    def test_later_changes_of_it_announce_nothing_more(self) -> None:
        cluster = WithFinalizers()
        later = LaterExecutor()
        stage = Stage(cluster=cluster, nodes=[node(cpu=1)], executor=later)
        stage.add(pod("going"))
        stage.scheduler.schedule_one()
        cluster.begin_deletion(stage.pod("going"))
        assert stage.in_cache() == {}
        stage.add(pod("big", cpu="100"))
        stage.scheduler.schedule_one()
        assert stage.place("big") is Place.UNSCHEDULABLE
        cluster.patch_pod_status(stage.pod("going"), condition=PodCondition("Ready", "False"))
        assert stage.place("big") is Place.UNSCHEDULABLE
        later.run()


class TestNomination:
    """NominatedNodeNameForExpectation: others see where a pod will be that isn't bound soon."""

    def seen(self, **hooks: object) -> tuple[Stage, list[str]]:
        """The nominations that pre_bind finds in the cluster."""
        found: list[str] = []
        cluster = InMemoryCluster()

        def pre_bind(pod: Pod) -> None:
            present = cluster.get(Pod, pod.key)
            assert present is not None
            found.append(present.status.nominated_node_name)

        return Stage(plugin("A", pre_bind=pre_bind, **hooks), cluster=cluster, nodes=[node()]), found

    def test_of_a_pod_that_waits_at_permit(self) -> None:
        stage = Stage(witness("Gate", [], permit=[Status.wait(60)]), nodes=[node()])
        stage.run(pod())
        assert stage.pod().status.nominated_node_name == "n"
        assert stage.nominated("n") == [], "its room is taken already"
        (waiting,) = stage.scheduler.waiting_pods
        waiting.allow("Gate")
        assert stage.node_of() == "n"
        assert stage.pod().status.nominated_node_name == ""

    @pytest.mark.parametrize("hooks", [{}, {"pre_bind_pre_flight": answering(PreBindPreFlightResult())}])
    def test_of_a_pod_whose_pre_bind_has_work_to_do(self, hooks: dict[str, object]) -> None:
        stage, found = self.seen(**hooks)
        stage.run(pod())
        assert found == ["n"]
        assert stage.node_of() == "n"

    def test_not_of_one_that_is_bound_soon(self) -> None:
        nominated: list[str] = []

        class Watched(InMemoryCluster):
            def patch_pod_status(self, pod: Pod, **changes: object) -> None:
                nominated.append(str(changes.get("nominated_node_name")))
                super().patch_pod_status(pod, **changes)  # type: ignore[arg-type]  # passed on as it came

        skips = plugin(
            "A", pre_bind_pre_flight=answering(Status.skip()), pre_bind=answering(AssertionError("skipped"))
        )
        stage = Stage(skips, cluster=Watched(), nodes=[node()])
        stage.run(pod())
        assert stage.node_of() == "n"
        assert nominated == []

    def test_it_is_taken_back_if_the_binding_fails(self) -> None:
        stage = Stage(witness("A", [], pre_bind=[OSError("down")]), nodes=[node()])
        stage.run(pod())
        assert stage.place() is Place.BACKOFF
        assert stage.pod().status.nominated_node_name == ""
        assert stage.nominated("n") == []

    def test_a_cluster_that_does_not_take_it_is_no_reason_not_to_bind(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        class Refusing(InMemoryCluster):
            def patch_pod_status(self, pod: Pod, **_: object) -> None:
                raise PermissionError("no")

        stage = Stage(witness("A", []), cluster=Refusing(), nodes=[node()])
        stage.run(pod())
        assert stage.node_of() == "n"
        assert caplog.messages == ["can't nominate default/pod to node n: no"]

    def test_a_pre_flight_that_fails_costs_the_attempt(self) -> None:
        journal: list[str] = []
        broken = plugin("Broken", pre_bind_pre_flight=answering(OSError("down")), pre_bind=answering(None))
        stage = Stage(broken, witness("Gate", journal, permit=[Status.wait(60)]), nodes=[node()])
        stage.run(pod())
        _, reason, message = stage.condition()
        assert reason == "SchedulerError"
        assert message.startswith('running PreBindPreFlight "Broken": ')
        assert stage.waiting() == []
        assert stage.in_cache() == {}
        assert "Gate.unreserve pod" in journal


class TestExecutorsThatAreShutDown:
    @pytest.mark.parametrize("ending", ["close", "run_until_idle"])
    def test_cancelled_binding_cycles_end(self, ending: str) -> None:
        journal: list[str] = []
        slow = Slow("first")
        pool = ThreadPoolExecutor(1)
        stage = Stage(slow.plugin, witness("A", journal), nodes=[node()], executor=pool)
        stage.add(pod("first"), pod("second"), pod("third"))
        for _ in range(3):
            stage.scheduler.schedule_one()
        assert slow.begun.wait(PATIENCE)
        pool.shutdown(wait=False, cancel_futures=True)
        slow.go_on.set()
        ended = threading.Thread(target=getattr(stage.scheduler, ending), daemon=True)
        ended.start()
        ended.join(PATIENCE)
        assert not ended.is_alive()
        assert stage.node_of("first") == "n"
        for name in ("second", "third"):
            assert stage.condition(name)[1:] == ("SchedulerError", "the executor cancelled the binding cycle")
            assert f"A.unreserve {name}" in journal
        assert stage.in_cache() == {"n": {"first"}}
        stage.scheduler.close()

    def test_nobody_hangs_if_unreserve_lets_another_pod_go(self) -> None:
        """Its binding cycle goes on, on the executor that is being shut down, and that holds its lock."""
        stage: Stage

        def unreserve(pod: Pod) -> None:
            for waiting in stage.scheduler.waiting_pods:
                waiting.allow("Gang")

        def permit(pod: Pod) -> Status | None:
            return Status.wait(60) if pod.name == "sibling" else None

        slow = Slow("slow")
        pool = ThreadPoolExecutor(1)
        stage = Stage(
            plugin("Gang", permit=permit, unreserve=unreserve), slow.plugin, nodes=[node()], executor=pool
        )
        stage.run(pod("sibling"))
        stage.add(pod("slow"), pod("leader"))
        stage.scheduler.schedule_one()
        assert slow.begun.wait(PATIENCE)
        stage.scheduler.schedule_one()
        ending = threading.Thread(target=pool.shutdown, kwargs={"cancel_futures": True}, daemon=True)
        ending.start()
        closing = threading.Thread(target=stage.scheduler.close, daemon=True)
        closing.start()
        slow.go_on.set()
        for thread in (ending, closing):
            thread.join(PATIENCE)
            assert not thread.is_alive()
        assert stage.in_cache() == {"n": {"slow"}}


def broken(point: str, error: BaseException) -> PluginClass:
    """A plugin whose hook raises for the pod `unlucky`, once."""
    raised: list[str] = []

    def hook(pod: Pod) -> object:
        if pod.name == "unlucky" and not raised:
            raised.append(pod.name)
            raise error
        return {"score": 0, "bind": Status.skip()}.get(point)

    return plugin("Broken", **{point: hook})


POINTS = ["pre_filter", "filter", "pre_score", "score", "reserve", "permit", "pre_bind", "bind"]


class TestSystemExitInAPlugin:
    @pytest.mark.parametrize("threads", [0, 1])
    @pytest.mark.parametrize("point", POINTS)
    def test_exit_of_a_plugin_fails_one_attempt_of_one_pod(self, point: str, threads: int) -> None:
        pool = ThreadPoolExecutor(threads) if threads else None
        stage = Stage(broken(point, SystemExit(3)), nodes=[node("a"), node("b")], executor=pool)
        assert stage.run(pod("unlucky"), pod("lucky")) == 2
        assert stage.node_of("lucky")
        assert stage.condition("unlucky")[1] == "SchedulerError"
        assert "SystemExit: 3" in stage.condition("unlucky")[2]
        assert "unlucky*" not in set().union(*stage.in_cache().values())
        assert stage.run(after=2) == 1
        assert stage.node_of("unlucky")
        stage.scheduler.close()
        if pool is not None:
            pool.shutdown()

    def test_in_a_queue_sort_pods_are_taken_as_they_come(self) -> None:
        exits = plugin("Exits", queue_sort=answering(SystemExit()))
        stage = Stage(exits, nodes=[node()], queue_sort="Exits")
        assert stage.run(pod("a"), pod("b"), pod("c")) == 3


class Stopping(BaseException):
    """What ends everything, as KeyboardInterrupt does."""


class TestInterruptions:
    @pytest.mark.parametrize("error", [KeyboardInterrupt, Stopping])
    @pytest.mark.parametrize("point", POINTS)
    def test_interruption_propagates_and_no_pod_stays_assumed(
        self, point: str, error: type[BaseException]
    ) -> None:
        journal: list[str] = []
        stage = Stage(broken(point, error()), witness("A", journal), nodes=[node("a"), node("b")])
        stage.add(pod("unlucky"))
        with pytest.raises(error):
            stage.scheduler.run_until_idle()
        assert stage.in_cache() == {}
        assert journal.count("A.unreserve unlucky") == (point in POINTS[POINTS.index("reserve") :])
        assert not stage.scheduler.queue.in_flight_pods()
        assert stage.pod("unlucky").status.nominated_node_name == ""
        told = error is not KeyboardInterrupt
        assert len(stage.events("unlucky")) == told, "Ctrl-C says nothing about the pod"
        assert stage.run(after=2) == 1, "it can go on from here"
        assert stage.node_of("unlucky")

    @pytest.mark.parametrize("threads", [0, 1])
    @pytest.mark.parametrize("error", [KeyboardInterrupt, Stopping])
    def test_they_do_not_undo_a_binding(self, error: type[BaseException], threads: int) -> None:
        journal: list[str] = []
        pool = ThreadPoolExecutor(threads) if threads else None
        stage = Stage(
            witness("A", journal), broken("post_bind", error()), nodes=[node("a"), node("b")], executor=pool
        )
        stage.add(pod("unlucky"))
        with nullcontext() if threads else pytest.raises(error):
            stage.scheduler.run_until_idle()
        stage.scheduler.close()
        assert "A.post_bind unlucky" in journal
        assert "A.unreserve unlucky" not in journal
        assert stage.in_cache() == {stage.node_of("unlucky"): {"unlucky"}}
        assert [reason for _, reason, _ in stage.events("unlucky")] == ["Scheduled"]

    @pytest.mark.parametrize("error", [KeyboardInterrupt, Stopping])
    def test_run_closes(self, error: type[BaseException]) -> None:
        extender = Closable()
        stage = Stage(broken("filter", error()), nodes=[node("a"), node("b")], extenders=[extender])
        stage.add(pod("unlucky"))
        with pytest.raises(error):
            stage.scheduler.run()
        assert extender.closed == 1

    def test_a_system_exit_from_elsewhere_ends_run_and_leaves_nothing_assumed(self) -> None:
        """For example from a signal handler, while no plugin runs."""

        class Ends(InMemoryCluster):
            def record_event(self, regarding: Named, *_: object) -> None:
                raise SystemExit(0)

        stage = Stage(nodes=[node()], cluster=Ends())
        stage.add(pod("big", cpu="100"))
        with pytest.raises(SystemExit):
            stage.scheduler.run()
        assert stage.in_cache() == {}

    def test_so_it_does_while_a_pod_is_bound(self) -> None:
        class Ends(InMemoryCluster):
            def record_event(self, regarding: Named, *_: object) -> None:
                raise SystemExit(0)

        stage = Stage(nodes=[node()], cluster=Ends())
        stage.add(pod())
        with pytest.raises(SystemExit):
            stage.scheduler.run_until_idle()
        assert stage.in_cache() == {"n": {"pod"}}
        assert not stage.scheduler.queue.in_flight_pods()

    def test_on_an_executor_they_end_the_binding_cycle(self, pool: ThreadPoolExecutor) -> None:
        stage = Stage(broken("pre_bind", Stopping()), nodes=[node()], executor=pool)
        stage.run(pod("unlucky"))
        assert stage.condition("unlucky")[1:] == ("SchedulerError", "Stopping")
        assert stage.in_cache() == {}
        assert stage.run(after=2) == 1
        assert stage.node_of("unlucky") == "n"
        stage.scheduler.close()


class TestClosing:
    def test_closes_what_extenders_have_to_close_whatever_they_raise(self) -> None:
        first, second = Closable(), Closable(failure=OSError("reset"))
        stage = Stage(nodes=[node()], extenders=[first, second, Helper(filters=False)])
        with pytest.raises(OSError, match="reset"):
            stage.scheduler.close()
        assert (first.closed, second.closed) == (1, 1)

    def test_an_http_extender_lets_go_of_its_connections(self) -> None:
        extender = HTTPExtender(ExtenderConfig(url_prefix="http://127.0.0.1:9", filter_verb="filter"))
        scheduler = Scheduler(InMemoryCluster(), extenders=[extender])
        assert not extender.is_closed
        scheduler.close()
        assert extender.is_closed
        scheduler.close()


class Gathering(InMemoryCluster):
    """A cluster that binds the pods of a block with the first call, and can't bind those that are `refused`."""

    def __init__(self, *refused: str) -> None:
        super().__init__()
        self.refused = refused
        self.together: list[list[str]] = []
        self._announced: list[Pod] = []
        self._bound: set[str] = set()

    @contextmanager
    def binding_together(self, pods: Sequence[Pod]) -> Iterator[None]:
        self._announced = list(pods)
        self.together.append([each.name for each in pods])
        yield

    def bind(self, pod: Pod, node_name: str) -> None:
        if pod.name in self.refused:
            raise ValueError("refused")
        first, self._announced = self._announced, []
        for each in first:
            if each.name not in self.refused:
                super().bind(each, each.node_name)
                self._bound.add(each.uid)
        if pod.uid not in self._bound:
            super().bind(pod, node_name)


class TestTogether:
    def bound(
        self, cluster: InMemoryCluster, *plugins: PluginClass, extenders: Sequence[Helper] = ()
    ) -> Stage:
        later = LaterExecutor()
        nodes = [node(cpu=40)]
        stage = Stage(*plugins, nodes=nodes, cluster=cluster, executor=later, extenders=extenders)
        stage.add(*(pod(name) for name in "abc"))
        for _ in "abc":
            stage.scheduler.schedule_one()
        assert len(later.tasks) == 1, "a task takes all that have come when it begins"
        later.run()
        return stage

    def test_pods_whose_cycles_wait_for_a_thread_are_bound_together(self) -> None:
        cluster = Gathering()
        stage = self.bound(cluster)
        assert cluster.together == [["a", "b", "c"]]
        assert stage.in_cache() == {"n": {"a", "b", "c"}}
        assert [stage.events(name)[0][1] for name in "abc"] == ["Scheduled"] * 3

    def test_no_more_than_three_tasks_wait_for_bindings_and_the_last_pod_is_bound_all_the_same(self) -> None:
        permits, began = threading.Semaphore(0), threading.Semaphore(0)

        class Waiting(Gathering):
            @contextmanager
            def binding_together(self, pods: Sequence[Pod]) -> Iterator[None]:
                self.together.append([each.name for each in pods])
                began.release()
                assert permits.acquire(timeout=PATIENCE)
                yield

        tasks: list[Callable[[], None]] = []

        class Threads:
            def submit(self, task: Callable[[], None]) -> None:
                tasks.append(task)
                threading.Thread(target=task, daemon=True).start()

        cluster = Waiting()
        stage = Stage(nodes=[node(cpu=40)], cluster=cluster, executor=Threads())
        for number, name in enumerate("abcde"):
            stage.add(pod(name))
            stage.scheduler.schedule_one()
            if number < 3:
                assert began.acquire(timeout=PATIENCE)
        assert [*map("".join, cluster.together)] == ["a", "b", "c"]
        assert len(tasks) == 3
        for _ in range(4):
            permits.release()
        stage.scheduler.run_until_idle()
        assert [*map("".join, cluster.together)] == ["a", "b", "c", "de"]
        assert {stage.node_of(name) for name in "abcde"} == {"n"}

    def test_one_that_is_refused_comes_back_and_the_others_are_bound(self) -> None:
        stage = self.bound(Gathering("b"))
        assert [stage.node_of(name) for name in "abc"] == ["n", "", "n"]
        assert stage.place("b") is Place.BACKOFF

    @pytest.mark.parametrize("hook", ["pre_bind", "post_bind", "bind"])
    def test_pods_are_bound_one_by_one_if_a_plugin_has_more_to_do(self, hook: str) -> None:
        cluster = Gathering()
        answer = Status.skip() if hook == "bind" else None
        stage = self.bound(cluster, plugin("Busy", **{hook: answering(answer)}))
        assert cluster.together == []
        assert stage.in_cache() == {"n": {"a", "b", "c"}}

    def test_pods_are_bound_one_by_one_if_there_are_extenders(self) -> None:
        cluster = Gathering()
        self.bound(cluster, extenders=[Closable()])
        assert cluster.together == []

    def test_one_with_more_to_do_is_left_to_another_task(self) -> None:
        cluster = Gathering()
        before: list[list[str]] = []
        busy = plugin(
            "Busy",
            pre_bind=lambda pod: before.extend(cluster.together),
            pre_bind_pre_flight=lambda pod: PreBindPreFlightResult(skip=pod.name != "b"),
        )
        stage = self.bound(cluster, busy)
        assert cluster.together == before == [["a", "c"]]
        assert [stage.node_of(name) for name in "ac"] == ["n", "n"]
