"""Lists, whole or page by page, each of one moment."""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

import attrs
import msgspec

from kschedfw.testing.api_server import status
from kschedfw.testing.api_server.events import as_shown
from kschedfw.testing.api_server.requests import Request
from kschedfw.testing.api_server.resources import Resource
from kschedfw.testing.api_server.selection import matcher, selection_of
from kschedfw.testing.api_server.store import Store, Stored

_REMEMBERED: Final = 16

_TOO_OLD: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


@attrs.frozen
class Page:
    """Some objects of a list, and how it goes on."""

    version: int
    items: Sequence[Stored]
    going_on: str = ""
    """The continue token; empty for the last page."""
    remaining: int | None = None
    """How many objects come after this page; None where a selector leaves that open."""

    @property
    def metadata(self) -> dict[str, Any]:
        metadata: dict[str, Any] = {"resourceVersion": str(self.version)}
        if self.going_on:
            metadata["continue"] = self.going_on
            if self.remaining is not None:
                metadata["remainingItemCount"] = self.remaining
        return metadata


class Lists:
    """Finds what a list request wants; remembers the lists that clients read page by page, the last few of them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._remembered: OrderedDict[tuple[Resource, int], Sequence[Stored]] = OrderedDict()

    def forget(self) -> None:
        """Let all continue tokens expire."""
        self._remembered.clear()

    def page(self, request: Request) -> Page:
        """Raises StatusError where the request is malformed, or asks for a moment that is past or yet to come."""
        resource = request.resource.kept_as or request.resource
        limit, token = request.number("limit"), request.query.get("continue", "")
        matches = matcher(selection_of(request.resource, request.namespace, request.query))
        version, start = _read_token(token) if token else (0, ("", ""))
        if token:
            if request.query.get("resourceVersion") not in (None, "", "0"):
                raise status.bad_request("specifying resource version is not allowed when using continue")
            found = self._remembered.get((resource, version))
            if found is None:
                raise status.expired(_TOO_OLD)
        else:
            version, found = self._present(request, resource)
        items = [each for each in found if each.key > start and matches(each.manifest)]
        if not limit or len(items) <= limit:
            return Page(version, items)
        if (resource, version) not in self._remembered:
            self._remembered[resource, version] = found
            while len(self._remembered) > _REMEMBERED:
                self._remembered.popitem(last=False)
        selects = "labelSelector" in request.query or "fieldSelector" in request.query
        page = items[:limit]
        return Page(version, page, _token(version, page[-1]), None if selects else len(items) - limit)

    def _present(self, request: Request, resource: Resource) -> tuple[int, Sequence[Stored]]:
        wanted, match = request.number("resourceVersion"), request.query.get("resourceVersionMatch", "")
        if match and not request.query.get("resourceVersion"):
            raise status.bad_request("resourceVersionMatch is forbidden unless resourceVersion is provided")
        version, found = self._store.all(resource)
        if wanted > version:
            raise status.too_large_version(wanted, version)
        if match == "Exact" and wanted != version:
            remembered = self._remembered.get((resource, wanted))
            if remembered is not None:
                return wanted, remembered
            if wanted == 0 or self._store.changes(resource, wanted):
                raise status.too_old(wanted, version)
            return wanted, found
        return version, found


def list_json(resource: Resource, page: Page) -> bytes:
    """The list object of a page."""
    if resource.kept_as is not None:
        items = [msgspec.json.encode(as_shown(each.manifest)) for each in page.items]
    else:
        # As there, items of built-in kinds don't say what they are, and custom ones do.
        items = [each.json if resource.custom else each.item for each in page.items]
    head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": page.metadata}
    return msgspec.json.encode(head)[:-1] + b',"items":[' + b",".join(items) + b"]}\n"


def _token(version: int, last: Stored) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode([version, *last.key])).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, tuple[str, str]]:
    try:
        padded = token + "=" * (-len(token) % 4)
        version, namespace, name = msgspec.json.decode(
            base64.urlsafe_b64decode(padded), type=tuple[int, str, str]
        )
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        raise status.bad_request("continue key is not valid: it wasn't made by this server") from None
    return version, (namespace, name)
