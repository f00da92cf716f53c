"""Groups of pods are scheduled as kube-scheduler v1.36 was observed to schedule them with its gates for groups on."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from kschedfw.framework.groups import GroupPlacement
from kschedfw.framework.runtime.registry import Registry
from kschedfw.scheduler.groups import (
    GroupAlgorithm,
    GroupResult,
    MemberResult,
    PlacementResult,
    equal_members,
)
from kschedfw.scheduler.groups.equal_members import EqualMembers
from tests.conformance.__main__ import main as decide
from tests.conformance.check import main as check
from tests.conformance.compare import group_differences, number_of_decisions
from tests.conformance.modes import Mode, decide_groups_in
from tests.conformance.scenario import GroupScenario, read_scenarios

DATA = Path(__file__).parent / "data" / "groups"

# Cycles and ends of rounds per category, so that a category can't quietly shrink to nothing.
COMPARED = {
    "quirks": 70,
    "gang": 535,
    "topology": 526,
    "preemption": 584,
    "nowap": 521,
    "mixed": 626,
    "eviction": 14,
}

OTHER_MODES = [mode for mode in Mode if mode is not Mode.MEMO]

pytestmark = [pytest.mark.conformance, pytest.mark.slow, pytest.mark.long]


def differing(category: str, mode: Mode, first: int | None = None) -> tuple[list[str], int]:
    """The differences in a category, or its first scenarios, and the number of decisions that were compared."""
    registry = Registry()
    found: list[str] = []
    compared = 0
    for scenario in islice(read_scenarios(DATA / f"{category}.jsonl.gz"), first):
        assert isinstance(scenario, GroupScenario)
        found += map(str, group_differences(scenario, decide_groups_in(mode, scenario, registry)))
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


class Together:
    """Repeats each run of the algorithm for groups with equal members tried together, and compares the results."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.runs = 0
        patch.setattr(equal_members, "_FEWEST_MEMBERS", 1)
        patch.setattr(equal_members, "_FEWEST_TRIALS", 1)
        as_is, on_each = GroupAlgorithm.run, EqualMembers.on_each

        def run(algorithm: GroupAlgorithm, *args: Any, makes_room: bool, **asked: Any) -> GroupResult:
            seen = _seen(as_is(algorithm, *args, makes_room=False))
            with patch.context() as without:
                without.setattr(EqualMembers, "of", lambda *_, **__: None)
                assert seen == _seen(as_is(algorithm, *args, makes_room=False))
                return as_is(algorithm, *args, makes_room=makes_room, **asked)

        def counted(trials: EqualMembers, placements: Sequence[GroupPlacement]) -> list[PlacementResult]:
            self.runs += 1
            return on_each(trials, placements)

        patch.setattr(GroupAlgorithm, "run", run)
        patch.setattr(EqualMembers, "on_each", counted)


def _seen(result: GroupResult) -> object:
    placements = [
        (
            each.placement.name,
            each.status,
            each.node_names,
            [(member.node_name, member.result, member.permit, _told(member)) for member in each.members],
        )
        for each in result.placements
    ]
    return result.status, result.scores, placements


def _told(member: MemberResult) -> object:
    return member.status.code, member.status.reasons, member.nomination


@pytest.mark.parametrize("category", ["gang", "preemption", "quirks", "topology"])
def test_equal_members_that_are_tried_together_fare_as_one_by_one(
    category: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba", reason="needs the extra fast")
    together = Together(monkeypatch)
    assert differing(category, Mode.MEMO, first=4)[0] == []
    assert together.runs


@pytest.mark.nightly
@pytest.mark.parametrize("category", sorted(COMPARED))
def test_all_equal_members_that_are_tried_together_fare_as_one_by_one(
    category: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba", reason="needs the extra fast")
    together = Together(monkeypatch)
    assert differing(category, Mode.MEMO) == ([], COMPARED[category])
    assert together.runs


def test_a_value_that_differs_is_told_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with gzip.open(DATA / "quirks.jsonl.gz", "rt") as file:
        scenario = json.loads(next(file))
    scenario["expected"][0]["cycles"][0]["binds"]["default/a"] = "elsewhere"
    path = tmp_path / "wrong.jsonl"
    path.write_text(json.dumps(scenario))

    assert check([str(path)]) == 1

    told = "quirks-member-order round-0.cycle-0 binds.default/a: expected 'elsewhere', got 'n2'"
    assert told in capsys.readouterr().out


def test_decide_prints_the_rounds_of_a_scenario_with_groups(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with gzip.open(DATA / "quirks.jsonl.gz", "rt") as file:
        line = next(file)
    path = tmp_path / "one.jsonl"
    path.write_text(line)

    assert decide(["decide", str(path)]) == 0

    (decided,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert decided["name"] == "quirks-member-order"
    assert decided["rounds"][0]["cycles"][0]["order"] == ["default/c", "default/a", "default/b"]
