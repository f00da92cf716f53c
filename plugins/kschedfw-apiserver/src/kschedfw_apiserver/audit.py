"""A log of requests and responses."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import attrs

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@attrs.frozen
class AuditEvent:
    """A request. `time` is in seconds since the epoch, `code` is the HTTP status of the answer.

    `resource` is written as in RBAC's rules: `pods`, `pods/binding`, `leases`. For other requests it is the path.
    """

    time: float
    user: str
    verb: str
    resource: str
    namespace: str
    name: str
    code: int

    @property
    def is_write(self) -> bool:
        return self.verb in WRITES


class AuditLog:
    """The requests in the order of their answers. Watches are logged when they begin."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: list[AuditEvent] = []

    def add(self, event: AuditEvent) -> None:
        with self._lock:
            self._events.append(event)

    @property
    def events(self) -> Sequence[AuditEvent]:
        with self._lock:
            return tuple(self._events)

    def writes(self, resource: str = "") -> Sequence[AuditEvent]:
        """Return the successful writes, of all resources or of one."""
        return [
            each
            for each in self.events
            if each.is_write and each.code < 300 and resource in ("", each.resource)
        ]

    def clear(self) -> None:
        with self._lock:
            self._events.clear()
