"""A plugin that fails is heard of: once for each way in which it does, and by the exit code."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from kschedfw.cli import app

BROKEN = """
from kschedfw import Plugin, hookimpl

class Broken(Plugin):
    name = "Broken"

    @hookimpl
    def filter(self, pod, node_info):
        if pod.labels.get("app") == "web":
            raise ValueError(f"no luck with {pod.name}")
        return {}[node_info.name]
"""
BROKEN_POST_FILTER = """
from kschedfw import Plugin, Status, hookimpl

class Broken(Plugin):
    name = "Broken"

    @hookimpl
    def filter(self, node_info):
        return Status.unschedulable("node(s) no")

    @hookimpl
    def post_filter(self, pod):
        ANSWER
"""
CLUSTER = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: 2, pods: 10}}}
"""
POD = """- apiVersion: v1
  kind: Pod
  metadata: {{name: {name}, labels: {{app: {app}}}}}
  spec: {{containers: [{{name: main, image: app}}]}}
"""
PROFILE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: Broken}]}}
"""


@pytest.fixture
def arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A cluster with three pods, and a configuration with an installed plugin that fails on each of them."""
    info = tmp_path / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[kschedfw]\nBroken = broken_plugin:Broken\n")
    (tmp_path / "broken_plugin.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(tmp_path)
    # Another test's.
    monkeypatch.delitem(sys.modules, "broken_plugin", raising=False)
    pods = (("a", "web"), ("b", "web"), ("c", "mail"))
    (tmp_path / "cluster.yaml").write_text(
        CLUSTER + "".join(POD.format(name=name, app=app) for name, app in pods)
    )
    (tmp_path / "profile.yaml").write_text(PROFILE)
    return [str(tmp_path / "cluster.yaml"), "--config", str(tmp_path / "profile.yaml"), "--no-progress"]


def test_each_distinct_traceback_is_printed_once_with_a_count(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["simulate", *arguments]) == 1
    out, err = capsys.readouterr()
    assert err.count("Traceback (most recent call last):") == 2
    assert (
        'failed 10 times, first: scheduling default/a failed: running "Broken" filter plugin: ValueError'
        in err
    )
    assert err.count("ValueError: no luck with a\n") == 2, "in the text and at the end of the traceback"
    assert "no luck with b" not in err
    assert (
        "failed 5 times, first: scheduling default/c failed: running \"Broken\" filter plugin: KeyError: 'n1'"
        in err
    )
    assert 'broken_plugin.py", line 11, in filter' in err
    assert err.endswith("kschedfw: 15 failures of plugins\n")
    assert "running \"Broken\" filter plugin: KeyError: 'n1'" in out, "the reason has the exception's type"


@pytest.mark.parametrize(
    ("answer", "said", "is_traced"),
    [
        ('return None, Status.from_error("no disk")', "no disk\n", False),
        ('return Status.unschedulable("no room")', "post_filter must return a pair of a ", False),
        ('raise KeyError("rack")', "KeyError: 'rack'\n", True),
    ],
)
def test_a_post_filter_that_fails_is_told_like_other_hooks(
    answer: str, said: str, is_traced: bool, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    plugin = BROKEN_POST_FILTER.replace("ANSWER", answer)
    Path(arguments[0]).with_name("broken_plugin.py").write_text(plugin, encoding="utf-8")
    assert app.run(["simulate", *arguments, "--fail-fast"]) == 1
    err = capsys.readouterr().err
    begin = 'failed once: making room for default/a failed: running PostFilter plugin "Broken": '
    assert err.startswith(begin + said)
    assert ('broken_plugin.py", line 13, in post_filter' in err) is is_traced
    assert err.endswith("kschedfw: 1 failure of plugins; the simulation ended with it\n")


def test_fail_fast_ends_the_simulation_with_the_first_failure(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["simulate", *arguments, "--json", "--fail-fast"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["attempts"] == 1
    assert err.count("Traceback") == 1
    assert err.endswith("kschedfw: 1 failure of plugins; the simulation ended with it\n")


def test_compare_and_explain_tell_each_failure_once_and_say_so(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    cluster, _, configuration, _ = arguments
    compared = ["compare", cluster, "--profile", "default", "--profile", configuration, "--no-progress"]
    for command in (compared, [*compared, "--fail-on", "unplaced"], ["explain", *arguments[:3], "c"]):
        assert app.run(command) == 1, command
        err = capsys.readouterr().err
        assert err.count("Traceback (most recent call last):") == 2
        assert 'failed 10 times, first: scheduling default/a failed: running "Broken" filter plugin' in err
        assert err.endswith("kschedfw: 15 failures of plugins\n")


@pytest.mark.parametrize(
    "command",
    [
        ["pending"],
        ["fit", "--cpu", "1m"],
        ["drain", "n1"],
        ["scale-down"],
        ["scale-up", "--node-group", "group.yaml"],
    ],
)
def test_questions_about_what_if_end_with_a_failure(
    arguments: list[str],
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("group.yaml").write_text("{name: g, template: {status: {allocatable: {cpu: 1, pods: 1}}}}")
    name, *options = command
    cluster, *others = arguments
    assert app.run([name, cluster, *options, *others]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith('kschedfw: running "Broken" filter plugin: ValueError: no luck with a\n')


def test_failures_are_told_where_explaining_ends_with_an_error(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["explain", *arguments[:3], "c", "--attempt", "99"]) == 2
    err = capsys.readouterr().err
    assert err.count("Traceback (most recent call last):") == 2
    assert err.endswith("--attempt 99: expected 1–5, the attempts of the pod\n")


def test_a_plugin_that_works_is_no_failure(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["simulate", arguments[0], "--fail-fast"]) == 0
    assert "fail" not in capsys.readouterr().err
