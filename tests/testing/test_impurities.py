"""Each kind of impurity is found by the checks that the table of the documentation names, and by no others."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from kschedfw import InMemoryCluster, Plugin, Pod, Profile, Registry, Scheduler, make_node, make_pod
from kschedfw.testing import FakeClock, PluginContract
from tests.testing.impurities import IMPURITIES, Impurity

FEW: Final = 42
OFTEN: Final = 10
"""One in so many learned answers is compared with the hook's own, in place of one in 64."""
NODES: Final = [make_node(f"n{index}").capacity(cpu=64, pods=1000).build() for index in range(4)]
REPOSITORY: Final = Path(__file__).parents[2]

each_kind = pytest.mark.parametrize("impurity", IMPURITIES, ids=lambda each: each.plugin.__name__)


@each_kind
def test_the_contract_finds_it(impurity: Impurity) -> None:
    contract = type("Contract", (PluginContract,), {"plugin": impurity.plugin, "max_examples": 3})()
    with pytest.raises(AssertionError) as raised:
        getattr(contract, f"test_{impurity.check}")()
    assert impurity.plugin.name in str(raised.value)


def is_found_running(kind: type[Plugin[Any]]) -> bool:
    """Tell whether a scheduler finds out that the plugin isn't pure, while pods come and time passes."""
    registry, clock = Registry(), FakeClock()
    registry.register(kind)
    cluster = InMemoryCluster(NODES)
    profile = Profile(["PrioritySort", kind.name, "DefaultBinder"])
    scheduler = Scheduler(cluster, [profile], registry=registry, clock=clock)
    try:
        for index in range(FEW):
            cluster.add(make_pod(f"p{index}").uid(f"p{index}").build())
            scheduler.run_until_idle()
            clock.advance(7)
        assert all(pod.node_name for pod in cluster.list(Pod))
        (framework,) = scheduler.frameworks.values()
        forms = framework.learned[kind.name].forms.values()
        return any(form.problem.startswith("it isn't pure") for form in forms)
    finally:
        scheduler.close()


@each_kind
def test_a_scheduler_that_runs_finds_what_changes_answers_meanwhile(
    impurity: Impurity, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kschedfw.framework.learning.learned._ASKED_AGAIN", OFTEN)
    monkeypatch.setattr("kschedfw.framework.runtime.search_hooks._ASKED_AGAIN", OFTEN)
    assert is_found_running(impurity.plugin) is impurity.is_found_running
    assert ("isn't pure" in caplog.text) is impurity.is_found_running


@pytest.mark.slow
def test_the_mypy_plugin_finds_what_a_hooks_own_source_shows(tmp_path: Path) -> None:
    """Runs mypy with lint's settings, so that both share what is known of the core."""
    source = (REPOSITORY / "tests" / "testing" / "impurities.py").read_text(encoding="utf-8")
    marked = tmp_path / "impurities_without_marks.py"
    marked.write_text(source.replace("# type: ignore[kschedfw]", "#"), encoding="utf-8")
    # A process of its own ends without freeing what it knows: here that took longer than the check.
    told = subprocess.run(
        [sys.executable, "-m", "mypy", marked], check=False, capture_output=True, text=True, cwd=REPOSITORY
    ).stdout
    lines = source.splitlines()
    found = {}
    for line in told.splitlines():
        if "[kschedfw]" in line:
            _, number, _, text = line.split(":", 3)
            owner = next(each for each in reversed(lines[: int(number)]) if each.startswith("class "))
            found[owner.split("(")[0].removeprefix("class ")] = text.strip()
    assert found == {
        each.plugin.__name__: f'Hook "{hook}" says that it is pure, and {each.in_mypy}  [kschedfw]'
        for each in IMPURITIES
        if each.in_mypy
        for hook in ["pre_filter" if hasattr(each.plugin, "pre_filter") else "score"]
    }


def test_the_documentation_has_the_table() -> None:
    script = runpy.run_path(str(REPOSITORY / "docs" / "generate_impurities.py"))
    page = script["PAGE"].read_text(encoding="utf-8")
    assert script["written"](page, IMPURITIES) == page, "run: python docs/generate_impurities.py"
