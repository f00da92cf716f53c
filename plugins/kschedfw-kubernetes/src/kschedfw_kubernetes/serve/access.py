"""Authentication and authorization of the endpoints' callers by the API server (TokenReview, SubjectAccessReview).

A caller without a token is anonymous. Answers are cached for 10 s, as in kube-scheduler, under a hash of the token.
Callers with a certificate are authenticated in this process: see `kschedfw_kubernetes.serve.client_certificates`.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

import attrs
from cachetools import TTLCache, cached

from kschedfw.scheduler import Structured

_log = logging.getLogger(__name__)

P = ParamSpec("P")
AnswerT = TypeVar("AnswerT")

Review: TypeAlias = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
"""Creates an object at this path of the API server, and returns it with its status. May raise any error."""

TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
REMEMBERED_SECONDS: Final = 10.0
MOST_REMEMBERED: Final = 4096

_ALMIGHTY: Final = "system:masters"
"""Members of this group are allowed everything, without asking the API server."""


@attrs.frozen
class User:
    """The user that the API server authenticated."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


ANONYMOUS: Final = User("system:anonymous", groups=("system:unauthenticated",))


@attrs.frozen
class AccessVerdict:
    """The API server's decision on a request, with its reason if it gives one."""

    allowed: bool
    reason: str = ""


class Access:
    """Authentication and authorization by the API server. Its decisions are cached. Thread-safe.

    `timer` returns the time in seconds, for the age of cached answers. The two kinds of reviews may be made by
    different API servers: kube-scheduler has a kubeconfig for each.
    """

    def __init__(self, authentication: Review, authorization: Review, timer: Callable[[], float]) -> None:
        self._authentication = authentication
        self._authorization = authorization
        self._user = _remembering(_hashed, timer, self._review_token)
        self._verdict = _remembering(lambda *asked: asked, timer, self._review_access)

    def user(self, token: str | None) -> User | None:
        """Return the user with this token; None if there is none, or the API server can't be reached."""
        if token is None:
            return ANONYMOUS
        try:
            return self._user(token)
        except Exception as error:  # The client may be of any kind, and so may be its errors.
            _log.error(Structured("Unable to authenticate the request", err=error))
            return None

    def verdict(self, user: User, verb: str, path: str) -> AccessVerdict:
        """Return the API server's decision on whether the user may use the verb on the path.

        Raises the errors of the review.
        """
        if _ALMIGHTY in user.groups:
            return AccessVerdict(allowed=True)
        return self._verdict(user, verb, path)

    def _review_token(self, token: str) -> User | None:
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        }
        status = self._authentication(TOKEN_REVIEWS, review).get("status") or {}
        return _user(status.get("user") or {}) if status.get("authenticated") else None

    def _review_access(self, user: User, verb: str, path: str) -> AccessVerdict:
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": user.name,
                "uid": user.uid,
                "groups": list(user.groups),
                "extra": {name: list(values) for name, values in user.extra},
                "nonResourceAttributes": {"path": path, "verb": verb},
            },
        }
        status = self._authorization(ACCESS_REVIEWS, review).get("status") or {}
        allowed = bool(status.get("allowed")) and not status.get("denied")
        return AccessVerdict(allowed, str(status.get("reason") or ""))


def _remembering(
    key: Callable[..., Hashable], timer: Callable[[], float], ask: Callable[P, AnswerT]
) -> Callable[P, AnswerT]:
    cache: TTLCache[Hashable, AnswerT] = TTLCache(MOST_REMEMBERED, REMEMBERED_SECONDS, timer)
    # Errors aren't cached, so the next request asks again. The lock isn't held during a review.
    return cached(cache, key=key, lock=threading.Lock())(ask)


def _hashed(token: str) -> bytes:
    # Headers are decoded as Latin-1, so that any bytes can be encoded again.
    return hashlib.sha256(token.encode("latin-1")).digest()


def _user(info: Mapping[str, Any]) -> User:
    extra: Mapping[str, Sequence[str]] = info.get("extra") or {}
    return User(
        name=str(info.get("username") or ""),
        uid=str(info.get("uid") or ""),
        groups=tuple(info.get("groups") or ()),
        extra=tuple((name, tuple(values)) for name, values in sorted(extra.items())),
    )
