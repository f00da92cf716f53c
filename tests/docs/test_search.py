"""The site's search finds what newcomers look for: the first hit is the page that answers.

The site is built, and read by a browser, for a minute; CI does so for each change, beside the other tests.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest
from kschedfw_apiserver.browser import chromium
from playwright.sync_api import Page

from kschedfw.testing.waiting import PATIENCE

pytestmark = [pytest.mark.nightly, pytest.mark.slow, pytest.mark.long]

DOCS = Path(__file__).parents[2] / "docs"

FIRST = {
    "gang": "groups",
    "preemption": "plugins#defaultpreemption",
    "taint": "plugins#tainttoleration",
    "why pending": "capacity#pending",
    "plugin": "writing-plugins",
    "sweep": "sweep",
    "GPU": "devices",
    "extender": "extenders",
    "feature gates": "feature-gates",
    "batching": "scheduler#batching",
    "shadowing": "shadowing",  # by its title: no term of search.toml
    "GroupStage": "reference/explain#kschedfw.explain.GroupStage",
}


class Silent(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        del format, args


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, and of the reference one: the others take a minute, and compete for hits in the same way."""
    built = tmp_path_factory.mktemp("site")
    others = [page.stem for page in (DOCS / "reference").glob("*.md") if page.stem != "explain"]
    excluded = ",".join(["changelog.d", *(f"reference/{name}.md" for name in others)])
    subprocess.run(
        [
            sys.executable,
            "-m",
            "sphinx",
            "-Q",
            "-b",
            "html",
            "-D",
            f"exclude_patterns={excluded}",
            DOCS,
            built,
        ],
        check=True,
        timeout=PATIENCE,
    )
    return built


@pytest.fixture(scope="module")
def search_page(site: Path) -> Iterator[tuple[Page, str]]:
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(site))) as server,
        chromium() as browser,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield browser.new_page(), f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def hits(search_page: tuple[Page, str], query: str) -> list[str]:
    page, address = search_page
    page.goto(f"{address}search.html?q={quote(query)}")
    page.wait_for_selector("#search-results ul.search > li > a", timeout=60_000)
    page.wait_for_selector("#search-results .search-summary:has-text('finished')", timeout=60_000)
    links = page.locator("#search-results ul.search > li > a").all()
    return [
        re.sub(r"\.html(\?[^#]*)?", "", (link.get_attribute("href") or "").removeprefix(address))
        for link in links
    ]


@pytest.mark.parametrize(("query", "place"), FIRST.items())
def test_the_first_hit_answers(query: str, place: str, search_page: tuple[Page, str]) -> None:
    assert hits(search_page, query)[0] == place
