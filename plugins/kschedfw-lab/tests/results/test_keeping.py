"""Results of experiments that are measured as a whole are added to a directory."""

from __future__ import annotations

from pathlib import Path

import pytest
from kschedfw_lab import ResultsError, kept, read_results


def test_without_a_directory_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with kept(None, ("policy",)) as keeper:
        keeper.add({"policy": "a"}, {"placed": 1})
    assert list(tmp_path.iterdir()) == []


def test_the_same_factors_are_replaced_and_others_are_added(tmp_path: Path) -> None:
    for seed, placed in ((1, 5), (2, 6), (1, 7)):
        with kept(tmp_path, ("policy", "seed")) as keeper:
            keeper.add({"policy": "a", "seed": seed}, {"placed": placed})
    runs = read_results(tmp_path).runs()
    assert [(run.run, run.metrics["placed"]) for run in runs] == [("a/1", 7), ("a/2", 6)]
    with pytest.raises(ResultsError, match="has results of the factors policy, seed; expected workload"):
        kept(tmp_path, ("workload",)).__enter__()


def test_repeats_are_counted_on(tmp_path: Path) -> None:
    for seconds in (0.5, 0.25):
        with kept(tmp_path, ("workload", "repeat")) as keeper:
            for workload in ("basic", "basic", "affinity"):
                keeper.add({"workload": workload}, {"seconds": seconds}, repeat="repeat")
    found = [(run.run, run.metrics["seconds"]) for run in read_results(tmp_path).runs()]
    assert found == [
        ("basic/1", 0.5),
        ("basic/2", 0.5),
        ("affinity/1", 0.5),
        ("basic/3", 0.25),
        ("basic/4", 0.25),
        ("affinity/2", 0.25),
    ]


def test_an_error_in_the_way_leaves_what_was_added(tmp_path: Path) -> None:
    def add_and_fail() -> None:
        with kept(tmp_path, ("policy",)) as keeper:
            keeper.add({"policy": "a"}, {"placed": 1})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        add_and_fail()
    assert (tmp_path / "results.csv").is_file()
    assert len(read_results(tmp_path / "results.csv").runs()) == 1
