"""Manifests of an export with the edits that a remedy says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Manifest = dict[str, Any]


def edited(objects: list[Manifest], edits: list[Mapping[str, Any]], pods: list[str]) -> list[Manifest]:
    """The objects with the edits, those of the first of the pods made to all of them."""
    by_name = {f"{each['kind']} {_key(each)}": each for each in objects}
    for edit in edits:
        names = [f"Pod {key}" for key in pods] if edit["object"] == f"Pod {pods[0]}" else [edit["object"]]
        for name in names:
            if edit["path"]:
                _set(by_name[name], edit["path"], edit["to"])
            elif edit["to"] is None:
                del by_name[name]
            else:
                by_name[name] = edit["to"]
    return list(by_name.values())


def _key(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if "namespace" in metadata else str(metadata["name"])


def _set(manifest: Any, path: str, value: object) -> None:
    *parents, last = _steps(path)
    for step in parents:
        manifest = manifest[int(step)] if isinstance(manifest, list) else manifest.setdefault(step, {})
    if isinstance(manifest, list):
        manifest[int(last)] = value
    elif value is None:
        manifest.pop(last, None)
    else:
        manifest[last] = value


def _steps(pointer: str) -> Iterator[str]:
    return (step.replace("~1", "/").replace("~0", "~") for step in pointer.removeprefix("/").split("/"))
