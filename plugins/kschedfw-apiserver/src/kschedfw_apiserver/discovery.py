"""Discovery: groups, versions and resources; and `/version` and `/readyz`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kschedfw_kubernetes.web import PLAIN_TEXT, Response

from kschedfw_apiserver import status
from kschedfw_apiserver.openapi import group_document, openapi_index
from kschedfw_apiserver.requests import ApiRequest
from kschedfw_apiserver.resources import ONLY_CREATED, Catalogue, Resource
from kschedfw_apiserver.responses import json_response

_ALL_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

VERSION: Final = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.0",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}
"""The version that the server claims to have. It follows the rules of this version."""


def discover(catalogue: Catalogue, request: ApiRequest) -> Response:
    """Return the answer to a request for something other than objects. Raises StatusError if the path is unknown."""
    aggregated = "as=APIGroupDiscoveryList" in request.headers.get("accept", "")
    match [part for part in request.target.path.split("/") if part]:
        case ["healthz" | "livez" | "readyz", *_]:
            return Response(200, b"ok", PLAIN_TEXT)
        case ["version"]:
            return json_response(VERSION)
        case ["api"] if aggregated:
            return _aggregated(catalogue, [""])
        case ["apis"] if aggregated:
            return _aggregated(catalogue, [group for group in catalogue.versions() if group])
        case ["api"]:
            return json_response({"kind": "APIVersions", "versions": ["v1"]})
        case ["apis"]:
            groups = [_group(name, versions) for name, versions in catalogue.versions().items() if name]
            return json_response({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        case ["apis", group] if group in catalogue.versions():
            found = _group(group, catalogue.versions()[group])
            return json_response({"kind": "APIGroup", "apiVersion": "v1", **found})
        case ["api", "v1"]:
            return _resources(catalogue, "", "v1")
        case ["apis", group, version] if version in catalogue.versions().get(group, ()):
            return _resources(catalogue, group, version)
        case ["openapi", "v3"]:
            return json_response(openapi_index(catalogue))
        case ["openapi", "v3", "api", "v1"]:
            return json_response(group_document(_of(catalogue, "", "v1")))
        case ["openapi", "v3", "apis", group, version] if version in catalogue.versions().get(group, ()):
            return json_response(group_document(_of(catalogue, group, version)))
        case ["api", *_]:
            raise status.no_such_resource()
        case ["apis", group, version, *_] if version in catalogue.versions().get(group, ()):
            raise status.no_such_resource()
    return Response(404, b"404 page not found\n", PLAIN_TEXT)


def _of(catalogue: Catalogue, group: str, version: str) -> list[Resource]:
    return [each for each in catalogue if each.group == group and each.version == version]


def _group(name: str, versions: Iterable[str]) -> dict[str, Any]:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _verbs(resource: Resource) -> list[str]:
    return ["create"] if resource.plural in ONLY_CREATED else list(_ALL_VERBS)


def _part_kind(resource: Resource, part: str) -> tuple[str, str, str, list[str]]:
    """Return group, version, kind and verbs of the object at a subresource."""
    match part:
        case "binding":
            return "", "v1", "Binding", ["create"]
        case "eviction":
            return "policy", "v1", "Eviction", ["create"]
        case _:
            return resource.group, resource.version, resource.kind, ["get", "patch", "update"]


def _resources(catalogue: Catalogue, group: str, version: str) -> Response:
    found: list[dict[str, Any]] = []
    for each in _of(catalogue, group, version):
        described: dict[str, Any] = {
            "name": each.plural,
            "singularName": each.kind.lower(),
            "namespaced": each.namespaced,
            "kind": each.kind,
            "verbs": _verbs(each),
        }
        if each.short_names:
            described["shortNames"] = list(each.short_names)
        if each.in_all:
            described["categories"] = ["all"]
        found.append(described)
        for part in each.subresources:
            part_group, part_version, kind, verbs = _part_kind(each, part)
            found.append(
                {
                    "name": f"{each.plural}/{part}",
                    "singularName": "",
                    "namespaced": each.namespaced,
                    **({"group": part_group, "version": part_version} if kind == "Eviction" else {}),
                    "kind": kind,
                    "verbs": verbs,
                }
            )
    said = f"{group}/{version}" if group else version
    return json_response(
        {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": said, "resources": found}
    )


def _aggregated(catalogue: Catalogue, groups: Iterable[str]) -> Response:
    items = [
        {
            "metadata": {"name": group} if group else {},
            "versions": [
                {
                    "version": version,
                    "freshness": "Current",
                    "resources": [_aggregated_resource(each) for each in _of(catalogue, group, version)],
                }
                for version in catalogue.versions()[group]
            ],
        }
        for group in groups
    ]
    document = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}}
    answer = json_response({**document, "items": items})
    return Response(200, answer.body, _AGGREGATED)


def _aggregated_resource(resource: Resource) -> dict[str, Any]:
    described: dict[str, Any] = {
        "resource": resource.plural,
        "responseKind": _kind(resource.group, resource.version, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.kind.lower(),
        "verbs": _verbs(resource),
    }
    if resource.short_names:
        described["shortNames"] = list(resource.short_names)
    if resource.in_all:
        described["categories"] = ["all"]
    parts = []
    for part in resource.subresources:
        group, version, kind, verbs = _part_kind(resource, part)
        parts.append({"subresource": part, "responseKind": _kind(group, version, kind), "verbs": verbs})
    return {**described, "subresources": parts} if parts else described


def _kind(group: str, version: str, kind: str) -> dict[str, str]:
    return {"group": group, "version": version, "kind": kind}
