"""A real browser, if there is one: Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
VARIABLE = "KSCHEDFW_BROWSER"


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser; skips the test where none is installed."""
    found = os.environ.get(VARIABLE) or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None or not Path(found).exists():
        pytest.skip(f"NOT TESTED: no {', '.join(NAMES)} here; install one, or set {VARIABLE} to its path")
    # Without its sandbox, as tests may run as root in a container; it sees nothing but this page.
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@attrs.define
class Watched:
    """A page, with everything that it has asked for, and everything that went wrong in it."""

    page: Page
    asked: list[str] = attrs.field(factory=list)
    problems: list[str] = attrs.field(factory=list)

    @property
    def origins(self) -> set[str]:
        return {"/".join(url.split("/")[:3]) for url in self.asked}


@contextmanager
def watched(browser: Browser, *, width: int = 1280, dark: bool = False) -> Iterator[Watched]:
    """A new page in a context of its own."""
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if dark else "light",
        accept_downloads=True,
    )
    context.set_default_timeout(20_000)
    found = Watched(context.new_page())
    context.on("request", lambda request: found.asked.append(request.url))
    found.page.on("console", lambda said: found.problems.append(said.text) if said.type == "error" else None)
    found.page.on("pageerror", lambda error: found.problems.append(str(error)))
    try:
        yield found
    finally:
        context.close()


def violations(found: Watched) -> list[str]:
    """Return what axe-core finds wrong with the page as it is; skip the test where it isn't installed."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright",
        reason="NOT TESTED: axe-core isn't here; pip install axe-playwright-python",
    )
    response = axe.Axe().run(found.page).response
    assert response["passes"]
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in response["violations"]]
