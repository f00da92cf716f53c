"""The selectors of requests: `labelSelector` and `fieldSelector`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import attrs

from kschedfw.api import Selector
from kschedfw.api.reading import SelectorSyntaxError, parse_selector
from kschedfw_apiserver.resources import Resource
from kschedfw_apiserver.status import bad_request

_COMMA = re.compile(r"(?<!\\),")

_OPERATOR: Final = re.compile("==|!=|=")
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)

_INVOLVED: Final = tuple(
    f"involvedObject.{field}"
    for field in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
)
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "Pod": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "Node": ("spec.unschedulable",),
    "Namespace": ("status.phase",),
    "Secret": ("type",),
    "ReplicaSet": ("status.replicas",),
    "ReplicationController": ("status.replicas",),
    "Job": ("status.successful",),
    "ResourceSlice": ("spec.nodeName", "spec.driver"),
    "Event": (*_INVOLVED, "reason", "reportingComponent", "source", "type"),
}
_ALWAYS: Final = ("metadata.name", "metadata.namespace")
_OTHER_NAMES: Final = {
    **{field.replace("involvedObject", "regarding"): field for field in _INVOLVED},
    "reportingController": "reportingComponent",
    "source": "source.component",
}


@attrs.frozen
class FieldTerm:
    """One condition on one field."""

    path: tuple[str, ...]
    value: str
    equal: bool

    def matches(self, manifest: Mapping[str, Any]) -> bool:
        found: Any = manifest
        for part in self.path:
            found = found.get(part) if isinstance(found, Mapping) else None
        return (_text(found, self.path) == self.value) is self.equal


@attrs.frozen
class Selection:
    """The objects that a request selects; all by default."""

    labels: Selector | None = None
    fields: tuple[FieldTerm, ...] = ()
    namespace: str = ""

    @property
    def is_everything(self) -> bool:
        return self.labels is None and not self.fields and not self.namespace

    def matches(self, manifest: Mapping[str, Any]) -> bool:
        metadata = manifest["metadata"]
        if self.namespace and metadata.get("namespace") != self.namespace:
            return False
        if not all(term.matches(manifest) for term in self.fields):
            return False
        return self.labels is None or self.labels.matches(metadata.get("labels") or {})


def selection_of(resource: Resource, namespace: str, query: Mapping[str, str]) -> Selection:
    """Return the selection of a request.

    Raises StatusError if a selector is malformed or names an unsupported field.
    """
    labels, fields = query.get("labelSelector", ""), query.get("fieldSelector", "")
    try:
        selector = parse_selector(labels) if labels else None
    except SelectorSyntaxError as error:
        raise bad_request(f"unable to parse requirement: {error}") from None
    if len(fields) > 4_000:
        raise bad_request("the field selector is too long")
    terms = [_term(part, fields, resource) for part in _COMMA.split(fields) if part]
    return Selection(selector, tuple(terms), namespace)


def _term(part: str, fields: str, resource: Resource) -> FieldTerm:
    operator = _OPERATOR.search(part)
    if operator is None or not (label := part[: operator.start()]) or "!" in label:
        raise bad_request(f"invalid selector: '{fields}'; can't understand '{part}'")
    field = label
    allowed = (*_ALWAYS, *_FIELDS.get(resource.kind, ())) if not resource.custom else _ALWAYS
    if resource.kept_as is not None:
        field = _OTHER_NAMES.get(field, field)
    if field not in allowed:
        if resource.kind in _FIELDS:
            raise bad_request(f"field label not supported: {label}")
        raise bad_request(
            f'"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"'
        )
    path = tuple(_OTHER_NAMES["source"].split(".") if field == "source" else field.split("."))
    return FieldTerm(path, _ESCAPED.sub(r"\1", part[operator.end() :]), operator.group() != "!=")


_FALSE: Final = (("spec", "hostNetwork"), ("spec", "unschedulable"))


def _text(value: object, path: tuple[str, ...]) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "false" if path in _FALSE else ""
    return str(value)
