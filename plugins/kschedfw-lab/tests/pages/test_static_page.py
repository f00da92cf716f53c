"""Pages as single files; what they show in a browser is in test_browser.py."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_lab.pages.static_page import PageFileError, StaticPage, data_block
from pages.clusters import HOSTILE, cluster, pods

from kschedfw.api.field_errors import LONGEST_TEXT, harmless
from kschedfw.api.node import Node
from kschedfw.explain import explain_pod
from kschedfw.simulator import Simulation, Timeline


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The page of a simulation of a hostile cluster."""
    hostile, timeline = cluster(), Timeline()
    report = Simulation(hostile, timeline=timeline, notes=[HOSTILE]).run()
    StaticPage(tmp_path / "page.html").write_simulation(hostile.list(Node), timeline, report)
    return tmp_path / "page.html"


def data(text: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def source(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def test_its_policy_allows_its_own_script_and_style_and_nothing_else(file: Path) -> None:
    text = file.read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    script = re.search(r'<script type="module">(.*?)</script>', text, re.DOTALL)
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert policy is not None
    assert script is not None
    assert style is not None
    allowed = policy[1].replace("&#39;", "'")
    assert allowed.startswith("default-src 'none'; ")
    assert f"script-src {source(script[1])};" in allowed
    assert f"style-src {source(style[1])};" in allowed
    assert "unsafe" not in allowed
    assert text.count("<script") == 2


def test_texts_of_manifests_are_data(file: Path) -> None:
    text = file.read_text()
    assert HOSTILE not in text
    assert data(text)["map"]["nodes"]["labels"]["note"]["values"] == [HOSTILE]
    assert HOSTILE in data(text)["runs"][0]["notes"]


def test_a_simulation_has_its_figures(file: Path) -> None:
    (run,) = data(file.read_text())["runs"]
    assert ["placed", "1"] in run["figures"]
    assert {each["outcome"] for each in run["outcomes"]} == {"placed", "unschedulable", "gated"}


def test_an_explanation_has_its_attempts_and_shows_the_one_that_was_asked_for(tmp_path: Path) -> None:
    attempts = [explain_pod(cluster(), pod) for pod in pods()[2:]]
    StaticPage(tmp_path / "page.html").write_explanation(attempts, attempts[1])
    content = data((tmp_path / "page.html").read_text())
    assert [each["pod"] for each in content["attempts"]] == ["default/web", "default/huge", "default/gated"]
    assert content["shown"] == 1


@pytest.mark.parametrize(
    ("name", "why"), [("", "is a directory"), ("no/page.html", "its directory isn't there")]
)
def test_a_file_that_cant_be_written_is_refused_at_once(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(PageFileError, match=re.escape(f"--html {tmp_path / name}: {why}")):
        StaticPage(tmp_path / name)


def test_texts_of_plugins_are_escaped_and_shortened() -> None:
    loud = "\x1b[31mred\x07\u202e\n" + "x" * 1_000_000
    block = data_block({loud: [loud, 7], "short": "as it is\nand below, \u00e4"})
    assert block.isprintable()
    assert len(block) < 10_000
    content = json.loads(block)
    (key,) = content.keys() - {"short"}
    assert content[key] == [key, 7]
    assert key.startswith("\\x1b[31mred\\a\\u202e\nxxx")
    assert content["short"] == "as it is\nand below, \u00e4"


@given(st.text() | st.characters().map(lambda character: character * 5000))
def test_a_harmless_text_has_no_control_characters_and_no_long_line(text: str) -> None:
    shown = harmless(text)
    for line in shown.split("\n"):
        assert line.isprintable()
        # A character becomes ten at most: `\U000e0001`.
        assert len(line) <= 10 * LONGEST_TEXT
    if text.isprintable() and len(text) <= LONGEST_TEXT:
        assert shown == text
