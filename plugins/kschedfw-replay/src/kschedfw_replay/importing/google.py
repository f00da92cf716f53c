"""Google's cluster traces of 2011 (CSV) and of 2019 (JSON lines or CSV, as BigQuery exports them).

Machines are nodes, tasks are pods; amounts are shares of the largest machine, which is taken for one of `CPUS` cores
and `MEMORY` bytes. Only tasks that exist at a time are in memory. Lost are constraints on machines' attributes, which
are obfuscated, disks, users, what tasks used, and that jobs depend on one another.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import attrs

from kschedfw_replay.importing.observations import Observation
from kschedfw_replay.importing.tables import MOST_AT_A_TIME, Row, Table, Timed, in_order, sort_rows, timed
from kschedfw_replay.recording.blocks import RecordingError

CPUS: Final = 64
MEMORY: Final = 256 << 30
PODS: Final = 1000
"""The number of pods that a node takes; the traces have no such limit."""
_NAMESPACE: Final = "google"
_MICROSECONDS: Final = 1_000_000
_AFTER_THE_TRACE: Final = (1 << 63) - 1
_JOB: Final = "job"
_HOST: Final = "kubernetes.io/hostname"
_SUBMIT, _ENABLE, _SCHEDULE, _EVICT = "SUBMIT", "ENABLE", "SCHEDULE", "EVICT"
_ENDS: Final = (_EVICT, "FAIL", "FINISH", "KILL", "LOST")
_UPDATES: Final = ("UPDATE_PENDING", "UPDATE_RUNNING")
_EVICTED: Final = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}


@attrs.frozen
class _Version:
    """The differences between the versions of the traces.

    Attributes:
        zero: the time that second 0 of the trace stands for, in seconds since 1970.
        machines: the table of machines.
        tasks: the table of tasks.
        machine_events: the types of machines' events, by their numbers.
        task_events: those of tasks.
        arrives: the event at which a task may be scheduled.
        is_sorted: whether the tables are sorted by time.
    """

    zero: float
    machines: Table
    tasks: Table
    machine_events: Sequence[str]
    task_events: Sequence[str]
    arrives: str
    is_sorted: bool


_V2011: Final = _Version(
    # The trace's second 600 is 2011-05-01 19:00 in New York.
    zero=datetime(2011, 5, 1, 22, 50, tzinfo=UTC).timestamp(),
    machines=Table(
        "machine_events", ("time", "machine_id", "type", "platform_id", "capacity.cpus", "capacity.memory")
    ),
    tasks=Table(
        "task_events",
        (
            "time",
            "missing_type",
            "collection_id",
            "instance_index",
            "machine_id",
            "type",
            "user",
            "scheduling_class",
            "priority",
            "resource_request.cpus",
            "resource_request.memory",
            "disk",
            "different_machines",
        ),
    ),
    machine_events=("ADD", "REMOVE", "UPDATE"),
    task_events=(_SUBMIT, _SCHEDULE, *_ENDS, *_UPDATES),
    arrives=_SUBMIT,
    is_sorted=True,
)
_V2019: Final = _Version(
    # The trace's second 600 is 2019-05-01 00:00 in Los Angeles.
    zero=datetime(2019, 5, 1, 6, 50, tzinfo=UTC).timestamp(),
    machines=Table(
        "machine_events",
        (
            "time",
            "machine_id",
            "type",
            "switch_id",
            "capacity.cpus",
            "capacity.memory",
            "platform_id",
            "missing_data_reason",
        ),
    ),
    tasks=Table(
        "instance_events",
        (
            "time",
            "type",
            "collection_id",
            "scheduling_class",
            "missing_type",
            "collection_type",
            "priority",
            "alloc_collection_id",
            "instance_index",
            "machine_id",
            "alloc_instance_index",
            "resource_request.cpus",
            "resource_request.memory",
        ),
    ),
    machine_events=("EVENT_TYPE_UNKNOWN", "ADD", "REMOVE", "UPDATE"),
    task_events=(_SUBMIT, "QUEUE", _ENABLE, _SCHEDULE, *_ENDS, *_UPDATES),
    arrives=_ENABLE,
    is_sorted=False,
)


def read_google_2011(directory: Path) -> Iterator[Observation]:
    """Yield the observations in the tables `machine_events` and `task_events` of the trace of 2011.

    Raises:
        RecordingError: a table is missing, or has a row that is none of it.
    """
    return _Reading(_V2011, directory).observations()


def read_google_2019(directory: Path) -> Iterator[Observation]:
    """Yield the observations in the tables `machine_events` and `instance_events` of a cell of the trace of 2019.

    Raises:
        RecordingError: a table is missing, or has a row that is none of it.
    """
    return _Reading(_V2019, directory).observations()


class _Reading:
    """A pass over a trace."""

    def __init__(self, version: _Version, directory: Path) -> None:
        self._version, self._directory = version, directory
        self._tasks: dict[tuple[str, str], dict[str, Any]] = {}
        """The manifests of tasks that exist, by collection and index."""
        self._classes: set[int] = set()

    def observations(self) -> Iterator[Observation]:
        version, directory = self._version, self._directory
        if not directory.is_dir() or not version.tasks.parts(directory):
            raise RecordingError(
                f"{directory}: expected a directory with the tables {version.machines.name} and {version.tasks.name} "
                "(.csv, .json, also gzipped, or directories of such parts)"
            )
        machines, tasks = self._rows(version.machines), self._rows(version.tasks)
        # Machines come first at any time, so that tasks are bound to machines that are there.
        both = ((at, False, row) for at, row in machines), ((at, True, row) for at, row in tasks)
        # By time and table alone, since rows can't be compared.
        for at, is_task, row in heapq.merge(*both, key=lambda each: each[:2]):
            seconds = version.zero + at / _MICROSECONDS
            if is_task:
                yield from self._task(seconds, row)
            else:
                yield self._machine(seconds, row)

    def _rows(self, table: Table) -> Iterator[Timed]:
        rows = timed(table.rows(self._directory), _time)
        return in_order(rows) if self._version.is_sorted else sort_rows(rows)

    def _machine(self, at: float, row: Row) -> Observation:
        name = _machine_name(row)
        labels = {_HOST: name}
        if platform := row.text("platform_id"):
            labels["platform"] = _label(platform)
        capacity = {**_amounts(row, "capacity"), "pods": str(PODS)}
        manifest = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "status": {"capacity": capacity, "allocatable": capacity},
        }
        return Observation(at, manifest, gone=_type(row, self._version.machine_events) == "REMOVE")

    def _task(self, at: float, row: Row) -> Iterator[Observation]:
        if row.text("alloc_collection_id") not in ("", "0"):
            if _type(row, self._version.task_events) == self._version.arrives:
                yield Observation(at, {"kind": "Task"}, problem="tasks in the reservation of an alloc set")
            return
        event = _type(row, self._version.task_events)
        key = row.name("collection_id"), row.name("instance_index")
        known = self._tasks.get(key)
        if event in _ENDS:
            if known is not None:
                # The condition first, so that the end counts as an eviction.
                if event == _EVICT and known["spec"].get("nodeName"):
                    yield Observation(at, {**known, "status": {"conditions": [_EVICTED]}})
                yield Observation(at, self._tasks.pop(key), gone=True)
            return
        if event not in (self._version.arrives, _SCHEDULE, *_UPDATES) or (
            known is None and event in _UPDATES
        ):
            return
        manifest = self._manifest(key, row)
        if known is not None and (node := known["spec"].get("nodeName")):
            manifest["spec"]["nodeName"] = node
        elif known is None:
            # Before the first pod that names it.
            yield from self._priority_class(at, row)
            yield Observation(at, manifest)
        if event == _SCHEDULE:
            # Without its machine nobody knows where the task ran.
            if row.integer("machine_id", 0) <= 0:
                self._tasks.pop(key, None)
                yield Observation(at, manifest, gone=True)
                yield Observation(at, {"kind": "Task"}, problem="tasks on machines that aren't in the trace")
                return
            manifest = {**manifest, "spec": {**manifest["spec"], "nodeName": _machine_name(row)}}
        self._tasks[key] = manifest
        if len(self._tasks) > MOST_AT_A_TIME:
            raise RecordingError(
                f"{row.path}: line {row.line}: more than {MOST_AT_A_TIME:,} tasks exist at this time"
            )
        if known is not None or event == _SCHEDULE:
            yield Observation(at, manifest)

    def _manifest(self, key: tuple[str, str], row: Row) -> dict[str, Any]:
        collection, index = key
        spec: dict[str, Any] = {
            "priority": row.integer("priority", 0),
            "priorityClassName": f"priority-{row.integer('priority', 0)}",
            "containers": [{"name": "task", "resources": {"requests": _amounts(row, "resource_request")}}],
        }
        if row.text("different_machines") in ("1", "true"):
            term = {"labelSelector": {"matchLabels": {_JOB: collection}}, "topologyKey": _HOST}
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{collection}-{index}",
                "namespace": _NAMESPACE,
                "labels": {_JOB: collection},
            },
            "spec": spec,
        }

    def _priority_class(self, at: float, row: Row) -> Iterator[Observation]:
        if (priority := row.integer("priority", 0)) in self._classes:
            return
        self._classes.add(priority)
        name = {"name": f"priority-{priority}"}
        head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": name}
        yield Observation(at, {**head, "value": priority})


def _time(row: Row) -> int | None:
    """Return the time in microseconds; None for an event after the end of the trace."""
    if row.integer("time") >= _AFTER_THE_TRACE:
        return None
    at = row.time("time", per_second=_MICROSECONDS)
    return at if at >= 0 else row.refuse("time", "microseconds from 0")


def _type(row: Row, events: Sequence[str]) -> str:
    text = row.text("type")
    if text.isascii() and text.isdigit() and len(text) < 3 and int(text) < len(events):
        return events[int(text)]
    return (
        text
        if text in events
        else row.refuse("type", f"0 to {len(events) - 1}, or one of {', '.join(events)}")
    )


def _machine_name(row: Row) -> str:
    return f"machine-{row.integer('machine_id')}"


def _label(text: str) -> str:
    """Return a platform, which is a hash in Base64, in a form that is valid as a label."""
    return "".join(each if each.isascii() and each.isalnum() else "-" for each in text)[:63].strip("-")


def _amounts(row: Row, record: str) -> Mapping[str, str]:
    cpus, memory = row.amount(f"{record}.cpus"), row.amount(f"{record}.memory")
    return {"cpu": f"{round(1000 * CPUS * cpus)}m", "memory": str(round(MEMORY * memory))}
