"""AsyncScheduler: places are awaited, one at a time; who cancels leaves nothing behind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from random import Random

import pytest

from kschedfw import (
    FitError,
    InMemoryCluster,
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
    make_pod,
)
from kschedfw.aio import AsyncScheduler, ClusterBridge, NotOpenError
from kschedfw.cluster import Cluster
from kschedfw.scheduler import BindingExecutor, ConcurrentCycleError
from kschedfw.testing.waiting import PATIENCE
from tests.aio.site import Site, nodes, until


def pod(name: str, cpu: int = 3) -> Pod:
    return make_pod(name).uid(name).requests(cpu=cpu).build()


class Slow(Plugin):
    """Filters when it may."""

    name = "Slow"
    may = threading.Event()
    began = threading.Event()

    @hookimpl
    def pre_filter(self, pod: Pod) -> None:
        if pod.name.startswith("slow"):
            self.began.set()
            assert self.may.wait(PATIENCE)


class Hold(Plugin):
    """Lets pods wait for permission."""

    name = "Hold"

    @hookimpl
    def permit(self, pod: Pod) -> Status | None:
        return Status.wait(600) if pod.name.startswith("held") else None


def profile() -> Profile:
    standard = default_profile()
    return Profile([*standard.multi_point, "Slow", "Hold"])


def maker(cluster: Cluster) -> Callable[[BindingExecutor], Scheduler]:
    registry = Registry()
    registry.register(Slow)
    registry.register(Hold)
    return lambda executor: Scheduler(
        cluster, [profile()], registry=registry, executor=executor, random=Random(1)
    )


@pytest.fixture(autouse=True)
def _slow_is_over_at_the_end() -> None:
    Slow.may.clear()
    Slow.began.clear()


@asynccontextmanager
async def scheduling(site: Site, bindings: int = 16) -> AsyncIterator[AsyncScheduler]:
    async with (
        ClusterBridge(site) as cluster,
        AsyncScheduler(maker(cluster), bindings=bindings) as scheduler,
    ):
        yield scheduler


def in_asyncio(test: Callable[[], Coroutine[object, object, None]]) -> Callable[[], None]:
    def run() -> None:
        before = set(threading.enumerate())  # a parallelizer of a test before may not have been collected yet
        asyncio.run(asyncio.wait_for(test(), PATIENCE), debug=True)
        left = set(threading.enumerate()) - before
        assert [each.name for each in left if each.name.startswith("kschedfw")] == []

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    return run


async def place_slowly(scheduler: AsyncScheduler, name: str = "slow") -> asyncio.Task[object]:
    """Begin an attempt that goes on until `Slow.may` is set."""
    task: asyncio.Task[object] = asyncio.create_task(_place(scheduler, name))
    await until(Slow.began.is_set)
    return task


async def _place(scheduler: AsyncScheduler, name: str) -> object:
    return await scheduler.place(pod(name))


async def ended_with(error: type[BaseException], waiting: Awaitable[object]) -> BaseException:
    with pytest.raises(error) as found:
        await waiting
    return found.value


@in_asyncio
async def test_a_pod_is_placed_and_bound_through_an_asynchronous_cluster() -> None:
    site = Site([*nodes(1), pod("web")])
    async with scheduling(site) as scheduler:
        stored = site.store.get(Pod, "default/web")
        assert stored is not None
        async with await scheduler.place(stored) as placement:
            assert (placement.node_name, placement.pod.name, placement.is_waiting) == ("n0", "web", False)
            assert placement.result.evaluated_nodes == 1
            await placement.commit()
        after = site.store.get(Pod, "default/web")
        assert after is not None
        assert after.node_name == "n0"


@in_asyncio
async def test_a_cluster_in_memory_needs_no_bridge() -> None:
    cluster = InMemoryCluster([*nodes(1), pod("web")])
    async with AsyncScheduler(maker(cluster)) as scheduler:
        await (await scheduler.place(cluster.list(Pod)[0])).commit()
    assert cluster.list(Pod)[0].node_name == "n0"


@in_asyncio
async def test_places_asked_for_at_once_are_served_in_turn_and_see_one_another() -> None:
    async with scheduling(Site(nodes(3))) as scheduler:
        asked = [scheduler.place(pod(f"p{number}")) for number in range(5)]
        places = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(each) for each in places[3:]] == [FitError, FitError]
        assert {place.node_name for place in places[:3] if not isinstance(place, BaseException)} == {
            "n0",
            "n1",
            "n2",
        }


@in_asyncio
async def test_the_loop_goes_on_while_an_attempt_is_made() -> None:
    async with scheduling(Site(nodes(1))) as scheduler:
        attempt = await place_slowly(scheduler)
        for _ in range(10):
            await asyncio.sleep(0)
        assert not attempt.done()
        Slow.may.set()
        await attempt


@in_asyncio
async def test_a_place_is_given_up_at_the_end_of_its_block_and_on_an_error() -> None:
    async with scheduling(Site(nodes(1))) as scheduler:
        async with await scheduler.place(pod("a")):
            await ended_with(FitError, scheduler.place(pod("b")))
        placement = await scheduler.place(pod("b"))
        await placement.give_up()
        await placement.give_up()
        await ended_with(PlacementEndedError, placement.commit())
        with pytest.raises(ZeroDivisionError):
            async with await scheduler.place(pod("c")):
                raise ZeroDivisionError
        assert scheduler.scheduler.placements == ()


@in_asyncio
async def test_a_call_cancelled_during_its_attempt_leaves_the_node_to_the_next() -> None:
    async with scheduling(Site(nodes(1))) as scheduler:
        attempt = await place_slowly(scheduler)
        following = asyncio.create_task(scheduler.place(pod("next")))
        await asyncio.sleep(0)
        attempt.cancel()
        await ended_with(asyncio.CancelledError, attempt)  # at once: the attempt is still being made
        assert not Slow.may.is_set()
        Slow.may.set()
        assert (await following).node_name == "n0"


@in_asyncio
async def test_a_call_cancelled_before_its_turn_makes_no_attempt() -> None:
    async with scheduling(Site(nodes(1))) as scheduler:
        attempt = await place_slowly(scheduler)
        waiting = asyncio.create_task(scheduler.place(pod("slow-too")))
        await asyncio.sleep(0)
        waiting.cancel()
        await ended_with(asyncio.CancelledError, waiting)
        Slow.began.clear()
        Slow.may.set()
        await attempt
        await ended_with(FitError, scheduler.place(pod("after")))
        assert not Slow.began.is_set()


@in_asyncio
async def test_a_call_cancelled_when_its_place_is_found_already_gives_it_up() -> None:
    async with scheduling(Site(nodes(1))) as scheduler:
        attempt = await place_slowly(scheduler)
        Slow.may.set()
        while not scheduler.scheduler.placements:
            pass  # the loop isn't told before it gets the floor
        attempt.cancel()
        await ended_with(asyncio.CancelledError, attempt)
        assert (await scheduler.place(pod("next"))).node_name == "n0"


@in_asyncio
async def test_errors_are_those_of_the_scheduler() -> None:
    async with scheduling(Site(nodes(1))) as scheduler:
        held = await scheduler.place(pod("a"))
        await ended_with(PodInFlightError, scheduler.place(pod("a")))
        await ended_with(TypeError, scheduler.place("a"))  # type: ignore[arg-type]
        error = await ended_with(FitError, scheduler.place(pod("b")))
        assert str(error).startswith("0/1 nodes are available: 1 Insufficient cpu.")
        await held.give_up()


@in_asyncio
async def test_a_commit_that_the_cluster_refuses_releases_the_place() -> None:
    site = Site(nodes(1))
    async with scheduling(site) as scheduler:
        placement = await scheduler.place(pod("absent"))
        error = await ended_with(SchedulingError, placement.commit())
        assert "doesn't exist" in str(error)
        assert await ended_with(SchedulingError, placement.commit()) is error
        assert (await scheduler.place(pod("next"))).node_name == "n0"


@in_asyncio
async def test_a_binding_under_way_goes_on_when_its_caller_is_cancelled() -> None:
    site = Site([*nodes(1), pod("web")])
    site.may_bind.clear()
    async with scheduling(site) as scheduler:
        placement = await scheduler.place(pod("web"))
        commit = asyncio.create_task(placement.commit())
        await site.binding.wait()
        commit.cancel()
        await ended_with(asyncio.CancelledError, commit)
        site.may_bind.set()
        await placement.commit()
        after = site.store.get(Pod, "default/web")
        assert after is not None
        assert after.node_name == "n0"


@in_asyncio
async def test_a_pod_that_waits_for_permission_is_refused_when_its_commit_is_cancelled() -> None:
    site = Site([*nodes(1), pod("held")])
    async with scheduling(site) as scheduler:
        placement = await scheduler.place(pod("held"))
        assert placement.is_waiting
        commit = asyncio.create_task(placement.commit())
        await asyncio.sleep(0.01)
        commit.cancel()
        await ended_with(asyncio.CancelledError, commit)
        error = await ended_with(FitError, placement.commit())
        assert "the commit was cancelled" in str(error)
        assert (await scheduler.place(pod("next"))).node_name == "n0"


@in_asyncio
async def test_no_more_pods_are_bound_at_a_time_than_allowed_and_one_in_the_queue_can_be_cancelled() -> None:
    site = Site([*nodes(6), *(pod(f"p{number}") for number in range(6))])
    site.may_bind.clear()
    async with scheduling(site, bindings=2) as scheduler:
        places = [await scheduler.place(pod(f"p{number}")) for number in range(6)]
        commits = [asyncio.create_task(place.commit()) for place in places]
        await until(lambda: site.writing == 2)
        commits[5].cancel()
        await ended_with(asyncio.CancelledError, commits[5])
        await places[5].give_up()
        site.may_bind.set()
        await asyncio.gather(*commits[:5])
        assert site.most_writing == 2
        bound = sorted(each.name for each in site.store.list(Pod) if each.node_name)
        assert bound == ["p0", "p1", "p2", "p3", "p4"]


@in_asyncio
async def test_run_schedules_until_it_is_cancelled() -> None:
    site = Site(nodes(2))
    async with scheduling(site) as scheduler:
        running = asyncio.create_task(scheduler.run())
        site.store.add(pod("a"))
        await until(lambda: site.store.list(Pod)[0].node_name)
        await ended_with(ConcurrentCycleError, scheduler.place(pod("b")))
        await ended_with(ConcurrentCycleError, scheduler.run())
        running.cancel()
        await ended_with(asyncio.CancelledError, running)
        await ended_with(SchedulingError, scheduler.place(pod("b")))


@in_asyncio
async def test_the_end_of_the_block_ends_everything() -> None:
    site = Site([*nodes(2), pod("held"), pod("web")])
    async with scheduling(site) as scheduler:
        running = [await scheduler.place(pod("held")), await scheduler.place(pod("web"))]
        commit = asyncio.create_task(running[0].commit())
        await asyncio.sleep(0)
    assert "shutting down" in str(await ended_with(FitError, commit))
    await ended_with(PlacementEndedError, running[1].commit())
    await running[1].give_up()
    assert [each.node_name for each in site.store.list(Pod)] == ["", ""]
    await ended_with(NotOpenError, scheduler.place(pod("late")))
    async with scheduling(site) as scheduler:
        run = asyncio.create_task(scheduler.run())
        await until(lambda: site.store.list(Pod)[1].node_name)
    await run


@in_asyncio
async def test_a_scheduler_that_cannot_be_made_leaves_no_threads() -> None:
    def make(_: BindingExecutor) -> Scheduler:
        raise ZeroDivisionError

    await ended_with(ZeroDivisionError, AsyncScheduler(make).__aenter__())
    with pytest.raises(ValueError, match="bindings: expected at least 1, found 0"):
        AsyncScheduler(make, bindings=0)
