"""What a client gets."""

from __future__ import annotations

from typing import Any, Self

import attrs
import msgspec

from kschedfw.testing.api_server.status import StatusError


@attrs.frozen
class Response:
    """An HTTP response whose body is there as a whole."""

    code: int
    body: bytes
    content_type: str = "application/json"
    headers: tuple[tuple[bytes, bytes], ...] = ()

    @classmethod
    def of_json(cls, document: Any, code: int = 200) -> Self:
        return cls(code, msgspec.json.encode(document))

    @classmethod
    def of_text(cls, text: str, code: int = 200) -> Self:
        return cls(code, text.encode(), "text/plain; charset=utf-8")

    @classmethod
    def of_error(cls, error: StatusError) -> Self:
        seconds = error.details.get("retryAfterSeconds")
        headers = ((b"retry-after", str(seconds).encode()),) if seconds else ()
        return cls(error.code, msgspec.json.encode(error.status), headers=headers)


def success(details: dict[str, Any], code: int = 200) -> Response:
    """The Status of something that was done and leaves no object to show."""
    given = {key: value for key, value in details.items() if value}
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return Response.of_json({**body, "details": given} if given else {**body, "code": code}, code)
