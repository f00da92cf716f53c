"""The specification of a search is checked before anything runs; each error is one clear line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from kschedfw_lab import Tuning
from kschedfw_lab.sweep.errors import SweepError
from tuning.days import FIT, SEARCH, write_day


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Any]:
    return {
        "search": dict(SEARCH),
        "training": {"cluster": [write_day(tmp_path, 1)], "seed": [1, 2]},
        "heldOut": {"seed": [11], "cluster": [write_day(tmp_path, 2)]},
        "objective": {"metric": "placed", "direction": "maximize"},
    }


def read(folder: Path, content: object) -> Tuning:
    path = folder / "search.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return Tuning.read(path)


def test_a_file(tmp_path: Path, given: dict[str, Any]) -> None:
    tuning = read(tmp_path, {**given, "trials": 7, "batch": 3, "seed": 9, "pruning": False})
    assert (len(tuning.training.runs), len(tuning.held_out.runs)) == (2, 1)
    assert (tuning.trials, tuning.batch, tuning.seed, tuning.pruning) == (7, 3, 9, False)
    assert tuning.columns == ("cluster", "seed", "strategy", "plugins.NodeResourcesBalancedAllocation")
    assert [run.seed for run in tuning.held_out.runs] == [11]


def test_a_run_with_values(tmp_path: Path, given: dict[str, Any]) -> None:
    tuning = read(tmp_path, given)
    default = tuning.training.runs[0]
    run = tuning.run_with(
        default, {"strategy": "MostAllocated", "plugins.NodeResourcesBalancedAllocation": 4}
    )
    assert run.values["strategy"] == "MostAllocated"
    assert run.key != tuning.run_with(default, {}).key
    assert '"MostAllocated"' in run.configuration.document
    assert tuning.run_with(default, {}).configuration == default.configuration


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"trails": 3}, "trails: unknown field; did you mean trials?"),
        ({"search": {}}, "search: is empty; give at least one factor with a list or a range"),
        ({"search": [1]}, "search: expected an object, found [1]"),
        ({"search": None}, "search: expected an object, found null"),
        (
            {"search": {"nodes": [1, 2]}},
            "search.nodes: isn't in the configuration; what is searched are paths",
        ),
        (
            {"search": {"x": {"path": FIT, "values": ["a"]}}},
            "search.x: has one value, so there is nothing to search",
        ),
        (
            {"search": {"x": {"path": FIT, "values": ["Best", "Worst"]}}},
            "search.x: configuration default with profiles[0]",
        ),
        ({"search": {"plugins.Nobody": [1, 2]}}, "search.plugins.Nobody: "),
        ({"training": {}}, "training: is empty; give the factors, such as seed"),
        ({"training": {"seed": [1]}}, "heldOut: expected the factors of training, seed; found seed, cluster"),
        ({"factors": {"seed": 1}}, "training.seed: is in factors already"),
        (
            {"factors": {"attemptTime": [1, 2]}},
            "factors.attemptTime: expected one value; several belong into training",
        ),
        ({"objective": {"direction": "up"}}, "objective.metric: expected the name of a metric"),
        (
            {"objective": {"metric": "placed", "direction": "up"}},
            "objective.direction: expected maximize or minimize",
        ),
        ({"objective": {"metrics": "placed"}}, "objective.metrics: unknown field; did you mean metric?"),
        (
            {"objective": {"metric": "elapsed_seconds"}},
            "objective.metric: elapsed_seconds is measured by a real clock",
        ),
        ({"trials": 0}, "trials: expected a whole number from 1 to 10000, found 0"),
        ({"batch": "2"}, 'batch: expected a whole number from 1 to 1000, found "2"'),
        ({"seed": -1}, "seed: expected a whole number from 0 to 4294967295, found -1"),
        ({"pruning": "median"}, 'pruning: expected true or false, found "median"'),
    ],
)
def test_what_is_wrong_is_named(
    tmp_path: Path, given: dict[str, Any], changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(SweepError) as raised:
        read(tmp_path, {**given, **changed})
    assert str(raised.value).startswith(f"{tmp_path / 'search.yaml'}: {message}")
    assert "\n" not in str(raised.value)


def test_a_wrong_value_of_training_is_named_there(tmp_path: Path, given: dict[str, Any]) -> None:
    given["heldOut"]["seed"] = [-1]
    with pytest.raises(SweepError, match=r"heldOut\.seed(\[0\])?: expected a whole number"):
        read(tmp_path, given)


def test_no_run_is_both_for_training_and_held_out(tmp_path: Path, given: dict[str, Any]) -> None:
    given["heldOut"] = {**given["training"], "seed": [2, 3]}
    with pytest.raises(SweepError, match=r'heldOut: has a run of training: cluster "1", seed 2'):
        read(tmp_path, given)
