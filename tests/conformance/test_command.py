"""`python -m tests.conformance decide` and `python -m tests.conformance.check`."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.__main__ import main
from tests.conformance.check import main as check
from tests.conformance.scenario import read_scenarios

pytestmark = pytest.mark.slow

DATA = Path(__file__).parent / "data"


def scenarios(category: str, count: int) -> list[dict[str, Any]]:
    with gzip.open(DATA / f"{category}.jsonl.gz", "rt") as file:
        lines = [json.loads(next(file)) for _ in range(count)]
    return lines


def write(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_check_passes_and_says_what_it_did_not_compare(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taints = write(tmp_path / "taints.jsonl", scenarios("taints", 5))
    volumes = write(tmp_path / "volumes.jsonl", scenarios("volumes", 3))
    config = write(tmp_path / "config.jsonl", scenarios("config", 20))

    assert check([str(taints), str(volumes), str(config)]) == 0

    out = capsys.readouterr().out
    assert "0 differences" in out
    assert "decisions and 1 refused configuration checked, 0 differences" in out


@pytest.mark.parametrize("path", sorted(DATA.glob("*.jsonl.gz")), ids=lambda path: path.name)
def test_check_reads_each_file_that_its_page_names(path: Path) -> None:
    """Recordings of another form have folders of their own: the page's pattern doesn't meet them."""
    assert next(iter(read_scenarios(path))).name


def test_check_fails_and_shows_where_the_first_differences_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = scenarios("resources", 3)
    decision = next(d for line in lines for d in line["expected"] if d["feasible"])
    node = decision["feasible"][0]
    decision["totals"][node] += 1
    decision["feasible"] = ["elsewhere"]

    assert check([str(write(tmp_path / "wrong.jsonl", lines)), "--show", "1"]) == 1

    out = capsys.readouterr().out
    assert f"{decision['pod']} feasible: expected ['elsewhere'], got " in out
    assert "… and 1 more" in out
    assert "2 differences" in out


def test_check_tells_a_refusal_for_another_reason_from_the_recorded_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = next(line for line in scenarios("config", 30) if "error" in line)
    other = {**refused, "error": refused["error"].replace("-1", "-2")}
    accepted = {**refused, "config": None}

    assert check([str(write(tmp_path / "wrong.jsonl", [other, accepted]))]) == 1

    out = capsys.readouterr().out
    assert f"{refused['name']} error: expected " in out
    assert "got 'accepted'" in out
    assert "2 differences" in out


def test_decide_needs_nothing_recorded_and_gives_what_check_expects(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded = [line for line in scenarios("images", 4) if line["mode"] == "independent"]
    bare = [{key: value for key, value in line.items() if key != "expected"} for line in recorded]

    assert main(["decide", str(write(tmp_path / "bare.jsonl", bare))]) == 0

    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["name"] for line in printed] == [line["name"] for line in recorded]
    for line, expected in zip(printed, recorded, strict=True):
        for ours, theirs in zip(line["decisions"], expected["expected"], strict=True):
            assert ours["scores"] == theirs["scores"]
            assert ours["filterPlugins"] == theirs["filterPlugins"]
            assert ours["chosen"] == theirs["chosen"]


def test_decide_follows_the_recorded_choice_in_sequential_mode(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = next(s for s in scenarios("resources", 40) if s["mode"] == "sequential" and len(s["expected"]) > 1)
    node = line["objects"]["nodes"][0]["metadata"]["name"]
    line["pending"] = [
        line["pending"][0],
        {**line["pending"][0], "metadata": {"name": "again", "uid": "again"}},
    ]
    line["expected"] = [{"chosen": node}, {"chosen": node}]

    assert main(["decide", str(write(tmp_path / "one.jsonl", [line]))]) == 0

    first, second = json.loads(capsys.readouterr().out)["decisions"]
    assert "reserve" in first
    scores = "NodeResourcesFit"
    if node in second["feasible"]:
        assert second["scores"][scores]["raw"][node] <= first["scores"][scores]["raw"][node]
    else:
        assert node in second["filter"]


def test_decide_reports_a_refused_configuration_per_scenario(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = scenarios("taints", 1)
    args = {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 101}}
    line["config"] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", "pluginConfig": [args]}],
    }

    assert main(["decide", str(write(tmp_path / "bad.jsonl", [line]))]) == 0

    printed = json.loads(capsys.readouterr().out)
    assert printed["name"] == line["name"]
    assert "hardPodAffinityWeight: Invalid value: 101" in printed["error"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "bad.jsonl:1: not JSON"),
        ("{}", "bad.jsonl:1: not a scenario: it needs name, objects and pending"),
    ],
)
def test_a_broken_file_is_named_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, said: str
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(content)

    assert check([str(path)]) == 2
    assert said in capsys.readouterr().err


def test_a_missing_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check([str(tmp_path / "none.jsonl.gz")]) == 2
    assert "none.jsonl.gz" in capsys.readouterr().err
