"""The content of small files of each format that is imported, and how it is written, to damage it in between."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import msgspec

NODE: Final = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n", "labels": {"zone": "a"}},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
}
POD: Final = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "d", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}], "priority": 1},
}
_BOUND: Final = {**POD, "spec": {**POD["spec"], "nodeName": "n"}}  # type: ignore[dict-item]
_GONE: Final = {**POD, "metadata": {**POD["metadata"], "deletionTimestamp": "2026-01-01T00:00:09Z"}}  # type: ignore[dict-item]


def _event(second: int, verb: str, response: Any, **reference: str) -> dict[str, Any]:
    return {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "auditID": str(second),
        "stage": "ResponseComplete",
        "requestURI": "/api/v1",
        "verb": verb,
        "objectRef": {"resource": "pods", "namespace": "d", "name": "p", "apiVersion": "v1", **reference},
        "responseStatus": {"code": 200},
        "responseObject": response,
        "stageTimestamp": f"2026-01-01T00:00:{second:02}.000000Z",
    }


_BINDING: Final = {
    **_event(3, "create", {"kind": "Status"}, subresource="binding"),
    "requestObject": {"kind": "Binding", "target": {"kind": "Node", "name": "n"}},
}
_LISTED: Final = {"kind": "PodList", "items": [{key: POD[key] for key in ("metadata", "spec")}]}
_AUDIT: Final = [
    _event(1, "create", NODE, resource="nodes"),
    _event(2, "create", POD),
    _BINDING,
    {"kind": "EventList", "items": [_event(4, "patch", _BOUND), _event(5, "delete", _GONE)]},
    _event(6, "delete", {"kind": "Status"}),
    _event(7, "create", POD),
    _event(8, "deletecollection", _LISTED),
]
_SIMULATOR: Final = [
    {"time": f"2026-01-01T00:00:0{second}Z", "event": event, "resource": resource}
    for second, (event, resource) in enumerate(
        [("Add", NODE), ("Add", POD), ("Update", _BOUND), ("Update", _GONE), ("Delete", POD)]
    )
]
_SNAPSHOT: Final = [
    {"nodes": [{"metadata": NODE["metadata"], "status": NODE["status"]}], "pods": [POD], "pvs": None}
]
_DEPLOYMENT: Final = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "d"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": POD["spec"]},
    },
}
_SIMKUBE: Final = {
    "version": 2,
    "config": {},
    "events": [
        {"ts": 1, "applied_objs": [], "deleted_objs": []},
        {"ts": 2, "applied_objs": [_DEPLOYMENT], "deleted_objs": []},
        {"ts": 9, "applied_objs": [NODE], "deleted_objs": [_DEPLOYMENT]},
    ],
    "index": {},
    "pod_lifecycles": [{"Finished": [3, 8]}, {"Running": 3}, "Empty"],
}
_MACHINES_2011: Final = [[0, 5, 0, "p", 1, 0.5], [8, 5, 2, "p", 1, 1], [60_000_000, 5, 1, "", "", ""]]
_TASKS_2011: Final = [
    [at, "", 7, 0, 5, kind, "u", 0, 9, 0.5, 0.25, 0.001, 1]
    for at, kind in ((1_000_000, 0), (2_000_000, 1), (2_500_000, 8), (3_000_000, 2), (4_000_000, 5))
]
_MACHINES_2019: Final = [
    {"time": "0", "machine_id": "3", "type": 1, "capacity": {"cpus": 1.0, "memory": 0.5}}
]
_TASKS_2019: Final = [
    {
        "time": at,
        "type": kind,
        "collection_id": "9",
        "instance_index": "1",
        "priority": "200",
        "machine_id": "3",
        "alloc_collection_id": alloc,
        "resource_request": {"cpus": 0.125, "memory": 0.25},
    }
    for at, kind, alloc in (
        ("1000000", "ENABLE", "0"),
        ("2000000", "SCHEDULE", "0"),
        ("3000000", 4, ""),
        ("3", 2, "4"),
    )
]
_ALIBABA: Final[Mapping[str, list[list[Any]]]] = {
    "machine_meta": [["m_1", 0, 4, 1, 96, 50, "USING"]],
    "container_meta": [
        ["c_1", "m_1", 0, "app_9", "started", 400, 800, 1.5625],
        ["c_1", "m_1", 60, "app_9", "stopped", 400, 800, 1.5625],
    ],
    "batch_task": [
        ["M1", 2, "j_1", "A", "Terminated", 10, 80, 100, 0.39],
        ["M1", 1, "j_2", "A", "Running", 70, 0, "", ""],
    ],
}


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _json_lines(path: Path, lines: Any) -> None:
    path.write_bytes(b"\n".join(map(_json, lines if isinstance(lines, list) else [lines])))


def _csv(path: Path, rows: Any) -> None:
    text = io.StringIO()
    for row in rows if isinstance(rows, list) else [rows]:
        csv.writer(text).writerow(row if isinstance(row, list) else [row])
    path.write_bytes(text.getvalue().encode("utf-8", "surrogatepass"))


def _csv_tables(path: Path, tables: Mapping[str, Any]) -> None:
    path.mkdir()
    for name, rows in tables.items():
        _csv(path / f"{_file_name(name)}.csv", rows)


def _json_tables(path: Path, tables: Mapping[str, Any]) -> None:
    path.mkdir()
    for name, rows in tables.items():
        _json_lines(path / f"{_file_name(name)}.json", rows)


def _file_name(name: str) -> str:
    # The name of a table may be damaged, too.
    return name.encode("ascii", "replace").decode()


def _packable(value: Any) -> Any:
    """Return the value without what MessagePack doesn't have."""
    match value:
        case bool():
            return value
        case int():
            return max(-(1 << 63), min(value, (1 << 64) - 1))
        case str():
            return value.encode("utf-8", "replace").decode()
        case list():
            return [_packable(each) for each in value]
        case dict():
            return {_packable(key): _packable(each) for key, each in value.items()}
    return value


def _simkube(path: Path, trace: Any) -> None:
    trace = _packable(trace)
    if isinstance(trace, dict) and "pod_lifecycles" in trace:
        # Tuples are keys in MessagePack, and can't be in JSON.
        trace["pod_lifecycles"] = {("apps/v1.Deployment", "d/web"): {17: trace["pod_lifecycles"]}}
    path.write_bytes(msgspec.msgpack.encode(trace))


@attrs.frozen
class Format:
    """A format that is imported.

    Attributes:
        name: as the command takes it.
        content: of a file that is right, as JSON data.
        write: writes such content, right or not, as a file or as a directory of tables.
    """

    name: str
    content: Any
    write: Callable[[Path, Any], None]


FORMATS: Final = (
    Format("audit", _AUDIT, _json_lines),
    Format("simulator", _SIMULATOR, _json_lines),
    Format("simulator", _SNAPSHOT, _json_lines),
    Format("simkube", _SIMKUBE, _simkube),
    Format("google-2011", {"machine_events": _MACHINES_2011, "task_events": _TASKS_2011}, _csv_tables),
    Format("google-2019", {"machine_events": _MACHINES_2019, "instance_events": _TASKS_2019}, _json_tables),
    Format("alibaba-2018", _ALIBABA, _csv_tables),
)
