"""What `kschedfw drain` prints, and its exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kschedfw.testing import Command

NODE = "{apiVersion: v1, kind: Node, metadata: {name: %s}, status: {allocatable: {cpu: %s, memory: 4Gi, pods: 10}}}"
POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: %s
  labels: {app: web}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: "1", controller: true}]
spec: {nodeName: n1, containers: [{name: main, image: app, resources: {requests: {cpu: 1}}}]}
"""
BUDGET = """\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {%s, selector: {matchLabels: {app: web}}}
"""


def written(path: Path, *documents: str) -> Path:
    path.write_text("\n---\n".join(documents), encoding="utf-8")
    return path


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """A node with two pods and an empty one."""
    return written(tmp_path / "c.yaml", NODE % ("n1", 4), NODE % ("n2", 4), POD % "a", POD % "b")


def test_all_pods_find_another_place(kschedfw_command: Command, cluster: Path) -> None:
    result = kschedfw_command("drain", cluster, "n1")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(
        "n1: can be drained; all 2 pods find another place\n"
        "\n"
        "Where the pods go\n"
        "round  pod        to\n"
        "    1  default/a  n2\n"
        "    1  default/b  n2\n"
    )


def test_a_budget_says_in_which_order(kschedfw_command: Command, cluster: Path, tmp_path: Path) -> None:
    budget = written(tmp_path / "budget.yaml", BUDGET % "maxUnavailable: 1")
    result = kschedfw_command("drain", cluster, "n1", "--pods", budget)
    assert result.code == 0
    assert result.out.startswith("n1: can be drained; all 2 pods find another place, in 2 rounds\n")
    assert "    2  default/b  n2\n" in result.out
    assert "a round begins once the pods of the one before run" in result.out


def test_a_budget_that_allows_nothing_is_named(
    kschedfw_command: Command, cluster: Path, tmp_path: Path
) -> None:
    budget = written(tmp_path / "budget.yaml", BUDGET % "minAvailable: 2")
    result = kschedfw_command("drain", cluster, "n1", "--pods", budget)
    assert result.code == 1
    assert result.out.startswith(
        "n1: can't be drained without harm: 2 pods in the way; 0 would move\n"
        "\n"
        "Can't be evicted:\n"
        "each of default/a, default/b: its eviction would violate PodDisruptionBudget web\n"
    )


def test_a_pod_that_finds_no_place_is_told_with_the_reason(
    kschedfw_command: Command, cluster: Path, tmp_path: Path
) -> None:
    written(cluster, NODE % ("n1", 4), NODE % ("n2", 1), POD % "a", POD % "b")
    result = kschedfw_command("drain", cluster, "n1")
    assert result.code == 1
    assert (
        "In the way:\n"
        "default/b: finds no other place: 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were\n"
        "unschedulable." in result.out
    )


def test_a_pod_without_a_controller_is_in_the_way(kschedfw_command: Command, cluster: Path) -> None:
    alone = "\n".join(line for line in (POD % "a").splitlines() if "ownerReferences" not in line)
    written(cluster, NODE % ("n1", 4), NODE % ("n2", 4), alone)
    result = kschedfw_command("drain", cluster, "n1")
    assert result.code == 1
    assert "default/a: has no controller: nothing would make it anew, and kubectl drain wants --force" in (
        " ".join(result.out.split())
    )


def test_data_of_empty_dirs_is_in_the_way_unless_it_may_be_deleted(
    kschedfw_command: Command, cluster: Path
) -> None:
    pod = (POD % "a").replace("spec: {", "spec: {volumes: [{name: tmp, emptyDir: {}}], ")
    written(cluster, NODE % ("n1", 4), NODE % ("n2", 4), pod)
    result = kschedfw_command("drain", cluster, "n1")
    assert result.code == 1
    assert "Can't be evicted:\ndefault/a: has data in emptyDir volumes (tmp)" in result.out
    assert kschedfw_command("drain", cluster, "n1", "--delete-emptydir-data").code == 0


def test_several_nodes_and_json(kschedfw_command: Command, cluster: Path) -> None:
    written(cluster, *(NODE % (name, 4) for name in ("n1", "n2", "n3")), POD % "a", POD % "b")
    result = kschedfw_command("drain", cluster, "n1", "n2", "n1", "--json")
    assert result.code == 0
    document = result.json
    assert document["nodes"] == ["n1", "n2"]
    assert document["succeeds"] is True
    assert document["steps"] == [
        {
            "round": 1,
            "pod": f"default/{name}",
            "from": "n1",
            "to": "n3",
            "outcome": "moves",
            "code": "pod-moves",
            "message": "",
            "causes": [],
        }
        for name in "ab"
    ]
    assert (document["blocked"], document["staying"]) == ([], [])


def test_an_empty_node(kschedfw_command: Command, cluster: Path) -> None:
    result = kschedfw_command("drain", cluster, "n2")
    assert (result.code, result.out) == (0, "n2: can be drained; there is nothing to evict\n")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["n3"], "node 'n3': there is none of this name; there are n2, n1"),
        ([], "a cluster and a node are needed: CLUSTER NODE..., or --context NAME NODE..."),
    ],
)
def test_what_is_not_there_is_named(
    kschedfw_command: Command, cluster: Path, arguments: list[str], problem: str
) -> None:
    result = kschedfw_command("drain", cluster, *arguments)
    assert (result.code, result.out) == (2, "")
    assert problem in result.err


def test_a_cluster_that_is_none(kschedfw_command: Command, tmp_path: Path) -> None:
    result = kschedfw_command("drain", tmp_path / "none.yaml", "n1")
    assert (result.code, result.out) == (2, "")
    assert "none.yaml: can't be read: No such file or directory" in result.err
