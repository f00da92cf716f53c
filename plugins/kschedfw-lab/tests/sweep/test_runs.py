"""One run of a sweep: its metrics, its series, and what goes wrong."""

from __future__ import annotations

import gc
import math
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest
from kschedfw_lab import Run, Sweep, SweepError, run_one
from kschedfw_lab.compare import compare
from kschedfw_lab.results.results import TIMES
from kschedfw_lab.sweep.configurations import DEFAULT_CONFIGURATION, runnable
from kschedfw_lab.sweep.inputs import WHOLE, objects_of
from kschedfw_lab.sweep.runs import _within, outcome_of
from sweep.scenes import cluster_file, runs, tiny

from kschedfw import InMemoryCluster, make_node, make_pod
from kschedfw.api import to_manifest
from kschedfw.testing.waiting import PATIENCE

DURATION = "kschedfw/duration-seconds"


def only(sweep: Sweep) -> Run:
    (run,) = runs(sweep)
    return run


def metrics(factors: dict[str, object], **settings: Any) -> dict[str, float]:
    return dict(run_one(only(Sweep(factors, **settings))))


def two_jobs(folder: Path) -> str:
    """A node with 2 CPUs, and two jobs that take all of it, for 100 seconds each; both are there from the start."""
    jobs = [
        make_pod(name).requests(cpu=2, memory="1Gi").annotations({DURATION: "100"}).build()
        for name in ("a", "b")
    ]
    node = make_node("n").capacity(cpu=2, memory="4Gi", pods=10).labels(type="small").build()
    path = folder / "jobs.yaml"
    path.write_text("\n---\n".join(str(to_manifest(each)) for each in (node, *jobs)))
    return str(path)


def test_the_metrics_are_those_of_a_comparison(tmp_path: Path) -> None:
    found = metrics({"cluster": cluster_file(tmp_path), "seed": 3})
    run = only(Sweep({"cluster": cluster_file(tmp_path), "seed": 3}))
    cluster = InMemoryCluster(objects_of(run.cluster, WHOLE))
    (expected,) = compare(cluster, [runnable(DEFAULT_CONFIGURATION).candidate], seed=3).runs
    report = expected.report
    assert (found["pods"], found["placed"], found["unschedulable"]) == (2, 1, 1)
    assert found["attempts"] == report.attempts
    assert found["nodes_in_use"] == expected.nodes_in_use == 2
    for usage in report.utilisation:
        assert found[f"utilisation.{usage.resource}"] == usage.share
        assert found[f"imbalance.{usage.resource}"] == usage.per_node.stddev
    for part in expected.fragmentation:
        assert found[f"fragmentation.{part.resource}"] == part.share
    assert found["imbalance.within"] == expected.imbalance_within.mean
    assert found["pending.Insufficient cpu"] == 1
    assert found.keys() >= TIMES


def test_metrics_of_jobs_that_come_and_go(tmp_path: Path) -> None:
    found = metrics({"cluster": two_jobs(tmp_path), "arrivals": True})
    # The second job waits for the end of the first.
    assert (found["wait_seconds.mean"], found["wait_seconds.p50"], found["wait_seconds.max"]) == (50, 0, 100)
    assert (found["completion_seconds.mean"], found["completion_seconds.max"]) == (150, 200)
    assert (found["makespan_seconds"], found["departed"]) == (200, 2)
    assert (found["mean_utilisation.cpu"], found["peak_utilisation.cpu"], found["utilisation.cpu"]) == (
        1,
        1,
        0,
    )
    assert (found["mean_utilisation.memory"], found["mean_nodes_in_use"]) == (0.25, 1)


def test_what_the_nodes_in_use_cost(tmp_path: Path) -> None:
    cost = {"priceLabel": "type", "prices": [{"value": "small", "hourlyPrice": "0.36"}]}
    found = metrics({"cluster": two_jobs(tmp_path), "arrivals": True}, cost=cost)
    assert found["cost.hourly"] == 0
    assert found["cost.total"] == pytest.approx(0.36 * 200 / 3600)
    standing = metrics({"cluster": two_jobs(tmp_path)}, cost=cost)
    assert standing["cost.hourly"] == 0.36
    assert "cost.total" not in standing


def test_a_node_without_a_price_is_found_before_anything_runs(tmp_path: Path) -> None:
    cost = {"priceLabel": "type", "prices": [{"value": "small", "hourlyPrice": 1}]}
    with pytest.raises(SweepError, match=r"cost: node n2: there is no price for it: it has type=large"):
        Sweep({"cluster": cluster_file(tmp_path)}, cost=cost).plan()


def test_a_size_of_which_a_price_is_missing_does_not_matter_if_the_node_is_left_out(tmp_path: Path) -> None:
    cost = {"priceLabel": "type", "prices": [{"value": "small", "hourlyPrice": 1}]}
    assert Sweep({"cluster": cluster_file(tmp_path), "nodes": 1}, cost=cost).plan().runs


def test_series_are_steps_over_virtual_time(tmp_path: Path) -> None:
    run = only(Sweep({"cluster": two_jobs(tmp_path), "arrivals": True}, series=5))
    series = outcome_of(run).series
    assert series["placed"] == [(0, 1), (50, 1), (100, 1), (150, 1), (200, 0)]
    assert series["pending"] == [(0, 1), (50, 1), (100, 0), (150, 0), (200, 0)]
    assert series["utilisation.cpu"] == [(0, 1), (50, 1), (100, 1), (150, 1), (200, 0)]
    assert {"fragmentation.cpu", "utilisation.memory"} <= series.keys()


def test_without_time_a_series_is_one_point(tmp_path: Path) -> None:
    run = only(Sweep({"cluster": cluster_file(tmp_path)}, series=5))
    assert outcome_of(run).series["placed"] == [(0, 2)]


def test_an_attempt_takes_time(tmp_path: Path) -> None:
    assert metrics({"cluster": cluster_file(tmp_path), "attemptTime": 2})["wait_seconds.max"] == 2


def test_the_same_run_has_the_same_metrics(tmp_path: Path) -> None:
    run = only(tiny({"arrivalRate": 2, "meanDuration": 3, "seed": 5}))

    def measured() -> dict[str, float]:
        return {name: value for name, value in run_one(run).items() if name not in TIMES}

    assert measured() == measured()
    assert all(math.isfinite(value) for value in measured().values())


def test_a_run_can_be_sent_to_another_process() -> None:
    run = only(tiny({"arrivalRate": 2}))
    assert pickle.loads(pickle.dumps(run)) == run


class TestKeys:
    def test_each_setting_changes_the_key(self) -> None:
        different = [
            tiny(),
            tiny({"seed": 1}),
            tiny({"nodes": 5}),
            tiny({"pods": 5}),
            tiny({"initialPods": 1}),
            tiny({"arrivalRate": 1}),
            tiny({"arrivalRate": 2}),
            tiny({"arrivalRate": 1, "meanDuration": 2}),
            tiny({"attemptTime": 1}),
            tiny({"plugins.ImageLocality": 0}),
            tiny({"plugins.ImageLocality": 2}),
            tiny({"configuration": "DefaultProvider"}),
        ]
        keys = [only(sweep).key for sweep in different]
        assert len(set(keys)) == len(different)
        assert all(len(key) == 16 and int(key, 16) >= 0 for key in keys)

    def test_the_content_of_a_file_is_part_of_it_and_its_folder_is_not(self, tmp_path: Path) -> None:
        keys = []
        for name in ("one", "two"):
            folder = tmp_path / name
            folder.mkdir()
            cluster_file(folder)
            keys.append(only(Sweep({"cluster": "cluster.json"}, folder=folder)).key)
        path = tmp_path / "two" / "cluster.json"
        path.write_text(path.read_text().replace('"too-big"', '"other"'))
        keys.append(only(Sweep({"cluster": "cluster.json"}, folder=path.parent)).key)
        assert keys[0] == keys[1] != keys[2]

    def test_another_version_of_a_plugin_is_another_run(self) -> None:
        run = only(tiny())
        assert attrs.evolve(run, distributions=("kschedfw 99",)).keyed().key != run.key


class TestErrors:
    def test_ctrl_c_in_the_middle_of_a_run_is_no_result(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupt(*_: object) -> bool:
            raise KeyboardInterrupt

        run = only(Sweep({"cluster": cluster_file(tmp_path)}))
        monkeypatch.setattr("kschedfw.scheduler.scheduler.Scheduler.begin_attempt", interrupt)
        with pytest.raises(KeyboardInterrupt):
            outcome_of(run)

    def test_a_run_without_pods_of_its_scheduler_says_so(self, tmp_path: Path) -> None:
        document = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": "other"}],
        }
        configuration = {"name": "other", "document": document}
        run = only(Sweep({"cluster": cluster_file(tmp_path), "configuration": configuration}))
        outcome = outcome_of(run)
        assert not outcome.metrics
        assert outcome.error == (
            "there is nothing to schedule: no pending pod names a scheduler of the configuration"
        )

    def test_a_worker_that_lacks_a_plugin_says_so(self) -> None:
        run = attrs.evolve(only(tiny()), distributions=("nosuch-plugin 1.0", "kschedfw 99"))
        assert outcome_of(run).error == "the worker lacks nosuch-plugin 1.0, kschedfw 99"
        with pytest.raises(SweepError):
            run_one(run)


class TestCosts:
    @pytest.mark.nightly
    def test_runs_leave_nothing_behind(self) -> None:
        def objects_after(seeds: range) -> int:
            for run in runs(tiny({"arrivalRate": 10, "meanDuration": 5, "seed": seeds})):
                assert not outcome_of(run).error
            gc.collect()
            return len(gc.get_objects())

        before = objects_after(range(20))
        assert objects_after(range(20, 70)) - before < 50  # less than one for each run


class TestTimeLimit:
    """A run that takes too long fails; nothing else is interrupted."""

    def test_a_simulation_is_ended(self) -> None:
        outcome = outcome_of(only(tiny({"pods": 5000})), timeout=0.001)
        assert outcome.error == "took longer than 0.001 seconds"

    def test_a_loop_without_end_is_ended(self) -> None:
        def work() -> None:
            while True:
                pass

        with pytest.raises(SweepError, match=r"took longer than 0\.02 seconds"):
            _within(0.02, work)

    def test_it_is_ended_also_by_what_takes_ctrl_c_as_its_end(self) -> None:
        def work() -> int:
            try:
                while True:
                    pass
            except KeyboardInterrupt:
                return 1

        with pytest.raises(SweepError, match="took longer"):
            _within(0.02, work)

    @pytest.mark.slow
    def test_functions_can_be_profiled_afterwards(self) -> None:
        """In a process of its own: where an interruption is left over, CPython 3.11 never comes back."""
        program = """
import sys
from kschedfw_lab.sweep.runs import _within
def work():
    try:
        while True:
            pass
    except KeyboardInterrupt:
        pass
try:
    _within(0.02, work)
except Exception as error:
    print(error)
sys.setprofile(lambda *_: None)
(lambda: None)()
"""
        done = subprocess.run(
            [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=PATIENCE
        )
        assert done.stdout == "took longer than 0.02 seconds\n"

    def test_ctrl_c_stays_what_it_is(self) -> None:
        def work() -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            _within(60, work)

    def test_what_ends_at_the_limit_interrupts_nothing_later(self) -> None:
        ended = 0
        for _ in range(200):
            try:
                ended += _within(0.0005, lambda: sum(range(8000)) > 0)
            except SweepError:
                continue
        assert ended <= 200
        assert sum(1 for _ in range(100_000)) == 100_000


def test_the_draw_is_part_of_the_key_and_of_what_is_run(tmp_path: Path) -> None:
    found = runs(tiny({"draw": [None, "shuffle", "resample"], "seed": [0, 1]}))
    assert len({run.key for run in found}) == 6
    assert {run_one(run)["placed"] for run in found} == {6}
    with pytest.raises(
        SweepError, match=r'factors.draw: expected shuffle, resample, days or null, found "jackknife"'
    ):
        tiny({"draw": "jackknife"})
