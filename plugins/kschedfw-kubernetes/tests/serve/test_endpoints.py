"""What the endpoints answer, to whom."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from extender_server.asgi import Reply, send
from kschedfw_kubernetes.serve.access import TOKEN_REVIEWS, Access
from kschedfw_kubernetes.serve.endpoints import Endpoints
from kschedfw_kubernetes.serve.health import Check, HealthEndpoint
from kschedfw_kubernetes.web.asgi import as_json, text


def review(path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
    spec = body["spec"]
    if path == TOKEN_REVIEWS:
        names = {"reader's": "reader", "stranger's": "stranger"}
        found = spec["token"] in names
        return {"status": {"authenticated": found, "user": {"username": names.get(spec["token"])}}}
    if spec["user"] == "ghost":
        raise ConnectionError
    return {"status": {"allowed": spec["user"] == "reader"}}


def broken() -> Any:
    raise RuntimeError("bug")


class Subject:
    def __init__(self) -> None:
        self.problem: str | None = None
        ready = HealthEndpoint(
            "readyz", [Check("loop", lambda: self.problem), Check("shutdown", lambda: None)]
        )
        contents = {
            "/metrics": lambda: text("a 1\n"),
            "/configz": lambda: as_json({"a": 1}),
            "/broken": broken,
        }
        self.app = Endpoints([HealthEndpoint("livez"), ready], contents, Access(review, review, lambda: 0.0))

    def ask(self, path: str, token: str | None = None, method: str = "GET") -> Reply:
        path, _, query = path.partition("?")
        headers = [] if token is None else [(b"authorization", f"Bearer {token}".encode())]
        reply = send(self.app, method, path, headers=headers, query=query.encode())
        assert reply is not None
        return reply


@pytest.fixture
def subject() -> Subject:
    return Subject()


class TestHealth:
    def test_it_needs_no_permission(self, subject: Subject) -> None:
        reply = subject.ask("/livez")
        assert (reply.status, reply.text) == (200, "ok")
        assert reply.headers["content-type"] == "text/plain; charset=utf-8"
        assert reply.headers["cache-control"] == "no-cache, private"

    def test_verbose_names_the_checks(self, subject: Subject) -> None:
        assert subject.ask("/readyz?verbose").text == "[+]loop ok\n[+]shutdown ok\nreadyz check passed\n"
        assert subject.ask("/livez?verbose").text == "[+]ping ok\nlivez check passed\n"

    def test_a_failing_check_is_told_without_its_reason(self, subject: Subject) -> None:
        subject.problem = "secret reason"
        reply = subject.ask("/readyz")
        expected = "[-]loop failed: reason withheld\n[+]shutdown ok\nreadyz check failed\n"
        assert (reply.status, reply.text) == (500, expected)

    def test_checks_can_be_excluded(self, subject: Subject) -> None:
        subject.problem = "stuck"
        assert subject.ask("/readyz?exclude=loop").text == "ok"
        assert subject.ask("/readyz?verbose&exclude=loop&exclude=b&exclude=a").text == (
            "[+]loop excluded: ok\n[+]shutdown ok\n"
            'warn: some health checks cannot be excluded: no matches for "a","b"\nreadyz check passed\n'
        )

    def test_the_reason_is_for_those_with_permission(self, subject: Subject) -> None:
        subject.problem = "stuck"
        assert subject.ask("/readyz/loop").status == 403
        reply = subject.ask("/readyz/loop", "reader's")
        assert (reply.status, reply.text) == (500, "internal server error: stuck\n")
        assert subject.ask("/readyz/shutdown", "reader's").text == "ok"
        assert subject.ask("/readyz/other", "reader's").status == 404


class TestContents:
    def test_with_permission(self, subject: Subject) -> None:
        assert subject.ask("/metrics", "reader's").text == "a 1\n"
        assert subject.ask("/configz", "reader's").json == {"a": 1}

    def test_anonymous_users_are_forbidden(self, subject: Subject) -> None:
        reply = subject.ask("/metrics")
        assert reply.status == 403
        assert reply.text.endswith("}\n")
        assert json.loads(reply.body) == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": 'forbidden: User "system:anonymous" cannot get path "/metrics"',
            "reason": "Forbidden",
            "details": {},
            "code": 403,
        }

    def test_others_are_forbidden(self, subject: Subject) -> None:
        reply = subject.ask("/metrics", "stranger's", "POST")
        assert reply.json["message"] == 'forbidden: User "stranger" cannot post path "/metrics"'

    def test_unknown_tokens_are_unauthorized(self, subject: Subject) -> None:
        reply = subject.ask("/metrics", "nobody's")
        assert reply.status == 401
        assert reply.json == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "Unauthorized",
            "reason": "Unauthorized",
            "code": 401,
        }

    def test_what_there_is_is_told_to_nobody_without_permission(self, subject: Subject) -> None:
        assert subject.ask("/nothing").status == 403
        reply = subject.ask("/nothing", "reader's")
        assert (reply.status, reply.text) == (404, "404 page not found\n")

    @pytest.mark.parametrize("method", ["POST", "DELETE"])
    def test_nothing_can_be_written_and_metrics_are_not_set_back(self, subject: Subject, method: str) -> None:
        assert subject.ask("/metrics", "reader's", method).status == 405

    def test_a_bug_costs_one_request(self, subject: Subject, caplog: pytest.LogCaptureFixture) -> None:
        reply = subject.ask("/broken", "reader's")
        assert (reply.status, reply.text) == (500, 'Internal Server Error: "/broken"\n')
        assert "RuntimeError: bug" in caplog.text


def test_paths_can_be_for_everybody() -> None:
    access = Access(review, review, lambda: 0.0)
    contents = {path: lambda: text("1") for path in ("/metrics", "/metrics/resources", "/configz")}
    app = Endpoints([], contents, access, always_allow=("/metrics", "/conf*"))
    statuses = {path: reply.status for path in contents if (reply := send(app, "GET", path)) is not None}
    assert statuses == {"/metrics": 200, "/metrics/resources": 403, "/configz": 200}


def test_an_api_server_out_of_reach_is_said(caplog: pytest.LogCaptureFixture) -> None:
    def down(path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        raise ConnectionError("refused")

    app = Endpoints([], {"/metrics": lambda: text("1")}, Access(down, down, lambda: 0.0))
    reply = send(app, "GET", "/metrics")
    assert reply is not None
    assert (reply.status, reply.text) == (
        500,
        'Internal Server Error: "/metrics": the API server can\'t be asked\n',
    )
    assert "refused" in caplog.text
