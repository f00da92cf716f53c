"""Where a pod can be on its way to a node."""

from __future__ import annotations

from enum import StrEnum


class Place(StrEnum):
    """Where a pod that isn't bound can be; it is in exactly one of them."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in-flight"
