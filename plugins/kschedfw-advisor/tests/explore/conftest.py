"""A browser, and the page of a small cluster in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from explore.browser import load
from explore.clusters import cluster
from explore.served import Page, served
from kschedfw_apiserver.browser import Watched, chromium, watched
from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """For a module at a time: Playwright runs once in a process, and other tests have browsers, too."""
    with chromium() as found:
        yield found


@pytest.fixture
def page() -> Iterator[Page]:
    with served(cluster()) as found:
        yield found


@pytest.fixture
def opened(browser: Browser, page: Page) -> Iterator[Watched]:
    """The page, loaded; nothing may go wrong in it, and it may ask for nothing elsewhere."""
    with watched(browser) as found:
        load(found, page)
        yield found
        assert found.problems == []
        assert found.origins <= {f"http://127.0.0.1:{page.port}"}
