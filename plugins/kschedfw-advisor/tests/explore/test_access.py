"""Nobody but the page itself, with its token, gets anything."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from explore.clusters import cluster
from explore.served import TOKEN, Page, served

PATHS = ("/", "/api/state", "/static/explore.js", "/api/manifests.yaml", "/nothing")


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with served(cluster()) as found:
        yield found


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("header", ["", "Bearer wrong", f"Basic {TOKEN}", "Bearer \xff"])
def test_without_the_token_there_is_nothing(page: Page, path: str, header: str) -> None:
    answer = page.get(path, Authorization=header)
    assert answer.status == 403
    assert answer.text == "open the address that kschedfw explore has printed, with its token\n"


def test_the_token_in_the_address_becomes_a_cookie(page: Page) -> None:
    first = page.get(f"/?token={TOKEN}", Authorization="")
    assert (first.status, first.headers["location"]) == (303, "/")
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert page.get("/", Authorization="", Cookie=cookie.partition(";")[0]).status == 200


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], TOKEN + "x", "%ff"])
def test_a_wrong_token_in_the_address(page: Page, token: str) -> None:
    assert page.get(f"/?token={token}", Authorization="").status == 403


def test_the_token_in_the_address_is_for_the_page_alone(page: Page) -> None:
    assert page.get(f"/api/state?token={TOKEN}", Authorization="").status == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "localhost.evil.example"])
def test_another_name_for_this_machine_is_refused(page: Page, host: str) -> None:
    assert page.get("/", Host=host).status == 421


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:80"])
def test_its_own_names_are_not(page: Page, host: str) -> None:
    assert page.get("/", Host=host).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": ""},
    ],
)
def test_other_pages_change_nothing(page: Page, headers: dict[str, str]) -> None:
    answer = page.post("/api/keep", {"changes": [{"kind": "cordon", "nodes": ["cpu-taken"]}]}, **headers)
    assert answer.status == 403
    assert page.get("/api/state").json["kept"] == []


def test_the_page_itself_does(page: Page) -> None:
    origin = f"http://127.0.0.1:{page.port}"
    own = {
        "Origin": origin,
        "Sec-Fetch-Site": "same-origin",
        "Content-Type": "application/json; charset=utf-8",
    }
    assert page.post("/api/try", {"changes": []}, **own).status == 200


@pytest.mark.parametrize("path", [*PATHS, f"/?token={TOKEN}"])
@pytest.mark.parametrize("header", ["", f"Bearer {TOKEN}"])
def test_every_answer_keeps_the_browser_strict(page: Page, path: str, header: str) -> None:
    headers = page.get(path, Authorization=header).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert not any(name.startswith("access-control") for name in headers)


def test_no_permission_for_other_origins(page: Page) -> None:
    asked = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    answer = page.ask("OPTIONS", "/api/keep", None, asked)
    assert answer.status == 403
    assert not any(name.startswith("access-control") for name in answer.headers)
