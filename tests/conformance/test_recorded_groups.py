"""Groups of pods are scheduled as kube-scheduler v1.36 was observed to schedule them with its gates for groups on."""

from __future__ import annotations

import gzip
import json
from itertools import islice
from pathlib import Path

import pytest

from kschedfw.framework.runtime.registry import Registry
from kschedfw.testing.conformance.__main__ import main
from kschedfw.testing.conformance.compare import group_differences, number_of_decisions
from kschedfw.testing.conformance.groups import decide_groups
from kschedfw.testing.conformance.scenario import GroupScenario, Mode, read_all_scenarios

DATA = Path(__file__).parent / "data" / "groups"

# Cycles and ends of rounds per category, so that a category can't quietly shrink to nothing.
COMPARED = {
    "quirks": 70,
    "gang": 535,
    "topology": 526,
    "preemption": 584,
    "nowap": 521,
    "mixed": 626,
}

OTHER_MODES = [mode for mode in Mode if mode is not Mode.MEMO]

pytestmark = [pytest.mark.conformance, pytest.mark.slow]


def differing(category: str, mode: Mode, first: int | None = None) -> tuple[list[str], int]:
    """The differences in a category, or its first scenarios, and the number of decisions that were compared."""
    registry = Registry()
    found: list[str] = []
    compared = 0
    for scenario in islice(read_all_scenarios(DATA / f"{category}.jsonl.gz"), first):
        assert isinstance(scenario, GroupScenario)
        found += map(str, group_differences(scenario, decide_groups(scenario, registry, mode)))
        compared += number_of_decisions(scenario)
    return found, compared


@pytest.mark.parametrize("category", sorted(COMPARED))
def test_every_decision_on_groups_is_kube_schedulers(category: str) -> None:
    assert differing(category, Mode.MEMO) == ([], COMPARED[category])


@pytest.mark.parametrize("mode", OTHER_MODES)
@pytest.mark.parametrize("category", sorted(COMPARED))
def test_first_decisions_on_groups_are_the_same_however_plugins_are_asked(category: str, mode: Mode) -> None:
    found, compared = differing(category, mode, first=4)
    assert found == []
    assert compared


@pytest.mark.nightly
@pytest.mark.parametrize("mode", OTHER_MODES)
@pytest.mark.parametrize("category", sorted(COMPARED))
def test_every_decision_on_groups_is_the_same_however_plugins_are_asked(category: str, mode: Mode) -> None:
    assert differing(category, mode) == ([], COMPARED[category])


def test_a_value_that_differs_is_told_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with gzip.open(DATA / "quirks.jsonl.gz", "rt") as file:
        scenario = json.loads(next(file))
    scenario["expected"][0]["cycles"][0]["binds"]["default/a"] = "elsewhere"
    path = tmp_path / "wrong.jsonl"
    path.write_text(json.dumps(scenario))

    assert main(["check", str(path)]) == 1

    told = "quirks-member-order round-0.cycle-0 binds.default/a: expected 'elsewhere', got 'n2'"
    assert told in capsys.readouterr().out


def test_decide_prints_the_rounds_of_a_scenario_with_groups(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with gzip.open(DATA / "quirks.jsonl.gz", "rt") as file:
        line = next(file)
    path = tmp_path / "one.jsonl"
    path.write_text(line)

    assert main(["decide", str(path)]) == 0

    (decided,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert decided["name"] == "quirks-member-order"
    assert decided["rounds"][0]["cycles"][0]["order"] == ["default/c", "default/a", "default/b"]
