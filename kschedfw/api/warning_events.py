"""Warnings of an export's Events: why a workload's pods aren't created, and why a pod doesn't start on its node.

Scheduling reads no Events. They are read leniently, since they only explain: what isn't understood is passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kschedfw.api.field_errors import printable
from kschedfw.api.frozendict import EMPTY
from kschedfw.api.meta import DEFAULT_NAMESPACE
from kschedfw.api.records import frozen

FAILED_CREATE: Final = "FailedCreate"
"""The reason with which a controller says that it can't create a pod."""

_LONGEST_MESSAGE: Final = 1024
"""The API server's own limit for the message of an Event."""


@frozen
class WarningEvent:
    """A warning about an object (core/v1 or events.k8s.io/v1 Event): the last one with its reason.

    `kind`, `namespace` and `name` are those of the object; `reason` is a word, such as `FailedMount`.
    """

    kind: str
    namespace: str
    name: str
    reason: str
    message: str


class WarningEvents:
    """Collects the last warning of each object and reason."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str, str], tuple[str, WarningEvent]] = {}

    def take(self, manifest: Mapping[str, Any]) -> bool:
        """Add the manifest of an Event; return whether it is a warning about a named object."""
        about = manifest.get("involvedObject", manifest.get("regarding"))
        if manifest.get("type") != "Warning" or not isinstance(about, Mapping):
            return False
        kind, namespace, name = (_text(about.get(field)) for field in ("kind", "namespace", "name"))
        reason = _text(manifest.get("reason"))
        message = _text(manifest.get("message", manifest.get("note")))
        if not (kind and name and reason and message):
            return False
        key = (kind, namespace or DEFAULT_NAMESPACE, name, reason)
        seen = _last_seen(manifest)
        if key not in self._found or seen >= self._found[key][0]:
            self._found[key] = seen, WarningEvent(*key, message)
        return True

    def all(self) -> tuple[WarningEvent, ...]:
        """Return the warnings, in the order in which their objects and reasons came first."""
        return tuple(event for _, event in self._found.values())


def is_event(manifest: Mapping[str, Any]) -> bool:
    """Return whether a manifest is that of an Event, of either API group."""
    return manifest.get("kind") == "Event" and manifest.get("apiVersion") in (
        "v1",
        "events.k8s.io/v1",
        "events.k8s.io/v1beta1",
    )


def _text(value: object) -> str:
    return printable(value[:_LONGEST_MESSAGE]) if isinstance(value, str) else ""


def _last_seen(manifest: Mapping[str, Any]) -> str:
    """Return the latest of the Event's times, which compare as texts in RFC 3339; empty if it has none."""
    series = manifest.get("series")
    of_series = (series if isinstance(series, Mapping) else EMPTY).get("lastObservedTime")
    times = (manifest.get("lastTimestamp"), manifest.get("deprecatedLastTimestamp"), of_series)
    return max((each for each in (*times, manifest.get("eventTime")) if isinstance(each, str)), default="")
