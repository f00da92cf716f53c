"""The loop: which pods are taken up, by whose profile, on which threads, and how it ends."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import attrs
import pytest

from kschedfw import (
    InMemoryCluster,
    Pod,
    Status,
    make_pod,
)
from kschedfw.framework.errors import ProfileError
from kschedfw.framework.runtime.framework import Framework
from kschedfw.scheduler.queue.protocol import Place
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.testing import FakeClock
from kschedfw.testing.waiting import PATIENCE
from tests.framework.support import answering, plugin
from tests.scheduler.stage import (
    LaterExecutor,
    Stage,
    node,
    pod,
    with_default_plugins,
    witness,
)

MINUTE = 60.0


class TestProfiles:
    def test_without_any_it_schedules_as_kube_scheduler_does_by_default(self) -> None:
        cluster = InMemoryCluster([node(), pod()])
        scheduler = Scheduler(cluster, clock=FakeClock())
        assert scheduler.run_until_idle() == 1
        assert [each.node_name for each in cluster.list(Pod)] == ["n"]

    def test_each_pod_is_scheduled_by_the_profile_that_it_names(self) -> None:
        journal: list[str] = []
        first, second = witness("First", journal), witness("Second", journal)
        profiles = [
            with_default_plugins(first),
            with_default_plugins(second, scheduler_name="other"),
        ]
        stage = Stage(first, second, profiles=profiles, nodes=[node()])
        stage.run(pod("a"), make_pod("b").scheduler_name("other").build())
        assert [line for line in journal if "reserve" in line] == ["First.reserve a", "Second.reserve b"]
        assert stage.in_cache() == {"n": {"a", "b"}}

    def test_pods_of_other_schedulers_are_not_touched_but_count_once_bound(self) -> None:
        stage = Stage(nodes=[node(cpu=1)])
        foreign = make_pod("foreign").scheduler_name("somebody").requests(cpu="1").build()
        version = stage.cluster.add(foreign).metadata.resource_version
        assert stage.run() == 0
        assert stage.pod("foreign").metadata.resource_version == version
        assert stage.events("foreign") == []
        stage.cluster.bind(stage.pod("foreign"), "n")
        stage.run(pod())
        assert stage.place() is Place.UNSCHEDULABLE

    def test_two_profiles_can_not_have_the_same_scheduler_name(self) -> None:
        profile = with_default_plugins()
        with pytest.raises(
            ProfileError, match="two have the scheduler name 'default-scheduler'; give each its own"
        ):
            Stage(profiles=[profile, profile])

    def test_there_must_be_one(self) -> None:
        with pytest.raises(ProfileError, match="profiles: expected at least one, found none"):
            Stage(profiles=[])


class TestSkipping:
    def test_a_pod_that_is_being_deleted_is_not_scheduled(self) -> None:
        stage = Stage(nodes=[node()])
        doomed = pod()
        meta = attrs.evolve(doomed.metadata, deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC))
        assert stage.run(attrs.evolve(doomed, metadata=meta)) == 1
        assert stage.events() == [("Warning", "FailedScheduling", "skip schedule deleting pod: default/pod")]
        assert stage.node_of() == ""
        assert not stage.scheduler.queue.in_flight_pods()

    def test_a_pod_that_is_assumed_already_is_not_scheduled_again(self) -> None:
        later = LaterExecutor()
        stage = Stage(nodes=[node()], executor=later)
        stage.add(pod())
        stage.scheduler.schedule_one()
        stage.scheduler.queue.done(stage.pod().uid)
        stage.scheduler.queue.add(stage.pod())
        assert stage.scheduler.schedule_one()
        assert len(later.tasks) == 1
        assert stage.place() is None

    def test_a_pod_whose_profile_is_gone_is_dropped(self) -> None:
        stage = Stage(nodes=[node()])
        stage.scheduler.queue.add(make_pod("foreign").uid("f").scheduler_name("somebody").build())
        assert stage.run() == 1
        assert stage.scheduler.queue.place("f") is None

    def test_a_pod_that_is_in_the_cache_already_fails_with_an_error(self) -> None:
        # The cluster's event about its binding was missed by the queue.
        stage = Stage(nodes=[node()])
        stage.add(pod())
        stage.scheduler.cache.add_pod(stage.pod().bound_to("n"))
        stage.run()
        uid = stage.pod().uid
        assert stage.condition()[1:] == (
            "SchedulerError",
            f"pod default/pod ({uid}) is in the cache, so can't be assumed",
        )


class TestPermit:
    def held(
        self, timeout: float = 30.0, *, executor: LaterExecutor | ThreadPoolExecutor | None = None
    ) -> tuple[Stage, list[str]]:
        """A pod that waits for permission."""
        journal: list[str] = []
        gate = witness("Gate", journal, permit=[Status.wait(timeout)])
        stage = Stage(gate, nodes=[node()], executor=executor)
        if isinstance(executor, LaterExecutor):
            stage.add(pod())
            assert stage.scheduler.schedule_one()
            executor.run()
        else:
            assert stage.run(pod()) == 1
        assert stage.waiting() == ["pod"]
        assert stage.in_cache() == {"n": {"pod*"}}
        assert stage.place() is Place.IN_FLIGHT
        return stage, journal

    def framework(self, stage: Stage) -> Framework:
        return stage.scheduler.frameworks["default-scheduler"]

    def test_a_pod_that_is_allowed_goes_on_at_once(self) -> None:
        stage, journal = self.held()
        (waiting,) = self.framework(stage).waiting_pods
        waiting.allow("Gate")
        assert stage.node_of() == "n"
        assert stage.waiting() == []
        assert journal[-1] == "Gate.post_bind pod"

    def test_a_pod_that_is_rejected_lets_go(self) -> None:
        stage, journal = self.held()
        (waiting,) = self.framework(stage).waiting_pods
        waiting.reject("Gate", "no quorum")
        assert journal[-1] == "Gate.unreserve pod"
        assert stage.condition() == ("False", "Unschedulable", "0/1 nodes are available: 1 no quorum.")
        assert stage.in_cache() == {}
        assert stage.place() is Place.UNSCHEDULABLE

    @pytest.mark.parametrize(
        ("timeout", "longest", "text"), [(30.0, 30.0, "30s"), (3600.0, 15 * MINUTE, "15m0s")]
    )
    def test_time_ends_the_wait(self, timeout: float, longest: float, text: str) -> None:
        stage, journal = self.held(timeout)
        stage.clock.advance(longest - 1)
        stage.scheduler.tick()
        assert stage.waiting() == ["pod"]
        stage.clock.advance(1)
        stage.scheduler.tick()
        assert stage.waiting() == []
        assert journal[-1] == "Gate.unreserve pod"
        assert stage.condition()[2] == (
            f"0/1 nodes are available: 1 rejected due to timeout after waiting {text} at plugin Gate."
        )

    def test_others_are_scheduled_meanwhile_and_it_occupies_no_thread(self) -> None:
        with ThreadPoolExecutor(1) as only_thread:
            stage, _ = self.held(executor=only_thread)
            stage.run(pod("other"))
            assert stage.node_of("other") == "n"
            assert stage.waiting() == ["pod"]
            stage.scheduler.close()

    @pytest.mark.parametrize("inline", [True, False])
    def test_a_pod_that_is_deleted_while_it_waits_lets_go_of_everything(self, inline: bool) -> None:
        later = None if inline else LaterExecutor()
        stage, journal = self.held(executor=later)
        stage.delete("pod")
        assert stage.in_cache() == {}
        if later is not None:
            later.run()
        assert journal[-1] == "Gate.unreserve pod"
        assert stage.waiting() == []
        assert not stage.scheduler.queue.in_flight_pods()
        assert stage.scheduler.queue.pending_pods()[0] == []
        assert stage.run(after=MINUTE) == 0

    def test_the_end_of_the_scheduler_ends_the_wait(self) -> None:
        stage, journal = self.held()
        stage.scheduler.close()
        assert journal[-1] == "Gate.unreserve pod"
        assert stage.condition()[2] == "0/1 nodes are available: 1 the scheduler is shutting down."


class TestBindingsElsewhere:
    def test_scheduling_goes_on_while_bindings_are_under_way(self) -> None:
        later = LaterExecutor()
        stage = Stage(nodes=[node(cpu=2)], executor=later)
        stage.add(pod("a"), pod("b"), pod("c"))
        for _ in range(3):
            assert stage.scheduler.schedule_one()
        assert not stage.scheduler.schedule_one()
        # Room that is only assumed is taken all the same.
        assert stage.in_cache() == {"n": {"a*", "b*"}}
        assert stage.place("c") is Place.UNSCHEDULABLE
        later.run()
        assert stage.in_cache() == {"n": {"a", "b"}}

    def test_on_a_thread_pool(self) -> None:
        both_bind = threading.Barrier(2, timeout=PATIENCE)

        def meet() -> None:
            both_bind.wait()

        with ThreadPoolExecutor(2) as pool:
            stage = Stage(plugin("Meet", pre_bind=meet), nodes=[node()], executor=pool)
            assert stage.run(pod("a"), pod("b")) == 2
            assert stage.in_cache() == {"n": {"a", "b"}}
            stage.scheduler.close()

    def test_run_until_idle_waits_for_bindings_that_may_bring_work(self) -> None:
        journal: list[str] = []
        with ThreadPoolExecutor(1) as pool:
            stage = Stage(witness("A", journal, bind=[OSError("down")]), nodes=[node(cpu=1)], executor=pool)
            # The second fits only because the binding of the first has failed.
            assert stage.run(pod("first"), pod("second")) >= 2
            assert stage.node_of("second") == "n"
            stage.scheduler.close()

    def test_close_waits_for_them(self) -> None:
        later = LaterExecutor()
        stage = Stage(nodes=[node()], executor=later)
        stage.add(pod())
        stage.scheduler.schedule_one()
        closing = threading.Thread(target=stage.scheduler.close, daemon=True)
        closing.start()
        closing.join(0.05)
        assert closing.is_alive()
        later.run()
        closing.join(PATIENCE)
        assert not closing.is_alive()
        assert stage.node_of() == "n"

    @pytest.mark.parametrize("waits", [True, False])
    def test_an_executor_that_takes_no_more_work_costs_the_attempt(self, waits: bool) -> None:
        journal: list[str] = []
        pool = ThreadPoolExecutor(1)
        pool.shutdown()
        answers = {"permit": Status.wait(30)} if waits else {}
        stage = Stage(witness("A", journal, **answers), nodes=[node()], executor=pool)
        stage.run(pod(), after=0)
        stage.run(after=30)
        assert "A.unreserve pod" in journal
        assert stage.condition() == (
            "False",
            "SchedulerError",
            "RuntimeError: cannot schedule new futures after shutdown",
        )
        assert stage.in_cache() == {}
        assert stage.waiting() == []
        stage.scheduler.close()

    def test_an_assumed_pod_that_is_never_confirmed_expires(self, caplog: pytest.LogCaptureFixture) -> None:
        liar = plugin("Liar", bind=answering(None))
        stage = Stage(liar, nodes=[node()], assumed_pod_ttl=30)
        stage.run(pod())
        assert stage.in_cache() == {"n": {"pod*"}}
        stage.run(after=30)
        assert stage.in_cache() == {}
        assert caplog.messages == ["pod default/pod expired: its binding was never confirmed"]
        stage.scheduler.events.resync()
        assert stage.place() is Place.ACTIVE


class TestPluginsThatRaise:
    @pytest.mark.parametrize(
        "point",
        ["pre_filter", "filter", "pre_score", "score", "reserve", "permit", "pre_bind", "bind"],
    )
    def test_it_costs_one_attempt_of_one_pod(self, point: str) -> None:
        failed: list[str] = []

        def once(pod: Pod) -> object:
            if pod.name == "unlucky" and not failed:
                failed.append(pod.name)
                raise RuntimeError("surprise")
            return {"score": 0, "bind": Status.skip()}.get(point)

        stage = Stage(plugin("Moody", **{point: once}), nodes=[node("a"), node("b")])
        assert stage.run(pod("unlucky"), pod("lucky")) == 2
        assert stage.node_of("lucky")
        assert stage.condition("unlucky")[1] == "SchedulerError"
        assert stage.run(after=2) == 1
        assert stage.node_of("unlucky")

    def test_pre_enqueue_holds_the_pod_back_and_says_so(self, caplog: pytest.LogCaptureFixture) -> None:
        stage = Stage(plugin("Broken", pre_enqueue=answering(OSError("down"))), nodes=[node()])
        assert stage.run(pod()) == 0
        assert stage.place() is Place.GATED
        status, reason, message = stage.condition()
        assert (status, reason) == ("False", "SchedulerError")
        assert message.startswith('running PreEnqueue plugin "Broken": ')
        assert message.endswith("down")
        assert stage.events() == [("Warning", "FailedScheduling", message)]
        assert caplog.messages == [f"default/pod is gated: {message}"]
        assert "OSError: down" in caplog.text

    def test_it_is_said_once_and_the_pod_is_tried_again_in_time(self) -> None:
        asked: list[str] = []

        def pre_enqueue(pod: Pod) -> None:
            asked.append(pod.name)
            if len(asked) < 4:
                raise OSError("down")

        stage = Stage(plugin("Moody", pre_enqueue=pre_enqueue), nodes=[node()])
        stage.run(pod())
        stage.run(node("another"))
        assert (len(asked), len(stage.events())) == (3, 1), "its own condition, and the node"
        assert [event.count for event in stage.cluster.events] == [1]
        assert stage.run(after=5 * MINUTE + 1) == 1
        assert stage.node_of()

    def test_a_message_that_differs_each_time_ends_nothing(self) -> None:
        asked: list[str] = []

        def pre_enqueue(pod: Pod) -> None:
            asked.append(pod.name)
            raise OSError(f"down for the {len(asked)}th time")

        stage = Stage(plugin("Moody", pre_enqueue=pre_enqueue), nodes=[node()])
        assert stage.run(pod()) == 0
        assert "down for the" in stage.condition()[2]

    def test_a_pre_enqueue_that_refuses_has_nothing_to_explain(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        stage = Stage(plugin("Gate", pre_enqueue=answering(Status.pending("not yet"))), nodes=[node()])
        assert stage.run(pod()) == 0
        assert (stage.events(), caplog.messages) == ([], [])

    def test_what_nobody_expects_gives_back_what_was_assumed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        journal: list[str] = []
        stage = Stage(witness("A", journal, permit=[Status.wait(30)]), nodes=[node()])

        def fail(_: object) -> None:
            raise MemoryError

        with monkeypatch.context() as patched:
            patched.setattr(stage.scheduler.queue, "activate", fail)
            stage.run(pod())
        assert journal[-1] == "A.unreserve pod"
        assert stage.in_cache() == {}
        assert stage.waiting() == []
        assert stage.run(after=2) == 1
        assert stage.node_of() == "n"

    def test_nor_does_it_lose_count_of_bindings_if_giving_up_fails(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        stage = Stage(plugin("Broken", bind=answering(OSError("down"))), nodes=[node()])

        def fail(*_: object) -> None:
            raise MemoryError("no room")

        monkeypatch.setattr(stage.scheduler.queue, "move_all_to_active_or_backoff", fail)
        stage.cluster.add(pod())
        stage.scheduler.schedule_one()
        assert "default/pod couldn't be given back" in caplog.text
        stage.scheduler.close()
