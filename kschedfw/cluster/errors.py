"""Errors of requests to a cluster."""

from __future__ import annotations

from kschedfw.api.errors import KschedfwError


class ClusterError(KschedfwError):
    """A cluster refused a request; nothing was changed."""


class NotFoundError(ClusterError):
    """The object doesn't exist (HTTP 404 at the API server)."""


class AlreadyExistsError(ClusterError):
    """An object of that kind and name exists already (HTTP 409 AlreadyExists at the API server)."""


class ConflictError(ClusterError):
    """The request was made for another state of the object than the present one (HTTP 409 Conflict)."""


class LostRaceError(ConflictError):
    """Another scheduler was faster. What it did is known by now, so the pod can be decided on again at once."""
