"""Patches that turn one state of an object into another (RFC 7386, JSON Merge Patch).

kschedfw reads only some fields of an object. It writes differences, so that the server keeps the other fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kschedfw_kubernetes.cluster.decoding import Content


def merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> Content:
    """Return the merge patch from `old` to `new`; empty if they are equal. Lists are replaced as a whole."""
    patch: Content = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if value == before and key in old:
            continue
        if isinstance(value, Mapping):
            # If `old` has no such object, this copies the new one: the patch must share no object with `new`.
            patch[key] = merge_patch(before if isinstance(before, Mapping) else {}, value)
        else:
            patch[key] = value
    return patch


def contains(present: object, patch: object) -> bool:
    """Return whether the patch would change nothing.

    Objects in lists may have more fields than in the patch, since the server fills in defaults.
    """
    if isinstance(patch, Mapping):
        if not isinstance(present, Mapping):
            return not patch and present is None
        return all(
            # Null deletes a field. The server writes an empty field either not at all or as empty.
            (present.get(key) in (None, "", [], {}) if value is None else contains(present.get(key), value))
            for key, value in patch.items()
        )
    if isinstance(patch, list) and isinstance(present, list):
        return len(patch) == len(present) and all(map(contains, present, patch))
    return present == patch
