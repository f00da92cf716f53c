"""The answers to requests for objects, in the form that the client accepts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

import attrs
from kschedfw_kubernetes.web import Response

from kschedfw import Clock
from kschedfw_apiserver import status
from kschedfw_apiserver.access import Access, User, attributes_of, refused
from kschedfw_apiserver.discovery import discover
from kschedfw_apiserver.eviction import marked_as_evicted, spend_budget
from kschedfw_apiserver.lists import list_json, page_of
from kschedfw_apiserver.pod_rules import bound
from kschedfw_apiserver.registry import Registry
from kschedfw_apiserver.requests import ApiRequest
from kschedfw_apiserver.resources import ONLY_CREATED, PODS
from kschedfw_apiserver.responses import json_response, success
from kschedfw_apiserver.reviews import review
from kschedfw_apiserver.store import OutdatedError, Store, Stored
from kschedfw_apiserver.tables import row_table, table, wants_table
from kschedfw_apiserver.watching import Shown, Watch, shown_in_full, start_watch

_SHOWN_WHEN_GONE: Final = frozenset(
    {
        "Namespace",
        "Pod",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Service",
        "ServiceAccount",
        "ResourceQuota",
    }
)
_ALLOCATION: Final = ("allocation", "reservedFor")
_MADE_BY_UPDATES: Final = frozenset({"Event", "Lease"})
"""Kinds of which an update creates an object that doesn't exist."""
_GROUPS_SHOWN_WHEN_GONE: Final = ("resource.k8s.io", "storage.k8s.io")


class Answering:
    """Handles permitted requests. Every method raises StatusError to refuse a request."""

    def __init__(self, store: Store, access: Access, clock: Clock, random: Random) -> None:
        self._store = store
        self._access = access
        self._clock = clock
        self._registry = Registry(store, random)
        self._verbs: Mapping[str, Callable[[ApiRequest], Response | Watch]] = {
            "get": self._get,
            "list": self._list,
            "watch": self._watch,
            "create": self._create,
            "update": self._update,
            "patch": lambda request: _shown(request, self._registry.patch(request)),
            "delete": self._delete,
            "deletecollection": self._delete_all,
        }

    def answer(self, user: User, request: ApiRequest) -> Response | Watch:
        if request.target.resource is None:
            return discover(self._store.catalogue, request)
        resource, part = request.resource, request.subresource
        if resource.plural in ONLY_CREATED and resource.plural != "bindings":
            if request.verb != "create":
                raise status.method_not_allowed()
            return json_response(review(self._access, user, request), 201)
        if part and part not in resource.subresources:
            raise status.no_such_resource()
        if (resource.plural, part) == ("resourceclaims", "status") and request.verb in ("update", "patch"):
            self._check_allocation(user, request)
        answer = self._verbs.get(request.verb)
        is_command = request.verb == "create" and part in ("binding", "eviction")
        of_one = is_command or request.verb in ("get", "update", "patch", "delete")
        if answer is None or of_one != bool(request.name):
            raise status.method_not_allowed()
        return answer(request)

    def _check_allocation(self, user: User, request: ApiRequest) -> None:
        """Check the right to allocate devices. v1.36 requires it in addition to the right to the claim's status."""
        body = request.json()
        wanted = (body.get("status") or {}) if isinstance(body, dict) else {}
        stored = self._store.get(request.resource, request.namespace, request.name)
        present = {} if stored is None else stored.manifest.get("status") or {}
        if all(wanted.get(field, present.get(field)) == present.get(field) for field in _ALLOCATION):
            return
        needed = attrs.evolve(attributes_of(request), resource="resourceclaims/binding")
        if not self._access.allows(user, needed):
            refusal = refused(user, request, needed)
            why = (
                "Forbidden: changing status.allocation or status.reservedFor requires "
                f'resource="{needed.resource}", verb="{needed.verb}" permission: {refusal.message}'
            )
            raise status.invalid(request.resource, request.name, [("status.allocation", why)])

    def _get(self, request: ApiRequest) -> Response:
        if request.subresource not in ("", "status"):
            raise status.method_not_allowed()
        found = self._registry.get(request.resource, request.namespace, request.name)
        if wants_table(request.headers):
            return Response(200, row_table(found, now=self._clock.now(), include=_included(request)))
        return _shown(request, found)

    def _list(self, request: ApiRequest) -> Response:
        page = page_of(self._store, request)
        if wants_table(request.headers):
            now = self._clock.now()
            return Response(200, table(request.resource, page, now=now, include=_included(request)))
        return Response(200, list_json(request.resource, page))

    def _watch(self, request: ApiRequest) -> Watch:
        return start_watch(self._store, request, self._shown_in_watch(request))

    def _shown_in_watch(self, request: ApiRequest) -> Shown:
        if not wants_table(request.headers):
            return shown_in_full(request)
        first = iter([True])
        return lambda stored: row_table(
            stored, now=self._clock.now(), include=_included(request), with_columns=next(first, False)
        )

    def _create(self, request: ApiRequest) -> Response:
        match request.subresource:
            case "binding":
                return self._bind(request)
            case "eviction":
                return self._evict(request)
        if request.resource.plural == "bindings":
            raise status.method_not_allowed()
        return _shown(request, self._registry.create(request), 201)

    def _update(self, request: ApiRequest) -> Response:
        resource = request.resource
        found = self._store.get(resource.kept_as or resource, request.namespace, request.name)
        if found is None and resource.kind in _MADE_BY_UPDATES:
            return _shown(request, self._registry.create(request), 201)
        return _shown(request, self._registry.update(request))

    def _delete(self, request: ApiRequest) -> Response:
        gone = self._registry.delete(request)
        resource = request.resource
        is_still_there = self._store.get(gone.resource, *gone.key) is not None
        if is_still_there or resource.kind in _SHOWN_WHEN_GONE or resource.group in _GROUPS_SHOWN_WHEN_GONE:
            return _shown(request, gone)
        details = {"name": request.name, "group": resource.group, "kind": resource.plural, "uid": gone.uid}
        return success(details)

    def _delete_all(self, request: ApiRequest) -> Response:
        page = page_of(self._store, request)
        self._registry.delete_all(request, list(page.items))
        return Response(200, list_json(request.resource, page))

    # --- operations on pods only ---

    def _bind(self, request: ApiRequest) -> Response:
        binding = request.document()
        _check_named(binding, request, "Binding")
        self._change(request, lambda pod: bound(self._store, pod, binding))
        return success({}, 201)

    def _evict(self, request: ApiRequest) -> Response:
        eviction = request.document()
        _check_named(eviction, request, "Eviction")
        options: dict[str, Any] = eviction.get("deleteOptions") or {}
        while True:
            pod = self._registry.get(PODS, request.namespace, request.name)
            budget = spend_budget(self._store, pod)
            if request.is_dry_run or options.get("dryRun") == ["All"]:
                return success({}, 201)
            try:
                if budget is not None:
                    # The budget first, as in Kubernetes: if the eviction fails after that, the budget is too small for
                    # a while, never too large.
                    self._registry.replace(*budget)
                self._registry.evict(pod, marked_as_evicted(self._store, pod), options)
            except OutdatedError:
                continue
            return success({}, 201)

    def _change(self, request: ApiRequest, change: Callable[[Stored], Mapping[str, Any]]) -> Stored:
        while True:
            pod = self._registry.get(request.resource, request.namespace, request.name)
            try:
                return self._registry.replace(pod, change(pod), dry_run=request.is_dry_run)
            except OutdatedError:
                continue


def _check_named(document: Mapping[str, Any], request: ApiRequest, kind: str) -> None:
    if (document.get("metadata") or {}).get("name") != request.name:
        raise status.bad_request(f"name in URL does not match name in {kind} object")


def _included(request: ApiRequest) -> str:
    return request.query.get("includeObject", "Metadata")


def _shown(request: ApiRequest, stored: Stored, code: int = 200) -> Response:
    return Response(code, shown_in_full(request)(stored) + b"\n")
