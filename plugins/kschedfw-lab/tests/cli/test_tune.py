"""What `kschedfw tune` prints and writes, and its exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tuning.days import SEARCH, write_day

from kschedfw.testing import Command


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    content = {
        "search": dict(SEARCH),
        "training": {"cluster": [write_day(tmp_path, day) for day in (1, 2)]},
        "heldOut": {"cluster": [write_day(tmp_path, day) for day in (3, 4)]},
        "objective": {"metric": "placed"},
        "trials": 6,
    }
    path = tmp_path / "search.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


@pytest.mark.slow
def test_a_search(kschedfw_command: Command, spec: Path) -> None:
    result = kschedfw_command("tune", spec, "--workers", 1, "--no-progress")
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0] == "6 trials: 6 complete"
    assert '  strategy: "MostAllocated"' in lines
    (held_out,) = (line for line in lines if line.startswith("held out, 2 runs"))
    default, tuned, difference = map(float, held_out.split()[4:7])
    assert tuned - default == difference > 0
    assert "search-results/tuned.yaml: the configuration" in lines[-1]
    checked = kschedfw_command("config", "check", "search-results/tuned.yaml")
    assert checked.code == 0, checked.err

    again = kschedfw_command("tune", spec, "--workers", 1, "--no-progress")
    assert (again.code, again.out) == (2, "")
    assert again.err.startswith(
        "kschedfw: search-results: has results already; --resume adds what is missing"
    )
    resumed = kschedfw_command("tune", spec, "--workers", 1, "--resume", "--json")
    assert (resumed.code, resumed.err) == (0, "")
    assert resumed.json["heldOut"]["difference"] == difference
    assert [trial["number"] for trial in resumed.json["trials"]] == list(range(6))


def test_a_wrong_specification(kschedfw_command: Command, spec: Path) -> None:
    spec.write_text(spec.read_text() + "heldout: {}\n")
    result = kschedfw_command("tune", spec)
    assert (result.code, result.out) == (2, "")
    assert result.err == f"kschedfw: {spec}: heldout: unknown field; did you mean heldOut?\n"


@pytest.mark.slow
def test_a_metric_that_is_not_measured(kschedfw_command: Command, spec: Path) -> None:
    spec.write_text(spec.read_text().replace("metric: placed", "metric: place"))
    result = kschedfw_command("tune", spec, "--workers", 1, "--no-progress")
    assert (result.code, result.out) == (1, "")
    assert result.err == "kschedfw: objective.metric: no run has 'place'; did you mean placed?\n"


def test_workers_are_not_for_dask(kschedfw_command: Command, spec: Path) -> None:
    result = kschedfw_command("tune", spec, "--workers", 2, "--dask", "tcp://127.0.0.1:1")
    assert result.code == 2
    assert "a Dask cluster has its own workers" in result.err
