"""A cluster in Postgres: machines and tasks are rows, changes are notifications, and a binding is a transaction."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TypeVar

from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool

from kschedfw import Node, Pod, make_node, make_pod
from kschedfw.aio import AsyncCluster
from kschedfw.api import Named, PodCondition
from kschedfw.cluster import ConflictError, EventType, LostRaceError, NotFoundError, WatchEvent

T = TypeVar("T", bound=Named)
Connection = AsyncConnection[DictRow]


class Postgres(AsyncCluster):
    """Machines and tasks of the schema in `schema.sql`, as nodes and pods."""

    def __init__(self, address: str, *, connections: int = 8) -> None:
        self._address = address
        self._pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            address, kwargs={"row_factory": dict_row}, max_size=connections, open=False
        )
        self._taken: dict[str, Connection] = {}
        """By uid, the transaction that holds the lock of a task which is being scheduled."""

    async def __aenter__(self) -> Postgres:
        await self._pool.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._pool.close()

    @asynccontextmanager
    async def take(self, after: int = 0) -> AsyncIterator[tuple[int, Pod] | None]:
        """Take the next task that doesn't run and that nobody else has taken; None if there is none.

        Its row is locked until the block ends. A scheduler that dies loses its connection, and the lock with it.
        """
        async with self._pool.connection() as connection:
            rows = await connection.execute(
                "SELECT * FROM tasks WHERE machine IS NULL AND id > %s ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED",
                (after,),
            )
            row = await rows.fetchone()
            if row is None:
                yield None
                return
            pod = _pod(row)
            self._taken[pod.uid] = connection
            try:
                yield row["id"], pod
            finally:
                del self._taken[pod.uid]

    # --- what a scheduler asks of a cluster ---

    async def watch(self) -> tuple[Iterable[Named], AsyncIterator[WatchEvent]]:
        connection = await Connection.connect(self._address, autocommit=True, row_factory=dict_row)
        try:
            # First the notifications, then the rows: a change in between is in both, and none is in neither.
            await connection.execute("LISTEN changes")
            machines = await connection.execute("SELECT * FROM machines ORDER BY name")
            objects: list[Named] = [_node(row) for row in await machines.fetchall()]
            tasks = await connection.execute("SELECT * FROM tasks ORDER BY id")
            objects += [_pod(row) for row in await tasks.fetchall()]
        except BaseException:
            await connection.close()
            raise
        return objects, self._changes(connection)

    async def _changes(self, connection: Connection) -> AsyncIterator[WatchEvent]:
        async with connection:
            async for notification in connection.notifies():
                table, name = notification.payload.split(" ", 1)
                yield await self._change(table, name)

    async def _change(self, table: str, name: str) -> WatchEvent:
        """The row as it is now, which may be newer than the notification."""
        async with self._pool.connection() as connection:
            if table == "machines":
                rows = await connection.execute("SELECT * FROM machines WHERE name = %s", (name,))
                row = await rows.fetchone()
                return _event(None if row is None else _node(row), make_node(name).build())
            rows = await connection.execute("SELECT * FROM tasks WHERE name = %s", (name,))
            row = await rows.fetchone()
            return _event(None if row is None else _pod(row), make_pod(name).build())

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Give the task the machine, if there is room.

        The machine's row is locked first: whoever binds to it at the same time waits, and sees this task then. So two
        schedulers never give away the same room, however old their copies are.
        """
        async with self._transaction(pod) as connection:
            locked = await connection.execute(
                "SELECT * FROM machines WHERE name = %s FOR UPDATE", (node_name,)
            )
            machine = await locked.fetchone()
            if machine is None:
                raise NotFoundError(f"machine {node_name} doesn't exist")
            sums = await connection.execute(
                "SELECT coalesce(sum(cpu), 0) AS cpu, coalesce(sum(memory), 0) AS memory FROM tasks "
                "WHERE machine = %s",
                (node_name,),
            )
            used = await sums.fetchone()
            tasks = await connection.execute("SELECT * FROM tasks WHERE name = %s", (pod.name,))
            task = await tasks.fetchone()
            if task is None or used is None:
                raise NotFoundError(f"task {pod.name} doesn't exist")
            if task["machine"] is not None:
                raise ConflictError(f"task {pod.name} runs on {task['machine']} already")
            if any(used[what] + task[what] > machine[what] for what in ("cpu", "memory")):
                raise LostRaceError(f"machine {node_name} has no room for task {pod.name} any more")
            await connection.execute(
                "UPDATE tasks SET machine = %s, message = '' WHERE name = %s", (node_name, pod.name)
            )

    @asynccontextmanager
    async def _transaction(self, pod: Pod) -> AsyncIterator[Connection]:
        """The one in which the task was taken, or a new one."""
        if (taken := self._taken.get(pod.uid)) is not None:
            async with taken.transaction():  # a savepoint: a refused binding doesn't release the task
                yield taken
        else:
            async with self._pool.connection() as connection:
                yield connection

    async def delete(self, obj: Named) -> None:
        async with self._pool.connection() as connection:
            await connection.execute("DELETE FROM tasks WHERE name = %s", (obj.name,))

    async def patch_pod_status(
        self,
        pod: Pod,
        *,
        condition: PodCondition | None = None,
        nominated_node_name: str | None = None,  # noqa: ARG002 - nobody is preempted: tasks have no priorities
    ) -> None:
        if condition is not None:
            async with self._transaction(pod) as connection:
                await connection.execute(
                    "UPDATE tasks SET message = %s WHERE name = %s AND machine IS NULL",
                    (condition.message, pod.name),
                )

    async def record_event(
        self, regarding: Named, type: str, reason: str, message: str, related: Named | None = None
    ) -> None:
        """Do nothing: a task's row has its last message already."""

    async def add(self, obj: T) -> T:
        raise NotImplementedError("machines and tasks are added by SQL")

    async def update(self, obj: T) -> T:
        raise NotImplementedError("machines and tasks are changed by SQL")


def _node(row: DictRow) -> Node:
    return (
        make_node(row["name"]).uid(row["name"]).capacity(cpu=f"{row['cpu']}m", memory=row["memory"]).build()
    )


def _pod(row: DictRow) -> Pod:
    task = make_pod(row["name"]).uid(f"task-{row['id']}").requests(cpu=f"{row['cpu']}m", memory=row["memory"])
    return (task if row["machine"] is None else task.node(row["machine"])).build()


def _event(present: Named | None, gone: Named) -> WatchEvent:
    # Whether a row is new, and what it was before, is for the bridge to find out.
    return WatchEvent(EventType.DELETED, gone) if present is None else WatchEvent(EventType.MODIFIED, present)
