"""`kschedfw bench`: its arguments, what it prints, and its exit codes."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import attrs
import pytest
from kschedfw_lab import kept, read_results
from kschedfw_lab.bench.child_process import BenchmarkError
from kschedfw_lab.bench.clock import Timer
from kschedfw_lab.bench.footprint import Footprint
from kschedfw_lab.bench.forms import FormRuns, FormsComparison
from kschedfw_lab.bench.laps import Progress
from kschedfw_lab.bench.measure import measure
from kschedfw_lab.bench.openb import NODES_FILE, PODS_FILE
from kschedfw_lab.bench.report import BenchReport, Machine
from kschedfw_lab.bench.results import Measurement
from kschedfw_lab.bench.stage import Case, Form
from kschedfw_lab.bench.tidy import FACTORS, keep
from kschedfw_lab.bench.workloads import DISTINCT_WORKLOADS
from kschedfw_lab.bench.yardstick import KUBE_SCHEDULER

from kschedfw import Evaluation, Registry
from kschedfw.cli.app import run
from kschedfw.config import default_profile

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("_little_garbage")]

INSTALLED = Registry()


@pytest.fixture
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without processes and counting of memory, which tests/bench has, and which take their time."""
    monkeypatch.setattr("kschedfw_lab.cli.bench.measure_in_child", measured_here)
    monkeypatch.setattr(
        "kschedfw_lab.cli.bench.footprint_in_child",
        lambda case: Footprint(case.nodes, case.initial_pods, 1000),
    )
    monkeypatch.setenv("COLUMNS", "150")


def measured_here(case: Case, timer: Timer, progress: Progress | None = None) -> Measurement:
    return measure(case, timer, registry=INSTALLED, progress=progress)


SMALL = ["--nodes", "10", "--init-pods", "5", "--pods", "4"]


def bench(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert run(["bench", *arguments]) == code
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 2) -> str:
    assert run(["bench", *arguments]) == code
    return capsys.readouterr().err


@pytest.mark.usefixtures("_in_this_process")
class TestReport:
    def test_as_text(self, capsys: pytest.CaptureFixture[str]) -> None:
        out = bench(capsys, *SMALL)
        for text in (
            "The algorithm alone",
            "End to end",
            "default",
            "all nodes",
            "basic",
            "MiB",
            "default profile",
        ):
            assert text in out
        assert "kube-scheduler" not in out, "its figures are for another size"

    @pytest.mark.parametrize("width", ["40", "80", "100"])
    def test_every_row_says_what_it_is_about_whatever_the_width(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: str
    ) -> None:
        monkeypatch.setenv("COLUMNS", width)
        out = bench(capsys, *SMALL, "--percentage", "100", "--disable", "ImageLocality")
        table = out.partition("The algorithm alone\n")[2].partition("\n\n")[0].splitlines()
        first = [line.split()[0] for line in table if line.strip()]
        assert {"workload", "basic", "default"} <= set(first)

    def test_beside_kube_scheduler_in_its_size(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        out = bench(capsys, "--workload", "unschedulable", "--pods", "3", "--percentage", "0")
        assert "kube-scheduler v1.36, 2 cores, for orientation: another machine" in out
        assert f"{KUBE_SCHEDULER['unschedulable'].adaptive:,}" in out
        assert "3 of 3 pods fit nowhere" in out

    def test_as_json(self, capsys: pytest.CaptureFixture[str]) -> None:
        report: dict[str, Any] = json.loads(bench(capsys, *SMALL, "--json"))
        assert set(report) == {
            "machine",
            "profile",
            "profileSource",
            "evaluation",
            "interrupted",
            "measurements",
            "baseline",
            "yardstick",
            "yardstickSideBySide",
            "growth",
            "forms",
            "plugins",
        }
        assert [(m["part"], m["percentage"]) for m in report["measurements"]] == [
            ("algorithm", 0),
            ("algorithm", 100),
            ("end-to-end", 0),
            ("end-to-end", 100),
        ]
        first = report["measurements"][0]
        assert set(first) == {
            "workload",
            "part",
            "percentage",
            "nodes",
            "initialPods",
            "initialPlacement",
            "pods",
            "group",
            "attempts",
            "seconds",
            "cpuSeconds",
            "cpuSecondsPerPod",
            "callsPerPod",
            "podsPerSecond",
            "latencySeconds",
            "createSeconds",
            "garbageCollection",
            "peakResidentBytes",
            "plugins",
            "kubeSchedulerPodsPerSecond",
            "kubeSchedulerSideBySidePodsPerSecond",
        }
        assert set(first["latencySeconds"]) == {"p50", "p99", "max"}
        assert first["pods"] == {"wanted": 4, "finished": 4, "placed": 4}
        assert first["kubeSchedulerPodsPerSecond"] is None
        assert first["group"] is None
        assert report["growth"] is None
        assert (report["evaluation"], report["baseline"]) == ("memo", [])

    def test_several_workloads_at_one_percentage(self, capsys: pytest.CaptureFixture[str]) -> None:
        chosen = ["--workload", "mixed", "--workload", "daemonset", "--percentage", "50"]
        report = json.loads(bench(capsys, *SMALL, *chosen, "--json"))
        found = [(m["workload"], m["percentage"]) for m in report["measurements"]]
        assert found == [("mixed", 50)] * 2 + [("daemonset", 50)] * 2

    def test_all_distinct(self, capsys: pytest.CaptureFixture[str]) -> None:
        chosen = ["--workload", "all-distinct", "--workload", "basic", "--percentage", "100"]
        size = ["--nodes", "2", "--init-pods", "0", "--pods", "1"]
        report = json.loads(bench(capsys, *size, *chosen, "--json"))
        names = list(dict.fromkeys(m["workload"] for m in report["measurements"]))
        assert names == [*DISTINCT_WORKLOADS, "basic"]

    def test_openb(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        (tmp_path / NODES_FILE).write_text("sn,cpu_milli,memory_mib,gpu,model\nn-0,64000,262144,2,P100\n")
        header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
        (tmp_path / PODS_FILE).write_text(
            f"{header}creation_time,deletion_time,scheduled_time\np-0,64000,16384,1,1000,,LS,Running,0,9,0\n"
        )
        chosen = ["--workload", "openb", "--openb", str(tmp_path), "--percentage", "100", *SMALL[:2]]
        report = json.loads(bench(capsys, *chosen, "--init-pods", "0", "--pods", "12", "--json"))
        (algorithm, _) = report["measurements"]
        assert algorithm["pods"] == {"wanted": 12, "finished": 12, "placed": 10}, "one of these fills a node"

    def test_growth(self, capsys: pytest.CaptureFixture[str]) -> None:
        out = bench(capsys, "--growth", "nodes", "--sizes", "3,6", "--pods", "2", "--init-pods", "5")
        assert "× the first" in out
        assert "KiB/node" in out

    def test_growth_by_devices(self, capsys: pytest.CaptureFixture[str]) -> None:
        out = bench(
            capsys,
            *("--growth", "devices", "--workload", "claim-template", "--sizes", "2,4"),
            *("--pods", "2", "--nodes", "3", "--init-pods", "0"),
        )
        assert "devices of each" in out
        assert "KiB/device" in out

    def test_growth_by_members_and_racks_of_groups(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        small = "--workload", "gang", "--nodes", "6", "--init-pods", "2", "--results", str(tmp_path)
        out = bench(capsys, *small, "--growth", "members", "--sizes", "2,4", "--racks", "3")
        for part in ("the algorithm alone", "end to end"):
            assert f"gang, {part}, all nodes, 6 nodes in 3 racks" in out
        assert "CPU/group" in out
        report = json.loads(
            bench(capsys, *small, "--growth", "racks", "--sizes", "1,3", "--members", "4", "--json")
        )
        rows = report["growth"]["rows"]
        assert [(row["size"], row["measurement"]["part"]) for row in rows] == [
            (1, "algorithm"),
            (3, "algorithm"),
            (1, "end-to-end"),
            (3, "end-to-end"),
        ]
        for row in rows:
            assert row["bytesEach"] is None
            assert row["measurement"]["group"] == {"members": 4, "racks": row["size"]}
            assert row["measurement"]["pods"] == {"wanted": 12, "finished": 12, "placed": 12}
        found = {(each.factors["members"], each.factors["racks"]) for each in read_results(tmp_path).runs()}
        assert found == {(2, 3), (4, 3), (4, 1)}

    def test_growth_as_json(self, capsys: pytest.CaptureFixture[str]) -> None:
        out = bench(capsys, "--growth", "pods", "--sizes", "10", "--pods", "2", "--nodes", "5", "--json")
        growth = json.loads(out)["growth"]
        assert (growth["axis"], growth["limitBytesEach"]) == ("pods", 2048)
        (row,) = growth["rows"]
        assert set(row) == {"size", "bytesEach", "measurement"}
        assert row["size"] == 10
        assert row["bytesEach"] >= 0

    def test_with_other_plugins(self, capsys: pytest.CaptureFixture[str]) -> None:
        changes = ["--disable", "ImageLocality", "--enable", "NodeAffinity=7"]
        report = json.loads(bench(capsys, *SMALL, *changes, "--percentage", "100", "--no-compare", "--json"))
        assert {"name": "NodeAffinity", "weight": 7} in report["profile"]
        assert "ImageLocality" not in {entry["plugin"] for entry in report["plugins"]}
        assert report["baseline"] == []

    def test_what_a_change_of_the_profile_costs(self, capsys: pytest.CaptureFixture[str]) -> None:
        weight = 'InterPodAffinity={"hardPodAffinityWeight": 5}'
        changes = ["--disable", "ImageLocality", "--enable", "NodeAffinity=7", "--args", weight]
        out = bench(capsys, *SMALL, *changes, "--percentage", "100")
        change = "without ImageLocality, with NodeAffinity (weight 7), with arguments for InterPodAffinity"
        assert f"default profile, {change}" in " ".join(out.split())
        assert out.count("\n  default profile ") == 2, "beside both parts"
        assert out.count("cost: what a pod takes more") == 2

    def test_a_cost_is_never_negative(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By chance the default profile may be the slower one."""

        def slower_by_default(case: Case, timer: Timer, progress: Progress | None = None) -> Measurement:
            factor = 2.0 if case.profile == default_profile() else 1.0
            return attrs.evolve(measured_here(case, timer), seconds=factor)

        monkeypatch.setattr("kschedfw_lab.cli.bench.measure_in_child", slower_by_default)
        out = bench(capsys, *SMALL, "--disable", "ImageLocality", "--percentage", "100")
        assert out.count("none seen") == 2
        assert not re.search(r"-\d", out)

    def test_forms(self, capsys: pytest.CaptureFixture[str]) -> None:
        options = ["--enable", "NodeAffinity", "--forms", "scalar,batch,memo", "--repeats", "4"]
        out = bench(capsys, *SMALL, "--workload", "node-affinity", *options)
        measured = (
            "NodeAffinity on node-affinity, the algorithm alone, all nodes, 10 nodes, 5 pods placed before"
        )
        assert measured in " ".join(out.split())  # a narrow terminal breaks the line
        rows = [line.split("  ")[0] for line in out.splitlines()]
        assert [row for row in rows if row in ("without it", "scalar", "batch", "memo")] == [
            "without it",
            "scalar",
            "batch",
            "memo",
        ]
        assert "the median of 4 runs" in out
        assert "asked: nodes that the plugin's filter and score were really called for" in out
        (scalar,) = [line.split() for line in out.splitlines() if line.startswith("scalar ")]
        assert float(scalar[1]) > 0

    @pytest.mark.parametrize("as_json", [False, True])
    def test_forms_of_a_plugin_that_is_not_asked(
        self, capsys: pytest.CaptureFixture[str], as_json: bool
    ) -> None:
        options = ["--enable", "NodePorts", "--forms", "scalar,memo", "--repeats", "4"]
        assert run(["bench", *SMALL, *options, *(["--json"] if as_json else [])]) == 1
        captured = capsys.readouterr()
        assert captured.err == (
            "kschedfw: NodePorts wasn't asked about any node: the pods of basic are none of its business, so its forms "
            "can't be compared; --workload NAME measures others\n"
        )
        if as_json:
            assert json.loads(captured.out)["forms"]["wasAsked"] is False
        else:
            assert "no verdict: NodePorts wasn't asked about any node" in captured.out
            assert "above noise" not in captured.out

    def test_forms_that_decide_differently(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def decides(case: Case, timer: Timer, progress: Progress | None = None) -> Measurement:
            node = "n1" if case.form is not None and case.form.form.value == "memo" else "n2"
            return attrs.evolve(measured_here(case, timer), places=(node,))

        monkeypatch.setattr("kschedfw_lab.cli.bench.measure_in_child", decides)
        options = ["--enable", "NodeResourcesFit", "--forms", "scalar,memo", "--repeats", "4"]
        assert run(["bench", *SMALL, *options]) == 1
        assert capsys.readouterr().err == (
            "kschedfw: the forms of NodeResourcesFit don't decide alike, so their speed can't be compared: "
            "scalar and memo differ on pod 1 of 1: n2 and n1\n"
        )

    def test_forms_as_json(self, capsys: pytest.CaptureFixture[str]) -> None:
        options = ["--enable", "NodeAffinity", "--forms", "memo", "--repeats", "4", "--json"]
        compared = json.loads(bench(capsys, *SMALL, "--workload", "node-affinity", *options))["forms"]
        assert (compared["wasAsked"], compared["difference"]) == (True, None)
        assert (compared["plugin"], compared["repeats"]) == ("NodeAffinity", 4)
        assert [run["form"] for run in compared["runs"]] == [None, "memo"]
        assert all(len(run["secondsPerPod"]) == 4 for run in compared["runs"])
        assert compared["runs"][1]["cost"] is None or compared["runs"][1]["cost"] > 0

    def test_forms_as_far_as_they_came(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("kschedfw_lab.cli.bench.measure_in_child", self.once_then(KeyboardInterrupt()))
        options = ["--enable", "NodeAffinity", "--forms", "memo"]
        assert bench(capsys, *SMALL, *options, code=130).startswith("Interrupted.")

    def test_other_ways_of_evaluation(self, capsys: pytest.CaptureFixture[str]) -> None:
        out = bench(capsys, *SMALL, "--percentage", "100", "--evaluation", "scalar")
        assert "default profile; evaluation: scalar" in out
        (fit,) = [line.split() for line in out.splitlines() if line.startswith("NodeResourcesFit")]
        assert fit == ["NodeResourcesFit", "pods", "yes", "20.0", "0.0%"], "filter and score, 10 nodes each"

    def test_what_was_measured_is_shown_though_the_next_broke_off(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            "kschedfw_lab.cli.bench.measure_in_child", self.once_then(BenchmarkError("it broke off"))
        )
        assert run(["bench", *SMALL, "--percentage", "100"]) == 1
        captured = capsys.readouterr()
        assert captured.err == "kschedfw: it broke off\n"
        assert "The algorithm alone" in captured.out

    def test_what_broke_off_is_said_first(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            "kschedfw_lab.cli.bench.measure_in_child", self.once_then(BenchmarkError("it broke off"))
        )
        together = io.StringIO()
        with redirect_stdout(together), redirect_stderr(together):
            options = ["--enable", "NodeAffinity", "--forms", "scalar"]
            assert run(["bench", *SMALL, *options]) == 1
        assert together.getvalue().startswith("kschedfw: it broke off\n")
        assert "default profile" in together.getvalue()

    def test_or_was_interrupted(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("kschedfw_lab.cli.bench.measure_in_child", self.once_then(KeyboardInterrupt()))
        out = bench(capsys, *SMALL, "--percentage", "100", code=130)
        assert out.startswith("Interrupted. This is what was measured so far.")
        assert "The algorithm alone" in out

    @staticmethod
    def once_then(error: BaseException) -> Any:
        calls = 0

        def measure_in_child(case: Case, timer: Timer, progress: Progress | None = None) -> Measurement:
            nonlocal calls
            calls += 1
            if calls > 1:
                raise error
            return measured_here(case, timer)

        return measure_in_child


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--workload", "mixd"],
            "kschedfw: there is no workload 'mixd'; did you mean 'mixed'? `kschedfw bench --help` lists them\n",
        ),
        (["--workload", "?"], "kschedfw: there is no workload '?'; `kschedfw bench --help` lists them\n"),
        (["--openb", "."], "--openb goes with --workload openb"),
        (["--workload", "openb", "--openb", "."], "--openb .: there is no openb_node_list_all_node.csv"),
        (["--enable", "NodeNam"], "did you mean 'NodeName'?"),
        (["--enable", "NodeName=0"], "--enable NodeName=0: the weight must be 1–2147483647"),
        (["--disable", "NodeNam"], "--disable NodeNam: the default profile has no such plugin; did you mean"),
        (["--disable", "Nothing"], "it has SchedulingGates, PrioritySort"),
        (["--args", "NodeAffinity"], "--args NodeAffinity: must be NAME=JSON, such as NodeAffinity={}"),
        (["--args", "NodeAffinity={"], "--args NodeAffinity={: must be NAME=JSON; Expecting property name"),
        (["--args", "NodeAffinity=[]"], "--args NodeAffinity=[]: the arguments must be an object"),
        (
            ["--args", "CostAware={}"],
            "--args CostAware: the profile has no such plugin; --enable CostAware adds it",
        ),
        (["--evaluation", "magic"], "Invalid value for '--evaluation'"),
        (["--forms", "scalar"], "--forms goes with one --enable, which says whose forms"),
        (["--enable", "NodeName", "--enable", "NodePorts", "--forms", "scalar"], "--forms goes with one"),
        (
            ["--enable", "NodeName", "--forms", "scalar,x"],
            "there is no form 'x'; there are scalar, batch, memo",
        ),
        (
            ["--enable", "SchedulingGates", "--forms", "batch"],
            "SchedulingGates has no form batch: neither filter_batch nor score_batch",
        ),
        (
            ["--enable", "NodeName", "--forms", "scalar", "--growth", "nodes"],
            "--growth and --evaluation don't",
        ),
        (["--enable", "NodeName", "--forms", "memo", "--workload", "all"], "--forms takes one --workload"),
        (["--devices", "4"], "--devices goes with workloads about devices"),
        (["--members", "4"], "--members and --racks go with workloads of groups"),
        (["--repeats", "5"], "--repeats goes with --forms"),
        (["--enable", "NodeName", "--forms", "memo", "--repeats", "3"], "Invalid value for '--repeats'"),
        (["--sizes", "10"], "--sizes goes with --growth"),
        (["--growth", "nodes", "--sizes", "10,x"], "--sizes 10,x: must be whole numbers"),
        (["--growth", "nodes", "--nodes", "10"], "--growth nodes makes --nodes grow; --sizes says how far"),
        (["--growth", "pods", "--init-pods", "10"], "--growth pods makes --init-pods grow"),
        (["--growth", "pods", "--workload", "all"], "--growth takes one --workload"),
        (
            ["--growth", "devices"],
            "--growth devices needs a --workload whose nodes have some, and basic has none",
        ),
        (
            ["--growth", "devices", "--workload", "claim-template", "--devices", "3"],
            "--growth devices makes --devices grow",
        ),
        (
            ["--growth", "members"],
            "--growth members needs a --workload of groups, and the pods of basic are in none",
        ),
        (["--growth", "racks", "--workload", "gang", "--racks", "3"], "--growth racks makes --racks grow"),
        (
            ["--growth", "racks", "--workload", "gang", "--pods", "3"],
            "--growth racks measures 3 groups of each size, so --pods doesn't go with it",
        ),
        (["--nodes", "0"], "Invalid value for '--nodes'"),
        (["--pods", "0"], "Invalid value for '--pods'"),
        (["--percentage", "101"], "Invalid value for '--percentage'"),
    ],
)
def test_bad_usage(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in complaint(capsys, *arguments)


@pytest.mark.usefixtures("_in_this_process")
class TestProfile:
    """`--profile`: what a configuration's profile does, instead of the default one."""

    @pytest.fixture
    def file(self, tmp_path: Path) -> str:
        path = tmp_path / "profiles.yaml"
        path.write_text(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
            "profiles:\n"
            "- {schedulerName: packing, percentageOfNodesToScore: 40,"
            " plugins: {score: {disabled: [{name: ImageLocality}]}}}\n"
            "- {schedulerName: plain}\n"
        )
        return str(path)

    def test_it_is_what_is_measured(self, file: str, capsys: pytest.CaptureFixture[str]) -> None:
        options = ["--profile", file, "--scheduler-name", "packing"]
        report: dict[str, Any] = json.loads(bench(capsys, *SMALL, *options, "--json"))
        assert report["profileSource"] == file
        weights = {plugin["name"]: plugin["weight"] for plugin in report["profile"]}
        assert weights["TaintToleration"] == 3
        assert "ImageLocality" not in weights
        assert {each["percentage"] for each in report["measurements"]} == {40}
        assert {each["pods"]["placed"] for each in report["measurements"]} == {4}

    def test_another_percentage(self, file: str, capsys: pytest.CaptureFixture[str]) -> None:
        options = ["--profile", file, "--scheduler-name", "packing", "--percentage", "70"]
        report: dict[str, Any] = json.loads(bench(capsys, *SMALL, *options, "--json"))
        assert {each["percentage"] for each in report["measurements"]} == {70}

    def test_the_text_says_where_it_is_from(self, file: str, capsys: pytest.CaptureFixture[str]) -> None:
        out = bench(capsys, *SMALL, "--profile", file, "--scheduler-name", "plain")
        assert f"profile of {file}" in " ".join(out.split())

    def test_one_of_several_has_to_be_named(self, file: str, capsys: pytest.CaptureFixture[str]) -> None:
        several = f"{file} has several profiles; --scheduler-name says which: packing, plain"
        assert several in complaint(capsys, *SMALL, "--profile", file)
        unknown = f"--scheduler-name x: {file} has no such profile; it has packing, plain"
        assert unknown in complaint(capsys, *SMALL, "--profile", file, "--scheduler-name", "x")

    def test_what_does_not_go_together(self, file: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert "--profile is instead of it" in complaint(capsys, "--profile", file, "--enable", "A")
        assert "--scheduler-name goes with --profile" in complaint(capsys, "--scheduler-name", "x")
        assert "none.yaml: No such file" in complaint(capsys, "--profile", "none.yaml")


@pytest.mark.usefixtures("_in_this_process")
class TestResults:
    def test_measurements_are_runs_of_the_tidy_table(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        for _ in range(2):
            bench(
                capsys, *SMALL, "--percentage", "0", "--disable", "ImageLocality", "--results", str(tmp_path)
            )
        runs = read_results(tmp_path).runs()
        assert [(each.factors["part"], each.factors["profile"], each.factors["repeat"]) for each in runs] == [
            (part, profile, repeat)
            for repeat in (1, 2)
            for profile in ("measured", "default")
            for part in ("algorithm", "end-to-end")
        ]
        for each in runs:
            assert each.factors["form"] == "memo"
            assert (each.factors["nodes"], each.metrics["pods"], each.metrics["placed"]) == (10, 4, 4)
            assert each.metrics["seconds_per_pod"] == each.metrics["seconds"] / 4

    def test_so_is_growth(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        sizes = ["--growth", "nodes", "--sizes", "5,10", "--init-pods", "5", "--pods", "4"]
        bench(capsys, *sizes, "--results", str(tmp_path))
        runs = read_results(tmp_path).runs()
        assert [each.factors["nodes"] for each in runs] == [5, 10]
        assert all("bytes_each" in each.metrics for each in runs)

    def test_so_is_each_repeat_of_a_form(self, tmp_path: Path) -> None:
        runs = (FormRuns(None, (0.1, 0.2)), FormRuns(Form.SCALAR, (0.3, 0.4), asked=7.0))
        forms = FormsComparison("ImageLocality", "basic", 100, 10, 5, runs)
        report = BenchReport(Machine.this(), default_profile(), Evaluation.MEMO, forms=forms)
        with kept(tmp_path, FACTORS) as keeper:
            keep(report, {"basic": Case("basic", 10, 5, 2)}, keeper)
        found = read_results(tmp_path).runs()
        assert [
            (each.factors["profile"], each.factors["form"], each.factors["repeat"]) for each in found
        ] == [
            ("without", "", 1),
            ("without", "", 2),
            ("measured", "scalar", 1),
            ("measured", "scalar", 2),
        ]
        assert found[3].metrics == {"seconds_per_pod": 0.4, "nodes_asked": 7.0}
