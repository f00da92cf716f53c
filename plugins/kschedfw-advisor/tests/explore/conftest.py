"""A browser, and the page of a small cluster in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from explore.browser import opened_page
from explore.clusters import cluster
from explore.served import Page, served
from kschedfw_apiserver.browser import Watched, chromium
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
    with opened_page(browser, page) as found:
        yield found
