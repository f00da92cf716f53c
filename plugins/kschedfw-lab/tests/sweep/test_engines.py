"""The engines themselves: worker processes of this machine, and a Dask cluster of processes of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import attrs
import pytest
from kschedfw_apiserver.processes import running
from kschedfw_lab import Drawn, Range, Run, Sweep, SweepError, WorkerProcesses, run_sweep, tune
from kschedfw_lab.sweep.dask import dask_engine
from kschedfw_lab.sweep.engine import local_engine
from kschedfw_lab.sweep.runs import RunOutcome
from sweep.scenes import PATH, cluster_file
from sweep.test_sweeping import keys, recorded, without_times
from tuning.test_searching import tuning

from kschedfw.testing.waiting import PATIENCE

pytestmark = pytest.mark.slow


IDLE = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "nobody-names-it"}],
}
"""A configuration under which there is nothing to schedule."""


def sweep(folder: Path) -> Sweep:
    """Sixteen runs of a file and of a workload, of drawn and of given values, with arrivals; half of them fail."""
    return Sweep(
        {
            "cluster": [cluster_file(folder), {"workload": "basic"}],
            "nodes": 2,
            "strategy": {"path": PATH, "values": ["LeastAllocated", "MostAllocated"]},
            "plugins.ImageLocality": Range(1, 50),
            "configuration": ["default", {"name": "idle", "document": IDLE}],
            "arrivalRate": [None, 3],
        },
        design=Drawn(2, 1, ("cluster", "configuration", "arrivalRate")),
        series=3,
    )


def rows(directory: Path) -> list[str]:
    return [*without_times((directory / "results.csv").read_text()), (directory / "series.csv").read_text()]


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Dask cluster with a worker process; each process imports Dask for two seconds."""
    file = tmp_path_factory.mktemp("dask") / "scheduler.json"
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    worker = [
        sys.executable,
        "-m",
        "distributed.cli.dask_worker",
        "--no-nanny",
        "--death-timeout",
        "30",
        "--nthreads",
        "1",
        "--no-dashboard",
    ]
    place = ["--scheduler-file", str(file)]
    with ExitStack() as started:
        for command in (
            [*dask, "--host", "127.0.0.1", "--port", "0", "--no-dashboard", *place],
            [*worker, *place],
        ):
            started.enter_context(running(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        # The scheduler makes the file first and writes it afterwards.
        while not (file.exists() and (written := file.read_text()).endswith("\n}")):
            time.sleep(0.05)
        yield json.loads(written)["address"]


def test_processes_and_dask_give_the_same_rows(tmp_path: Path, scheduler: str) -> None:
    both = sweep(tmp_path)
    with local_engine(2) as engine:
        run_sweep(both, tmp_path / "processes", engine.executor, workers=2)
    with dask_engine(scheduler, both.plan().distributions, timeout=PATIENCE) as engine:
        run_sweep(both, tmp_path / "dask", engine.executor, workers=2)
    assert len(recorded(tmp_path / "processes")) == 16
    assert rows(tmp_path / "processes") == rows(tmp_path / "dask")


@pytest.mark.nightly
def test_a_search_finds_the_same_in_processes_and_on_dask(tmp_path: Path, scheduler: str) -> None:
    search = tuning(tmp_path)
    with local_engine(2) as engine:
        processes = tune(search, tmp_path / "processes", engine.executor, workers=2)
    with dask_engine(scheduler, search.training.distributions, timeout=PATIENCE) as engine:
        dask = tune(search, tmp_path / "dask", engine.executor, workers=2)
    assert processes.to_json() == dask.to_json()
    assert processes.best.values["strategy"] == "MostAllocated"


def test_a_killed_worker_loses_and_doubles_nothing(tmp_path: Path) -> None:
    both = sweep(tmp_path)
    executor = WorkerProcesses(2)
    try:
        workers = {executor.submit(os.getpid).result() for _ in range(8)}

        def kill(_run: Run, _outcome: RunOutcome, done: int, _total: int) -> None:
            if done == 3:
                os.kill(workers.pop(), signal.SIGKILL)

        summary = run_sweep(both, tmp_path / "killed", executor, workers=2, progress=kill)
        assert (summary.done, summary.failed) == (16, 8)
        assert sorted(recorded(tmp_path / "killed")) == sorted(keys(both))
        assert workers.isdisjoint({executor.submit(os.getpid).result() for _ in range(8)})
    finally:
        executor.shutdown(cancel_futures=True)


def test_busy_workers_end_at_once_with_their_executor() -> None:
    executor = WorkerProcesses(1)
    process = executor.submit(os.getpid).result()
    executor.submit(time.sleep, 600)
    executor.shutdown(cancel_futures=True)  # long before the ten minutes are over
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_workers_end_with_a_process_that_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, time\n"
        "from kschedfw_lab import WorkerProcesses\n"
        "if __name__ == '__main__':\n"
        "    executor = WorkerProcesses(1)\n"
        "    print(executor.submit(os.getpid).result(), flush=True)\n"
        "    executor.submit(time.sleep, 600).result()\n"
    )
    with subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        parent.kill()
    while Path(f"/proc/{worker}").exists():
        time.sleep(0.02)


class TestDask:
    def test_a_plugin_that_the_workers_lack_is_told_before_the_first_run(self, scheduler: str) -> None:
        wanted = ("my-racks 1.2", "kschedfw 99")
        with pytest.raises(SweepError) as caught, dask_engine(scheduler, wanted, timeout=PATIENCE):
            pass
        message = str(caught.value)
        assert message.startswith(f"--dask {scheduler}: my-racks 1.2 isn't installed on tcp://")
        assert "; kschedfw is " in message
        assert ", and here it is 99 on tcp://" in message
        assert "\n" not in message

    def test_an_address_where_nobody_answers(self) -> None:
        with pytest.raises(SweepError, match=r"--dask tcp://127.0.0.1:1: no Dask scheduler answers there"):  # noqa: SIM117
            with dask_engine("tcp://127.0.0.1:1", (), timeout=0.5):
                pass

    @pytest.mark.parametrize(
        ("address", "why"),
        [
            ("nonsense", "is no address; expected tcp://HOST:PORT"),
            ("tcp://", "is no address; expected tcp://HOST:PORT"),
            ("127.0.0.1:99999999", "is no address; expected tcp://HOST:PORT"),
            ("http://127.0.0.1:80", "no Dask scheduler answers there"),
        ],
    )
    def test_what_is_no_address_of_a_scheduler(self, address: str, why: str) -> None:
        with pytest.raises(SweepError) as caught, dask_engine(address, (), timeout=0.5):
            pass
        assert str(caught.value).startswith(f"--dask {address}: {why}")

    @pytest.mark.nightly
    def test_a_worker_in_another_environment_fails_its_run_alone(
        self, tmp_path: Path, scheduler: str
    ) -> None:
        plan = sweep(tmp_path).plan()
        alien = attrs.evolve(plan.runs[0], distributions=("my-racks 1.2",)).keyed()
        both = attrs.evolve(plan, runs=(alien, plan.runs[1]))
        with dask_engine(scheduler, (), timeout=PATIENCE) as engine:
            summary = run_sweep(sweep(tmp_path), tmp_path / "r", engine.executor, plan=both)
        assert (summary.done, summary.failed) == (2, 1)
