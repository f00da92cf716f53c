"""What axe-core finds in the page, and how it fits the window: wide and narrow, light and dark."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest
from explore.browser import group_row, load, open_pod
from explore.clusters import GATES, groups
from explore.served import Page, served
from kschedfw_apiserver.browser import Watched, violations, watched
from playwright.sync_api import Browser, expect

# See test_browser.py.
pytestmark = [pytest.mark.slow, pytest.mark.nightly]


def pending(found: Watched) -> None:
    found.page.get_by_role("button", name="try: request 3").click()
    expect(found.page.get_by_role("region", name="changes that aren’t kept")).to_be_visible()
    for more in found.page.get_by_role("button", name="more about").all():
        more.click()
    for summary in found.page.locator("#pending-side summary").all():
        summary.click()


def node(found: Watched) -> None:
    found.page.locator("canvas").click(position={"x": 20, "y": 20})
    found.page.get_by_role("button", name="Would it be emptied?").click()
    expect(found.page.locator("#node-side [role=status]")).to_contain_text("No,")


def what_if(found: Watched) -> None:
    found.page.get_by_role("tab", name="What if").click()
    found.page.locator("#what-if-side details").evaluate_all("all => all.forEach(each => (each.open = true))")


def decision(found: Watched) -> None:
    open_pod(found.page, "default/huge")


def table(found: Watched) -> None:
    found.page.get_by_role("button", name="As a table").click()


def searching(found: Watched) -> None:
    found.page.get_by_role("combobox", name="find a node, a group or a pod").fill("a")


def keys(found: Watched) -> None:
    found.page.keyboard.press("?")
    expect(found.page.get_by_role("dialog", name="keys")).to_be_visible()


def timeline(found: Watched) -> None:
    found.page.get_by_role("tab", name="Time").click()
    found.page.get_by_role("button", name="Simulate").click()
    expect(found.page.get_by_role("slider", name="attempt", exact=True)).to_be_visible()


STATES: tuple[Callable[[Watched], None], ...] = (
    pending,
    node,
    what_if,
    decision,
    table,
    searching,
    keys,
    timeline,
)


def groups_and_advice(found: Watched) -> None:
    expect(found.page.get_by_role("table", name="groups of pods")).to_be_visible()
    expect(found.page.get_by_role("region", name="why PodGroup default/train waits")).to_be_visible()


def group(found: Watched) -> None:
    group_row(found.page, "default/train").click()
    decision = found.page.locator("#decision")
    decision.get_by_role("grid", name="placements of").get_by_role("row").nth(1).click()
    for summary in decision.get_by_text(re.compile("^Nodes of|^4 members$")).all():
        summary.click()
    expect(decision.get_by_role("grid", name="decision on")).to_be_visible()


def placed_group(found: Watched) -> None:
    group_row(found.page, "default/small").click()
    decision = found.page.locator("#decision")
    decision.get_by_role("grid", name="placements of").get_by_role("row").nth(1).click()
    expect(decision.get_by_role("heading", name=": taken")).to_be_visible()


SCREENS = pytest.mark.parametrize(
    ("width", "dark"),
    [
        pytest.param(390, True, id="390-dark"),
        pytest.param(1440, False, id="1440-light", marks=pytest.mark.nightly),
        pytest.param(390, False, id="390-light", marks=pytest.mark.nightly),
        pytest.param(1440, True, id="1440-dark", marks=pytest.mark.nightly),
    ],
)


@SCREENS
def test_axe_finds_nothing_and_nothing_is_wider_than_the_window(
    browser: Browser, page: Page, width: int, dark: bool
) -> None:
    check(browser, page, STATES, width, dark)


@SCREENS
def test_nor_does_it_where_pods_are_scheduled_in_groups(browser: Browser, width: int, dark: bool) -> None:
    with served(groups(), gates=GATES) as page:
        check(browser, page, (groups_and_advice, group, placed_group), width, dark)


def check(
    browser: Browser, page: Page, states: Sequence[Callable[[Watched], None]], width: int, dark: bool
) -> None:
    with watched(browser, width=width, dark=dark) as found:
        for state in states:
            load(found, page)
            state(found)
            assert (state.__name__, violations(found)) == (state.__name__, [])
            assert found.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), state.__name__
        assert found.problems == []
