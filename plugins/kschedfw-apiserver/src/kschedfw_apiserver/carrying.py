"""Applies the change of an object to its manifest, which has more fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def carried(manifest: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest, changed as its object changed from `old` to `new`. Fields unknown to its class are kept.

    Items of lists that have kept their length are compared by their position. Other changed lists are replaced.
    """
    result = dict(manifest)
    for key in old.keys() - new.keys():
        result.pop(key, None)
    for key, value in new.items():
        if key not in old or old[key] != value:
            result[key] = _carried(manifest.get(key), old.get(key), value)
    return result


def _carried(manifest: object, old: object, new: object) -> object:
    if isinstance(manifest, Mapping) and isinstance(new, Mapping):
        return carried(manifest, old if isinstance(old, Mapping) else {}, new)
    if (
        isinstance(manifest, list)
        and isinstance(old, list)
        and isinstance(new, list)
        and len(manifest) == len(old) == len(new)
    ):
        return [_carried(*items) for items in zip(manifest, old, new, strict=True)]
    return new
