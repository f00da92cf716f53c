"""The page in a real headless Chromium: what people do with it.

The first class runs in each suite where there is a browser. The others, and those of the modules beside this one, run
for each change in CI's browser job, and every night: a test takes a browser two seconds of a core.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from explore.browser import group_row, load, open_pod, opened_page
from explore.clusters import GATES, HOSTILE, cluster, groups
from explore.served import Page, served
from kschedfw_apiserver.browser import Watched, watched
from playwright.sync_api import Browser, expect

from kschedfw import InMemoryCluster, make_node, make_pod

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def looked_at(browser: Browser) -> Iterator[Watched]:
    """One page for tests that look at different parts of it."""
    with served(cluster()) as page, opened_page(browser, page) as found:
        yield found


class TestLooking:
    def test_the_token_leaves_the_address(self, looked_at: Watched) -> None:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", looked_at.page.url)

    def test_it_begins_with_why_pods_wait_and_what_helps(self, looked_at: Watched) -> None:
        side = looked_at.page.locator("#pending-side")
        expect(side.get_by_role("heading", name="2 pods wait for a place")).to_be_in_viewport()
        expect(side).to_contain_text("2 workloads · 1 other pod finds a place")
        huge = side.get_by_role("region", name="why default/huge waits")
        expect(huge).to_contain_text("It requests 64 of cpu, more than any node has: the largest has 4.")
        expect(huge).to_contain_text("Request 3 of cpu instead of 64.Places 1 of 1Try")
        expect(huge).not_to_contain_text("0/3 nodes are available")
        huge.get_by_role("button", name="more about default/huge").click()
        expect(huge).to_contain_text("0/3 nodes are available")
        gated = side.get_by_role("region", name="why default/gated waits")
        expect(gated).to_contain_text("It waits until its scheduling gate example.com/quota is removed.")
        expect(side.locator("summary")).to_have_count(1)
        expect(side.locator("summary")).to_contain_text("1 pod would be placed")

    def test_the_map_tells_of_nodes_by_mouse_and_by_keys(self, looked_at: Watched) -> None:
        page = looked_at.page
        page.locator("canvas").hover(position={"x": 20, "y": 120})
        expect(page.locator(".tip")).to_contain_text("default/busy (cpu 2)")
        expect(page.locator(".tip")).to_contain_text("cpu-taken\ncpu: 3 of 4 requested (75%)\n2 pods")
        page.locator("canvas").focus()
        for _ in range(2):
            page.keyboard.press("ArrowRight")
        expect(page.locator("#said")).to_contain_text("memory-taken, cpu: 1 of 4 requested (25%), 1 pod")
        page.keyboard.press("Enter")
        card = page.locator("#node-side")
        expect(card.get_by_role("heading", name="memory-taken")).to_be_visible()
        expect(card.get_by_role("button", name="default/cache")).to_be_visible()

    def test_nodes_are_grouped_and_filled_as_one_likes(self, looked_at: Watched) -> None:
        page = looked_at.page
        page.get_by_label("Group by").select_option("zone")
        page.get_by_label("Fill by").select_option("memory")
        expect(page.locator("#map")).to_contain_text("3 nodes; memory: 6Gi of 24Gi requested (25%)")
        page.get_by_role("button", name="As a table").click()
        table = page.get_by_role("grid", name="nodes of the cluster, as a table")
        expect(table.get_by_role("row").nth(1)).to_contain_text("cpu-taken")
        table.get_by_role("button", name="share").click()
        expect(table.get_by_role("row").nth(1)).to_contain_text("memory-taken")
        expect(table.get_by_role("row").nth(1)).to_contain_text("50%")

    def test_texts_of_manifests_stay_texts(self, opened: Watched) -> None:
        page = opened.page
        title = page.title()
        page.get_by_label("Group by").select_option("note")
        page.get_by_role("button", name="As a table").click()
        expect(page.get_by_role("grid", name="as a table")).to_contain_text(HOSTILE)
        page.get_by_role("grid", name="as a table").get_by_text("cpu-taken").click()
        page.locator("#node-side summary").click()
        expect(page.locator("#node-side .tags")).to_contain_text(HOSTILE)
        assert page.title() == title
        assert page.locator("img").count() == 0


@pytest.mark.nightly
class TestADecision:
    def test_the_matrix_of_a_pod(self, opened: Watched) -> None:
        decision = open_pod(opened.page, "default/web")
        rows = decision.get_by_role("grid").get_by_role("row")
        expect(rows.nth(1)).to_contain_text("cpu-taken")
        expect(rows.nth(1)).to_contain_text("chosen")
        expect(rows.nth(3)).to_contain_text("NodeUnschedulable: node(s) were unschedulable")
        decision.get_by_label("Scores").select_option("chain")
        expect(rows.nth(1)).to_contain_text(re.compile(r"\d+ → \d+ × 1 = \d+"))
        decision.get_by_label("Verdict").select_option("refused")
        expect(rows).to_have_count(2)
        decision.get_by_label("Verdict").select_option("")
        decision.get_by_label("Find").fill("unschedulable")
        expect(rows).to_have_count(2)
        expect(decision).to_contain_text(
            "default/web: placed on cpu-taken (attempt 1, profile default-scheduler)"
        )

    def test_sorting_and_the_details_of_a_node_by_keys(self, opened: Watched) -> None:
        decision = open_pod(opened.page, "default/huge")
        grid = decision.get_by_role("grid")
        grid.get_by_role("button", name="node", exact=True).click()
        expect(grid.get_by_role("columnheader").first).to_have_attribute("aria-sort", "ascending")
        grid.focus()
        opened.page.keyboard.press("ArrowDown")
        expect(decision).to_contain_text("refused by NodeResourcesFit: Insufficient cpu")
        expect(decision).to_contain_text("64 requested")
        opened.page.keyboard.press("End")
        expect(decision).to_contain_text("shut: refused")
        decision.get_by_role("button", name="Show it on the map").click()
        expect(opened.page.locator("#node-side").get_by_role("heading", name="shut")).to_be_visible()

    def test_a_thousand_nodes_are_windowed(self, browser: Browser) -> None:
        nodes = [make_node(f"node-{number:04}").capacity(cpu=4, pods=10).build() for number in range(1000)]
        many = InMemoryCluster([*nodes, make_pod("huge").requests(cpu="64").build()])
        with served(many) as page, watched(browser) as found:
            load(found, page)
            decision = open_pod(found.page, "default/huge")
            grid = decision.get_by_role("grid")
            expect(grid).to_have_attribute("aria-rowcount", "1001")
            assert grid.get_by_role("row").count() < 60
            grid.focus()
            found.page.keyboard.press("End")
            expect(grid.get_by_role("row").last).to_have_attribute("aria-rowindex", "1001")
            assert found.problems == []


@pytest.mark.nightly
class TestWhatIf:
    def test_what_moves_is_shown_before_it_is_kept_and_can_be_undone(
        self, opened: Watched, tmp_path: Path
    ) -> None:
        page = opened.page
        decision = open_pod(page, "default/web")
        page.get_by_role("tab", name="What if").click()
        slider = page.get_by_label("weight of NodeResourcesBalancedAllocation", exact=True)
        slider.focus()
        for _ in range(12):
            page.keyboard.press("ArrowRight")
        draft = page.get_by_role("region", name="changes that aren’t kept")
        expect(draft).to_contain_text("weight of NodeResourcesBalancedAllocation: 13")
        expect(draft).to_contain_text("1 pod → another node")
        moves = draft.get_by_role("list", name="pods that fare differently")
        expect(moves.get_by_role("listitem")).to_have_text("default/webcpu-taken → memory-taken")
        expect(decision).to_contain_text("default/web: placed on memory-taken")  # the matrix goes along
        draft.get_by_role("button", name="Keep").click()
        expect(page.locator("#steps")).to_contain_text("kept: weight of NodeResourcesBalancedAllocation: 13")
        expect(draft).to_be_hidden()
        page.get_by_text("Download", exact=True).click()
        with page.expect_download() as download:
            page.get_by_role("link", name="the resulting configuration").click()
        download.value.save_as(tmp_path / "configuration.yaml")
        written = yaml.safe_load((tmp_path / "configuration.yaml").read_text())
        scores = {
            each["name"]: each["weight"] for each in written["profiles"][0]["plugins"]["score"]["enabled"]
        }
        assert scores["NodeResourcesBalancedAllocation"] == 13
        with page.expect_download() as download:
            page.get_by_role("link", name="the resulting manifests").click()
        assert download.value.suggested_filename == "manifests.yaml"
        page.get_by_role("button", name="Undo").click()
        expect(page.locator("#steps")).to_contain_text("no changes are kept")
        expect(slider).to_have_value("1")
        expect(decision).to_contain_text("default/web: placed on cpu-taken")
        page.get_by_role("button", name="Redo").click()
        expect(page.locator("#steps")).to_contain_text("kept: weight")

    def test_a_plugin_and_its_arguments(self, opened: Watched) -> None:
        page = opened.page
        page.get_by_role("tab", name="What if").click()
        plugin = page.locator(".plugin", has=page.get_by_label("NodeResourcesFit", exact=True))
        plugin.get_by_text("arguments", exact=True).click()
        plugin.get_by_label("type").select_option("MostAllocated")
        plugin.get_by_role("button", name="Try these").click()
        draft = page.get_by_role("region", name="changes that aren’t kept")
        expect(draft).to_contain_text("arguments of NodeResourcesFit")
        page.get_by_label("NodeResourcesFit", exact=True).uncheck()
        expect(draft).to_contain_text("NodeResourcesFit off")
        expect(draft).to_contain_text("1 pod → a node")
        draft.get_by_role("button", name="Drop all").click()
        expect(draft).to_be_hidden()

    def test_a_node_is_drained_and_others_come(self, opened: Watched) -> None:
        page = opened.page
        page.locator("canvas").click(position={"x": 20, "y": 20})
        page.get_by_role("button", name="Drain").click()
        draft = page.get_by_role("region", name="changes that aren’t kept")
        expect(draft).to_contain_text("2 pods → another node")
        page.get_by_label("Add", exact=True).fill("2")
        page.get_by_role("button", name="more like it").click()
        expect(draft).to_contain_text("add 2 × cpu-taken")
        expect(page.locator("#map")).to_contain_text("5 nodes")
        draft.get_by_role("button", name="drop drain cpu-taken").click()
        expect(draft).not_to_contain_text("drain")

    def test_pods_are_added_and_a_mistake_is_told(self, opened: Watched) -> None:
        page = opened.page
        page.get_by_role("tab", name="What if").click()
        page.get_by_text("Pods and other objects").click()
        text = page.get_by_label("Manifests")
        text.fill("kind: Pod")
        page.get_by_role("button", name="Add", exact=True).last.click()
        expect(page.locator("#problem")).to_contain_text("apiVersion")
        opened.problems.clear()  # the console's line about the refusal
        text.fill(
            "{apiVersion: v1, kind: Pod, metadata: {name: new}, spec: {containers: [{name: c, image: i}]}}"
        )
        page.get_by_role("button", name="Add", exact=True).last.click()
        expect(page.get_by_role("region", name="changes that aren’t kept")).to_contain_text("1 pod added")
        expect(page.locator("#problem")).to_be_empty()


@pytest.mark.nightly
class TestTime:
    def test_two_configurations_side_by_side(self, opened: Watched) -> None:
        page = opened.page
        page.get_by_role("tab", name="Time").click()
        page.get_by_label("Beside it").select_option("as it was at the start")
        page.get_by_role("button", name="Simulate").click()
        runs = page.locator(".runs > section")
        expect(runs).to_have_count(2)
        slider = page.get_by_role("slider", name="attempt", exact=True)
        slider.fill("0")
        expect(runs.first).to_contain_text("cpu: 3 of 12 requested (25%)")
        page.get_by_role("button", name="one step on").click()
        expect(runs.first.get_by_label("what happens at this step")).to_contain_text("default/web goes to")
        expect(runs.last).to_contain_text("cpu: 4 of 12 requested (33%)")
        page.get_by_role("button", name="one step back").click()
        expect(runs.last).to_contain_text("cpu: 3 of 12 requested (25%)")
        page.get_by_role("button", name="Play").click()
        expect(page.locator("output")).to_contain_text("attempt 2 of 2")

    def test_the_timeline_tells_what_is_pending_and_winds_the_map_to_where_one_points(
        self, opened: Watched
    ) -> None:
        page = opened.page
        page.get_by_role("tab", name="Time").click()
        page.get_by_role("button", name="Simulate").click()
        run = page.locator(".runs > section")
        curves = run.get_by_role("img", name="cpu, of 12 on all nodes")
        told = run.get_by_role("figure").first.get_by_role("list")
        expect(told).to_contain_text(re.compile(r"requested 69\s*allocated 4\s*pending 65"))
        curves.scroll_into_view_if_needed()
        curves.click(position={"x": 2, "y": 20})
        expect(page.get_by_role("slider", name="attempt", exact=True)).to_have_value("0")
        expect(told).to_contain_text(re.compile(r"requested 69\s*allocated 3\s*pending 66"))
        expect(run).to_contain_text("cpu: 3 of 12 requested (25%)")
        run.get_by_label("Fill by").select_option("memory")
        expect(told).to_contain_text(re.compile(r"requested 6Gi\s*allocated 5Gi\s*pending 1Gi"))


@pytest.mark.nightly
class TestGroups:
    """Pods that are scheduled together, in the racks of a cluster."""

    @pytest.fixture
    def found(self, browser: Browser) -> Iterator[Watched]:
        with served(groups(), gates=GATES) as page, watched(browser) as found:
            load(found, page)
            yield found
            assert found.problems == []

    def test_a_group_is_one_row_with_its_state_and_its_members_are_none(self, found: Watched) -> None:
        side = found.page.locator("#pending-side")
        rows = side.get_by_role("table", name="groups of pods").get_by_role("row")
        texts = [" ".join(row.get_by_role("cell").all_inner_texts()[:3]) for row in rows.all()[1:]]
        names = [row.get_by_role("button").inner_text() for row in rows.all()[1:]]
        assert dict(zip((name.replace("\n", "") for name in names), texts, strict=True)) == {
            "default/train": "pending 0 of 4 4",
            "default/loose": "in part 1 of 2 –",
            "default/small": "would fit 2 of 2 2",
            "default/running": "placed 2 of 2 2",
        }
        expect(rows.nth(1)).to_contain_text("0/3 placements are available")
        expect(side.get_by_role("region", name="why default/huge waits")).to_be_visible()
        expect(side.get_by_role("region", name="why default/train-0 waits")).to_have_count(0)

    def test_its_placements_are_a_matrix_the_nearest_first(self, found: Watched) -> None:
        group_row(found.page, "default/train").click()
        decision = found.page.locator("#decision")
        expect(decision.get_by_role("heading", name="podgroup default/train")).to_be_visible()
        rows = decision.get_by_role("grid", name="placements of default/train").get_by_role("row")
        expect(rows).to_have_text(
            [re.compile(text) for text in ("placement", "^b22 of 4✗ 2", "^c22 of 4✗ 2", "^a21 of 4✗ 3")]
        )
        rows.nth(3).click()
        expect(decision.get_by_role("heading", name="a: wouldn’t do")).to_be_visible()
        decision.get_by_text("4 members", exact=True).click()
        decision.get_by_role("button", name="default/train-3").click()
        expect(decision.get_by_role("heading", name="default/train-3", exact=True)).to_be_visible()
        decision.get_by_role("button", name="Its group").click()
        expect(decision.get_by_role("heading", name="podgroup default/train")).to_be_visible()

    def test_it_is_found_by_its_name_and_by_its_address_and_one_can_go_back(self, found: Watched) -> None:
        page, decision = found.page, found.page.locator("#decision")
        page.get_by_role("combobox", name="find a node, a group or a pod").fill("running")
        page.get_by_role("option", name="group default/running").click()
        expect(decision).to_contain_text("podgroup default/running: placed on all nodes")
        assert page.url.endswith("#group=default%2Frunning")
        group_row(page, "default/small").click()
        expect(decision).to_contain_text("podgroup default/small: placed on ")
        page.go_back()
        expect(decision).to_contain_text("podgroup default/running")
        page.reload()
        expect(decision).to_contain_text("podgroup default/running")
        decision.get_by_role("button", name="Close").click()
        expect(decision).to_be_empty()

    def test_its_row_and_its_matrix_follow_what_is_tried(self, found: Watched) -> None:
        page, decision = found.page, found.page.locator("#decision")
        group_row(page, "default/train").click()
        expect(decision).to_contain_text("podgroup default/train: unschedulable")
        page.get_by_role("region", name="why PodGroup default/train waits").get_by_role(
            "button", name="try: "
        ).first.click()
        expect(page.get_by_role("table", name="groups of pods")).to_contain_text("would fit4 of 4")
        expect(decision).to_contain_text("podgroup default/train: placed on ")

    def test_its_advice_leads_to_it_and_that_of_a_pod_to_the_pod(self, found: Watched) -> None:
        page, decision = found.page, found.page.locator("#decision")
        page.get_by_role("region", name="why PodGroup default/train waits").get_by_role(
            "button", name="default/train", exact=True
        ).click()
        expect(decision.get_by_role("heading", name="podgroup default/train")).to_be_visible()
        page.get_by_role("region", name="why default/huge waits").get_by_role(
            "button", name="default/huge", exact=True
        ).click()
        expect(decision.get_by_role("heading", name="default/huge", exact=True)).to_be_visible()

    def test_where_pods_are_scheduled_one_by_one_there_are_no_groups(self, browser: Browser) -> None:
        with served(groups()) as page, watched(browser) as found:
            load(found, page)
            expect(found.page.get_by_role("table", name="groups of pods")).to_have_count(0)
            expect(found.page.locator("#pending-side")).to_contain_text("pods would be placed")


@pytest.mark.nightly
class TestEveryScreen:
    @pytest.mark.parametrize("width", [400, 1280])
    @pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
    def test_nothing_is_wider_than_the_window(
        self, browser: Browser, page: Page, width: int, dark: bool
    ) -> None:
        with watched(browser, width=width, dark=dark) as found:
            load(found, page)
            open_pod(found.page, "default/huge")
            for name in ("Node", "What if", "Pending", "Time"):
                found.page.get_by_role("tab", name=name).click()
                assert found.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert found.problems == []

    def test_every_control_has_a_name(self, opened: Watched) -> None:
        open_pod(opened.page, "default/web")
        for name in ("Node", "What if", "Time"):
            opened.page.get_by_role("tab", name=name).click()
            nameless = opened.page.evaluate(
                """[...document.querySelectorAll("button, input, select, textarea, canvas")].filter(
                    (each) => !(each.getAttribute("aria-label") || each.textContent.trim() || each.labels?.length)
                ).map((each) => each.outerHTML)"""
            )
            assert nameless == []
