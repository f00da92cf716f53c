"""Lists, whole or by page, each with the objects of one version."""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final

import attrs
import msgspec

from kschedfw_apiserver import status
from kschedfw_apiserver.events import as_shown
from kschedfw_apiserver.requests import ApiRequest
from kschedfw_apiserver.resources import Resource
from kschedfw_apiserver.selection import selection_of
from kschedfw_apiserver.status import StatusError
from kschedfw_apiserver.store import Store, Stored

_key_of: Final = attrgetter("key")

_TOO_OLD: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


@attrs.frozen
class Page:
    """Some objects of a list, and the token of the next page."""

    version: int
    items: Sequence[Stored]
    going_on: str = ""
    """The continue token; empty for the last page."""
    remaining: int | None = None
    """The number of objects after this page; None if a selector makes it unknown."""

    @property
    def metadata(self) -> dict[str, Any]:
        metadata: dict[str, Any] = {"resourceVersion": str(self.version)}
        if self.going_on:
            metadata["continue"] = self.going_on
            if self.remaining is not None:
                metadata["remainingItemCount"] = self.remaining
        return metadata


def page_of(store: Store, request: ApiRequest) -> Page:
    """Return the page for a list request.

    Raises:
        StatusError: the request is malformed, or its version is in the future or no longer kept.
    """
    resource = request.resource.kept_as or request.resource
    limit, token = request.number("limit"), request.query.get("continue", "")
    selection = selection_of(request.resource, request.namespace, request.query)
    start = ("", "")
    found: Sequence[Stored]
    if token:
        if request.query.get("resourceVersion") not in (None, "", "0"):
            raise status.bad_request("specifying resource version is not allowed when using continue")
        version, start = _read_token(token)
        try:
            found = store.at(resource, version)
        except StatusError:
            raise status.expired(_TOO_OLD) from None
    else:
        version, found = _wanted(store, request, resource)
    # Objects are in the order of their keys. So a page begins correctly although the last object of the page before is
    # gone.
    items = found[bisect_right(found, start, key=_key_of) :]
    if not selection.is_everything:
        items = [each for each in items if selection.matches(each.manifest)]
    if not limit or len(items) <= limit:
        return Page(version, items)
    # As in Kubernetes, the number is unknown if a selector is used.
    selects = "labelSelector" in request.query or "fieldSelector" in request.query
    page = items[:limit]
    return Page(version, page, _token(version, page[-1]), None if selects else len(items) - limit)


def _wanted(store: Store, request: ApiRequest, resource: Resource) -> tuple[int, Sequence[Stored]]:
    """Return the version that the request asks for, and the objects in this version."""
    wanted, match = request.number("resourceVersion"), request.query.get("resourceVersionMatch", "")
    if match and not request.query.get("resourceVersion"):
        why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        raise status.invalid_options("resourceVersionMatch", why)
    version, found = store.all(resource)
    if wanted > version:
        raise status.too_large_version(wanted, version)
    if match == "Exact":
        try:
            return wanted, store.at(resource, wanted)
        except StatusError:
            raise status.expired("The resourceVersion for the provided list is too old.") from None
    return version, found


def list_json(resource: Resource, page: Page) -> bytes:
    """Return the list object of a page."""
    if resource.kept_as is not None:
        items = [msgspec.json.encode(as_shown(each.manifest)) for each in page.items]
    else:
        # As in Kubernetes, items of custom kinds have kind and apiVersion, and items of built-in kinds don't.
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
        raise status.bad_request("invalid continue token: continue key is not valid") from None
    return version, (namespace, name)
