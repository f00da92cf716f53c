"""What tests do in the page in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from explore.served import Page as ServedPage
from kschedfw_apiserver.browser import Watched, watched
from playwright.sync_api import Browser, Locator, Page, expect


@contextmanager
def opened_page(browser: Browser, page: ServedPage) -> Iterator[Watched]:
    """Load the page. Nothing may go wrong in it, and it may ask for nothing elsewhere."""
    with watched(browser) as found:
        load(found, page)
        yield found
        assert found.problems == []
        assert found.origins <= {f"http://127.0.0.1:{page.port}"}


def load(found: Watched, page: ServedPage, place: str = "") -> None:
    """Open the page, at a place such as `#node=NAME`, and wait until it can be used."""
    found.page.goto(page.url + place)
    found.page.wait_for_selector("html[data-ready]")


def open_pod(page: Page, name: str) -> Locator:
    """The decision on a pod, which is found by its name."""
    page.get_by_role("combobox", name="find a node, a group or a pod").fill(name)
    page.get_by_role("option", name=f"pod {name}", exact=True).click()
    decision = page.locator("#decision")
    expect(decision.get_by_role("grid")).to_be_visible()
    return decision


def group_row(page: Page, name: str) -> Locator:
    """The name of a group in the list of groups; its card may have the same one."""
    return page.get_by_role("table", name="groups of pods").get_by_role("button", name=name, exact=True)
