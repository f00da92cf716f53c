"""Converts events: `v1` and `events.k8s.io/v1` show the same objects, which are stored as `v1`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kschedfw_apiserver.resources import EVENTS
from kschedfw_apiserver.status import invalid

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
    """Convert an event of `events.k8s.io/v1` to `v1`."""
    return {_AS_KEPT.get(key, key): value for key, value in event.items()}


def as_shown(event: Mapping[str, Any]) -> dict[str, Any]:
    """Convert an event of `v1` to `events.k8s.io/v1`."""
    return {_AS_SHOWN.get(key, key): value for key, value in event.items()}


_REQUIRED: Final = ("eventTime", "reportingComponent", "reportingInstance", "action", "reason")
_LONGEST: Final = {
    "message": 1024,
    "action": 128,
    "reason": 128,
    "reportingComponent": 128,
    "reportingInstance": 128,
}


def check_new_event(event: Mapping[str, Any]) -> None:
    """Check a new event, given as one of `v1`, by the rules of `events.k8s.io/v1`. Raises StatusError."""
    problems = [(_AS_SHOWN.get(each, each), "Required value") for each in _REQUIRED if not event.get(each)]
    problems += [
        (field, f'Invalid value: "": can have at most {longest} characters')
        for field, longest in _LONGEST.items()
        if len(str(event.get(field, "")).encode()) > longest
    ]
    if event.get("type") not in ("Normal", "Warning"):
        problems.append(("type", f'Invalid value: "": has invalid value: {event.get("type", "")}'))
    about = (event.get("involvedObject") or {}).get("namespace")
    if not about and event["metadata"]["namespace"] != "default":
        problems.append(("involvedObject.namespace", 'Invalid value: "": does not match event.namespace'))
    if problems:
        raise invalid(EVENTS, event["metadata"]["name"], problems)


def check_event_update(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Raise StatusError if more than an event's series and metadata changes, by the rules of `events.k8s.io/v1`."""
    changed = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    problems = [
        (key, f'Invalid value: "{new.get(key, "")}": field is immutable')
        for key in changed
        if key not in ("metadata", "series")
    ]
    if problems:
        raise invalid(EVENTS, old["metadata"]["name"], problems)
