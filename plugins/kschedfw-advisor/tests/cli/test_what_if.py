"""What `kschedfw what-if` prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kschedfw_advisor import codes

from kschedfw.explain import SCHEMA_VERSION
from kschedfw.testing import Command


def changes(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_what_a_cordoned_node_keeps_away_is_told(
    kschedfw_command: Command, cluster_dir: Path, tmp_path: Path
) -> None:
    file = changes(tmp_path / "c.yaml", "- {kind: cordon, nodes: [n1]}\n- {kind: cordon, nodes: [n2]}\n")
    result = kschedfw_command("what-if", cluster_dir, "--changes", file)
    assert (result.code, result.err) == (1, "")
    assert result.out == (
        "if: cordon n1, cordon n2\n"
        "1 pod loses its place; pending: 1 before, 2 after\n"
        "\n"
        "default/fits: 1 pod from n2 to pending\n"
    )


def test_a_weight_of_0_is_told_as_the_score_switched_off(
    kschedfw_command: Command, cluster_dir: Path, tmp_path: Path
) -> None:
    weight = "{kind: weight, profile: default-scheduler, plugin: NodeAffinity, weight: %d}"
    file = changes(tmp_path / "c.yaml", f"[{weight % 0}, {weight % 1}]")
    result = kschedfw_command("what-if", cluster_dir, "--changes", file)
    assert result.out.startswith("if: score of NodeAffinity off, weight of NodeAffinity: 1\n")


def test_json_has_each_pod_with_the_code_of_its_move(
    kschedfw_command: Command, cluster_dir: Path, tmp_path: Path
) -> None:
    new = "{apiVersion: v1, kind: Node, metadata: {name: n3}, status: {allocatable: {cpu: 8, pods: 10}}}"
    file = changes(tmp_path / "c.json", json.dumps([{"kind": "add", "manifests": new}]))
    result = kschedfw_command("what-if", cluster_dir, "--changes", file, "--json")
    answer = json.loads(result.out)
    assert result.code == 0
    assert answer["changes"] == ["add node n3"]
    assert answer["pending"] == {"before": 1, "after": 0}
    assert {
        "pod": "default/too-big",
        "workload": None,
        "code": "newly-placed",
        "before": None,
        "after": "n3",
        "message": "",
    } in answer["moves"]
    assert answer["schemaVersion"] == SCHEMA_VERSION
    assert {move["code"] for move in answer["moves"]} <= set(codes.moves())


def test_a_remedy_of_pending_is_a_change(
    kschedfw_command: Command, cluster_dir: Path, tmp_path: Path
) -> None:
    pending = json.loads(kschedfw_command("pending", cluster_dir, "--json").out)
    (kind,) = pending["groups"][0]["kinds"]
    remedy = kind["helps"][0]
    edit = {"kind": "edit", "text": remedy["changes"][0], "edits": remedy["edits"], "pods": kind["pods"]}
    file = changes(tmp_path / "c.json", json.dumps([edit]))
    answer = json.loads(kschedfw_command("what-if", cluster_dir, "--changes", file, "--json").out)
    placed = [move["after"] for move in answer["moves"] if move["pod"] == "default/too-big"]
    assert placed == remedy["nodes"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "- {kind: cordn, nodes: [n1]}",
            (
                "c.yaml: [0].kind: expected one of add, add-nodes, arguments, cordon, delete-nodes, delete-pods, "
                'drain, edit, plugin, reschedule, uncordon, weight; found "cordn"'
            ),
        ),
        ("- {nodes: [n1]}", "uncordon, weight; found null"),
        ("- cordon", 'c.yaml: [0]: expected an object with kind, found "cordon"'),
        ("- {kind: cordon}", "c.yaml: [0]: Object missing required field `nodes`"),
        ("- {kind: cordon, nodes: [n1], nods: [n2]}", "c.yaml: [0]: Object contains unknown field `nods`"),
        ("- {kind: cordon, nodes: [n1, 2]}", "c.yaml: [0].nodes[1]: Expected `str`, got `int`"),
        ("[]", "c.yaml: expected a list of 1 to 1,000 changes, found 0"),
        ("", "c.yaml: expected a list of 1 to 1,000 changes, found null"),
        ("kind: cordon", 'c.yaml: expected a list of 1 to 1,000 changes, found {"kind":"cordon"}'),
        ("- {kind: cordon, kind: drain, nodes: [n1]}", 'c.yaml: line 1: key "kind" already set in map'),
        (
            "- {kind: cordon, nodes: [n1]}\n---\n[]",
            "c.yaml: expected one document, the list of changes, found 2",
        ),
        ("- {kind: cordon, nodes: [n9]}", "there is no node 'n9'; there is n1, n2"),
        ("- {kind: add-nodes, like: n9}", "add 1 × n9: there is no node 'n9'"),
        ("- [", "c.yaml: is not valid YAML: line "),
    ],
)
def test_what_isnt_a_change_is_named(
    kschedfw_command: Command, cluster_dir: Path, tmp_path: Path, text: str, problem: str
) -> None:
    file = changes(tmp_path / "c.yaml", text)
    result = kschedfw_command("what-if", cluster_dir, "--changes", file)
    assert (result.code, result.out) == (2, "")
    assert problem in result.err


def test_without_changes_it_says_what_is_needed(kschedfw_command: Command, cluster_dir: Path) -> None:
    result = kschedfw_command("what-if", cluster_dir)
    assert result.code == 2
    assert "one of both is needed: --changes FILE" in result.err
    both = kschedfw_command("what-if", cluster_dir, "--changes", "c.yaml", "--plan", "p.yaml")
    assert (both.code, both.err) == (2, result.err)
    missing = kschedfw_command("what-if", cluster_dir, "--changes", cluster_dir / "none.yaml")
    assert missing.code == 2
    assert "none.yaml: can't be read: No such file or directory" in missing.err


NEW = "{metadata: {name: n3}, status: {allocatable: {cpu: 8, pods: 10}}}"


def test_a_plan_that_kube_scheduler_agrees_with(
    kschedfw_command: Command, cluster_dir: Path, tmp_path: Path
) -> None:
    file = changes(tmp_path / "plan.yaml", f"addNodes: [{NEW}]\npods: {{default/too-big: n3}}\n")
    result = kschedfw_command("what-if", cluster_dir, "--plan", file)
    assert (result.code, result.err) == (0, "")
    assert result.out == "kube-scheduler agrees: 1 pod would run as planned\n"


def test_each_decision_that_a_plan_does_not_expect_is_explained_and_coded(
    kschedfw_command: Command, cluster_dir: Path, tmp_path: Path
) -> None:
    file = changes(tmp_path / "plan.json", json.dumps({"pods": {"default/too-big": "n1"}}))
    result = kschedfw_command("what-if", cluster_dir, "--plan", file, "--json")
    answer = result.json
    assert (result.code, answer["agrees"], answer["works"]) == (1, False, False)
    (told,) = answer["deviations"]
    assert told["message"].startswith("0/2 nodes are available: ")
    assert told == {
        "code": "stays-pending",
        "pod": "default/too-big",
        "planned": "n1",
        "node": None,
        "message": told["message"],
    }
    assert answer["pods"] == [{"pod": "default/too-big", "node": None}]
    assert told["code"] in codes.deviations()
    verdict, _, explained = kschedfw_command("what-if", cluster_dir, "--plan", file).out.partition("\n\n")
    assert verdict == "kube-scheduler decides otherwise in 1 case; not all pods would run as planned"
    assert " ".join(explained.split()) == f"default/too-big, planned for n1: {told['message']}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[]", "expected a mapping with some of addNodes, removeNodes, pods; found []"),
        ("{nodes: [a]}", "plan: Object contains unknown field `nodes`"),
        ("{removeNodes: n1}", "removeNodes: Expected `array`, got `str`"),
        (
            "{addNodes: [{apiVersion: v1, kind: Pod, metadata: {name: a}}]}",
            'addNodes[0].kind: Invalid value: "Pod": expected a Node',
        ),
        (
            "{addNodes: [{metadata: {name: a}, spec: {taintz: []}}]}",
            'strict decoding error: unknown field "addNodes[0].spec.taintz"; did you mean "taints"?',
        ),
        ("{removeNodes: [x]}", "plan.yaml: plan: nodes to remove that aren't there: x"),
        ("{addNodes: [{metadata: {name: n1}}]}", "plan.yaml: plan: nodes to add that are there already"),
    ],
)
def test_what_is_no_plan_is_one_error(
    text: str, told: str, kschedfw_command: Command, cluster_dir: Path, tmp_path: Path
) -> None:
    result = kschedfw_command("what-if", cluster_dir, "--plan", changes(tmp_path / "plan.yaml", text))
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert told in result.err
