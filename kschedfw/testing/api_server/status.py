"""Refusals as the API server words them (apimachinery `api/errors`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from kschedfw.testing.api_server.resources import Resource


@attrs.frozen
class StatusError(Exception):
    """A request is refused with this Status."""

    code: int
    reason: str
    message: str
    details: Mapping[str, Any] = attrs.field(factory=dict)

    @property
    def status(self) -> dict[str, Any]:
        """The Status object of the answer."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            **({"details": dict(self.details)} if self.details else {}),
            "code": self.code,
        }


def _details(resource: Resource, name: str, **more: object) -> dict[str, Any]:
    details: dict[str, Any] = {"name": name, "group": resource.group, "kind": resource.plural, **more}
    return {key: value for key, value in details.items() if value}


def not_found(resource: Resource, name: str) -> StatusError:
    return StatusError(404, "NotFound", f'{resource.title} "{name}" not found', _details(resource, name))


def no_such_resource() -> StatusError:
    return StatusError(404, "NotFound", "the server could not find the requested resource")


def already_exists(resource: Resource, name: str) -> StatusError:
    return StatusError(
        409, "AlreadyExists", f'{resource.title} "{name}" already exists', _details(resource, name)
    )


def conflict(resource: Resource, name: str, why: str, *, subresource: str = "") -> StatusError:
    kind = f"{resource.plural}/{subresource}" if subresource else resource.plural
    title = f"{kind}.{resource.group}" if resource.group else kind
    return _conflict(resource, name, why, title, kind)


def failed_precondition(resource: Resource, name: str, why: str) -> StatusError:
    """A deletion that was meant for another state of the object."""
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


def other_uid(
    resource: Resource, name: str, wanted: str, present: str, *, subresource: str = ""
) -> StatusError:
    why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {present}"
    return conflict(resource, name, why, subresource=subresource)


def invalid(resource: Resource, name: str, problems: Iterable[tuple[str, str]]) -> StatusError:
    """`problems` are pairs of a field's path and what is wrong with it."""
    listed = list(problems)
    texts = [f"{path}: {text}" if path else text for path, text in listed]
    said = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    causes = [{"reason": "FieldValueInvalid", "message": text, "field": path} for path, text in listed]
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
        405, "MethodNotAllowed", "the server does not allow this method on the requested resource"
    )


def unsupported_media_type(accepted: Iterable[str]) -> StatusError:
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        f"{', '.join(accepted)}"
    )
    return StatusError(415, "UnsupportedMediaType", message)


def expired(message: str) -> StatusError:
    return StatusError(410, "Expired", message)


def too_old(version: int, oldest: int) -> StatusError:
    return expired(f"too old resource version: {version} ({oldest})")


def too_large_version(wanted: int, present: int) -> StatusError:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return StatusError(
        504,
        "Timeout",
        f"Too large resource version: {wanted}, current: {present}",
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
