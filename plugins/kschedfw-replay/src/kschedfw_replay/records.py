"""The records of a recording: a state at a time, changes of objects, and gaps in which nothing was seen."""

from __future__ import annotations

import enum
from collections.abc import Mapping

import attrs

Manifest = Mapping[str, object]
"""An object in the API server's JSON, with `apiVersion` and `kind`, and only the fields that scheduling reads.

The cluster's own decisions are part of it: a pod's `spec.nodeName`, `status.nominatedNodeName` and conditions
(`PodScheduled`, `DisruptionTarget`).
"""


class ChangeType(enum.Enum):
    """The kinds of changes, with the names in the API server's watches."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@attrs.frozen
class State:
    """All objects at a time. A recording begins with one, and has another one after each gap."""

    at: float
    """Seconds since 1970, UTC."""
    manifests: tuple[Manifest, ...]


@attrs.frozen
class RecordedChange:
    """One change of one object, with the object after it (for a deletion: as it was last)."""

    at: float
    """Seconds since 1970, UTC: when the recorder saw it."""
    type: ChangeType
    manifest: Manifest


@attrs.frozen
class Gap:
    """A time in which changes may have been missed; a `State` with what is there after it follows."""

    since: float
    until: float
    reason: str
    """The reason, as text for people, such as "the recorder wasn't running"."""


Record = State | RecordedChange | Gap
"""One item of a recording. Their times never decrease within a recording."""
