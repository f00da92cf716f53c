"""The page: complete, offline, and readable in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from kschedfw_apiserver.browser import chromium, violations, watched
from kschedfw_lab import Results, ResultsWriter, read_results, read_series
from kschedfw_lab.pages.static_page import PageFileError
from kschedfw_lab.report.analysis import analyse
from kschedfw_lab.report.page import ReportPage
from playwright.sync_api import Browser
from report import scenes

METRICS = ["placed", "utilisation.cpu", "a.metric.of.someone.with/a-long-name"]
VOID = {"meta", "wbr"}


class _Elements(HTMLParser):
    """Checks that elements are closed in order; collects texts and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.ids: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(file: Path) -> _Elements:
    elements = _Elements()
    elements.feed(file.read_text(encoding="utf-8"))
    assert elements.open == []
    assert len(set(elements.ids)) == len(elements.ids)
    return elements


def write(file: Path, results: Results, baseline: str | None = None) -> _Elements:
    ReportPage(file).write(analyse(results, baseline), results.runs(), title="a <b>sweep</b>")
    return parsed(file)


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A directory: 6 policies at 3 rates with 5 seeds, time series, long names, and a run that failed."""
    effects = {
        "default-scheduler": 0,
        "profiles[0].pluginConfig[NodeResourcesFit].args.scoringStrategy.type": 0,
        "random": 0,
        "dot-product": 2,
        "fragmentation-gradient-descent": 3,
        "a": -1,
        "b": 1,
    }
    directory = tmp_path / "results"
    with ResultsWriter(directory, ["rate", "policy", "seed"]) as writer:
        for run in scenes.policies(effects, range(1, 6), [0.5, 1, 2]):
            if run.run == "random3x1":
                writer.add_failure(run.run, run.factors, "Gpushare.filter raised KeyError: " + "x" * 200)
            else:
                series = {"pending": [(float(time), float(time * 2)) for time in range(10)]}
                writer.add(
                    run.run, run.factors, {**run.metrics, METRICS[-1]: run.metrics["placed"] / 3}, series
                )
        writer.finish()
    return directory


class TestPage:
    def test_it_has_everything(self, tmp_path: Path) -> None:
        runs = scenes.policies({"default": 0, "good": 2})
        runs[13] = scenes.failed("good4", runs[13].factors, "it <failed>")
        text = write(tmp_path / "page.html", scenes.results(runs)).text
        assert "20 runs, 1 failed; repetitions by seed" in text
        assert "The baseline is default." in " ".join(text.split())
        assert "it <failed>" in text
        assert "good, seed=4: it failed" in text
        assert "higher, better" in text

    def test_what_is_the_same_everywhere_is_a_line(self, tmp_path: Path) -> None:
        runs = [scenes.run(f"{seed}", {"seed": seed}, nodes_in_use=1213) for seed in (1, 2, 3)]
        elements = write(tmp_path / "page.html", scenes.results(runs))
        assert "The same in every run: nodes_in_use 1,213." in elements.text
        assert "Means" not in elements.text

    def test_it_loads_nothing(self, large: Path) -> None:
        results = read_results(large)
        ReportPage(large / "page.html").write(analyse(results, "policy"), results.runs(), read_series(large))
        page = (large / "page.html").read_text(encoding="utf-8")
        assert "default-src 'none'" in page
        assert "<script" not in page
        links = [
            value or "" for name, value in parsed(large / "page.html").attributes if name in ("href", "src")
        ]
        assert all(link.startswith("#") for link in links)
        assert re.findall(r"url\(|@import|https?:", page) == []

    def test_links_lead_somewhere(self, large: Path) -> None:
        elements = write(large / "page.html", read_results(large), "policy")
        links = {(value or "")[1:] for name, value in elements.attributes if name == "href"} - {""}
        assert links
        assert links <= set(elements.ids)

    def test_texts_are_escaped(self, tmp_path: Path) -> None:
        runs = [
            scenes.run(f"{policy}{seed}", {"policy<i>": policy, "seed": seed}, **{"placed<u>": seed})
            for policy in ("<s>a</s>", "b")
            for seed in (1, 2, 3)
        ]
        elements = write(tmp_path / "page.html", scenes.results(runs))
        assert "a <b>sweep</b>" in elements.text
        assert "<s>a</s>" in elements.text
        page = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert not re.search("<(b|i|s|u)>", page)

    @pytest.mark.parametrize(
        "results",
        [
            scenes.results([]),
            scenes.results([scenes.failed("a", {"policy": "a", "seed": 1})]),
            scenes.results([scenes.run("a", {}, placed=1)]),
            scenes.results(scenes.policies({"a": 0, "b": 0}, [1])),
        ],
        ids=["nothing", "only failures", "one run without factors", "one seed"],
    )
    def test_of_very_little(self, tmp_path: Path, results: Results) -> None:
        write(tmp_path / "page.html", results)

    def test_of_more_contexts_than_it_has_room_for(self, tmp_path: Path) -> None:
        rates = [float(rate) for rate in range(60)]
        text = write(
            tmp_path / "page.html", scenes.results(scenes.policies({"a": 0, "b": 1}, [1, 2], rates)), "policy"
        ).text
        assert "The tables have the first 40 of 60 combinations of rate." in " ".join(text.split())

    def test_of_more_treatments_than_it_has_room_for(self, tmp_path: Path) -> None:
        effects = {f"policy{number}": float(number % 7) for number in range(300)}
        text = write(tmp_path / "page.html", scenes.results(scenes.policies(effects, [1, 2]))).text
        assert "The page has the first 40 of 300 values of policy" in " ".join(text.split())
        assert "policy39" in text
        assert "policy40" not in text

    def test_of_a_random_design(self, tmp_path: Path) -> None:
        runs = [
            scenes.run(
                f"r{number}", {"weight": number / 7, "rate": number / 3, "seed": number % 4}, placed=number
            )
            for number in range(50)
        ]
        text = write(tmp_path / "page.html", scenes.results(runs)).text
        assert "No factor is crossed with the others" in text
        assert "Every run over weight." in text
        assert "Every run over rate." in text
        assert "Overview" not in text

    def test_where_it_cannot_be_written(self, tmp_path: Path) -> None:
        with pytest.raises(PageFileError, match="is a directory"):
            ReportPage(tmp_path)
        with pytest.raises(PageFileError, match="its directory isn't there"):
            ReportPage(tmp_path / "missing" / "page.html")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.mark.nightly  # CI's job of browsers runs it for each change
@pytest.mark.slow
class TestInABrowser:
    def test_light_and_dark_wide_and_narrow(self, browser: Browser, large: Path) -> None:
        results = read_results(large)
        ReportPage(large / "page.html").write(analyse(results, "policy"), results.runs(), read_series(large))
        for width in (1280, 400):
            grounds = set()
            for dark in (False, True):
                with watched(browser, width=width, dark=dark) as seen:
                    page = seen.page
                    page.goto((large / "page.html").as_uri())
                    assert page.evaluate("document.documentElement.scrollWidth") <= width
                    assert all(url.startswith("file:") for url in seen.asked)
                    assert len(seen.asked) == 1
                    assert (seen.problems, violations(seen)) == ([], [])
                    grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
                    outside = page.evaluate(
                        """() => [...document.querySelectorAll("figure svg")].filter((svg) => {
                            const frame = svg.closest("figure").getBoundingClientRect();
                            return [...svg.querySelectorAll("text")].some((text) => {
                              const box = text.getBoundingClientRect();
                              return box.width > 0 && (box.left < frame.left || box.right > frame.right);
                            });
                          }).length"""
                    )
                    assert outside == 0
            assert len(grounds) == 2

    def test_by_keyboard(self, browser: Browser, large: Path) -> None:
        results = read_results(large)
        ReportPage(large / "page.html").write(analyse(results, "policy"), results.runs())
        with watched(browser, width=400) as seen:
            page = seen.page
            page.goto((large / "page.html").as_uri())
            focused = []
            for _ in range(30):
                page.keyboard.press("Tab")
                focused.append(
                    page.evaluate(
                        "document.activeElement.getAttribute('aria-label') || document.activeElement.textContent"
                    )
                )
                if focused[-1] == "How to read this":
                    break
            assert focused == ["1 failed", "Overview", *METRICS, "How to read this"]
            explanation = page.get_by_text("The overview and the rows")
            assert not explanation.is_visible()
            page.keyboard.press("Enter")
            assert explanation.is_visible()
