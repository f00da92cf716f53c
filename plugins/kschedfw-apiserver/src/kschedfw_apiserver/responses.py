"""Responses of the API server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from kschedfw_kubernetes.web import Response

from kschedfw_apiserver.status import StatusError


def json_response(document: Any, code: int = 200) -> Response:
    return Response(code, msgspec.json.encode(document))


def error_response(error: StatusError) -> Response:
    seconds = (error.details or {}).get("retryAfterSeconds")
    headers = ((b"retry-after", str(seconds).encode()),) if seconds else ()
    return Response(error.code, msgspec.json.encode(error.status), headers=headers)


def success(details: Mapping[str, Any], code: int = 200) -> Response:
    """Return the Status of a success without an object to return."""
    given = {key: value for key, value in details.items() if value}
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return json_response({**body, "details": given} if given else {**body, "code": code}, code)
