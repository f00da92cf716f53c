"""Objects as tables, in which kubectl shows them (`meta.k8s.io/v1` Table)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from kschedfw_apiserver.lists import Page
from kschedfw_apiserver.resources import Resource
from kschedfw_apiserver.store import Stored

Manifest = Mapping[str, Any]
Cells = Callable[[Manifest, float], Sequence[object]]

_NONE: Final = "<none>"
_UNKNOWN: Final = "<unknown>"
_SPEAKS_TABLES: Final = "as=Table"
_WIDE: Final = 1
"""The priority of columns that only `-o wide` shows."""


def wants_table(headers: Mapping[str, str]) -> bool:
    """Return whether the client prefers a table."""
    return _SPEAKS_TABLES in headers.get("accept", "").partition(",")[0]


def table(resource: Resource, page: Page, *, now: float, include: str) -> bytes:
    """Return the Table of a list. `include` is the part of the objects in the rows: None, Metadata or Object."""
    return msgspec.json.encode(
        {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": page.metadata,
            "columnDefinitions": _definitions(resource),
            "rows": [_row(resource, each, now, include) for each in page.items],
        }
    )


def row_table(stored: Stored, *, now: float, include: str, with_columns: bool = True) -> bytes:
    """Return the Table of one object. In a watch, only the first one has columns."""
    columns = _definitions(stored.resource) if with_columns else None
    metadata = {"resourceVersion": str(stored.version)}
    head = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
    rows = [_row(stored.resource, stored, now, include)]
    return msgspec.json.encode({**head, "columnDefinitions": columns, "rows": rows})


def _row(resource: Resource, stored: Stored, now: float, include: str) -> dict[str, Any]:
    _, cells = _KINDS.get(resource.kind, _PLAIN)
    row: dict[str, Any] = {"cells": list(cells(stored.manifest, now))}
    if include == "Object":
        row["object"] = {"kind": resource.kind, "apiVersion": resource.api_version, **stored.manifest}
    elif include != "None":
        head = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
        row["object"] = {**head, "metadata": stored.manifest["metadata"]}
    return row


def _definitions(resource: Resource) -> list[dict[str, Any]]:
    columns, _ = _KINDS.get(resource.kind, _PLAIN)
    return [
        {
            "name": name.removesuffix("*"),
            "type": "string",
            "format": "name" if name == "Name" else "",
            "description": name.removesuffix("*"),
            "priority": _WIDE if name.endswith("*") else 0,
        }
        for name in columns
    ]


def _pod(pod: Manifest, now: float) -> Sequence[object]:
    metadata, spec, said = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    containers = said.get("containerStatuses") or []
    ready = sum(bool(each.get("ready")) for each in containers)
    restarts = sum(int(each.get("restartCount", 0)) for each in containers)
    phase = said.get("reason") or said.get("phase", "Pending")
    if any(
        each.get("type") == "PodScheduled" and each.get("reason") == "SchedulingGated"
        for each in said.get("conditions") or ()
    ):
        phase = "SchedulingGated"
    if "deletionTimestamp" in metadata:
        phase = "Terminating"
    return (
        metadata["name"],
        f"{ready}/{len(spec.get('containers') or ())}",
        phase,
        str(restarts),
        _age(pod, now),
        said.get("podIP") or _NONE,
        spec.get("nodeName") or _NONE,
        said.get("nominatedNodeName") or _NONE,
        _NONE,
    )


_ROLE: Final = "node-role.kubernetes.io/"


def _node(node: Manifest, now: float) -> Sequence[object]:
    metadata, spec, said = node["metadata"], node.get("spec") or {}, node.get("status") or {}
    ready = [each for each in said.get("conditions") or () if each.get("type") == "Ready"]
    states = [("Ready" if each.get("status") == "True" else "NotReady") for each in ready] or ["Unknown"]
    if spec.get("unschedulable"):
        states.append("SchedulingDisabled")
    roles = [label.removeprefix(_ROLE) for label in metadata.get("labels") or () if label.startswith(_ROLE)]
    addresses = {each.get("type"): each.get("address") for each in said.get("addresses") or ()}
    info = said.get("nodeInfo") or {}
    return (
        metadata["name"],
        ",".join(states),
        ",".join(sorted(roles)) or _NONE,
        _age(node, now),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", _NONE),
        addresses.get("ExternalIP", _NONE),
        info.get("osImage") or _UNKNOWN,
        info.get("kernelVersion") or _UNKNOWN,
        info.get("containerRuntimeVersion") or _UNKNOWN,
    )


def _event(event: Manifest, now: float) -> Sequence[object]:
    about = event.get("involvedObject") or {}
    source, series = event.get("source") or {}, event.get("series") or {}
    first = event.get("firstTimestamp") or event.get("eventTime")
    last = series.get("lastObservedTime") or event.get("lastTimestamp") or first
    return (
        _since(last, now),
        event.get("type", ""),
        event.get("reason", ""),
        f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}",
        about.get("fieldPath", ""),
        source.get("component") or event.get("reportingComponent", ""),
        str(event.get("message", "")).strip(),
        _since(first, now),
        str(series.get("count") or event.get("count") or 1),
        event["metadata"]["name"],
    )


def _lease(lease: Manifest, now: float) -> Sequence[object]:
    return lease["metadata"]["name"], (lease.get("spec") or {}).get("holderIdentity", ""), _age(lease, now)


def _namespace(namespace: Manifest, now: float) -> Sequence[object]:
    return (
        namespace["metadata"]["name"],
        (namespace.get("status") or {}).get("phase", "Active"),
        _age(namespace, now),
    )


def _plain(obj: Manifest, _: float) -> Sequence[object]:
    metadata = obj["metadata"]
    return metadata["name"], metadata.get("creationTimestamp")


_PLAIN: Final[tuple[Sequence[str], Cells]] = (("Name", "Created At"), _plain)
_KINDS: Final[Mapping[str, tuple[Sequence[str], Cells]]] = {
    "Pod": (
        ("Name", "Ready", "Status", "Restarts", "Age", "IP*", "Node*", "Nominated Node*", "Readiness Gates*"),
        _pod,
    ),
    "Node": (
        (
            *("Name", "Status", "Roles", "Age", "Version", "Internal-IP*", "External-IP*", "OS-Image*"),
            *("Kernel-Version*", "Container-Runtime*"),
        ),
        _node,
    ),
    "Event": (
        (
            *("Last Seen", "Type", "Reason", "Object", "Subobject*", "Source*", "Message", "First Seen*"),
            *("Count*", "Name*"),
        ),
        _event,
    ),
    "Lease": (("Name", "Holder", "Age"), _lease),
    "Namespace": (("Name", "Status", "Age"), _namespace),
}


def _age(obj: Manifest, now: float) -> str:
    return _since(obj["metadata"].get("creationTimestamp"), now)


def _since(time: str | None, now: float) -> str:
    if not time:
        return _UNKNOWN
    return short_duration(int(now - datetime.fromisoformat(time).timestamp()))


def short_duration(seconds: int) -> str:
    """Return a duration as kubectl shows ages (apimachinery `duration.HumanDuration`): in one or two units."""
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return f"{minutes}m{seconds % 60}s" if seconds % 60 else f"{minutes}m"
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    if days < 730:
        return f"{days}d"
    return f"{days // 365}y{days % 365}d" if days < 365 * 8 and days % 365 else f"{days // 365}y"
