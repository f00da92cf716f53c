"""Errors of requests to a cluster."""

from __future__ import annotations

from kschedfw.framework.errors import ClusterError, ConflictError, NotFoundError

__all__ = ["AlreadyExistsError", "ClusterError", "ConflictError", "LostRaceError", "NotFoundError"]


class AlreadyExistsError(ClusterError):
    """The error of creating an object whose kind and name are taken (HTTP 409 AlreadyExists at the API server)."""


class LostRaceError(ConflictError):
    """The error of a write that another scheduler prevented.

    The other scheduler's write is known by now, so the pod can be decided on again at once.
    """
