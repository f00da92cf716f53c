"""Clients' requests: a verb, a resource, and optionally a name and a subresource."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

import attrs
import msgspec

from kschedfw_apiserver.resources import Catalogue, Resource
from kschedfw_apiserver.status import StatusError, bad_request, unsupported_media_type

_NAMESPACE_PARTS: Final = ("status", "finalize")
_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_MOST_PARAMETERS: Final = 100
_PROTOBUF: Final = "application/vnd.kubernetes.protobuf"


@attrs.frozen
class Target:
    """The parts of a path. Without `resource`, the path doesn't name objects, and only `path` counts."""

    path: str
    resource: Resource | None = None
    namespace: str = ""
    name: str = ""
    subresource: str = ""


@attrs.frozen
class ApiRequest:
    """A request for objects. `verb` is written as in RBAC's rules; `query` has the last value of each parameter."""

    verb: str
    target: Target
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def resource(self) -> Resource:
        assert self.target.resource is not None
        return self.target.resource

    @property
    def namespace(self) -> str:
        return self.target.namespace

    @property
    def name(self) -> str:
        return self.target.name

    @property
    def subresource(self) -> str:
        return self.target.subresource

    @property
    def is_dry_run(self) -> bool:
        return self.query.get("dryRun") == "All"

    def number(self, parameter: str) -> int:
        """Return a parameter's number; 0 if it is missing or empty."""
        text = self.query.get(parameter, "")
        if text and not (text.isascii() and text.isdigit()):
            if parameter == "resourceVersion":
                why = f'Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
                raise bad_request(f"invalid resource version: resourceVersion: {why}")
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
        return int(text[:19] or 0)

    def says(self, parameter: str) -> bool:
        return self.query.get(parameter, "") in ("true", "1")

    def json(self) -> Any:
        """Return the decoded body. Raises StatusError if it isn't JSON."""
        if self.headers.get("content-type", "").startswith(_PROTOBUF):
            raise unsupported_media_type()
        try:
            return msgspec.json.decode(self.body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._unrecognized(str(error)) from None

    def document(self) -> dict[str, Any]:
        """Return the decoded body, which must be an object. Raises StatusError if it isn't."""
        read = self.json()
        if not isinstance(read, dict):
            raise self._unrecognized(f"expected an object, found {type(read).__name__}")
        return read

    def _unrecognized(self, why: str) -> StatusError:
        return bad_request(
            f"the object provided is unrecognized (must be of type {self.resource.kind}): couldn't get version/kind; "
            f"json parse error: {why}"
        )


def parse_target(path: str, catalogue: Catalogue) -> Target:
    """Return the parts of a path such as `/api/v1/namespaces/default/pods/web/status`."""
    parts = [unquote(part) for part in path.split("/") if part]
    match parts:
        case ["api", version, *rest] if rest:
            group = ""
        case ["apis", group, version, *rest] if rest:
            pass
        case _:
            return Target(path)
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not (len(rest) == 3 and rest[2] in _NAMESPACE_PARTS):
        namespace, rest = rest[1], rest[2:]
    resource = catalogue.find(group, version, rest[0])
    if resource is None or len(rest) > 3 or (namespace and not resource.namespaced):
        return Target(path)
    name, subresource = [*rest[1:], "", ""][:2]
    if resource.namespaced and name and not namespace:
        return Target(path)
    return Target(path, resource, namespace, name, subresource)


def verb_of(method: str, target: Target, query: Mapping[str, str]) -> str:
    """Return the verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`."""
    if target.resource is None:
        return method.lower()
    if method in ("GET", "HEAD"):
        if target.name:
            return "get"
        return "watch" if query.get("watch") in ("true", "1") else "list"
    if method == "DELETE":
        return "delete" if target.name else "deletecollection"
    return _VERBS.get(method, method.lower())


def parse_query(text: bytes) -> dict[str, str]:
    try:
        return dict(
            parse_qsl(
                text.decode("ascii", "replace"), keep_blank_values=True, max_num_fields=_MOST_PARAMETERS
            )
        )
    except ValueError:
        raise StatusError(400, "BadRequest", "too many parameters") from None
