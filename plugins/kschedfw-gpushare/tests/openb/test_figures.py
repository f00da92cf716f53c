"""Tables, with published figures beside measured ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from kschedfw_gpushare import Policy
from kschedfw_gpushare.openb.figures import (
    ARRIVED,
    MEASURES,
    NOTHING,
    PUBLISHED_NAMES,
    as_json,
    metrics_of,
    read_published,
    series_of,
    tables,
)
from kschedfw_gpushare.openb.replay import Run
from kschedfw_lab.results.results import RunResult

from kschedfw import KschedfwError


def result(seed: int, allocated: float) -> RunResult:
    curve = dict.fromkeys(ARRIVED, allocated)
    run = Run(10, 9, {0: 0.0, **curve}, {0: 0.0, **dict.fromkeys(ARRIVED, 0.05)}, {})
    return RunResult(f"{seed}", {"policy": "FGD", "seed": seed}, metrics_of(run))


def published(directory: Path) -> Path:
    file = directory / "anchors.json"
    figure = {"mean": 95.391, "min": 95.27, "max": 95.49}
    of_measures = {each.published: {str(percent): figure for percent in ARRIVED} for each in MEASURES}
    workloads = {"some_pods": {PUBLISHED_NAMES[Policy.FGD]: of_measures}}
    file.write_text(json.dumps({"workloads": workloads}))
    return file


def test_metrics_are_where_others_published_and_series_are_whole_curves() -> None:
    run = Run(10, 9, {79: 0.7, 80: 0.75, 130: 0.9}, {80: 0.1}, {})
    assert metrics_of(run) == {
        "pods": 10,
        "placed": 9,
        "allocated.80": 0.75,
        "allocated.130": 0.9,
        "fragmented.80": 0.1,
    }
    assert series_of(run) == {"allocated": [(79, 0.7), (80, 0.75), (130, 0.9)], "fragmented": [(80, 0.1)]}


def test_published_figures_stand_below_the_measured_ones(tmp_path: Path) -> None:
    found = read_published(published(tmp_path), "some_pods")
    lines = list(tables({"FGD": [result(1, 0.90), result(2, 0.92)]}, found))
    assert lines[:4] == [
        (
            "| GPUs allocated, % of all | | 80 % | 90 % | 95 % | 100 % | 110 % | 120 % | 130 % | ± at 130 % "
            "| range at 130 % |"
        ),
        "| --- | --- |" + " ---: |" * 8 + " --- |",
        "| FGD | measured |" + " 91.00 |" * 7 + " 12.71 | 90.00–92.00 |",
        "|  | published |" + " 95.39 |" * 7 + "  | 95.27–95.49 |",
    ]
    assert lines[4] == ""
    assert lines[5].startswith("| GPUs fragmented, % of all | |")
    assert not any("idle" in line for line in lines), "what nobody has measured has no table"


def test_without_published_figures_there_are_only_measured_ones(tmp_path: Path) -> None:
    runs = {"FGD": [result(1, 0.9)]}
    assert read_published(tmp_path / "anchors.json", "some_pods") == NOTHING
    assert read_published(published(tmp_path), "other_pods") == {}
    assert [line for line in tables(runs, NOTHING) if "published" in line] == []
    assert as_json(runs, NOTHING)["published"] == {}


def test_json_has_the_runs_and_the_published_figures(tmp_path: Path) -> None:
    found = as_json({"FGD": [result(1, 0.9)]}, read_published(published(tmp_path), "some_pods"))
    (run,) = json.loads(json.dumps(found["runs"]))
    assert (run["policy"], run["seed"], run["allocated.80"]) == ("FGD", 1, 0.9)
    of_policies = found["published"]
    assert isinstance(of_policies, Mapping)
    assert of_policies["FGD"]["allocated"]["80"]["mean"] == 95.391


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"workloads": {"some_pods": {"06-FGD": {}}}}'])
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "anchors.json"
    file.write_text(text)
    with pytest.raises(KschedfwError, match=r"anchors\.json: expected the published figures"):
        read_published(file, "some_pods")
