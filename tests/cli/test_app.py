"""What the command prints where, and its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from kschedfw.cli import EXPORT, simulate
from kschedfw.cli.commands import COMMANDS
from kschedfw.cli.exits import ExitCode
from kschedfw.framework.errors import ProfileError
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.testing import Command
from kschedfw.testing.waiting import PATIENCE

REPOSITORY = Path(__file__).parents[2]
BROKEN = """\
apiVersion: v1
kind: Pod
metadata: {name: broken}
spec: {containers: [{name: main, image: app, resources: {requests: {cpu: lots}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: broken-too}
spec: {containers: [{name: main, image: app, resources: {requests: {memory: 1 Gi}}}]}
"""


class TestSubcommands:
    """They are imported when they are asked for; what the list of them says is written beside it."""

    @pytest.mark.parametrize("name", COMMANDS.names())
    def test_each_has_its_help(self, kschedfw_command: Command, name: str) -> None:
        result = kschedfw_command(name, "--help")
        assert (result.code, result.err) == (0, "")
        assert result.out.startswith(f"Usage: kschedfw {name} ")

    @pytest.mark.parametrize("name", COMMANDS.names())
    def test_help_is_no_wider_than_a_terminal_of_80_columns(
        self, kschedfw_command: Command, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        monkeypatch.setenv("COLUMNS", "80")
        command = COMMANDS.load(name).load()
        below = command.commands if isinstance(command, click.Group) else ()
        for subcommand in ([], *([each] for each in below)):
            lines = kschedfw_command(name, *subcommand, "--help").out.splitlines()
            assert [line for line in lines if len(line) > 80] == []

    def test_all_are_listed_in_full(self, kschedfw_command: Command) -> None:
        listed = kschedfw_command("--help").out.partition("Commands:\n")[2]
        assert [line.split(maxsplit=1) for line in listed.splitlines()] == [
            [name, COMMANDS.load(name).summary] for name in COMMANDS.names()
        ]

    def test_each_of_another_distribution_has_its_home_named_where_it_is_missing(self) -> None:
        offered = {
            command: project["name"]
            for path in REPOSITORY.glob("plugins/*/pyproject.toml")
            for project in [tomllib.loads(path.read_text(encoding="utf-8"))["project"]]
            for command in project.get("entry-points", {}).get("kschedfw.commands", {})
        }
        assert COMMANDS.homes == offered

    def test_a_misspelt_one_is_told_what_is_similar(self, kschedfw_command: Command) -> None:
        result = kschedfw_command("simulat")
        assert result.code == 2
        assert "'simulate'" in result.err

    def test_help_imports_none(self) -> None:
        code = """
import sys
from kschedfw.cli.app import run
run(["--help"])
assert not {"numpy", "kschedfw.framework", "kschedfw.cli.simulate"} & sys.modules.keys()
"""
        subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


class TestSimulate:
    def test_shows_how_it_went(self, kschedfw_command: Command, cluster_dir: Path) -> None:
        result = kschedfw_command("simulate", cluster_dir)
        assert (result.code, result.err) == (0, "")
        assert "2 pods tried on 2 nodes" in result.out
        assert "placed" in result.out
        assert "Insufficient cpu" in result.out

    def test_as_json(self, kschedfw_command: Command, cluster_dir: Path) -> None:
        result = kschedfw_command("simulate", cluster_dir, "--json", "--seed", 5)
        report = result.json
        assert (result.code, result.err) == (0, "")
        assert (report["nodes"], report["seed"], report["interrupted"]) == (2, 5, False)
        assert report["pods"] == {
            "total": 2,
            "placed": 1,
            "preempted": 0,
            "deleted": 0,
            "unschedulable": 1,
            "gated": 0,
            "failed": 0,
            "left": 0,
            "boundBefore": 1,
            "otherScheduler": 0,
            "terminal": 0,
            "terminating": 0,
        }
        assert report["reasons"] == [{"text": "Insufficient cpu", "pods": 1, "nodes": 2}]
        assert report["utilisation"]["cpu"]["share"] == 0.375
        assert {d["pod"]: d["node"] for d in report["decisions"]} == {
            "default/fits": "n2",
            "default/too-big": None,
        }

    def test_files_and_more_pods(self, kschedfw_command: Command, cluster_dir: Path, tmp_path: Path) -> None:
        more = tmp_path / "more.yaml"
        more.write_text(
            "{apiVersion: v1, kind: Pod, metadata: {name: more}, spec: {containers: [{name: c, image: i}]}}"
        )
        result = kschedfw_command(
            "simulate",
            cluster_dir / "nodes.yaml",
            "--pods",
            cluster_dir / "pods.yaml",
            "--pods",
            more,
            "--json",
        )
        assert result.json["pods"]["total"] == 3

    def test_same_seed_same_decisions_whatever_the_parallelism(
        self, kschedfw_command: Command, cluster_dir: Path
    ) -> None:
        one = kschedfw_command("simulate", cluster_dir, "--json", "--seed", 3, "--parallelism", 1).json
        many = kschedfw_command("simulate", cluster_dir, "--json", "--seed", 3, "--parallelism", 8).json
        assert one["decisions"] == many["decisions"]

    def test_percentage_limits_the_nodes_that_are_scored(
        self, kschedfw_command: Command, tmp_path: Path
    ) -> None:
        nodes = "\n---\n".join(
            f"{{apiVersion: v1, kind: Node, metadata: {{name: n{i}}}, status: {{allocatable: {{cpu: 1, pods: 9}}}}}}"
            for i in range(300)
        )
        (tmp_path / "nodes.yaml").write_text(
            f"{nodes}\n---\n{{apiVersion: v1, kind: Pod, metadata: {{name: a}}, "
            "spec: {containers: [{name: c, image: i}]}}"
        )
        for percentage, feasible in ((100, 300), (50, 150), (1, 100)):
            report = kschedfw_command("simulate", tmp_path, "--json", "--percentage", percentage).json
            assert report["decisions"][0]["feasible"] == feasible


TIMED = """\
apiVersion: v1
kind: Pod
metadata:
  name: NAME
  creationTimestamp: "2026-01-01T00:00:SECONDZ"
  annotations: {kschedfw/duration-seconds: "20"}
spec: {containers: [{name: main, image: app, resources: {requests: {cpu: 2}}}]}
"""


class TestArrivals:
    def test_pods_come_and_go(self, kschedfw_command: Command, cluster_dir: Path) -> None:
        pods = [("a", "00"), ("b", "05"), ("c", "10")]
        (cluster_dir / "pods.yaml").write_text(
            "---\n".join(TIMED.replace("NAME", name).replace("SECOND", second) for name, second in pods)
        )
        result = kschedfw_command("simulate", cluster_dir, "--arrivals", "--json")
        assert (result.code, result.err) == (0, "")
        times = {each["pod"]: (each["arrivedAt"], each["boundAt"]) for each in result.json["decisions"]}
        assert times == {"default/a": (0, 0), "default/b": (5, 5), "default/c": (10, 20)}
        assert result.json["replay"]["makespanSeconds"] == 40
        assert result.json["replay"]["waitingSeconds"]["max"] == 10
        assert result.json["replay"]["peak"]["cpu"]["share"] == 1.0
        assert "makespan: 40.0 s" in kschedfw_command("simulate", cluster_dir, "--arrivals").out

    def test_start_and_cost_of_attempts(self, kschedfw_command: Command, cluster_dir: Path) -> None:
        options = ("--start-time", "2026-03-02T10:00:00+01:00", "--attempt-time", "1.5s")
        report = json.loads(kschedfw_command("simulate", cluster_dir, "--json", *options).out)
        assert report["startTime"] == "2026-03-02T09:00:00+00:00"
        assert min(each["boundAt"] for each in report["decisions"] if each["boundAt"] is not None) == 1.5

    @pytest.mark.parametrize(
        ("option", "value", "error"),
        [
            ("--start-time", "nine", "'nine' is no time such as 2006-01-02T15:04:05Z"),
            (
                "--start-time",
                "2026-03-02T09:00:00",
                "is no time such as 2006-01-02T15:04:05Z; did you mean 2026-03-02T09:00:00Z?",
            ),
            ("--attempt-time", "3", "'3' is no duration such as 3ms or 1.5s"),
            ("--attempt-time", "-3ms", "'-3ms' is not between 0s and 1h"),
            ("--attempt-time", "2h", "'2h' is not between 0s and 1h"),
        ],
    )
    def test_times_that_are_none(
        self, kschedfw_command: Command, cluster_dir: Path, option: str, value: str, error: str
    ) -> None:
        result = kschedfw_command("simulate", cluster_dir, option, value)
        assert result.code == 2
        assert error in result.err

    def test_without_them_times_do_not_count(self, kschedfw_command: Command, cluster_dir: Path) -> None:
        assert kschedfw_command("simulate", cluster_dir, "--json").json["replay"] is None

    def test_at_random_with_the_seed(self, kschedfw_command: Command, cluster_dir: Path) -> None:
        args = ("simulate", cluster_dir, "--json", "--arrival-rate", 0.1, "--mean-duration", 30, "--seed")
        one, again, other = (kschedfw_command(*args, seed).json for seed in (1, 1, 2))
        assert one["decisions"] == again["decisions"] != other["decisions"]
        assert one["replay"]["makespanSeconds"] > 0

    @pytest.mark.parametrize("option", ["--arrival-rate", "--mean-duration"])
    def test_a_rate_of_nothing(self, kschedfw_command: Command, cluster_dir: Path, option: str) -> None:
        result = kschedfw_command("simulate", cluster_dir, option, 0)
        assert (result.code, result.out) == (2, "")
        assert "must be positive, not 0" in result.err

    @pytest.mark.parametrize("also", [(), ("--arrivals",)])
    def test_nothing_to_take_their_place(
        self, kschedfw_command: Command, cluster_dir: Path, also: tuple[str, ...]
    ) -> None:
        result = kschedfw_command("simulate", cluster_dir, "--ignore-own-times", *also)
        assert (result.code, result.out) == (2, "")
        assert "--ignore-own-times goes with --arrival-rate, --mean-duration, or both" in result.err


class TestNotes:
    def test_what_scheduling_has_no_use_for(self, kschedfw_command: Command, cluster_dir: Path) -> None:
        kinds = ["Secret", "Secret", "ConfigMap"]
        (cluster_dir / "more.yaml").write_text(
            "\n---\n".join(
                f"{{apiVersion: v1, kind: {kind}, metadata: {{name: x{i}}}}}" for i, kind in enumerate(kinds)
            )
        )
        notes = kschedfw_command("simulate", cluster_dir, "--json").json["notes"]
        assert notes == ["scheduling has no use for some of the input: 2 Secret, 1 ConfigMap"]

    def test_what_needs_a_gate_that_is_not_here(self, kschedfw_command: Command, cluster_dir: Path) -> None:
        group = "{apiVersion: scheduling.k8s.io/v1alpha3, kind: CompositePodGroup, metadata: {name: x}}"
        (cluster_dir / "more.yaml").write_text(group)
        assert kschedfw_command("simulate", cluster_dir, "--json").json["notes"] == [
            (
                "not modelled (it needs the feature gate CompositePodGroup, which is off by default in v1.37):"
                " 1 CompositePodGroup"
            )
        ]

    @pytest.mark.parametrize(
        ("version", "told"),
        [
            (
                "1.36",
                ["without effect, since the feature gate DRADeviceTaintRules is off: 1 DeviceTaintRule"],
            ),
            ("1.37", []),
        ],
    )
    def test_rules_that_taint_devices_without_their_gate(
        self, kschedfw_command: Command, cluster_dir: Path, version: str, told: list[str]
    ) -> None:
        rule = "{taint: {key: broken, effect: NoSchedule}, deviceSelector: {driver: gpu.example.com}}"
        (cluster_dir / "more.yaml").write_text(
            f"{{apiVersion: resource.k8s.io/v1beta2, kind: DeviceTaintRule, metadata: {{name: x}}, spec: {rule}}}"
        )
        arguments = ("simulate", cluster_dir, "--json", "--kube-version", version)
        assert kschedfw_command(*arguments).json["notes"] == told

    @pytest.mark.parametrize(
        ("gates", "told"),
        [
            ("", ["without effect, since the feature gate GenericWorkload is off: 1 PodGroup"]),
            (
                "GenericWorkload=true,GangScheduling=false",
                [
                    "the minCount is without effect, since the feature gate GangScheduling is off: 1 PodGroup",
                    (
                        "the topology constraint is without effect, since the feature gate "
                        "TopologyAwareWorkloadScheduling is off: 1 PodGroup"
                    ),
                ],
            ),
            ("GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true", []),
        ],
    )
    def test_groups_without_their_gates(
        self, kschedfw_command: Command, cluster_dir: Path, gates: str, told: list[str]
    ) -> None:
        spec = {
            "schedulingPolicy": {"gang": {"minCount": 2}},
            "schedulingConstraints": {"topology": [{"key": "rack"}]},
        }
        group = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": "g"}}
        (cluster_dir / "more.yaml").write_text(json.dumps({**group, "spec": spec}))
        options = ["--feature-gates", gates] if gates else []
        notes = kschedfw_command("simulate", cluster_dir, "--json", *options).json["notes"]
        assert [each for each in notes if "feature gate" in each] == told

    @pytest.mark.parametrize(
        ("gate", "told"),
        [
            (
                "false",
                [
                    (
                        "without effect, since the feature gate TaintTolerationComparisonOperators is off:"
                        " spec.tolerations[1].operator: Gt of pod default/a (and of 1 more pod);"
                        " an API server would refuse to create it"
                    )
                ],
            ),
            ("true", []),
        ],
    )
    def test_tolerations_that_compare_without_their_gate(
        self, kschedfw_command: Command, cluster_dir: Path, gate: str, told: list[str]
    ) -> None:
        lines = [
            f"{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{tolerations: [{{key: x}},"
            f" {{key: level, operator: {operator}, value: '3'}}], containers: [{{name: c, image: i}}]}}}}"
            for name, operator in {"a": "Gt", "b": "Lt", "c": "Equal"}.items()
        ]
        (cluster_dir / "more.yaml").write_text("\n---\n".join(lines))
        options = ["--feature-gates", f"TaintTolerationComparisonOperators={gate}"]
        notes = kschedfw_command("simulate", cluster_dir, "--json", *options).json["notes"]
        assert [each for each in notes if "feature gate" in each] == told

    def test_groups_with_fields_whose_gates_are_not_here(
        self, kschedfw_command: Command, cluster_dir: Path
    ) -> None:
        spec = {
            "schedulingPolicy": {"basic": {}},
            "parentCompositePodGroupName": "tree",
            "resourceClaims": [{"name": "gpus", "resourceClaimName": "gpus"}],
            "workloadRef": {"workloadName": "w", "templateName": "t"},
            "disruptionMode": {"all": {}},
        }
        group = {"apiVersion": "scheduling.k8s.io/v1alpha3", "kind": "PodGroup", "metadata": {"name": "g"}}
        (cluster_dir / "more.yaml").write_text(json.dumps({**group, "spec": spec}))
        options = ["--kube-version", "1.37", "--feature-gates", "GenericWorkload=true"]
        notes = kschedfw_command("simulate", cluster_dir, "--json", *options).json["notes"]
        assert [each for each in notes if "feature gate" in each] == [
            "the parent group is without effect, since the feature gate CompositePodGroup is off: 1 PodGroup",
            (
                "the list of resource claims is without effect, since the feature gate DRAWorkloadResourceClaims is "
                "off: 1 PodGroup"
            ),
        ]

    @pytest.mark.parametrize(
        ("version", "told"),
        [
            ("1.36", []),
            (
                "1.37",
                [
                    (
                        "Kubernetes v1.37 no longer serves scheduling.k8s.io/v1alpha2, which is read all the same: "
                        "2 PodGroups"
                    )
                ],
            ),
        ],
    )
    def test_objects_that_the_version_no_longer_serves(
        self, kschedfw_command: Command, cluster_dir: Path, version: str, told: list[str]
    ) -> None:
        kind = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup"}
        groups = [
            {**kind, "metadata": {"name": name}, "spec": {"schedulingPolicy": {"basic": {}}}} for name in "gh"
        ]
        (cluster_dir / "more.yaml").write_text("\n---\n".join(map(json.dumps, groups)))
        notes = kschedfw_command("simulate", cluster_dir, "--json", "--kube-version", version).json["notes"]
        assert [each for each in notes if "serves" in each] == told

    def test_what_only_plugins_can_have_a_use_for(self, kschedfw_command: Command, cluster_dir: Path) -> None:
        (cluster_dir / "more.yaml").write_text("{apiVersion: x.io/v1, kind: Gang, metadata: {name: x}}")
        notes = kschedfw_command("simulate", cluster_dir, "--json").json["notes"]
        assert notes == ["kept for plugins that know what it is: 1 Gang of x.io/v1"]

    def test_name_a_few_kinds_only(self, kschedfw_command: Command, cluster_dir: Path) -> None:
        (cluster_dir / "more.yaml").write_text(
            "\n---\n".join(f"{{apiVersion: x.io/v1, kind: K{i}, metadata: {{name: x}}}}" for i in range(7))
        )
        (note,) = kschedfw_command("simulate", cluster_dir, "--json").json["notes"]
        assert note.endswith("1 K4 of x.io/v1, 2 more kinds")


class TestNothingToSimulate:
    def test_no_pods(self, kschedfw_command: Command, cluster_dir: Path) -> None:
        result = kschedfw_command("simulate", cluster_dir / "nodes.yaml")
        assert result.code == 1
        assert result.err == "kschedfw: nothing to simulate: the input has no pods to schedule\n"
        assert "0 pods tried on 2 nodes" in result.out

    @pytest.mark.slow
    def test_that_comes_first_and_says_what_pods_there_are(self, cluster_dir: Path) -> None:
        bound = cluster_dir / "pods.yaml"
        bound.write_text(bound.read_text().rpartition("---")[2])
        command = [sys.executable, "-m", "kschedfw", "simulate", str(cluster_dir)]
        both = subprocess.run(
            command,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
        )
        assert both.stdout.startswith(
            "kschedfw: nothing to simulate: the input has no pods to schedule: "
            "1 on a node already (--reschedule frees such pods)\n"
        )

    def test_no_nodes(self, kschedfw_command: Command, cluster_dir: Path) -> None:
        result = kschedfw_command("simulate", cluster_dir / "pods.yaml", "--json")
        assert result.code == 1
        assert result.err == (
            f"kschedfw: nothing to simulate: the input has no nodes; this exports what scheduling reads: {EXPORT}\n"
        )
        assert result.json["nodes"] == 0

    @pytest.mark.parametrize("text", ["", "apiVersion: v1\nkind: List\nitems: []\n"])
    def test_neither_nodes_nor_pods_is_bad_input_and_there_is_no_report(
        self, kschedfw_command: Command, tmp_path: Path, text: str
    ) -> None:
        (tmp_path / "empty.yaml").write_text(text)
        result = kschedfw_command("simulate", tmp_path / "empty.yaml")
        assert (result.code, result.out) == (2, "")
        assert result.err == (
            "kschedfw: nothing to simulate: the input has no nodes and no pods; "
            f"this exports what scheduling reads: {EXPORT}\n"
        )

    @pytest.mark.parametrize(
        ("spec", "why"),
        [
            ("suspend: true", "it is suspended"),
            ("parallelism: 0", "its spec.parallelism is 0"),
        ],
    )
    def test_a_workload_that_makes_no_pods_says_why(
        self, kschedfw_command: Command, cluster_dir: Path, spec: str, why: str
    ) -> None:
        template = "{spec: {restartPolicy: Never, containers: [{name: main}]}}"
        (cluster_dir / "pods.yaml").write_text(
            f"{{apiVersion: batch/v1, kind: Job, metadata: {{name: held}}, spec: {{{spec}, template: {template}}}}}"
        )
        told = f"note: no pods of Job default/held: {why}"
        assert told in kschedfw_command("simulate", cluster_dir).out
        # Where a command ends without an answer, it says so on standard error.
        (cluster_dir / "nodes.yaml").write_text("")
        for command in (("simulate", cluster_dir), ("explain", cluster_dir, "held")):
            result = kschedfw_command(*command)
            assert result.code == 2
            assert f"{told}\n" in result.err

    def test_pods_of_well_known_custom_kinds_are_made_when_asked_for(
        self, kschedfw_command: Command, cluster_dir: Path
    ) -> None:
        container = "{name: main, resources: {requests: {cpu: 100m}}}"
        (cluster_dir / "ray.yaml").write_text(
            "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: ray}\n"
            f"spec: {{headGroupSpec: {{template: {{spec: {{containers: [{container}]}}}}}}}}\n"
        )
        plain = kschedfw_command("simulate", cluster_dir, "--json").json
        assert "--expand-custom makes the pods of 1 rayclusters.v1.ray.io" in plain["notes"]
        report = kschedfw_command("simulate", cluster_dir, "--expand-custom", "--json").json
        assert report["pods"]["total"] == plain["pods"]["total"] + 1
        assert "1 pod made for RayCluster default/ray (--no-expand makes none)" in report["notes"]
        assert not any("--expand-custom" in note for note in report["notes"])
        both = kschedfw_command("simulate", cluster_dir, "--expand-custom", "--no-expand")
        assert (both.code, both.out) == (2, "")
        assert "give one of them" in both.err

    def test_workloads_without_pods_for_the_same_reason_are_one_note(
        self, kschedfw_command: Command, cluster_dir: Path
    ) -> None:
        job = "{spec: {template: {spec: {restartPolicy: Never, containers: [{name: main}]}}}}"
        (cluster_dir / "crons.yaml").write_text(
            "---\n".join(
                f"{{apiVersion: batch/v1, kind: CronJob, metadata: {{name: {name}}}, "
                f'spec: {{schedule: "@daily", jobTemplate: {job}}}}}\n'
                for name in "abcdefg"
            )
        )
        out = kschedfw_command("simulate", cluster_dir).out
        told = " ".join(out.split())
        names = ", ".join(f"CronJob default/{name}" for name in "abcde")
        assert f"note: no pods of {names} and 2 more workloads: its Jobs come by the clock" in told


class TestBadInput:
    """One line per problem on stderr, exit code 2, and nothing is simulated."""

    def test_all_problems_are_shown(self, kschedfw_command: Command, cluster_dir: Path) -> None:
        (cluster_dir / "broken.yaml").write_text(BROKEN)
        result = kschedfw_command("simulate", cluster_dir)
        assert (result.code, result.out) == (2, "")
        first, second, last = result.err.splitlines()
        assert "broken.yaml" in first
        assert "cpu" in first
        assert "memory" in second
        assert last.startswith("kschedfw: ")

    def test_they_can_be_skipped(self, kschedfw_command: Command, cluster_dir: Path) -> None:
        (cluster_dir / "broken.yaml").write_text(BROKEN)
        result = kschedfw_command("simulate", cluster_dir, "--skip-invalid", "--json")
        assert result.code == 0
        assert len(result.err.splitlines()) == 2
        assert result.json["pods"]["total"] == 2
        assert result.json["notes"] == ["left out of the input, since invalid: 2; standard error says what"]
        *_, last = kschedfw_command("simulate", cluster_dir, "--skip-invalid").out.splitlines()
        assert last.startswith("note: left out of the input, since invalid: 2;")

    TYPO = BROKEN.partition("---")[0].replace("cpu: lots", "cpu: 1").replace("spec: {", "spec: {nodeNam: n, ")

    def test_a_misspelt_field_is_refused_with_a_way_out(
        self, kschedfw_command: Command, cluster_dir: Path
    ) -> None:
        (cluster_dir / "typo.yaml").write_text(self.TYPO)
        result = kschedfw_command("simulate", cluster_dir)
        assert (result.code, result.out) == (2, "")
        field, verdict = result.err.splitlines()
        assert field.endswith(
            '(Pod broken): strict decoding error: unknown field "spec.nodeNam"; did you mean "nodeName"?'
        )
        assert "--field-validation=warn lets unknown fields pass" in verdict

    @pytest.mark.parametrize(
        "command",
        [["simulate"], ["compare", "--profile=default", "--profile=DefaultProvider"], ["explain", "fits"]],
        ids=lambda command: command[0],
    )
    def test_a_misspelt_field_may_be_a_warning_or_nothing(
        self, kschedfw_command: Command, cluster_dir: Path, command: list[str]
    ) -> None:
        (cluster_dir / "typo.yaml").write_text(self.TYPO)
        given = [command[0], cluster_dir, *command[1:]]
        warned = kschedfw_command(*given, "--field-validation", "warn")
        assert warned.code == 0
        assert warned.err.startswith(
            f"warning: {cluster_dir / 'typo.yaml'}: document 1 (Pod broken): unknown field"
        )
        ignored = kschedfw_command(*given, "--field-validation=Ignore")
        assert (ignored.code, ignored.err) == (0, "")
        assert kschedfw_command(*given).code == 2

    def test_the_same_object_twice(self, kschedfw_command: Command, cluster_dir: Path) -> None:
        result = kschedfw_command("simulate", cluster_dir, "--pods", cluster_dir / "pods.yaml")
        assert (result.code, result.out) == (2, "")
        assert "Pod default/fits" in result.err
        assert (
            kschedfw_command(
                "simulate", cluster_dir, "--pods", cluster_dir / "pods.yaml", "--skip-invalid"
            ).code
            == 0
        )

    def test_a_file_that_is_not_there(self, kschedfw_command: Command, tmp_path: Path) -> None:
        result = kschedfw_command("simulate", tmp_path / "none.yaml")
        assert (result.code, result.out) == (2, "")
        assert "none.yaml" in result.err
        assert result.err.splitlines()[-1].startswith("kschedfw: ")

    @pytest.mark.parametrize(
        "args",
        [
            ["simulate", "x", "--seed", "many"],
            ["simulate", "x", "--percentage", "101"],
            ["simulate", "x", "--parallelism", "0"],
            ["simulate", "x", "--nonsense"],
            ["simulate", "x", "--arrival-rate", "often"],
            ["nonsense"],
        ],
    )
    def test_usage(self, kschedfw_command: Command, args: list[str]) -> None:
        result = kschedfw_command(*args)
        assert (result.code, result.out) == (2, "")
        assert "Error:" in result.err

    @pytest.mark.parametrize(
        ("args", "expected"),
        [
            (
                ["simulate", "x", "--percentage", "x"],
                "'x' is not a valid whole number in the range 0<=x<=100.",
            ),
            (["explain", "x", "--top", "1.5"], "'1.5' is not a valid whole number in the range x>=1."),
        ],
    )
    def test_a_text_that_is_no_number_of_a_range_is_told_the_range(
        self, kschedfw_command: Command, args: list[str], expected: str
    ) -> None:
        assert expected in " ".join(kschedfw_command(*args).err.split())

    def test_format_that_no_installed_distribution_reads_is_refused(
        self, kschedfw_command: Command, tmp_path: Path
    ) -> None:
        result = kschedfw_command("simulate", tmp_path, "--format", "openbee")
        assert (result.code, result.out) == (2, "")
        assert result.err == (
            "kschedfw: no installed distribution offers format 'openbee' in the entry-point group 'kschedfw.formats'; "
            "did you mean 'openb'?\n"
        )
        unlike = kschedfw_command("simulate", tmp_path, "--format", "csv").err
        assert "there are: manifests" in unlike


class TestTrouble:
    def test_a_bug_is_one_line(
        self, kschedfw_command: Command, cluster_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*args: object, **options: object) -> None:
            raise RuntimeError("no\nsuch luck")

        monkeypatch.setattr(simulate, "Simulation", broken)
        result = kschedfw_command("simulate", cluster_dir)
        assert result.code == 70
        assert result.err == "kschedfw: this is a bug in kschedfw: RuntimeError: no such luck\n"

    def test_interrupted_while_simulating(
        self, kschedfw_command: Command, cluster_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def begin_attempt(self: Scheduler) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(Scheduler, "begin_attempt", begin_attempt)
        result = kschedfw_command("simulate", cluster_dir, "--json")
        assert (result.code, result.err) == (130, "")
        assert (result.json["interrupted"], result.json["pods"]["left"]) == (True, 2)

    def test_a_plugin_that_cannot_be_used(
        self, kschedfw_command: Command, cluster_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*args: object, **options: object) -> None:
            raise ProfileError("no queue sort\nplugin")

        monkeypatch.setattr(simulate, "Simulation", broken)
        result = kschedfw_command("simulate", cluster_dir)
        assert (result.code, result.err) == (2, "kschedfw: no queue sort plugin\n")

    def test_interrupted_before_anything_was_done(
        self, kschedfw_command: Command, cluster_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(*args: object, **options: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("kschedfw.cli.inputs.read_manifest_input", interrupted)
        result = kschedfw_command("simulate", cluster_dir)
        assert (result.code, result.out) == (130, "")


class TestHelp:
    def test_version(self, kschedfw_command: Command) -> None:
        result = kschedfw_command("--version")
        assert result.code == 0
        assert result.out.startswith("kschedfw ")

    def test_exit_codes_are_documented(self, kschedfw_command: Command) -> None:
        for command in ("simulate", "compare"):
            result = kschedfw_command(command, "--help")
            assert result.code == 0
            for code in ExitCode:
                if code is not ExitCode.CONDITION_HOLDS or command == "compare":
                    assert f"\n    {code.value} " in result.out

    def test_without_arguments(self, kschedfw_command: Command) -> None:
        assert "simulate" in (kschedfw_command().out + kschedfw_command("--help").out)


class TestInputsThatAreNoManifests:
    """What is wrong, and what would be right; nothing is simulated."""

    def test_a_directory_without_manifests(self, kschedfw_command: Command, tmp_path: Path) -> None:
        (tmp_path / "notes.txt").write_text("nothing here")
        result = kschedfw_command("simulate", tmp_path)
        assert (result.code, result.out) == (2, "")
        what, why = result.err.splitlines()
        assert what == (
            f"{tmp_path}: no manifest in this directory, "
            "expected .yaml, .yml or .json (or the same with .gz) files"
        )
        assert "so nothing was done" in why

    def test_a_missing_file_is_left_out_only_beside_others(
        self, kschedfw_command: Command, cluster_dir: Path, tmp_path: Path
    ) -> None:
        missing = tmp_path / "missing.yaml"
        what = f"{missing}: can't be read: No such file or directory"
        why = "kschedfw: 1 problem in the input, so nothing was done"
        assert kschedfw_command("simulate", missing).err.splitlines() == [what, why]
        hint = "(--skip-invalid leaves out what is invalid)"
        assert kschedfw_command("simulate", cluster_dir, missing).err.splitlines() == [what, f"{why} {hint}"]

    def test_a_directory_of_csvs_is_told_the_option_they_need(
        self, kschedfw_command: Command, tmp_path: Path
    ) -> None:
        (tmp_path / "nodes.csv").write_text("sn,cpu_milli\n")
        assert "read with --format openb" in kschedfw_command("simulate", tmp_path).err

    def test_it_may_be_left_out(self, kschedfw_command: Command, cluster_dir: Path, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        result = kschedfw_command("simulate", cluster_dir, tmp_path / "empty", "--skip-invalid", "--json")
        assert (result.code, result.json["pods"]["total"]) == (0, 2)
        assert "no manifest in this directory" in result.err

    @pytest.mark.parametrize("name", ["nodes.csv", "nodes.CSV"])
    def test_a_csv_is_one_problem_and_is_told_the_option_it_needs(
        self, kschedfw_command: Command, tmp_path: Path, name: str
    ) -> None:
        path = tmp_path / name
        path.write_text("sn,cpu_milli\n")
        result = kschedfw_command("simulate", path)
        assert (result.code, result.out) == (2, "")
        what, why = result.err.splitlines()
        assert what.startswith(f"{path}: a CSV is no manifest, expected YAML or JSON; ")
        assert "--format openb" in what
        assert "1 problem in the input, so nothing was done" in why

    def test_a_server_has_no_such_option(self, kschedfw_command: Command, tmp_path: Path) -> None:
        path = tmp_path / "nodes.csv"
        path.write_text("sn,cpu_milli\n")
        result = kschedfw_command("serve-extender", "--plugin", "NodeName", "--cluster", path, "--port", 0)
        assert (result.code, result.out) == (2, "")
        assert f"{path}: a CSV is no manifest, expected YAML or JSON\n" in result.err


class TestAdmission:
    TEAM = Path(__file__).parents[2] / "examples/admission"
    WHY = "exceeded quota: team, requested: pods=1, used: pods=3, limited: pods=3"

    def test_the_report_has_every_pod_that_is_refused(self, kschedfw_command: Command) -> None:
        report = kschedfw_command("simulate", self.TEAM, "--json").json
        assert report["pods"]["total"] == report["pods"]["placed"] == 3
        assert [each["message"].split(" is forbidden: ")[1] for each in report["refused"]] == [self.WHY] * 3
        assert any(note.endswith(f"{self.WHY} (and 2 more pods)") for note in report["notes"])

    @pytest.mark.parametrize(
        "command",
        [
            ("pending",),
            ("drain", "worker-1"),
            ("compare", "--profile", "default", "--profile", "ClusterAutoscalerProvider"),
        ],
        ids=lambda command: str(command[0]),
    )
    def test_other_commands_tell_it(self, kschedfw_command: Command, command: tuple[str, ...]) -> None:
        result = kschedfw_command(command[0], self.TEAM, *command[1:])
        assert "exceeded quota: team" in " ".join(result.out.split()), result.err

    def test_pods_that_are_asked_about_are_admitted_but_for_quotas(
        self, kschedfw_command: Command, tmp_path: Path
    ) -> None:
        asked = tmp_path / "pod.yaml"
        asked.write_text(
            "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: main}]}}"
        )
        # 16 CPUs, of which three pods take 500m each; the LimitRange gives the new ones 500m, too.
        fit = kschedfw_command("fit", self.TEAM, "--pod", asked, "--json").json
        assert fit["pods"][0]["replicas"] == 29
