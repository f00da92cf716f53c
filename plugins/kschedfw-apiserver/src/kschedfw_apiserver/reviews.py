"""Token reviews and access reviews."""

from __future__ import annotations

from typing import Any

from kschedfw_apiserver import status
from kschedfw_apiserver.access import Access, Attributes, User
from kschedfw_apiserver.requests import ApiRequest


def review(access: Access, user: User, request: ApiRequest) -> dict[str, Any]:
    """Return the review with its status filled in. Raises StatusError if it is malformed."""
    document, resource = request.document(), request.resource
    spec = document.get("spec") or {}
    if not isinstance(spec, dict):
        raise status.bad_request("spec must be an object")
    match resource.kind:
        case "TokenReview":
            said = _token_status(access, str(spec.get("token", "")))
        case "SelfSubjectReview":
            said = {"userInfo": _user_info(user)}
        case "SelfSubjectAccessReview":
            said = _access_status(access, user, spec)
        case _:
            asked = User(str(spec.get("user", "")), tuple(map(str, spec.get("groups") or ())))
            said = _access_status(access, asked, spec)
    head = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": {}}
    return {**head, **document, "status": said}


def _token_status(access: Access, token: str) -> dict[str, Any]:
    user = access.user_of(token)
    if user is None:
        return {"user": {}, "error": "invalid bearer token"}
    return {"authenticated": True, "user": _user_info(user)}


def _user_info(user: User) -> dict[str, Any]:
    info: dict[str, Any] = {"username": user.name, "groups": list(user.groups)}
    return {**info, "uid": user.uid} if user.uid else info


def _access_status(access: Access, user: User, spec: dict[str, Any]) -> dict[str, Any]:
    wanted = spec.get("resourceAttributes")
    path = spec.get("nonResourceAttributes")
    if isinstance(wanted, dict):
        part = wanted.get("subresource")
        resource = str(wanted.get("resource", ""))
        attributes = Attributes(
            str(wanted.get("verb", "")),
            str(wanted.get("group", "")),
            f"{resource}/{part}" if part else resource,
            str(wanted.get("namespace", "")),
            str(wanted.get("name", "")),
        )
    elif isinstance(path, dict):
        attributes = Attributes(str(path.get("verb", "")), path=str(path.get("path", "")))
    else:
        raise status.bad_request(
            "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        )
    return {"allowed": access.allows(user, attributes)}
