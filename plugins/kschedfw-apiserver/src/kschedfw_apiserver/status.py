"""Refusals in the words of the API server (apimachinery `api/errors`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from kschedfw_apiserver.resources import Resource

_WORD_END = re.compile(r"[ :]")


@attrs.frozen
class StatusError(Exception):
    """A request is refused with this Status."""

    code: int
    reason: str
    message: str
    details: Mapping[str, Any] | None = None

    @property
    def status(self) -> dict[str, Any]:
        """Return the Status object of the answer."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            **({"reason": self.reason} if self.reason else {}),
            **({"details": dict(self.details)} if self.details is not None else {}),
            "code": self.code,
        }


def _details(resource: Resource, name: str, **more: object) -> dict[str, Any]:
    details: dict[str, Any] = {"name": name, "group": resource.group, "kind": resource.plural, **more}
    return {key: value for key, value in details.items() if value}


def not_found(resource: Resource, name: str) -> StatusError:
    return StatusError(404, "NotFound", f'{resource.title} "{name}" not found', _details(resource, name))


def no_such_resource() -> StatusError:
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(resource: Resource, name: str) -> StatusError:
    return StatusError(
        409, "AlreadyExists", f'{resource.title} "{name}" already exists', _details(resource, name)
    )


def conflict(resource: Resource, name: str, why: str, *, subresource: str = "") -> StatusError:
    kind = f"{resource.plural}/{subresource}" if subresource else resource.plural
    title = f"{kind}.{resource.group}" if resource.group else kind
    return _conflict(resource, name, why, title, kind)


def overtaken(message: str) -> StatusError:
    """Return a Conflict without the name of an object."""
    return StatusError(409, "Conflict", message)


def failed_precondition(resource: Resource, name: str, why: str) -> StatusError:
    """Return the Conflict for a deletion whose precondition (uid or resource version) isn't met."""
    title = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    return _conflict(resource, name, why, title, resource.kind)


def _conflict(resource: Resource, name: str, why: str, title: str, kind: str) -> StatusError:
    message = f'Operation cannot be fulfilled on {title} "{name}": {why}'
    return StatusError(409, "Conflict", message, {**_details(resource, name), "kind": kind})


def outdated(resource: Resource, name: str) -> StatusError:
    return conflict(
        resource,
        name,
        "the object has been modified; please apply your changes to the latest version and try again",
    )


def other_uid(resource: Resource, key: tuple[str, str], wanted: str, present: str) -> StatusError:
    """Return the Conflict for a write that was meant for an earlier object of this namespace and name."""
    namespace, name = key
    place = "/".join(
        part for part in ("minions" if resource.kind == "Node" else resource.plural, namespace, name) if part
    )
    why = (
        f"StorageError: invalid object, Code: 4, Key: /registry/{place}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {present}"
    )
    return conflict(resource, name, why)


def unversioned(resource: Resource, name: str) -> StatusError:
    """Return the error for an update without the resource version that its kind requires."""
    field, text = "metadata.resourceVersion", "Invalid value: 0: must be specified for an update"
    cause = {"reason": "FieldValueInvalid", "message": text, "field": field}
    message = f'{resource.title} "{name}" is invalid: {field}: {text}'
    return StatusError(422, "Invalid", message, _details(resource, name, causes=[cause]))


_CAUSES: Final = {
    "Required": "FieldValueRequired",
    "Forbidden": "FieldValueForbidden",
    "Unsupported": "FieldValueNotSupported",
    "Duplicate": "FieldValueDuplicate",
    "Not": "FieldValueNotFound",
    "Too": "FieldValueTooLong",
}
"""The reason of a cause, by the first word of the problem with the field."""


def invalid(resource: Resource, name: str, problems: Iterable[tuple[str, str]]) -> StatusError:
    """Return the error for invalid fields. `problems` are pairs of a field's path and a text."""
    listed = list(problems)
    texts = [f"{path}: {text}" if path else text for path, text in listed]
    said = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    causes = [
        {
            "reason": _CAUSES.get(_WORD_END.split(text, maxsplit=1)[0], "FieldValueInvalid"),
            "message": text,
            "field": path,
        }
        for path, text in listed
    ]
    details = {**_details(resource, name), "kind": resource.kind, "causes": causes}
    return StatusError(422, "Invalid", f'{kind} "{name}" is invalid: {said}', details)


def forbidden(resource: Resource, name: str, why: str) -> StatusError:
    title = f'{resource.title} "{name}"' if name else resource.title
    return StatusError(403, "Forbidden", f"{title} is forbidden: {why}", _details(resource, name))


def unauthorized() -> StatusError:
    return StatusError(401, "Unauthorized", "Unauthorized")


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def method_not_allowed() -> StatusError:
    return StatusError(
        405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {}
    )


def unsupported_media_type() -> StatusError:
    return StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def impossible_patch() -> StatusError:
    """Return the error for a JSON patch that can't be applied, or whose test fails."""
    return StatusError(422, "Invalid", "the server rejected our request due to an error in our request", {})


def invalid_options(field: str, why: str) -> StatusError:
    """Return the error for parameters that contradict each other."""
    text = f"Forbidden: {why}"
    cause = {"reason": "FieldValueForbidden", "message": text, "field": field}
    details = {"group": "meta.k8s.io", "kind": "ListOptions", "causes": [cause]}
    message = f'ListOptions.meta.k8s.io "" is invalid: {field}: {text}'
    return StatusError(422, "Invalid", message, details)


def expired(message: str) -> StatusError:
    return StatusError(410, "Expired", message)


def too_old(version: int, oldest: int) -> StatusError:
    return expired(f"too old resource version: {version} ({oldest})")


def too_large_version(wanted: int, present: int) -> StatusError:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return StatusError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {wanted}, current: {present}",
        {"causes": [cause], "retryAfterSeconds": 1},
    )


def too_many_requests(
    message: str, *, retry_after: int = 0, causes: Iterable[Mapping[str, str]] = ()
) -> StatusError:
    details: dict[str, Any] = {"causes": list(causes), "retryAfterSeconds": retry_after}
    given = {key: value for key, value in details.items() if value}
    return StatusError(429, "TooManyRequests", message, given)


def internal_error(message: str) -> StatusError:
    return StatusError(500, "InternalError", message)


def unnamed_error(message: str) -> StatusError:
    """Return the error for a failure without a reason, in the words of Kubernetes."""
    return StatusError(500, "", message)
