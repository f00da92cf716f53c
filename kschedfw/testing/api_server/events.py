"""Events have two faces, `v1` and `events.k8s.io/v1`, and are one set of objects (kept as `v1`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_NAMES: Final = (
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
)
_AS_KEPT: Final = dict(_NAMES)
_AS_SHOWN: Final = {kept: shown for shown, kept in _NAMES}


def as_kept(event: Mapping[str, Any]) -> dict[str, Any]:
    """An event of `events.k8s.io/v1` as one of `v1`."""
    return {_AS_KEPT.get(key, key): value for key, value in event.items()}


def as_shown(event: Mapping[str, Any]) -> dict[str, Any]:
    """An event of `v1` as one of `events.k8s.io/v1`."""
    return {_AS_SHOWN.get(key, key): value for key, value in event.items()}
