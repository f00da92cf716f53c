"""Declarative tests: what a case may expect, what is told where it doesn't hold, and where a case is wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from kschedfw.testing import cases
from kschedfw.testing.case_runner import Runner
from kschedfw.testing.cases import CaseError, find_suites, read_cases

PACKING = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""


def node(name: str, cpu: int) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"zone": name}},
        "status": {"allocatable": {"cpu": str(cpu), "memory": "16Gi", "pods": "10"}},
    }


def pod(name: str, cpu: int, **spec: object) -> dict[str, Any]:
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": str(cpu)}}}
    return {"metadata": {"name": name, "labels": {"app": name}}, "spec": {"containers": [container], **spec}}


BUSY = pod("busy", 6, nodeName="big")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A configuration that packs, and manifests of a small node and of a big one that is nearly full."""
    (tmp_path / "packing.yaml").write_text(PACKING, encoding="utf-8")
    manifests = [
        {"apiVersion": "v1", "kind": "Node", **node("small", 2)},
        {"apiVersion": "v1", "kind": "Node", **node("big", 8)},
        {"apiVersion": "v1", "kind": "Pod", **BUSY},
    ]
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all(manifests), encoding="utf-8")
    return tmp_path


def problems(
    folder: Path, expected: Mapping[str, object], *pods: dict[str, Any], update: bool = False, **case: object
) -> list[str]:
    """What a case in that folder's cluster, under the configuration that packs, finds."""
    path = folder / "one.kschedfw.yaml"
    described = {"name": "one", "pods": list(pods) or [pod("web", 1)], "expected": expected, **case}
    suite = {"cluster": ["cluster.yaml"], "configuration": "packing.yaml", "cases": [described]}
    path.write_text(yaml.safe_dump(suite), encoding="utf-8")
    (read,) = read_cases(path)
    return Runner(update=update or None).problems(read)


class TestExpectations:
    @pytest.mark.parametrize(
        "expected",
        [
            {"pods": {"web": {"node": "big"}}},
            {"pods": {"default/web": {"oneOf": ["small", "big"]}}},
            {"evicted": []},
            {"spread": [{"topologyKey": "zone", "pods": "app=web"}]},
            {"placedShare": 1.0},
            {"noOvercommit": True},
            {"moved": {"pods": ["web"]}},
            {"moved": {"pods": [], "baseline": "packing.yaml"}},
        ],
    )
    def test_hold(self, folder: Path, expected: Mapping[str, object]) -> None:
        assert problems(folder, expected) == []

    @pytest.mark.parametrize(
        ("expected", "told"),
        [
            ({"pods": {"web": {"node": "small"}}}, "default/web should go to small, and is on big"),
            (
                {"pods": {"web": {"oneOf": ["a", "b"]}}},
                "default/web should go to a or b, and is on big; there is no node a; there is no node b",
            ),
            (
                {"pods": {"web": {"refused": "Insufficient cpu"}}},
                "default/web should be refused (Insufficient cpu), and is on big",
            ),
            ({"pods": {"wbe": {"node": "big"}}}, "there is no pod default/wbe; did you mean default/web?"),
            ({"evicted": ["busy"]}, "evicted should be default/busy, not none"),
            ({"spread": [{"topologyKey": "rack"}]}, "no node has the label rack; nodes have zone"),
            ({"moved": {"pods": []}}, "default/web should not move: small → big"),
            (
                {"moved": {"pods": ["web"], "baseline": "packing.yaml"}},
                "default/web should move, and stays on big",
            ),
        ],
    )
    def test_that_do_not_hold_are_told(self, folder: Path, expected: Mapping[str, object], told: str) -> None:
        assert problems(folder, expected) == [told]

    def test_refusal_is_a_part_of_the_schedulers_message(self, folder: Path) -> None:
        huge = pod("huge", 4)
        assert problems(folder, {"pods": {"huge": {"refused": "2 Insufficient cpu"}}}, huge) == []
        (told,) = problems(folder, {"pods": {"huge": {"refused": "memory"}}}, huge)
        assert told.startswith(
            "default/huge should be refused with 'memory', not with '0/2 nodes are available: "
        )
        (told,) = problems(folder, {"pods": {"huge": {"node": "big"}}}, huge)
        assert told.startswith("default/huge should go to big, and is on no node: 0/2 nodes are available: ")

    def test_refusal_by_an_api_server_counts_as_one(self, folder: Path) -> None:
        expected = {"pods": {"web": {"refused": "exceeded quota: few"}}}
        assert problems(folder, expected, objects=[FEW]) == []

    def test_victims_of_preemption_are_evicted(self, folder: Path) -> None:
        urgent = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "urgent"},
            "value": 1000,
        }
        important = pod("important", 7, priorityClassName="urgent")
        expected = {"pods": {"important": {"node": "big"}}, "evicted": ["busy"]}
        assert problems(folder, expected, important, objects=[urgent]) == []
        told = problems(folder, {"pods": {"busy": {"node": "big"}}}, important, objects=[urgent])
        assert told == ["default/busy should go to big, and was evicted"]

    def test_nothing_to_schedule_is_a_problem(self, folder: Path) -> None:
        bound = pod("bound", 1, nodeName="small")
        assert problems(folder, {"evicted": []}, bound) == [
            "no pod was tried: the cluster has no pending pods"
        ]

    def test_placements_are_written_on_request_and_compared_otherwise(self, folder: Path) -> None:
        expected = {"placements": "golden/one.json"}
        (told,) = problems(folder, expected)
        assert "there is no such file" in told
        assert problems(folder, expected, update=True) == []
        path = folder / "golden" / "one.json"
        assert json.loads(path.read_text(encoding="utf-8")) == {"default/web": "big"}
        assert problems(folder, expected) == []
        path.write_text('{"default/web": "small"}', encoding="utf-8")
        (told,) = problems(folder, expected)
        assert told.splitlines()[1:] == ["* default/web: small → big"]

    def test_placements_have_null_for_a_pod_that_an_api_server_refuses(self, folder: Path) -> None:
        expected = {"placements": "one.json"}
        assert problems(folder, expected, update=True, objects=[FEW]) == []
        assert json.loads((folder / "one.json").read_text(encoding="utf-8")) == {"default/web": None}
        assert problems(folder, expected, objects=[FEW]) == []
        (told,) = problems(folder, expected)
        assert told.splitlines()[1:] == ["* default/web: no node → big"]

    def test_the_text_of_a_changed_golden_says_how_it_is_written(self, folder: Path) -> None:
        (told,) = problems(folder, {"placements": "one.json"})
        assert "KSCHEDFW_UPDATE_GOLDEN=1, or --update of `kschedfw test`, writes it" in told

    def test_no_overcommit_of_nothing_is_a_problem(self, folder: Path) -> None:
        waiting = pod("waiting", 1, nodeSelector={"no": "such"})
        cluster = yaml.safe_dump_all([{"apiVersion": "v1", "kind": "Node", **node("small", 2)}])
        (folder / "cluster.yaml").write_text(cluster, encoding="utf-8")
        assert problems(folder, {"noOvercommit": True}, waiting) == [
            "no pod is on a node, so that none could have too many"
        ]


FEW = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "few", "namespace": "default"},
    "spec": {"hard": {"pods": "1"}},
}


def deployment(name: str, replicas: int, cpu: int) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod(name, cpu)["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


class TestSets:
    """There is room for four pods of one CPU, two on each node."""

    @pytest.mark.parametrize(
        "expected",
        [
            {"pods": "app=web"},
            {"pods": "app=web", "in": "zone!=small"},
            {"workload": "Deployment/shop", "placed": 3, "refused": "Insufficient cpu"},
            {"workload": "deploy/default/shop", "pods": "app=shop", "placed": 3},
            {"pods": "app in (web, shop)", "placed": 4},
        ],
        ids=str,
    )
    def test_hold(self, folder: Path, expected: dict[str, object]) -> None:
        given: dict[str, Any] = {"pods": [pod("web", 1)], "objects": [deployment("shop", 5, 1)]}
        assert problems(folder, {"sets": [expected]}, **given) == []

    @pytest.mark.parametrize(
        ("expected", "told"),
        [
            ({"pods": "app=nobody"}, "there are no pending pods with app=nobody"),
            (
                {"workload": "Job/shop"},
                "there are no pending pods of Job/shop; no workload has pending pods",
            ),
            (
                {"pods": "app=web", "placed": 0},
                "of the pods with app=web 0 should have a node, and 1 of 1 pod have one",
            ),
            (
                {"pods": "app=web", "in": "zone=small"},
                "pods with app=web should be on nodes with zone=small, and aren't: default/web on big",
            ),
            (
                {"pods": "app=web", "refused": "Insufficient cpu"},
                "of the pods with app=web 0 should have a node, and 1 of 1 pod have one",
            ),
        ],
    )
    def test_that_do_not_hold_are_told(self, folder: Path, expected: dict[str, object], told: str) -> None:
        assert problems(folder, {"sets": [expected]}) == [told]

    def test_an_unknown_workload_is_told_with_those_that_there_are(self, folder: Path) -> None:
        (told,) = problems(folder, {"sets": [{"workload": "Job/shop"}]}, objects=[deployment("shop", 2, 1)])
        assert told == (
            "there are no pending pods of Job/shop; workloads with pending pods are Deployment/default/shop"
        )

    def test_too_few_are_told_with_the_reasons_of_those_without_a_node(self, folder: Path) -> None:
        shop = deployment("shop", 5, 1)
        given: dict[str, Any] = {"pods": [pod("web", 1)], "objects": [shop]}
        (told,) = problems(folder, {"sets": [{"workload": "Deployment/shop", "placed": 4}]}, **given)
        assert told.startswith(
            "of the pods of Deployment/shop 4 should have a node, and 3 of 5 pods have one; without a node: "
            "default/shop-"
        )
        assert "Insufficient cpu" in told
        other = {"workload": "Deployment/shop", "placed": 3, "refused": "memory"}
        (told,) = problems(folder, {"sets": [other]}, **given)
        assert "without a node should be refused with 'memory', and aren't: default/shop-" in told

    def test_pods_that_an_api_server_refuses_are_in_their_sets(self, folder: Path) -> None:
        quota = {**FEW, "spec": {"hard": {"pods": "3"}}}
        given: dict[str, Any] = {"pods": [pod("web", 1)], "objects": [quota, deployment("shop", 3, 1)]}
        by_labels = {"pods": "app=shop", "placed": 1, "refused": "exceeded quota: few"}
        by_workload = {"workload": "Deployment/shop", "placed": 1, "refused": "exceeded quota: few"}
        assert problems(folder, {"sets": [by_labels, by_workload]}, **given) == []


class TestScenes:
    def test_cases_own_parts_come_on_top_of_the_suites(self, folder: Path) -> None:
        path = folder / "two.kschedfw.yaml"
        web = {"pods": [pod("web", 1)]}
        suite = {
            "configuration": "packing.yaml",
            "nodes": [node("small", 2)],
            "cases": [
                {"name": "alone", **web, "expected": {"pods": {"web": {"node": "small"}}}},
                {
                    "name": "with a smaller one",
                    **web,
                    "nodes": [node("one", 1)],
                    "expected": {"pods": {"web": {"node": "one"}}},
                },
            ],
        }
        path.write_text(yaml.safe_dump(suite), encoding="utf-8")
        runner = Runner()
        assert [runner.problems(case) for case in read_cases(path)] == [[], []]

    def test_equally_good_nodes_are_taken_by_name_and_with_a_seed_by_chance(self, folder: Path) -> None:
        twins = [node("z", 16), node("y", 16)]
        spread = {"pods": {"web": {"node": "y"}}}
        assert problems(folder, spread, pod("web", 16), nodes=twins) == []
        found = [problems(folder, spread, pod("web", 16), nodes=twins, seed=seed) for seed in range(12)]
        assert [] in found
        assert ["default/web should go to y, and is on z"] in found


WRONG = """\
cluster: [cluster.yaml]
cases:
- name: first
  pods:
  - metadata: {name: web}
    spec:
      containers:
      - {name: main, image: app, resources: {requests: {cpu: 1x}}}
  expected:
    {expected}
- name: second
  expected: {evicted: []}
"""


class TestWrongCases:
    @pytest.mark.parametrize(
        ("expected", "told"),
        [
            (
                "{evictd: []}",
                ':10: strict decoding error: unknown field "cases[0].expected.evictd"; known are: ',
            ),
            ("{}", ":9: cases[0].expected: nothing is expected, so that the case couldn't fail"),
            ("{pods: {a: {}}}", ":10: cases[0].expected.pods.a: expected one of node, oneOf and refused"),
            ("{placedShare: 2}", ":10: cases[0].expected.placedShare: Invalid value: 2"),
            (
                "{spread: [{topologyKey: zone, pods: 'a in'}]}",
                ":10: cases[0].expected.spread[0].pods: ",
            ),
            (
                "{sets: [{placed: 1}]}",
                ":10: cases[0].expected.sets[0]: expected pods, a label selector, or a workload",
            ),
            ("{sets: [{pods: a, in: 'b in'}]}", ":10: cases[0].expected.sets[0].in: "),
            ("{sets: [{workload: shop}]}", ':10: cases[0].expected.sets[0].workload: Invalid value: "shop"'),
            ("{evicted: busy}", ':10: cases[0].expected.evicted: Invalid value: "busy": must be a list'),
            ("{evicted: []}\n- name: first\n  expected: {evicted: []}", ":11: cases[1].name: Invalid value"),
        ],
    )
    def test_are_told_with_file_line_and_path(self, folder: Path, expected: str, told: str) -> None:
        path = folder / "wrong.kschedfw.yaml"
        path.write_text(WRONG.replace("{expected}", expected), encoding="utf-8")
        with pytest.raises(CaseError) as error:
            read_cases(path)
        assert str(error.value).startswith(f"{path}{told}")
        assert len(error.value.errors) == 1

    def test_manifest_is_told_with_its_own_line(self, folder: Path) -> None:
        path = folder / "wrong.kschedfw.yaml"
        path.write_text(WRONG.replace("{expected}", "{evicted: []}"), encoding="utf-8")
        first, _ = read_cases(path)
        with pytest.raises(CaseError) as error:
            Runner().problems(first)
        where = "cases[0].pods[0].spec.containers[0].resources.requests.cpu"
        assert str(error.value).startswith(f'{path}:8: {where}: Invalid value: "1x"')

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("cases: [", "is not valid YAML: line 2"),
            (
                "cases: []\n---\ncases: []",
                "expected one document, the suite, found 2; --- separates documents",
            ),
            ("", "expected an object with cases, found nothing"),
            ("cases: []", ":1: cases: a suite has 1 to 1,000 cases, not 0"),
            ("cases: []\ncases: []", 'key "cases" already set in map'),
        ],
    )
    def test_suite_that_is_none_is_one_line(self, tmp_path: Path, text: str, told: str) -> None:
        path = tmp_path / "a.kschedfw.yaml"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(CaseError) as error:
            read_cases(path)
        assert told in str(error.value)
        assert str(error.value).startswith(str(path))
        assert "\n" not in str(error.value)

    def test_suite_has_a_largest_size(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "a.kschedfw.yaml"
        path.write_text("#" * (cases.LARGEST + 1), encoding="utf-8")
        with pytest.raises(CaseError, match="expected a suite of at most 1,048,576 bytes, found more"):
            read_cases(path)
        monkeypatch.setattr(cases, "MOST_CASES", 1)
        path.write_text(WRONG.replace("{expected}", "{evicted: []}"), encoding="utf-8")
        with pytest.raises(CaseError, match="a suite has 1 to 1 cases, not 2"):
            read_cases(path)

    @pytest.mark.parametrize(
        ("case", "told"),
        [
            (
                {"configuration": "none.yaml"},
                "cases[0].configuration: {folder}/none.yaml: No such configuration",
            ),
            ({"configuration": "cluster.yaml"}, "cases[0].configuration: {folder}/cluster.yaml: "),
            ({"cluster": ["none.yaml"]}, "cases[0].cluster: {folder}/none.yaml: can't be read: No such file"),
            (
                {"nodes": [node("big", 8)]},
                'cases[0].nodes[0].metadata.name: Duplicate value: "big": there is one in the cluster, which is kept',
            ),
        ],
    )
    def test_input_that_is_refused_is_told_at_the_field_that_names_it(
        self, folder: Path, case: dict[str, object], told: str
    ) -> None:
        with pytest.raises(CaseError) as error:
            problems(folder, {"evicted": []}, **case)  # type: ignore[arg-type]  # the fields of the case
        assert told.format(folder=folder) in str(error.value)


def test_suites_are_found_by_name_and_a_file_may_have_any(tmp_path: Path) -> None:
    inner = tmp_path / "b"
    inner.mkdir()
    names = ("b/x.kschedfw.yaml", "a.kschedfw.yml", "values.yaml", "kschedfw.yaml")
    for name in names:
        (tmp_path / name).touch()
    assert find_suites(tmp_path) == [tmp_path / "a.kschedfw.yml", inner / "x.kschedfw.yaml"]
    assert find_suites(tmp_path / "values.yaml") == [tmp_path / "values.yaml"]
