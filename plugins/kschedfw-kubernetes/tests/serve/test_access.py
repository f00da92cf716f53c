"""Who asks, and may they: what the API server is asked, and how long its answers are good for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from kschedfw_kubernetes.serve.access import (
    ACCESS_REVIEWS,
    ANONYMOUS,
    REMEMBERED_SECONDS,
    TOKEN_REVIEWS,
    Access,
    User,
)
from kschedfw_kubernetes.web.asgi import bearer_token


class ApiServer:
    """Knows one token, and lets one user get /metrics."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.is_down = False

    def __call__(self, path: str, review: Mapping[str, Any]) -> Mapping[str, Any]:
        self.asked.append((path, review["spec"]))
        if self.is_down:
            raise ConnectionError("refused")
        spec = review["spec"]
        if path == TOKEN_REVIEWS:
            known = spec["token"] == "good"
            user = {"username": "eve", "groups": ["system:authenticated"], "extra": {"scopes": ["a"]}}
            return {"status": {"authenticated": True, "user": user} if known else {"error": "unknown"}}
        assert path == ACCESS_REVIEWS
        allowed = spec["user"] == "eve" and spec["nonResourceAttributes"]["path"] == "/metrics"
        return {"status": {"allowed": allowed, "reason": "" if allowed else "no rule"}}


class Timer:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def server() -> ApiServer:
    return ApiServer()


@pytest.fixture
def timer() -> Timer:
    return Timer()


@pytest.fixture
def access(server: ApiServer, timer: Timer) -> Access:
    return Access(server, server, timer)


EVE = User("eve", groups=("system:authenticated",), extra=(("scopes", ("a",)),))


def test_a_token_has_a_user(access: Access) -> None:
    assert access.user("good") == EVE


def test_an_unknown_token_has_none(access: Access) -> None:
    assert access.user("bad") is None


def test_without_a_token_one_is_anonymous_and_nobody_is_asked(access: Access, server: ApiServer) -> None:
    assert access.user(None) == ANONYMOUS
    assert server.asked == []


def test_everything_about_the_user_is_sent(access: Access, server: ApiServer) -> None:
    assert access.verdict(EVE, "get", "/metrics").allowed
    assert server.asked == [
        (
            ACCESS_REVIEWS,
            {
                "user": "eve",
                "uid": "",
                "groups": ["system:authenticated"],
                "extra": {"scopes": ["a"]},
                "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
            },
        )
    ]


def test_a_refusal_has_the_reason(access: Access) -> None:
    verdict = access.verdict(ANONYMOUS, "get", "/metrics")
    assert (verdict.allowed, verdict.reason) == (False, "no rule")


def test_masters_need_not_be_asked_about(access: Access, server: ApiServer) -> None:
    assert access.verdict(User("root", groups=("system:masters",)), "get", "/metrics").allowed
    assert server.asked == []


def test_answers_are_remembered_until_they_are_old(access: Access, server: ApiServer, timer: Timer) -> None:
    for _ in range(3):
        access.user("good")
        access.user("bad")
        access.verdict(EVE, "get", "/metrics")
    assert len(server.asked) == 3
    timer.seconds += REMEMBERED_SECONDS
    access.user("good")
    assert len(server.asked) == 4


def test_a_server_that_cannot_be_asked_is_asked_again(access: Access, server: ApiServer) -> None:
    server.is_down = True
    assert access.user("good") is None
    with pytest.raises(ConnectionError):
        access.verdict(EVE, "get", "/metrics")
    server.is_down = False
    assert access.user("good") == EVE
    assert access.verdict(EVE, "get", "/metrics").allowed


@pytest.mark.parametrize(
    ("header", "token"),
    [
        (b"Bearer abc", "abc"),
        (b"bearer  abc ", "abc"),
        (b"Basic abc", None),
        (b"Bearer", None),
        (b"", None),
    ],
)
def test_tokens_are_in_a_header(header: bytes, token: str | None) -> None:
    assert bearer_token([(b"host", b"h"), (b"authorization", header)]) == token
