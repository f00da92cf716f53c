"""Alibaba's cluster-trace-v2018: machines, containers of services and batch jobs, as CSV without headers.

Memory is in percent of the largest machine, which is taken for one of `MEMORY` bytes. Of a batch task it is told how
many instances it had and from when to when, but not where they ran: they are pods without a node. Lost are waits, since
the tables begin with what runs; failure domains but one; what was used; and the order of a job's tasks.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from kschedfw_replay.importing.observations import Observation
from kschedfw_replay.importing.tables import MOST_AT_A_TIME, Row, Table, sort_rows, timed
from kschedfw_replay.recording.blocks import RecordingError

MEMORY: Final = 512 << 30
PODS: Final = 1000
"""The number of pods that a node takes; the trace has no such limit."""
ZERO: Final = datetime(2018, 1, 1, tzinfo=UTC).timestamp()
"""The time that second 0 of the trace stands for, in seconds since 1970: the trace doesn't tell it."""
MOST_INSTANCES: Final = 200_000
"""The most instances of a task; a larger number is taken for a mistake."""
_MACHINES: Final = Table(
    "machine_meta",
    ("machine_id", "time_stamp", "failure_domain_1", "failure_domain_2", "cpu_num", "mem_size", "status"),
)
_CONTAINERS: Final = Table(
    "container_meta",
    ("container_id", "machine_id", "time_stamp", "app_du", "status", "cpu_request", "cpu_limit", "mem_size"),
)
_TASKS: Final = Table(
    "batch_task",
    (
        "task_name",
        "instance_num",
        "job_name",
        "task_type",
        "status",
        "start_time",
        "end_time",
        "plan_cpu",
        "plan_mem",
    ),
)


def read_alibaba_2018(directory: Path) -> Iterator[Observation]:
    """Yield the observations in the tables `machine_meta`, `container_meta` and `batch_task` of a directory.

    Raises:
        RecordingError: there are no tables of work, or a row is none of its table.
    """
    return _Reading(directory).observations()


class _Reading:
    """A pass over the trace."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._containers: dict[str, dict[str, Any]] = {}
        """The manifests of containers that exist, by their ids."""
        self._ends: list[tuple[int, int, Mapping[str, Any]]] = []
        """The ends of batch tasks' pods, as a heap: time, a distinct number, manifest."""
        self._order = itertools.count()

    def observations(self) -> Iterator[Observation]:
        directory = self._directory
        if not directory.is_dir() or not (_CONTAINERS.parts(directory) or _TASKS.parts(directory)):
            raise RecordingError(
                f"{directory}: expected a directory with the tables machine_meta, container_meta and batch_task "
                "(.csv or .csv.gz)"
            )
        # No table is sorted by time. Machines come first at any time, so that pods are bound to what is there.
        sources: list[tuple[Table, str, Callable[[int, Row], Iterator[Observation]]]] = [
            (_MACHINES, "time_stamp", _machine),
            (_CONTAINERS, "time_stamp", self._container),
            (_TASKS, "start_time", self._task),
        ]
        streams = [self._stream(place, table, time) for place, (table, time, _) in enumerate(sources)]
        # By time and table alone, since rows can't be compared.
        for at, place, row in heapq.merge(*streams, key=lambda each: each[:2]):
            # Pods that have ended leave before others come, so that their room is free.
            yield from self._ended(at)
            yield from sources[place][2](at, row)
            if len(self._containers) + len(self._ends) > MOST_AT_A_TIME:
                raise RecordingError(
                    f"{row.path}: line {row.line}: more than {MOST_AT_A_TIME:,} pods exist at this time"
                )
        if self._ends:
            yield from self._ended(max(at for at, *_ in self._ends))

    def _stream(self, place: int, table: Table, time: str) -> Iterator[tuple[int, int, Row]]:
        # Negative times, too, are before the trace began.
        rows = timed(table.rows(self._directory), lambda row: max(0, row.time(time, 0)))
        return ((at, place, row) for at, row in sort_rows(rows))

    def _container(self, at: int, row: Row) -> Iterator[Observation]:
        name, machine = row.name("container_id"), _machine_name(row)
        known = self._containers.get(name)
        is_gone = row.text("status") == "stopped"
        if known is not None and (is_gone or known["spec"]["nodeName"] != machine):
            yield Observation(ZERO + at, self._containers.pop(name), gone=True)
            known = None
        if is_gone:
            return
        pod = _pod(name, row.name("app_du"), row.amount("cpu_request"), row.amount("mem_size"), "services")
        # First without a node, so that the recording has an arrival and a binding.
        if known is None:
            yield Observation(ZERO + at, pod)
        self._containers[name] = {**pod, "spec": {**pod["spec"], "nodeName": machine}}
        yield Observation(ZERO + at, self._containers[name])

    def _task(self, at: int, row: Row) -> Iterator[Observation]:
        job = row.name("job_name")
        ends, count = row.time("end_time", 0), row.integer("instance_num", 0)
        if not 0 <= count <= MOST_INSTANCES:
            row.refuse("instance_num", f"a number from 0 to {MOST_INSTANCES:,}")
        if at == 0 or 0 < ends < at:
            why = "batch tasks that have no begin, or one after their end"
            yield Observation(ZERO + at, {"kind": "Task"}, problem=why)
            return
        for number in range(count):
            name = f"{job}-{row.name('task_name')}-{number}"
            pod = _pod(name, job, row.amount("plan_cpu"), row.amount("plan_mem"), "batch")
            yield Observation(ZERO + at, pod)
            if ends > 0:
                heapq.heappush(self._ends, (ends, next(self._order), pod))

    def _ended(self, until: int) -> Iterator[Observation]:
        while self._ends and self._ends[0][0] <= until:
            at, _, pod = heapq.heappop(self._ends)
            yield Observation(ZERO + at, pod, gone=True)


def _machine(at: int, row: Row) -> Iterator[Observation]:
    name = _machine_name(row)
    cpus, memory = row.amount("cpu_num"), row.amount("mem_size")
    capacity = {
        "cpu": f"{round(1000 * cpus)}m",
        "memory": str(round(MEMORY * memory / 100)),
        "pods": str(PODS),
    }
    labels = {"kubernetes.io/hostname": name}
    if domain := row.text("failure_domain_1"):
        labels["topology.kubernetes.io/zone"] = f"domain-{_plain(domain)}"
    manifest = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": capacity, "allocatable": capacity},
    }
    yield Observation(ZERO + at, manifest)


def _pod(name: str, app: str, cpu: float, memory: float, namespace: str) -> dict[str, Any]:
    """Return the manifest of a pod; CPU is in hundredths of a core, memory in percent of the largest machine."""
    requests = {"cpu": f"{round(10 * cpu)}m", "memory": str(round(MEMORY * memory / 100))}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": _plain(name),
            "namespace": namespace,
            "labels": {"app": _plain(app)},
        },
        "spec": {"containers": [{"name": "main", "resources": {"requests": requests}}]},
    }


def _machine_name(row: Row) -> str:
    return _plain(row.name("machine_id"))


def _plain(text: str) -> str:
    """Return the name in a form that Kubernetes accepts, without underscores (`M2_1`)."""
    return "".join(each if each.isascii() and each.isalnum() else "-" for each in text.lower())[:63].strip(
        "-"
    )
