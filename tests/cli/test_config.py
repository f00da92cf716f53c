"""`kschedfw config`: check, show, diff; and `kschedfw simulate --config`."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest

from kschedfw import Registry, hookimpl
from kschedfw.cli.app import run
from kschedfw.framework.runtime import registry
from kschedfw.plugins.image_locality import ImageLocality
from kschedfw.plugins.node_name import NodeName

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
PACKING = HEAD + (
    "profiles:\n"
    "- schedulerName: packing\n"
    "  plugins: {score: {disabled: [{name: ImageLocality}]}, multiPoint: {enabled: [{name: NodeName}]}}\n"
    "  pluginConfig:\n"
    "  - {name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}\n"
)


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


@pytest.fixture
def default(tmp_path: Path) -> str:
    return write(tmp_path / "default.yaml", HEAD)


@pytest.fixture
def packing(tmp_path: Path) -> str:
    return write(tmp_path / "packing.yaml", PACKING)


@pytest.fixture
def policy(tmp_path: Path) -> str:
    text = (
        "{kind: Policy, apiVersion: v1, alwaysCheckAllPredicates: true,"
        " predicates: [{name: PodFitsResources}, {name: MatchNodeSelector}],"
        " priorities: [{name: ResourceLimitsPriority, weight: 2}, {name: NodeAffinityPriority, weight: 1}]}"
    )
    return write(tmp_path / "policy.yaml", text)


@pytest.fixture
def wrong(tmp_path: Path) -> str:
    return write(tmp_path / "wrong.yaml", HEAD + "parallelism: 0\npercentageOfNodesToScore: 101\n")


Captured = pytest.CaptureFixture[str]


class TestCheck:
    def test_a_valid_one(self, packing: str, capsys: Captured) -> None:
        assert run(["config", "check", packing]) == 0
        assert capsys.readouterr() == (f"{packing}: valid, with 1 profile\n", "")

    def test_what_is_wrong_is_listed_with_the_file(self, wrong: str, capsys: Captured) -> None:
        assert run(["config", "check", wrong]) == 1
        lines = capsys.readouterr().out.splitlines()
        assert [line.split(" Invalid")[0] for line in lines] == [
            f"{wrong}: parallelism:",
            f"{wrong}: percentageOfNodesToScore:",
        ]

    def test_a_file_that_is_not_there_is_bad_input(self, tmp_path: Path, capsys: Captured) -> None:
        assert run(["config", "check", str(tmp_path / "none.yaml")]) == 2
        assert "none.yaml: No such file" in capsys.readouterr().err

    def test_plugins_that_can_not_be_made_are_told_as_well(
        self, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(self: object, args: object, handle: object) -> None:
            raise KeyError("inventory")

        for cls in (NodeName, ImageLocality):
            monkeypatch.setattr(cls, "__init__", refuse)
        file = write(tmp_path / "two.yaml", HEAD + "profiles: [{schedulerName: a}, {schedulerName: b}]\n")
        assert run(["config", "check", file]) == 1
        source = f"(from distribution {Registry().distribution('NodeName')})"
        assert capsys.readouterr().out.splitlines() == [
            f"{file}: profiles[{index}]: plugin '{plugin}' {source}: making it failed: KeyError: 'inventory'"
            for index in range(2)
            for plugin in ("NodeName", "ImageLocality")
        ]
        assert run(["config", "check", file, "--json"]) == 1
        (verdict,) = json.loads(capsys.readouterr().out)
        assert (verdict["valid"], len(verdict["errors"])) == (False, 4)

    def test_a_default_plugin_whose_hooks_do_not_fit(
        self, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ImageLocality, "fliter", hookimpl(lambda self: None), raising=False)
        # The class may have been checked before the test changed it.
        monkeypatch.setattr(registry, "_PROBLEMS", WeakKeyDictionary())
        file = write(tmp_path / "one.yaml", HEAD + "profiles: [{schedulerName: a}]\n")
        assert run(["config", "check", file]) == 1
        source = f"(from distribution {Registry().distribution('ImageLocality')})"
        assert capsys.readouterr().out == (
            f"{file}: profiles[0].plugins.multiPoint: Invalid value: \"ImageLocality\": plugin 'ImageLocality' "
            f"{source}: unknown hook 'fliter'; did you mean 'filter'? (profile \"a\" has it by default)\n"
        )

    @pytest.mark.parametrize(
        ("plugins", "named", "point"),
        [
            ("preFilter: {disabled: [{name: NodeResourcesFit}]}", "NodeResourcesFit", "preFilter"),
            ("preFilter: {disabled: [{name: InterPodAffinity}]}", "InterPodAffinity", "preFilter"),
            ("preScore: {disabled: [{name: '*'}]}", "TaintToleration", "preScore"),
        ],
    )
    def test_a_profile_in_which_every_pod_would_fail_is_refused(
        self, plugins: str, named: str, point: str, tmp_path: Path, capsys: Captured
    ) -> None:
        path = tmp_path / "config.yaml"
        path.write_text(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
            f"profiles: [{{plugins: {{{plugins}}}}}]\n"
        )
        assert run(["config", "check", str(path)]) == 1
        out = " ".join(capsys.readouterr().out.split())
        assert f"{path}: profiles[0]: every pod would fail: " in out
        assert f'"{named}"' in out
        assert out.endswith(f"enable {named} at {point} as well")

    def test_weights_that_are_only_too_large_together_are_refused(
        self, tmp_path: Path, capsys: Captured
    ) -> None:
        names = ("LeastRequestedPriority", "BalancedResourceAllocation", "TaintTolerationPriority")
        priorities = [{"name": name, "weight": (2**63 - 1) // 100} for name in names]
        text = json.dumps({"kind": "Policy", "apiVersion": "v1", "predicates": [], "priorities": priorities})
        path = write(tmp_path / "policy.yaml", text)
        assert run(["config", "check", path]) == 1
        assert capsys.readouterr().out == (
            f"{path}: profiles[0]: profile 'default-scheduler': total score of Score plugins could overflow\n"
        )

    def test_a_profile_that_refuses_ordinary_nodes_is_valid(self, tmp_path: Path, capsys: Captured) -> None:
        path = write(
            tmp_path / "config.yaml",
            HEAD + "profiles: [{pluginConfig: [{name: NodeAffinity, args: {addedAffinity: {"
            "requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: ["
            "{key: team, operator: In, values: [a]}]}]}}}}]}]\n",
        )
        assert run(["config", "check", path]) == 0, capsys.readouterr().out

    def test_warnings_are_told_beside_errors(self, tmp_path: Path, capsys: Captured) -> None:
        path = write(tmp_path / "two.yaml", f"{HEAD}parallelism: 0\n---\n{HEAD}")
        assert run(["config", "check", path]) == 1
        captured = capsys.readouterr()
        assert "parallelism" in captured.out
        assert f"{path}: warning: only the first document" in captured.err
        assert run(["config", "check", path, "--json"]) == 1
        (verdict,) = json.loads(capsys.readouterr().out)
        assert verdict["errors"]
        assert verdict["warnings"]

    @pytest.mark.parametrize("version", ["v1beta1", "v1beta2", "v1beta3"])
    def test_a_version_with_which_kube_scheduler_does_not_start_is_refused(
        self, tmp_path: Path, version: str, capsys: Captured
    ) -> None:
        group = "kubescheduler.config.k8s.io"
        document = {"apiVersion": f"{group}/{version}", "kind": "KubeSchedulerConfiguration"}
        file = tmp_path / "old.yaml"
        file.write_text(json.dumps(document))
        assert run(["config", "check", str(file)]) == 1
        out, err = capsys.readouterr()
        assert out.startswith(
            f'{file}: no kind "KubeSchedulerConfiguration" is registered for version "{group}/{version}"; '
            f"supported are KubeSchedulerConfiguration in {group}/v1, "
        )
        assert re.search(r"; Kubernetes v1\.\d\d no longer serves it\n$", out)
        assert err == ""
        assert run(["config", "show", str(file)]) == 0
        assert f"kube-scheduler reads {group}/{version} no longer since v1." in capsys.readouterr().err

    def test_as_json(self, packing: str, wrong: str, capsys: Captured) -> None:
        assert run(["config", "check", packing, "--json"]) == 0
        valid = {"file": packing, "valid": True, "errors": [], "warnings": []}
        assert json.loads(capsys.readouterr().out) == [valid]
        assert run(["config", "check", packing, wrong, "--json"]) == 1
        refused: dict[str, Any]
        first, refused = json.loads(capsys.readouterr().out)
        assert first == valid
        assert not refused["valid"]
        assert refused["errors"] == [
            {
                "path": "parallelism",
                "message": "Invalid value: 0: should be an integer value greater than zero",
            },
            {"path": "percentageOfNodesToScore", "message": "Invalid value: 101: not in valid range [0-100]"},
        ]

    def test_the_message_of_an_unknown_field_is_without_its_path_in_json(
        self, tmp_path: Path, capsys: Captured
    ) -> None:
        file = write(tmp_path / "unknown.yaml", HEAD + "paralellism: 4\n")
        assert run(["config", "check", file, "--json"]) == 1
        ((error,),) = [each["errors"] for each in json.loads(capsys.readouterr().out)]
        assert error["path"] == "paralellism"
        assert error["message"].startswith("strict decoding error: unknown field; known are: ")

    def test_several_files_are_checked_to_the_last(
        self, packing: str, wrong: str, tmp_path: Path, capsys: Captured
    ) -> None:
        assert run(["config", "check", wrong, packing]) == 1
        *_, last = capsys.readouterr().out.splitlines()
        assert last == f"{packing}: valid, with 1 profile"
        none = str(tmp_path / "none.yaml")
        assert run(["config", "check", none, wrong, packing]) == 2
        out, err = capsys.readouterr()
        assert len(out.splitlines()) == 3
        assert err == f"kschedfw: {none}: No such file or directory\n"

    def test_a_dash_is_the_standard_input(self, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
        for text, code, said in (
            (PACKING, 0, "standard input: valid, with 1 profile\n"),
            ("", 1, "standard input: expected a KubeSchedulerConfiguration, found no document\n"),
        ):
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
            assert run(["config", "check", "-"]) == code
            assert capsys.readouterr().out == said

    def test_with_feature_gates(self, policy: str, capsys: Captured) -> None:
        assert run(["config", "check", policy]) == 1
        assert "needs the feature gate ResourceLimitsPriorityFunction" in capsys.readouterr().out
        assert run(["config", "check", policy, "--feature-gates", "ResourceLimitsPriorityFunction=true"]) == 0

    def test_a_feature_gate_that_does_not_exist_is_bad_usage(self, policy: str, capsys: Captured) -> None:
        assert run(["config", "check", policy, "--feature-gates", "EvenPodSpread=true"]) == 2
        assert capsys.readouterr() == (
            "",
            "kschedfw: unrecognized feature gate: EvenPodSpread; did you mean 'EvenPodsSpread'?\n",
        )

    def test_warnings_go_to_standard_error(self, tmp_path: Path, capsys: Captured) -> None:
        two = write(tmp_path / "two.yaml", f"{HEAD}---\n{HEAD}")
        assert run(["config", "check", two]) == 0
        assert f"{two}: warning: only the first document" in capsys.readouterr().err


class TestShow:
    def test_each_plugin_has_its_weight_why_it_is_there_and_where_it_comes_from(
        self, packing: str, capsys: Captured
    ) -> None:
        assert run(["config", "show", packing]) == 0
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        version = lines[[line[:1] for line in lines].index(["SchedulingGates"])][-1]
        assert ["NodeName", "multiPoint", "kschedfw", version] in lines
        assert ["TaintToleration", "×", "3", "default", "kschedfw", version] in lines
        assert ["DefaultPreemption", "default", "kschedfw", version] in lines
        assert ["VolumeZone", "default", "kschedfw", version] in lines
        assert ["NodeResourcesFit.scoringStrategy.type:", "MostAllocated"] in lines
        assert ["leaderElection.leaseDuration:", "15s"] in lines
        assert not any(line[:1] == ["ImageLocality"] for line in lines)

    def test_as_json(self, packing: str, capsys: Captured) -> None:
        assert run(["config", "show", "--json", packing]) == 0
        shown: dict[str, Any] = json.loads(capsys.readouterr().out)
        assert shown["profiles"][0]["schedulerName"] == "packing"

    def test_of_a_policy_what_each_plugin_stands_for(self, policy: str, capsys: Captured) -> None:
        gates = ["--feature-gates", "ResourceLimitsPriorityFunction=true"]
        assert run(["config", "show", policy, *gates]) == 0
        lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
        assert "runAllFilters: true" in lines
        ends = {line.split()[0]: line for line in lines if line}
        assert ends["NodeAffinity"].endswith("predicate MatchNodeSelector, priority NodeAffinityPriority")
        assert ends["NodeResourceLimits"].startswith("NodeResourceLimits × 2 Policy kschedfw")
        assert ends["NodeResourceLimits"].endswith("priority ResourceLimitsPriority")
        assert run(["config", "show", policy, *gates, "--json"]) == 0
        (profile,) = json.loads(capsys.readouterr().out)["profiles"]
        assert profile["runAllFilters"] is True
        assert profile["plugins"]["bind"][0]["askedBy"] == ["always"]

    def test_an_algorithm_provider(self, capsys: Captured) -> None:
        assert run(["config", "show", "--algorithm-provider", "ClusterAutoscalerProvider", "--json"]) == 0
        (profile,) = json.loads(capsys.readouterr().out)["profiles"]
        scores = [plugin["name"] for plugin in profile["plugins"]["score"]]
        assert "NodeResourcesMostAllocated" in scores

    def test_without_a_file_the_defaults(self, default: str, capsys: Captured) -> None:
        assert run(["config", "show"]) == 0
        own = capsys.readouterr().out
        assert run(["config", "show", default]) == 0
        assert capsys.readouterr().out.splitlines()[1:] == own.splitlines()[1:]

    def test_one_of_file_and_provider(self, default: str, capsys: Captured) -> None:
        assert run(["config", "show", default, "--algorithm-provider", "DefaultProvider"]) == 2
        assert "takes the place of a configuration" in capsys.readouterr().err

    def test_an_unknown_provider_is_bad_usage(self, capsys: Captured) -> None:
        assert run(["config", "show", "--algorithm-provider", "Default"]) == 2
        assert "did you mean 'DefaultProvider'?" in capsys.readouterr().err

    def test_no_value_of_a_file_breaks_a_line_or_moves_the_cursor(
        self, default: str, tmp_path: Path, capsys: Captured
    ) -> None:
        file = write(tmp_path / "named.yaml", f'{HEAD}profiles: [{{schedulerName: "a\\f\\e[2J\\nb"}}]\n')
        assert run(["config", "show", file]) == 0
        assert "profile a\\f\\x1b[2J\\nb" in capsys.readouterr().out.split("\n")
        assert run(["config", "diff", default, file]) == 1
        assert "  + a\\f\\x1b[2J\\nb" in capsys.readouterr().out.split("\n")

    def test_one_that_is_refused_is_not_shown(self, wrong: str, capsys: Captured) -> None:
        assert run(["config", "show", wrong]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert len(err.splitlines()) == 3


class TestDiff:
    def test_the_same_file_makes_no_difference(self, packing: str, capsys: Captured) -> None:
        assert run(["config", "diff", packing, packing]) == 0
        assert capsys.readouterr() == ("", "")

    def test_a_file_is_compared_with_the_default(
        self, packing: str, default: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert run(["config", "diff", default, packing]) == 1
        expected = capsys.readouterr().out
        monkeypatch.chdir(tmp_path)
        assert run(["config", "diff", "default", packing]) == 1
        assert capsys.readouterr().out == expected
        assert run(["config", "diff", "default", "default"]) == 0

    def test_whether_all_filters_are_asked_makes_a_difference(self, tmp_path: Path, capsys: Captured) -> None:
        texts = (
            f"{{kind: Policy, apiVersion: v1{more}}}" for more in ("", ", alwaysCheckAllPredicates: true")
        )
        files = [write(tmp_path / f"{index}.yaml", text) for index, text in enumerate(texts)]
        assert run(["config", "diff", *files]) == 1
        path = "profiles[default-scheduler].runAllFilters"
        assert capsys.readouterr().out == f"{path}\n  - false\n  + true\n"
        assert run(["config", "diff", *files, "--json"]) == 1
        assert json.loads(capsys.readouterr().out) == [{"path": path, "a": "false", "b": "true"}]

    def test_single_profiles_are_compared_whatever_their_names(
        self, default: str, packing: str, capsys: Captured
    ) -> None:
        assert run(["config", "diff", default, packing]) == 1
        lines = capsys.readouterr().out.splitlines()
        assert [line for line in lines if not line.startswith("  ")] == [
            "profiles[default-scheduler and packing].schedulerName",
            "profiles[default-scheduler and packing].score",
            "profiles[default-scheduler and packing].NodeResourcesFit.scoringStrategy.type",
        ]
        assert lines[-2:] == ["  - LeastAllocated", "  + MostAllocated"]

    def test_of_several_profiles_those_with_the_same_name_are_compared(
        self, packing: str, tmp_path: Path, capsys: Captured
    ) -> None:
        more = write(tmp_path / "more.yaml", PACKING + "- {schedulerName: more}\n")
        assert run(["config", "diff", packing, more]) == 1
        assert capsys.readouterr().out == "profiles[more]\n  + (the whole profile)\n"

    def test_one_that_is_refused_is_bad_input(self, default: str, wrong: str, capsys: Captured) -> None:
        assert run(["config", "diff", default, wrong]) == 2
        assert "parallelism" in capsys.readouterr().err


class TestSimulate:
    POD = (
        "{apiVersion: v1, kind: Pod, metadata: {name: NAME}, "
        "spec: {schedulerName: NAME, containers: [{name: c, image: i}]}}"
    )

    def test_every_profile_schedules_its_pods(
        self, cluster_dir: Path, tmp_path: Path, capsys: Captured
    ) -> None:
        pods = "\n---\n".join(self.POD.replace("NAME", name) for name in ("packing", "more", "theirs"))
        more = write(tmp_path / "more.yaml", PACKING + "- {schedulerName: more}\n")
        own = write(tmp_path / "pods.yaml", pods)
        assert run(["simulate", str(cluster_dir), "--pods", own, "--config", more, "--json"]) == 0
        report: dict[str, Any] = json.loads(capsys.readouterr().out)
        assert report["profile"] == "packing, more"
        assert report["pods"]["placed"] == 2

    def test_an_algorithm_provider_with_feature_gates(self, cluster_dir: Path, capsys: Captured) -> None:
        options = ["--algorithm-provider", "ClusterAutoscalerProvider", "--json"]
        assert run(["simulate", str(cluster_dir), *options]) == 0
        packed: dict[str, Any] = json.loads(capsys.readouterr().out)
        assert packed["decisions"][0]["node"] == "n1", "where a pod is already"
        assert run(["simulate", str(cluster_dir), *options, "--feature-gates", "EvenPodsSpread=no"]) == 2
        assert "invalid value of EvenPodsSpread=no" in capsys.readouterr().err

    def test_hosts_in_turn(self, cluster_dir: Path, tmp_path: Path, capsys: Captured) -> None:
        only_names = "{kind: Policy, apiVersion: v1, predicates: [], priorities: []}"
        config = write(tmp_path / "policy.yaml", only_names)
        pods = "\n---\n".join(self.POD.replace("NAME", "default-scheduler", 2).replace(
            "default-scheduler", f"pod-{index}", 1) for index in range(6))  # fmt: skip
        own = write(tmp_path / "pods.yaml", pods)
        command = ["simulate", str(cluster_dir / "nodes.yaml"), "--pods", own, "--config", config, "--json"]
        assert run([*command, "--select-host", "round-robin"]) == 0
        decisions = json.loads(capsys.readouterr().out)["decisions"]
        assert [decision["node"] for decision in decisions] == ["n1", "n2"] * 3

    def test_a_configuration_that_is_refused_is_bad_input(
        self, cluster_dir: Path, wrong: str, capsys: Captured
    ) -> None:
        assert run(["simulate", str(cluster_dir), "--config", wrong]) == 2
        assert "the configuration is refused" in capsys.readouterr().err
