"""The experiments of Omega's paper: the machines, the workloads, a run, and the tables."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_lab.cell import ARCHITECTURES, MONOLITHIC, MULTI_PATH, SHARED_STATE, StillFits
from kschedfw_lab.cell.shared_state import Claim, ClaimTransaction, CommitMode, Detection, SharedState
from kschedfw_lab.omega.__main__ import main
from kschedfw_lab.omega.machines import Claims, Machines
from kschedfw_lab.omega.page import FIGURES, write_page
from kschedfw_lab.omega.run import Figures, Setting, run
from kschedfw_lab.omega.sweeps import Point
from kschedfw_lab.omega.tables import Row
from kschedfw_lab.omega.workload import BATCH, SERVICE, WorkloadError, openb, published

from kschedfw import InMemoryCluster, Pod, make_node, make_pod
from kschedfw.testing.properties import examples

SHORT = 400.0


def by_kind(figures: list[Figures]) -> dict[str, Figures]:
    return {each.kind: each for each in figures}


class TestMachines:
    def test_tasks_spread_over_the_machines(self) -> None:
        machines = Machines.of(np.array([[4], [4], [1]]))
        claims = machines.place(np.array([1]), 5, np.random.default_rng(0), None)
        assert sorted(zip(claims.rows.tolist(), claims.counts.tolist(), strict=True)) == [
            (0, 2),
            (1, 2),
            (2, 1),
        ]

    def test_what_does_not_fit_is_left_over(self) -> None:
        machines = Machines.of(np.array([[4, 1], [4, 0]]))
        claims = machines.place(np.array([1, 1]), 5, np.random.default_rng(0), None)
        assert claims.tasks == 1

    def test_a_mask_leaves_machines_out(self) -> None:
        machines = Machines.of(np.array([[4], [4]]))
        claims = machines.place(np.array([1]), 5, np.random.default_rng(0), np.array([0, 1]))
        assert claims.rows.tolist() == [1]

    def test_what_is_released_is_free_again(self) -> None:
        machines = Machines.of(np.array([[4], [4]]))
        task = np.array([3])
        claims = machines.place(task, 2, np.random.default_rng(0), None)
        taken = machines.commit(task, claims, Detection.COARSE, CommitMode.ALL_OR_NOTHING)
        assert machines.free.tolist() == [[1], [1]]
        machines.release(task, taken)
        assert machines.free.tolist() == [[4], [4]]
        assert machines.sequences.tolist() == [2, 2]


@pytest.mark.slow
@settings(max_examples=examples(15))
@given(
    st.lists(st.tuples(st.integers(1, 3), st.lists(st.integers(0, 2), min_size=1, max_size=4)), max_size=5),
    st.sampled_from(Detection),
    st.sampled_from(CommitMode),
)
def test_machines_decide_as_a_shared_state_does(
    transactions: list[tuple[int, list[int]]], detection: Detection, mode: CommitMode
) -> None:
    """All transactions are decided on at first, of tasks of so many CPUs on these nodes, and committed one by one."""
    truth = InMemoryCluster([make_node(f"n{number}").capacity(cpu=4).build() for number in range(3)])
    state = SharedState(truth, StillFits(truth))
    machines = Machines.of(np.full((3, 1), 4, np.int64))
    at_first = {f"n{number}": state.sequence(f"n{number}") for number in range(3)}
    for number, (cpu, nodes) in enumerate(transactions):
        pods = [
            truth.add(make_pod(f"p{number}-{task}").requests(cpu=cpu).build()) for task in range(len(nodes))
        ]
        outcome = state.commit(
            ClaimTransaction(
                tuple(Claim(pod, f"n{on}", at_first[f"n{on}"]) for pod, on in zip(pods, nodes, strict=True)),
                detection,
                mode,
            )
        )
        rows, counts = np.unique(np.array(nodes), return_counts=True)
        accepted = machines.commit(
            np.array([cpu]), Claims(rows, counts, np.zeros(len(rows), np.int64)), detection, mode
        )
        assert accepted.tasks == len(outcome.accepted)
    used = [0, 0, 0]
    for pod in truth.list(Pod):
        if pod.node_name:
            used[int(pod.node_name[1:])] += _cpu(pod)
    assert machines.free[:, 0].tolist() == [4 - each for each in used]


def _cpu(pod: Pod) -> int:
    return sum(each.resources.requests["cpu"].milli_value() // 1000 for each in pod.spec.containers)


class TestRun:
    def test_is_the_same_with_the_same_seed(self) -> None:
        setting = Setting(seconds=SHORT, t_job=3)
        assert run(published(), setting, 7) == run(published(), setting, 7)
        assert run(published(), setting, 7) != run(published(), setting, 8)

    @pytest.mark.parametrize("architecture", ARCHITECTURES, ids=lambda each: each.name)
    def test_all_jobs_get_a_decision(self, architecture: object) -> None:
        found = by_kind(run(published(), Setting(architecture, seconds=SHORT), 1))  # type: ignore[arg-type]
        assert found[BATCH].jobs > 10
        assert found[SERVICE].jobs > 5
        assert 0 < found[BATCH].busyness < 1

    def test_one_scheduler_never_conflicts(self) -> None:
        for architecture in (MONOLITHIC, MULTI_PATH):
            for each in run(published(), Setting(architecture, seconds=SHORT), 1):
                assert (each.conflict_fraction, each.useful_work) == (0, 1)

    def test_slow_service_jobs_hold_up_batch_jobs_in_one_queue_only(self) -> None:
        slow = {
            each: by_kind(run(published(), Setting(each, t_job=10, seconds=SHORT), 1))[BATCH].wait
            for each in (MULTI_PATH, SHARED_STATE)
        }
        assert slow[MULTI_PATH] > 10 * slow[SHARED_STATE]

    def test_more_schedulers_are_less_busy_each(self) -> None:
        busy = [
            by_kind(run(published(4), Setting(batch_schedulers=count, seconds=SHORT), 1))[BATCH].busyness
            for count in (1, 4)
        ]
        assert busy[0] > 2 * busy[1]


class TestOpenb:
    def test_a_table_that_is_none(self, tmp_path: Path) -> None:
        (tmp_path / "openb_node_list_all_node.csv").write_text("a,b\n1,2\n")
        with pytest.raises(WorkloadError, match=r"all_node\.csv: expected a table of the OpenB trace"):
            openb(tmp_path)

    def test_jobs_are_the_traces_pods(self, shared_data: Callable[[str], Path]) -> None:
        workload = openb(shared_data("openb"))
        assert workload.capacity.shape == (1523, 3)
        for kind in workload.kinds:
            assert kind.draw(np.random.default_rng(1)).tasks == 1


class TestTables:
    @pytest.mark.nightly
    def test_the_command(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["--out", str(tmp_path), "--seeds", "2", "--scale", "0.002"]) == 0
        with (tmp_path / "figures.csv").open(encoding="utf-8") as lines:
            rows = list(csv.DictReader(lines))
        assert {row["sweep"] for row in rows} == {"architectures", "commits", "schedulers"}
        assert {row["seeds"] for row in rows} == {"2"}
        assert str(tmp_path / "runs.csv") in capsys.readouterr().out
        page = (tmp_path / "figures.html").read_text(encoding="utf-8")
        assert page.count('role="img"') == sum(len(figure.panels) for figure in FIGURES)
        assert "http:" not in page  # it needs nothing from elsewhere

    def test_bad_usage(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["--openb", str(tmp_path)]) == 2
        assert "openb_node_list_all_node.csv" in capsys.readouterr().err
        with pytest.raises(SystemExit):
            main(["--seeds", "0"])


def rows_of(values: dict[tuple[float, int], float], kind: str = SERVICE) -> list[Row]:
    """Return rows of runs that differ in wait time and busyness, by (t_job, seed)."""
    return [
        Row(
            Point("architectures", "published", Setting(SHARED_STATE, t_job)),
            seed,
            Figures(kind, 1, value, value, value, conflict_fraction=0.0, useful_work=1.0, waiting=0),
        )
        for (t_job, seed), value in values.items()
    ]


class TestPage:
    def test_a_chart_has_a_line_for_each_architecture_with_its_intervals(self, tmp_path: Path) -> None:
        write_page(rows_of({(1.0, 1): 2.0, (1.0, 2): 4.0, (10.0, 1): 30.0}), tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text(encoding="utf-8")
        # Wait time and busyness of service jobs; the other panels have no runs.
        assert page.count('role="img"') == 2
        assert 'aria-label="Mean job wait time, s, service jobs: lines over t_job(service), s; ' in page
        assert page.count('class="bar l0"') == 2

    @pytest.mark.parametrize("value", [0.0, 1e-9, 5.0])
    def test_a_line_of_equal_values_is_drawn(self, value: float, tmp_path: Path) -> None:
        write_page(rows_of({(1.0, 1): value, (2.0, 1): value}), tmp_path / "page.html")
        assert "nan" not in (tmp_path / "page.html").read_text(encoding="utf-8")
