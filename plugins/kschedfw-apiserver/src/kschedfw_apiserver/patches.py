"""Patches: JSON merge patches (RFC 7386), JSON patches (RFC 6902), and Kubernetes' strategic merge patches."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from kschedfw_apiserver.resources import Resource
from kschedfw_apiserver.status import bad_request, impossible_patch, unsupported_media_type
from kschedfw_apiserver.strategic_merge import strategic_merge

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"

_MOST_OPERATIONS: Final = 10_000


def patched(resource: Resource, manifest: Mapping[str, Any], patch: Any, content_type: str) -> dict[str, Any]:
    """Return a copy of the manifest with the patch applied. Raises StatusError."""
    kinds = {JSON_PATCH, MERGE_PATCH} if resource.custom else {JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH}
    if content_type not in kinds:
        raise unsupported_media_type()
    if content_type == JSON_PATCH:
        return json_patch(manifest, patch)
    if not isinstance(patch, dict):
        raise bad_request("the patch has to be an object")
    if content_type == MERGE_PATCH:
        return merge_patch(manifest, patch)
    return strategic_merge(manifest, patch)


def merge_patch(manifest: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(manifest)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            old = result.get(key)
            result[key] = merge_patch(old if isinstance(old, dict) else {}, value)
        else:
            result[key] = value
    return result


def json_patch(manifest: Mapping[str, Any], operations: Any) -> dict[str, Any]:
    """Apply the operations. Raises StatusError if one is malformed, its path is missing, or a test fails."""
    if not isinstance(operations, list) or len(operations) > _MOST_OPERATIONS:
        raise bad_request(f"a JSON patch is a list of at most {_MOST_OPERATIONS:,} operations")
    result: Any = copy.deepcopy(dict(manifest))
    for operation in operations:
        try:
            result = _operated(result, operation)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            raise impossible_patch() from None
    if not isinstance(result, dict):
        raise bad_request("the patch leaves no object")
    return result


def _operated(document: Any, operation: Mapping[str, Any]) -> Any:
    path = _pointer(operation["path"])
    match operation["op"]:
        case "test":
            if _at(document, path) != operation.get("value"):
                raise ValueError(f"testing value {operation['path']} failed")
        case "remove":
            _remove(document, path)
        case "add":
            return _add(document, path, operation["value"])
        case "replace":
            _at(document, path)
            if path:
                _remove(document, path)
            return _add(document, path, operation["value"])
        case "copy":
            return _add(document, path, copy.deepcopy(_at(document, _pointer(operation["from"]))))
        case "move":
            source = _pointer(operation["from"])
            value = _at(document, source)
            _remove(document, source)
            return _add(document, path, value)
        case other:
            raise ValueError(f"unexpected kind: {other}")
    return document


def _pointer(text: str) -> list[str]:
    if text and not text.startswith("/"):
        raise ValueError(f"{text!r} is no JSON pointer")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _at(document: Any, path: list[str]) -> Any:
    for part in path:
        document = document[int(part)] if isinstance(document, list) else document[part]
    return document


def _remove(document: Any, path: list[str]) -> None:
    parent = _at(document, path[:-1])
    del parent[int(path[-1]) if isinstance(parent, list) else path[-1]]


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent, last = _at(document, path[:-1]), path[-1]
    if isinstance(parent, list):
        position = len(parent) if last == "-" else int(last)
        if position > len(parent):
            raise IndexError(f"index {position} out of range")
        parent.insert(position, value)
    else:
        parent[last] = value
    return document
