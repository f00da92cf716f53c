"""`python -m kschedfw_gpushare.openb`: what it prints, what it writes, and how it fails."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from kschedfw_gpushare import GpuShare
from kschedfw_gpushare.openb import contenders
from kschedfw_gpushare.openb.__main__ import NODES, PODS, main
from kschedfw_lab import read_results, read_series

from kschedfw import Plugin, Pod, Registry, hookimpl
from kschedfw.testing.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("in_this_process")


def options(directory: Path, *more: str, seeds: str = "1") -> Sequence[str]:
    return ["--data", str(directory), "--out", str(directory / "out"), "--seeds", seeds, *more]


def policies(printed: str) -> Sequence[object]:
    return list(dict.fromkeys(run["policy"] for run in json.loads(printed)["runs"]))


def test_it_runs_in_other_processes_and_writes_results(small: Path) -> None:
    command = [sys.executable, "-m", "kschedfw_gpushare.openb", "--workers", "1", "--policy", "FGD"]
    done = subprocess.run(
        [*command, *options(small, seeds="1-2")],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].startswith("| GPUs allocated, % of all | | 80 % | 90 % |")
    assert "| FGD | measured |" in done.stdout
    assert "2/2  policy FGD seed 2: " in done.stderr
    results = read_results(small / "out")
    assert results.factors == ("policy", "seed")
    assert [run.factors for run in results.runs()] == [
        {"policy": "FGD", "seed": 1},
        {"policy": "FGD", "seed": 2},
    ]
    assert set(read_series(small / "out")["metric"]) == {"allocated", "fragmented", "fragmented_idle"}


def test_resume_does_what_is_missing(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(options(small, "--policy", "FGD")) == 0
    capsys.readouterr()
    assert main(options(small, "--policy", "FGD", seeds="1-2")) == 2
    assert "has results already; --resume adds what is missing" in capsys.readouterr().err
    assert main(options(small, "--policy", "FGD", "--resume", "--json", seeds="1-2")) == 0
    printed = capsys.readouterr()
    assert "1 of 2 runs are there already" in printed.err
    assert [run["seed"] for run in json.loads(printed.out)["runs"]] == [1, 2]


def test_plugins_and_configurations_are_measured_beside_policies(
    small: Path, profile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--plugin", "NodeResourcesBalancedAllocation", "--plugin", "GpuShare", "--config", str(profile)]
    assert main(options(small, *given, "--policy", "FGD", "--policy", "BestFit", "--json")) == 0
    assert policies(capsys.readouterr().out) == [
        "FGD",
        "BestFit",
        "NodeResourcesBalancedAllocation",
        "GpuShare (BestFit)",
        profile.name,
    ]


def test_files_of_the_same_name_are_told_apart(
    small: Path, profile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = small / "other" / profile.name
    other.parent.mkdir()
    other.write_text(profile.read_text())
    assert main(options(small, "--json", "--config", str(profile), "--config", str(other))) == 0
    assert policies(capsys.readouterr().out) == [str(profile), str(other)]


def test_what_cant_be_measured_is_said_before_anything_is(
    small: Path, profile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile.write_text(profile.read_text().replace("default-scheduler", "elsewhere"))
    for given, text in (
        (["--plugin", "NodeResourcesBalanced"], "NodeResourcesBalanced"),
        (["--config", str(small / "none.yaml")], "none.yaml"),
        (["--config", str(small / NODES)], NODES),
        (["--config", str(profile)], "profile.yaml: has no profile default-scheduler"),
    ):
        assert main(options(small, "--policy", "FGD", *given)) == 2
        printed = capsys.readouterr()
        assert (printed.out, printed.err.count("\n")) == ("", 1)
        assert printed.err.startswith("openb: ")
        assert text in printed.err
    assert not (small / "out").exists()


def test_wrong_data_is_one_line_that_says_which_table_it_should_be(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (small / "cpus.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\na,64000,262144,0,")
    for given, text in (
        (["--nodes", PODS], f"{PODS}:1: expected OpenB's table of nodes: column sn is missing; found name, "),
        (["--pods", NODES], f"{NODES}:1: expected OpenB's table of pods: column name is missing; found sn, "),
        (["--nodes", "none.csv"], "none.csv: No such file or directory; expected OpenB's table of nodes"),
        (["--nodes", "cpus.csv"], "cpus.csv: expected OpenB's table of nodes, some of them with GPUs"),
    ):
        assert main(options(small, *given)) == 2
        printed = capsys.readouterr()
        assert (printed.out, printed.err.count("\n")) == ("", 1)
        assert text in printed.err


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (["--seeds", "few"], "expected seeds such as 42-51 or 42,45, at most 10,000, found 'few'"),
        (["--seeds", "51-42"], "found '51-42'"),
        (["--policy", "FDG"], "DotProd"),
        (["--workers", "0"], "expected a number from 1 to 1024, found '0'"),
        (["--workers", "2", "--dask", "tcp://127.0.0.1:1"], "not allowed with"),
    ],
)
def test_bad_usage(small: Path, capsys: pytest.CaptureFixture[str], given: Sequence[str], text: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--data", str(small), *given])
    error = capsys.readouterr().err
    assert ended.value.code == 2
    assert text in error
    assert "Policy." not in error


class Fails(Plugin):
    """Raises what it is told to, at every second pod."""

    name = "Fails"
    error: type[BaseException] = ValueError
    calls = 0

    @hookimpl
    def pre_score(self, pod: Pod) -> None:
        Fails.calls += 1
        if Fails.calls % 4 >= 2:
            raise Fails.error(f"no luck with {pod.name}")

    @hookimpl
    def score(self) -> int:
        return 0


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch) -> type[Fails]:
    def registry() -> Registry:
        known = Registry()
        known.register(Fails)
        if "GpuShare" not in known.names():
            known.register(GpuShare)
        return known

    monkeypatch.setattr(contenders, "_registry", registry)
    monkeypatch.setattr(Fails, "calls", 0)
    return Fails


def test_a_failing_plugin_has_rows_with_its_error_and_no_figures(
    small: Path, fails: type[Fails], capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--plugin", fails.name, "--policy", "FGD"]
    assert main(options(small, *given, seeds="1-2")) == 1
    printed = capsys.readouterr()
    assert "| FGD | measured |" in printed.out
    assert "Fails" not in printed.out
    assert "ValueError: no luck with" in printed.err, "a traceback says where it failed"
    assert printed.err.splitlines()[-1] == "2 runs failed, so there are no figures for Fails"
    failed = [run for run in read_results(small / "out").runs() if run.error]
    assert [run.factors for run in failed] == [{"policy": "Fails", "seed": seed} for seed in (1, 2)]
    assert all("times, first: scheduling openb/" in run.error for run in failed)


def test_ctrl_c_leaves_what_was_done(
    small: Path,
    fails: type[Fails],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(fails, "error", KeyboardInterrupt)
    given = ["--policy", "FGD", "--plugin", fails.name]
    assert main(options(small, *given, seeds="1-3")) == 130
    printed = capsys.readouterr()
    assert "| FGD | measured |" in printed.out
    assert printed.err.splitlines()[-1].startswith("interrupted; ")
    assert "Traceback" not in printed.err
    assert {run.factors["policy"] for run in read_results(small / "out").runs()} == {"FGD"}
