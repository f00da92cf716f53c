"""Errors of requests to a cluster."""

from __future__ import annotations

from kschedfw.api.errors import KschedfwError
from kschedfw.framework.errors import ObjectGoneError


class ClusterError(KschedfwError):
    """The error of a request that a cluster refused. Nothing was changed."""


class NotFoundError(ClusterError, ObjectGoneError):
    """The error of an object that doesn't exist (HTTP 404 at the API server)."""


class AlreadyExistsError(ClusterError):
    """The error of creating an object whose kind and name are taken (HTTP 409 AlreadyExists at the API server)."""


class ConflictError(ClusterError):
    """The error of a request made for another state of the object than the present one (HTTP 409 Conflict)."""


class LostRaceError(ConflictError):
    """The error of a write that another scheduler prevented.

    The other scheduler's write is known by now, so the pod can be decided on again at once.
    """
