"""`kschedfw test`: its output for people, for programs and for CI, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from kschedfw.testing import Command

SUITE = """\
cluster: [cluster/nodes.yaml]
cases:
- name: fits
  pods: [&pod {metadata: {name: web}, spec: {containers: [{name: m, image: i, resources: {requests: {cpu: 1}}}]}}]
  expected: {pods: {web: {node: n1}}}
- name: is elsewhere
  pods: [*pod]
  expected: {pods: {web: {node: n2}}}
- name: has a typo
  pods: [{metadata: {name: web}, spec: {containers: []}}]
  expected: {evicted: []}
"""


@pytest.fixture
def suite(cluster_dir: Path) -> Path:
    path = cluster_dir.parent / "web.kschedfw.yaml"
    path.write_text(SUITE, encoding="utf-8")
    return path


def without(suite: Path, *names: str) -> None:
    """Take cases out of the suite."""
    head, *cases = suite.read_text(encoding="utf-8").split("- name: ")
    kept = [case for case in cases if case.splitlines()[0] not in names]
    suite.write_text("- name: ".join([head, *kept]), encoding="utf-8")


def test_every_case_that_is_otherwise_is_told_with_its_line(kschedfw_command: Command, suite: Path) -> None:
    result = kschedfw_command("test", suite.parent)
    assert (result.code, result.err) == (2, "")
    assert result.out.splitlines() == [
        f"{suite}:6: failed: is elsewhere",
        "  * default/web should go to n2, and is on n1",
        f"{suite}:9: error: has a typo",
        f"  * {suite}:10: cases[2].pods[0].spec.containers: Required value",
        "3 cases: 1 passed, 1 failed, 1 error",
    ]


def test_exit_code_says_how_it_went(kschedfw_command: Command, suite: Path) -> None:
    without(suite, "has a typo")
    assert kschedfw_command("test", suite).code == 1
    without(suite, "is elsewhere")
    passed = kschedfw_command("test", suite)
    assert (passed.code, passed.out) == (0, "1 case: 1 passed\n")


def test_no_case_is_no_success(kschedfw_command: Command, tmp_path: Path) -> None:
    result = kschedfw_command("test", tmp_path)
    why = "in a directory, the files whose names end in .kschedfw.yaml are read"
    assert (result.code, result.err) == (1, f"kschedfw: no case in {tmp_path}: {why}\n")


def test_wrong_suites_are_all_told_before_any_case_is_run(kschedfw_command: Command, suite: Path) -> None:
    for name in ("a", "b"):
        (suite.parent / f"{name}.kschedfw.yaml").write_text("cases: []\nseed: x", encoding="utf-8")
    result = kschedfw_command("test", suite.parent)
    assert (result.code, result.out) == (2, "")
    first, second, last = result.err.splitlines()
    assert first == f'{suite.parent}/a.kschedfw.yaml:2: seed: Invalid value: "x": must be an integer'
    assert second.startswith(f"{suite.parent}/b.kschedfw.yaml:2: seed: ")
    assert last == "kschedfw: a suite is refused, so no case was run"


def test_json_has_every_case(kschedfw_command: Command, suite: Path) -> None:
    result = kschedfw_command("test", suite, "--json")
    found = json.loads(result.out)
    assert result.code == 2
    assert [(case["name"], case["line"], case["outcome"]) for case in found] == [
        ("fits", 3, "passed"),
        ("is elsewhere", 6, "failed"),
        ("has a typo", 9, "error"),
    ]
    assert found[1]["problems"] == ["default/web should go to n2, and is on n1"]
    assert {case["file"] for case in found} == {str(suite)}


def test_junit_has_counts_and_the_text_of_each_problem(kschedfw_command: Command, suite: Path) -> None:
    report = suite.with_name("junit.xml")
    kschedfw_command("test", suite, "--junit", report)
    (found,) = ET.parse(report).getroot()
    assert [found.get(key) for key in ("name", "tests", "failures", "errors")] == [str(suite), "3", "1", "1"]
    passed, failed, wrong = found
    assert len(passed) == 0
    assert (failed.get("name"), failed[0].tag, failed[0].get("message")) == (
        "is elsewhere",
        "failure",
        "default/web should go to n2, and is on n1",
    )
    assert wrong[0].tag == "error"


def test_update_writes_placements_and_nothing_else(kschedfw_command: Command, suite: Path) -> None:
    without(suite, "has a typo", "is elsewhere")
    text = suite.read_text(encoding="utf-8").replace("{pods: {web: {node: n1}}}", "{placements: web.json}")
    suite.write_text(text, encoding="utf-8")
    assert kschedfw_command("test", suite).code == 1
    assert kschedfw_command("test", suite, "--update").code == 0
    assert json.loads(suite.with_name("web.json").read_text(encoding="utf-8")) == {"default/web": "n1"}
    assert kschedfw_command("test", suite).code == 0
