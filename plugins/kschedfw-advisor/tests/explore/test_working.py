"""People work in the page: they search, link, widen, follow advice, and look after nodes, by mouse and by keys."""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs
import pytest
from explore.browser import load, open_pod
from explore.clusters import cluster
from explore.served import Page, served
from kschedfw_apiserver.browser import Watched, watched
from playwright.sync_api import Browser, Route, expect

from kschedfw import InMemoryCluster, make_node, make_pod
from kschedfw.api import Node, OwnerReference, Pod, PodDisruptionBudget, object_from_manifest

# See test_browser.py.
pytestmark = [pytest.mark.slow, pytest.mark.nightly]

LONG = "default/a-service-with-quite-a-long-name-6f9c7d8b5c-x7k2p"


def ailing() -> InMemoryCluster:
    """Nodes in all states, and pods that belong to a ReplicaSet; one of them has a long name."""

    def node(name: str, taint: str = "") -> Node:
        made = make_node(name).capacity(cpu=4, memory="8Gi", pods=10)
        return (made.taint(taint) if taint else made).build()

    def owned(name: str) -> Pod:
        pod = make_pod(name).requests(cpu="900m", memory="700Mi").labels(app="web").node("fine").build()
        owner = OwnerReference("ReplicaSet", "web", "w", "apps/v1", controller=True)
        return pod.with_metadata(attrs.evolve(pod.metadata, owner_references=(owner,)))

    return InMemoryCluster(
        [
            node("fine"),
            node("lost", "node.kubernetes.io/unreachable"),
            node("short", "node.kubernetes.io/disk-pressure"),
            node("gpu-only", "gpu"),
            *map(owned, (LONG.partition("/")[2], "web-6f9c7d8b5c-abcde")),
        ]
    )


@pytest.fixture
def ailing_page() -> Iterator[Page]:
    with served(ailing()) as found:
        yield found


class TestFinding:
    def test_a_pod_is_found_by_parts_of_its_name_and_opened_by_keys(self, opened: Watched) -> None:
        page = opened.page
        page.keyboard.press("/")
        field = page.get_by_role("combobox", name="find a node, a group or a pod")
        expect(field).to_be_focused()
        page.keyboard.type("fault hug")
        expect(page.get_by_role("listbox").get_by_role("option")).to_have_count(1)
        expect(page.get_by_role("option", name="pod default/huge")).to_have_attribute("aria-selected", "true")
        page.keyboard.press("Enter")
        expect(page.locator("#decision").get_by_role("heading", name="default/huge")).to_be_visible()

    def test_a_node_is_found_and_what_is_nowhere_is_told(self, opened: Watched) -> None:
        page = opened.page
        field = page.get_by_role("combobox", name="find a node, a group or a pod")
        field.fill("no such thing")
        expect(page.get_by_role("listbox")).to_contain_text("nothing has this in its name")
        field.fill("taken")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(page.locator("#node-side").get_by_role("heading", name="memory-taken")).to_be_visible()
        expect(page.get_by_role("listbox")).to_be_hidden()


class TestFitting:
    def test_the_end_of_a_long_name_is_in_sight_and_numbers_are_whole(
        self, browser: Browser, ailing_page: Page
    ) -> None:
        with watched(browser) as found:
            load(found, ailing_page, "#node=fine")
            table = found.page.locator("#node-side .window")
            button = table.get_by_role("button", name=LONG)
            whole, end = (button.bounding_box(), button.locator(".ends > :last-child > span").bounding_box())
            assert whole is not None
            assert end is not None
            assert end["x"] >= whole["x"]
            assert end["x"] + end["width"] <= whole["x"] + whole["width"] + 1
            cut = "cells => cells.filter(each => each.scrollWidth > each.clientWidth).length"
            assert table.locator(".number").evaluate_all(cut) == 0

    def test_nodes_of_a_cloud_are_told_apart_before_their_common_domain(self, browser: Browser) -> None:
        names = [f"ip-10-0-123-{number}.eu-central-1.compute.internal" for number in (41, 42)]
        nodes = [make_node(name).capacity(cpu=1, memory="1Gi", pods=10).build() for name in names]
        with (
            served(InMemoryCluster([*nodes, make_pod("web").requests(cpu="2").build()])) as page,
            watched(browser) as found,
        ):
            load(found, page)
            rows = open_pod(found.page, "default/web").get_by_role("grid").locator(".row")
            for row, name in zip(rows.all(), names, strict=True):
                cell = row.get_by_role("rowheader")
                assert cell.text_content() == name
                host = cell.locator(".ends > :nth-child(-n + 2)")
                assert host.evaluate_all("parts => parts.every(each => each.scrollWidth <= each.clientWidth)")

    def test_what_moves_is_told_by_workload_with_whole_names(
        self, browser: Browser, ailing_page: Page
    ) -> None:
        with watched(browser, width=390) as found:
            load(found, ailing_page, "#node=fine")
            found.page.get_by_role("button", name="Drain").click()
            moves = found.page.get_by_role("list", name="pods that fare differently")
            workload = moves.locator("summary")
            expect(workload).to_have_text("ReplicaSet default/web 2 pods: fine (2) → pending (2)")
            workload.click()
            name = moves.get_by_role("button", name=LONG)
            expect(name).to_be_visible()
            assert name.evaluate("each => each.scrollWidth <= each.clientWidth")

    def test_the_side_is_widened_by_keys_and_by_dragging_and_stays_so(
        self, opened: Watched, page: Page
    ) -> None:
        line = opened.page.get_by_role("separator", name="width of the side")
        before = int(line.get_attribute("aria-valuenow") or 0)
        line.focus()
        for _ in range(3):
            opened.page.keyboard.press("ArrowRight")
        expect(line).to_have_attribute("aria-valuenow", str(before + 6))
        box = line.bounding_box()
        assert box is not None
        opened.page.mouse.move(box["x"] + 4, box["y"] + 50)
        opened.page.mouse.down()
        opened.page.mouse.move(box["x"] + 4 - 64, box["y"] + 50)
        opened.page.mouse.up()
        expect(line).to_have_attribute(
            "aria-valuenow", re.compile(rf"{before + 1}|{before + 2}|{before + 3}")
        )
        kept = line.get_attribute("aria-valuenow")
        load(opened, page)
        expect(line).to_have_attribute("aria-valuenow", str(kept))


class TestPlaces:
    def test_back_and_forward_go_through_what_was_opened(self, opened: Watched) -> None:
        page = opened.page
        page.locator("canvas").click(position={"x": 20, "y": 20})
        page.get_by_role("tab", name="Time").click()
        expect(page.get_by_role("button", name="Simulate")).to_be_visible()
        page.go_back()
        expect(page.locator("#node-side").get_by_role("heading", name="cpu-taken")).to_be_visible()
        page.go_back()
        expect(page.locator("#pending-side")).to_be_visible()
        page.go_forward()
        expect(page.locator("#node-side").get_by_role("heading", name="cpu-taken")).to_be_visible()

    def test_a_link_opens_a_pod_and_a_node(self, opened: Watched, page: Page) -> None:
        opened.page.goto("about:blank")
        load(opened, page, "#node=memory-taken&pod=default/huge")
        expect(opened.page.locator("#decision").get_by_role("heading", name="default/huge")).to_be_visible()
        expect(opened.page.locator("#node-side").get_by_role("heading", name="memory-taken")).to_be_visible()

    def test_a_link_to_a_node_that_is_gone_says_so(self, opened: Watched, page: Page) -> None:
        opened.page.goto("about:blank")
        load(opened, page, "#node=nowhere")
        expect(opened.page.locator("#problem")).to_have_text("there is no node nowhere")

    def test_escape_closes_a_decision_and_the_focus_goes_to_the_map(self, opened: Watched) -> None:
        open_pod(opened.page, "default/huge")
        opened.page.keyboard.press("Escape")
        expect(opened.page.locator("#decision")).to_be_empty()
        expect(opened.page.locator("canvas")).to_be_focused()


class TestLinks:
    def test_a_link_holds_the_grouping_and_what_the_map_is_filled_by(self, opened: Watched) -> None:
        page = opened.page
        page.get_by_label("Group by").select_option("zone")
        page.get_by_label("Fill by").select_option("memory")
        assert page.url.endswith("#by=zone&fill=memory")
        page.reload()
        expect(page.get_by_label("Group by")).to_have_value("zone")
        expect(page.locator("#map")).to_contain_text("memory: 6Gi of 24Gi requested")

    def test_changes_that_a_link_keeps_are_tried_elsewhere_and_not_kept(
        self, opened: Watched, browser: Browser
    ) -> None:
        page = opened.page
        page.get_by_role("button", name="try: request 3 of cpu instead of 64").click()
        page.get_by_role("button", name="Keep").click()
        expect(page.locator("#steps")).to_contain_text("kept: request 3")
        place = page.url.partition("#")[2]
        page.reload()
        expect(page.locator("#steps")).to_contain_text("kept: request 3")
        expect(page.get_by_role("region", name="changes that aren’t kept")).to_be_hidden()
        with served(cluster()) as another, watched(browser) as found:
            load(found, another, f"#{place}")
            draft = found.page.get_by_role("region", name="changes that aren’t kept")
            expect(draft).to_contain_text("request 3 of cpu instead of 64")
            expect(found.page.locator("#steps")).to_contain_text("no changes are kept")
            assert "kept" not in found.page.url

    def test_a_link_that_was_cut_opens_the_page_without_changes(self, opened: Watched, page: Page) -> None:
        opened.page.goto("about:blank")
        load(opened, page, '#kept=[{"kind":"cord&by=nothing-has-this&fill=nor-this')
        expect(opened.page.get_by_label("Group by")).to_have_value("")
        expect(opened.page.get_by_role("region", name="why default/huge waits")).to_be_visible()


class TestKeys:
    def test_a_question_mark_shows_the_keys_and_digits_choose_the_side(self, opened: Watched) -> None:
        page = opened.page
        page.keyboard.press("?")
        dialog = page.get_by_role("dialog", name="keys")
        expect(dialog).to_contain_text("filter what waits")
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        page.keyboard.press("3")
        expect(page.get_by_role("tab", name="What if")).to_have_attribute("aria-selected", "true")
        page.keyboard.press("1")
        expect(page.locator("#pending-side")).to_be_visible()


class TestTheMap:
    def test_its_tiles_grow_until_the_map_is_as_high_as_the_window_allows(self, browser: Browser) -> None:
        nodes = [make_node(f"n-{number}").capacity(cpu=4, pods=10).build() for number in range(150)]
        with served(InMemoryCluster(nodes)) as page, watched(browser) as found:
            load(found, page)
            view = found.page.locator("#map .map")
            height, room = view.evaluate(
                "each => [each.offsetHeight, parseFloat(getComputedStyle(each).maxHeight)]"
            )
            assert 0.85 * room <= height <= room
            assert view.evaluate("each => each.scrollHeight <= each.clientHeight")


class TestNodes:
    def test_the_state_of_each_node_is_told_and_in_the_legend(
        self, browser: Browser, ailing_page: Page
    ) -> None:
        with watched(browser) as found:
            load(found, ailing_page)
            page = found.page
            for state in ("not ready", "short of memory", "cordoned", "tainted"):
                expect(page.locator(".legend")).to_contain_text(state)
            page.get_by_role("button", name="As a table").click()
            rows = page.get_by_role("grid", name="as a table").get_by_role("row")
            for row, text in enumerate(("", "tainted", "not ready", "disk pressure"), start=1):
                expect(rows.nth(row).get_by_role("gridcell").last).to_have_text(text)

    def test_a_node_is_cordoned_from_its_card_and_the_card_offers_the_reverse(self, opened: Watched) -> None:
        page = opened.page
        page.locator("canvas").click(position={"x": 20, "y": 20})
        page.get_by_role("button", name="Cordon", exact=True).click()
        expect(page.get_by_role("region", name="changes that aren’t kept")).to_contain_text(
            "cordon cpu-taken"
        )
        expect(page.get_by_role("button", name="Uncordon")).to_be_visible()
        expect(page.locator("#node-side")).to_contain_text("cordoned")

    def test_whether_a_node_would_be_emptied_is_answered_without_changing_anything(
        self, browser: Browser, ailing_page: Page
    ) -> None:
        with watched(browser) as found:
            load(found, ailing_page, "#node=fine")
            found.page.get_by_role("button", name="Would it be emptied?").click()
            answer = found.page.locator("#node-side [role=status]")
            expect(answer).to_contain_text("No, fine wouldn’t be emptied without loss")
            expect(answer).to_contain_text(f"{LONG}: 0/4 nodes are available")
            expect(found.page.locator("#steps")).to_contain_text("no changes are kept")

    def test_what_blocks_an_eviction_is_told(self, browser: Browser) -> None:
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 2},
        }
        guarded = ailing()
        guarded.add(object_from_manifest(budget))
        assert guarded.list(PodDisruptionBudget)
        with served(guarded) as page, watched(browser) as found:
            load(found, page, "#node=fine")
            found.page.get_by_role("button", name="Would it be emptied?").click()
            expect(found.page.locator("#node-side [role=status]")).to_contain_text("PodDisruptionBudget web")


class TestAdvice:
    def test_what_helps_a_pending_pod_is_tried_with_one_click(self, opened: Watched) -> None:
        page = opened.page
        helped = page.get_by_role("region", name="why default/huge waits")
        button = helped.get_by_role("button", name="try: request 3 of cpu instead of 64")
        button.click()
        draft = page.get_by_role("region", name="changes that aren’t kept")
        expect(draft).to_contain_text("request 3 of cpu instead of 64")
        expect(draft).to_contain_text("1 pod → a node")
        expect(helped).to_contain_text("1 of 1 would run with what is tried")
        expect(button).to_have_attribute("aria-pressed", "true")
        button.click()
        expect(draft).to_be_hidden()
        expect(helped).not_to_contain_text("would run")

    def test_the_cause_is_on_the_first_screen_of_a_phone(self, browser: Browser, page: Page) -> None:
        with watched(browser, width=390) as found:
            load(found, page)
            card = found.page.get_by_role("region", name="why default/huge waits")
            expect(card.get_by_text("It requests 64 of cpu")).to_be_in_viewport(ratio=1)
            expect(card.get_by_role("button", name="try: request 3")).to_be_in_viewport(ratio=1)

    def test_what_is_kept_is_answered_anew(self, opened: Watched) -> None:
        page = opened.page
        page.get_by_role("button", name="try: request 3 of cpu instead of 64").click()
        page.get_by_role("button", name="Keep").click()
        expect(page.get_by_role("heading", name="1 pod waits for a place")).to_be_visible()
        expect(page.get_by_role("region", name="why default/huge waits")).to_have_count(0)
        page.get_by_role("button", name="Undo").click()
        expect(page.get_by_role("heading", name="2 pods wait for a place")).to_be_visible()

    def test_what_helps_beside_what_is_tried_is_found_when_asked(self, opened: Watched) -> None:
        page = opened.page
        page.get_by_role("button", name="try: request 3 of cpu instead of 64").click()
        page.get_by_role("button", name="What would help beside that?").click()
        expect(page.get_by_role("heading", name="1 pod waits for a place")).to_be_visible()

    def test_what_the_command_knows_beside_pending_pods_is_told(self, browser: Browser) -> None:
        known = ailing()
        known.add(make_pod("other").scheduler_name("volcano").build())
        known.add(make_pod("claiming").claim("data").build())
        with (
            served(known, notes=["2 pods made for ReplicaSet default/web"]) as page,
            watched(browser) as found,
        ):
            load(found, page)
            side = found.page.locator("#pending-side")
            expect(side.get_by_role("region", name="why default/claiming waits")).to_contain_text(
                "Claim default/data doesn’t exist."
            )
            for title, text in (
                ("For other schedulers", "default/other"),
                ("Missing from the input", "PersistentVolumeClaim default/data: default/claiming"),
                ("Notes", "2 pods made for ReplicaSet default/web"),
            ):
                part = side.locator("details", has_text=title)
                part.locator("summary").click()
                expect(part).to_contain_text(text)

    def test_pods_that_dont_start_have_a_card_and_a_filter(self, browser: Browser) -> None:
        known = ailing()
        known.add(make_pod("lost").node("gone").build())
        known.add(make_pod("huge").requests(cpu=64).build())
        with served(known) as page, watched(browser) as found:
            load(found, page)
            side = found.page.locator("#pending-side")
            expect(side.get_by_role("region", name="why default/huge waits")).to_be_visible()
            card = side.get_by_role("region", name="what is wrong with default/lost")
            expect(card).to_contain_text("1 pod not started")
            expect(card).to_contain_text("Bound to node gone, which doesn’t exist, so nothing starts it.")
            found.page.get_by_role("button", name="not started: 1 pod").click()
            expect(card).to_be_visible()
            expect(side.get_by_role("region", name="why default/huge waits")).to_have_count(0)

    def test_the_search_gives_way_to_what_is_asked_for_and_begins_anew(
        self, browser: Browser, page: Page
    ) -> None:
        held: list[Route] = []
        answered: list[str] = []

        def search(route: Route) -> None:
            # The first search goes on until it is cancelled.
            if answered:
                route.continue_()
            else:
                held.append(route)

        def cancel(route: Route) -> None:
            answered.append("cancelled")
            held.pop().fulfill(body="null")
            route.continue_()

        with watched(browser) as found:
            found.page.route("**/api/advice", search)
            found.page.route("**/api/cancel", cancel)
            load(found, page)
            card = found.page.get_by_role("region", name="why default/huge waits")
            expect(card).to_contain_text("Looking for what would help…")
            expect(found.page.get_by_role("heading", name="2 pods wait for a place")).to_be_visible()
            open_pod(found.page, "default/huge")
            expect(card).to_contain_text("It requests 64 of cpu")
            assert answered == ["cancelled"]
            expect(found.page.locator("#problem")).to_be_empty()

    def test_a_search_that_the_user_cancels_leaves_the_messages_and_can_begin_anew(
        self, browser: Browser, page: Page
    ) -> None:
        with watched(browser) as found:
            found.page.route("**/api/advice", lambda route: route.fulfill(body="null"), times=1)
            load(found, page)
            card = found.page.get_by_role("region", name="why default/huge waits")
            expect(card).to_contain_text("0/3 nodes are available")
            found.page.get_by_role("button", name="What would help?").click()
            expect(card).to_contain_text("It requests 64 of cpu")
            assert found.problems == []

    def test_a_cluster_in_which_all_pods_have_a_place_says_so(self, browser: Browser) -> None:
        calm = InMemoryCluster([make_node("n").capacity(cpu=4, pods=10).build()])
        with served(calm) as page, watched(browser) as found:
            load(found, page)
            expect(found.page.get_by_role("heading", name="No pod waits for a place")).to_be_visible()
            expect(found.page.get_by_role("group", name="causes")).to_be_hidden()


class TestFilter:
    @pytest.fixture
    def found(self, browser: Browser) -> Iterator[Watched]:
        node = make_node("n").capacity(cpu=4, memory="8Gi", pods=10).labels(disk="ssd").build()
        many = [
            make_pod("huge").namespace("shop").requests(cpu="64").build(),
            make_pod("picky").namespace("shop").node_selector(disk="nvme-fast").build(),
            make_pod("large").namespace("media").requests(memory="64Gi").build(),
        ]
        with served(InMemoryCluster([node, *many])) as page, watched(browser) as found:
            load(found, page)
            yield found
            assert found.problems == []

    @staticmethod
    def names(found: Watched) -> set[str]:
        cards = found.page.locator(".kind h3").all_inner_texts()
        return {name.replace("\n", "") for name in cards}

    def test_by_namespace_by_cause_and_by_text_and_the_link_holds_it(self, found: Watched) -> None:
        page = found.page
        expect(page.locator(".kind")).to_have_count(3)
        page.get_by_role("group", name="causes").get_by_role("button", name="resources: 2 pods").click()
        expect(page.locator(".kind")).to_have_count(2)
        assert self.names(found) == {"shop/huge", "media/large"}
        page.get_by_label("namespace").select_option("shop")
        expect(page.locator(".kind")).to_have_count(1)
        assert self.names(found) == {"shop/huge"}
        expect(page.locator("#pending-side")).to_contain_text("1 of 3 workloads")
        page.reload()
        expect(page.locator(".kind")).to_have_count(1)
        page.get_by_role("button", name="resources: 2 pods").click()
        page.get_by_label("namespace").select_option("")
        page.keyboard.press("Escape")
        page.locator("body").click(position={"x": 2, "y": 2})
        page.keyboard.press("f")
        expect(page.get_by_label("filter by text")).to_be_focused()
        page.keyboard.type("nvme selector")
        expect(page.locator(".kind")).to_have_count(1)
        assert self.names(found) == {"shop/picky"}
        assert page.url.endswith("#text=nvme+selector")


class TestTheServer:
    def test_the_page_says_that_the_server_has_ended(self, browser: Browser) -> None:
        with watched(browser) as found:
            with served(cluster()) as page:
                load(found, page)
            expect(found.page.locator("#gone")).to_contain_text("doesn’t answer; has it ended?")
