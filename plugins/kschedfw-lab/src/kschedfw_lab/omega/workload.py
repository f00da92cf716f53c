"""Jobs that arrive at random: their kinds, and the sources of their sizes and durations."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

import attrs
import numpy as np

from kschedfw import KschedfwError
from kschedfw_lab.omega.machines import Amounts

BATCH: Final = "batch"
SERVICE: Final = "service"
T = TypeVar("T")

LOAD: Final = 0.6
"""The average share of the scarcest resource that the jobs use if all are placed at once."""


class WorkloadError(KschedfwError, ValueError):
    """A trace can't be used. The message names the file."""


@attrs.frozen(eq=False)
class Shape:
    """The size of a job: the number of tasks, the amounts of each task, and its duration in seconds."""

    tasks: int
    task: Amounts
    duration: float


@attrs.frozen(eq=False)
class JobKind:
    """A kind of jobs: the mean time between arrivals in seconds, and a function that draws a job.

    Arrivals are a Poisson process.
    """

    name: str
    interarrival: float
    draw: Callable[[np.random.Generator], Shape]

    def arrivals(self, chance: np.random.Generator, until: float) -> Iterator[tuple[float, Shape]]:
        """Yield arrival times in seconds, and the job that arrives."""
        time = chance.exponential(self.interarrival)
        while time < until:
            yield time, self.draw(chance)
            time += chance.exponential(self.interarrival)

    def running(self, chance: np.random.Generator) -> Iterator[Shape]:
        """Yield the jobs that run at a random moment, with their remaining time.

        By Little's law there are as many as arrive in a mean duration. Long jobs are more likely to be among them.
        """
        drawn = [self.draw(chance) for _ in range(2000)]
        durations = np.array([shape.duration for shape in drawn])
        count = chance.poisson(durations.mean() / self.interarrival)
        for index in chance.choice(len(drawn), count, p=durations / durations.sum()):
            yield attrs.evolve(drawn[index], duration=drawn[index].duration * chance.random())


@attrs.frozen(eq=False)
class Workload:
    """The kinds of jobs, and their machines: a row of amounts each."""

    name: str
    kinds: tuple[JobKind, ...]
    capacity: Amounts


def published(rate: float = 1.0) -> Workload:
    """Return the published example workload: exponential times, task counts and durations.

    The means are those of the example in the paper's simulator. Batch: a job every 10 s with 100 tasks of 100 s.
    Service: a job every 20 s with 10 tasks of 500 s. Each task takes one CPU and two units of memory, of a machine's
    four and sixteen. Source: github.com/google/cluster-scheduler-simulator, src/main/scala/Workloads.scala. Its authors
    call these numbers fabricated: those of Google's cells aren't public.

    The cell has 10,000 machines there, of which these jobs use 3 %. Here it has as many machines as make the share
    `LOAD`. `rate` multiplies the arrivals of batch jobs.
    """
    means = {BATCH: (10.0 / rate, 100.0, 100.0), SERVICE: (20.0, 10.0, 500.0)}
    task = np.array([1, 2], np.int64)

    def kind(name: str) -> JobKind:
        interarrival, tasks, duration = means[name]

        def draw(chance: np.random.Generator) -> Shape:
            count = max(1, int(np.ceil(chance.exponential(tasks))))
            return Shape(count, task, float(chance.exponential(duration)))

        return JobKind(name, interarrival, draw)

    # Rounding up an exponential number adds half a task on average.
    cpus = sum((tasks + 0.5) * duration / interarrival for interarrival, tasks, duration in means.values())
    machines = round(cpus / 4 / LOAD)
    return Workload(
        "published", (kind(BATCH), kind(SERVICE)), np.tile(np.array([4, 16], np.int64), (machines, 1))
    )


def openb(folder: Path) -> Workload:
    """Return a workload with pods drawn at random from the OpenB trace, on the trace's machines.

    Latency-sensitive pods (`qos` LS) are service jobs, all others are batch jobs. Each pod is a job of one task, since
    the trace doesn't say which pods belong together. Amounts are CPU, memory and thousandths of GPUs. The trace's own
    times would hardly load its machines. So the times between arrivals are exponential, with the trace's shares of both
    kinds, and a mean that makes the load `LOAD`.

    Raises:
        WorkloadError: a file has no rows, or other columns.
        OSError: a file can't be read.
    """
    machines = _read(
        folder / "openb_node_list_all_node.csv",
        lambda row: (int(row["cpu_milli"]), int(row["memory_mib"]), 1000 * int(row["gpu"])),
    )
    pods = _read(folder / "openb_pod_list_default.csv", _pod)
    capacity = np.array(machines, np.int64)
    amounts = np.array([amount for _, amount, _ in pods], np.int64)
    durations = np.array([duration for _, _, duration in pods])
    # By resource: how long the average pod would occupy the whole cell, in seconds.
    demand = (amounts * durations[:, None]).mean(axis=0) / capacity.sum(axis=0)
    interarrival = float(demand.max()) / LOAD

    def kind(name: str) -> JobKind:
        rows = np.array([number for number, (of, _, _) in enumerate(pods) if of == name])

        def draw(chance: np.random.Generator) -> Shape:
            row = rows[chance.integers(len(rows))]
            return Shape(1, amounts[row], float(durations[row]))

        return JobKind(name, interarrival * len(pods) / len(rows), draw)

    return Workload("openb", (kind(BATCH), kind(SERVICE)), capacity)


def _pod(row: dict[str, str]) -> tuple[str, tuple[int, int, int], float]:
    kind = SERVICE if row["qos"] == "LS" else BATCH
    gpu = int(row["num_gpu"]) * (int(row["gpu_milli"]) or 1000)
    duration = max(1, int(row["deletion_time"]) - int(row["creation_time"]))
    return kind, (int(row["cpu_milli"]), int(row["memory_mib"]), gpu), float(duration)


def _read(file: Path, read: Callable[[dict[str, str]], T]) -> list[T]:
    with file.open(encoding="utf-8", newline="") as lines:
        try:
            rows = [read(row) for row in csv.DictReader(lines)]
        except (KeyError, ValueError, TypeError) as error:
            raise WorkloadError(f"{file}: expected a table of the OpenB trace: {error!r}") from error
    if not rows:
        raise WorkloadError(f"{file}: expected a table of the OpenB trace, found no rows")
    return rows
