"""`python -m kschedfw_lab.packing`: what it prints, what it writes, and how it fails."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from kschedfw_apiserver.processes import running
from kschedfw_lab import read_results
from kschedfw_lab.packing import churn, compaction, loss_system
from kschedfw_lab.packing.__main__ import main
from kschedfw_lab.packing.policies import Policy, profile_of
from kschedfw_lab.packing.workload import NODES, PODS

from kschedfw.testing.waiting import PATIENCE

FEW_PODS = 12

pytestmark = pytest.mark.usefixtures("in_this_process")


@pytest.fixture
def few_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    """The workload of compactions is as small as the machines are few."""
    monkeypatch.setattr(churn, "compacted", partial(compaction.compacted, pods=FEW_PODS))


def options(directory: Path, *more: str, seeds: str = "1-2") -> Sequence[str]:
    return ["--data", str(directory), "--out", str(directory / "out"), "--seeds", seeds, *more]


@pytest.mark.usefixtures("few_pods")
def test_it_prints_what_was_measured_and_what_was_published(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(options(directory)) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[0] == "| | spreading | packing | hybrid |"
    assert "| statement | published | measured | agrees |" in lines
    assert "6/6  policy hybrid seed 2: " in printed.err
    results = read_results(directory / "out")
    assert {run.factors["policy"] for run in results.runs()} == set(Policy)
    assert main(options(directory, "--resume", "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["published"] for each in found["statements"]][-1] == "3 to 5"
    assert len(found["runs"]) == 6


@pytest.mark.slow
def test_other_processes_measure_the_same(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(options(directory, "--json", seeds="1")) == 0
    here = json.loads(capsys.readouterr().out)
    command = [sys.executable, "-m", "kschedfw_lab.packing", "--workers", "1", "--json"]
    given = [*options(directory, seeds="1"), "--out", str(directory / "elsewhere")]
    done = subprocess.run([*command, *given], capture_output=True, text=True, check=True, timeout=PATIENCE)
    there = json.loads(done.stdout)
    for run in (*here["runs"], *there["runs"]):
        del run["elapsed_seconds"]
    assert there == here


@pytest.mark.slow
def test_ctrl_c_ends_it_and_resume_goes_on(directory: Path) -> None:
    command = [sys.executable, "-m", "kschedfw_lab.packing", "--workers", "1"]
    given = [*command, *options(directory, seeds="1-999")]
    with running(given) as process:
        assert process.stderr is not None
        while "1/2997" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        printed, told = process.communicate()
    assert process.returncode == 130, told
    assert printed.startswith("| | spreading |")
    last = told.splitlines()[-1]
    assert last.startswith("interrupted; ")
    assert last.endswith(" of 2997 runs are done, --resume does the rest")
    assert "Traceback" not in told
    assert main(options(directory, "--resume", seeds="1")) == 0


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (["--nodes", "none.csv"], "none.csv: No such file or directory; expected a table of the OpenB trace"),
        (["--nodes", PODS], f"{PODS}:1: expected OpenB's table of nodes: column sn is missing"),
        (["--pods", NODES], f"{NODES}:1: expected OpenB's table of pods: column name is missing"),
        (["--nodes", "cpus.csv"], "cpus.csv: expected OpenB's table of nodes, some of them with GPUs"),
        (["--pods", "plain.csv"], "plain.csv: expected OpenB's table of pods, some of them with GPUs"),
    ],
)
def test_wrong_data_is_one_line(
    directory: Path, capsys: pytest.CaptureFixture[str], given: Sequence[str], text: str
) -> None:
    (directory / "cpus.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\na,64000,262144,0,")
    (directory / "plain.csv").write_text((directory / PODS).read_text().split("\n")[0])
    assert main(options(directory, *given)) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert text in printed.err
    assert not (directory / "out").exists()


@pytest.mark.usefixtures("few_pods")
def test_a_failing_plugin_has_rows_with_its_error(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(policy: Policy) -> object:
        if policy is Policy.SPREADING:
            raise loss_system.FailedRunError("a plugin failed once: no luck")
        return profile_of(policy)

    monkeypatch.setattr(loss_system, "profile_of", failing)
    assert main(options(directory, seeds="1")) == 1
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0] == "| | packing | hybrid |"
    assert printed.err.splitlines()[-1] == "1 run failed, so there are no figures for spreading"
    (failed,) = [run for run in read_results(directory / "out").runs() if run.error]
    assert failed.error == "a plugin failed once: no luck"
