"""Files of kube-scheduler-simulator: recordings of its sched-recorder, and exported snapshots.

A recording has a line of JSON for each change: `time`, `event` (`Add`, `Update`, `Delete`) and `resource`. It has only
namespaces, priority classes, storage classes, claims, nodes, volumes and pods, unless the recorder was changed. An
exported snapshot is one object with a list for each of these kinds; it becomes a state without changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from kschedfw_replay.importing.observations import Binding, Observation, json_lines, seconds_of
from kschedfw_replay.recording.blocks import RecordingError

_EVENTS: Final = {"Add": False, "Update": False, "Delete": True}
"""The events, and whether the object is gone after them."""
_LISTS: Final = {
    "namespaces": ("v1", "Namespace"),
    "priorityClasses": ("scheduling.k8s.io/v1", "PriorityClass"),
    "storageClasses": ("storage.k8s.io/v1", "StorageClass"),
    "pvs": ("v1", "PersistentVolume"),
    "pvcs": ("v1", "PersistentVolumeClaim"),
    "nodes": ("v1", "Node"),
    "pods": ("v1", "Pod"),
}
"""The lists of a snapshot, and the kind of their objects, which don't tell it themselves."""


def read_simulator(path: Path) -> Iterator[Observation | Binding]:
    """Yield the observations in a recording or a snapshot of kube-scheduler-simulator; a snapshot's time is 0.

    Raises:
        RecordingError: it is neither.
    """
    for number, line in json_lines(path):
        where = f"{path}: line {number}"
        # A snapshot is one object on one line; a recording has a line for each change.
        if number == 1 and isinstance(line, Mapping) and _LISTS.keys() & line.keys():
            yield from _snapshot(where, line)
            continue
        resource = line.get("resource") if isinstance(line, Mapping) else None
        event = line.get("event") if isinstance(line, Mapping) else None
        if not isinstance(resource, Mapping) or not isinstance(event, str) or event not in _EVENTS:
            raise RecordingError(f"{where}: expected time, event (Add, Update or Delete) and resource")
        yield Observation(seconds_of(line.get("time"), where), resource, gone=_EVENTS[event])


def _snapshot(where: str, snapshot: Mapping[str, Any]) -> Iterator[Observation]:
    for name, (version, kind) in _LISTS.items():
        objects = snapshot.get(name)
        if objects is None:
            continue
        if not isinstance(objects, list) or not all(isinstance(each, Mapping) for each in objects):
            raise RecordingError(f"{where}: {name}: expected a list of objects")
        for obj in objects:
            yield Observation(0.0, {**obj, "apiVersion": version, "kind": kind})
