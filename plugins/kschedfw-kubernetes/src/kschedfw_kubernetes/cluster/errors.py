"""The errors of requests to an API server."""

from __future__ import annotations

from kschedfw.cluster import AlreadyExistsError, ClusterError, ConflictError, NotFoundError


class KubernetesError(ClusterError):
    """The base class of errors of requests to an API server."""


class ConnectionConfigError(KubernetesError):
    """The connection to the API server isn't configured: the kubeconfig is missing, incomplete or wrong."""


class CredentialsError(KubernetesError):
    """There are no usable credentials: a token file is missing, or an exec plugin failed."""


class UnavailableError(KubernetesError):
    """The API server didn't answer.

    `uncertain` is true if the request may have taken effect nevertheless.
    """

    def __init__(self, message: str, *, uncertain: bool = False) -> None:
        super().__init__(message)
        self.uncertain = uncertain


class ApiError(KubernetesError):
    """The API server refused a request.

    `status` is the HTTP status. `reason` is the reason in Kubernetes' Status object, such as `Conflict`. `retry_after`
    is the number of seconds after which the server allows another attempt, or None.
    """

    def __init__(self, message: str, status: int, reason: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.retry_after = retry_after


class ForbiddenError(ApiError):
    """The user lacks a permission (HTTP 403)."""


class MissingObjectError(ApiError, NotFoundError):
    """The object, or its whole kind, doesn't exist (HTTP 404)."""


class WriteConflictError(ApiError, ConflictError):
    """The object has changed since the state that the request is based on (HTTP 409 Conflict)."""


class NameTakenError(ApiError, AlreadyExistsError):
    """An object of that kind and name exists already (HTTP 409 AlreadyExists)."""


class ExpiredError(ApiError):
    """The resource version, or the page of a list, is too old (HTTP 410)."""


class FencedError(KubernetesError):
    """A write wasn't sent because this process may no longer be the leader."""


class NotSyncedError(KubernetesError):
    """The API server hasn't listed the objects of a kind in time."""


def api_error(
    what: str, status: int, reason: str = "", message: str = "", retry_after: float | None = None
) -> ApiError:
    """Return the error for an unsuccessful answer. `what` names the request."""
    text = f"{what}: {message or reason or 'refused'} (HTTP {status})"
    if status == 409:
        taken = reason == "AlreadyExists"
        return (NameTakenError if taken else WriteConflictError)(text, status, reason, retry_after)
    if status == 422 and "metadata.uid" in message:
        # The server refuses a patch for an earlier object of the same name with this message.
        return WriteConflictError(text, status, reason, retry_after)
    classes = {403: ForbiddenError, 404: MissingObjectError, 410: ExpiredError}
    return classes.get(status, ApiError)(text, status, reason, retry_after)
