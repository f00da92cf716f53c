"""What tests do in the page in a browser."""

from __future__ import annotations

from explore.served import Page as ServedPage
from playwright.sync_api import Locator, Page, expect

from kschedfw.testing.browser import Watched


def load(found: Watched, page: ServedPage, place: str = "") -> None:
    """Open the page, at a place such as `#node=NAME`, and wait until it can be used."""
    found.page.goto(page.url + place)
    found.page.wait_for_selector("html[data-ready]")


def open_pod(page: Page, name: str) -> Locator:
    """The decision on a pending pod, from the list at the side."""
    page.get_by_role("tab", name="Pending").click()
    for summary in page.locator("#pending-side summary").all():
        summary.click()
    page.locator("#pending-side").get_by_role("button", name=name).click()
    decision = page.locator("#decision")
    expect(decision.get_by_role("grid")).to_be_visible()
    return decision
