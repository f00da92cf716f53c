"""Pages as single files in a real headless Chromium; they are opened without any server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from kschedfw_apiserver.browser import chromium, violations, watched
from kschedfw_lab.pages.static_page import StaticPage
from pages.clusters import HOSTILE, cluster
from playwright.sync_api import Browser, expect

from kschedfw import make_node, make_pod
from kschedfw.api.node import Node
from kschedfw.api.objects import to_manifest
from kschedfw.cli.app import run
from kschedfw.simulator import Simulation, Timeline

# CI's job of browsers runs them for each change; the suite has one class of such tests, in kschedfw-advisor.
pytestmark = [pytest.mark.nightly, pytest.mark.slow]

GROUPS = Path(__file__).parent / "groups"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A cluster whose annotations, names of taints and so on could break out of a page."""
    odd = {"hostile": HOSTILE}
    objects = [
        make_node("node").capacity(cpu=2, pods=10).annotations(odd).build(),
        make_pod("fits").requests(cpu="1").annotations(odd).build(),
        make_pod("too-big").requests(cpu="3").annotations(odd).build(),
    ]
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all(map(to_manifest, objects)))
    return tmp_path


def test_a_simulation(browser: Browser, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", str(files / "cluster.yaml"), "--html", str(files / "page.html")]) == 0
    with watched(browser) as found:
        found.page.goto(f"file://{files / 'page.html'}")
        expect(found.page.locator(".runs")).to_contain_text("cpu: 1 of 2 requested (50%)")
        found.page.get_by_role("slider", name="attempt", exact=True).fill("0")
        expect(found.page.locator(".runs")).to_contain_text("cpu: 0 of 2 requested (0%)")
        expect(found.page.locator(".runs")).to_contain_text("unschedulable: 0/1 nodes are available")
        assert found.asked == [f"file://{files / 'page.html'}"]
        assert found.problems == []


def test_an_explanation(browser: Browser, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(files / "cluster.yaml"), "too-big", "--html", str(files / "page.html")]
    assert run(["explain", *arguments]) == 1
    printed = capsys.readouterr().out
    with watched(browser, width=400, dark=True) as found:
        found.page.goto(f"file://{files / 'page.html'}")
        row = found.page.get_by_role("grid").get_by_role("row").nth(1)
        expect(row).to_contain_text(re.compile(r"cpu: \d+ requested; \S+ free of"))
        for line in printed.splitlines()[:1]:
            expect(found.page.locator("#content")).to_contain_text(line)
        assert found.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert found.asked == [f"file://{files / 'page.html'}"]
        assert found.problems == []


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_an_explanation_of_a_group(
    browser: Browser, tmp_path: Path, width: int, dark: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "page.html"
    gates = ["--config", str(GROUPS / "configuration.yaml")]
    arguments = [str(GROUPS / "cluster.yaml"), "podgroup/train", *gates, "--html", str(file)]
    assert run(["explain", *arguments]) == 1
    with watched(browser, width=width, dark=dark) as found:
        found.page.goto(f"file://{file}")
        rows = found.page.get_by_role("grid", name="placements of ml/train").get_by_role("row")
        expect(rows.nth(0)).to_contain_text(re.compile("Insufficient cpu.*untolerated taint"))
        expect(rows.nth(1)).to_contain_text(re.compile("^a23 of 4✗ 1"))
        expect(rows.nth(2)).to_contain_text(re.compile("^b22 of 4✗ 2✗ 2"))
        rows.nth(2).click()
        expect(found.page.get_by_role("heading", name="b: wouldn’t do")).to_be_visible()
        found.page.locator("summary", has_text="Nodes of a for ml/train").click()
        expect(found.page.get_by_role("grid", name="decision on ml/train")).to_contain_text("a-2")
        found.page.get_by_label("Attempt").select_option("1: unschedulable")
        expect(found.page.locator("#content")).to_contain_text("podgroup ml/train: unschedulable (attempt 1")
        assert violations(found) == []
        assert found.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert found.asked == [f"file://{file}"]
        assert found.problems == []


def test_texts_in_it_stay_texts(browser: Browser, tmp_path: Path) -> None:
    hostile = cluster()
    timeline = Timeline()
    report = Simulation(hostile, timeline=timeline, notes=[HOSTILE]).run()
    StaticPage(tmp_path / "page.html").write_simulation(hostile.list(Node), timeline, report)
    with watched(browser) as found:
        found.page.goto(f"file://{tmp_path / 'page.html'}")
        expect(found.page.locator("#content")).to_contain_text(HOSTILE)
        assert found.page.title() == "kschedfw: A simulation"
        assert found.problems == []
