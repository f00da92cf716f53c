"""Cycles are one after another: whoever begins a second one at the same time is told."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from random import Random

import attrs
import pytest

from kschedfw import (
    Cache,
    CycleState,
    FitError,
    Framework,
    GenericScheduler,
    InMemoryCluster,
    Parallelizer,
    Parts,
    Pod,
    Registry,
    Snapshot,
    default_profile,
    make_pod,
)
from kschedfw.scheduler import ConcurrentCycleError
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.testing.waiting import PATIENCE
from tests.framework.support import plugin
from tests.scheduler.stage import Stage, node, pod


@attrs.define
class ByHand:
    """The parts of a scheduler, put together by hand, over nodes with room for one pod each."""

    cache: Cache
    framework: Framework
    scheduler: GenericScheduler

    @classmethod
    def over(cls, nodes: int) -> ByHand:
        cache, snapshot = Cache(), Snapshot()
        framework = Framework(
            Registry(),
            default_profile(),
            Parts(InMemoryCluster(), snapshot=snapshot, parallelizer=Parallelizer(1)),
        )
        for index in range(nodes):
            cache.add_node(node(f"n{index}", cpu=1))
        return cls(cache, framework, GenericScheduler(cache, snapshot, random=Random(0)))

    def decide(self, pod: Pod) -> Pod:
        """The pod on the node that it should go to."""
        return pod.bound_to(self.scheduler.schedule(self.framework, CycleState(), pod).suggested_host)

    def overcommitted(self) -> dict[str, int]:
        return {
            name: count
            for name, count in Counter(pod.node_name for pod in self.cache.dump().pods).items()
            if count > 1
        }


def pods(count: int) -> list[Pod]:
    return [make_pod(f"p{index}").uid(f"uid-{index}").requests(cpu="1").build() for index in range(count)]


class TestTheParts:
    def test_threads_that_schedule_and_assume_without_a_lock_never_overcommit_in_silence(self) -> None:
        parts, refused = ByHand.over(60), []
        todo = pods(60)

        def work() -> None:
            while True:
                try:
                    each = todo.pop()
                except IndexError:
                    return
                try:
                    parts.cache.assume_pod(parts.decide(each))
                except ConcurrentCycleError as error:
                    refused.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert parts.overcommitted() == {}
        assert len(parts.cache.dump().pods) + len(refused) == 60

    def test_with_a_lock_they_all_get_their_place(self) -> None:
        parts, lock = ByHand.over(40), threading.Lock()

        def place(each: Pod) -> None:
            with lock:
                parts.cache.assume_pod(parts.decide(each))

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(place, pods(40)))
        assert parts.overcommitted() == {}
        assert len(parts.cache.dump().pods) == 40

    def test_schedule_does_not_begin_while_it_runs(self) -> None:
        parts, inner = ByHand.over(2), []

        def schedule_another() -> None:
            with pytest.raises(ConcurrentCycleError) as raised:
                parts.decide(pods(2)[1])
            inner.append(str(raised.value))

        cache = parts.cache
        original = cache.update_snapshot

        def meddling(snapshot: Snapshot, pod: Pod | None = None, members: Iterable[Pod] = ()) -> None:
            original(snapshot, pod, members)
            schedule_another()

        cache.update_snapshot = meddling  # type: ignore[method-assign]  # whatever calls back in the middle of it
        parts.decide(pods(1)[0])
        (message,) = inner
        assert message == (
            "pod default/p1 can't be scheduled while another pod is: cycles are one after another, schedule and then "
            "assume_pod; let one thread do it, or hold a lock for both"
        )

    def test_a_decision_that_did_not_see_another_pod_does_not_count(self) -> None:
        parts = ByHand.over(1)
        first, second = map(parts.decide, pods(2))
        parts.cache.assume_pod(first)
        for _ in range(2):  # trying it again makes it no better
            with pytest.raises(ConcurrentCycleError, match="pod default/p1 was given node n0 before another"):
                parts.cache.assume_pod(second)
        with pytest.raises(FitError):
            parts.decide(pods(2)[1])

    def test_decisions_that_come_to_nothing_are_in_nobodys_way(self) -> None:
        parts = ByHand.over(3)
        first, second, third = pods(3)
        parts.decide(first)  # what if?
        parts.cache.assume_pod(parts.decide(second))
        parts.cache.assume_pod(parts.decide(first))
        free = {"n0", "n1", "n2"} - {each.node_name for each in parts.cache.dump().pods}
        parts.cache.assume_pod(third.bound_to(free.pop()))  # decided elsewhere
        assert parts.overcommitted() == {}

    def test_a_failure_does_not_keep_the_next_from_beginning(self) -> None:
        parts = ByHand.over(1)
        huge = make_pod("huge").requests(cpu="64").build()
        for _ in range(2):
            with pytest.raises(FitError):
                parts.decide(huge)

    def test_cycles_of_pods_that_are_never_assumed_do_not_pile_up(self) -> None:
        parts = ByHand.over(1)
        for each in pods(1100):
            parts.cache.update_snapshot(parts.scheduler._snapshot, each)
        assert len(parts.cache._cycles) <= 1024


class TestTheScheduler:
    def test_two_threads_can_not_run_it_at_the_same_time(self) -> None:
        entered, go_on = threading.Event(), threading.Event()

        def slow(pod: Pod) -> None:
            entered.set()
            assert go_on.wait(PATIENCE)

        stage = Stage(plugin("Slow", pre_filter=slow), nodes=[node()])
        stage.add(pod())
        thread = threading.Thread(target=stage.scheduler.run_until_idle, daemon=True)
        thread.start()
        assert entered.wait(PATIENCE)
        for call in (stage.scheduler.run, stage.scheduler.run_until_idle, stage.scheduler.schedule_one):
            with pytest.raises(ConcurrentCycleError, match="only one thread at a time may call run"):
                call()
        go_on.set()
        thread.join(PATIENCE)
        assert stage.node_of() == "n"
        assert not stage.scheduler.schedule_one(), "it is free again"

    def test_nor_can_a_plugin_run_it(self) -> None:
        stage: Stage
        stage = Stage(
            plugin("Eager", pre_filter=lambda: stage.scheduler.schedule_one() and None), nodes=[node()]
        )
        assert stage.run(pod("a"), pod("b")) == 2
        assert stage.condition("a")[2].startswith(
            'running PreFilter plugin "Eager": this scheduler is scheduling'
        )
        assert not stage.scheduler.queue.in_flight_pods(), "no pod was popped for nothing"

    def test_several_threads_one_after_another_are_fine(self) -> None:
        async def schedule() -> list[str]:
            cluster = InMemoryCluster([node()])
            scheduler = Scheduler(cluster)
            for name in ("a", "b", "c"):
                cluster.add(pod(name))
                await asyncio.to_thread(scheduler.run_until_idle)
            await asyncio.to_thread(scheduler.close)
            return [each.node_name for each in cluster.list(Pod)]

        assert asyncio.run(schedule()) == ["n", "n", "n"]

    def test_pods_may_come_from_any_thread_meanwhile(self) -> None:
        stage = Stage(nodes=[node(cpu=64)])
        running = threading.Thread(target=stage.scheduler.run, daemon=True)
        running.start()
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda index: stage.add(pod(f"p{index}")), range(40)))
        wait = threading.Event()
        for _ in range(1000):
            if all(each.node_name for each in stage.cluster.list(Pod)):
                break
            wait.wait(0.01)
        stage.scheduler.stop()
        running.join(PATIENCE)
        assert len(stage.in_cache()["n"]) == 40


class TestClusters:
    """What can't be a cluster is refused at once, with what it lacks."""

    class Partial:
        def get(self) -> None: ...
        def list(self) -> None: ...
        def update(self) -> None: ...
        def bind(self) -> None: ...
        def delete(self) -> None: ...

    def test_a_scheduler_says_which_methods_are_missing(self) -> None:
        with pytest.raises(TypeError) as raised:
            Scheduler(self.Partial())  # type: ignore[arg-type]  # that is what is wrong
        assert str(raised.value) == (
            "Scheduler needs a cluster; Partial lacks watch, add, patch_pod_status, record_event (4 of 9 methods). "
            "What they do: kschedfw.cluster.protocol.Cluster"
        )

    def test_so_does_a_framework_which_watches_nothing(self) -> None:
        with pytest.raises(TypeError) as raised:
            Framework(Registry(), default_profile(), Parts(self.Partial()))  # type: ignore[arg-type]  # that is what is wrong
        assert str(raised.value) == (
            "Framework needs a cluster; Partial lacks add, patch_pod_status, record_event (3 of 8 methods). "
            "What they do: kschedfw.framework.cluster_client.ClusterClient"
        )

    @pytest.mark.parametrize("wrong", [None, [], {"nodes": []}, "cluster.yaml"])
    def test_what_is_no_cluster_at_all_lacks_most(self, wrong: object) -> None:
        with pytest.raises(TypeError, match=f"{type(wrong).__name__} lacks .*watch"):
            Scheduler(wrong)  # type: ignore[arg-type]  # that is what is wrong

    def test_a_class_is_not_its_instance(self) -> None:
        with pytest.raises(TypeError, match="not the class InMemoryCluster: make an instance of it"):
            Scheduler(InMemoryCluster)  # type: ignore[arg-type]  # that is what is wrong

    def test_an_attribute_of_the_name_is_not_enough(self) -> None:
        class Lazy(InMemoryCluster):
            watch = None  # type: ignore[assignment]

        with pytest.raises(TypeError, match=r"Lazy lacks watch \(1 of 9 methods\)"):
            Scheduler(Lazy())  # type: ignore[arg-type]  # that is what is wrong
