"""Two schedulers, in processes of their own, share a cluster in Postgres: `python schedulers.py ADDRESS`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from random import Random

from postgres import Connection, Postgres
from psycopg.rows import dict_row

from kschedfw import FitError, Scheduler, SchedulingError
from kschedfw.aio import AsyncScheduler, ClusterBridge


async def work(address: str, name: str) -> None:
    """Schedule the waiting tasks, until those that are left fit nowhere."""
    async with (
        Postgres(address) as site,
        ClusterBridge(site) as cluster,
        AsyncScheduler(
            lambda executor: Scheduler(cluster, executor=executor, random=Random(name))
        ) as scheduler,
    ):
        placed = lost = 0
        while True:
            progress = False
            after = 0
            while True:
                async with site.take(after) as taken:
                    if taken is None:
                        break
                    after, pod = taken
                    try:
                        async with await scheduler.place(pod) as placement:
                            await placement.commit()
                    except FitError:
                        continue
                    except SchedulingError:  # the other one was faster, and the copy will know in a moment
                        lost += 1
                    else:
                        placed += 1
                    progress = True
            if not progress:
                break
        print(f"{name} placed {placed} tasks, and lost {lost} races", file=sys.stderr)


async def fill(address: str) -> None:
    """Make the tables, with 6 machines and 60 tasks, of which four fifths fit."""
    schema = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
    async with await Connection.connect(address, row_factory=dict_row) as connection:
        await connection.execute(schema.encode())
        await connection.execute(
            "INSERT INTO machines SELECT 'm' || n, 8000, 17179869184 FROM generate_series(1, 6) n"
        )
        await connection.execute(
            "INSERT INTO tasks (name, cpu, memory) SELECT 't' || n, 1000, 1073741824 FROM generate_series(1, 60) n"
        )


async def tell(address: str) -> None:
    """Print how it ended."""
    async with await Connection.connect(address, row_factory=dict_row) as connection:
        for row in await (
            await connection.execute(
                "SELECT machine IS NOT NULL AS runs, message, count(*) AS count FROM tasks "
                "GROUP BY 1, 2 ORDER BY 1 DESC, 2"
            )
        ).fetchall():
            print(f"{row['count']} tasks {'run' if row['runs'] else 'wait: ' + row['message']}")
        overcommitted = await connection.execute(
            "SELECT count(*) AS count FROM machines m "
            "WHERE cpu < (SELECT coalesce(sum(cpu), 0) FROM tasks WHERE machine = m.name)"
        )
        for row in await overcommitted.fetchall():
            print(f"{row['count']} machines are overcommitted")


async def main(address: str) -> None:
    await fill(address)
    command = [sys.executable, __file__, address]
    workers = [await asyncio.create_subprocess_exec(*command, name) for name in ("one", "two")]
    codes = [await worker.wait() for worker in workers]
    if any(codes):
        raise SystemExit("a scheduler has failed")
    await tell(address)


if __name__ == "__main__":
    asyncio.run(work(*sys.argv[1:3]) if len(sys.argv) == 3 else main(sys.argv[1]))
