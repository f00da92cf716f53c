"""kube-apiserver's audit log: the writes to a cluster, with the resulting objects.

Needed are the responses to successful writes, at level RequestResponse; `POLICY` asks the API server for these alone.
Objects that existed before the log begins are known only from their next write on. What the API server does by itself
isn't logged, either: an evicted pod counts as terminating from the kubelet's next status on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from kschedfw.api import KIND_OF
from kschedfw.api.reading import plural_of
from kschedfw_replay.importing.observations import Binding, Observation, items_of, json_lines, seconds_of
from kschedfw_replay.recording.blocks import RecordingError
from kschedfw_replay.recording.recorder import RECORDED_KINDS

_T = TypeVar("_T")

_WRITES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_DONE: Final = "ResponseComplete"
_KINDS: Final = {
    (kind.api_version.rpartition("/")[0], plural_of(kind.name)): kind
    for kind in (KIND_OF[cls] for cls in RECORDED_KINDS)
}
"""The recorded kinds by group and plural."""


class _Reference(msgspec.Struct, rename="camel"):
    resource: str = ""
    subresource: str = ""
    api_group: str = ""
    namespace: str = ""
    name: str = ""


class _Status(msgspec.Struct):
    code: int = 0


class _Target(msgspec.Struct):
    name: str


class _Binding(msgspec.Struct):
    target: _Target


class _Event(msgspec.Struct, rename="camel"):
    """The fields of an event that are read."""

    stage: str = ""
    verb: str = ""
    stage_timestamp: str | None = None
    request_uri: str = msgspec.field(default="", name="requestURI")
    object_ref: _Reference | None = None
    response_status: _Status | None = None
    request_object: dict[str, Any] | None = None
    response_object: dict[str, Any] | None = None


def policy() -> str:
    """The audit policy that records what is needed, and nothing else."""
    return files("kschedfw_replay.importing").joinpath("audit-policy.yaml").read_text(encoding="utf-8")


def read_audit_log(path: Path) -> Iterator[Observation | Binding]:
    """Yield the observations in an audit log: JSON lines of the log backend, or batches of the webhook backend.

    Raises:
        RecordingError: a line is no event of audit.k8s.io/v1.
    """
    for number, line in json_lines(path):
        where = f"{path}: line {number}"
        is_batch = isinstance(line, Mapping) and line.get("kind") == "EventList"
        for event in items_of(line, where) if is_batch else (line,):
            if not isinstance(event, Mapping) or "auditID" not in event:
                raise RecordingError(f"{where}: not an event of audit.k8s.io/v1")
            yield from _observations(_converted(event, _Event, where), where)


def _observations(event: _Event, where: str) -> Iterator[Observation | Binding]:
    reference, status = event.object_ref, event.response_status
    if event.stage != _DONE or event.verb not in _WRITES or reference is None or status is None:
        return
    # A refused write changed nothing, and neither did a dry run.
    if not 200 <= status.code < 300 or "dryRun=" in event.request_uri:
        return
    at = seconds_of(event.stage_timestamp, f"{where}: stageTimestamp")
    if reference.subresource == "binding":
        # The response to a binding is a Status, so the node is only in the request.
        request = _logged(event.request_object, "requestObject", where)
        binding = _converted(request, _Binding, f"{where}: requestObject")
        yield Binding(at, reference.namespace, reference.name, binding.target.name)
        return
    kind = _KINDS.get((reference.api_group, reference.resource))
    if kind is None:
        return
    response = _logged(event.response_object, "responseObject", where)
    for found in _objects(response, kind.name, where):
        head = {"apiVersion": kind.api_version, "kind": kind.name}
        if found.get("kind") == kind.name:
            yield Observation(at, {**found, **head}, gone=_is_gone(found, event.verb))
        elif found.get("kind") == "Status" and event.verb == "delete":
            # The API server answers with a Status, not with the object, if that is gone at once.
            metadata = {"name": reference.name, "namespace": reference.namespace}
            yield Observation(at, {**head, "metadata": metadata}, gone=True)


def _converted(content: object, type: type[_T], where: str) -> _T:
    """Return the content as an object of the type.

    Raises:
        RecordingError: a field is missing or has another type.
    """
    try:
        return msgspec.convert(content, type)
    except msgspec.ValidationError as error:
        # Its path begins with `$`, which stands for the content.
        what, _, path = str(error).partition(" - at `$.")
        raise RecordingError(f"{where}: {path.removesuffix('`')}{': ' if path else ''}{what}") from None


def _logged(found: dict[str, Any] | None, field: str, where: str) -> dict[str, Any]:
    if found is None:
        raise RecordingError(f"{where}: an event without {field}; the level RequestResponse is needed")
    return found


def _objects(response: Mapping[str, Any], kind: str, where: str) -> Iterator[Mapping[str, Any]]:
    """Return the objects of a response. Objects of a list get their kind from the list."""
    if response.get("kind") == f"{kind}List":
        for item in items_of(response, where):
            if isinstance(item, Mapping):
                yield {**item, "kind": kind}
    else:
        yield response


def _is_gone(obj: Mapping[str, Any], verb: str) -> bool:
    """Tell whether a write has removed the object: it was deleted, and no grace period or finalizer holds it."""
    found = obj.get("metadata")
    metadata = found if isinstance(found, Mapping) else {}
    if metadata.get("deletionTimestamp") is None:
        return verb in ("delete", "deletecollection")
    return not metadata.get("deletionGracePeriodSeconds") and not metadata.get("finalizers")
