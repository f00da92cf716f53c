"""The twelfth example against a real server: two schedulers share machines and overcommit none."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from random import Random
from types import ModuleType
from typing import Protocol

import pytest

from kschedfw import FitError, Node, Pod, Scheduler, SchedulingError
from kschedfw.aio import AsyncPlacement, AsyncScheduler, ClusterBridge
from kschedfw.testing.waiting import PATIENCE
from tests.examples.database import Server, needs_postgres, server
from tests.examples.running import REPOSITORY

pytestmark = needs_postgres

EXAMPLE = REPOSITORY / "examples" / "12-postgres"


@pytest.fixture(scope="module")
def database() -> Iterator[Server]:
    with server() as running:
        yield running


@pytest.fixture
def site(database: Server) -> Site:
    """A new site with one machine, which has room for two tasks of one CPU."""
    name = database.new_database()
    database.sql(name, (EXAMPLE / "schema.sql").read_text(encoding="utf-8"))
    database.sql(name, "INSERT INTO machines VALUES ('m1', 2000, 1073741824)")
    return Site(database, name)


class Site:
    def __init__(self, database: Server, name: str) -> None:
        self._database = database
        self.name = name
        self.module = example()

    def sql(self, command: str) -> str:
        return self._database.sql(self.name, command)

    def add_tasks(self, *names: str, cpu: int = 1000) -> None:
        for name in names:
            self.sql(f"INSERT INTO tasks (name, cpu, memory) VALUES ('{name}', {cpu}, 0)")

    @property
    def placed(self) -> list[str]:
        return self.sql(
            "SELECT name || ' ' || machine FROM tasks WHERE machine IS NOT NULL ORDER BY id"
        ).split("\n")

    @asynccontextmanager
    async def scheduler(self, *, is_blind: bool = False) -> AsyncIterator[Worker]:
        """A scheduler with connections of its own. A blind one isn't told of changes."""
        module = self.module
        async with module.Postgres(self._database.address(self.name)) as store:
            if is_blind:
                watch = store.watch

                async def watch_once() -> object:
                    objects, changes = await watch()
                    listening = asyncio.ensure_future(
                        anext(changes)
                    )  # closes its connection only if it has begun
                    await asyncio.sleep(0)
                    listening.cancel()
                    return objects, nothing()

                store.watch = watch_once
            async with (
                ClusterBridge(store) as cluster,
                AsyncScheduler(
                    lambda executor: Scheduler(cluster, executor=executor, random=Random(1))
                ) as it,
            ):
                yield Worker(store, cluster, it)


async def nothing() -> AsyncIterator[None]:
    await asyncio.Event().wait()
    yield


class Store(Protocol):
    def take(self, after: int = 0) -> Taken: ...


class Taken(Protocol):
    async def __aenter__(self) -> tuple[int, Pod] | None: ...

    async def __aexit__(self, *_: object) -> bool | None: ...


class Worker:
    def __init__(self, store: Store, cluster: ClusterBridge, scheduler: AsyncScheduler) -> None:
        self.store = store
        self.cluster = cluster
        self.scheduler = scheduler

    async def place(self, name: str) -> AsyncPlacement:
        pod = self.cluster.get(Pod, f"default/{name}")
        assert pod is not None
        return await self.scheduler.place(pod)


def example() -> ModuleType:
    """The example's module; it isn't in a package."""
    spec = importlib.util.spec_from_file_location("example_postgres", EXAMPLE / "postgres.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.002)


@pytest.mark.nightly
def test_two_processes_place_all_that_fits_and_overcommit_nothing(database: Server) -> None:
    address = database.address(database.new_database())
    done = subprocess.run(
        [sys.executable, EXAMPLE / "schedulers.py", address],
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert f"$ python examples/12-postgres/schedulers.py ADDRESS\n{done.stdout}```" in (
        EXAMPLE / "README.md"
    ).read_text(encoding="utf-8")
    counts = re.findall(r"^(one|two) placed (\d+) tasks, and lost \d+ races$", done.stderr, re.MULTILINE)
    assert {name for name, _ in counts} == {"one", "two"}
    assert sum(int(count) for _, count in counts) == 48


def test_who_binds_with_an_old_copy_loses_the_race(site: Site) -> None:
    async def test() -> None:
        site.add_tasks("a", "b", "c")
        async with site.scheduler() as one, site.scheduler(is_blind=True) as two:
            places = [await one.place("a"), await one.place("b"), await two.place("c")]
            assert [place.node_name for place in places] == ["m1"] * 3
            ends = await asyncio.gather(*(place.commit() for place in places), return_exceptions=True)
            lost = [end for end in ends if end is not None]
            assert len(lost) == 1
            assert isinstance(lost[0], SchedulingError)
            assert re.search("machine m1 has no room for task [abc] any more", str(lost[0]))
        assert len(site.placed) == 2

    asyncio.run(test())


def test_without_the_lock_and_the_check_the_same_would_overcommit(site: Site) -> None:
    """So the test above isn't green by chance."""

    async def bind(store: object, pod: Pod, node_name: str) -> None:
        await asyncio.to_thread(
            site.sql, f"UPDATE tasks SET machine = '{node_name}' WHERE name = '{pod.name}'"
        )

    site.module.Postgres.bind = bind

    async def test() -> None:
        site.add_tasks("a", "b", "c")
        async with site.scheduler() as one, site.scheduler(is_blind=True) as two:
            for place in [await one.place("a"), await one.place("b"), await two.place("c")]:
                await place.commit()
        assert len(site.placed) == 3

    asyncio.run(test())


def test_a_task_is_taken_once_and_is_free_again_when_its_scheduler_dies(site: Site) -> None:
    async def test() -> None:
        site.add_tasks("a", "b")
        async with site.scheduler() as one, site.scheduler() as two:
            died = importlib.import_module("psycopg").OperationalError
            with suppress(died):  # what the dead schedulers hear of it
                async with two.store.take() as first, one.store.take() as second:
                    assert first is not None
                    assert second is not None
                    assert (first[1].name, second[1].name) == ("a", "b")
                    async with one.store.take() as third:
                        assert third is None
                    locks = "FROM pg_locks WHERE relation = 'tasks'::regclass AND mode = 'RowShareLock'"
                    assert site.sql(f"SELECT count(pg_terminate_backend(pid)) {locks}") == "2"
            async with two.store.take() as again:
                assert again is not None
                assert again[1].name == "a"
            async with two.store.take(again[0]) as following:
                assert following is not None
                assert following[1].name == "b"

    asyncio.run(test())


def test_a_taken_task_is_bound_in_its_transaction(site: Site) -> None:
    async def test() -> None:
        site.add_tasks("a")
        async with site.scheduler() as one:
            async with one.store.take() as taken:
                assert taken is not None
                await (await one.scheduler.place(taken[1])).commit()
                assert site.placed == [""]  # nobody sees it before the end
            assert site.placed == ["a m1"]

    asyncio.run(test())


def test_changes_are_told_and_none_is_lost_with_a_connection(site: Site) -> None:
    async def test() -> None:
        async with site.scheduler() as one:
            site.add_tasks("large", cpu=3000)
            await until(lambda: one.cluster.list(Pod))
            with pytest.raises(FitError):
                await one.place("large")
            assert "Insufficient cpu" in site.sql("SELECT message FROM tasks")
            listener = "datname = current_database() AND query = 'SELECT * FROM tasks ORDER BY id'"
            end = f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE {listener}"
            assert site.sql(end) == "1"
            site.sql("UPDATE machines SET cpu = 4000")
            site.sql("INSERT INTO machines VALUES ('m2', 1000, 0)")
            await until(lambda: len(one.cluster.list(Node)) == 2)
            await (await one.place("large")).commit()
            assert site.placed == ["large m1"]
            await until(lambda: one.cluster.list(Pod)[0].node_name == "m1")
            site.sql("DELETE FROM tasks")
            await until(lambda: not one.cluster.list(Pod))

    asyncio.run(test())
