"""`run` on a thread of its own: what ends it, what it notices by itself, and what it survives."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from kschedfw import (
    InMemoryCluster,
    Pod,
    Registry,
    Status,
)
from kschedfw.framework.clock import SystemClock
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.testing import FakeClock
from kschedfw.testing.waiting import PATIENCE
from tests.framework.support import answering, plugin
from tests.scheduler.stage import (
    Stage,
    node,
    pod,
    with_default_plugins,
    witness,
)


class Running:
    """A scheduler that runs on a thread of its own."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._changed = threading.Condition()
        self._unwatch = stage.cluster.watch(self._notify)
        self.thread = threading.Thread(target=stage.scheduler.run, daemon=True)

    def __enter__(self) -> Running:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stage.scheduler.stop()
        self.thread.join(PATIENCE)
        self._unwatch()
        assert not self.thread.is_alive()

    def _notify(self, _: object) -> None:
        with self._changed:
            self._changed.notify_all()

    def until_bound(self, *names: str) -> None:
        with self._changed:
            assert self._changed.wait_for(
                lambda: all(self.stage.node_of(name) for name in names), PATIENCE
            ), f"not bound: {names}"


class TestRun:
    def test_it_schedules_what_comes_until_it_is_stopped(self) -> None:
        stage = Stage(nodes=[node()])
        with Running(stage) as running:
            stage.add(pod("a"))
            running.until_bound("a")
            stage.add(pod("b"))
            running.until_bound("b")
        stage.add(pod("late"))
        assert stage.node_of("late") == ""

    def test_it_wakes_up_at_the_times_that_plugins_name(self) -> None:
        """On real time, and though it sleeps because there is nothing else to do."""
        clock = SystemClock()
        opens = clock.now() + 0.2

        def pre_filter(pod: Pod) -> Status | None:
            return None if clock.now() >= opens else Status.unresolvable("closed", retry_at=opens)

        registry = Registry()
        profile = with_default_plugins(registry.register(plugin("Door", pre_filter=pre_filter)))
        cluster = InMemoryCluster([node()])
        scheduler = Scheduler(cluster, [profile], registry=registry, max_backoff=0.0)
        bound = threading.Event()
        cluster.watch(lambda event: bound.set() if getattr(event.object, "node_name", "") else None)
        thread = threading.Thread(target=scheduler.run, daemon=True)
        thread.start()
        cluster.add(pod())
        assert bound.wait(PATIENCE)
        assert clock.now() >= opens
        scheduler.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()

    def test_with_bindings_on_a_pool_it_ends_when_they_have(self) -> None:
        begun, go_on = threading.Event(), threading.Event()

        def slow(pod: Pod) -> None:
            begun.set()
            assert go_on.wait(PATIENCE)

        with ThreadPoolExecutor(2) as pool:
            stage = Stage(plugin("Slow", pre_bind=slow), nodes=[node()], executor=pool)
            with Running(stage) as running:
                stage.add(pod())
                assert begun.wait(PATIENCE)
                stage.scheduler.stop()
                running.thread.join(0.05)
                assert running.thread.is_alive()
                go_on.set()
            assert stage.node_of() == "n"

    def test_it_notices_by_itself_that_a_wait_for_permission_is_over(self) -> None:
        journal: list[str] = []
        asked = threading.Event()

        def permit(pod: Pod) -> Status:
            asked.set()
            return Status.wait(30)

        stage = Stage(plugin("Gate", permit=permit), witness("A", journal), nodes=[node()])
        settled = threading.Event()
        with Running(stage) as running:
            stage.add(pod())
            assert asked.wait(PATIENCE)
            while not stage.waiting():
                settled.wait(0.001)
            for _ in range(1000):
                if "A.unreserve pod" in journal:
                    break
                stage.clock.advance(30)
                settled.wait(0.01)
            assert running.thread.is_alive()
        assert "A.unreserve pod" in journal

    @pytest.mark.parametrize("inline", [True, False])
    def test_it_notices_by_itself_that_an_assumed_pod_has_expired(self, inline: bool) -> None:
        go_on, bound, pause = threading.Event(), threading.Event(), threading.Event()

        def bind() -> None:
            assert go_on.wait(PATIENCE)

        def post_bind() -> None:
            bound.set()

        liar = plugin("Liar", bind=bind, post_bind=post_bind)
        with ThreadPoolExecutor(1) as pool:
            stage = Stage(
                liar, nodes=[node()], executor=None if inline else pool, assumed_pod_ttl=30, pods=[pod()]
            )
            with Running(stage):
                go_on.set()
                assert bound.wait(PATIENCE)
                for _ in range(1000):
                    if not stage.in_cache():
                        break
                    stage.clock.advance(30)
                    pause.wait(0.01)
                assert stage.in_cache() == {}

    def test_a_signal_handler_may_stop_it_at_the_worst_moment(self) -> None:
        """It has looked for work, but doesn't wait yet, so that nobody can wake it."""

        class Interrupted(FakeClock):
            def wait_until(self, condition: threading.Condition, deadline: float) -> None:
                scheduler.stop()
                self.advance(deadline - self.now())

        scheduler = Scheduler(InMemoryCluster(), clock=Interrupted())
        thread = threading.Thread(target=scheduler.run, daemon=True)
        thread.start()
        thread.join(PATIENCE)
        assert not thread.is_alive()

    def test_what_a_queue_sort_raises_does_not_end_it(self, caplog: pytest.LogCaptureFixture) -> None:
        broken = plugin("Broken", queue_sort=answering(ZeroDivisionError("oops")))
        stage = Stage(broken, nodes=[node()], queue_sort="Broken", pods=[pod("a"), pod("b"), pod("c")])
        with Running(stage) as running:
            running.until_bound("a", "b", "c")
        assert "queue sort failed on pods" in caplog.text

    def test_nor_does_an_event_that_the_cluster_does_not_take(self, caplog: pytest.LogCaptureFixture) -> None:
        class Moody(InMemoryCluster):
            def record_event(self, *_: object) -> None:
                raise OSError("full")

        stage = Stage(nodes=[node()], cluster=Moody())
        with Running(stage) as running:
            stage.add(pod("big", cpu="100"))
            stage.add(pod("small"))
            running.until_bound("small")
        assert "can't record event FailedScheduling of default/big: full" in caplog.text

    def test_nor_does_anything_else_that_it_can_not_foresee(
        self, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stage = Stage(nodes=[node()])
        tick, broken = stage.scheduler.tick, iter([True])

        def tick_that_breaks_once() -> None:
            if next(broken, False):
                raise ZeroDivisionError("oops")
            tick()

        monkeypatch.setattr(stage.scheduler, "tick", tick_that_breaks_once)
        with Running(stage) as running:
            stage.add(pod("small"))
            running.until_bound("small")
        assert "an attempt failed in a way that it shouldn't" in caplog.text
