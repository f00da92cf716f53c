"""The part of OpenAPI v3 that kubectl reads before it writes: the parameters of an operation on a kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kschedfw_apiserver.resources import ONLY_CREATED, Catalogue, Resource

_PARAMETERS: Final = [
    {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
    for name in ("dryRun", "fieldManager", "fieldValidation")
]


def openapi_index(catalogue: Catalogue) -> dict[str, Any]:
    """Return the index of the documents of all group versions."""
    paths = {"api/v1" if not each.group else f"apis/{each.api_version}" for each in catalogue}
    return {
        "paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={path}"} for path in sorted(paths)}
    }


def group_document(resources: Iterable[Resource]) -> dict[str, Any]:
    """Return the document of the group version with these resources."""
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.0"},
        "paths": {_path(each): _operations(each) for each in resources if each.plural not in ONLY_CREATED},
        "components": {"schemas": {}},
    }


def _path(resource: Resource) -> str:
    prefix = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    scope = "/namespaces/{namespace}" if resource.namespaced else ""
    return f"{prefix}{scope}/{resource.plural}/{{name}}"


def _operations(resource: Resource) -> dict[str, Any]:
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    answers = {"200": {"description": "OK"}}
    return {
        verb: {
            "operationId": f"{verb}{resource.kind}",
            "parameters": _PARAMETERS,
            "responses": answers,
            "x-kubernetes-action": verb,
            "x-kubernetes-group-version-kind": kind,
        }
        for verb in ("put", "patch")
    }
