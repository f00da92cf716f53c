"""`kschedfw sweep`: what it takes, prints and writes, and its exit codes."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from kschedfw_lab import read_results
from kschedfw_lab.cli.sweep_output import duration
from kschedfw_lab.sweep.engine import Engine
from sweep.scenes import cluster_file

from kschedfw.api import how_to_install
from kschedfw.cli.exits import ExitCode
from kschedfw.testing import Command

SPECIFICATION = """\
factors:
  cluster: cluster.json
  plugins.ImageLocality: [0, 1]
  seed: {from: 0, to: 2}
"""


COMMAND = str(Path(sys.executable).with_name("kschedfw"))


@contextmanager
def one_thread(_workers: int | None = None) -> Iterator[Engine]:
    with ThreadPoolExecutor(1) as executor:
        yield Engine(executor, 1, "1 thread")


@pytest.fixture
def sweep(kschedfw_command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Runs `kschedfw sweep` in this process, on a thread, in a folder with a specification."""
    monkeypatch.setattr("kschedfw_lab.cli.sweep.local_engine", one_thread)
    monkeypatch.chdir(tmp_path)
    cluster_file(tmp_path)
    (tmp_path / "packing.yaml").write_text(SPECIFICATION)

    return partial(kschedfw_command, "sweep")


def test_results_go_to_a_folder_with_the_specifications_name(sweep: Command, tmp_path: Path) -> None:
    done = sweep("packing.yaml")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("6 runs done in ")
    assert done.out.endswith("results: packing-results\n")
    assert len(set(read_results(tmp_path / "packing-results").columns["run"])) == 6


def test_json_has_a_line_for_each_run_and_one_at_the_end(sweep: Command) -> None:
    *runs, end = sweep("packing.yaml", "--results", "r", "--json").json_lines
    assert [each["factors"]["seed"] for each in runs] == [0, 1, 2, 0, 1, 2]
    assert [(each["done"], each["total"]) for each in runs] == [(number, 6) for number in range(1, 7)]
    assert all(each["metrics"]["placed"] == 1 and each["error"] == "" for each in runs)
    assert end.pop("elapsedSeconds") > 0
    assert end == {
        "results": "r",
        "runs": 6,
        "done": 6,
        "failed": 0,
        "skipped": 0,
        "stale": 0,
        "interrupted": False,
    }


def test_a_dry_run_lists_the_runs_and_estimates_their_time(sweep: Command, tmp_path: Path) -> None:
    done = sweep("packing.yaml", "--dry-run")
    *runs, empty, count, estimate = done.out.splitlines()
    assert [line.split("  ")[1] for line in runs[:2]] == [
        "cluster=cluster.json plugins.ImageLocality=0 seed=0",
        "cluster=cluster.json plugins.ImageLocality=0 seed=1",
    ]
    assert (len(runs), empty, count) == (6, "", "6 runs on 1 thread")
    assert estimate.startswith("about ")
    assert not (tmp_path / "packing-results").exists()


def test_a_dry_run_in_json(sweep: Command) -> None:
    sweep("packing.yaml")
    *runs, end = sweep("packing.yaml", "--dry-run", "--json", "--resume").json_lines
    assert (runs, end) == ([], {"runs": 6, "toDo": 0, "secondsPerRun": 0.0, "seconds": 0.0})


def test_resuming_skips_what_is_done(sweep: Command, tmp_path: Path) -> None:
    sweep("packing.yaml")
    refused = sweep("packing.yaml")
    assert (refused.code, refused.out) == (ExitCode.BAD_INPUT, "")
    assert refused.err == (
        "kschedfw: packing-results: has results already; --resume adds what is missing, or choose another directory\n"
    )
    (tmp_path / "packing.yaml").write_text(
        SPECIFICATION.replace("to: 2", "to: 3").replace("from: 0", "from: 1")
    )
    again = sweep("packing.yaml", "--resume")
    assert again.code == 0
    assert again.out.startswith("2 runs done in ")
    assert "; 4 there already\n" in again.out
    assert "note: packing-results: has 2 runs of another specification" in again.err
    assert set(read_results(tmp_path / "packing-results").columns["seed"]) == {1, 2, 3}


def test_warnings_about_configurations_are_told(sweep: Command, tmp_path: Path) -> None:
    (tmp_path / "old.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"
    )
    (tmp_path / "packing.yaml").write_text(
        "factors: {cluster: cluster.json, configuration: old.yaml, seed: [0, 1]}"
    )
    done = sweep("packing.yaml")
    assert done.code == 0
    (line,) = done.err.splitlines()
    assert line.startswith("configuration old.yaml: warning: kube-scheduler reads kubescheduler")


def test_pods_that_admission_refuses_are_told(sweep: Command, tmp_path: Path) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q"},
        "spec": {"hard": {"pods": 4}},
    }
    spec = {"containers": [{"name": "c"}]}
    pods = [{**quota, "kind": "Pod", "metadata": {"name": f"new-{n}"}, "spec": spec} for n in range(3)]
    with (tmp_path / "cluster.json").open("a") as file:
        file.write("\n".join(["", *map(json.dumps, [quota, *pods])]))
    (tmp_path / "packing.yaml").write_text("factors: {cluster: cluster.json, seed: [0, 1]}")
    done = sweep("packing.yaml")
    assert done.code == 0
    assert done.err == (
        'cluster.json: warning: not created: pods "new-1" is forbidden: exceeded quota: q, requested: pods=1, '
        "used: pods=4, limited: pods=4 (and 1 more)\n"
    )


class TestFailures:
    PLUGIN = """
from kschedfw import Plugin, hookimpl

class Fragile(Plugin):
    name = "Fragile"

    @hookimpl
    def filter(self, node_info):
        raise RuntimeError("no inventory")
"""

    @pytest.mark.slow
    def test_a_plugin_that_fails_is_one_row_and_one_line(self, sweep: Command, tmp_path: Path) -> None:
        info = tmp_path / "site" / "fragile-1.2.dist-info"
        info.mkdir(parents=True)
        (info.parent / "fragile.py").write_text(self.PLUGIN)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fragile\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text("[kschedfw]\nFragile = fragile:Fragile\n")
        (tmp_path / "packing.yaml").write_text(SPECIFICATION.replace("ImageLocality", "Fragile"))
        done = subprocess.run(
            [COMMAND, "sweep", "packing.yaml", "--workers", "1"],
            env=os.environ | {"PYTHONPATH": str(info.parent)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == ExitCode.FAILED
        (line,) = done.stderr.splitlines()
        assert line.startswith("3 runs failed: a plugin failed: failed 5 times, first: ")
        assert "Fragile" in line
        assert "6 runs done in " in done.stdout
        assert "; 3 failed\n" in done.stdout
        failed = [each for each in read_results(tmp_path / "packing-results").runs() if each.error]
        assert [each.factors["seed"] for each in failed] == [0, 1, 2]
        specification = json.loads((tmp_path / "packing-results" / "sweep.json").read_text())
        assert "fragile 1.2" in specification["distributions"]

    def test_a_failing_first_run_is_an_error_of_a_dry_run(self, sweep: Command, tmp_path: Path) -> None:
        document = tmp_path / "other.yaml"
        document.write_text(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
            "profiles: [{schedulerName: other}]\n"
        )
        (tmp_path / "packing.yaml").write_text("factors: {cluster: cluster.json, configuration: other.yaml}")
        done = sweep("packing.yaml", "--dry-run")
        assert done.code == ExitCode.BAD_INPUT
        assert done.err.startswith("kschedfw: there is nothing to schedule: ")


class TestUsage:
    @pytest.mark.parametrize(
        ("arguments", "why"),
        [
            (["nosuch.yaml"], "nosuch.yaml: No such file or directory"),
            (["."], ".: Is a directory"),
            (["packing.yaml", "--retry-failed"], "--retry-failed goes with --resume"),
            (
                ["packing.yaml", "--workers", "2", "--dask", "x:1"],
                "--workers 2: a Dask cluster has its own workers",
            ),
            (
                ["packing.yaml", "--dask", "nonsense"],
                "--dask nonsense: is no address; expected tcp://HOST:PORT",
            ),
            (
                ["packing.yaml", "--dask", "127.0.0.1:1"],
                "--dask 127.0.0.1:1: no Dask scheduler answers there",
            ),
            (["packing.yaml", "--results", "packing.yaml"], "packing.yaml"),
        ],
    )
    def test_bad_usage_is_one_line(
        self, arguments: list[str], why: str, sweep: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("kschedfw_lab.cli.sweep.TIMEOUT", 0.5)
        done = sweep(*arguments)
        assert (done.code, done.out) == (ExitCode.BAD_INPUT, "")
        assert why in done.err
        assert len(done.err.splitlines()) == 1

    def test_without_the_extra_dask_one_line_says_what_to_install(
        self, sweep: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "distributed", None)
        done = sweep("packing.yaml", "--dask", "127.0.0.1:8786")
        assert (done.code, done.out) == (ExitCode.FAILED, "")
        assert (
            done.err == f"kschedfw: --dask needs the extra dask: {how_to_install('kschedfw-lab', 'dask')}\n"
        )

    def test_an_engine_that_breaks_down_is_a_failure(
        self, sweep: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        @contextmanager
        def closed(_workers: int | None) -> Iterator[Engine]:
            executor = ThreadPoolExecutor(1)
            executor.shutdown()
            yield Engine(executor, 1, "nothing")

        monkeypatch.setattr("kschedfw_lab.cli.sweep.local_engine", closed)
        done = sweep("packing.yaml")
        assert done.code == ExitCode.FAILED
        assert done.err.startswith("kschedfw: the engine takes no more runs: RuntimeError: ")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (0.123, "0.12 s"),
        (9.99, "10 s"),
        (48.4, "48 s"),
        (59.6, "1 min 0 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
    ],
)
def test_durations_are_short(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.slow
def test_ctrl_c_in_a_narrow_terminal_keeps_what_is_done(sweep: Command, tmp_path: Path) -> None:
    (tmp_path / "packing.yaml").write_text(SPECIFICATION.replace("to: 2", "to: 59"))
    process, terminal = pty.fork()
    if process == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # under nohup it is ignored
        os.environ["COLUMNS"] = "40"
        os.execv(COMMAND, [COMMAND, "sweep", "packing.yaml", "--workers", "1"])
    shown, journal, sent = b"", tmp_path / "packing-results" / "results.jsonl", False
    while True:
        if select.select([terminal], [], [], 0.05)[0]:
            try:
                shown += os.read(terminal, 4096)
            except OSError:  # the process has ended
                break
        if not sent and journal.exists() and journal.read_bytes().count(b"\n\n") >= 3:
            os.write(terminal, b"\x03")
            sent = True
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert code == ExitCode.INTERRUPTED
    text = shown.decode()
    assert "sweeping" in text
    assert "missing, --resume does the rest" in text
    assert "kschedfw: interrupted" in text
    assert "Traceback" not in text
    done = len(set(read_results(tmp_path / "packing-results").columns["run"]))
    assert 2 <= done < 120  # the third is taken back where Ctrl-C comes before it is on the disk
    end = sweep("packing.yaml", "--resume", "--json").json_lines[-1]
    assert (end["done"], end["skipped"]) == (120 - done, done)
