"""The history of what pods cost, and how a regression shows in it."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest
from kschedfw_lab.bench.stage import Case

from kschedfw import Registry
from tests.benchmarks import history
from tests.benchmarks.history import FILE, ROWS, Entry, compared, cost, is_regression, main, read

SMALL = {"basic": Case("basic", nodes=10, initial_pods=5, pods=5)}


def entries(*costs: float) -> list[Entry]:
    return [Entry(str(number), {"basic": each}) for number, each in enumerate(costs)]


def test_a_fifth_more_than_lately_is_a_regression() -> None:
    lately = entries(9.0, 1.0, 1.1, 1.0, 0.9, 1.0)
    assert not is_regression(1.2, "basic", lately)
    assert is_regression(1.21, "basic", lately)
    assert not is_regression(1.21, "new", lately)
    assert not is_regression(1.21, "basic", [])


def test_the_table_names_it() -> None:
    lines = list(compared({"basic": 1.5, "new": 2.0}, entries(1.0)))
    assert [line.split() for line in lines] == [
        ["row", "loops", "before", "ratio"],
        ["basic", "1.50", "1.00", "1.50", "REGRESSION"],
        ["new", "2.00"],
    ]


def test_what_looks_like_one_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found = iter([1.5, 1.1])
    monkeypatch.setattr(history, "cost", lambda case, registry: next(found))
    assert history.measured(SMALL, entries(1.0)) == {"basic": 1.1}


def test_each_run_adds_a_line_if_asked_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "history.jsonl"
    main([], SMALL, file)
    assert not file.exists()
    main(["--append"], SMALL, file)
    main(["--append"], SMALL, file)
    assert len(read(file)) == 2
    assert capsys.readouterr().out.splitlines()[-1].split()[2] == f"{read(file)[0].costs['basic']:.2f}"


def test_an_unknown_argument_is_refused() -> None:
    with pytest.raises(SystemExit, match="unknown argument --apend; there is --append"):
        main(["--apend"], SMALL)


def test_a_pod_costs_something() -> None:
    assert cost(SMALL["basic"], Registry()) > 0


def test_the_history_of_the_repository_can_be_read_and_is_about_rows_that_there_are() -> None:
    assert set(read(FILE)[-1].costs) == set(ROWS)
    assert all(json.loads(entry.to_line())["name"] for entry in read(FILE))
    assert all(attrs.evolve(case, pods=1).workload for case in ROWS.values())
