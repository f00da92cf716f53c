"""kube-apiserver's audit log: the writes to a cluster, with the resulting objects.

Needed are the responses to successful writes, at level RequestResponse; `POLICY` asks the API server for these alone.
Objects that existed before the log begins are known only from their next write on. What the API server does by itself
isn't logged, either: an evicted pod counts as terminating from the kubelet's next status on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from kschedfw.api import KIND_OF
from kschedfw.api.reading import plural_of
from kschedfw_replay.importing.observations import Binding, Observation, items_of, json_lines, seconds_of
from kschedfw_replay.recording.blocks import RecordingError
from kschedfw_replay.recording.recorder import RECORDED_KINDS

_WRITES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_DONE: Final = "ResponseComplete"
_KINDS: Final = {
    (kind.api_version.rpartition("/")[0], plural_of(kind.name)): kind
    for kind in (KIND_OF[cls] for cls in RECORDED_KINDS)
}
"""The recorded kinds by group and plural."""


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
            yield from _observations(event, where)


def _observations(event: Mapping[str, Any], where: str) -> Iterator[Observation | Binding]:
    verb, reference = event.get("verb"), event.get("objectRef")
    code = _mapping(event, "responseStatus").get("code", 0)
    if event.get("stage") != _DONE or verb not in _WRITES or not isinstance(reference, Mapping):
        return
    # A refused write changed nothing, and neither did a dry run.
    if not isinstance(code, int) or not 200 <= code < 300 or "dryRun=" in str(event.get("requestURI")):
        return
    at = seconds_of(event.get("stageTimestamp"), where)
    if reference.get("subresource") == "binding":
        # The response to a binding is a Status, so the node is only in the request.
        node_name = _mapping(_mapping(event, "requestObject"), "target").get("name")
        yield Binding(at, str(reference.get("namespace")), str(reference.get("name")), str(node_name))
        return
    kind = _KINDS.get((str(reference.get("apiGroup", "")), str(reference.get("resource"))))
    if kind is None:
        return
    response = event.get("responseObject")
    if response is None:
        raise RecordingError(f"{where}: an event without responseObject; the level RequestResponse is needed")
    for found in _objects(response, kind.name, where):
        head = {"apiVersion": kind.api_version, "kind": kind.name}
        if found.get("kind") == kind.name:
            yield Observation(at, {**found, **head}, gone=_is_gone(found, verb))
        elif found.get("kind") == "Status" and verb == "delete":
            # The API server answers with a Status, not with the object, if that is gone at once.
            metadata = {field: reference[field] for field in ("name", "namespace") if field in reference}
            yield Observation(at, {**head, "metadata": metadata}, gone=True)


def _objects(response: object, kind: str, where: str) -> Iterator[Mapping[str, Any]]:
    """Return the objects of a response. Objects of a list get their kind from the list."""
    if not isinstance(response, Mapping):
        return
    if response.get("kind") == f"{kind}List":
        for item in items_of(response, where):
            if isinstance(item, Mapping):
                yield {**item, "kind": kind}
    else:
        yield response


def _is_gone(obj: Mapping[str, Any], verb: object) -> bool:
    """Tell whether a write has removed the object: it was deleted, and no grace period or finalizer holds it."""
    metadata = _mapping(obj, "metadata")
    if metadata.get("deletionTimestamp") is None:
        return verb in ("delete", "deletecollection")
    return not metadata.get("deletionGracePeriodSeconds") and not metadata.get("finalizers")


def _mapping(content: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    found = content.get(field)
    return found if isinstance(found, Mapping) else {}
